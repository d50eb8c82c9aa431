"""How often a gate fails although nothing changed: FairGate's rule beside the usual ones.

PYTHONPATH=tests:tools python -m calibration.false_alarms --comparisons 2000
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from calibration.tables import clopper_pearson, markdown
from calibration.worlds import (
    CATEGORY_OF_TERM,
    NOISES,
    Noise,
    Verdicts,
    as_observations,
    change_free_pair,
)
from scipy.stats import binom

from fairgate.stats.observations import pair_by_key
from fairgate.stats.permutation import holm
from fairgate.stats.regression import RegressionSettings, prepare_regression

ALPHA, MARGIN = 0.05, 0.02
GATE = "FairGate"
METHODS = (
    GATE,
    "naive +2 points",
    "McNemar, unclustered",
    "percentile bootstrap of pairs",
    "percentile bootstrap of sources",
)
_SETTINGS = RegressionSettings(margin=MARGIN, n_draws=20)
_RESAMPLES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """False alarms of one method in one world."""

    noise: str
    rules: int
    method: str
    alarms: int
    comparisons: int
    sd: float

    @property
    def limits(self) -> tuple[float, float]:
        return clopper_pearson(self.alarms, self.comparisons)


def simulate(noise: Noise, comparisons: int, seed: int) -> list[Alarms]:
    """Compare an unchanged system with itself, with one rule and with four (by category)."""
    rng = np.random.default_rng([seed, NOISES.index(noise)])
    counts: Counter[tuple[int, str]] = Counter()
    spreads = []
    for _ in range(comparisons):
        now, base = change_free_pair(rng, noise)
        spreads.append(float((now - base).mean(axis=1).std(ddof=1)))
        slices = [category == CATEGORY_OF_TERM for category in range(4)]
        for rules in ([np.ones(len(CATEGORY_OF_TERM), dtype=bool)], slices):
            parts = [(now[:, terms], base[:, terms]) for terms in rules]
            for method in METHODS:
                counts[len(rules), method] += any(_fails(method, parts, rng))
    sd = float(np.mean(spreads))
    return [
        Alarms(
            noise=noise.name,
            rules=rules,
            method=method,
            alarms=counts[rules, method],
            comparisons=comparisons,
            sd=sd,
        )
        for rules in (1, 4)
        for method in METHODS
    ]


def _fails(
    method: str, parts: Sequence[tuple[Verdicts, Verdicts]], rng: np.random.Generator
) -> list[bool]:
    large = [bool(now.mean() - base.mean() > MARGIN) for now, base in parts]
    if method == "naive +2 points":
        return large
    if method.startswith("percentile"):
        level = ALPHA / len(parts)
        excluded = [_percentile(method, now - base, level, rng) for now, base in parts]
        return [one and other for one, other in zip(large, excluded, strict=True)]
    p_values = [_p_value(method, now, base, rng) for now, base in parts]
    corrected = holm(p_values, alpha=ALPHA)
    return [one and other.rejected for one, other in zip(large, corrected, strict=True)]


def _p_value(method: str, now: Verdicts, base: Verdicts, rng: np.random.Generator) -> float:
    if method == GATE:
        pairs = pair_by_key(as_observations(now), as_observations(base))
        return prepare_regression(pairs, _SETTINGS, rng).p_value
    # McNemar's exact test: it takes the pairs of one source as independent.
    worse, better = int((now > base).sum()), int((now < base).sum())
    return float(binom.sf(worse - 1, worse + better, 0.5))


def _percentile(
    method: str, changes: npt.NDArray[np.float64], level: float, rng: np.random.Generator
) -> bool:
    units = changes.reshape(-1) if method.endswith("pairs") else changes.mean(axis=1)
    distinct, counts = np.unique(units, return_counts=True)
    drawn = rng.multinomial(len(units), counts / len(units), size=_RESAMPLES)
    return bool(np.quantile(drawn @ distinct / len(units), level) > 0)


def render(rows: Sequence[Alarms]) -> str:
    """Markdown: a line for each world and method."""
    return markdown(
        ["unchanged system", "SD of change", "method", "one rule", "four rules"],
        [
            (one.noise, f"{one.sd:.2f}", one.method, _rate(one), _rate(four))
            for one in rows
            for four in rows
            if (one.rules, four.rules) == (1, 4)
            and (one.noise, one.method) == (four.noise, four.method)
        ],
    )


def _rate(row: Alarms) -> str:
    low, high = row.limits
    return f"{row.alarms / row.comparisons:.1%} [{low:.1%}, {high:.1%}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20)
    options = parser.parse_args()
    rows = [row for noise in NOISES for row in simulate(noise, options.comparisons, options.seed)]
    print(render(rows))


if __name__ == "__main__":
    main()
