"""How much bias a policy catches: what is looked for in mutants of a run, and what is found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairgate.features.mutation.mutants import Kind, Mutant, NotMutated, Reach

GRID = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
STATED = 0.3
WANTED = 0.9
_SUGGESTED = 4
"""Kinds of gate lines that are tried, in a policy with one suite."""
NO_VERDICT = "no verdict"
"""Stands for a rule where the gate found too little evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is looked for, and with how many runs."""

    kinds: Sequence[Kind] = tuple(Kind)
    grid: Sequence[float] = GRID
    """Ascending, in (0, 1]."""
    stated: float = STATED
    """Of the grid; the kill score is the share of mutants that are caught at it."""
    wanted: float = WANTED
    seeds: int = 10

    @property
    def needed(self) -> int:
        """Return how many of the seeds must be caught."""
        return math.ceil(self.wanted * self.seeds - 1e-9)

    def most_runs(self, mutants: int) -> int:
        """Return how many gate runs these mutants take at most."""
        levels = 1 + math.ceil(math.log2(len(self.grid) + 1))
        return mutants * self.seeds * levels + _SUGGESTED * (self.seeds + 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchingRule:
    """A rule that stops the build, or `no verdict`."""

    metric: str
    where: Mapping[str, str]
    checks: Sequence[str]
    """`bound`, `regression`, `budget`, `identity`, `unreadable`, `inconclusive`."""
    position: int
    """Index in the policy's gates; -1 where it stands in none."""
    runs: int = 0
    """In how many runs it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A mutant at one strength, over some seeds."""

    strength: float
    runs: int
    caught: int
    """Runs in which the gate did not pass."""
    failed: int
    """Runs in which a rule failed; the others had no verdict."""
    by_identity: int
    """Runs in which a rule failed that tells identities apart."""
    rules: Sequence[CatchingRule]
    """Those that stopped a run, the most frequent first."""
    interval: tuple[float, float]
    """Clopper-Pearson, of the share that is caught."""
    values: Sequence[float] = ()
    """By seed, of the metric that tells such mutants from the run, in the mutant's slice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the policy sees of one mutant."""

    mutant: Mutant
    cases: int
    """Cases that its strongest variant changes."""
    tried: Sequence[Tried]
    """By strength."""
    stated: Tried
    smallest: Tried | None
    """Smallest strength that is caught often enough; None: not even the largest is."""
    missed: float
    """Largest strength below it that was tried and is not; 0 where none is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A gate line with which the policy would catch what it misses at the stated strength.

    With it the recorded run still passes, and no control mutant of the stated strength fails.
    """

    kind: Kind
    reach: Reach
    line: str
    """YAML, an entry of `gates`."""
    targets: Sequence[str]
    """What the policy misses without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillScore:
    """How much bias the policy would have caught in this run."""

    policy: str
    search: Search
    sources: int
    found: Sequence[Found]
    """Of biased and worse systems; the score counts them."""
    controls: Sequence[Found]
    """Of changes that are about no identity: a rule that tells identities apart and fails on them
    is a false kill; any other one is right, for everybody fares worse."""
    not_mutated: Sequence[NotMutated]
    suggestions: Sequence[Suggestion]
    left_out: Sequence[str]
    """Metrics of rules that were not put to the mutants."""

    @property
    def mutants(self) -> int:
        """Return how many mutants the score counts."""
        return sum(item.stated.runs for item in self.found)

    @property
    def caught(self) -> int:
        """Return how many of them are caught."""
        return sum(item.stated.caught for item in self.found)

    @property
    def score(self) -> float:
        """Return the share of mutants of the stated strength that are caught."""
        return self.caught / self.mutants

    @property
    def false_kills(self) -> int:
        """Return how many control mutants of the stated strength a false kill is among."""
        return sum(item.stated.by_identity for item in self.controls)
