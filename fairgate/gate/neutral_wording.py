"""Identities beside the neutral phrases of their suite, which are a sample of neutral wording."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fairgate.domain.outcomes import NeutralWording, PhraseFinding, Subject
from fairgate.metrics.degrees import LOG_ODDS, beyond_neutral
from fairgate.metrics.metric import CONTROL, NET, Metric, Table, observe, observed_rows
from fairgate.stats.observations import Floats, PairedObservations, joined
from fairgate.stats.phrases import (
    FEWEST_PHRASES,
    KURTOSIS_OF_DOCUMENTS,
    NeutralSpread,
    PhraseChange,
    PhraseContrast,
    PhraseTest,
    contrast,
    each_against_neutral,
    groups_against_neutral,
    neutral_spread,
    phrase_matrix,
    self_check,
)
from fairgate.stats.phrases import phrase_change as change_of_phrases

_DECIMALS = 6
SIGN = "\0"
"""Between category and term."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PhraseSample:
    """Mean values of a metric by source and phrase, of a slice's identities and neutral ones."""

    own: Floats
    """[sources, T]."""
    identities: tuple[str, ...]
    """Category and term of each."""
    neutral: Floats
    """[sources, K]."""
    phrases: tuple[str, ...]
    kurtosis: float = 0.0
    """Excess kurtosis that the phrases' means are taken to have."""

    @cached_property
    def spread(self) -> NeutralSpread:
        """How the neutral phrases lie apart."""
        return neutral_spread(self.neutral, self.kurtosis)

    @cached_property
    def tests(self) -> list[PhraseTest]:
        """Each identity against neutral wording."""
        return each_against_neutral(self.own, self.identities, self.neutral, self.kurtosis)

    @property
    def whole(self) -> PhraseContrast:
        """All identities of the slice against neutral wording."""
        return contrast(self.own, self.neutral, self.kurtosis)

    @property
    def apart(self) -> tuple[float, float]:
        """By how much phrases differ beyond their answers' noise, and its degrees of freedom."""
        square = self.spread.deviation**2 - self.spread.residual**2 / len(self.neutral)
        return max(0.0, square) ** 0.5, self.spread.degrees


def phrase_sample(metric: Metric, table: Table, where: Mapping[str, str]) -> PhraseSample | None:
    """Return a slice's identities and the neutral phrases that are decided.

    None where these are fewer than 12: how far a phrase goes by itself is not known then. None,
    too, where people's names carry identities, or nothing of the slice is decided.
    """
    if "name" in table.dimensions or "term" not in table.dimensions or not table.control.any():
        return None
    own_rows, arms = observed_rows(metric, table, where)
    is_own = np.asarray([arm.weight > 0 for arm in metric.arms])[arms]
    neutral_metric = replace(metric, arms=CONTROL)
    neutral_rows, _ = observed_rows(neutral_metric, table, where)
    values, others = observe(metric, table, where), observe(neutral_metric, table, where)
    neutral_terms = table.dimension("term").taken(neutral_rows)
    phrases = list(neutral_terms.taken(np.flatnonzero(others.decided)).first_rows())
    if len(phrases) < FEWEST_PHRASES:
        return None
    own_rows = own_rows[is_own]
    own_terms = joined(
        table.dimension("category").taken(own_rows), table.dimension("term").taken(own_rows), SIGN
    )
    decided = values.decided[is_own]
    identities = list(own_terms.taken(np.flatnonzero(decided)).first_rows())
    if not identities:
        return None
    identities, phrases = sorted(identities), sorted(phrases)
    numbers = {name: number for number, name in enumerate((*identities, *phrases))}
    codes = [
        np.asarray([numbers.get(name, -1) for name in levels.names], dtype=np.int64)[levels.codes]
        for levels in (own_terms, neutral_terms)
    ]
    phrase = np.concatenate(codes)
    cases = np.concatenate([values.values[is_own], others.values])
    sources = np.concatenate([values.clusters[is_own], others.clusters]).astype(np.int64)
    cases = np.where(phrase < 0, np.nan, cases)
    matrix = phrase_matrix(cases, sources, phrase, len(numbers))
    return PhraseSample(
        own=matrix[:, : len(identities)],
        identities=tuple(identities),
        neutral=matrix[:, len(identities) :],
        phrases=tuple(phrases),
        kurtosis=_kurtosis(metric),
    )


def phrase_change(metric: Metric, table: Table, pairs: PairedObservations) -> PhraseChange | None:
    """How identities moved beyond neutral phrases on paired cases of this run's `table`.

    None where the metric is no contrast with neutral wording, fewer than 12 neutral phrases are
    decided in both runs, or people's names carry identities.
    """
    if not metric.compares_with_neutral or not {"category", "term"} <= table.dimensions.keys():
        return None
    if "name" in table.dimensions or not len(pairs.now.keys):
        return None
    row_of = {key: row for row, key in enumerate(table.keys)}
    rows = np.asarray([row_of[key] for key in pairs.now.keys], dtype=np.int64)
    is_own = np.asarray(pairs.now.weights)[pairs.now.arms] > 0
    terms = table.dimension("term").taken(rows)
    names = joined(table.dimension("category").taken(rows), terms, SIGN)
    identities, phrases = (
        levels.taken(np.flatnonzero(arm)).first_rows()
        for levels, arm in ((names, is_own), (terms, ~is_own))
    )
    if len(phrases) < FEWEST_PHRASES or not identities:
        return None
    own_numbers, neutral_numbers = (
        {name: first + place for place, name in enumerate(sorted(group))}
        for first, group in ((0, identities), (len(identities), phrases))
    )
    codes = [
        np.asarray([numbers.get(name, -1) for name in levels.names], dtype=np.int64)[levels.codes]
        for levels, numbers in ((names, own_numbers), (terms, neutral_numbers))
    ]
    phrase, size = np.where(is_own, *codes), len(identities) + len(phrases)
    change, middle = (
        phrase_matrix(values, pairs.now.clusters.astype(np.int64), phrase, size)
        for values in (
            pairs.now.values - pairs.base.values,
            (pairs.now.values + pairs.base.values) / 2,
        )
    )
    own, neutral = np.split(change, [len(identities)], axis=1)
    own_middle, neutral_middle = np.split(middle, [len(identities)], axis=1)
    return change_of_phrases(own, neutral, (own_middle, neutral_middle), _kurtosis(metric))


def _kurtosis(metric: Metric) -> float:
    return KURTOSIS_OF_DOCUMENTS if metric.about is Subject.DOCUMENTS else 0.0


def reach_of_phrases(
    metric: Metric, table: Table, where: Mapping[str, str]
) -> Callable[[float], tuple[float, float]] | None:
    """Return how far a contrast with neutral wording may lie from its ends by wording alone.

    From the confidence of a range to both distances; of rates and exposures whose rows are compared
    with neutral wording, too. None where the metric is no such contrast, or too few neutral phrases
    tell; nothing is added where these do not differ at all.
    """
    if metric.needs_placebo:
        # Its rows are beside neutral wording by themselves, and so are those of neutral phrases.
        metric = replace(metric, arms=NET)
    elif not metric.compares_with_neutral:
        return None
    sample = phrase_sample(metric, table, where)
    if sample is None:
        return None
    whole = sample.whole
    if math.isnan(whole.error):
        return None

    def reach(confidence: float) -> tuple[float, float]:
        low, high = whole.bounds((1 - confidence) / 2)
        return whole.difference - low, high - whole.difference

    return reach


def beside_neutral_wording(
    metric: Metric, table: Table, *, alpha: float, seed: int
) -> NeutralWording | None:
    """Return each identity of a suite beside its neutral phrases, and these beside each other."""
    sample = phrase_sample(metric, table, {})
    if sample is None:
        return None
    categories = [name.partition(SIGN)[0] for name in sample.identities]
    groups = groups_against_neutral(sample.own, categories, sample.neutral, seed=seed)
    identities = sorted(sample.tests, key=lambda each: (-abs(each.contrast.difference), each.name))
    checked, nats = (
        self_check(sample.neutral, sample.phrases, sample.kurtosis),
        _nats(metric, table),
    )
    return NeutralWording(
        band=_rounded(sample.spread.band(1 - alpha)),
        level=_rounded(alpha),
        phrases=[_finding(each, alpha, nats) for each in checked],
        identities=[_finding(each, alpha, nats) for each in identities],
        groups=[
            PhraseFinding(
                category=each.name,
                term="",
                difference=_rounded(each.difference),
                p_value=_rounded(each.p_value),
                p_corrected=_rounded(each.adjusted_p),
            )
            for each in groups
        ],
    )


def _nats(metric: Metric, table: Table) -> Mapping[str, float]:
    """Return the mean log-odds of phrases beyond neutral wording, if the metric rests on them."""
    if metric.column != LOG_ODDS:
        return {}
    in_nats = replace(metric, values=beyond_neutral)
    sample = phrase_sample(in_nats, table, {})
    if sample is None:
        return {}
    checked = self_check(sample.neutral, sample.phrases, sample.kurtosis)
    return {each.name: each.contrast.difference for each in (*sample.tests, *checked)}


def _finding(test: PhraseTest, alpha: float, nats: Mapping[str, float]) -> PhraseFinding:
    bounds = test.contrast.bounds(alpha / 2)
    return PhraseFinding(
        category=test.name.rpartition(SIGN)[0],
        term=test.name.rpartition(SIGN)[2],
        difference=_rounded(test.contrast.difference),
        p_value=_rounded(test.contrast.p_value),
        p_corrected=_rounded(test.adjusted_p),
        interval=(_rounded(bounds[0]), _rounded(bounds[1])) if math.isfinite(bounds[0]) else None,
        log_odds=_rounded(nats[test.name]) if test.name in nats else None,
    )


def _rounded(value: float) -> float:
    return round(float(value), _DECIMALS) + 0.0
