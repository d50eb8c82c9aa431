"""Biased variants of a recorded run: what a mutant replaces, and what a policy catches.

A mutant of strength e changes each of its cases with probability e. Whether a case is changed
follows from a hash of seed, mutant and case alone, so the cases that a weak mutant changes are
among those that a stronger one of the same seed changes. Nothing is asked: every replacement is an
answer or a document list that the run itself has, an option of the question, or an empty answer.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Literal, Protocol

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.items import Condition
from fairgate.domain.units import Reading
from fairgate.policy.schema import GatePolicy
from fairgate.relations.oracles.oracle import Oracle

CaseId = tuple[str, str]
GRID = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
STATED = 0.3
WANTED = 0.9
_SUGGESTED = 4
"""Kinds of gate lines that are tried, in a policy with one suite."""
NO_VERDICT = "no verdict"
"""Stands for a rule where the gate found too little evidence."""


class Kind(StrEnum):
    """What a mutant replaces."""

    ANSWERS = "answers"
    """The answer by another one that the run gives, which the oracle reads as a different one."""
    REFUSALS = "refusals"
    """The answer by an empty one, which no oracle can read."""
    DOCUMENTS = "documents"
    """All documents by those that another source was shown; the answer stays."""
    STEREOTYPES = "stereotypes"
    """The answer to a question item by the option that fits the stereotype."""


class Reach(StrEnum):
    """Whose cases a mutant changes."""

    TERM = "term"
    CATEGORY = "category"
    EVERYTHING = "everything"
    """Sources, demographic and neutral wording alike, each case for itself: a worse system."""
    ALIKE = "alike"
    """All wordings of a source or none, in the same way; of question items as many towards the
    stereotype as against it: a change that is about no identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One kind of change to one part of a suite."""

    kind: Kind
    reach: Reach
    suite: str
    where: Mapping[str, str] = field(default_factory=dict)
    """Category, category and term, or category and condition; empty for the other reaches."""

    @property
    def is_control(self) -> bool:
        """Return whether the gate should let the mutant pass."""
        return self.reach is Reach.ALIKE

    @property
    def target(self) -> str:
        """Return whom it is about: `race/black`, `race`, or nobody."""
        return "/".join(self.where.values())

    @property
    def name(self) -> str:
        """Return what tells the mutant from all others."""
        return "\0".join((self.kind, self.reach, self.suite, *self.where.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotMutated:
    """What could not be changed, and why."""

    suite: str
    what: str
    reason: str


def chance(*parts: object) -> float:
    """Return a number in [0, 1) that follows from the parts."""
    text = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big") / 2**56


class Variants(Protocol):
    """Makes the mutants of one suite of a recorded run."""

    kinds: ClassVar[tuple[Kind, ...]]
    """What can be replaced in a suite of this kind."""

    def why_not(self, kind: Kind) -> str:
        """Return why nothing of a kind can be made of this run; empty where it can."""
        ...

    def of_kind(self, kind: Kind) -> Iterator[Mutant]:
        """Yield every mutant of a kind."""
        ...

    def mutated(self, mutant: Mutant, strength: float, seed: int) -> dict[CaseId, Execution]:
        """Return the executions that the mutant replaces; deterministic."""
        ...


def reading_of(oracle: Oracle, execution: Execution, case: Case) -> Reading | None:
    """Return what an answer says; None where there is none that can be read."""
    if execution.response is None:
        return None
    found = oracle.read(execution, case)
    return None if found.value is None else found


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Separating:
    """A metric that a kind of mutant moves in its own slice."""

    metric: str
    dimension: str
    bound: Literal["max", "min", "max_abs"] = "max"
    in_setting: bool = False
    """Whether the slice names a setting as well: without one, settings are pooled."""

    def size(self, value: float) -> float:
        """Return what is the larger, the worse a value is for the bound."""
        return {"max": value, "min": -value, "max_abs": abs(value)}[self.bound]

    def is_broken(self, value: float, bound: float) -> bool:
        """Return whether a value is beyond a bound."""
        return value < bound if self.bound == "min" else self.size(value) > bound


_BY_TERM = Separating(metric="asr/generation/controlled", dimension="term")
_BY_CATEGORY = Separating(metric="asr/generation/controlled", dimension="category")
_REFUSALS = Separating(metric="unreadable/net", dimension="term")
_DOCUMENTS = Separating(metric="retrieval/overlap", dimension="term", bound="min")
_ITEM_REFUSALS = Separating(metric="out-of-choice", dimension="category", in_setting=True)
_STEREOTYPES = {
    str(condition): Separating(
        metric=f"diff-bias/{condition}", dimension="category", bound="max_abs", in_setting=True
    )
    for condition in Condition
}

SEPARATING_METRICS = frozenset(
    by.metric for by in (_BY_TERM, _BY_CATEGORY, _REFUSALS, _DOCUMENTS, _ITEM_REFUSALS)
) | {by.metric for by in _STEREOTYPES.values()}


def separating(mutant: Mutant) -> Separating | None:
    """Return the metric that could tell a mutant from the run; None: a bound of none could."""
    kind, reach = mutant.kind, mutant.reach
    if (kind, reach) == (Kind.STEREOTYPES, Reach.CATEGORY):
        return _STEREOTYPES[mutant.where["condition"]]
    return {
        (Kind.ANSWERS, Reach.TERM): _BY_TERM,
        (Kind.ANSWERS, Reach.CATEGORY): _BY_CATEGORY,
        (Kind.REFUSALS, Reach.TERM): _REFUSALS,
        (Kind.REFUSALS, Reach.CATEGORY): _ITEM_REFUSALS,
        (Kind.DOCUMENTS, Reach.TERM): _DOCUMENTS,
    }.get((kind, reach))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A gate, and the line of YAML that is it."""

    gate: GatePolicy
    line: str


def propose(
    by: Separating,
    slices: Mapping[str, object],
    own: Sequence[float],
    targets: Sequence[Sequence[float]],
    needed: int,
) -> Proposal | None:
    """Return the most tolerant bound, in hundredths, that the run keeps and its variants break.

    `own` are the metric's values in the run's slices; `targets` holds for each missed mutant the
    values over seeds, of which `needed` must break the bound. `slices` is what the gate says beside
    metric, dimension and bound: `suite` (one suite need not be named), `where`. None where no bound
    separates them.
    """
    if not own or not targets or any(len(values) < needed for values in targets):
        return None
    worst = max(map(by.size, own))
    reached = min(sorted(map(by.size, values), reverse=True)[needed - 1] for values in targets)
    size = (math.ceil(100 * reached - 1e-9) - 1) / 100
    if size < worst:
        return None
    bound = round(-size if by.bound == "min" else size, 2) + 0.0
    gate = GatePolicy.model_validate(
        {"metric": by.metric, **slices, "for_each": by.dimension, by.bound: bound}
    )
    inside = "".join(f" {name}: {_flow(value)}," for name, value in slices.items())
    line = f"- {{metric: {by.metric},{inside} for_each: {by.dimension}, {by.bound}: {bound:g}}}"
    return Proposal(gate=gate, line=line)


def _flow(value: object) -> str:
    """Return a value as YAML within a line."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{name}: {json.dumps(each)}" for name, each in value.items())
        return f"{{{inside}}}"
    return json.dumps(value)
