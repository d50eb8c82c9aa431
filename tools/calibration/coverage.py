"""How often a printed interval contains the true rate, by rate, number of sources and clustering.

    PYTHONPATH=tests:tools python -m calibration.coverage --samples 4000

Beta-binomial sources with 21 pairs each. What FairGate prints (BCa with expanded levels, joined
with Student's interval near the limit of ten sources) stands beside plain BCa, Student's t and the
interval of Wilson that ignores the clustering. Where fewer than ten sources are expected to have a
violation, the samples that do have ten are not typical of their system, and whatever is printed
for them is read with that in mind: the last column is how often a missing interval is printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from calibration.tables import markdown

from fairgate.stats.bootstrap import BootstrapSettings, bootstrap_many
from fairgate.stats.interval import Interval, IntervalOrReason, t_interval, wilson
from fairgate.stats.observations import ClusterTotals

PAIRS = 21
RATES, SOURCES, CORRELATIONS = (0.02, 0.1, 0.3), (20, 50, 100), (0.4, 0.5, 0.6)
ENOUGH = 10
PRINTED = "FairGate"

PLAIN = BootstrapSettings(expanded=False, cautious_below=0)

Method = Callable[[Sequence[ClusterTotals]], list[IntervalOrReason]]
METHODS: dict[str, Method] = {
    PRINTED: lambda samples: bootstrap_many(samples, BootstrapSettings(), seed=1),
    "BCa": lambda samples: bootstrap_many(samples, PLAIN, seed=1),
    "t": lambda samples: [t_interval(one, confidence=0.95) for one in samples],
    "Wilson, unclustered": lambda samples: [
        wilson(int(one.sums.sum()), int(one.counts.sum()), confidence=0.95) for one in samples
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """One cell of the grid.

    `with_violation` is the expected number of sources with a violation, `printed` the share of
    samples that have at least ten and so get an interval, `covered` the share of these whose
    interval contains the rate, by method, and `wrong` the share of all samples in which FairGate
    prints an interval that misses.
    """

    rate: float
    sources: int
    correlation: float
    with_violation: float
    printed: float
    covered: dict[str, float]
    wrong: float


def simulate(rate: float, sources: int, correlation: float, samples: int) -> Coverage:
    """Draw samples of sources and count the intervals that contain the rate."""
    rng = np.random.default_rng([round(rate * 100), sources, round(correlation * 10)])
    size = 1 / correlation - 1
    chances = rng.beta(rate * size, (1 - rate) * size, (samples, sources))
    violated = rng.binomial(PAIRS, chances).astype(np.float64)
    slices = [_totals(row) for row in violated]
    enough = [one for one in slices if one.informative >= ENOUGH]
    covered = {name: _share(method(enough), rate) for name, method in METHODS.items()}
    printed = len(enough) / samples
    return Coverage(
        rate=rate,
        sources=sources,
        correlation=correlation,
        with_violation=float((violated > 0).sum(axis=1).mean()),
        printed=printed,
        covered=covered,
        wrong=printed * (1 - covered[PRINTED]) if enough else 0.0,
    )


def _totals(violated: np.ndarray) -> ClusterTotals:
    some, not_all = int((violated > 0).sum()), int((violated < PAIRS).sum())
    return ClusterTotals(
        sums=violated[:, None],
        counts=np.full((len(violated), 1), float(PAIRS)),
        weights=np.ones(1),
        informative=min(some, not_all),
    )


def _share(intervals: Sequence[IntervalOrReason], rate: float) -> float:
    known = [one for one in intervals if isinstance(one, Interval)]
    return float(np.mean([one.low <= rate <= one.high for one in known])) if known else float("nan")


def grid(samples: int) -> list[Coverage]:
    """All cells of the grid."""
    return [simulate(*cell, samples) for cell in product(RATES, SOURCES, CORRELATIONS)]


def render(cells: Sequence[Coverage]) -> str:
    """Markdown: a line for each cell; coverage only where an interval is printed."""
    header = ["rate", "sources", "ICC", "sources with a violation", "interval printed", *METHODS]
    return markdown(
        [*header, "printed and wrong"],
        [
            (
                f"{cell.rate:.2f}",
                cell.sources,
                cell.correlation,
                f"{cell.with_violation:.1f}",
                f"{cell.printed:.1%}",
                *(f"{share:.1%}" if cell.printed else "" for share in cell.covered.values()),
                f"{cell.wrong:.1%}",
            )
            for cell in cells
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=4000)
    print(render(grid(parser.parse_args().samples)))


if __name__ == "__main__":
    main()
