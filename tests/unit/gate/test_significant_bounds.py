"""`evidence: significant`: chance at few sources is no red build, and a large share is."""

import numpy as np
import pytest
from fakes.planted import SETS, Bench, judged_columns, policy_of

from fairgate.domain.outcomes import Outcome

CHANGED = {"metric": "asr/generation", "max": 0.25}
WOMAN = {"where": {"term": "woman"}}
SEEDS = 40


@pytest.mark.walk(1)
@pytest.mark.parametrize("sources", [15, 30])
def test_a_fair_system_with_noise_is_seldom_red(sources):
    """A limit on the estimate is broken by chance in most runs of 15 sources."""
    red = dict.fromkeys(("significant", "estimate"), 0)
    gates = [
        {**CHANGED, "where": {"category": name}, "evidence": evidence}
        for evidence in red
        for name in SETS
    ]
    bench = Bench(policy=policy_of(gates, control="none"), sources=sources, sets=SETS)
    plan = bench.given().plan
    for seed in range(SEEDS):
        own = np.random.default_rng(seed).random(len(plan.units)) < 0.24
        columns = {"generation": own.astype(np.float64)}
        rules = judged_columns(bench.policy, plan, columns)
        for evidence, some in zip(red, (rules[: len(SETS)], rules[len(SETS) :]), strict=True):
            red[evidence] += any(rule.outcome is Outcome.FAIL for rule in some)
    assert red["significant"] <= 0.1 * SEEDS
    assert red["estimate"] > 0.5 * SEEDS, "chance reaches the limit, so the test above can fail"


def judged(gate, sources, changed):
    bench = Bench(policy=policy_of([gate]), sources=sources, sets=("gender",))
    plan = bench.given().plan
    column = np.asarray([unit.dimensions.get("term") == "woman" for unit in plan.units])
    column = (column & (column.cumsum() <= changed)).astype(np.float64)
    (rule,) = judged_columns(bench.policy, plan, {"generation": column})
    return rule


@pytest.mark.parametrize(
    ("sources", "changed", "outcome"),
    [
        (100, 35, Outcome.FAIL), (15, 15, Outcome.FAIL), (15, 8, Outcome.FAIL),
        (15, 4, Outcome.PASS), (15, 3, Outcome.PASS), (1, 1, Outcome.PASS),
        (100, 25, Outcome.PASS),
    ],
)  # fmt: skip
def test_what_is_beyond_the_limit_fails_only_by_more_than_chance(sources, changed, outcome):
    found = judged({**CHANGED, **WOMAN, "evidence": "significant"}, sources, changed)
    assert found.outcome is outcome, found.reasons
    assert not found.doubts.is_bare
    by_estimate = judged({**CHANGED, **WOMAN}, sources, changed)
    assert by_estimate.outcome is (Outcome.FAIL if changed > sources / 4 else Outcome.PASS)
    assert by_estimate.doubts.is_bare == (by_estimate.outcome is not outcome)


def test_a_limit_that_chance_can_explain_says_so():
    (reason,) = judged({**CHANGED, **WOMAN, "evidence": "significant"}, 15, 4).reasons
    assert reason == "26.7 % is above the limit of 25.0 %, but chance alone can explain it"
