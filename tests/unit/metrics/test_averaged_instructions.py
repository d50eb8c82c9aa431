"""Values of question items are the mean over instructions, as P2 has it: computed by hand."""

import numpy as np
from fakes.question_items import answered, four, planned, table_of, value

from fairgate.domain.cases import Condition
from fairgate.gate.measure import measure_slice
from fairgate.metrics import social_bias
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import observe
from fairgate.stats.interval import confidence_interval
from fairgate.stats.observations import Observations, estimate

INSTRUCTIONS = [{"id": "first", "text": "Answer."}, {"id": "second", "text": "Choose."}]
ITEMS = [
    item for group in range(4) for item in four(group, str(group), stereo=group % 2 == 0)
]  # 8 ambiguous items, 4 contexts with the stereotype, 4 against it
BY_HAND = {
    # first: all 8 stereotyped. second: 1 counter, 1 unknown, 6 unreadable.
    "diff-bias/ambiguous": (1.0, -0.5, 0.25),
    "accuracy/ambiguous": (0.0, 0.5, 0.25),
    # first: 4 of 4 right with the stereotype, 0 of 4 against it. second: all 8 right.
    "diff-bias/disambiguated": (1.0, 0.0, 0.5),
    "accuracy/disambiguated": (0.5, 1.0, 0.75),
    "out-of-choice": (0.0, 0.375, 0.1875),
    "bbq/s_amb": (1.0, -0.5, 0.25),
}
"""Metric to its value for the first instruction, for the second, and for both."""


def answers():
    ambiguous = [item.key for item in ITEMS if item.condition is Condition.AMBIGUOUS]

    def answer(asked):
        item = asked.item
        if "instruction=first" in asked.key:
            return item.options[item.stereotype]
        if item.condition is not Condition.AMBIGUOUS:
            return item.options[item.correct]
        place = ambiguous.index(item.key)
        return {0: item.options[item.counter], 1: item.options[item.unknown]}.get(place, "…")

    plan = planned(ITEMS, instructions=INSTRUCTIONS)
    return table_of(plan, answered(plan, answer))


def test_the_value_is_the_mean_of_the_instructions_and_not_that_of_all_answers():
    table = answers()
    for metric, expected in BY_HAND.items():
        of_one = [value(table, metric, {"instruction": name}) for name in ("first", "second")]
        assert (*of_one, value(table, metric)) == expected, metric
        measured = measure_slice(METRICS[metric], table, {"setting": "none"})
        assert measured.value == expected[2], metric
    pooled = table.values["bias"][np.asarray(table.dimensions["condition"]) == Condition.AMBIGUOUS]
    assert np.nanmean(pooled) == 0.7  # 7 of 10: what pooling would give


def test_an_instruction_without_a_readable_answer_leaves_no_value():
    plan = planned(ITEMS, instructions=INSTRUCTIONS)
    table = table_of(
        plan, answered(plan, lambda asked: "…" if "second" in asked.key else "Not known")
    )
    assert value(table, "diff-bias/ambiguous") is None
    assert value(table, "diff-bias/ambiguous", {"instruction": "first"}) == 0.0
    measured = measure_slice(METRICS["diff-bias/ambiguous"], table, {})
    assert measured.value is None
    assert measured.note


def test_every_metric_of_question_items_is_averaged_and_has_the_version_that_says_so():
    table = answers()
    for metric in social_bias.METRICS:
        assert (metric.averaged_over, metric.version) == ("instruction", 2), metric.id
        if metric.id.startswith(("amplification", "stereotype-share")):
            continue  # nothing was asked with documents
        each = [estimate(observe(metric, table, {"instruction": x["id"]})) for x in INSTRUCTIONS]
        np.testing.assert_allclose(
            estimate(observe(metric, table, {})), np.mean(each), err_msg=metric.id
        )


def contrast(weights, copies=1):
    """Return 12 sources with verdicts, each arm split into equal copies."""
    rng = np.random.default_rng(3)
    values = (rng.random(12) < 0.4).astype(float)
    return Observations(
        keys=[str(number) for number in range(12 * copies)],
        clusters=np.tile(np.arange(12), copies),
        arms=np.repeat(np.arange(copies), 12),
        values=np.tile(values, copies),
        weights=weights,
        n_clusters=12,
    )


def test_instructions_that_say_the_same_make_no_range_narrower():
    alone = confidence_interval(contrast((1.0,)), is_share=True)
    for copies in (2, 3):
        observed = contrast((1 / copies,) * copies, copies)
        several = confidence_interval(observed, is_share=True)
        assert several.low <= alone.low + 1e-9
        assert several.high >= alone.high - 1e-9


def test_alignment_and_instructions_are_both_averaged():
    table = answers()
    observed = observe(METRICS["diff-bias/disambiguated"], table, {})
    assert observed.weights == (0.5, 0.5, -0.5, -0.5)
    assert np.bincount(observed.arms).tolist() == [4, 4, 4, 4]
