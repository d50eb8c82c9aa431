"""Who is selected: how often scores of each identity reach a cut-off, and ratios of these rates.

A description beside the scan's paired difference: no rule asks for it. A rate is a share of sources
(E. B. Wilson's interval); the ratio to the highest rate of its category is paired, because the same
sources are asked for both (E. C. Fieller's interval). Each interval is for itself.
"""

from __future__ import annotations

import numpy as np

from fairgate.domain.outcomes import CONFIDENCE
from fairgate.domain.parity import SelectionRate
from fairgate.gate.measure import rounded
from fairgate.gate.parity import Prompts
from fairgate.metrics.metric import Table
from fairgate.metrics.parity import SCORES
from fairgate.stats.interval import Interval, IntervalOrReason, ratio_interval, wilson
from fairgate.stats.observations import ClusterTotals, Floats


def selection_of(table: Table, cut_off: float) -> list[SelectionRate]:
    """Return the rate of each identity whose scores were read, in the order of the plan.

    `cut_off` itself is selected, and what is better. Deterministic.
    """
    column = next((name for name in SCORES if name in table.values), None)
    if column is None:
        return []
    scores = table.values[column]
    is_selected = scores >= cut_off if column == SCORES[0] else scores <= cut_off
    prompts = Prompts.of(table, {})
    values = prompts.matrix(np.where(np.isnan(scores), np.nan, is_selected))
    rates = {
        place: float(np.nanmean(values[:, place]))
        for place in range(len(prompts.persons))
        if not np.isnan(values[:, place]).all()
    }
    highest: dict[str, int] = {}
    for place in sorted(rates, key=lambda place: -rates[place]):
        highest.setdefault(prompts.persons[place][0], place)
    control = values[:, len(prompts.persons) :]
    result = []
    for place, rate in rates.items():
        person, own = prompts.persons[place], values[:, place]
        best = highest[person[0]]
        decided = own[~np.isnan(own)]
        ratio, between = _ratio(own, values[:, best])
        result.append(
            SelectionRate(
                suite=table.suite,
                person=person,
                cut_off=cut_off,
                sources=len(decided),
                rate=rounded(rate),
                interval=_ends(wilson(float(decided.sum()), len(decided), confidence=CONFIDENCE)),
                ratio=ratio,
                ratio_interval=None if place == best else between,
                highest=prompts.persons[best][1],
                control=None if np.isnan(control).all() else rounded(float(np.nanmean(control))),
            )
        )
    return result


def _ratio(own: Floats, best: Floats) -> tuple[float | None, tuple[float, float] | None]:
    """Return a rate over the highest one, of the sources that have both; None where nobody is."""
    both = ~(np.isnan(own) | np.isnan(best))
    part, whole = (
        ClusterTotals(
            sums=values[both, None],
            counts=np.ones((int(both.sum()), 1)),
            weights=np.ones(1),
            informative=int(both.sum()),
        )
        for values in (own, best)
    )
    if not whole.sums.any():
        return None, None
    ratio = rounded(part.sums.sum() / whole.sums.sum())
    return ratio, _ends(ratio_interval(part, whole, confidence=CONFIDENCE))


def _ends(interval: IntervalOrReason) -> tuple[float, float] | None:
    if not isinstance(interval, Interval):
        return None
    return rounded(max(0.0, interval.low)), rounded(interval.high)
