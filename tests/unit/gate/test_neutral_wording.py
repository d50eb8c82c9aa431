"""Every rule about identities, on tables in which neutral phrases differ as much as identities do."""

import numpy as np
import pytest
from calibration.phrases import World, bench, columns, judged
from fakes.planted import COMPARED_WITH_NOTHING, judged_columns

from fairgate.domain.outcomes import Outcome
from fairgate.gate.measure import compare_identities, table_with
from fairgate.gate.neutral_wording import phrase_sample
from fairgate.metrics.catalogue import BY_ID, METRICS
from fairgate.metrics.metric import NET
from fairgate.metrics.retriever_robustness import PAPER_BANDS

NOISY = World(normal=0.12)


def table_of(control, values, sources=100):
    units = bench(control, sources).given().plan.units
    return table_with("s", units, values=values, reasons={}, not_evaluated={}, bands=PAPER_BANDS)


def finding_of(control, world, seed=1, metric="identity/max-difference"):
    table = table_of(control, columns(world, control, seed))
    found = compare_identities({"s": table}, confidence=0.95, seed=0)
    return next(one for one in found if one.metric == metric and not one.where)


def test_from_twelve_phrases_on_every_identity_stands_beside_the_band():
    few, many = (finding_of(control, NOISY) for control in ("neutral", "neutral-phrases"))
    assert (few.knows_wording, few.beside) == (False, None)
    assert many.knows_wording
    beside = many.beside
    assert [len(each) for each in (beside.phrases, beside.identities, beside.groups)] == [20, 21, 5]
    assert [one.category for one in beside.groups] == ["", "age", "gender", "orientation", "race"]
    outside = [one for one in beside.identities if abs(one.difference) > beside.band]
    assert len(outside) <= 3
    assert beside.alarms <= 4
    assert all(one.p_corrected >= one.p_value for one in beside.identities)
    # Single p values of the comparison are those against neutral wording.
    known = {(one.category, one.term): one.p_value for one in beside.identities}
    assert {(one.category, one.term): one.p_value for one in many.terms} == known


@pytest.mark.parametrize("phrases", [11, 12])
def test_fewer_than_twelve_phrases_are_no_sample(phrases):
    control = "neutral-phrases"
    values = columns(NOISY, control, 1)
    table = table_of(control, values)
    terms = table.dimension("term").where(
        lambda name: (
            name in sorted(set(np.asarray([*table.dimension("term")])[table.control]))[:phrases]
        )
    )
    undecided = {
        name: np.where(table.control & ~terms, np.nan, column) for name, column in values.items()
    }
    sample = phrase_sample(BY_ID["identity/max-difference"], table_of(control, undecided), {})
    assert (sample is None) == (phrases < 12)


READ_BESIDE = ("answer/", "label/", "shift/")
"""Of suites that read more than labels (`read`), or ask in turns."""
OF_ALL = [one for one in METRICS if one.arms == NET and one.comparable]
OF_EVERY_SUITE = [one for one in OF_ALL if not one.id.startswith(READ_BESIDE)]


def test_all_contrasts_with_neutral_wording_are_known():
    """The others are of conversations and of combinations, whose arms are rows of their own."""
    found = {one.id for one in METRICS if one.compares_with_neutral}
    assert found == {one.id for one in OF_ALL} | {"drift/net", "intersectional/hidden"}


@pytest.mark.parametrize("metric", OF_EVERY_SUITE, ids=lambda metric: metric.id)
def test_a_contrast_with_neutral_wording_counts_the_phrases(metric):
    """Every metric that takes neutral wording off: its range is at least as wide as the phrases'."""
    from fairgate.gate.bounds import range_in, range_of
    from fairgate.metrics.metric import observe

    control = "neutral-phrases"
    values = columns(NOISY, control, 2)
    values["direction"] = values["generation"] * np.where(
        np.arange(len(values["overlap"])) % 2, 1, -1
    )
    values["unreadable"] = values["generation"]
    table = table_of(control, values)
    for where in ({}, {"category": "age"}, {"term": "gay"}):
        inner = range_of(metric, observe(metric, table, where), confidence=0.95)
        outer = range_in(metric, table, where, confidence=0.95)
        assert outer.low <= inner.low <= inner.high <= outer.high, where
        assert phrase_sample(metric, table, where) is not None
        if where == {"term": "gay"} and metric.column != "direction":
            assert outer.is_of_phrases
            assert outer.sources_to_tell(0.0) is None


def test_documents_and_refusals_of_fair_worlds_are_not_red_either():
    for seed in range(3):
        assert judged(seed, World(heavy=0.06), "neutral-phrases") == ()


def test_where_no_neutral_phrase_differs_counts_decide():
    """Neutral phrases that never change an answer say nothing of phrases; 30 of 100 answers do."""
    control = "neutral-phrases"
    given = bench(control).given()
    units = given.plan.units
    harmed = np.asarray([unit.dimensions["term"] == "gay" for unit in units])
    numbers = np.cumsum(harmed) * harmed
    values = dict.fromkeys(
        ("generation", "controlled", "retrieval", "unreadable"), np.zeros(len(units))
    )
    values["overlap"] = np.ones(len(units))
    changed = ((numbers > 0) & (numbers <= 30)).astype(float)
    values |= {"generation": changed, "controlled": changed}
    failed = [
        rule.metric
        for rule in judged_columns(
            bench(control).policy, given.plan, values, COMPARED_WITH_NOTHING, has_intervals=False
        )
        if rule.outcome is Outcome.FAIL
    ]
    assert "identity/max-difference" in failed
