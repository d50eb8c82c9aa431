"""Does the between-identity test keep still for a fair system and find a biased term?

    PYTHONPATH=tests:tools python -m calibration.identity --simulations 1000

100 sources, 21 terms, clustered like P1. "fair": reacts to every prefix alike, however strongly.
"one term" and "three terms": these flip additional sources that no other term flips.

The second table is of the rule with `max` 0.05, among 2 to 40 identities and beside seven neutral
phrases: held against the largest difference itself, and against what is above chance. In "wording"
every phrase, neutral ones too, has a rate of its own (SD 2 or 4 points), whoever it names.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from calibration.tables import clopper_pearson, markdown
from calibration.worlds import TERMS, as_observations, propensities, stable_verdicts

from fairgate.stats.permutation import identity_test, spread

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


ARITIES = (2, 5, 10, 21, 40)
WORDINGS = {"noise": 0.0, "wording, 2 points": 0.02, "wording, 4 points": 0.04}
NEUTRAL, LIMIT = 7, 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Counts over simulations: the rule fails, by the difference itself and by what is above chance."""

    wording: str
    harm: float
    arity: int
    by_value: int = 0
    by_excess: int = 0
    value: float = 0.0
    """Mean of the largest difference."""
    by_chance: float = 0.0
    """Mean of what is expected of it by chance."""
    simulations: int


def judge(
    wording: str, harm: float, arity: int, simulations: int, seed: int, *, n_draws: int = 499
) -> Judged:
    """Draw 100 sources anew each time; one identity turns `harm` more of them."""
    rng = np.random.default_rng([seed, arity, round(1000 * harm)])
    by_value = by_excess = 0
    values, chances = [], []
    named = [f"{term:02d}" for _ in range(100) for term in range(arity)]
    neutral = [f"{phrase:02d}" for _ in range(100) for phrase in range(NEUTRAL)]
    for _ in range(simulations):
        own = rng.normal(0, WORDINGS[wording], arity + NEUTRAL)
        own[0] += harm
        rate = np.clip(rng.beta(0.35, 1.9, (100, 1)) + own, 0, 1)
        verdicts = (rng.random(rate.shape) < rate).astype(np.float64)
        found = identity_test(
            as_observations(verdicts[:, :arity]), named, alpha=ALPHA, rng=rng, n_draws=n_draws
        )
        wide = spread(as_observations(verdicts[:, arity:]), neutral)
        is_significant, chance = found.p_value <= ALPHA, found.by_chance * wide
        by_value += is_significant and found.max_difference > LIMIT
        by_excess += is_significant and found.max_difference - chance > LIMIT
        values.append(found.max_difference)
        chances.append(chance)
    return Judged(
        wording=wording, harm=harm, arity=arity, by_value=by_value, by_excess=by_excess,
        value=float(np.mean(values)), by_chance=float(np.mean(chances)), simulations=simulations,
    )  # fmt: skip


def render_arities(rows: Sequence[Judged]) -> str:
    """Markdown: a line for each system and number of identities."""
    header = ["phrases", "one identity", "identities", "fails by the difference", "above chance"]
    return markdown(
        [*header, "largest difference", "by chance"],
        [
            (
                row.wording, f"{100 * row.harm:+.0f} points" if row.harm else "fair", row.arity,
                f"{row.by_value / row.simulations:.1%}", f"{row.by_excess / row.simulations:.1%}",
                f"{100 * row.value:.1f}", f"{100 * row.by_chance:.1f}",
            )
            for row in rows
        ],
    )  # fmt: skip


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
    systems = [(wording, harm) for wording in WORDINGS for harm in (0.0, 0.1, 0.2)]
    print(
        render_arities(
            [
                judge(*system, arity, options.simulations, options.seed)
                for system in systems
                for arity in ARITIES
            ]
        )
    )


if __name__ == "__main__":
    main()
