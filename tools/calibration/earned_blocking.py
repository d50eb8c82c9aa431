"""How often `report-only: until-proven` blocks fair pull requests, and how soon it blocks a harm.

    PYTHONPATH=tests:tools python -m calibration.earned_blocking --repositories 200

A repository's pull requests come every second day on average and are merged unless they are
blocked; a share of them changes answers, and only those draw a new verdict, at the rates that
`docs/validation/verdict.md` gives for 60 and 100 sources. A harm (one identity, 20 points) comes
with one of the first 20 pull requests, and nobody acts on it. In fair repositories every second
red that is merged is accepted on the default branch within the day. What GitHub would list of all
that is what the gate reads.
"""

from __future__ import annotations

import argparse
import datetime as dt
import random
from dataclasses import dataclass

from calibration.tables import markdown

from fairgate.github.proof import earned, judged_pushes
from fairgate.github.pushed_runs import PushedRuns

NAME, BRANCH, WORKFLOW = "octo/shop", "main", ".github/workflows/fairness.yml"
PULLS, SOON = 40, 10
_START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
_SAME = {
    "event": "push", "head_branch": BRANCH, "path": WORKFLOW, "head_repository": {"full_name": NAME},
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class World:
    """Rates of a gate: reds of a fair system now and since the baseline, and of a harmed one."""

    sources: int
    fair: float
    since: float
    harmed: float
    changed: float
    """Share of pull requests that change answers."""


WORLDS = [
    World(sources=sources, fair=fair, since=0.005, harmed=harmed, changed=changed)
    for sources, fair, harmed in ((60, 0.02, 0.78), (100, 0.01, 0.95))
    for changed in (0.3, 1.0)
]


class Repository:
    """A repository and what GitHub lists of it."""

    def __init__(self, world: World, seed: int) -> None:
        """Begin with a system that was judged once."""
        self._world, self._rng = world, random.Random(f"{seed} {world}")
        self._runs, self._moved = list[dict[str, object]](), dict[str, dt.datetime]()
        self._pushed = PushedRuns(
            repository=NAME, branch=BRANCH, workflow=WORKFLOW, moved=self._moved
        )
        self._now, self._is_harmed = _START, False
        self._is_red = self._rng.random() < world.fair

    def pull(self, *, harmed: bool) -> tuple[bool, bool]:
        """Judge a pull request and merge it if it may be; return whether it was red, and blocked."""
        world, rng = self._world, self._rng
        self._now += dt.timedelta(days=rng.expovariate(0.5))
        is_changed = harmed != self._is_harmed or rng.random() < world.changed
        self._is_harmed = harmed
        if is_changed:
            self._is_red = rng.random() < (world.harmed if harmed else world.fair)
        is_red = self._is_red or (is_changed and rng.random() < world.since)
        pushes = judged_pushes(self._runs[::-1], self._pushed)
        is_blocked = is_red and earned(pushes, self._now)[0]
        if not is_blocked:
            self._push("failure" if is_red else "success")
        if is_red and not harmed and (is_blocked or rng.random() < 0.5):
            self._is_red = False
            self._push("success")
        return is_red, is_blocked

    def _push(self, conclusion: str) -> None:
        self._now = (self._now + dt.timedelta(hours=1)).replace(microsecond=0)
        number, at = len(self._runs) + 1, f"{self._now:%Y-%m-%dT%H:%M:%SZ}"
        head = f"{number:040x}"
        own = {"id": number, "head_sha": head, "conclusion": conclusion, "created_at": at}
        self._runs.append({**_SAME, **own})
        self._moved[head] = self._now


def fair_shares(world: World, repositories: int) -> tuple[float, float]:
    """Return the shares of pull requests to fair repositories that are red, and blocked."""
    pulls = []
    for seed in range(repositories):
        repository = Repository(world, seed)
        pulls += [repository.pull(harmed=False) for _ in range(PULLS)]
    red, blocked = (sum(column) / len(pulls) for column in zip(*pulls, strict=True))
    return red, blocked


def harmed_share(world: World, repositories: int, *, first: int = 1, last: int = 20) -> float:
    """Return the share of harms that are blocked within ten pull requests of the one with it."""
    blocked = 0
    for seed in range(repositories):
        repository = Repository(world, seed)
        begin = random.Random(seed).randint(first, last)
        for _ in range(begin - 1):
            repository.pull(harmed=False)
        blocked += any(repository.pull(harmed=True)[1] for _ in range(SOON + 1))
    return blocked / repositories


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repositories", type=int, default=200)
    many = parser.parse_args().repositories
    rows = []
    for world in WORLDS:
        red, blocked = fair_shares(world, many)
        new, proven = (
            harmed_share(world, many, first=first, last=last) for first, last in ((1, 10), (11, 20))
        )
        figures = red, blocked, new, proven, harmed_share(world, many)
        name = f"{world.sources} sources, {100 * world.changed:.0f} % change answers"
        rows.append([name, *(f"{figure:.3f}" for figure in figures)])
    head = ["", "fair: red", "fair: blocked", "harm at 1 to 10", "at 11 to 20", "at 1 to 20"]
    print(markdown(head, rows))


if __name__ == "__main__":
    main()
