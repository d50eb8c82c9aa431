"""A system whose answers exist already: recorded elsewhere, or by an earlier run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Protocol

from pydantic import Field

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.errors import DataError, UsageError
from fairgate.domain.executions import Document, Execution
from fairgate.domain.outcomes import short
from fairgate.domain.ports import NOTHING, Embedder, Executed, Progress, SystemUnderTest, Vectors
from fairgate.domain.runtime import Runtime
from fairgate.domain.schema import Access, Capabilities, Names, Role, SystemModel
from fairgate.domain.wording import quoted, suggestion
from fairgate.io.embedded_names import existing
from fairgate.systems.embedders import EmbedderField
from fairgate.systems.evaluation_rows import ColumnsField, RowAnswers, RowPaths, read_rows
from fairgate.systems.labelling import LabelsPolicy
from fairgate.systems.resources import Resources
from fairgate.systems.system_kind import Finding, SystemKind

if TYPE_CHECKING:
    from fairgate.systems.recorded_answers import RecordedAnswers

_NAMED = 3
"""Missing keys that are named."""
_MOST_COMPARED = 3000
"""Keys that a slip is looked for among."""


class RecordedPolicy(SystemModel):
    """Answers that a system gave elsewhere."""

    keys: ClassVar[tuple[str, ...]] = ("recorded",)

    recorded: Annotated[str, Names(Role.RECORDED)] = Field(
        description="JSONL file of answers that were produced elsewhere. May be empty for `check` "
        "and `plan`; in a run every key needs a line, with an empty `response` where the system "
        "gave none.",
    )
    columns: ColumnsField | None = Field(
        default=None,
        description="Rows of another tool, found by the text of the question: `ragas`, `deepeval`, "
        "`otlp` (traces with OpenInference's attributes, as OTLP-JSON), or where question, answer "
        "and documents stand. Left out: FairGate's own lines, by key.",
    )
    embedder: Annotated[EmbedderField | None, Names(Role.EMBEDDER)] = Field(
        default=None, description="Embeds the recorded documents for RRS; default `minilm`."
    )
    labels: LabelsPolicy | None = Field(
        default=None, description="Labels of its documents, where it gives none itself."
    )


class Recorded(SystemKind[RecordedPolicy]):
    """Answers from a file: nothing is asked."""

    id = "recorded"
    model = RecordedPolicy

    def accesses(self, policy: RecordedPolicy) -> Iterable[Access]:
        """Return nothing: a file of the repository is read."""
        del policy
        return ()

    def capabilities(self, policy: RecordedPolicy) -> Capabilities:
        """Return that documents may be in the file, and that nothing can be asked."""
        del policy
        return Capabilities(
            gives_documents=True, takes_documents=False, repeatable=False, scores_options=False
        )

    def must_match(self, policy: RecordedPolicy) -> Mapping[str, object]:
        """Return that the decoding is not known: the answers were given elsewhere."""
        del policy
        return {"decoding": "of the application"}

    def open(self, policy: RecordedPolicy, resources: Resources) -> OpenRecorded:
        """Return the system; the file is read when it is first asked."""
        return OpenRecorded(policy, resources)

    def missing(
        self, policy: RecordedPolicy, runtime: Runtime
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the file where it is not there."""
        try:
            existing(policy.recorded, runtime.root, confined=runtime.confined)
        except DataError as error:
            yield ("recorded",), f"{error}; an empty file is enough for `check` and `plan`"

    def examined(
        self, policy: RecordedPolicy, plan: TestPlan | None, runtime: Runtime
    ) -> Iterator[Finding]:
        """Yield how many questions the file answers, which it lacks, and which nobody asks."""
        from fairgate.systems.recorded_answers import read_recorded

        if any(self.missing(policy, runtime)):
            return
        path = existing(policy.recorded, runtime.root, confined=runtime.confined)
        if policy.columns is not None:
            yield from _examined_rows(path, policy.columns, plan)
            return
        try:
            answers = read_recorded(str(path)) if path.stat().st_size else None
        except DataError as error:
            yield Finding(place=("recorded",), sentence=str(error))
            return
        if plan and plan.cases:
            sentence = _coverage(plan, answers)
            yield Finding(place=("recorded",), sentence=sentence, is_problem=False)


def _examined_rows(path: Path, columns: str | RowPaths, plan: TestPlan | None) -> Iterator[Finding]:
    """Yield how many questions another tool's rows answer, or what is wrong with them."""
    try:
        rows = read_rows(path, columns) if path.stat().st_size else None
    except DataError as error:
        yield Finding(place=("recorded",), sentence=str(error))
        return
    cases = [case for case in plan.cases if case.judge is None] if plan else ()
    missing = [case.key for case in cases if rows is None or rows.answer(case) is None]
    if cases:
        summary = f"answers: {len(cases) - len(missing):,} of {len(cases):,} questions answered"
        named = f"; first missing: {', '.join(map(quoted, missing[:_NAMED]))}" if missing else ""
        yield Finding(place=("recorded",), sentence=summary + named, is_problem=False)
    for notice in rows.notices if rows else ():
        yield Finding(place=("recorded",), sentence=notice, is_problem=False)


def _coverage(plan: TestPlan, answers: RecordedAnswers | None) -> str:
    """Return `250 of 300 questions answered`, what is missing first, and what nobody asks.

    Questions that embed an answer are counted only where that answer is there: before, nobody can
    ask them.
    """
    asked = [
        (case.suite, case.key)
        for case in plan.cases
        if case.judge is None
        and (case.embeds is None or (answers is not None and (case.suite, case.embeds) in answers))
    ]
    missing = [key for suite, key in asked if answers is None or (suite, key) not in answers]
    summary = f"answers: {len(asked) - len(missing):,} of {len(asked):,} questions answered"
    if missing:
        summary += f"; first missing: {', '.join(map(quoted, missing[:_NAMED]))}"
    known = {case.key for case in plan.cases}
    # The keys of attribution's questions follow from the first answers.
    others = [
        key for _, key in (answers.keys() if answers else ())
        if key not in known and "@documents=" not in key
    ]  # fmt: skip
    if others:
        lines = "1 line answers" if len(others) == 1 else f"{len(others):,} lines answer"
        near = suggestion(others[0], [*known][:_MOST_COMPARED])
        summary += f"; {lines} no question, first {quoted(others[0])} ({near})"
    return summary


class OpenRecorded:
    """A recorded system under test."""

    def __init__(self, policy: RecordedPolicy, resources: Resources) -> None:
        """Take the policy and what systems share."""
        self._policy = policy
        self._resources = resources

    def execute(
        self, plan: TestPlan, progress: Progress, earlier: Executed = NOTHING
    ) -> Mapping[tuple[str, str], Execution]:
        """Return the recorded executions of the plan's cases; missing ones are left out."""
        return self._system.execute(plan, progress, earlier)

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return embeddings of the documents' texts; None where a text is not known."""
        return self._system.vectors(documents)

    def under_test(self) -> Mapping[str, str]:
        """Return the file's fingerprint."""
        return {"recorded": short(self._file.fingerprint)}

    def replica(self, number: int) -> tuple[Sequence[str], SystemUnderTest]:
        """Raise UsageError: a recording cannot be asked again."""
        del number
        raise UsageError("a recorded system cannot be asked again")

    @cached_property
    def _system(self) -> RecordedSystem:
        chosen = Recorded().embedder(self._policy)
        return RecordedSystem(self._file, lambda: self._resources.encoder(chosen).documents)

    @cached_property
    def _file(self) -> RecordedAnswers | RowAnswers:
        from fairgate.systems.recorded_answers import read_recorded

        runtime = self._resources.runtime.under_test
        path = existing(self._policy.recorded, runtime.root, confined=runtime.confined)
        if self._policy.columns is not None:
            rows = read_rows(path, self._policy.columns)
            self._resources.collect(list(rows.notices))
            return rows
        return read_recorded(str(path))


class Recording(Protocol):
    """Executions of cases, however they are found."""

    def answer(self, case: Case) -> Execution | None:
        """Return the execution of a case; None where the recording lacks it."""
        ...


class RecordedSystem:
    """Looks cases up; embeds the recorded documents' texts only when RRS asks for it."""

    def __init__(self, recording: Recording, embedder: Callable[[], Embedder | None]) -> None:
        """Take a recording and a way to get an embedder, called at most once and only if needed."""
        self._recording = recording
        self._embedder = embedder

    def execute(
        self, plan: TestPlan, progress: Progress, earlier: Executed = NOTHING
    ) -> Mapping[tuple[str, str], Execution]:
        """Return the recorded executions of the plan's cases; missing ones are left out."""
        del earlier  # a recording knows which documents it was shown
        progress.start("look up", len(plan.cases), len(plan.cases))
        answer = self._recording.answer
        found = {
            (case.suite, case.key): execution
            for case in plan.cases
            if (execution := answer(case)) is not None
        }
        progress.finish()
        return found

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return embeddings of the documents' texts; None where a text is not known."""
        texts = [document.text for document in documents if document.text is not None]
        if len(texts) < len(documents):
            return None
        embedder = self._embedder()
        return None if embedder is None else embedder.embed(texts)
