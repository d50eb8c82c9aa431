"""Answers in the rows of other tools and in traces, found by the text of the question.

Ragas and deepeval keep a JSON object a question: the question, the answer, the contexts; a trace
has them in its spans. No key of FairGate's is in them, so a row answers the case whose query, text
or prompt is its question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, Tag, field_validator

from fairgate.domain.applications import Reply
from fairgate.domain.cases import Case
from fairgate.domain.errors import ApplicationError, DataError
from fairgate.domain.executions import Execution
from fairgate.domain.fields import ByShape
from fairgate.domain.wording import quoted
from fairgate.io.json_paths import json_path
from fairgate.io.replies import ReplyPaths, reply_of
from fairgate.io.tables import read_json_objects
from fairgate.systems.prompts import DEFAULT_TEMPLATE, render_prompt
from fairgate.systems.replies import ResponsePaths, checked_path
from fairgate.systems.traces import read_traces


class RowPaths(ResponsePaths):
    """Where question, answer and documents stand in each row."""

    question: str = Field(default="$.question", description="Path of the question's text.")

    @field_validator("question")
    @classmethod
    def _question(cls, path: str) -> str:
        return checked_path(path, single=True)


OTLP = "otlp"
"""Traces with OpenInference's attributes, which have no rows."""
TOOLS = {
    "ragas": RowPaths(
        question="$.user_input", answer="$.response", documents="$.retrieved_contexts"
    ),
    "deepeval": RowPaths(
        question="$.input", answer="$.actual_output", documents="$.retrieval_context"
    ),
}
ColumnsField = Annotated[
    Annotated[Literal["ragas", "deepeval", "otlp"], Tag("<scalar>")]
    | Annotated[RowPaths, Tag("<mapping>")],
    ByShape,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowAnswers:
    """Replies by the text of their question."""

    replies: Mapping[str, Reply]
    fingerprint: str
    notices: tuple[str, ...] = ()
    """What of the file answers nothing."""

    def answer(self, case: Case) -> Execution | None:
        """Return the answer to a case; None where no row asks it, for repeats and crossed cases."""
        if case.repeat or case.documents_of is not None:
            return None
        text = case.text or case.query
        prompt = render_prompt(
            DEFAULT_TEMPLATE, instruction=case.instruction, text=text, documents=(), characters=1
        )
        asked = (case.query, text, prompt)
        reply = next((self.replies[each] for each in asked if each in self.replies), None)
        if reply is None:
            return None
        return Execution(
            key=case.key,
            suite=case.suite,
            documents=reply.documents,
            response=reply.answer,
            options=case.options,
        )


def read_rows(path: Path, columns: str | RowPaths) -> RowAnswers:
    """Read what another tool wrote: a row a question, or traces. Raises DataError with the place.

    Two different answers to one question are an error; the same row twice is one answer.
    """
    notices: list[str] = []
    answered = _of_traces(path, notices) if columns == OTLP else _of_rows(path, columns)
    replies: dict[str, Reply] = {}
    places: dict[str, str] = {}
    for place, question, reply in answered:
        first = places.setdefault(question, place)
        if replies.setdefault(question, reply) != reply:
            raise DataError(
                f"{place}: the question {quoted(question)} was answered differently at {first}; "
                "expected one answer a question: remove one of the two"
            )
    if not replies:
        found = notices[0] if notices else f"{path}: is empty; expected a JSON object a question"
        raise DataError(found)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return RowAnswers(replies=replies, fingerprint=digest, notices=tuple(notices))


def _of_rows(path: Path, columns: str | RowPaths) -> Iterator[tuple[str, str, Reply]]:
    chosen = TOOLS[columns] if isinstance(columns, str) else columns
    question = json_path(chosen.question)
    paths: ReplyPaths = chosen.paths
    if isinstance(columns, str):  # both tools write null where nothing was retrieved
        paths = replace(paths, may_lack_documents=True)
    for line, row in read_json_objects(str(path)):
        place = f"{path}:{line}"
        found = question.find(row)
        if not found or not isinstance(found[0], str):
            raise DataError(
                f"{place}: no text at `{chosen.question}`; expected the question, found "
                f"{', '.join(quoted(name) for name in list(row)[:8]) or 'nothing'}; see `columns`"
            )
        yield place, found[0], _reply(row, paths, place)


def _of_traces(path: Path, notices: list[str]) -> Iterator[tuple[str, str, Reply]]:
    """Yield the traces with a question and an answer; add a notice of those without."""
    traces = read_traces(str(path))
    paths = ReplyPaths(answer=json_path("$.answer"), documents=json_path("$.documents"))
    for trace in traces:
        if trace.question is not None and trace.answer is not None:
            documents = None if trace.documents is None else list(trace.documents)
            row = {"answer": trace.answer, "documents": documents}
            reply = _reply(row, replace(paths, may_lack_documents=True), trace.place)
            yield trace.place, trace.question, reply
    for lacking in ("question", "answer"):
        without = [trace for trace in traces if getattr(trace, lacking) is None]
        if without:
            notices.append(
                f"{without[0].place}: has no {lacking}, as {len(without):,} of {len(traces):,} "
                "traces; a trace that was cut off or failed answers nothing: record it again"
            )


def _reply(row: Mapping[str, Any], paths: ReplyPaths, place: str) -> Reply:
    try:
        return reply_of(row, paths)
    except ApplicationError as error:
        raise DataError(f"{place}: {error}") from None
