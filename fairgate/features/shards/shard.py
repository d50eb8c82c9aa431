"""Parts of one run that are asked apart, and the system that answers from them together.

The unit of assignment is a source (for question items their template): all that one source's cases
ask of each other stays in one part. Only attribution compares sources before it asks, so no part
asks for it; it follows when the parts are one run again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fairgate.domain.cases import Case, TestPlan, first_asked, uncrossed
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Document, Execution
from fairgate.domain.ports import NOTHING, Executed, Progress, SystemUnderTest, Vectors
from fairgate.domain.wording import quoted
from fairgate.gate.waves import WAVES, Answered, Asking, Crossing, answer_waves
from fairgate.suites.metamorphic.documents import document_key
from fairgate.suites.suite import Suite

MOST_SHARDS = 1000
Answers = Mapping[tuple[str, str], Execution | None]
"""(suite, key) of everything that was asked to what happened; None: the system had no answer."""


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """One part of a run: `number` from 1, `of` so many."""

    number: int
    of: int

    def __str__(self) -> str:
        """Return `2/4`, as the command line takes it."""
        return f"{self.number}/{self.of}"


def assigned(cases: Sequence[Case], of: int) -> dict[str, int]:
    """Return by source the number, from 1, of the part that asks about it.

    Sources with the most planned questions are assigned first, each to the part that has the
    fewest so far; sources of equal size by the hash of their name. So neither the order of the
    files nor that of the plan matters.
    """
    sizes = Counter(case.cluster for case in cases)
    loads = [0] * of
    parts: dict[str, int] = {}
    for source in sorted(sizes, key=lambda name: (-sizes[name], _hash(name))):
        lightest = min(range(of), key=loads.__getitem__)
        loads[lightest] += sizes[source]
        parts[source] = lightest + 1
    return parts


def part_of(plan: TestPlan, shard: Shard) -> TestPlan:
    """Return what a part asks and judges, in the order of the plan."""
    parts = assigned(plan.cases, shard.of)
    cases = [case for case in plan.cases if parts[case.cluster] == shard.number]
    known = {(case.suite, case.key) for case in cases}
    units = [
        unit for unit in plan.units if all((unit.suite, key) in known for key in unit.asks.values())
    ]
    return TestPlan(cases=cases, units=units)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(slots=True, kw_only=True)
class AnsweredPart:
    """What a part of a run knows: its answers, and the vectors of the documents it compares."""

    answers: Answers
    vectors: Mapping[str, Vectors]
    """Name of a document to its float32 vector `[d]`."""


def answer_part(
    part: TestPlan,
    suites: Mapping[str, Suite],
    seed: int,
    sut: SystemUnderTest,
    progress: Progress,
) -> AnsweredPart:
    """Ask a part of a plan, all but attribution. Decides nothing.

    Raises what the system raises.
    """
    own = {case.suite for case in part.cases}
    kept = _Kept(sut)
    answered = answer_waves(
        part,
        {name: suite for name, suite in suites.items() if name in own},
        seed,
        kept,
        progress,
        Asking(waves=[wave for wave in WAVES if wave.id != Crossing.id]),
    )
    _compare_documents(answered)
    return AnsweredPart(
        answers={name: answered.executions.get(name) for name in kept.asked},
        vectors=kept.vectors_of,
    )


def ask_attribution(
    answered: Answered,
    part: TestPlan,
    sut: Callable[[], SystemUnderTest],
    progress: Progress,
) -> Answers:
    """Ask a part of the questions that attribution has, once a whole run is answered.

    A question belongs to the part of its source. `sut` is called where there is one.
    """
    own = {case.cluster for case in part.cases}
    cases = [case for case in answered.added if case.is_crossing and case.cluster in own]
    if not cases:
        return {}
    asked = TestPlan(cases=cases, units=())
    found = sut().execute(asked, progress, answered.executions)
    names = [(case.suite, case.key) for case in cases]
    return {name: found.get(name) for name in names}


def _compare_documents(answered: Answered) -> None:
    """Judge the part: that looks up the vectors which the whole run will compare."""
    assert answered.judged is not None  # noqa: S101 - judged when it is first read


@dataclass(slots=True)
class _Kept:
    """A system under test, with all that was asked of it and all vectors that it gave."""

    inner: SystemUnderTest
    asked: list[tuple[str, str]] = field(default_factory=list)
    vectors_of: dict[str, Vectors] = field(default_factory=dict)

    def execute(self, plan: TestPlan, progress: Progress, earlier: Executed = NOTHING) -> Executed:
        self.asked += [(case.suite, case.key) for case in plan.cases]
        return self.inner.execute(plan, progress, earlier)

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        found = self.inner.vectors(documents)
        if found is not None:
            names = [document_name(document) for document in documents]
            self.vectors_of |= dict(zip(names, found, strict=True))
        return found


def may_be_asked(suite: str, key: str, planned: frozenset[tuple[str, str]]) -> bool:
    """Return whether a part with these questions may have been asked another: attribution's."""
    return any((suite, base) in planned for base in (key, first_asked(key), uncrossed(key)))


def document_name(document: Document) -> str:
    """Return a short name of a document: the hash of what tells it from others."""
    return _hash(document_key(document) or "")


class UnitedSystem:
    """The system under test of a whole run, whose answers were asked in parts.

    What the plan asks is never asked again. Those of attribution's questions that no part has asked
    go to `live`, which is called when the first of them comes up; None leaves them unanswered.
    """

    def __init__(
        self,
        answers: Answers,
        vectors: Mapping[str, Vectors],
        live: Callable[[], SystemUnderTest] | None,
    ) -> None:
        """Take the answers and vectors of all parts."""
        self._answers = answers
        self._vectors = vectors
        self._live = live
        self.left_out = 0
        """How many of attribution's questions were not asked."""

    def execute(
        self, plan: TestPlan, progress: Progress, earlier: Executed = NOTHING
    ) -> Mapping[tuple[str, str], Execution]:
        """Return the executions in the order of the plan.

        Raises DataError where the parts were never asked a case of the plan.
        """
        crossed = [
            case
            for case in plan.cases
            if case.is_crossing and (case.suite, case.key) not in self._answers
        ]
        left = {(case.suite, case.key) for case in crossed}
        found = self._known([case for case in plan.cases if (case.suite, case.key) not in left])
        if crossed and self._live is not None:
            asked = TestPlan(cases=crossed, units=())
            found |= self._live().execute(asked, progress, earlier)
        elif crossed:
            self.left_out += len(crossed)
        names = [(case.suite, case.key) for case in plan.cases]
        return {name: found[name] for name in names if name in found}

    def _known(self, cases: Sequence[Case]) -> dict[tuple[str, str], Execution]:
        names = [(case.suite, case.key) for case in cases]
        lacking = [name for name in names if name not in self._answers]
        if lacking:
            suite, key = lacking[0]
            raise DataError(
                f"the parts of the run lack {len(lacking):,} questions of the plan, first "
                f"{quoted(key)} of suite {quoted(suite)}; expected all of them: run every part "
                "again, and leave the folders as they were written"
            )
        known = {name: self._answers[name] for name in names}
        return {name: execution for name, execution in known.items() if execution is not None}

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return the embeddings that the parts looked up; None where one of them is not known."""
        found = [self._vectors.get(document_name(document)) for document in documents]
        rows = [row for row in found if row is not None]
        return np.stack(rows) if rows and len(rows) == len(found) else None
