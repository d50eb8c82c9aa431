"""Simulated systems whose behaviour is known, clustered by source as real answers are.

P1's released answers: a fifth of the sources flip for nearly every prefix, the rest rarely, and
what changes between two runs of one system is mostly a whole source (its own answer turned, and
all its pairs with it), not single pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairgate.stats.observations import Observations

Verdicts = npt.NDArray[np.float64]

SOURCES, TERMS = 100, 21
CATEGORY_OF_TERM = np.repeat(np.arange(4), [5, 10, 3, 3])


def propensities(rng: np.random.Generator, sources: int = SOURCES) -> Verdicts:
    """Chance of each source to flip for a prefix, [S, 1]: a fifth nearly always; mean .33."""
    sensitive = rng.random(sources) < 0.2
    return np.where(sensitive, rng.beta(19, 1, sources), rng.beta(0.6, 2.8, sources))[:, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How two runs of one unchanged system differ; every part is exchangeable between them."""

    name: str
    pair: float = 0.0
    """Chance of a pair to be answered anew."""
    source: float = 0.0
    """Chance of a source's own answer to turn, and all its verdicts with it."""
    drift: float = 0.0
    """Standard deviation of a source's shift on the logit scale (other phrases, order, seeds)."""


NOISES = (
    Noise(name="sampling noise", pair=0.3),
    Noise(name="source answers turn", pair=0.1, source=0.05),
    Noise(name="neutral changes (burn-in)", pair=0.5, source=0.02, drift=1.0),
    Noise(name="model swap", pair=0.5, source=0.2, drift=1.0),
)


def stable_verdicts(rng: np.random.Generator, rate: Verdicts) -> Verdicts:
    """What the system says when nothing disturbs it, [S, T] of 0 and 1."""
    return (rng.random((len(rate), TERMS)) < rate).astype(np.float64)


def one_run(rng: np.random.Generator, rate: Verdicts, stable: Verdicts, noise: Noise) -> Verdicts:
    """Verdicts of one run, [S, T]."""
    shifted = rate
    if noise.drift:
        odds = np.log(rate / (1 - rate)) + rng.normal(0, noise.drift, rate.shape)
        shifted = 1 / (1 + np.exp(-odds))
    anew = rng.random(stable.shape) < noise.pair
    verdicts = np.where(anew, rng.random(stable.shape) < shifted, stable)
    turned = rng.random((len(rate), 1)) < noise.source
    return np.where(turned, 1 - verdicts, verdicts).astype(np.float64)


def change_free_pair(rng: np.random.Generator, noise: Noise) -> tuple[Verdicts, Verdicts]:
    """Two runs of one unchanged system on freshly drawn sources: now and baseline."""
    rate = np.clip(propensities(rng), 1e-6, 1 - 1e-6)
    stable = stable_verdicts(rng, rate)
    return one_run(rng, rate, stable, noise), one_run(rng, rate, stable, noise)


def as_observations(verdicts: Verdicts) -> Observations:
    """One arm, cluster = source."""
    sources, terms = verdicts.shape
    return Observations(
        keys=[f"s{s}#{t}" for s in range(sources) for t in range(terms)],
        clusters=np.repeat(np.arange(sources), terms),
        arms=np.zeros(sources * terms, dtype=np.int8),
        values=verdicts.reshape(-1).astype(np.float64),
        weights=(1.0,),
        n_clusters=sources,
    )


Draw = Callable[[np.random.Generator], npt.NDArray[np.int64]]


def change_shapes(sd: float, effect: float, sources: int = SOURCES) -> dict[str, Draw]:
    """Distributions of the per-source change (in pairs of 21) with this mean and SD.

    "few sources": each touched source changes by as much as mean and SD allow; "many sources": by
    as little; "bell": normal, rounded at random.
    """
    second = sd * sd + effect * effect
    smallest = int(np.ceil(np.sqrt(second) * TERMS - 1e-9))
    largest = min(TERMS, int(second / effect * TERMS + 1e-9)) if effect else TERMS
    shapes: dict[str, Draw] = {}
    for name, steps in (
        ("few sources", largest),
        ("between", round((smallest + largest) / 2)),
        ("many sources", smallest),
    ):
        touched = second / (steps / TERMS) ** 2
        up = (1 + effect / (touched * steps / TERMS)) / 2
        if touched <= 1 and up <= 1:
            shapes[name] = _steps(touched, up, steps, sources)
    shapes["bell"] = _bell(sd, effect, sources)
    return shapes


def _steps(touched: float, up: float, steps: int, sources: int) -> Draw:
    def draw(rng: np.random.Generator) -> npt.NDArray[np.int64]:
        signs = np.where(rng.random(sources) < up, steps, -steps)
        return np.where(rng.random(sources) < touched, signs, 0)

    return draw


def _bell(sd: float, effect: float, sources: int) -> Draw:
    # Random rounding adds a variance of 1/6 step on average.
    spread = np.sqrt(max(0.0, (sd * TERMS) ** 2 - 1 / 6))

    def draw(rng: np.random.Generator) -> npt.NDArray[np.int64]:
        exact = rng.normal(effect * TERMS, spread, sources)
        steps = np.floor(exact + rng.random(sources)).astype(np.int64)
        return np.clip(steps, -TERMS, TERMS)

    return draw
