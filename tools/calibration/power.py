"""How often a real worsening of five points is caught, by the SD of the per-source change.

    PYTHONPATH=tests:tools python -m calibration.power --simulations 4000

100 sources, 21 terms; a rule fails when the sign-flip test rejects and the estimate is above the
margin of two points. "four" is the first of four rules under Holm, the other three unchanged with
the same SD.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from calibration.tables import clopper_pearson, markdown
from calibration.worlds import SOURCES, TERMS, Draw, change_shapes
from fakes.statistics import power_of

from fairgate.stats.permutation import TypicalValues, holm, sign_flip_test
from fairgate.stats.regression import RuleDesign, minimum_detectable_effect, sources_needed

ALPHA, MARGIN, EFFECT = 0.05, 0.02, 0.05
SPREADS = (0.05, 0.08, 0.11, 0.13, 0.14, 0.155, 0.165, 0.17, 0.2, 0.25, 0.3, 0.4, 0.5)
_UNIT = 1 / (SOURCES * TERMS)
_NO_DRAWS = TypicalValues.of(np.zeros(1), np.ones(1), rng=np.random.default_rng(0), n_draws=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Share of simulated worsenings that were caught."""

    sd: float
    shape: str
    one: int
    four: int
    simulations: int


def simulate(sd: float, simulations: int, seed: int) -> list[Power]:
    """Every shape of change that has this SD."""
    found = []
    unchanged = change_shapes(sd, 0.0)["bell"]
    for shape, draw in change_shapes(sd, EFFECT).items():
        rng = np.random.default_rng([seed, round(sd * 1000), len(shape)])
        caught = [_caught(draw, unchanged, rng) for _ in range(simulations)]
        found.append(
            Power(
                sd=sd,
                shape=shape,
                one=sum(one for one, _ in caught),
                four=sum(four for _, four in caught),
                simulations=simulations,
            )
        )
    return found


def _caught(draw: Draw, unchanged: Draw, rng: np.random.Generator) -> tuple[bool, bool]:
    steps = draw(rng)
    p_value = _p_value(steps)
    if float(steps.sum() * _UNIT) <= MARGIN or p_value > ALPHA:
        return False, False
    if p_value <= ALPHA / 4:
        return True, True
    family = [p_value, *(_p_value(unchanged(rng)) for _ in range(3))]
    return True, holm(family, alpha=ALPHA)[0].rejected


def _p_value(steps: npt.NDArray[np.int64]) -> float:
    return sign_flip_test(steps * _UNIT, _NO_DRAWS, unit=_UNIT)[0]


def render(rows: Sequence[Power]) -> str:
    """Markdown: a line for each SD; a bell-shaped change, the other shapes, and the formula."""
    lines = []
    for sd in dict.fromkeys(row.sd for row in rows):
        shapes = [row for row in rows if row.sd == sd]
        bell = next(row for row in shapes if row.shape == "bell")
        others = [row for row in shapes if row.shape != "bell"]
        cells: list[object] = [f"{sd:g}"]
        for rules, level in (("one", ALPHA), ("four", ALPHA / 4)):
            design = RuleDesign(level=level, margin=MARGIN)
            low, high = clopper_pearson(getattr(bell, rules), bell.simulations)
            shares = [getattr(row, rules) / row.simulations for row in others]
            cells += [
                f"{getattr(bell, rules) / bell.simulations:.1%} [{low:.1%}, {high:.1%}]",
                f"{min(shares):.1%} … {max(shares):.1%}",
                f"{power_of(EFFECT, sd, SOURCES, design):.1%}",
                f"{minimum_detectable_effect(sd, SOURCES, design):.3f}",
                sources_needed(EFFECT, sd, design),
            ]
        lines.append(tuple(cells))
    columns = ["bell", "other shapes", "formula", "detectable", "sources for +5"]
    header = ["SD", *(f"{name} ({rules})" for rules in ("one", "four") for name in columns)]
    return markdown(header, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=21)
    options = parser.parse_args()
    rows = [row for sd in SPREADS for row in simulate(sd, options.simulations, options.seed)]
    print(render(rows))


if __name__ == "__main__":
    main()
