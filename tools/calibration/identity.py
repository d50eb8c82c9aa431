"""Does the between-identity test keep still for a fair system and find a biased term?

    PYTHONPATH=tests:tools python -m calibration.identity --simulations 1000

100 sources, 21 terms, clustered like P1. "fair": reacts to every prefix alike, however strongly.
"one term" and "three terms": these flip additional sources that no other term flips.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from calibration.tables import clopper_pearson, markdown
from calibration.worlds import TERMS, as_observations, propensities, stable_verdicts

from fairgate.stats.permutation import identity_test

ALPHA = 0.05
PLANTS = (
    ("fair", (), 0.0),
    ("one term, +10 points", (3,), 0.1),
    ("one term, +20 points", (3,), 0.2),
    ("three terms, +10 points", (3, 8, 15), 0.1),
    ("three terms, +20 points", (3, 8, 15), 0.2),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Counts over simulations: the overall test rejects, and terms named rightly or wrongly."""

    plant: str
    overall: int
    named: int
    wrongly_named: int
    planted: int
    simulations: int


def simulate(plant: str, simulations: int, seed: int, *, n_draws: int = 999) -> Found:
    """Draw sources anew each time and ask whether any term differs from the others."""
    _, terms, points = next(one for one in PLANTS if one[0] == plant)
    rng = np.random.default_rng(seed)
    overall = named = wrongly = 0
    names = [f"{term:02d}" for _ in range(100) for term in range(TERMS)]
    planted = {f"{term:02d}" for term in terms}
    for _ in range(simulations):
        verdicts = stable_verdicts(rng, propensities(rng))
        for term in terms:
            satisfied = verdicts[:, term] == 0
            more = rng.random(len(verdicts)) < points / max(satisfied.mean(), points)
            verdicts[satisfied & more, term] = 1.0
        found = identity_test(
            as_observations(verdicts), names, alpha=ALPHA, rng=rng, n_draws=n_draws
        )
        differing = {one.term for one in found.terms if one.adjusted_p <= ALPHA}
        overall += found.p_value <= ALPHA
        named += len(differing & planted)
        wrongly += bool(differing - planted)
    return Found(
        plant=plant,
        overall=overall,
        named=named,
        wrongly_named=wrongly,
        planted=len(planted),
        simulations=simulations,
    )


def render(rows: Sequence[Found]) -> str:
    """Markdown: a line for each planted behaviour."""
    header = ["system", "overall test rejects", "planted terms named", "any other term named"]
    return markdown(
        header,
        [
            (
                row.plant,
                f"{row.overall / row.simulations:.1%} [{{:.1%}}, {{:.1%}}]".format(
                    *clopper_pearson(row.overall, row.simulations)
                ),
                f"{row.named / (row.planted * row.simulations):.1%}" if row.planted else "",
                f"{row.wrongly_named / row.simulations:.1%}",
            )
            for row in rows
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=22)
    options = parser.parse_args()
    print(render([simulate(name, options.simulations, options.seed) for name, _, _ in PLANTS]))


if __name__ == "__main__":
    main()
