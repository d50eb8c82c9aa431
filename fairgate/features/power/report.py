"""Power as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairgate.features.power.power import EFFECTS, RulePower
from fairgate.reports import figures
from fairgate.reports.escaping import plain
from fairgate.reports.figures import metric_in


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
        name = metric_in(row.metric, row.where)
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
