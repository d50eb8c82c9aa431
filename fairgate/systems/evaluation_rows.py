"""Answers in the rows of other evaluation tools, found by the text of the question.

Ragas and deepeval keep a JSON object a question: the question, the answer, the contexts. No key of
FairGate's is in them, so a row answers the case whose query, text or prompt is its question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Tag, field_validator

from fairgate.adapters.applications.json_paths import json_path
from fairgate.adapters.applications.replies import ReplyPaths, reply_of
from fairgate.adapters.files.tables import read_json_objects
from fairgate.domain.applications import Reply
from fairgate.domain.cases import Case
from fairgate.domain.errors import ApplicationError, DataError
from fairgate.domain.executions import Execution
from fairgate.domain.wording import quoted
from fairgate.engine.prompts import DEFAULT_TEMPLATE, render_prompt
from fairgate.schema.fields import ByShape
from fairgate.systems.replies import ResponsePaths, checked_path


class RowPaths(ResponsePaths):
    """Where question, answer and documents stand in each row."""

    question: str = Field(default="$.question", description="Path of the question's text.")

    @field_validator("question")
    @classmethod
    def _question(cls, path: str) -> str:
        return checked_path(path, single=True)


TOOLS = {
    "ragas": RowPaths(
        question="$.user_input", answer="$.response", documents="$.retrieved_contexts"
    ),
    "deepeval": RowPaths(
        question="$.input", answer="$.actual_output", documents="$.retrieval_context"
    ),
}
ColumnsField = Annotated[
    Annotated[Literal["ragas", "deepeval"], Tag("<scalar>")]
    | Annotated[RowPaths, Tag("<mapping>")],
    ByShape,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowAnswers:
    """Replies by the text of their question."""

    replies: Mapping[str, Reply]
    fingerprint: str

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
    """Read a JSON Lines file of another tool. Raises DataError with `path:line`.

    Two different answers to one question are an error; the same row twice is one answer.
    """
    chosen = TOOLS[columns] if isinstance(columns, str) else columns
    question = json_path(chosen.question)
    paths: ReplyPaths = chosen.paths
    if isinstance(columns, str):  # both tools write null where nothing was retrieved
        paths = replace(paths, may_lack_documents=True)
    replies: dict[str, Reply] = {}
    lines: dict[str, int] = {}
    for line, row in read_json_objects(str(path)):
        found = question.find(row)
        if not found or not isinstance(found[0], str):
            raise DataError(
                f"{path}:{line}: no text at `{chosen.question}`; expected the question, found "
                f"{', '.join(quoted(name) for name in list(row)[:8]) or 'nothing'}; see `columns`"
            )
        try:
            reply = reply_of(row, paths)
        except ApplicationError as error:
            raise DataError(f"{path}:{line}: {error}") from None
        first = lines.setdefault(found[0], line)
        if replies.setdefault(found[0], reply) != reply:
            raise DataError(
                f"{path}:{line}: the question {quoted(found[0])} was answered differently on line "
                f"{first}; expected one answer a question: remove one of the two"
            )
    if not replies:
        raise DataError(f"{path}: is empty; expected a JSON object a question")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return RowAnswers(replies=replies, fingerprint=digest)
