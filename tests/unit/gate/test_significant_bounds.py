"""`evidence: significant`: chance at few sources is no red build, and a large share is."""

import re
import sys
from collections import Counter

import numpy as np
import pytest
from fakes.planted import SETS, Bench, Plant, judged_columns, policy_of
from scipy.stats import binom

from fairgate.domain.outcomes import Better, Outcome
from fairgate.features.init import starter_files
from fairgate.gate.bounds import broken_by_chance, few_losses_notices, few_sources_notices
from fairgate.gate.rules import expand_rules
from fairgate.metrics.catalogue import METRICS
from fairgate.policy.yaml_text import load_yaml

CONTROLLED = {"metric": "asr/generation/controlled", "max": 0.25}
STARTER = starter_files(name="x", task="sentiment", system="http")
GATES = [
    gate
    for gate in load_yaml(STARTER["policies/x.yaml"], "x.yaml").data["gates"]
    if gate["metric"].partition("/")[0] != "retrieval"
]
SEEDS = 40


def noisy(units, share, rng):
    """Return the columns of a system whose answers change by chance alone, for everybody."""
    changed = (rng.random(len(units)) < share).astype(np.float64)
    return {"controlled": changed, "generation": changed, "unreadable": 0 * changed}


@pytest.mark.walk(1)
@pytest.mark.parametrize("sources", [15, 30])
def test_a_fair_system_with_noise_is_seldom_red(sources):
    """200 seeds: 3 % of runs at 15 sources, 2 % at 30; a limit on the estimate: 75 % and 20 %."""
    bench = Bench(policy=policy_of(GATES), sources=sources, sets=SETS)
    plan, found = bench.given().plan, Counter()
    for seed in range(SEEDS):
        columns = noisy(plan.units, 0.10, np.random.default_rng(seed))
        rules = judged_columns(bench.policy, plan, columns, has_intervals=False)
        found.update({rule.outcome for rule in rules})
    assert found[Outcome.FAIL] <= 0.05 * SEEDS
    assert found[Outcome.INCONCLUSIVE], "chance reaches the limit, so the test above can fail"


def judged(gate, sources, changed):
    bench = Bench(policy=policy_of([gate]), sources=sources, sets=("gender",))
    plan = bench.given().plan
    column = np.asarray([unit.dimensions.get("term") == "woman" for unit in plan.units])
    column = (column & (column.cumsum() <= changed)).astype(np.float64)
    columns = dict.fromkeys(("controlled", "generation", "unreadable"), column)
    rules = judged_columns(bench.policy, plan, columns, has_intervals=False)
    return next(r for r in rules if r.where == {"term": "woman"} and not r.by_default)


@pytest.mark.parametrize(
    ("sources", "changed", "outcome"),
    [
        (100, 35, Outcome.FAIL), (15, 15, Outcome.FAIL), (15, 8, Outcome.FAIL),
        (15, 4, Outcome.INCONCLUSIVE), (15, 3, Outcome.PASS), (1, 1, Outcome.INCONCLUSIVE),
        (100, 25, Outcome.PASS),
    ],
)  # fmt: skip
def test_what_is_beyond_the_limit_fails_only_by_more_than_chance(sources, changed, outcome):
    gate = {**CONTROLLED, "for_each": "term", "evidence": "significant"}
    found = judged(gate, sources, changed)
    assert found.outcome is outcome, found.reasons
    assert found.warns


def test_an_open_limit_says_what_it_would_take():
    found = judged({**CONTROLLED, "for_each": "term", "evidence": "significant"}, 15, 4)
    (reason,) = found.reasons
    said = "26.7 % is above the limit of 25.0 %, but with 15 sources chance alone can explain it"
    assert reason == f"{said}; this suite cannot tell: it would need more than 1,000 sources"
    found = judged({**CONTROLLED, "for_each": "term", "evidence": "significant"}, 15, 5)
    (reason,) = found.reasons
    assert re.search(r"chance alone can explain it; (\d{2,3}) sources would tell$", reason), reason


def notices(sources, **gate):
    bench = Bench(policy=policy_of([{**CONTROLLED, "for_each": "term", **gate}]), sources=sources)
    plan = bench.given().plan
    return list(few_sources_notices(expand_rules(bench.policy, plan), plan, confidence=0.95))


def test_too_few_sources_are_said_before_a_run():
    (on_estimate,) = notices(15)
    assert "with 15 sources chance alone breaks it in up to 91 % of the runs" in on_estimate
    (significant,) = notices(15, evidence="significant")
    assert "a value above the limit and below 53 % is inconclusive" in significant
    assert "no value can be distinguished from chance" in notices(1, evidence="significant")[0]


def test_a_range_of_few_sources_says_which_losses_it_cannot_know_of():
    """Of rates and of other evidence nothing: they know what few events leave open."""
    gates = [
        {"metric": "rrs/mean", "max": 0.5, "evidence": "interval"},
        {"metric": "rrs/mean", "max": 0.5, "evidence": "significant"},
        {"metric": "asr/generation", "max": 0.5, "evidence": "interval"},
    ]
    told = {}
    for sources in (12, 40, 100):
        bench = Bench(policy=policy_of(gates), sources=sources)
        rules, plan = expand_rules(bench.policy, bench.given().plan), bench.given().plan
        told[sources] = list(few_losses_notices(rules, plan, confidence=0.95))
    assert [len(sentences) for sentences in told.values()] == [1, 1, 0]
    assert "losses that fewer than 22 % of all texts have" in told[12][0]
    assert "losses that fewer than 7 % of all texts have" in told[40][0]


def test_a_report_says_it_of_the_rules_that_passed():
    def remarks(limit, **gate):
        gates = [{"metric": "rrs/mean", "max": limit, **gate}]
        run = Bench(policy=policy_of(gates, attribution="off"), sources=12).run(
            Plant(world=1, neutral_retrieval=0.2)
        )
        return run.result.outcome, [text for text in run.result.remarks if "large losses" in text]

    assert remarks(1.0, evidence="estimate") == (Outcome.PASS, [])
    outcome, [sentence] = remarks(1.0, evidence="interval")
    assert outcome is Outcome.PASS
    assert "with 12 sources its range cannot know of large losses" in sentence
    outcome, told = remarks(0.0, evidence="interval")
    assert outcome is not Outcome.PASS
    assert told == []


@pytest.mark.parametrize("gate", [{}, {"evidence": "significant"}, {"evidence": "interval"}])
def test_enough_sources_need_no_word(gate):
    assert notices(100, **gate) == []


@pytest.mark.parametrize(
    ("sources", "bound", "slices"),
    [
        (1, 0.5, 1), (30, 0.1, 21), (400, 0.99, 1), (1000, 0.01, 2), (1000, 0.999, 2),
        (1001, 0.01, 2), (4000, 0.02, 1), (1_000_000, 0.05, 3), (1_000_000, 1e-5, 3),
    ],
)  # fmt: skip
def test_how_often_a_slice_breaks_a_bound_is_the_sum_of_the_binomial_chances(
    sources, bound, slices
):
    within = binom.cdf(round(bound * sources, 6) // 1, sources, bound / 2)
    expected = pytest.approx(1 - within**slices, rel=1e-6, abs=1e-9)
    assert broken_by_chance(sources, bound, slices) == expected


def test_chances_of_ordinary_policies_wait_for_no_import(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    assert 0 < broken_by_chance(1000, 0.01, 2) < 1
    with pytest.raises(ImportError):
        broken_by_chance(1001, 0.01, 2)


def test_a_limit_of_0_for_each_identity_is_said_to_be_broken_by_chance():
    """Of every contrast with neutral wording whose bounds are not corrected for their number."""
    wrong, told = [], 0
    for metric in METRICS:
        if not metric.compares_with_neutral or metric.suite_kind != "metamorphic":
            continue
        for limit, dimension in ((0, "term"), (0, "category"), (0.1, "term")):
            if metric.relation or metric.better is Better.HIGHER:
                continue
            bound = "max_abs" if metric.better is Better.TOWARD_ZERO else "max"
            gate = {"metric": metric.id, bound: limit, "evidence": "significant"}
            rules = of_each(gate, dimension)
            is_corrected = all(rule.is_of_family for rule in rules)
            lines = few_sources_notices(rules, PLAN, confidence=0.95)
            is_said = any("treated like neutral wording" in line for line in lines)
            told += is_said
            if is_said != (limit == 0 and not is_corrected):
                wrong.append((metric.id, limit, dimension, is_said))
    assert wrong == []
    assert told >= 4


def of_each(gate, dimension):
    rules = expand_rules(policy_of([{**gate, "for_each": dimension}], **SAMPLED), PLAN)
    return [rule for rule in rules if not rule.by_default]


SAMPLED = {"control": "neutral-phrases", "read": ["labels", "degrees"]}
PLAN = Bench(policy=policy_of([CONTROLLED], **SAMPLED), sources=5).given().plan
