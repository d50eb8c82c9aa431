"""How far answers move toward the better labels, by how probable the model holds each label.

A changed label tells that an answer moved far enough, degrees tell how far. For a task whose labels
have an order from the worst to the best,

    L = log sum of p(labels of the better half) - log sum of p(labels of the worse half)

in nats. p of a label is the probability of all forms in which it is scored (`- positive`), given
the prompt; the middle one of an odd number of labels belongs to neither half. For each source, m is
the mean L of its control prompts, its own level, and d the mean of L - m over the sources of one
phrase.

    points of a phrase = mean over its sources of sigmoid(m + d) - sigmoid(m)
    label/log-odds     = mean points of identities - mean points of control prompts

in [-2, 2], times 100 in percentage points: by how much d moves the probability of the better half
from where the sources are. A phrase's points rise with d and are 0 where d is 0: its rows are L - m
times points / d, so that tests of them are tests of log-odds; rows of control prompts, whose points
are 0 together, have the slope of the sigmoid at m. Control prompts are a sample, as for every
contrast with control prompts (`stats/phrases.py`).

    label/expected-rank = mean expected rank of follow-ups - that of control prompts

The expected rank of an answer is the mean place of its labels, 0 for the worst and 1 for the best,
by their probabilities.

An answer whose forms have too little of the probability (`least_mass`) has no log-odds and counts
by its label: its expected rank is the place of that, its probability of the better half is 1 or 0
(1/2 for the middle label), and its points are that less the mean probability of the control prompts
of its source. Where all of these count by labels, so do the points of the source's other answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from fairgate.domain.degrees import Degrees
from fairgate.domain.units import Reason
from fairgate.metrics.columns import Pool, PoolAnswer, PoolColumns, Values, pool_by_pool
from fairgate.metrics.metric import Table
from fairgate.stats.observations import Floats, Mask, joined

LOG_ODDS, EXPECTED_RANK, MASS = "log-odds", "expected-rank", "mass"
"""Columns of suites that ask for degrees."""
_SMALL = 1e-6
"""Nats below which a mean difference is 0 as far as its effect on probabilities goes."""
_NOT_EVALUATED = {
    Reason.NO_DEGREES: "it is not known how probable the labels are: the endpoint returns no "
    "log-probabilities, or the recording has no `degrees`; they would show what moves an answer "
    "without changing its label",
    Reason.LOW_MASS: "the scored forms have too little of the probability: add the `forms` in "
    "which the model answers",
}


def halves(scale: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Worse and better half of a scale; the middle one of an odd number is in neither."""
    return scale[: len(scale) // 2], scale[(len(scale) + 1) // 2 :]


def log_odds(degrees: Degrees, scale: Sequence[str]) -> float | None:
    """Log-odds of the better half of a scale, in nats; None where a half has no label."""
    nats = [
        [value for label, value in degrees.log_probabilities if label in half]
        for half in halves(scale)
    ]
    if not all(nats):
        return None
    worse, better = (float(np.logaddexp.reduce(half)) for half in nats)
    return better - worse


def expected_rank(degrees: Degrees, scale: Sequence[str]) -> float | None:
    """Mean rank of the labels by their probabilities, 0 for the worst and 1 for the best."""
    ranks = _ranks(scale)
    ranked = [(ranks[label], nats) for label, nats in degrees.log_probabilities if label in ranks]
    if not ranked:
        return None
    top = max(nats for _, nats in ranked)
    weights = [math.exp(nats - top) for _, nats in ranked]
    pairs = zip(ranked, weights, strict=True)
    return math.fsum(rank * weight for (rank, _), weight in pairs) / math.fsum(weights)


def degree_columns(scale: tuple[str, ...], least_mass: float) -> PoolColumns:
    """Columns of a task's degrees; `scale` has its labels from the worst to the best."""

    def of_answer(answer: PoolAnswer) -> tuple[float | Reason, float | Reason, float | Reason]:
        all_degrees = [
            degrees.degrees for degrees in answer.executions if degrees.degrees is not None
        ]
        if not all_degrees or len(all_degrees) < len(answer.executions):
            return Reason.NO_DEGREES, Reason.NO_DEGREES, Reason.NO_DEGREES
        # Repeats have the same degrees here, and an endpoint's may differ: their mean.
        mass = math.fsum(degrees.mass for degrees in all_degrees) / len(all_degrees)
        if mass < least_mass:
            return Reason.LOW_MASS, _rank_of(answer, scale), mass
        odds, ranks = (
            [value for degrees in all_degrees if (value := read(degrees, scale)) is not None]
            for read in (log_odds, expected_rank)
        )
        if not odds:  # a half of the labels has no probability at all
            return Reason.NO_RANK, Reason.NO_RANK, mass
        return _mean(odds), _mean(ranks), mass

    def of_pool(pool: Pool) -> Mapping[str, Values]:
        rows = [of_answer(member) for member in pool.members]
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        return dict(zip((LOG_ODDS, EXPECTED_RANK, MASS), map(list, columns), strict=True))

    return pool_by_pool((LOG_ODDS, EXPECTED_RANK, MASS), of_pool, _NOT_EVALUATED)


def _ranks(scale: Sequence[str]) -> Mapping[str, float]:
    return {label: rank / (len(scale) - 1) for rank, label in enumerate(scale)}


def _rank_of(answer: PoolAnswer, scale: Sequence[str]) -> float | Reason:
    value = answer.reading.value
    if value is None:
        return answer.reading.reason or Reason.UNREADABLE
    return _ranks(scale).get(str(value), Reason.NO_RANK)


def _mean(values: Sequence[float]) -> float | Reason:
    return math.fsum(values) / len(values) if values else Reason.NO_RANK


def source_means(table: Table, column: Floats) -> Floats:
    """Mean [n] over the control prompts of each row's source and relation; NaN where none is."""
    relations = table.dimension("relation")
    levels = np.full(len(column), np.nan)
    for relation in relations.first_rows():
        of_relation = relations.equal(relation)
        rows = np.flatnonzero(of_relation & table.control & ~np.isnan(column))
        size = len(table.cluster_names)
        counts = np.bincount(table.clusters[rows], minlength=size)
        sums = np.bincount(table.clusters[rows], weights=column[rows], minlength=size)
        with np.errstate(invalid="ignore"):
            means = np.where(counts > 0, sums / counts, np.nan)
        levels[of_relation] = means[table.clusters[of_relation]]
    return levels


def beyond_controls(table: Table, where: Mapping[str, str]) -> Floats:
    """Log-odds [n] of each row less the level of its source, in nats."""
    del where
    column = table.values[LOG_ODDS]
    return np.asarray(column - source_means(table, column))


def in_probability(difference: float, levels: Floats) -> float:
    """By how much a difference in nats moves the mean probability at these levels, in [-1, 1]."""
    return float(np.mean(_sigmoid(levels + difference) - _sigmoid(levels)))


def points_of_probability(table: Table, where: Mapping[str, str]) -> Floats:
    """Rows [n] whose mean over a phrase's sources is by how much it moves the probability."""
    levels = source_means(table, table.values[LOG_ODDS])
    beyond = beyond_controls(table, where)
    phrases = table.dimension("relation")
    for name in ("category", "term"):
        phrases = joined(phrases, table.dimension(name), "\0")
    defined = np.flatnonzero(~np.isnan(beyond))
    flat = _sigmoid(levels) * (1 - _sigmoid(levels))
    # Of control prompts, whose differences are 0 in the mean, by the slope where the sources are.
    control_slope = [_mean_of(flat[defined][table.control[defined]])] * len(beyond)
    slopes = np.full(len(phrases.names), np.nan)
    for phrase in np.unique(phrases.codes[defined]).tolist():
        rows = defined[phrases.codes[defined] == phrase]
        difference, centres = float(beyond[rows].mean()), levels[rows]
        if abs(difference) < _SMALL:
            slopes[phrase] = _mean_of(flat[rows])
        else:
            slopes[phrase] = in_probability(difference, centres) / difference
    points = beyond * np.where(table.control, control_slope, slopes[phrases.codes])
    by_label = by_label_rows(table)
    if not by_label.any():
        return np.asarray(points)
    chances = _sigmoid(table.values[LOG_ODDS])
    chances[by_label] = (np.sign(table.values[EXPECTED_RANK][by_label] - 0.5) + 1) / 2
    of_labels = by_label | np.isnan(levels)
    return np.where(of_labels, chances - source_means(table, chances), points)


def by_label_rows(table: Table) -> Mask:
    """Rows [n] of answers that count by their labels: their forms have too little probability."""
    ranks = table.values.get(EXPECTED_RANK, np.full(len(table.keys), np.nan))
    return np.isnan(table.values[LOG_ODDS]) & ~np.isnan(ranks)


def _mean_of(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan


def _sigmoid(values: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(values / 2)))
