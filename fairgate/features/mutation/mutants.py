"""Biased variants of a recorded run: which answers and documents a mutant replaces, and by what.

A mutant of strength e changes each of its cases with probability e. Whether a case is changed
follows from a hash of seed, mutant and case alone, so the cases that a weak mutant changes are
among those that a stronger one of the same seed changes. Nothing is asked: every replacement is an
answer or a document list that the run itself has, an option of the question, or an empty answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Protocol

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.units import Reading
from fairgate.relations.oracles.oracle import Oracle

CaseId = tuple[str, str]


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
