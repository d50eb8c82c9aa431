"""What holds for every input of the estimators and tests in fairgate.stats."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from fakes.statistics import regression_evidence
from hypothesis import example, given
from hypothesis import strategies as st

from fairgate.stats.association import auc, entropy
from fairgate.stats.interval import Interval, confidence_interval, wilson
from fairgate.stats.observations import Observations, estimate, pair_by_key
from fairgate.stats.permutation import TypicalValues, holm
from fairgate.stats.regression import Worse

PROBABILITIES = st.lists(st.floats(0, 1), max_size=12)
VALUE = st.sampled_from([0.0, 1.0, math.nan])


def matrix_of(rows: int, columns: int):
    row = st.lists(VALUE, min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows)


@st.composite
def two_runs(draw):
    rows, columns = draw(st.integers(0, 14)), draw(st.integers(1, 4))
    arms = draw(st.lists(st.integers(0, 1), min_size=columns, max_size=columns))
    return tuple(observations(draw(matrix_of(rows, columns)), arms, columns) for _ in range(2))


def observations(rows, arms, columns) -> Observations:
    return Observations(
        keys=[f"{s}#{t}" for s in range(len(rows)) for t in range(columns)],
        clusters=np.repeat(np.arange(len(rows)), columns),
        arms=np.tile(np.array(arms, dtype=np.int8), len(rows)),
        values=np.array(rows, dtype=np.float64).reshape(-1),
        weights=(1.0, -1.0) if any(arms) else (1.0,),
        n_clusters=len(rows),
    )


@given(two_runs(), st.sampled_from(list(Worse)), st.sampled_from([0.05, 0.0125]))
def test_evidence_is_consistent_whatever_was_observed(runs, worse, level):
    now, base = runs
    found = regression_evidence(
        now,
        base,
        worse=worse,
        level=level,
        rng=np.random.default_rng(0),
    )
    if not found.evaluated:
        assert math.isnan(found.p_value)
        return
    assert 0 <= found.p_value <= 1
    assert found.lower <= found.worsening <= found.upper
    assert (found.lower > 0) == found.significant
    assert found.n_changed_sources <= min(found.n_sources, found.n_discordant)


@given(two_runs())
def test_exchanging_the_runs_turns_the_change(runs):
    now, base = runs
    forth = estimate(pair_by_key(now, base).difference)
    back = estimate(pair_by_key(base, now).difference)
    assert math.isnan(forth) == math.isnan(back)
    assert math.isnan(forth) or math.isclose(forth, -back, abs_tol=1e-12)


@given(PROBABILITIES, st.floats(0.001, 0.5))
@example([0.0, 0.0, 0.1199944961536997], 0.1199944961536997)
def test_corrections_say_the_same_in_three_ways(p_values, alpha):
    found = holm(p_values, alpha=alpha)
    assert [one.p_value for one in found] == p_values
    for one in found:
        assert one.rejected == (one.adjusted_p <= alpha) == (one.p_value <= one.level)
        assert one.adjusted_p >= one.p_value or math.isclose(one.adjusted_p, one.p_value)


@given(PROBABILITIES, st.randoms(use_true_random=False))
def test_corrections_do_not_depend_on_the_order(p_values, random):
    order = list(range(len(p_values)))
    random.shuffle(order)
    straight = holm(p_values, alpha=0.05)
    mixed = holm([p_values[i] for i in order], alpha=0.05)
    assert [one.adjusted_p for one in mixed] == [straight[i].adjusted_p for i in order]


@given(st.integers(0, 60), st.integers(1, 60), st.floats(0.5, 0.999))
def test_wilson_contains_the_share_and_stays_in_range(successes, trials, confidence):
    successes = min(successes, trials)
    found = wilson(successes, trials, confidence=confidence)
    assert isinstance(found, Interval)
    assert 0 <= found.low <= successes / trials <= found.high <= 1


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_ranges_of_a_rate_are_rates(violated):
    obs = observations([[1.0] * v + [0.0] * (5 - v) for v in violated], [0] * 5, 5)
    found = confidence_interval(obs, is_share=True)
    assert isinstance(found, Interval)
    assert 0 <= found.low <= estimate(obs) <= found.high <= 1


@given(st.lists(st.integers(-21, 21), min_size=1, max_size=30))
def test_bounds_widen_as_the_level_falls(steps):
    changes = np.array(steps, dtype=np.float64) / (21 * len(steps))
    shares = np.full(len(steps), 1 / len(steps))
    values = TypicalValues.of(changes, shares, rng=np.random.default_rng(0))
    for wide, narrow in pairwise(reversed([values.bounds(level) for level in (0.2, 0.05, 0.01)])):
        assert wide[0] <= narrow[0]
        assert wide[1] >= narrow[1]


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30))
def test_auc_turns_with_the_scores(cases):
    scores = np.array([float(score) for score, _ in cases])
    positive = np.array([flag for _, flag in cases])
    forth, back = auc(scores, positive), auc(-scores, positive)
    assert math.isnan(forth) == math.isnan(back)
    assert math.isnan(forth) or math.isclose(forth, 1 - back)


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=30))
def test_entropy_is_at_most_that_of_the_uniform_distribution(labels):
    assert -1e-12 <= entropy(labels) <= math.log2(len(set(labels))) + 1e-12
