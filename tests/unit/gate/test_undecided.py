"""Answers that stop coming fail the comparison that they would otherwise drop out of."""

from dataclasses import replace

import pytest
from fakes.planted import Bench, Plant, policy_of

from fairgate.domain.outcomes import Outcome

REGRESSION = {"metric": "asr/generation", "regression": 0.02}
BENCH = Bench(policy=policy_of([REGRESSION]), sources=30, sets=("gender", "age"))


def rule(now, then):
    return BENCH.run(now, BENCH.baseline(then)).result.rules[0]


@pytest.mark.parametrize(("now", "then"), [(0.3, 0.3), (0.1, 0.0)])
def test_as_many_undecided_cases_as_before_or_a_few_more_are_no_finding(now, then):
    plants = Plant(refusing={"A man": now}), Plant(refusing={"A man": then})
    assert rule(*plants).outcome is Outcome.PASS


def test_significantly_more_undecided_cases_fail():
    found = rule(Plant(refusing={"A man": 0.9}), Plant())
    assert (found.outcome, list(found.failed)) == (Outcome.FAIL, ["unreadable"])
    said = "points of the cases are no longer decided: 25 that the baseline decided, "
    assert said in found.reasons[-1]
    assert "(25 unreadable answers; p < 0.001)" in found.reasons[-1]


@pytest.mark.parametrize(
    "gates", [[REGRESSION], [REGRESSION, {**REGRESSION, "where": {"category": "age"}}]]
)
def test_one_test_for_the_suite_however_many_rules(gates):
    bench = replace(BENCH, policy=policy_of(gates))
    found = bench.run(Plant(refusing={"A man": 0.9}), bench.baseline(Plant())).result.rules
    assert all("unreadable" in r.failed for r in found if r.change is not None)
