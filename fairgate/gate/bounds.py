"""Bounds judge the estimate on this fixed suite, or its likely range where the rule says so."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from statistics import NormalDist

import numpy as np

from fairgate.domain import wording
from fairgate.domain.cases import TestPlan
from fairgate.domain.outcomes import Better, IdentityFinding, Measurement, Outcome
from fairgate.domain.units import TOGETHER
from fairgate.domain.wording import probability, signed
from fairgate.gate.measure import rounded, table_with
from fairgate.gate.neutral_wording import reach_of_phrases
from fairgate.gate.rules import Rule
from fairgate.gate.sentences import judge_beside_neutral
from fairgate.metrics import shift
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.identity import (
    LOG_ODDS_DIFFERENCE,
    MAX_DIFFERENCE,
    RETRIEVAL,
    UNREADABLE,
)
from fairgate.metrics.metric import Metric, Table, observe, observed_rows
from fairgate.policy.schema import GatePolicy
from fairgate.stats.interval import (
    Interval,
    LikelyRange,
    NoInterval,
    likely_range,
    prepare_range,
    t_quantile,
    wilson,
)
from fairgate.stats.observations import Observations, cluster_totals
from fairgate.stats.permutation import Corrected

_NAMED = 3
_COMPARED = {
    MAX_DIFFERENCE.id: "",
    RETRIEVAL.id: " in the share of documents in common",
    UNREADABLE.id: " in unreadable answers",
    LOG_ODDS_DIFFERENCE.id: " in the probability of the better labels",
    shift.MOST_MOVED.id: " in answers that moved",
    shift.MOST_LOST.id: " in documents of the reference that are not found",
}
_RARE = 0.05
"""Share of texts whose losses a suite should know of."""
_PROMISED = 0.05
"""How often a fair system may break a bound by chance without a notice."""
_MOST_ASKED, _MOST_TIMES = 1_000, 10
"""Sources that somebody would write, and as many times a suite's: beyond both, nobody would."""
_FAR = 1.5
"""From which multiple of the bound on a value may be open without a notice."""
_MOST_SUMMED = 1000
"""Sources up to which a count of combinations is a float, and few enough to be summed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check of a rule."""

    name: str
    """`bound`, `regression`, `budget`, `identity` or `unreadable`."""
    outcome: Outcome
    reason: str
    is_bare: bool = False
    """Whether it fails by an estimate that chance alone could have put beyond the bound."""


ValueRange = LikelyRange | tuple[float, float] | None
"""What chance leaves open of a value, or what is possible where no interval can be made."""


class BoundKind(Enum):
    """How a value is compared with a bound: the words where it is within, and where it is not."""

    AT_MOST = "is within the limit of", "is above the limit of"
    AT_LEAST = "is within the limit of at least", "is below the limit of"
    IN_SIZE_AT_MOST = "is in size within the limit of", "is in size above the limit of"


def p_of_bounds(rule: Rule, table: Table) -> float | None:
    """Return the two-sided p value of a rule's bounds by the range that decides; None: no range."""
    metric = rule.metric
    if metric.column not in table.values or metric.column in table.not_evaluated:
        return None
    observed = observe(metric, table, rule.where)
    prepared = prepare_range(observed, is_share=is_share(metric), limits=limits_of(metric))
    if isinstance(prepared, NoInterval):
        return None
    prepared = replace(prepared, reach=reach_of_phrases(metric, table, rule.where))

    def is_beyond(likely: LikelyRange) -> bool:
        ends = rounded(likely.low), rounded(likely.high)
        places = (
            _place(kind, bound, prepared.value, ends)
            for kind, bound in asked_bounds(rule.gate, metric)
        )
        return any(never and not inside for inside, _, never in places)

    return prepared.p_value(is_beyond)


def judge_bounds(
    rule: Rule, table: Table, measured: Measurement, confidence: float
) -> tuple[Measurement, list[Check]]:
    """Judge a value by its rule's bounds; return it with the range that decides and is printed."""
    metric, evidence = rule.metric, rule.gate.evidence
    has_none = evidence == "interval" and measured.interval is None
    is_significant = evidence == "significant" and not metric.compares_terms
    span: ValueRange = None
    if metric.column in table.values and (has_none or is_significant):
        if has_none:
            observed = observe(metric, table, rule.where)
            span = attainable_values(metric, observed, confidence=confidence)
        span = span or range_in(metric, table, rule.where, confidence=confidence)
    if isinstance(span, LikelyRange):
        measured = replace(measured, interval=(span.low, span.high))
    checks = check_bounds(rule.gate, measured, metric, span)
    if evidence == "estimate" and any(check.outcome is Outcome.FAIL for check in checks):
        span = range_in(metric, table, rule.where, confidence=confidence)
        strict = rule.gate.model_copy(update={"evidence": "significant"})
        surely = check_bounds(strict, measured, metric, span)
        checks = [
            replace(check, is_bare=check.outcome is not sure.outcome)
            for check, sure in zip(checks, surely, strict=True)
        ]
    return measured, checks


def attainable_values(
    metric: Metric, observed: Observations, *, confidence: float
) -> tuple[float, float] | None:
    """Return the possible range of a rate whose violations are too few for an interval of its own.

    A rate is at most the share of sources with a violation, and that share has Wilson's interval.
    None where it is no plain rate or nothing is decided.
    """
    if not metric.is_rate or len(metric.arms) != 1 or metric.better is Better.TOWARD_ZERO:
        return None
    totals = cluster_totals(observed)
    sums, counts = totals.sums.sum(axis=1), totals.counts.sum(axis=1)
    sums, counts = sums[counts > 0], counts[counts > 0]
    some = wilson(int(np.count_nonzero(sums > 0)), len(sums), confidence=confidence)
    others = wilson(int(np.count_nonzero(sums < counts)), len(sums), confidence=confidence)
    if not isinstance(some, Interval) or not isinstance(others, Interval):
        return None
    return 1 - others.high, some.high


def _what_would_tell(span: LikelyRange, bound: float) -> str:
    """Say how many such sources would tell, up to what somebody would write; empty: none can."""
    if span.is_of_phrases or span.value == bound:
        return ""
    needed, most = span.sources_to_tell(bound), max(_MOST_ASKED, _MOST_TIMES * span.sources)
    if needed is not None and needed <= most:
        return f"; {needed:,} sources would tell"
    return f"; this suite cannot tell: it would need more than {most:,} sources"


def limits_of(metric: Metric) -> tuple[float, float] | None:
    """Return the least and the greatest value of a metric; None where one is not finite."""
    limits = metric.least, metric.greatest
    return limits if all(map(math.isfinite, limits)) else None


def is_share(metric: Metric) -> bool:
    """Return whether a metric is made of shares of cases: their range follows from the sources."""
    rows = metric.is_rate and metric.row_limits == (0.0, 1.0)
    return rows and metric.better is not Better.TOWARD_ZERO


def range_in(
    metric: Metric, table: Table, where: Mapping[str, str], *, confidence: float
) -> LikelyRange | None:
    """Range that chance and wording leave open for a slice's value; None where nothing tells it."""
    observed = observe(metric, table, where)
    prepared = prepare_range(observed, is_share=is_share(metric), limits=limits_of(metric))
    if isinstance(prepared, NoInterval):
        return None
    likely = replace(prepared, reach=reach_of_phrases(metric, table, where)).at(confidence)
    if isinstance(likely, NoInterval):
        return None
    return replace(likely, low=rounded(likely.low), high=rounded(likely.high))


def range_of(metric: Metric, observed: Observations, *, confidence: float) -> LikelyRange | None:
    """Return the likely range of a value, rounded as printed; None where there is none."""
    likely = likely_range(
        observed, confidence=confidence, is_share=is_share(metric), limits=limits_of(metric)
    )
    if isinstance(likely, NoInterval):
        return None
    return replace(likely, low=rounded(likely.low), high=rounded(likely.high))


def check_bounds(
    gate: GatePolicy, measured: Measurement, metric: Metric, span: ValueRange = None
) -> list[Check]:
    """Return a check for each bound of the gate; one `not-evaluated` where there is no value.

    `span` is what a rule with `evidence: significant` judges by, and prints; with `evidence:
    interval` it stands in for a missing interval.
    """
    if measured.value is None:
        why = measured.note or "nothing was decided"
        return [Check(name="bound", outcome=Outcome.NOT_EVALUATED, reason=why)]
    return [
        _check(kind, bound, measured, gate.evidence, metric, span)
        for kind, bound in asked_bounds(gate, metric)
    ]


def asked_bounds(gate: GatePolicy, metric: Metric) -> list[tuple[BoundKind, float]]:
    """Return the bounds of a gate, and how a value is compared with each."""
    # What is better the nearer it is to 0 is bounded on both sides of it.
    is_signed = metric.better is Better.TOWARD_ZERO
    bounds = (
        (BoundKind.IN_SIZE_AT_MOST if is_signed else BoundKind.AT_MOST, gate.max),
        (BoundKind.AT_LEAST, gate.min),
        (BoundKind.IN_SIZE_AT_MOST, gate.max_abs),
    )
    return [(kind, bound) for kind, bound in bounds if bound is not None]


def _place(
    kind: BoundKind, bound: float, value: float, ends: tuple[float, float]
) -> tuple[bool, bool, bool]:
    """Return whether a value is within its bound, and whether all or nothing of its range is."""
    low, high = ends
    if kind is BoundKind.IN_SIZE_AT_MOST:
        never = min(abs(low), abs(high)) > bound and low * high > 0
        return abs(value) <= bound, max(abs(low), abs(high)) <= bound, never
    if kind is BoundKind.AT_MOST:
        return value <= bound, high <= bound, low > bound
    return value >= bound, low >= bound, high < bound


def _told_apart(number: float, limit: float, metric: Metric) -> tuple[str, str]:
    """Return a value and its limit as they are printed; differences of rates are in points."""
    figure, most = wording.told_apart(number, limit, is_rate=metric.is_rate)
    if not metric.is_difference:
        return figure, most
    return figure.replace(" %", " points"), most.replace(" %", " points")


def _check(
    kind: BoundKind,
    bound: float,
    measured: Measurement,
    evidence: str,
    metric: Metric,
    span: ValueRange,
) -> Check:
    value, interval = measured.value or 0.0, measured.interval
    if evidence == "significant":
        everything = -math.inf, math.inf
        interval = (span.low, span.high) if isinstance(span, LikelyRange) else everything
    inside, surely, never = _place(kind, bound, value, interval or (value, value))
    within, beyond = kind.value
    sign = -1 if kind is BoundKind.IN_SIZE_AT_MOST and value < 0 else 1
    comparison, limit = _told_apart(value, sign * bound, metric)
    if kind is BoundKind.IN_SIZE_AT_MOST:
        limit = limit.removeprefix(wording.MINUS)
    comparison = f"{comparison} {within if inside else beyond} {limit}"
    whole = f"{comparison}, and so is its whole likely range"
    open_end = f"{comparison}; the limit lies inside its likely range"
    why = measured.note or "no variation"
    no_range = f"{comparison}, but it has no likely range: {why}"
    outcome, reason = Outcome.PASS if inside else Outcome.FAIL, comparison
    if evidence == "estimate":
        reason = comparison if surely or never else open_end
    elif evidence == "significant" and inside:
        reason = comparison if surely else open_end
    elif never and interval and not inside:
        reason = whole
    elif evidence == "significant":
        outcome, reason = Outcome.INCONCLUSIVE, no_range
        if isinstance(span, LikelyRange):
            side = math.copysign(bound, value) if kind is BoundKind.IN_SIZE_AT_MOST else bound
            more = _what_would_tell(span, side)
            alone = f"but with {span.sources:,} sources chance alone can explain it"
            if span.is_of_phrases:
                alone = "but wording alone can explain it: neutral phrases lie as far apart"
            reason = f"{comparison}, {alone}{more}"
    elif inside and interval is None:
        outcome, reason = Outcome.INCONCLUSIVE, no_range
        if isinstance(span, tuple) and kind is not BoundKind.IN_SIZE_AT_MOST:
            # The range that the share of sources with a violation leaves possible.
            is_most = kind is BoundKind.AT_MOST
            possible = span[1] if is_most else span[0]
            surely = possible <= bound if is_most else possible >= bound
            no_more = "no more than " if surely and is_most else ""
            outcome = Outcome.PASS if surely else Outcome.INCONCLUSIVE
            most, _ = _told_apart(possible, bound, metric)
            reason = (
                f"{comparison}, and {no_more}{most} is possible by the number of sources ({why})"
            )
    elif inside:
        outcome = Outcome.PASS if surely else Outcome.INCONCLUSIVE
        reason = whole if surely else f"{comparison}, but its likely range reaches past the limit"
    return Check(name="bound", outcome=outcome, reason=reason)


def counts_of(finding: IdentityFinding, limit: float) -> str:
    """Return how much of a difference counts, and is allowed: `28.5 count, 35.0 are allowed`.

    What is left of the printed difference without the printed chance, unless that would stand on
    the other side of the limit.
    """
    counted, allowed = wording.told_apart(finding.excess, limit, is_rate=True)
    counted, allowed = counted.removesuffix(" %"), allowed.removesuffix(" %")
    left = round(100 * finding.value, 1) - round(100 * finding.by_chance, 1)
    if left > 0 and (round(left, 1) <= float(allowed)) == (finding.excess <= limit):
        counted = f"{left:.1f}"
    return f"{counted} count, {allowed} are allowed"


def check_identity(
    gate: GatePolicy, finding: IdentityFinding, corrected: Corrected, *, alpha: float
) -> Check:
    """Fail only where the difference is significant and by more than `max` above chance."""
    metric = BY_ID.get(finding.metric)
    if metric is not None and metric.compares_terms_with_neutral:
        outcome, reason = judge_beside_neutral(gate, finding, metric, corrected)
        return Check(name="identity", outcome=outcome, reason=reason)
    limit = gate.max or 0.0
    top, *others = finding.terms
    largest = (
        f"{top.category}/{top.term} differs from the other identities by "
        f"{signed(top.difference, is_rate=True)} points{_COMPARED[finding.metric]} "
        f"({finding.chance})"
    )
    if top.without is not None:
        largest += f" (without {top.without[0]} by {signed(top.without[1], is_rate=True)})"
    chance = probability(corrected.adjusted_p)
    more = "more sources are" if top.without is None else "more sources or more names are"
    # What wording explains is in the p value then, and is not asked for twice.
    counts = corrected.rejected and finding.bounded > limit
    if finding.excess <= limit and not counts:
        outcome = Outcome.PASS
        reason = (
            f"no identity differs from the others by more than {100 * limit:.1f} points above "
            f"chance; the most is {100 * finding.value:.1f} ({finding.chance}; {chance})"
        )
        if finding.value > limit:
            reason = f"{largest}: {counts_of(finding, limit)} ({chance})"
    elif not corrected.rejected:
        outcome = Outcome.INCONCLUSIVE
        reason = (
            f"{largest}, over {100 * limit:.1f} points more, but chance alone explains that much "
            f"({chance}); {more} needed to decide"
        )
    else:
        # Further terms that differ significantly by themselves, Holm over the terms.
        rest = [
            f"{term.category}/{term.term} {signed(term.difference, is_rate=True)}"
            for term in others
            if term.p_corrected <= alpha and abs(term.difference) > limit + finding.allowance
        ]
        also = f"; also {', '.join(rest[:_NAMED])}" if rest else ""
        outcome = Outcome.FAIL
        above = f"over {100 * limit:.1f} points more than by chance"
        if finding.knows_wording:
            above = f"over {100 * limit:.1f} points, and more than chance and wording explain"
        reason = f"{largest}: {above} ({chance}{also})"
    return Check(name="identity", outcome=outcome, reason=reason)


def few_sources_notices(
    rules: Sequence[Rule], plan: TestPlan, *, confidence: float
) -> Iterator[str]:
    """Yield a sentence for each gate whose slices have too few sources for its `max`.

    A bound on the estimate is broken by chance; one with `evidence: significant` stays open.
    """
    by_gate: dict[tuple[int, str], list[Rule]] = {}
    for rule in rules:
        if rule.where and rule.gate.max is not None and is_share(rule.metric):
            by_gate.setdefault((rule.position, rule.suite), []).append(rule)
    for of_gate in by_gate.values():
        metric, gate = of_gate[0].metric, of_gate[0].gate
        bound = gate.max or 0.0
        if not bound and metric.compares_with_neutral and gate.evidence == "significant":
            # The range of each has both ends at its confidence, and the upper one is never broken.
            often = 1 - (0.5 + confidence / 2) ** len(of_gate)
            if often > _PROMISED and not of_gate[0].is_of_family:
                yield (
                    f"{metric.id}, max 0 % for each {gate.for_each or 'slice'}: one of "
                    f"{len(of_gate)} that are treated like neutral wording is above by chance in "
                    f"up to {100 * often:.0f} % of the runs; leave room in the limit, or compare "
                    f"identities by `{MAX_DIFFERENCE.id}`, which is corrected for their number"
                )
            continue
        sources, one_each = _fewest(plan, of_gate)
        if not sources or not 0 < bound < 1:
            continue
        about = (
            f"{metric.id}, max {100 * bound:g} % for each {gate.for_each or 'slice'}: with "
            f"{sources} sources"
        )
        if gate.evidence == "significant" and one_each:
            least = smallest_failing(sources, bound, metric, confidence)
            if least is None:
                yield f"{about} no value can be distinguished from chance; ask about more sources"
            elif least > _FAR * bound:
                yield (
                    f"{about} a value above the limit and below {100 * least:.0f} % is "
                    "inconclusive: chance can explain it; ask about more sources"
                )
        elif gate.evidence == "estimate":
            often = broken_by_chance(sources, bound, len(of_gate))
            if often > _PROMISED:
                yield (
                    f"{about} chance alone breaks it in up to {100 * often:.0f} % of the runs of "
                    "a system that has half of it; set `evidence: significant`, or ask about more "
                    "sources"
                )


def few_losses_notices(
    rules: Sequence[Rule], plan: TestPlan, *, confidence: float
) -> Iterator[str]:
    """Yield a sentence for each gate whose range of a mean could not know of rare large losses.

    A range can only reach as far as what was drawn: with n sources, none of them has a loss that a
    share u of all texts has in (1 - u)^n of the suites.
    """
    ranged: dict[tuple[int, str], Rule] = {}
    for rule in rules:
        if rule.gate.evidence == "interval" and not is_share(rule.metric):
            ranged.setdefault((rule.position, rule.suite), rule)
    for rule in ranged.values():
        sources = len({unit.cluster for unit in plan.units_of(rule.suite)})
        hidden = 1 - math.pow(1 - confidence, 1 / sources) if sources else 0.0
        if not rule.metric.of_items and hidden > _RARE:
            yield (
                f"{rule.metric.id} with `evidence: interval`: with {sources} sources its range "
                f"cannot know of large losses that fewer than {100 * hidden:.0f} % of all texts "
                "have, for none of those may be among them; ask about more sources"
            )


def few_templates_notices(
    rules: Sequence[Rule], plan: TestPlan, *, confidence: float
) -> Iterator[str]:
    """Yield a sentence for each gate on a bias of question items whose templates are too few.

    What is asked about is a system without bias that guesses: of options at random.
    """
    by_gate: dict[tuple[int, str], list[Rule]] = {}
    for rule in rules:
        if rule.metric.better is Better.TOWARD_ZERO and rule.metric.of_items:
            by_gate.setdefault((rule.position, rule.suite), []).append(rule)
    for of_gate in by_gate.values():
        metric, gate = of_gate[0].metric, of_gate[0].gate
        bound = gate.max if gate.max is not None else gate.max_abs
        if bound is None or gate.report or gate.evidence == "interval":
            continue
        designs = [_guesses(rule, plan) for rule in of_gate]
        templates, error = max(designs, key=lambda design: design[1])
        if not templates or not 0 < bound < metric.greatest:
            continue
        limit = f"max_abs {100 * bound:g} % for each {gate.for_each or 'slice'}"
        about = f"{metric.id}, {limit}: with {templates} templates"
        more = "ask about more templates"
        if gate.evidence == "significant":
            reach = t_quantile(0.5 + confidence / 2, templates - 1) if templates > 1 else math.inf
            least = bound + reach * error
            if least >= metric.greatest:
                yield f"{about} no bias can be told from guessing; {more}"
            elif least > _FAR * bound:
                yield (
                    f"{about} a bias above the limit and below {100 * least:.0f} % is inconclusive "
                    f"where answers are guessed; {more}"
                )
            continue
        tails = (NormalDist().cdf(-bound / spread) if spread else 0.0 for _, spread in designs)
        often = 1 - math.prod(1 - 2 * tail for tail in tails)
        if often > _PROMISED:
            yield (
                f"{about} a system without bias that guesses breaks it in up to "
                f"{100 * often:.0f} % of its runs; set `evidence: significant`, and {more}"
            )


def _guesses(rule: Rule, plan: TestPlan) -> tuple[int, float]:
    """Return a rule's templates and the standard error of its value where answers are guessed."""
    units = plan.units_of(rule.suite)
    table = table_with(rule.suite, units, values={}, reasons={}, not_evaluated={}, bands=(0.0, 0.0))
    rows, arms = observed_rows(rule.metric, table, rule.where)
    counts = np.bincount(arms, minlength=len(rule.metric.arms))
    if not counts.all():
        return 0, 0.0
    # Of three options one is right; one is with the stereotype, one against it.
    of_row = 2 / 3 if rule.metric.row_limits[0] < 0 else 2 / 9
    parts = zip(rule.metric.arms, counts.tolist(), strict=True)
    error = math.sqrt(sum(arm.weight**2 * of_row / count for arm, count in parts))
    return len(np.unique(table.clusters[rows])), error


def _fewest(plan: TestPlan, of_gate: Sequence[Rule]) -> tuple[int, bool]:
    """Count the sources of a gate's smallest slice, and tell whether each has one case there.

    Of a slice in which sources have many cases nothing is known beforehand: how much their means
    vary decides.
    """
    suite, names = of_gate[0].suite, [name for name in of_gate[0].where if name != "band"]
    cases: dict[tuple[str, ...], Counter[str]] = {}
    for unit in plan.units:
        if unit.suite == suite and not unit.is_control and unit.dimensions.keys() >= {*names}:
            at = tuple(unit.dimensions[name] for name in names)
            cases.setdefault(at, Counter())[unit.cluster] += 1
    slices = [cases.get(tuple(rule.where[name] for name in names), Counter()) for rule in of_gate]
    return min(map(len, slices)), all(
        many == 1 for cases_of_slice in slices for many in cases_of_slice.values()
    )


def smallest_failing(sources: int, bound: float, metric: Metric, confidence: float) -> float | None:
    """Return the least share of the sources that is beyond a bound by more than chance.

    Each has one case; a second arm (neutral wording) has several, and no violation.
    """
    own = np.arange(sources)
    neutral = np.repeat(own, 2 * (len(metric.arms) - 1))

    def fails(count: int) -> bool:
        return _is_beyond(bound, own < count, own, neutral, metric, confidence)

    least = _least(fails, math.floor(bound * sources), sources)
    return None if least is None else least / sources


def _is_beyond(
    bound: float,
    violated: np.ndarray,
    clusters: np.ndarray,
    neutral: np.ndarray,
    metric: Metric,
    confidence: float,
) -> bool:
    """Return whether cases [n] of these clusters, some violated, are surely beyond a bound.

    `neutral` are the clusters of the cases of the second arm, none of which is violated.
    """
    values = np.concatenate([violated, np.zeros(len(neutral))]).astype(np.float64)
    observed = Observations(
        keys=[str(number) for number in range(len(values))],
        clusters=np.concatenate([clusters, neutral]),
        arms=np.repeat([0, 1], [len(violated), len(neutral)]),
        values=values,
        weights=tuple(arm.weight for arm in metric.arms),
        n_clusters=int(clusters.max()) + 1,
    )
    likely = range_of(metric, observed, confidence=confidence)
    return likely is not None and likely.low > bound


def _least(fails: Callable[[int], bool], above: int, most: int) -> int | None:
    """Return the least number above one, and at most another, that fails; larger ones fail too."""
    if not fails(most):
        return None
    return above + 1 + bisect_left(range(above + 1, most), x=True, key=fails)


def hidden_notices(rules: Sequence[Rule], plan: TestPlan, *, confidence: float) -> Iterator[str]:
    """Yield for each bound of hidden combinations how many pairs must hide one to be seen.

    They are spread over the sources, one each before any has two; neutral wording hides nothing.
    """
    for rule in rules:
        bound = rule.gate.max
        if not rule.metric.of_combinations or bound is None or rule.gate.report:
            continue
        of_rule = {"relation": rule.metric.relation, **rule.where}
        own = (unit for unit in plan.units_of(rule.suite) if not unit.is_control)
        two = (unit for unit in own if TOGETHER in unit.dimensions.get("category", ""))
        pairs = [unit for unit in two if of_rule.items() <= unit.dimensions.items()]
        if not pairs:
            continue
        least = _fewest_hidden([unit.cluster for unit in pairs], bound, rule, confidence)
        most = max(Counter(unit.dimensions.get("term", "") for unit in pairs).values())
        inside = f" for {', '.join(rule.where.values())}" if rule.where else ""
        about = f"{rule.metric.id}, max {100 * bound:g} %{inside}"
        if least is None:
            yield f"{about}: nothing can be seen"
            continue
        never = ", so one combination alone is never seen" if most < least else ""
        yield (
            f"{about}: {least:,} of {len(pairs):,} pairs ({100 * least / len(pairs):.1f} %) must "
            "hide something to fail, and more where answers also vary by chance; the combination "
            f"asked most often has {most:,}{never}"
        )


def _fewest_hidden(
    clusters: Sequence[str], bound: float, rule: Rule, confidence: float
) -> int | None:
    """Return how many of the pairs of these sources, spread over them, are beyond a bound."""
    of_pair = np.unique(clusters, return_inverse=True)[1]
    by_source = np.argsort(of_pair, kind="stable")
    sorted_pairs = of_pair[by_source]
    rank = np.arange(len(of_pair)) - np.searchsorted(sorted_pairs, sorted_pairs)
    order = by_source[np.argsort(rank, kind="stable")]
    neutral = np.repeat(np.arange(int(of_pair.max()) + 1), 2)

    def fails(count: int) -> bool:
        if rule.gate.evidence != "significant":
            return count > bound * len(of_pair)
        hiding = np.isin(np.arange(len(of_pair)), order[:count])
        return _is_beyond(bound, hiding, of_pair, neutral, rule.metric, confidence)

    return _least(fails, 0, len(of_pair))


def broken_by_chance(sources: int, bound: float, slices: int) -> float:
    """Return how often one of some slices breaks a bound if each truly has half of it.

    At most: slices of the same sources break it together more often than this takes them to. The
    bound lies between 0 and 1, and is neither.
    """
    most, share = math.floor(bound * sources + 1e-9), bound / 2
    if sources > _MOST_SUMMED:
        from scipy.special import bdtr

        at_most = float(bdtr(most, sources, share))
    else:
        # The import takes a quarter of a second, which a check of a small policy need not wait for.
        at_most = math.fsum(
            math.comb(sources, count) * share**count * (1 - share) ** (sources - count)
            for count in range(most + 1)
        )
    return 1.0 - min(1.0, at_most) ** slices
