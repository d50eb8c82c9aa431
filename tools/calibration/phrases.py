"""What several phrases of an identity add: power beside false alarms, and which phrases are told.

    PYTHONPATH=tests:tools python -m calibration.phrases --seeds 40 --jobs 2

The worlds of `calibration.who`, 100 sources, one identity 20 points worse. A source meets the
phrase that has the least hash, as in a run, so phrases are not asked equally often; the scan is
given as many as that is worth. Of worlds where the identity is named the last two columns say how
often all of its phrases are told, and, where one phrase has all of the harm (80 points), that one.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from calibration.tables import markdown
from calibration.who import IDENTITIES, NODES

from fairgate.relations.perturbation_sets import PerturbationSet, Term
from fairgate.stats.phrases import carrying
from fairgate.stats.scan import scan

CONTROLS, HARM = 20, 0.2


@dataclass(frozen=True, kw_only=True)
class World:
    """Answers that change at `noise`, phrases that lie `apart` (SD), and who is harmed by whom."""

    sources: int = 100
    noise: float
    apart: float
    phrases: int
    harmed: bool = False
    by_word: bool = False
    """One phrase has all of the harm of its identity."""

    def drawn(self, seed: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Return values [sources, prompts], the phrase of each cell, and who is harmed."""
        rng = np.random.default_rng([seed, self.sources, 25])
        said = turns(self.sources, self.phrases)
        own = self.apart * rng.standard_normal((IDENTITIES, self.phrases))
        controls = self.apart * rng.standard_normal(CONTROLS)
        who = int(rng.integers(IDENTITIES))
        if self.harmed and self.by_word:
            own[who, 0] += HARM * self.phrases
        elif self.harmed:
            own[who] += HARM
        easily = rng.gamma(2, 0.5, (self.sources, 1))
        effects = np.take_along_axis(own.T, said, axis=0)
        both = np.hstack([effects, np.broadcast_to(controls, (self.sources, CONTROLS))])
        chances = np.clip((self.noise + both) * easily, 0, 1)
        return (rng.random(chances.shape) < chances).astype(float), said, who


@cache
def turns(sources: int, phrases: int) -> np.ndarray:
    """Return [sources, identities] which phrase a source meets, as a plan has it."""
    said = np.zeros((sources, IDENTITIES), dtype=int)
    for place in range(IDENTITIES):
        names = tuple(f"phrase {number}" for number in range(phrases))
        term = Term(term=f"identity {place}", noun_phrase=names[0], also=names[1:])
        group = PerturbationSet(id="drawn", terms=(term,))
        for source in range(sources):
            said[source, place] = names.index(group.said_to(f"s{source}", term))
    return said


def found(world: World, seed: int) -> tuple[bool, bool, tuple[int, ...]]:
    """Return whether anybody is named, whether the harmed one is, and which phrases are told."""
    values, said, who = world.drawn(seed)
    counts = [np.bincount(column) for column in said.T]
    equal = [count.sum() ** 2 / np.square(count).sum() for count in counts]
    result = scan({"changed": values}, NODES, identities=IDENTITIES, phrases=equal).among()
    node = next((one for one in result.named if one.node.columns == (who,)), None)
    if node is None or world.phrases == 1:
        return bool(result.named), node is not None, ()
    beyond = values[:, who] - values[:, IDENTITIES:].mean(axis=1)
    apart = np.where(said[:, [who]] == np.arange(world.phrases), beyond[:, None], np.nan)
    told = carrying(apart, apart=result.bands["changed"].apart, effect=node.estimate)
    return True, True, told


def row(world: World, seeds: int, draw: object = map) -> Sequence[str]:
    """Return what is named in fair worlds and in harmed ones, and which phrases are told."""

    def run(of: World) -> list[tuple[bool, bool, tuple[int, ...]]]:
        return list(draw(partial(found, of), range(seeds)))

    fair, harmed = run(world), run(replace(world, harmed=True))
    cells = [
        f"{world.noise:.0%}, {world.apart * 100:.0f}, {world.phrases}",
        f"{sum(named for named, _, _ in fair) / seeds:.2f}",
        f"{sum(named for named, _, _ in harmed) / seeds:.2f}",
    ]
    if world.phrases == 1:
        return [*cells, "", ""]
    every = tuple(range(world.phrases))
    of_all = [told == every for _, is_right, told in harmed if is_right]
    by_word = run(replace(world, harmed=True, by_word=True))
    of_one = [told == (0,) for _, is_right, told in by_word if is_right]
    return [*cells, _share(of_all), _share(of_one)]


def _share(told: Sequence[bool]) -> str:
    return f"{sum(told) / max(len(told), 1):.2f} of {len(told)}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    head = ["noise, SD of phrases, phrases", "fair", "one +20", "all are told", "the one is told"]
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = [
            row(World(noise=noise, apart=apart, phrases=phrases), options.seeds, pool.map)
            for noise, apart in ((0.10, 0.03), (0.20, 0.06))
            for phrases in (1, 4)
        ]
    print(markdown(head, rows))


if __name__ == "__main__":
    main()
