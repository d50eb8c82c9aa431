"""How often the scan names somebody where nobody is treated differently, and whom where somebody is.

    PYTHONPATH=tests:tools python -m calibration.who --worlds 400 --jobs 2

Answers that change or not, of sources that differ in how easily: 21 identities in four categories,
20 control prompts. First of one run, then since a baseline whose answers were drawn anew, one-sided
at p <= .01.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from calibration.tables import markdown

from fairgate.stats.scan import nodes_of, scan

SIZES = {"orientation": 10, "gender": 3, "ethnicity": 5, "age": 3}
CATEGORIES = {name: [f"{name} {i}" for i in range(size)] for name, size in SIZES.items()}
NODES = nodes_of(CATEGORIES)
IDENTITIES, CONTROLS = sum(SIZES.values()), 20
HARMED = "ethnicity"


@dataclass(frozen=True, kw_only=True)
class World:
    """Shares of answers that change."""

    sources: int = 60
    noise: float = 0.05
    apart: float = 0.0
    """Standard deviation of what phrases do by themselves."""
    tails: int | None = None
    """Degrees of freedom of Student's t that they have; normal without."""
    phrases: int = 1
    harmed: str = ""
    """`one`, `category`, `everybody`."""
    harm: float = 0.0
    before: float | None = None
    """Noise of the baseline; without, the run is a first one."""

    def effects(self, rng, *shape):
        """Draw what phrases do by themselves."""
        if self.tails is None:
            return self.apart * rng.normal(size=shape)
        return (
            self.apart * rng.standard_t(self.tails, shape) / (self.tails / (self.tails - 2)) ** 0.5
        )

    def drawn(self, seed: int):
        """Return values [sources, identities + controls] and who is harmed."""
        rng = np.random.default_rng([seed, self.sources])
        identities = self.effects(rng, IDENTITIES, self.phrases)
        controls = self.effects(rng, CONTROLS)
        who = {
            "": (),
            "one": (int(rng.integers(IDENTITIES)),),
            "category": next(node.columns for node in NODES if node.label == HARMED),
            "everybody": tuple(range(IDENTITIES)),
        }[self.harmed]
        easily = rng.gamma(2, 0.5, (self.sources, 1))
        turn = np.arange(self.sources) % self.phrases
        own = identities[:, turn].T.copy()
        own[:, list(who)] += self.harm
        chances = self.noise + np.hstack([own, np.broadcast_to(controls, (self.sources, CONTROLS))])
        values = (rng.random(chances.shape) < np.clip(chances * easily, 0, 1)).astype(float)
        if self.before is not None:
            chances = np.clip(self.before * easily, 0, 1)
            values -= rng.random(values.shape) < chances
        return values, who


HARMS = [
    ("", 0.0),
    ("one", 0.12),
    ("one", 0.2),
    ("one", 0.3),
    ("category", 0.1),
    ("everybody", 0.05),
]
FIRST = [
    World(sources=sources, noise=noise, apart=apart, tails=tails, phrases=phrases)
    for sources in (25, 60, 100)
    for noise, apart, tails, phrases in [
        (0.05, 0.0, None, 1),
        (0.15, 0.0, None, 1),
        (0.10, 0.03, None, 1),
        (0.10, 0.03, None, 4),
        (0.20, 0.06, None, 1),
        (0.20, 0.06, 5, 1),
        (0.20, 0.06, None, 4),
    ]
]
SINCE = [
    World(sources=sources, noise=noise, before=before)
    for sources in (60, 100)
    for before, noise in [(0.05, 0.05), (0.05, 0.1), (0.15, 0.15), (0.1, 0.05)]
]


def found(world: World, seed: int) -> tuple[float, bool]:
    """Return the p value, and whether the right node was named first."""
    values, who = world.drawn(seed)
    since = world.before is not None
    result = scan(
        {"changed": values},
        NODES,
        identities=IDENTITIES,
        phrases=world.phrases,
        sided="worse" if since else "two",
        alpha=0.01 if since else 0.05,
    ).among()
    return result.p, bool(result.named) and result.named[0].node.columns == who


def cell(world: World, worlds: int, pool: ProcessPoolExecutor | None = None) -> tuple[float, float]:
    """Return the share of worlds where somebody is named, and of these with the right node first."""
    alpha = 0.05 if world.before is None else 0.01
    draw = partial(pool.map, chunksize=25) if pool else map
    drawn = [is_right for p, is_right in draw(partial(found, world), range(worlds)) if p <= alpha]
    return len(drawn) / worlds, sum(drawn) / max(len(drawn), 1)


def named(world: World) -> str:
    """Return what a row is called."""
    spread = f", SD {world.apart:.0%}" if world.apart else ""
    tails = ", heavy" if world.tails else ""
    before = "" if world.before is None else f"{world.before:.0%} → "
    said = f", {world.phrases} phrases" if world.phrases > 1 else ""
    return f"{world.sources}, {before}{world.noise:.0%}{spread}{tails}{said}"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=400)
    parser.add_argument("--fair", type=int, help="worlds where nobody is harmed; as --worlds")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs) as pool:
        for title, rows in [("one run, p <= .05", FIRST), ("since a baseline, p <= .01", SINCE)]:
            print(f"\n{title}: share named (right node first)\n")
            lines = []
            for row in rows:
                line = [named(row)]
                for harmed, harm in HARMS:
                    count = options.worlds if harmed else options.fair or options.worlds
                    share, right = cell(replace(row, harmed=harmed, harm=harm), count, pool)
                    line.append(f"{share:.3f}" + (f" ({right:.2f})" if harmed else ""))
                lines.append(line)
                print(" | ".join(line), flush=True)
            head = ["sources, noise", *(f"{who} +{by:.0%}" if who else "fair" for who, by in HARMS)]
            print("\n" + markdown(head, lines))


if __name__ == "__main__":
    main()
