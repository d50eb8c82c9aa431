"""Power and burn-in as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fairgate.engine.burn_in import BurnIn
from fairgate.engine.power import EFFECTS, RulePower
from fairgate.reports import figures
from fairgate.reports.escaping import plain


def render_power(rows: Sequence[RulePower], *, confidence: float) -> str:
    """Return what every regression rule can see, and the sources that more would take."""
    return "\n".join(_power_lines(rows, confidence))


def _power_lines(rows: Sequence[RulePower], confidence: float) -> Iterator[str]:
    if not rows:
        yield "The policy has no regression rule: nothing is compared with a baseline."
        return
    yield (
        "A change is seen when the rule fails 9 times of 10 if the true change is that large, "
        f"at {100 * confidence:g} % confidence for all rules together."
    )
    previous = None
    for row in rows:
        name = _name(row.metric, row.where)
        if name != previous:
            yield ""
            yield f"{plain(name)} in suite {plain(row.suite)}: {row.sources} sources now"
            header = "".join(f"{_change(effect, row.metric) + ' takes':>20}" for effect in EFFECTS)
            yield f"  {'SD of the change':<18}{'seen from':>14}{header}"
        previous = name
        counts = "".join(f"{_needed(row, effect):>20}" for effect in EFFECTS)
        yield f"  {f'{row.sd:.3f} {row.origin}':<18}{_sees(row):>14}{counts}"
        if row.simulated is not None:
            yield (
                f"  simulated from the observed changes: {_change(row.detect, row.metric)} is "
                f"caught in {100 * row.simulated:.0f} % of runs"
            )
    if any(effect <= row.margin for row in rows for effect in EFFECTS):
        yield ""
        yield "* would be significant, but the rule tolerates a change of that size (`margin`)"
    if any(row.origin == "burn-in" for row in rows):
        yield ""
        yield (
            "A burn-in measures the unchanged system; a change that hits sources unequally brings "
            "an SD of its own."
        )
    if any(row.origin == "assumed" for row in rows):
        yield ""
        yield (
            "Nothing is known yet about the noise of the rules with assumed SDs: measure it with "
            "`fairgate burn-in`, or compare a run with a baseline (--baseline and --run)."
        )


def _sees(row: RulePower) -> str:
    return "nothing" if row.sees is None else _change(row.sees, row.metric)


def _needed(row: RulePower, effect: float) -> str:
    count = row.needed[effect]
    mark = "*" if effect <= row.margin else " "
    return "too many " if count is None else f"{count:,} sources{mark}"


def _change(value: float, metric: str) -> str:
    return figures.signed(value, metric) + figures.points(metric)


def _name(metric: str, where: Mapping[str, str]) -> str:
    inside = ", ".join(f"{name} {value}" for name, value in where.items())
    return f"{metric} ({inside})" if inside else metric


def render_burn_in(found: BurnIn) -> str:
    """Return what the replicas of the unchanged system say about the gate and the system."""
    return "\n".join(_burn_in_lines(found))


def _burn_in_lines(found: BurnIn) -> Iterator[str]:
    yield f"{len(found.replicas)} replicas of the unchanged system:"
    for number, changes in enumerate(found.replicas):
        yield f"  {number}  {', '.join(changes) or 'as the policy has it'}"
    yield ""
    yield (
        f"The gate's own false alarms: {found.false_alarms} of {found.comparisons} comparisons "
        "(each replica against each other; they share runs, so this is a rough rate)"
    )
    yield ""
    for rule in found.rules:
        yield (
            f"  {plain(_name(rule.metric, rule.where))} in suite {plain(rule.suite)}: "
            f"{rule.lowest:.4f} to {rule.highest:.4f}, SD of the per-source change {rule.sd:.4f}, "
            f"{rule.false_alarms} of {rule.comparisons} false alarms"
        )
    yield ""
    for item in found.instability:
        yield (
            f"  labels of {plain(item.relation)} in suite {plain(item.suite)}: "
            f"{100 * item.stability:.1f} % of {item.cases} cases keep their label, entropy "
            f"{item.entropy:.3f} bits"
        )
