"""A change against the baseline: fail, pass or inconclusive, and why in one sentence (SPEC 8)."""

from __future__ import annotations

import math

from fairgate.domain.measurements import Better
from fairgate.domain.outcomes import Change, Outcome
from fairgate.domain.wording import difference, probability, value
from fairgate.gate.bounds import Check
from fairgate.gate.references import Reference
from fairgate.metrics.metric import Metric

HALF = 0.5
"""Share of a slice that must be decided, and of a rule's cases that must be comparable."""

_WITH_THEM = {
    Reference.BASELINE: "accept a baseline that has them",
    Reference.ANCHOR: "pin an anchor that has them",
}


def check_change(
    change: Change, metric: Metric, asked: int, reference: Reference = Reference.BASELINE
) -> Check:
    """Fail only if significant and above the margin; pass only if a change would have shown.

    `asked` is how many cases the rule has in this run, in the baseline or not; `reference` says
    since which run the change is, and so what its limit is called.
    """
    moved = _moved(change, metric, reference)
    if change.significant and change.change > change.margin:
        return Check(
            outcome=Outcome.FAIL,
            reason=f"worse, {moved}: more than the {reference.limit} "
            f"{_size(change.margin, metric)} and more "
            f"than chance explains ({probability(change.p_corrected)})",
        )
    if change.pairs < HALF * asked:
        return Check(
            outcome=Outcome.INCONCLUSIVE,
            reason=f"only {change.pairs} of {asked} cases can be compared, the others are not in "
            f"the {reference} or were not decided in both runs; {_WITH_THEM[reference]}",
        )
    if change.upper <= change.margin or change.minimum_detectable <= change.detect:
        return Check(outcome=Outcome.PASS, reason=_accepted(change, moved, reference))
    return Check(
        outcome=Outcome.INCONCLUSIVE,
        reason=f"changed {moved}, but this suite {_blind(change, metric)}",
    )


def _accepted(change: Change, moved: str, reference: Reference) -> str:
    if change.discordant == 0:
        return "unchanged" if reference is Reference.BASELINE else "unchanged since the anchor"
    if change.upper < 0:
        return f"better, {moved}"
    return f"changed {moved}, within the {reference.limit} or chance"


def _blind(change: Change, metric: Metric) -> str:
    """Describe which changes the suite could not detect, and what would help."""
    many = "1 source" if change.sources == 1 else f"{change.sources} sources"
    seen = (
        f"could see only changes of at least {_size(change.minimum_detectable, metric)}"
        if math.isfinite(change.minimum_detectable)
        else f"is too small to see any change ({many})"
    )
    enough = f"; {change.sources_needed} sources would do" if change.sources_needed else ""
    few = ""
    if change.changed_sources < change.changed_sources_needed and change.discordant:
        few = (
            f"; {change.changed_sources} sources changed, and fewer than "
            f"{change.changed_sources_needed} can never be significant"
        )
    return f"{seen}{enough}{few}"


def _moved(change: Change, metric: Metric, reference: Reference) -> str:
    """Describe how the value itself moved, not the worsening: the sign is that of the tables."""
    ends = (change.base, change.now)
    base, now = map(abs, ends) if metric.better is Better.TOWARD_ZERO else ends
    unit = " points" if metric.is_rate else ""
    shown = difference(base, now, is_rate=metric.is_rate)
    was, is_now = (value(each, is_rate=metric.is_rate) for each in (change.base, change.now))
    turned = change.sign_changed and metric.better is Better.TOWARD_ZERO
    side = f" (and it is on the other side of 0 now, {is_now})" if turned else ""
    size = " in size" if metric.better is Better.TOWARD_ZERO else ""
    return f"by {shown}{unit}{size} against the {reference}'s {was}{side}"


def _size(number: float, metric: Metric) -> str:
    return value(number, is_rate=metric.is_rate).replace(" %", " points")
