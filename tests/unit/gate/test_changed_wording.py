"""Changes since a baseline where phrases move answers by themselves: whose change it is."""

import numpy as np
import pytest
from calibration.phrases import World, bench, columns, compared_with, judged_change
from fakes.planted import judged_columns, policy_of

from fairgate.domain.outcomes import Outcome
from fairgate.gate.changes import prepare_rule
from fairgate.gate.measure import table_with
from fairgate.gate.rules import expand_rules
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import NET
from fairgate.metrics.retriever_robustness import PAPER_BANDS
from fairgate.stats.regression import Method

CONTROL = "neutral-phrases"
NOISY = World(normal=0.12)
ELSEWHERE = ("answer/", "label/", "shift/")
"""Of suites that read more than labels (`read`), or ask in turns."""
CONTRASTS = [
    metric.id
    for metric in METRICS
    if metric.arms == NET and metric.comparable and not metric.id.startswith(ELSEWHERE)
]


def values_of(run, world=NOISY):
    values = columns(world, CONTROL, 3, run=run)
    signs = np.where(np.arange(len(values["overlap"])) % 2, 1, -1)
    unreadable = np.roll(values["generation"], 1)
    return values | {"direction": values["generation"] * signs, "unreadable": unreadable}


@pytest.fixture(scope="module")
def plan():
    return bench(CONTROL).given().plan


def test_every_regression_beside_neutral_wording_counts_the_phrases(plan):
    """Range and p value agree at every level, and no range is narrower than with phrases fixed."""
    now = table_with(
        "s", plan.units, values=values_of(1), reasons={}, not_evaluated={}, bands=PAPER_BANDS
    )
    comparison, wrong, ranges = compared_with(plan, values_of(0)), [], 0
    for metric in CONTRASTS:
        for where in ({}, {"category": "age"}, {"term": "gay"}):
            gate = {"metric": metric, "where": where, "regression": {"margin": 0.05}}
            rule = expand_rules(policy_of([gate], control=CONTROL), plan)[0]
            prepared = prepare_rule(rule, now, comparison, 0)
            if prepared is None:  # these columns do not have it
                continue
            ranges += 1
            fixed = prepared.sentences
            if fixed is None or prepared.phrases.phrases != 20:
                wrong.append((metric, where))
                continue
            for level in (0.2, 0.05, 0.001):
                evidence, of_sentences = prepared.at_level(level), fixed.at_level(level)
                is_beyond = evidence.lower > 0.05
                agrees = is_beyond == (evidence.p_value <= level)
                is_wider = evidence.detectable >= of_sentences.detectable
                if evidence.method is Method.PHRASES and not (agrees and is_wider):
                    wrong.append((metric, where, level, evidence))
    assert wrong == []
    assert ranges >= 12


def test_what_phrases_do_by_themselves_is_no_identity_and_harm_is():
    """As with nine nouns, where the same worlds are red."""
    fair, harm = World(normal=0.06), World(normal=0.03, harm=0.4)
    assert judged_change(1, fair, CONTROL) == ()
    assert "asr/generation/net gay" in judged_change(1, harm, CONTROL)
    assert judged_change(1, fair, "neutral")


def test_sentences_that_changed_are_told_apart_from_an_identity(plan):
    gates = [
        {"metric": metric, "regression": {"margin": 0.02}, "for_each": "term"}
        for metric in ("asr/generation/net", "asr/generation")
    ]
    comparison = compared_with(plan, values_of(0))
    results = judged_columns(
        policy_of(gates, control=CONTROL, attribution="off"), plan, values_of(1), comparison,
        has_intervals=False,
    )  # fmt: skip
    beside = [rule for rule in results if rule.metric == "asr/generation/net"]
    assert all(rule.outcome is not Outcome.FAIL for rule in beside)
    assert all(rule.change.phrases == 20 for rule in beside)
    told = [rule for rule in beside if rule.change.p_of_sentences is not None]
    assert told
    for rule in told:
        assert "these very sentences changed" in rule.reasons[0]
        assert rule.change.change > rule.change.margin
    # Of its own rate, an identity's sentences did change; what neutral ones did stands beside.
    failed = [rule for rule in results if rule not in beside and rule.outcome is Outcome.FAIL]
    assert failed
    for rule in failed:
        assert rule.change.phrases == 20
        assert "beside 20 neutral phrases by" in rule.reasons[0]
        explained = "these very sentences changed" in rule.reasons[0]
        assert explained == (rule.change.beyond_neutral[1] > 0.05)
