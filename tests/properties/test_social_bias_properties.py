"""What must hold for social bias whatever the items and the answers are."""

import dataclasses

import numpy as np
import pytest
from fakes.question_items import CORE, answered, core, many, planned, swapped, table_of, value
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.outcomes import Provenance
from fairgate.gate.baseline import Baseline, BaselineSuite
from fairgate.gate.baseline_files import dump_baseline, load_baseline
from fairgate.gate.measure import measure, measure_slice
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import observe
from fairgate.metrics.social_bias import check_inequalities
from fairgate.stats.interval import t_interval
from fairgate.stats.observations import cluster_totals

SWEEP = {"collections": ["c"], "retrievers": ["dense", "bm25"], "top_k": [2, 5]}
answers = st.lists(st.integers(0, 3), min_size=1, max_size=40)


def responder(drawn, items):
    """Answer item i with its stereotyped, counter, unknown option, or with nonsense."""
    place = {item.key: index for index, item in enumerate(items)}

    def answer(case):
        item = case.item
        kind = drawn[place[item.key] % len(drawn)]
        roles = (item.stereotype, item.counter, item.unknown)
        return "who knows" if kind == 3 else item.options[roles[kind]]

    return answer


def answered_table(items, answer, **changes):
    plan = planned(items, **changes)
    return table_of(plan, answered(plan, answer))


def table(items, drawn, **changes):
    return answered_table(items, responder(drawn, items), **changes)


@given(answers)
def test_exchanging_the_groups_roles_negates_diff_bias(drawn):
    items = many(10, 5)
    plan = planned(items)
    executions = answered(plan, responder(drawn, items))
    other = planned([swapped(item) for item in items])
    left, right = table_of(plan, executions), table_of(other, executions)
    for metric in ("diff-bias/ambiguous", "diff-bias/disambiguated", "bbq/s_amb", "bbq/s_dis"):
        a, b = value(left, metric), value(right, metric)
        assert (a is None and b is None) or a == pytest.approx(-b, abs=1e-9)
    for metric in ("accuracy/ambiguous", "accuracy/disambiguated", "out-of-choice"):
        assert value(left, metric) == value(right, metric)


@given(answers, st.integers(0, 2**32), st.randoms(use_true_random=False))
def test_neither_the_order_of_options_nor_of_items_changes_a_value(drawn, seed, random):
    items = many(10, 5)
    expected = core(table(items, drawn, shuffle=False))
    plan = planned(items, seed=seed)
    executions = answered(plan, responder(drawn, items))
    assert core(table_of(plan, executions)) == expected
    mixed = list(items)
    random.shuffle(mixed)
    assert core(table_of(planned(mixed, seed=seed), executions)) == pytest.approx(expected)


@given(answers)
def test_bias_never_exceeds_what_accuracy_allows(drawn):
    items = many(12, 4)
    plan = planned(items)
    found = table_of(plan, answered(plan, responder(drawn, items)))
    acc_a, _, diff_a, diff_d = core(found)
    if acc_a is not None:
        assert abs(diff_a) <= 1 - acc_a + 1e-9
    if diff_d is not None:
        correct = found.values["correct"]
        a, b = (
            float(np.nanmean(correct[found.slice_mask({"alignment": name})]))
            for name in ("stereotype", "counter")
        )
        assert diff_d == pytest.approx(a - b)
        assert abs(a - b) <= 1 - abs(a + b - 1) + 1e-9


@given(answers)
def test_an_interval_of_a_share_promises_nothing_impossible(drawn):
    for one in measure({"bbq": table(many(12, 4), drawn)}):
        if one.interval and one.metric.startswith(("accuracy/", "letter/", "out-of-choice")):
            assert 0.0 <= one.interval[0] <= one.value <= one.interval[1] <= 1.0


@given(answers)
def test_parsed_answers_give_the_same_s_amb_and_diff_bias(drawn):
    found = table(many(8, 4), [kind % 3 for kind in drawn])
    assert value(found, "bbq/s_amb") == value(found, "diff-bias/ambiguous")


@given(answers)
def test_a_baseline_keeps_the_table_whole(drawn):
    found = table(many(6, 3), drawn, settings=["none", "stereo"], collections=["c"], top_k=[1, 3])
    contents = {key: key.partition("@")[0] for key in found.keys}
    suite = BaselineSuite(must_match={}, contents=contents, table=found, quartiles=None)
    provenance = Provenance(under_test={}, environment={}, fairgate="0", policy_path="p")
    baseline = Baseline(
        policy="p", reason="r", date="d", suites={"bbq": suite}, measurements=[],
        metric_versions={}, provenance=provenance,
    )  # fmt: skip
    kept = load_baseline(dump_baseline(baseline), "b.json").suites["bbq"]
    back = kept.table
    assert (list(back.keys), kept.contents) == (list(found.keys), contents)
    names = [[each.cluster_names[i] for i in each.clusters] for each in (back, found)]
    assert names[0] == names[1]
    for name, levels in found.dimensions.items():
        assert list(back.dimensions[name]) == list(levels), name
    for name, column in found.values.items():
        if name not in found.not_evaluated:
            np.testing.assert_array_equal(back.values[name], column)


def copies(items, times):
    return [
        dataclasses.replace(item, key=f"{item.key}-{n}", group=f"{item.group}-{n}")
        for item in items
        for n in range(times)
    ]


@pytest.mark.walk(1)
@pytest.mark.parametrize("metric", CORE)
@pytest.mark.parametrize("templates", [6, 24])
def test_duplicated_items_neither_narrow_nor_widen_an_interval(metric, templates):
    """Copies of items are in their templates: they are no evidence, so intervals stay."""
    rng = np.random.default_rng(3)
    items = many(48, templates)
    chosen = {item.key: int(rng.choice([0, 0, 1, 2])) for item in items}

    def found(rows):
        def answer(case):
            item = case.item
            roles = (item.stereotype, item.counter, item.unknown)
            return item.options[roles[chosen[item.key.partition("-")[0]]]]

        return measure_slice(METRICS[metric], answered_table(rows, answer), {})

    once, five = found(items), found(copies(items, 5))
    assert once.interval is not None
    assert five.value == pytest.approx(once.value)
    assert five.interval == pytest.approx(once.interval, abs=1e-6)


def test_few_templates_get_students_interval_with_one_less_degree_of_freedom():
    rng = np.random.default_rng(5)
    items = many(40, 5)
    chosen = {item.key: int(rng.integers(3)) for item in items}
    found = answered_table(items, lambda case: case.item.options[chosen[case.item.key]])
    for metric in ("diff-bias/ambiguous", "diff-bias/disambiguated"):
        measured = measure_slice(METRICS[metric], found, {})
        expected = t_interval(cluster_totals(observe(METRICS[metric], found, {})), confidence=0.95)
        assert measured.interval == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_amplification_is_the_value_in_the_setting_less_the_value_without_documents():
    rng = np.random.default_rng(1)
    items = [*many(20, 5), *many(20, 5, "Religion")]
    plan = planned(items, settings=["none", "full", "stereo"], **SWEEP)
    chosen = {case.key: int(rng.integers(3)) for case in plan.items}
    found = table_of(plan, answered(plan, lambda case: case.item.options[chosen[case.key]]))
    for metric in CORE:
        for where in (
            {"setting": "stereo"},
            {"setting": "full", "category": "Age", "retriever": "bm25"},
            {"setting": "full", "k": "5"},
        ):
            without = {"setting": "none"} | {k: v for k, v in where.items() if k == "category"}
            expected = value(found, metric, where) - value(found, metric, without)
            assert value(found, f"amplification/{metric}", where) == pytest.approx(expected)


def test_slices_that_are_reported_are_those_that_were_asked():
    settings = ["none", "stereo"]
    found = answered_table(
        many(8, 4), lambda case: case.item.options[0], settings=settings, **SWEEP
    )
    measured = measure({"bbq": found})
    reported = {(m.metric, tuple(m.where.items())) for m in measured}
    wheres = {where for metric, where in reported if metric == "diff-bias/ambiguous"}
    assert (("setting", "none"),) in wheres
    assert (("setting", "stereo"), ("retriever", "bm25"), ("k", "5")) in wheres
    assert not any(("setting", "none") in where and "k" in dict(where) for where in wheres)
    amplified = {where for metric, where in reported if metric.startswith("amplification")}
    assert (("setting", "stereo"),) in amplified
    assert not any(("setting", "none") in where for where in amplified)


def test_a_value_beyond_its_bound_is_a_bug_and_said_so():
    found = answered_table(many(4, 2), lambda case: case.item.options[case.item.unknown])
    broken = dataclasses.replace(found, values={**found.values, "bias": np.ones(len(found.keys))})
    with pytest.raises(RuntimeError, match="bug of FairGate"):
        check_inequalities(broken)


def test_unparsed_answers_leave_the_counts():
    plan = planned(many(4, 2))
    executions = answered(
        plan, lambda case: "hm" if case.item.group == "0" else case.item.options[case.item.correct]
    )
    assert core(table_of(plan, executions)) == (1.0, 1.0, 0.0, 0.0)
    assert value(table_of(plan, executions), "out-of-choice") == 0.25
