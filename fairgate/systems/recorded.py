"""A system whose answers exist already: recorded elsewhere, or by an earlier run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from fairgate.domain.cases import Case, TestPlan, source_of
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Document
from fairgate.domain.outcomes import short
from fairgate.domain.ports import (
    NOTHING,
    Embedder,
    Executed,
    Progress,
    Runtime,
    Vectors,
)
from fairgate.domain.schema import Access, Capabilities, Names, Role
from fairgate.domain.wording import quoted, suggestion
from fairgate.io.named_files import existing
from fairgate.systems.execute import embedded
from fairgate.systems.labelling import LabelsField
from fairgate.systems.models import EMBEDS_REPLIES, EmbedderField
from fairgate.systems.recorded_answers import (
    ColumnsField,
    RecordedAnswers,
    questions_hash,
    read_recorded,
)
from fairgate.systems.resources import Resources
from fairgate.systems.system_kind import Finding, SystemKind

_NAMED = 3
"""Missing keys that are named."""
_CHANGED = (
    "sources have changed since the answers were recorded: a source without an `id`, and a row of "
    "another tool, is known by its text. Answer the questions of `fairgate plan` that have no "
    "line, or bring back the sources that were asked"
)
_MOST_COMPARED = 3000
"""Keys that a slip is looked for among."""


class RecordedPolicy(SystemKind):
    """Answers that a system gave elsewhere."""

    id: ClassVar[str] = "recorded"
    keys: ClassVar[tuple[str, ...]] = ("recorded",)

    recorded: Annotated[str, Names(Role.RECORDED)] = Field(
        description="File of answers that were produced elsewhere: JSON Lines, CSV, Parquet.",
    )
    columns: ColumnsField | None = Field(
        default=None,
        description="Rows of another tool: `ragas`, `deepeval`, or paths.",
    )
    embedder: Annotated[EmbedderField | None, Names(Role.EMBEDDER)] = Field(
        default=None, description=EMBEDS_REPLIES
    )
    labels: LabelsField = None

    def accesses(self) -> Iterable[Access]:
        """Return nothing: a file of the repository is read."""
        return ()

    def capabilities(self) -> Capabilities:
        """Return the capabilities: documents may be in the file, and nothing can be asked."""
        return Capabilities(
            gives_documents=True,
            takes_documents=False,
            takes_changed=self.columns is None,
            repeatable=False,
            scores_options=False,
        )

    def open(self, resources: Resources) -> RecordedSystem:
        """Return the system; the file is read when it is first asked."""

        def read() -> RecordedAnswers:
            recording = self._recording(resources)
            # Refuses what was written for other questions.
            recording.untied(resources.questions(), resources.cases())
            return recording

        chosen = self.chosen_embedder()
        return RecordedSystem(read, lambda: resources.encoder(chosen).documents)

    def footnotes(self, resources: Resources) -> Iterator[str]:
        """Yield that nothing ties answers to questions, where nothing does."""
        try:
            untied = self._recording(resources).untied(resources.questions(), resources.cases())
        except DataError:
            return  # raised where it is asked
        if untied:
            yield untied

    def _recording(self, resources: Resources) -> RecordedAnswers:
        runtime = resources.runtime.under_test

        def read() -> RecordedAnswers:
            return self._read(existing(self.recorded, runtime.root, confined=runtime.confined))

        return resources.once(f"recording {self.recorded}", read)

    def missing(self, runtime: Runtime) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the file where it is not there."""
        try:
            existing(self.recorded, runtime.root, confined=runtime.confined)
        except DataError as error:
            yield ("recorded",), f"{error}; an empty file is enough for `check` and `plan`"

    def examined(self, plan: TestPlan | None, runtime: Runtime) -> Iterator[Finding]:
        """Yield how many questions the file answers, which it lacks, and which nobody asks."""
        yield from super().examined(plan, runtime)
        if any(self.missing(runtime)):
            return
        path = existing(self.recorded, runtime.root, confined=runtime.confined)
        try:
            recording = self._read(path) if path.stat().st_size else None
        except DataError as error:
            yield Finding(place=("recorded",), sentence=str(error))
            return
        covered = [_coverage(plan, recording)] if plan and plan.cases else []
        if plan and plan.cases and recording is not None:
            try:
                untied = recording.untied(questions_hash(plan.cases), plan.cases)
                covered += filter(None, [untied])
                recording.require_same_questions(plan.cases)
            except DataError as error:
                yield Finding(place=("recorded",), sentence=str(error))
                return
        for sentence in covered:
            yield Finding(place=("recorded",), sentence=sentence, is_problem=False)

    def _read(self, path: Path) -> RecordedAnswers:
        return read_recorded(str(path), self.columns)


def _coverage(plan: TestPlan, answers: RecordedAnswers | None) -> str:
    """Return `250 of 300 questions answered`, what is missing first, and what nobody asks.

    Questions that embed an answer are counted only where that answer is there: before, nobody can
    ask them.
    """
    cases = {(case.suite, case.key): case for case in plan.cases if case.judge is None}
    answered = {n for n, case in cases.items() if answers and answers.answer(case) is not None}
    questions = [
        (suite, key)
        for (suite, key), case in cases.items()
        if case.embeds is None or (suite, case.embeds) in answered
    ]
    missing = [name[1] for name in questions if name not in answered]
    answered_sources = {source_of(key) for _, key in answered}
    summary = f"answers: {len(questions) - len(missing):,} of {len(questions):,} questions answered"
    if missing:
        summary += f"; first missing: {', '.join(map(quoted, missing[:_NAMED]))}"
    others = answers.unasked(plan.cases) if answers else []
    if answers and others:
        lines = "1 line answers" if len(others) == 1 else f"{len(others):,} lines answer"
        names = [str(name) for case in plan.cases for name in answers.names_of(case)[-1:]]
        near = suggestion(others[0], names[:_MOST_COMPARED])
        summary += f"; {lines} no question, first {quoted(others[0])} ({near})"
        is_gone = not set(map(source_of, others)) <= set(map(source_of, names))
        if is_gone and any(source_of(key) not in answered_sources for key in missing):
            summary += f"; {_CHANGED}"
    return summary


class RecordedSystem:
    """Looks cases up; embeds the recorded documents' texts only when RRS asks for it."""

    def __init__(
        self, read: Callable[[], RecordedAnswers], embedder: Callable[[], Embedder]
    ) -> None:
        """Take ways to get recording and embedder, called only if needed."""
        self._read = read
        self._embedder = embedder

    @cached_property
    def _recording(self) -> RecordedAnswers:
        return self._read()

    def execute(
        self, cases: Sequence[Case], progress: Progress, earlier: Executed = NOTHING
    ) -> Executed:
        """Return the recorded executions of the cases; missing ones are left out.

        Raises DataError where lines tell other questions than the cases ask.
        """
        del earlier  # a recording knows which documents it was shown
        progress.start("look up", len(cases), len(cases))
        self._recording.require_same_questions(cases)
        answer = self._recording.answer
        executions = {
            (case.suite, case.key): execution
            for case in cases
            if (execution := answer(case)) is not None
        }
        progress.finish()
        return executions

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return embeddings of the documents' texts; None where a text is not known."""
        return embedded(documents, self._embedder)

    def under_test(self) -> Mapping[str, str]:
        """Return the file's fingerprint."""
        return {"recorded": short(self._recording.fingerprint)}
