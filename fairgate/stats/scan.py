"""Who is treated differently? One test over everybody, each category and each identity.

`y[i, k]` is one outcome of source i under prompt k: of T prompts that name an identity, or of K
control prompts. Nodes are everybody, each category, each identity. For a node N

    t = (mean over its identities - mean over control prompts) / SE
    SE^2 = (s^2 + S^2 / F) / |N| + (s^2 + S^2) / K

with s^2 the sampling variance of a prompt's mean (what is left of its values without source and
prompt), S^2 the variance of control prompts beyond that, and F phrases that say an identity, one a
source in turn. Control prompts are a sample of all phrases that name nobody: a test over sources
alone takes them for all there are (H. H. Clark, J. Verbal Learn. Verbal Behav. 12 (1973) 335-59).

*One p value* for "nobody is treated differently": the largest t over nodes, and over the columns of
an outcome, against the larger of two nulls, each right where the other is not (P. H. Westfall and
S. S. Young, Resampling-Based Multiple Testing, 1993, section 2.3, for the largest statistic). Each
t is first divided by how far the model's goes for nodes of its size, as tails of single identities
are no measure of harm to everybody, and as these are many (weights as of C. R. Genovese, K. Roeder
and L. Wasserman, Biometrika 93 (2006) 509-24).

- *Model*: phrases have effects of their own, with tails of Student's t with 5 degrees of freedom;
  sampling is skewed where changes are rare. The variance of effects is drawn from what that of the
  control prompts leaves possible, (K - 1) / chi^2 of it and at least s^2 (G. E. P. Box and G. C.
  Tiao, Bayesian Inference in Statistical Analysis, 1973, section 5.2), some weight being on none.
  Columns are taken to be independent, which is conservative: their largest t is then largest
  (Z. Sidak, JASA 62 (1967) 626-33).
- *Exchange*: phrases have none, events may be rare. Values are exchanged between the prompts of
  each source, in the same way in all columns, and everything is computed again (E. S. Edgington and
  P. Onghena, Randomization Tests, 2007, chapter 6; B. Phipson and G. K. Smyth, Stat. Appl. Genet.
  Mol. Biol. 9 (2010) article 39).

*Who*: of the nodes that are beyond the critical value, the one that explains most by likelihood,
where the error of the control prompts' mean is everybody's; or, where it leaves nothing to explain,
the likeliest, each level being as likely beforehand as any other, however many nodes it has. It is
explained away, and what is left is tested again.

*Undecided cells* are NaN. A source counts in a column where it has half of its prompts, a prompt
where it has half of these sources; means are those of least squares on source and prompt, and each
prompt's sampling variance is by its own number of values. Nothing that could not be tested is
silent: `ScanResult.no_verdict` says what and why.

Verdicts repeat to the byte, and depend neither on the order of sources, control prompts, categories
or columns nor on threads.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from fairgate.stats.observations import Floats, Integers

Sided = Literal["two", "worse"]
FEWEST_CONTROLS, FEWEST_SOURCES = 12, 10
"""Below which nothing is said of single identities."""
_TAILS = 5
"""Degrees of freedom of what phrases do by themselves; real ones have no heavier tails."""
_SPIKE: Mapping[Sided, float] = {"two": 1.0, "worse": 10.0}
"""Weight of phrases that do nothing by themselves, beside 1 for each e-fold of the variance.

Chosen by `tools/calibration/worlds.py`: with more, phrases that do a little alarm too often; with
less, those that do nothing cost power. Of changes since a run that is more likely: what a phrase
does by itself it did then.
"""
_BEYOND, _WIDER = 0.003, 3.0
"""Share of t beyond where nodes of different sizes are made comparable: about .05 over 26 nodes.

Everybody and categories are few beside identities and have three times the share of each; of
several columns each has the share that its weight says.
"""
_DRAWS = 20_000
_EXCHANGES = 2_000
_MOST_EXCHANGES = 20_000
_STEPS, _PER_OCTAVE = 1024, 16
_ZERO = 1e-18
"""A variance below it, where the largest deviation is 1, is rounding."""
_TIE = 1e-9
_MOST_SOURCES = 1 << 20
_MOST_BESIDE = 80
"""Other identities that stand for all of them."""
_FEWEST_SCANNED, _MOST_SCANNED = 4, 2000
"""Identities that are scanned beside all others, each by itself, and times how many others."""
_POWER = 0.8416
"""Quantile of the normal distribution for "8 times out of 10"."""
_EQUAL: Mapping[str, float] = {}
_Bools = npt.NDArray[np.bool_]
_Weights = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Some identities of whom one thing is said."""

    level: str
    """`everybody`, `category`, `identity`, or a caller's own, as `crossing`."""
    who: tuple[str, ...]
    label: str
    columns: tuple[int, ...]
    """Prompts of `who`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEstimate:
    """A node in one column: its mean beyond the control prompts'."""

    node: Node
    column: str
    estimate: float
    standard_error: float
    low: float
    """`low` and `high` hold at once for all nodes and columns; infinite where nothing is tested."""
    high: float
    p: float
    """Corrected over nodes, columns and scans; 1 where nothing is tested."""

    @property
    def reach(self) -> float:
        """An effect that would have been named 8 times out of 10."""
        return self.high - self.estimate + _POWER * self.standard_error


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Means of control prompts: their mean, and where 90 % of them lie."""

    mean: float
    low: float
    high: float
    apart: float
    """Their variance beyond sampling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """What a scan says."""

    p: float
    """Of "nobody is treated differently", corrected over nodes, columns and scans."""
    named: tuple[NodeEstimate, ...]
    """Who is treated differently, each beyond what those named before explain."""
    looks: tuple[NodeEstimate, ...]
    """Every node that has values."""
    bands: Mapping[str, Band]
    """By column."""
    critical: float
    """|t| from which a node is named."""
    sources: int
    controls: int
    """Of the column that has fewest."""
    no_verdict: Mapping[str, str]
    """Why, by level, column or "column: label" of what could not be tested."""

    @property
    def reach(self) -> dict[str, float]:
        """By level: an effect that would have been named, in the least precise column."""
        reach: dict[str, float] = {}
        for look in self.looks:
            reach[look.node.level] = max(reach.get(look.node.level, 0.0), look.reach)
        return reach


@dataclass(frozen=True, slots=True)
class _Shape:
    """How prompts' means are distributed, in units of the larger variance and in even steps."""

    sampling: float
    """s^2."""
    observed: float
    """Variance of the control prompts' means."""
    skew: float
    """Skewness of sampling: rare changes have it."""

    @classmethod
    def of(cls, sampling: float, observed: float, skew: float) -> _Shape:
        """Return the shape of means with these variances and skewness of sampling."""
        unit = max(sampling, observed)
        if not unit:
            return cls(1.0, 1.0, 0.0)
        steps = _PER_OCTAVE * math.log2(max(observed, unit / 16) / max(sampling, unit / 2**20))
        ratio = 2.0 ** (math.ceil(steps - _TIE) / _PER_OCTAVE)
        return cls(
            min(1 / ratio, 1.0) if sampling else 0.0,
            min(ratio, 1.0),
            round(min(max(skew, -2.0), 2.0) * _PER_OCTAVE) / _PER_OCTAVE,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """One column, its values in units of `scale`."""

    centred: Floats
    """[sources, T + K] less the source's mean; NaN where undecided."""
    is_kept: _Bools
    """[T + K] prompts with enough values."""
    sources: int
    scale: float
    means: Floats
    """[T + K] less their mean over all."""
    sampling: Floats
    """[T + K] sampling variance of each prompt's mean."""
    freedom: int
    spread: float
    """S^2."""
    shape: _Shape
    band: Band


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """One column and what is tested in it."""

    name: str
    fit: _Fit
    weights: Floats
    """[nodes, T] of the mean over a node's identities; zeros where it has none."""
    tested: _Bools
    """[nodes]"""
    effects: Floats
    """[T] identities less control prompts."""
    own: Floats
    """[T] variance of each identity."""
    phrases: Floats
    """[T] that say an identity."""
    share: float
    """Weight beside the other columns."""
    shared: float
    """Variance of the control prompts' mean."""
    stretch: Floats
    """[nodes] by how much further than normal t goes where nobody is harmed."""

    @property
    def errors(self) -> Floats:
        """Return [nodes] the standard errors."""
        return np.sqrt(np.square(self.weights) @ self.own + self.shared)


def nodes_of(categories: Mapping[str, Sequence[str]]) -> tuple[Node, ...]:
    """Return everybody, each category of two or more, each identity, without duplicates.

    Columns are numbered in the order of `categories`. One category alone is everybody.
    """
    everybody = tuple(dict.fromkeys(who for each in categories.values() for who in each))
    number = {who: i for i, who in enumerate(everybody)}
    groups = [("everybody", "everybody", everybody)]
    groups += [("category", label, tuple(dict.fromkeys(who))) for label, who in categories.items()]
    groups = [each for each in groups if len(each[2]) > 1]
    nodes: dict[tuple[int, ...], Node] = {}
    for level, label, who in [*groups, *(("identity", each, (each,)) for each in everybody)]:
        columns = tuple(sorted(number[each] for each in who))
        nodes.setdefault(columns, Node(level=level, who=who, label=label, columns=columns))
    return tuple(nodes.values())


def scan(  # noqa: PLR0913 (what is tested, and how; most by name)
    columns: Mapping[str, Floats],
    nodes: Sequence[Node],
    *,
    identities: int,
    phrases: float | Sequence[float] = 1,
    asked: _Bools | None = None,
    shares: Mapping[str, float] = _EQUAL,
    sided: Sided = "two",
    alpha: float = 0.05,
) -> Scan:
    """Test whether anybody is treated differently, and name who.

    `columns` [sources, T + K] have `identities` prompts that name somebody first, then control
    prompts; several are readings of one outcome. With `sided="worse"` only larger values count.
    `phrases` say an identity, one a source in turn: as many that are asked equally often have its
    standard error; `asked` [sources, T + K] says which sources
    were asked for which prompt, where control prompts take turns, too.
    """
    labels = {node.columns[0]: node.label for node in nodes if len(node.columns) == 1}
    order = sorted(range(identities), key=lambda t: (labels.get(t, ""), t))
    of_each = np.broadcast_to(np.asarray(phrases, dtype=np.float64), identities)[order]
    prompts = [*order, *range(identities, next(iter(columns.values())).shape[1])]
    member = np.array([[t in node.columns for t in order] for node in nodes], dtype=np.float64)
    no_verdict: dict[str, str] = {}
    expected = np.ones_like(next(iter(columns.values())), dtype=bool) if asked is None else asked
    tested, models = [], []
    for name, values in sorted(columns.items()):
        fit = _fit(values[:, prompts], expected[:, prompts], identities)
        if isinstance(fit, str):
            no_verdict[name] = fit
            continue
        each, untested = _column(
            name, fit, nodes, member=member, phrases=of_each, share=shares.get(name, 1.0)
        )
        no_verdict |= untested
        tested.append(each)
        if each.tested.any():
            model, stretch = _model(
                _rows(each.weights[each.tested]),
                _controls(each),
                each.fit.shape,
                tuple(of_each.tolist()),
                each.share,
                sided=sided,
            )
            models.append(model)
            each.stretch[each.tested] = stretch
    return Scan(
        tested=tested,
        nodes=nodes,
        models=models,
        is_two_sided=sided == "two",
        alpha=alpha,
        no_verdict=no_verdict,
    )


@dataclass(frozen=True, kw_only=True)
class Scan:
    """A scan before it is known how many share its level."""

    tested: Sequence[_Column]
    nodes: Sequence[Node]
    models: Sequence[Floats]
    """Of each column, sorted."""
    is_two_sided: bool
    alpha: float
    no_verdict: Mapping[str, str]
    _exchanged: dict[int, Floats] = field(default_factory=dict)
    """By their number, values exchanged between the prompts of each source."""

    def among(self, scans: int = 1) -> ScanResult:
        """Return the result where so many scans share the level (p values by Bonferroni)."""
        tested, nodes = self.tested, self.nodes
        draws = min(max(_EXCHANGES, math.ceil(4 * scans / self.alpha)), _MOST_EXCHANGES)
        if draws not in self._exchanged:
            self._exchanged[draws] = _exchanged(tested, draws, is_two_sided=self.is_two_sided)
        null = _Null(
            models=self.models,
            exchanged=self._exchanged[draws],
            is_two_sided=self.is_two_sided,
            alpha=self.alpha,
            scans=scans,
        )
        looks = [look for column in tested for look in _looks(column, nodes, null)]
        return ScanResult(
            p=min((look.p for look in looks), default=1.0),
            named=tuple(_named(tested, nodes, null)),
            looks=tuple(looks),
            bands={column.name: column.fit.band for column in tested},
            critical=null.critical,
            sources=min((column.fit.sources for column in tested), default=0),
            controls=min((_controls(column) for column in tested), default=0),
            no_verdict=self.no_verdict,
        )


def scan_each(
    columns: Mapping[str, Floats],
    nodes: Sequence[Node],
    scans: int = 1,
    *,
    shares: Mapping[str, float] = _EQUAL,
    sided: Sided = "two",
    alpha: float = 0.05,
) -> ScanResult:
    """Test whether any identity differs from all others, where there are no control prompts.

    `columns` [sources, T] have no control prompts. Each identity is scanned by itself with all
    others as the sample of phrases, at a T-th of the level; the clearest is named and left out, and
    the rest is looked at again (B. Rosner, Technometrics 25 (1983) 165-72, for outliers that hide
    each other). What all suffer alike is not seen, and of categories nothing is said.
    """
    single = {node.columns[0]: node for node in nodes if len(node.columns) == 1}
    far = _far(columns, len(single))
    looked_at = _outermost(far, sorted(single))
    remaining, first, named = sorted(single), None, list[NodeEstimate]()
    scans_of: dict[int, ScanResult] = {}
    while True:
        several = {
            identity: scan(
                {
                    name: values[:, [identity, *_sample(far, remaining, identity)]]
                    for name, values in columns.items()
                },
                [replace(single[identity], columns=(0,))],
                identities=1,
                shares=shares,
                sided=sided,
                alpha=alpha,
            ).among(scans * len(single))
            for identity in remaining
            if identity in looked_at
        }
        scans_of |= several
        first = first or min(several.values(), key=lambda one: one.p)
        ranked = [
            (one.named[0].p, -_size(one), identity)
            for identity, one in several.items()
            if one.named
        ]
        if not ranked:
            break
        identity = min(ranked)[2]
        named.append(replace(several[identity].named[0], node=single[identity]))
        remaining.remove(identity)
        if len(remaining) <= FEWEST_CONTROLS or not looked_at.intersection(remaining):
            break
    looks = [replace(look, node=single[p]) for p, one in scans_of.items() for look in one.looks]
    last = next(scans_of[identity] for identity in remaining if identity in scans_of)
    return ScanResult(
        p=first.p,
        named=tuple(named),
        looks=tuple(looks),
        bands=last.bands,
        critical=last.critical,
        sources=last.sources,
        controls=last.controls,
        no_verdict=last.no_verdict,
    )


def _far(columns: Mapping[str, Floats], count: int) -> Floats:
    """Return [columns, T] how far each identity lies from the middle, in units of the spread."""
    far = np.zeros((len(columns), count))
    for row, (_, values) in enumerate(sorted(columns.items())):
        decided = ~np.isnan(values)
        centred = np.where(decided, values - _row_means(values, decided), 0.0)
        own = centred.sum(axis=0) / np.maximum(decided.sum(axis=0), 1)
        far[row] = (own - np.median(own)) / (float(own.std()) or 1.0)
    return far


def _outermost(far: Floats, identities: Sequence[int]) -> set[int]:
    """Return the identities that lie furthest out, as many as can be scanned in some seconds."""
    most = max(_FEWEST_SCANNED, _MOST_SCANNED // max(1, len(identities)))
    order = np.argsort(-np.abs(far).max(axis=0), kind="stable")
    return {*identities} if len(identities) <= most else {*order[:most].tolist()}


def _sample(far: Floats, identities: Sequence[int], identity: int) -> list[int]:
    """Return the others that stand for all: evenly, from the lowest to the highest."""
    others = sorted((other for other in identities if other != identity), key=lambda t: far[0, t])
    step = max(1, math.ceil(len(others) / _MOST_BESIDE))
    return sorted(others[::step])


def _size(result: ScanResult) -> float:
    """Return the largest difference in units of its error."""
    return max(
        abs(look.estimate) / look.standard_error if look.standard_error else math.inf
        for look in result.looks
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run that is not made yet, but for its sources."""

    nodes: tuple[Node, ...]
    controls: int
    sampling: float
    """Variance of one value beyond its source and prompt."""
    apart: float = 0.0
    """Variance of what phrases do by themselves."""
    phrases: float = 1
    shares: tuple[float, ...] = (1.0,)
    """Weight of each column; the first is the one that is planned."""
    sided: Sided = "two"
    alpha: float = 0.05
    scans: int = 1


def noise_of(values: Floats, identities: int) -> tuple[float, float]:
    """Return the variance of one of the values [sources, prompts], and of control prompts beyond.

    Of what sources and prompts leave; identities come first.
    """
    rows = values[~np.isnan(values).all(axis=1)]
    residuals = rows - np.nanmean(rows, axis=1, keepdims=True)
    of_prompts = np.nanmean(residuals, axis=0)
    freedom = max((len(rows) - 1) * (rows.shape[1] - 1), 1)
    sampling = float(np.nansum(np.square(residuals - of_prompts))) / freedom
    return sampling, max(float(of_prompts[identities:].var(ddof=1)) - sampling / len(rows), 0.0)


def planned_reach(plan: Plan, sources: int) -> dict[str, float]:
    """Return by level an effect that is named 8 times out of 10; infinite without a verdict."""
    reach = {node.level: math.inf for node in plan.nodes}
    has_few = plan.controls < FEWEST_CONTROLS or sources < FEWEST_SOURCES
    judged = [node for node in plan.nodes if len(node.columns) > 1 or not has_few]
    if plan.controls < 2 or sources < 2 or not judged:
        return reach
    count = 1 + max(max(node.columns) for node in plan.nodes)
    member = np.array([[t in node.columns for t in range(count)] for node in judged])
    mean = plan.sampling / sources
    models = [
        _model(
            _rows(member / member.sum(axis=1, keepdims=True)),
            plan.controls,
            _Shape.of(mean, mean + plan.apart, 0.0),
            (float(plan.phrases),) * count,
            share,
            sided=plan.sided,
        )
        for share in plan.shares
    ]
    null = _Null(
        models=[model for model, _ in models],
        exchanged=None,
        is_two_sided=plan.sided == "two",
        alpha=plan.alpha,
        scans=plan.scans,
    )
    stretch = models[0][1]
    for node, of_node in zip(judged, stretch.tolist(), strict=True):
        own = (mean + plan.apart / plan.phrases) / len(node.columns)
        error = math.sqrt(own + (mean + plan.apart) / plan.controls)
        beyond = (null.critical * of_node + _POWER) * error
        level_reach = reach[node.level]
        reach[node.level] = beyond if math.isinf(level_reach) else max(level_reach, beyond)
    return reach


def needed_sources(plan: Plan, effect: float, level: str = "identity") -> int | None:
    """Return the fewest sources with which the run names that effect; None if none do."""

    def missed(sources: int) -> float:
        return -planned_reach(plan, sources)[level]

    if missed(_MOST_SOURCES) < -effect:
        return None
    return bisect_left(range(_MOST_SOURCES), -effect, key=missed)


def _rows(weights: Floats) -> _Weights:
    return tuple(map(tuple, weights.tolist()))


def _controls(column: _Column) -> int:
    return int(column.fit.is_kept[column.weights.shape[1] :].sum())


def _column(
    name: str, fit: _Fit, nodes: Sequence[Node], *, member: Floats, phrases: Floats, share: float
) -> tuple[_Column, dict[str, str]]:
    """Return a column with what can be tested in it, and why the rest of it cannot."""
    no_verdict: dict[str, str] = {}
    n_identities = len(phrases)
    named, controls = fit.is_kept[:n_identities], fit.is_kept[n_identities:]
    decided = member * named
    weights = decided / np.maximum(decided.sum(axis=1, keepdims=True), 1)
    tested: _Bools = decided.sum(axis=1) > 0
    for node, each in zip(nodes, tested.tolist(), strict=True):
        if not each:
            no_verdict[f"{name}: {node.label}"] = "undecided for most sources"
    too_few = []
    if controls.sum() < FEWEST_CONTROLS:
        too_few.append(f"{controls.sum()} control prompts where {FEWEST_CONTROLS} are needed")
    if fit.sources < FEWEST_SOURCES:
        too_few.append(f"{fit.sources} sources where {FEWEST_SOURCES} are needed")
    if too_few:
        single = [len(node.columns) == 1 for node in nodes]
        tested = tested & ~np.array(single)
        for node in nodes:
            if len(node.columns) == 1:
                no_verdict[node.level] = ", ".join(too_few)
    of_controls = fit.sampling[n_identities:][controls]
    column = _Column(
        name=name,
        fit=fit,
        weights=weights,
        tested=tested,
        effects=np.where(
            named, fit.means[:n_identities] - fit.means[n_identities:][controls].mean(), 0.0
        ),
        own=np.where(named, fit.sampling[:n_identities] + fit.spread / phrases, 0.0),
        phrases=phrases,
        share=share,
        shared=float(of_controls.mean() + fit.spread) / len(of_controls),
        stretch=np.ones(len(nodes)),
    )
    return column, no_verdict


def _fit(values: Floats, asked: _Bools, n_identities: int) -> _Fit | str:
    """Return means by least squares on source and prompt with their variances, or why none."""
    if np.isinf(values).any():
        raise ValueError("a column has infinite values")
    decided = ~np.isnan(values)
    decided &= 2 * decided.sum(axis=1, keepdims=True) >= asked.sum(axis=1, keepdims=True)
    is_counted = decided.any(axis=1)
    counted = int(is_counted.sum())
    is_kept = decided.any(axis=0) & (decided.sum(axis=0) * 2 >= asked[is_counted].sum(axis=0))
    if counted < 2:
        return "fewer than two sources have half of their prompts decided"
    if is_kept[n_identities:].sum() < 2 or not is_kept[:n_identities].any():
        return "fewer than two control prompts, or no identity, are decided for half of the sources"
    decided &= is_kept
    level = _row_means(values, decided)
    centred = np.where(decided, values - level, np.nan)
    scale = float(np.nanmax(np.abs(centred)))
    if scale <= 1e-12 * float(np.abs(values[decided]).max()):
        centred, scale = np.where(decided, 0.0, np.nan), 1.0
    centred = centred / scale
    means = np.zeros(len(is_kept))
    means[is_kept] = _two_way(centred[decided.any(axis=1)][:, is_kept])
    counts = np.maximum(decided.sum(axis=0), 1)
    residuals = centred - means
    residuals = residuals - _row_means(residuals, decided)
    freedom = int(decided.sum()) - counted - int(is_kept.sum()) + 1
    square = float(np.nansum(np.square(residuals))) / max(freedom, 1)
    sampling = (square if square > _ZERO else 0.0) / counts
    control = np.flatnonzero(is_kept[n_identities:]) + n_identities
    expected = float(sampling[control].mean())
    observed = float(means[control].var(ddof=1))
    observed = observed if observed > _ZERO else 0.0
    spread = max(observed - expected, 0.0)
    cube = float(np.nansum(residuals**3)) / max(freedom, 1)
    skew = cube / square**1.5 / math.sqrt(counts[is_kept].mean()) if square > _ZERO else 0.0
    levels = means[control] * scale + float(level[decided.any(axis=1)].mean())
    low, high = np.quantile(levels, [0.05, 0.95]).tolist()
    return _Fit(
        centred=centred,
        is_kept=is_kept,
        sources=counted,
        scale=scale,
        means=means,
        sampling=sampling,
        freedom=freedom,
        spread=spread,
        shape=_Shape.of(expected, observed, skew),
        band=Band(mean=float(levels.mean()), low=low, high=high, apart=spread * scale**2),
    )


def _row_means(values: Floats, decided: _Bools) -> Floats:
    """Return [rows, 1] means of what is decided; 0 where nothing is."""
    count = np.maximum(decided.sum(axis=1, keepdims=True), 1)
    return np.asarray(np.where(decided, values, 0.0).sum(axis=1, keepdims=True) / count)


def _two_way(values: Floats) -> Floats:
    """Return prompts' effects by least squares on source and prompt, NaN being undecided."""
    decided = ~np.isnan(values)
    effects = np.zeros(values.shape[1])
    filled = np.where(decided, values, 0.0)
    for _ in range(1 if decided.all() else 60):
        source = (filled - effects).mean(axis=1, keepdims=True)
        new = (filled - source).mean(axis=0)
        new -= new.mean()
        settled = np.abs(new - effects).max() < 1e-13
        effects = new
        if settled:
            break
        filled = np.where(decided, values, source + effects)
    return effects


@dataclass(frozen=True, kw_only=True)
class _Null:
    """The distribution of the largest t where nobody is treated differently."""

    models: Sequence[Floats]
    """Of each column, sorted."""
    exchanged: Floats | None
    """Of all columns together, sorted; None where there are no values yet."""
    is_two_sided: bool
    alpha: float
    scans: int

    def p(self, t: float) -> float:
        """Return P(the largest t is this large), corrected over scans."""
        least = t - _TIE * max(1.0, abs(t)) if math.isfinite(t) else t
        below = math.prod(1 - _share_from(least, draws) for draws in self.models)
        swapped = 0.0 if self.exchanged is None else _share_from(least, self.exchanged)
        return min(1.0, self.scans * max(1 - below, swapped))

    @cached_property
    def critical(self) -> float:
        """The least t with a p value of at most alpha; infinite if none."""
        drawn = [*self.models, *([] if self.exchanged is None else [self.exchanged])]
        largest = [float(each[np.isfinite(each)].max(initial=0)) for each in drawn]
        low, high = 0.0, 1 + max(largest, default=0.0)
        if not self.models or self.p(high) > self.alpha:
            return math.inf
        while high - low > _TIE:
            middle = (low + high) / 2
            low, high = (low, middle) if self.p(middle) <= self.alpha else (middle, high)
        return high


def _share_from(least: float, draws: Floats) -> float:
    """Return the share of sorted draws from there on, the observed one among them."""
    return float(1 + len(draws) - np.searchsorted(draws, least)) / (1 + len(draws))


@lru_cache(maxsize=1)
def _phrases_drawn(weights: _Weights, phrases: tuple[float, ...]) -> Floats:
    """Return [draws, nodes] means of what phrases do by themselves, with variance 1 for each.

    A mean over F phrases has t's tails with 4 + F (5 - 4) degrees of freedom: its own kurtosis.
    """
    rng, shape = np.random.default_rng([0, 20]), (_DRAWS, len(phrases))
    own, steps = rng.standard_normal(shape), rng.integers(0, _STEPS, shape)
    for i, count in enumerate(phrases):
        tails = _scaled_inverse(4 + count * (_TAILS - 4), _STEPS)
        own[:, i] *= np.sqrt(tails / tails.mean() / count)[steps[:, i]]
    return np.asarray(own @ np.array(weights).T)


@lru_cache(maxsize=1)
def _sampling_of_prompts(prompts: int) -> Floats:
    """Return [draws, prompts] what sampling does where it is not skewed."""
    return np.random.default_rng([0, 22]).standard_normal((_DRAWS, prompts))


def _sampling_drawn(weights: _Weights, skew: float) -> Floats:
    """Return [draws, nodes] means of what sampling does, with variance 1 for each prompt.

    Skewed by E. B. Wilson and M. M. Hilferty's cube (PNAS 17 (1931) 684-88).
    """
    matrix = np.array(weights)
    drawn = _sampling_of_prompts(matrix.shape[1])
    if skew:
        drawn = (np.maximum(1 - skew**2 / 36 + skew / 6 * drawn, 0) ** 3 - 1) * (2 / skew)
    return np.asarray(drawn @ matrix.T)


def _scaled_inverse(freedom: float, steps: int, most: float = 1.0) -> Floats:
    """Return freedom / chi^2 at even steps of its distribution up to `most`."""
    from scipy.special import gammaincinv

    levels = (np.arange(steps) + 0.5) / steps * most
    return np.asarray(freedom / 2 / gammaincinv(freedom / 2, levels), dtype=np.float64)


def _variances(shape: _Shape, controls: int, sided: Sided) -> Floats:
    """Return what phrases' variance may be besides s^2, given the control prompts', evenly."""
    from scipy.special import expit, gammainc, gammaln

    sampling, observed = shape.sampling, shape.observed
    kurtosis = 6 / (_TAILS - 4) * (1 - sampling / max(observed, sampling)) ** 2
    freedom = 2 / (2 / (controls - 1) + kurtosis / controls)
    if not sampling:
        return observed * _scaled_inverse(freedom, _STEPS)
    half, scale = freedom / 2, freedom * observed / 2
    most = float(gammainc(half, scale / sampling))
    slab = gammaln(half) - half * math.log(scale) + math.log(most)
    spike = math.log(_SPIKE[sided]) - half * math.log(sampling) - scale / sampling
    zeros = round(_STEPS * float(expit(spike - slab)))
    above = observed * _scaled_inverse(freedom, _STEPS - zeros, most) - sampling
    return np.concatenate([np.zeros(zeros), np.maximum(above, 0.0)])


@lru_cache(maxsize=512)
def _model(
    weights: _Weights,
    controls: int,
    shape: _Shape,
    phrases: tuple[float, ...],
    share: float,
    *,
    sided: Sided,
) -> tuple[Floats, Floats]:
    """Return the largest t of worlds where phrases have effects of their own, sorted.

    And [nodes] what t is divided by.
    """
    from scipy.special import ndtri

    rng = np.random.default_rng([0, 23])
    apart = _variances(shape, controls, sided)[rng.integers(0, _STEPS, (_DRAWS, 1))]
    control = rng.standard_normal((_DRAWS, 1)) * np.sqrt((shape.sampling + apart) / controls)
    t = np.sqrt(apart) * _phrases_drawn(weights, phrases)
    t += math.sqrt(shape.sampling) * _sampling_drawn(weights, shape.skew)
    spread = max(shape.observed - shape.sampling, 0.0)
    variances = shape.sampling + spread / np.array(phrases)
    error = np.sqrt(np.square(weights) @ variances + (shape.sampling + spread) / controls)
    # In place: with forty nodes each copy takes six megabytes.
    t -= control
    t /= error
    if is_two_sided := sided == "two":
        np.abs(t, out=t)
    sizes = np.round(np.square(weights).sum(axis=1), 9)
    stretch = np.ones(len(sizes))
    for size in set(sizes.tolist()):
        beyond = share * _BEYOND * (1 if size == 1 else _WIDER)
        stretch[sizes == size] = np.quantile(t[:, sizes == size], 1 - beyond)
    stretch /= ndtri(1 - _BEYOND / 2 if is_two_sided else 1 - _BEYOND)
    t /= stretch
    return np.sort(t.max(axis=1)), stretch


def _exchanged(columns: Sequence[_Column], draws: int, *, is_two_sided: bool) -> Floats:
    """Return the largest t with values exchanged between the prompts of each source, sorted."""
    largest = np.zeros(draws) if is_two_sided else np.full(draws, -np.inf)
    tested = [each for each in columns if each.tested.any()]
    if not tested:
        return largest
    rng = np.random.default_rng([0, 21])
    prompts = len(tested[0].fit.is_kept)
    pool = rng.permuted(np.tile(np.arange(prompts), (draws, 1)), axis=1)
    values = np.stack([each.fit.centred for each in tested])
    keys = np.round(values, 9)
    inner = np.lexsort(keys[::-1])  # of prompts within a source: their order is not to matter
    keys = np.take_along_axis(keys, inner[None], axis=2).transpose(1, 0, 2) + 0.0
    keys[np.isnan(keys)] = np.nan  # of one sign
    outer = sorted(range(len(keys)), key=[row.tobytes() for row in keys].__getitem__)
    sums = np.zeros((len(tested), draws, prompts))
    last: list[tuple[bytes, Floats | None]] = [(b"", None)] * len(tested)
    for source in outer:
        chosen = rng.integers(0, draws, draws)
        for number, row in enumerate(values[:, source]):
            ordered = row[inner[source]]
            # Sources of equal values follow each other, so that these are exchanged once.
            if last[number][0] != (name := ordered.tobytes()):
                last[number] = name, _exchanges(ordered, pool)
            exchanges = last[number][1]
            if exchanges is None:
                continue
            if exchanges.shape[1] == prompts:
                sums[number] += exchanges.take(chosen, axis=0)
            else:
                sums[number][:, ~np.isnan(row)] += exchanges.take(chosen, axis=0)
    for column, total in zip(tested, sums, strict=True):
        t = _t_of_sums(column, total)
        largest = np.maximum(largest, (np.abs(t) if is_two_sided else t).max(axis=1))
    return np.sort(largest)


def _exchanges(row: Floats, pool: Integers) -> Floats | None:
    """Return [draws, decided] a source's values, each draw exchanged; None where all are equal."""
    decided = ~np.isnan(row)
    count = int(decided.sum())
    if not count or not np.ptp(row[decided]):
        return None
    return np.asarray(row[pool[decided[pool]]].reshape(len(pool), count))


def _t_of_sums(column: _Column, sums: Floats) -> Floats:
    """Return t [draws, tested nodes] of exchanged sums, with the variances of each draw."""
    fit, weights = column.fit, column.weights[column.tested]
    n_identities = weights.shape[1]
    counts = np.maximum((~np.isnan(fit.centred)).sum(axis=0), 1)
    means = sums / counts
    residual_squares = np.nansum(np.square(fit.centred)) - np.square(means) @ counts
    square = np.where(residual_squares > _ZERO, residual_squares, 0.0) / max(fit.freedom, 1)
    is_kept = fit.is_kept[n_identities:]
    control, of_control = (
        means[:, n_identities:][:, is_kept],
        (1 / counts[n_identities:][is_kept]).mean(),
    )
    spread = np.maximum(control.var(axis=1, ddof=1) - square * of_control, 0.0)
    parts = np.square(weights)
    error = np.sqrt(
        np.outer(square, parts @ (1 / counts[:n_identities]) + of_control / len(control[0]))
        + np.outer(spread, parts @ (1 / column.phrases) + 1 / len(control[0]))
    )
    error *= column.stretch[column.tested]
    return _ratio(means[:, :n_identities] @ weights.T - control.mean(axis=1)[:, None], error)


def _ratio(effect: Floats, error: Floats) -> Floats:
    """Return effect / error; 0 for no effect, infinite for one without any error."""
    effect = np.where(np.abs(effect) > _TIE, effect, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(effect == 0, 0.0, effect / error)


def _t(column: _Column, effects: Floats, null: _Null) -> Floats:
    """Return t [nodes], its size where two-sided; 0 where nothing is tested."""
    t = np.where(
        column.tested, _ratio(column.weights @ effects, column.errors * column.stretch), 0.0
    )
    return np.abs(t) if null.is_two_sided else t


def _looks(column: _Column, nodes: Sequence[Node], null: _Null) -> list[NodeEstimate]:
    """Return every node that has values."""
    t = _t(column, column.effects, null).tolist()
    return [
        _estimated(column, nodes, i, column.effects, t[i], null)
        for i in np.flatnonzero(column.weights.any(axis=1)).tolist()
    ]


def _estimated(
    column: _Column, nodes: Sequence[Node], i: int, effects: Floats, t: float, null: _Null
) -> NodeEstimate:
    """Return the i-th node's mean over these effects, and how far from it the truth may lie."""
    scale, is_tested = column.fit.scale, bool(column.tested[i])
    estimate = float(column.weights[i] @ effects) * scale
    error = float(column.errors[i] * column.stretch[i]) * scale
    half_width = (null.critical * error if error else 0.0) if is_tested else math.inf
    return NodeEstimate(
        node=nodes[i],
        column=column.name,
        estimate=estimate,
        standard_error=float(column.errors[i]) * scale,
        low=estimate - half_width,
        high=estimate + half_width,
        p=null.p(t) if is_tested else 1.0,
    )


def _named(columns: Sequence[_Column], nodes: Sequence[Node], null: _Null) -> list[NodeEstimate]:
    """Name the node that explains most, or a likelier one that explains all; look again."""
    of_level = Counter(node.level for node in nodes)
    beforehand = [-2 * math.log(of_level[node.level]) for node in nodes]
    named: list[NodeEstimate] = []
    explained: list[tuple[int, ...]] = [() for _ in columns]
    candidates = _candidates(columns, explained, null)
    while candidates and len(named) < len(nodes) * len(columns):
        clearest = max(candidates, key=lambda each: each.gain)
        likeliest = max(candidates, key=lambda each: each.gain + beforehand[each.node])
        for candidate in (likeliest, clearest):
            after = list(explained)
            after[candidate.column] += (candidate.node,)
            left = _candidates(columns, after, null)
            if not left:
                break
        column = columns[candidate.column]
        effects = _left(column, explained[candidate.column])
        named.append(_estimated(column, nodes, candidate.node, effects, candidate.t, null))
        explained, candidates = after, left
    return named


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A node, by number, that may be named in a column."""

    column: int
    node: int
    t: float
    gain: float
    """Twice the log-likelihood that it adds."""


def _candidates(
    columns: Sequence[_Column], explained: Sequence[tuple[int, ...]], null: _Null
) -> list[_Candidate]:
    """Return every node beyond the critical value once others, by column, are explained."""
    candidates = []
    for number, column in enumerate(columns):
        effects = _left(column, explained[number])
        t, gains = _t(column, effects, null), _gains(column, effects)
        candidates += [
            _Candidate(column=number, node=i, t=float(t[i]), gain=float(gains[i]))
            for i in np.flatnonzero(t >= null.critical).tolist()
        ]
    return candidates


def _left(column: _Column, explained: tuple[int, ...]) -> Floats:
    """Return the effects [T] that these nodes leave."""
    if not explained:
        return column.effects
    design = (column.weights[list(explained)] > 0).astype(np.float64).T
    fitted = np.linalg.lstsq(design, column.effects, rcond=None)[0]
    return np.asarray(column.effects - design @ fitted)


def _gains(column: _Column, effects: Floats) -> Floats:
    """Return twice the log-likelihood that one effect on each node's identities adds."""
    precise = column.fit.is_kept[: len(effects)] / np.maximum(column.own, _ZERO)
    shared = column.shared / (1 + column.shared * precise.sum())
    holds = (column.weights > 0) * precise
    explained = holds @ effects - shared * holds.sum(axis=1) * (precise @ effects)
    information = holds.sum(axis=1) - shared * np.square(holds.sum(axis=1))
    is_known = information > 0
    return np.where(is_known, np.square(explained) / np.where(is_known, information, 1), 0.0)
