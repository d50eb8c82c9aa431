"""Identities against a sample of neutral phrases: what one wording does by itself is no finding.

Any phrase moves some answers, whoever it names, and no two neutral phrases by the same. A test over
sources alone takes the few neutral phrases that were asked for all neutral wording, and calls the
rest of its own kind significant: the language-as-fixed-effect fallacy (H. H. Clark, J. Verbal
Learn. Verbal Behav. 12 (1973) 335-59). Here neutral phrases are a sample, too.

*Contrast.* T identities and K neutral phrases, each asked about n sources. With S^2 the variance of
the neutral phrases' means over the sources, s_res^2 that of what is left of their values without
source and phrase, and s_d^2 that of the sources' differences d,

    SE^2 = S^2 (1/T + 1/K) + max(0, s_d^2 - s_res^2 (1/T + 1/K)) / n

The first part is what another phrase would have had, chance of its answers included; the second
what the identities vary more than neutral phrases do. Degrees of freedom by F. E. Satterthwaite,
Biometrics Bulletin 2 (1946) 110-114. T = 1 is one identity; Holm's correction is the caller's.

*Documents.* A few neutral words ("musical", "swimming") find documents of their own, most find the
same. With excess kurtosis k of the phrases' means the variance of S^2 is (2 / (K - 1) + k / K) S^4
(R. G. Miller, Beyond ANOVA, 1986, section 7.1): fewer degrees of freedom, so that what such a word
does by itself is no finding either.

*Counts.* Where no two neutral phrases differ, S = 0 and nothing says how far a phrase goes. A scale
of degrees gives no verdict then. Verdicts are counted: if the identity were one more neutral
phrase, each of a source's K + 1 values would be its own as often, and the sum of n such draws has
an exact distribution.

*Change.* The same of the cases' changes between two runs: what neutral phrases change by
themselves, and how differently, counts against a change that is said to be an identity's. Where no
two of them change differently, cases that became larger and smaller are counted, on any scale; of
several identities, names are exchanged.

*Exchange.* Whether a group of identities differs from neutral wording, by exchanging all phrases'
names: exact whatever the distribution of phrases (R. A. Fisher, The Design of Experiments, 1935;
B. Phipson and G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010) article 39, where names are
drawn).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist

import numpy as np

from fairgate.stats.interval import t_quantile, t_upper_tail
from fairgate.stats.observations import Floats, Integers
from fairgate.stats.permutation import holm

FEWEST_PHRASES = 12
"""Neutral phrases below which nothing is said of a single identity."""
KURTOSIS_OF_DOCUMENTS = 2.0
"""Excess kurtosis of what phrases do to documents; 64 neutral phrases in a real index have 1.5."""
_MOST_ENUMERATED = 60_000
_DRAWS = 9_999
_TIE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseContrast:
    """Mean of some phrases less the mean of the neutral ones, over the sources that have both."""

    difference: float
    error: float
    """Standard error; 0 where nothing varies, NaN where counts decide or nothing can."""
    degrees: float
    """Of freedom, of that error."""
    p_value: float
    """Two-sided, of "no difference"; 1 where there is no verdict."""
    sources: int

    def p_above(self, limit: float) -> float:
        """P value of "the difference is at most `limit`"; 1 where there is no error."""
        if math.isnan(self.error):
            return 1.0
        if not self.error:
            return 0.0 if self.difference > limit else 1.0
        return t_upper_tail((self.difference - limit) / self.error, self.degrees)

    def bounds(self, level: float) -> tuple[float, float]:
        """Lower and upper bound of the difference, each one-sided at `level`.

        Infinite where there is no error.
        """
        if math.isnan(self.error):
            return -math.inf, math.inf
        reach = t_quantile(1 - level, self.degrees) * self.error if self.error else 0.0
        return self.difference - reach, self.difference + reach


@dataclass(frozen=True, slots=True, kw_only=True)
class NeutralSpread:
    """How neutral phrases lie around their own mean."""

    phrases: int
    deviation: float
    """S, the standard deviation of the phrases' means over the sources."""
    residual: float
    """s_res, of single values without source and phrase."""
    kurtosis: float = 0.0
    """Excess kurtosis that the phrases' means are taken to have."""

    @property
    def degrees(self) -> float:
        """Degrees of freedom of S^2: K - 1, or fewer where tails are heavy."""
        return 2 / (2 / (self.phrases - 1) + self.kurtosis / self.phrases)

    def band(self, confidence: float) -> float:
        """How far from the mean another neutral phrase lies at most, with that confidence."""
        if self.phrases < 2:
            return math.inf
        reach = t_quantile(0.5 + confidence / 2, self.degrees)
        return reach * self.deviation * math.sqrt(1 + 1 / self.phrases)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseNoise:
    """What a contrast with neutral wording varies by, apart from how many are asked."""

    apart: float
    """Standard deviation of the phrases' own effects."""
    residual: float
    """s_res, of single values without source and phrase."""
    excess: float
    """Standard deviation, over sources, of what identities vary more than neutral phrases do."""
    kurtosis: float = 0.0
    """Excess kurtosis that the phrases' effects are taken to have."""

    def least_told(
        self, *, sources: int, identities: int, phrases: int, level: float, power: float
    ) -> float:
        """Smallest difference that is told at a two-sided `level` with this power.

        By the standard error and the degrees of freedom of a contrast of so many phrases, as if the
        error were known; infinite below two sources or phrases.
        """
        if sources < 2 or phrases < 2:
            return math.inf
        share = 1 / identities + 1 / phrases
        of_phrases = (self.apart**2 + self.residual**2 / sources) * share
        excess = self.excess**2 / sources
        variance = of_phrases + excess
        if not variance:
            return 0.0
        parts = of_phrases**2 * (1 / (phrases - 1) + self.kurtosis / phrases / 2)
        degrees = variance**2 / (parts + excess**2 / (sources - 1))
        reach = t_quantile(1 - level / 2, degrees) + NormalDist().inv_cdf(power)
        return reach * math.sqrt(variance)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseChange:
    """How the contrast of identities with neutral phrases moved between two runs."""

    contrast: PhraseContrast
    """Of the changes `now - base`."""
    middle: PhraseContrast
    """Of the values halfway between the runs."""
    phrases: int
    """K, the neutral phrases that tell."""
    lasting: float
    """Part of the contrast's squared error that more sources of these phrases do not lower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseTest:
    """One phrase against neutral wording; `adjusted_p` by Holm over the phrases of its kind."""

    name: str
    contrast: PhraseContrast
    adjusted_p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTest:
    """All identities, or those of one category, against neutral wording by exchange of names."""

    name: str
    """Of the category; empty: all identities."""
    difference: float
    p_value: float
    adjusted_p: float
    """Holm over the categories; the p value itself where it is all identities."""


def phrase_matrix(values: Floats, sources: Integers, phrases: Integers, n_phrases: int) -> Floats:
    """Values [cases] as means [sources, phrases]; NaN where a source lacks a phrase.

    `sources` and `phrases` [cases] are their numbers; undecided values (NaN) are left out. Sources
    come in the order of their numbers, those without any value are left out.
    """
    decided = ~np.isnan(values)
    used, rows = np.unique(sources[decided], return_inverse=True)
    cells = rows.astype(np.int64) * n_phrases + phrases[decided]
    size = len(used) * n_phrases
    counts = np.bincount(cells, minlength=size)
    sums = np.bincount(cells, weights=values[decided], minlength=size)
    with np.errstate(invalid="ignore"):
        means = np.where(counts > 0, sums / counts, np.nan)
    return np.asarray(means, dtype=np.float64).reshape(len(used), n_phrases)


def neutral_spread(neutral: Floats, kurtosis: float = 0.0) -> NeutralSpread:
    """Spread of neutral phrases [sources, K], without what a source does to all of them."""
    beyond = neutral - _row_means(neutral)[:, None]
    means = _column_means(beyond)
    rest = beyond - means
    decided = int(np.count_nonzero(~np.isnan(rest)))
    rows = int(np.count_nonzero(~np.isnan(neutral).all(axis=1)))
    freedom = decided - rows - len(means) + 1
    square = math.fsum(np.square(rest[~np.isnan(rest)]).tolist())
    return NeutralSpread(
        phrases=len(means),
        deviation=_rounded_root(_variance(means)),
        residual=math.sqrt(square / freedom) if freedom > 0 else 0.0,
        kurtosis=kurtosis,
    )


def contrast(own: Floats, neutral: Floats, kurtosis: float = 0.0) -> PhraseContrast:
    """Identities [sources, T] against neutral phrases [sources, K]; NaN: not decided.

    `kurtosis` is the excess kurtosis that neutral phrases' means are taken to have. O(sources *
    (T + K)) where the error tells, O(sources^2) where counts do.
    """
    spread = neutral_spread(neutral, kurtosis)
    sources = _row_means(own) - _row_means(neutral)
    is_decided = ~np.isnan(sources)
    differences, n = sources[is_decided], int(is_decided.sum())
    if n == 0 or spread.phrases < 2:
        return PhraseContrast(
            difference=math.nan, error=math.nan, degrees=0.0, p_value=1.0, sources=n
        )
    difference = math.fsum(differences.tolist()) / n
    share = 1 / own.shape[1] + 1 / spread.phrases
    if not spread.deviation:
        p = _p_of_counts(own, neutral)
        return PhraseContrast(
            difference=difference, error=math.nan, degrees=0.0, p_value=p, sources=n
        )
    of_phrases = spread.deviation**2 * share
    excess = max(0.0, _variance(differences) - spread.residual**2 * share) / n
    variance = of_phrases + excess
    parts = of_phrases**2 / spread.degrees + (excess**2 / (n - 1) if excess else 0.0)
    error, degrees = math.sqrt(variance), variance**2 / parts
    if kurtosis:  # a word that moves few sources far varies over sources, too, which tells no tail
        degrees = min(degrees, spread.degrees)
    p = min(1.0, 2 * t_upper_tail(abs(difference) / error, degrees))
    return PhraseContrast(difference=difference, error=error, degrees=degrees, p_value=p, sources=n)


def phrase_noise(groups: Sequence[Floats], neutral: Floats, kurtosis: float = 0.0) -> PhraseNoise:
    """Noise of groups of identities, each [sources, T], beside neutral phrases [sources, K].

    What identities vary more is the root mean square over the groups.
    """
    spread = neutral_spread(neutral, kurtosis)
    level, excesses = _row_means(neutral), []
    for own in groups:
        differences = _row_means(own) - level
        share = 1 / own.shape[1] + 1 / spread.phrases
        decided = differences[~np.isnan(differences)]
        excesses.append(max(0.0, _variance(decided) - spread.residual**2 * share))
    square = spread.deviation**2 - spread.residual**2 / max(1, len(neutral))
    return PhraseNoise(
        apart=math.sqrt(max(0.0, square)),
        residual=spread.residual,
        excess=math.sqrt(math.fsum(excesses) / max(1, len(excesses))),
        kurtosis=kurtosis,
    )


def phrase_change(
    own: Floats, neutral: Floats, middle: tuple[Floats, Floats], kurtosis: float = 0.0
) -> PhraseChange:
    """Contrast changes of identities [sources, T] with those of neutral phrases [sources, K].

    `middle` has both of the values halfway between the runs.
    """
    of_change, spread = contrast(own, neutral, kurtosis), neutral_spread(neutral, kurtosis)
    if math.isnan(of_change.error) and of_change.sources and spread.phrases > 1:
        # Whether a case became larger or smaller is a count on every scale.
        p = _p_of_counts(np.sign(own), np.sign(neutral))
        if own.shape[1] > 1:
            _, p = _exchange(own, neutral, np.random.default_rng(0))
        of_change = replace(of_change, p_value=p)
    beyond_chance = max(0.0, spread.deviation**2 - spread.residual**2 / max(1, len(neutral)))
    share = 1 / own.shape[1] + 1 / max(1, spread.phrases)
    return PhraseChange(
        contrast=of_change,
        middle=contrast(*middle, kurtosis),
        phrases=spread.phrases,
        lasting=beyond_chance * share,
    )


def self_check(neutral: Floats, names: Sequence[str], kurtosis: float = 0.0) -> list[PhraseTest]:
    """Each neutral phrase [sources, K] in an identity's place, against the others."""
    places = np.arange(neutral.shape[1])
    contrasts = [
        contrast(neutral[:, [column]], neutral[:, places != column], kurtosis)
        for column in places.tolist()
    ]
    return _corrected(names, contrasts)


def each_against_neutral(
    own: Floats, names: Sequence[str], neutral: Floats, kurtosis: float = 0.0
) -> list[PhraseTest]:
    """Each identity [sources, T] against neutral phrases [sources, K], Holm over the identities."""
    columns = (own[:, [position]] for position in range(own.shape[1]))
    return _corrected(names, [contrast(column, neutral, kurtosis) for column in columns])


def groups_against_neutral(
    own: Floats, categories: Sequence[str], neutral: Floats, *, seed: int
) -> list[GroupTest]:
    """All identities [sources, T], then each category's, by exchange of phrases' names."""
    levels = list(dict.fromkeys(categories))
    members = [np.asarray([category == level for category in categories]) for level in levels]
    everyone = np.ones(len(categories), dtype=bool)
    tests = [
        _exchange(own[:, chosen], neutral, np.random.default_rng(seed))
        for chosen in (everyone, *members)
    ]
    of_levels = [min(1.0, p) for _, p in tests[1:]]
    adjusted = [tests[0][1], *(corrected.adjusted_p for corrected in holm(of_levels, alpha=0.05))]
    return [
        GroupTest(name=name, difference=difference, p_value=p, adjusted_p=min(1.0, whole))
        for name, (difference, p), whole in zip(["", *levels], tests, adjusted, strict=True)
    ]


def _exchange(own: Floats, neutral: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Difference of the mean phrase, and P(one as large) where all phrases are exchanged."""
    together = np.concatenate([own, neutral], axis=1)
    means = _column_means(together - _row_means(together)[:, None])
    many, size = own.shape[1], len(means)
    means = np.where(np.isnan(means), np.nanmean(means), means)
    observed = float(means[:many].mean() - means[many:].mean())
    total, rest = float(means.sum()), size - many
    if math.comb(size, many) <= _MOST_ENUMERATED:
        chosen = np.asarray(list(combinations(range(size), many)), dtype=np.int64)
        counted, drawn = 0, len(chosen)
    else:
        # The mean of the phrases in order of size, so that names and places draw alike.
        means = np.sort(means)
        chosen = rng.permuted(np.tile(np.arange(size), (_DRAWS, 1)), axis=1)[:, :many]
        counted, drawn = 1, _DRAWS + 1
    sums = means[chosen].sum(axis=1)
    apart = np.abs(sums / many - (total - sums) / rest)
    reached = int(np.count_nonzero(apart >= abs(observed) - _TIE))
    return observed, (counted + reached) / drawn


def _p_of_counts(own: Floats, neutral: Floats) -> float:
    """Two-sided p value of the identity's sum, each source's values being its own as often.

    1 where values are no verdicts (-1, 0, 1), or there are several identities or none decided.
    """
    together = np.concatenate([own, neutral], axis=1)
    decided = together[~np.isnan(together)]
    if own.shape[1] != 1 or not np.isin(decided, (-1.0, 0.0, 1.0)).all():
        return 1.0
    chances = np.ones(1)
    total, expected = 0.0, 0.0
    for row in together[~np.isnan(own[:, 0])]:
        values = row[~np.isnan(row)]
        of_source = np.bincount(values.astype(np.int64) + 1, minlength=3) / len(values)
        chances = np.convolve(chances, of_source)
        total += row[0]
        expected += float(values.mean())
    sums = np.arange(len(chances)) - (len(chances) - 1) / 2
    far = np.abs(sums - expected) >= abs(total - expected) - _TIE
    return min(1.0, math.fsum(chances[far].tolist()))


def _corrected(names: Sequence[str], contrasts: Sequence[PhraseContrast]) -> list[PhraseTest]:
    adjusted = (
        holm([difference.p_value for difference in contrasts], alpha=0.05) if contrasts else []
    )
    return [
        PhraseTest(name=name, contrast=difference, adjusted_p=min(1.0, whole.adjusted_p))
        for name, difference, whole in zip(names, contrasts, adjusted, strict=True)
    ]


def _row_means(values: Floats) -> Floats:
    return _means(values, axis=1)


def _column_means(values: Floats) -> Floats:
    return _means(values, axis=0)


def _means(values: Floats, *, axis: int) -> Floats:
    """Means along an axis without NaN; NaN where nothing is left."""
    counts = np.count_nonzero(~np.isnan(values), axis=axis)
    with np.errstate(invalid="ignore"):
        means = np.where(counts > 0, np.nansum(values, axis=axis) / counts, np.nan)
    return np.asarray(means, dtype=np.float64)


def _variance(values: Floats) -> float:
    decided = values[~np.isnan(values)]
    if len(decided) < 2:
        return 0.0
    centre = math.fsum(decided.tolist()) / len(decided)
    return math.fsum(np.square(decided - centre).tolist()) / (len(decided) - 1)


def _rounded_root(variance: float) -> float:
    """Take the root of a variance; 0 where it is dust of rounding."""
    root = math.sqrt(variance)
    return root if root > 1e-12 else 0.0
