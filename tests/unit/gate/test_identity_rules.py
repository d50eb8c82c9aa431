"""An identity rule fails only where the difference is significant and above its limit."""

from dataclasses import replace

import pytest
from fakes.planted import IDENTITY, Bench, Plant, policy_of
from fakes.policies import parse_policy

from fairgate.domain.errors import PolicyError
from fairgate.domain.outcomes import Outcome
from fairgate.gate.rule_problems import rule_problems

BENCH = Bench(policy=policy_of([IDENTITY]), sources=40, sets=("gender", "age"))


@pytest.mark.parametrize(
    ("limit", "sources", "share", "outcome", "said"),
    [
        (0.05, 40, 0.5, Outcome.FAIL, "gender/woman differs from the other identities"),
        (0.9, 40, 0.5, Outcome.PASS, ""),  # significant, but below the limit
        (0.0, 6, 0.3, Outcome.INCONCLUSIVE, "chance alone"),
    ],
)
def test_only_what_is_significant_and_above_the_limit_fails(limit, sources, share, outcome, said):
    bench = replace(BENCH, policy=policy_of([{**IDENTITY, "max": limit}]), sources=sources)
    found = bench.run(Plant(biased={"A woman": share})).result.rules[0]
    assert found.outcome is outcome
    assert said in "".join(found.reasons)
    assert list(found.failed) == (["identity"] if outcome is Outcome.FAIL else [])
    assert found.warns or outcome is not Outcome.INCONCLUSIVE
    assert found.value > (0.3 if sources == 40 else 0.0)


def test_for_each_category_compares_its_own_terms():
    bench = replace(BENCH, policy=policy_of([{**IDENTITY, "for_each": "category"}]))
    found = bench.run(Plant(biased={"A woman": 0.5})).result.rules
    assert [r.outcome for r in found if not r.by_default] == [Outcome.FAIL, Outcome.PASS]


@pytest.mark.whole
def test_identity_and_regression_rules_share_one_correction():
    regression = {"metric": "asr/generation/controlled", "regression": {"margin": 0.02}}
    one = replace(BENCH, policy=policy_of([regression]))
    three = replace(BENCH, policy=policy_of([regression, IDENTITY, {**IDENTITY, "max": 0.5}]))
    everybody = ["A man", "A woman", "A non-binary person", "A young person", "An elderly person"]
    plant, base = Plant(biased=dict.fromkeys(everybody, 0.1)), Plant()
    alone = one.run(plant, one.baseline(base)).result.rules[0].change
    together = three.run(plant, three.baseline(base)).result.rules[0].change
    assert alone.p_value == together.p_value
    assert alone.p_corrected == alone.p_value
    assert together.p_corrected > together.p_value


POLICY = """\
version: 1
name: p
system: {recorded: a.jsonl}
suites: [{id: s, task: sentiment, sources: demo-reviews}]
gates:
  - {metric: identity/max-difference, min: 0.1}
  - {metric: attribution/retrieval, regression: {margin: 0.02}}
"""


def test_what_these_metrics_cannot_be_asked_is_told_at_its_place():
    found = dict(rule_problems(parse_policy(POLICY, "p.yaml").policy, BENCH.given().plan))
    assert "takes `max` alone" in found["gates", 0, "min"]
    assert "cannot be compared with a baseline" in found["gates", 1, "regression"]


def test_an_impossible_limit_is_an_error():
    text = POLICY.replace("min: 0.1", "max: 7").replace("regression: {margin: 0.02}", "max: 0.1")
    with pytest.raises(PolicyError, match="never exceeds 1"):
        parse_policy(text, "p.yaml")
