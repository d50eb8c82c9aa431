"""What a rule can see rests on the largest SD that anybody knows."""

from pathlib import Path

import numpy as np
import pytest
from fakes.planted import IDENTITY, REGRESSION, Bench, policy_of

from fairgate.domain.ports import Runtime
from fairgate.features.power import ASSUMED, fewest_answers, power_lines, rule_power
from fairgate.gate.baseline import KnownSd
from fairgate.gate.loaded_policy import load_policy
from fairgate.gate.rules import expand_rules
from fairgate.stats.recurrence import recurrence_p
from fairgate.stats.regression import RuleDesign, minimum_detectable_effect, sources_needed

METRIC = "asr/generation/controlled"


def rows(gates, sds=(), observed=None):
    bench = Bench(policy=policy_of(gates), sources=50, sets=("gender",))
    plan = bench.given().plan
    return rule_power(expand_rules(bench.policy, plan), plan, bench.policy, sds, observed or {})


def known(sd):
    return KnownSd(metric=METRIC, suite="s", where={}, sd=sd)


def test_without_knowledge_several_sds_are_assumed():
    found = rows([REGRESSION])
    assert [row.sd for row in found] == list(ASSUMED)
    assert {row.origin for row in found} == {"assumed"}
    assert {row.sources for row in found} == {50}
    assert "fairgate burn-in" in "\n".join(power_lines(found, 0.95))


@pytest.mark.parametrize(
    ("declared", "measured", "sd", "origin"),
    [(0.1, 0.2, 0.2, "burn-in"), (0.3, 0.2, 0.3, "declared"), (None, 0.2, 0.2, "burn-in")],
)
def test_the_largest_known_sd_counts(declared, measured, sd, origin):
    gate = {"metric": METRIC, "regression": {"margin": 0.02, "sd": declared}}
    (row,) = rows([gate], [known(measured)])
    assert (row.sd, row.origin) == (sd, origin)


def test_the_numbers_are_those_of_the_formula_at_the_familys_strictest_level():
    (row,) = rows([REGRESSION, IDENTITY, {**IDENTITY, "max": 0.1}], [known(0.1)])
    assert row.level == pytest.approx(0.05 / 3)
    exact = RuleDesign(level=row.level, margin=0.02)
    assert row.sees == minimum_detectable_effect(0.1, 50, exact)
    assert row.needed[0.05] == sources_needed(0.05, 0.1, exact)


def test_what_for_each_makes_of_a_line_shares_its_part_of_the_level():
    each = {"metric": METRIC, "for_each": "term", "regression": {"margin": 0.02}}
    whole, *terms = rows([REGRESSION, IDENTITY, each], [known(0.1)])
    assert len({tuple(row.where.items()) for row in terms}) == 3
    assert whole.level == pytest.approx(0.05 / 3)
    assert {round(row.level, 9) for row in terms} == {round(0.05 / 3 / 3, 9)}
    budget = {"metric": METRIC, "regression": {"margin": 0.02, "budget": 0.04}}
    assert rows([budget, IDENTITY], [known(0.1)])[0].level == pytest.approx(0.05 / 3)


@pytest.mark.parametrize("name", ["rag-sentiment", "rag-toxicity"])
def test_a_line_on_each_identity_costs_the_shipped_rules_less_than_a_tenth(name):
    root = Path(__file__).parents[3]
    loaded = load_policy(root / f"policies/{name}.yaml", Runtime(root=root))
    policy = loaded.policy
    lines = [gate for gate in policy.gates if gate.regression and gate.for_each]
    assert lines
    with_lines = _sees(policy, loaded.plan)
    for line in lines:
        fewer = policy.model_copy(
            update={"gates": [gate for gate in policy.gates if gate is not line]}
        )
        without = _sees(fewer, loaded.plan)
        assert without
        for metric, sees in without.items():
            assert sees < with_lines[metric] < 1.1 * sees or with_lines[metric] == sees


def _sees(policy, plan):
    """Metric of each rule about everybody to the change that it sees where it varies by .1."""
    rows_of_rules = rule_power(expand_rules(policy, plan), plan, policy, [], {})
    return {row.metric: row.sees for row in rows_of_rules if row.sd == 0.1 and not row.where}


def test_what_the_margin_tolerates_is_marked():
    text = "\n".join(power_lines(rows([REGRESSION], [known(0.1)]), 0.95))
    assert "sources*" in text
    assert "the rule tolerates a change of that size" in text


def test_as_many_answers_as_power_says_make_a_reading_of_sentences_fail_and_one_fewer_do_not():
    wrong = []
    for sources, phrases, level in ((24, 12, 3e-4), (24, 20, 2e-4), (40, 20, 2e-4), (40, 40, 4e-4)):
        fewest = fewest_answers(sources, phrases, level, limit=0.05)
        rng = np.random.default_rng(sources + phrases)
        answers = rng.normal(size=(sources, phrases + 1, 512)).astype(np.float32)
        answers /= np.linalg.norm(answers, axis=2, keepdims=True)
        names = [[phrase] * sources for phrase in range(phrases)]
        for count in (fewest, fewest - 1):
            own = answers[:, 0].copy()
            own[:count] = answers[0, 0]
            (p,) = recurrence_p(list(answers[:, 1:]), [own], names)
            if (p <= level) != (count == fewest):
                wrong.append((sources, phrases, level, count, p))
        often = fewest_answers(sources, phrases, level, limit=0.05, neutral=0.05)
        if not fewest < often <= sources:
            wrong.append((sources, phrases, level, fewest, often))
    assert not wrong
    assert fewest_answers(24, 20, 1e-40, limit=0.05) is None
    assert fewest_answers(40, 20, 0.05, limit=0.5) == 21


def test_repeats_make_a_reading_that_neutral_answers_show_by_chance_easier_to_see():
    wrong = []
    for sources, neutral in ((24, 0.05), (40, 0.05), (40, 0.1), (40, 0.2)):
        counts = [
            fewest_answers(sources, 20, 2e-4, limit=0.05, neutral=neutral, repeats=repeats)
            for repeats in (1, 2, 3, 5)
        ]
        if None in counts or counts != sorted(counts, reverse=True) or counts[0] == counts[-1]:
            wrong.append((sources, neutral, counts))
    assert not wrong
    once, thrice = (fewest_answers(40, 20, 2e-4, limit=0.05, repeats=n) for n in (1, 3))
    assert once == thrice
