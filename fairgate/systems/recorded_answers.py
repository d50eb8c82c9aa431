"""Answers that were produced elsewhere: a row an answer, in any table that `io/tables.py` reads.

A row is found by its key, and may tell which question it answers, as lines of `fairgate plan` do.
Rows of other tools have no key: they are found by the text of their question (`columns`).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import PurePath
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import Field, Tag

from fairgate.domain.cases import TURNS, Case
from fairgate.domain.degrees import degrees_from
from fairgate.domain.errors import ApplicationError, DataError
from fairgate.domain.executions import (
    CorpusDocument,
    Document,
    Execution,
    SharedDocuments,
    served_from,
)
from fairgate.domain.schema import ByShape
from fairgate.domain.wording import quoted, suggestion
from fairgate.io.replies import ReplyPaths, json_path, reply_of
from fairgate.io.tables import (
    capped,
    checked_text,
    file_sha256,
    is_one_value,
    json_object,
    list_in_cell,
    read_json_objects,
    read_lines,
    read_rows,
)
from fairgate.systems.generator import prompt_alone
from fairgate.systems.service_fields import PartPath, ResponsePaths

Value = TypeVar("Value")
PLAN = "plan"
"""Field of a line: the hash of the questions that its file was written for."""
Name = str | tuple[str, str]
"""The key, with the suite before it where the line names one; the question where there is none."""
_FIELDS = (
    *("key", "response", "documents", "options", "suite", "margin", "degrees", "at_most"),
    "served",
)
_PLAN_FIELDS = (PLAN, "wave", "query", "before", "prompt", "instruction", "labels", "changed")
"""What a line of `fairgate plan` carries: accepted, so that answers can be added to the plan."""
_TABLES = (".csv", ".tsv", ".parquet", ".pq")
_BETWEEN = {"deepeval": "|"}
"""What stands between the texts of a cell, by the tool that writes so."""
_INVISIBLE = dict.fromkeys(map(ord, "\ufeff\u200b"))
_BEFORE_TEXT = r"""(?:^|[\n:>\]"'“‘„«*#`])\s*"""  # noqa: RUF001 -- quotation marks
_AFTER_TEXT = r"""\s*(?:$|[\n<\["'”’»*#`]|\w+:)"""
"""What stands around the text in a prompt: ends of lines, marks, labels such as `Answer:`."""
_NAMED = 3
"""Answers to other questions that are named."""
_as_json = json.JSONEncoder().encode
_as_text = json.encoder.encode_basestring_ascii
_DOCUMENT_FIELDS = ("id", "text", "label", "score")
_MOST_DOCUMENTS = 1000
_PLAIN = r'[^"\\\x00-\x1f]'
"""A character that stands in a JSON text as itself."""
_BEGIN = re.compile(rf'{{(?:"suite": "({_PLAIN}*)", )?"key": "({_PLAIN}+)"')
_MOST_KNOWN, _LONGEST_KNOWN = 5000, 4096


class RowPaths(ResponsePaths):
    """Where question, answer and documents stand in each row."""

    question: PartPath = Field(default="$.question", description="Path of the question's text.")


TOOLS = {
    "ragas": RowPaths(
        question="$.user_input", answer="$.response", documents="$.retrieved_contexts"
    ),
    "deepeval": RowPaths(
        question="$.input", answer="$.actual_output", documents="$.retrieval_context"
    ),
}
"""Where they stand in the rows that tools write."""
ColumnsField = Annotated[
    Annotated[Literal["ragas", "deepeval"], Tag("<scalar>")]
    | Annotated[RowPaths, Tag("<mapping>")],
    ByShape,
]


def line_from(
    record: Mapping[str, Any], location: str, shared: SharedDocuments
) -> tuple[str, str, Execution]:
    """Return suite (empty where it names none), key and answer of a line's object.

    Raises DataError, which names `location`.
    """
    _refuse_unknown(record, (*_FIELDS, *_PLAN_FIELDS), location)
    key = _text(record, "key", location)
    if not key:
        raise DataError(f"{location}: no `key`; expected the key of a case, see `fairgate plan`")
    if "response" not in record:
        raise DataError(
            f"{location}: no `response`; expected the answer as text, empty if there is none"
        )
    answer = Execution(
        response=_text(record, "response", location),
        documents=_documents(record.get("documents"), location, shared),
        margin=_number(record.get("margin"), f"{location}: margin"),
        options=_texts(record, "options", location),
        degrees=_stored(degrees_from, record, location),
        served=_stored(served_from, record.get("served"), location),
    )
    return _text(record, "suite", location) or "", key, answer


def _refuse_unknown(record: Mapping[str, Any], fields: tuple[str, ...], location: str) -> None:
    if field := next((field for field in record if field not in fields), ""):
        raise DataError(
            f"{location}: unknown field {capped(field)}; {suggestion(field, fields)} "
            f"Expected fields: {', '.join(fields)}"
        )


def _text(record: Mapping[str, Any], field: str, location: str) -> str | None:
    value = record.get(field)
    return None if value is None else checked_text(value, location, field)


def _texts(record: Mapping[str, Any], field: str, location: str) -> tuple[str, ...]:
    value = record.get(field)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise DataError(f"{location}: {field} is {capped(value)}; expected a list of texts or null")
    return tuple(checked_text(text, location, f"{field}[{i}]") for i, text in enumerate(value))


def _stored(read: Callable[[Any], Value], fields: Any, location: str) -> Value:
    try:
        return read(fields)
    except ValueError as error:
        raise DataError(f"{location}: {error}") from None


def _documents(
    value: object, location: str, shared: SharedDocuments
) -> tuple[Document, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > _MOST_DOCUMENTS:
        raise DataError(
            f"{location}: documents is {capped(value)}; expected a list of at most "
            f"{_MOST_DOCUMENTS:,} objects in rank order, or null"
        )
    return shared.list_of(
        _document(each, f"{location}: documents[{i}]") for i, each in enumerate(value)
    )


def _document(value: object, location: str) -> Document:
    if not isinstance(value, dict):
        raise DataError(
            f"{location} is {capped(value)}; expected an object with id, text, label, score"
        )
    _refuse_unknown(value, _DOCUMENT_FIELDS, location)
    id_ = value.get("id")
    if isinstance(id_, int) and not isinstance(id_, bool):
        id_ = str(id_)
    return Document(
        id=None if id_ is None else checked_text(id_, location, "id"),
        text=_text(value, "text", location),
        label=_text(value, "label", location),
        score=_number(value.get("score"), f"{location}: score"),
    )


def _number(value: object, location: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{location} is {capped(value)}; expected a finite number or null")
    return float(value)


def questions_hash(cases: Sequence[Case]) -> str:
    """Return a hash of what cases ask by key; their order and their suites do not matter.

    Cases whose question follows from answers are left out: `fairgate plan` does not write them.
    """
    digest, separator = hashlib.sha256(), ""
    keys = ((_as_text(case.key), place) for place, case in enumerate(cases) if not case.waits)
    # One key after the other, as the text of a large plan takes much memory.
    for key, several in groupby(sorted(keys), key=itemgetter(0)):
        lines = {f"[{key}, {_asked_as_text(cases[place])}" for _, place in several}
        for line in sorted(lines):
            digest.update(f"{separator}{line}".encode())
            separator = "\n"
    return digest.hexdigest()[:16]


def _asked_as_text(case: Case) -> str:
    """Return what a case asks as the rest of a list in JSON, behind its key."""
    others = "[], [], null]"
    if case.before or case.options or case.changed:
        changed = case.changed and [case.changed.id, case.changed.text]
        others = _as_json([case.before, case.options, changed])[1:]
    return f"{_as_text(case.query)}, {_as_text(prompt_alone(case))}, {others}"


class RecordedQuestion(NamedTuple):
    """What a line tells of the question that it answers; None where it does not."""

    line: int
    query: str | None
    prompt: str | None
    instruction: str | None
    before: tuple[str, ...] | None
    changed: Mapping[str, Any] | None

    def ties(self, case: Case) -> bool:
        """Return whether it tells enough to know that it answers this case and no other one."""
        return (
            (self.query is not None or self.prompt is not None)
            and (self.before is not None or not case.before)
            and (self.changed is not None or case.changed is None)
        )

    def difference(self, case: Case) -> tuple[str, str] | None:
        """Return its own question and the case's where they differ, else None.

        White space and Unicode's ways to write a letter count alike. A prompt may be a longer one,
        which holds instruction and text.
        """
        prompt, is_tied = self.prompt, self.query is not None
        if prompt is not None and not _is_prompt_of(prompt, case, is_tied=is_tied):
            return prompt, prompt_alone(case)
        for recorded, planned in self._beside(case):
            if recorded in (None, planned):
                continue
            if folded_question(recorded) != folded_question(planned):
                return recorded, planned
        return None

    def _beside(self, case: Case) -> Iterator[tuple[Any, str]]:
        """Yield each part of a question that it tells, but the prompt, with the case's own."""
        yield self.query, case.query
        yield self.instruction, case.instruction
        if self.before is not None:
            yield TURNS.join(self.before), TURNS.join(case.before)
        if self.changed is not None:
            planned = case.changed or CorpusDocument(id="", text="no changed document")
            yield str(self.changed.get("text")), planned.text
            yield str(self.changed.get("id")), planned.id


def _question_of(record: Mapping[str, Any], location: str, line: int) -> RecordedQuestion | None:
    """Return what a line tells of its question, None where it tells nothing. Raises DataError."""
    if record.keys().isdisjoint(RecordedQuestion._fields):
        return None
    changed = record.get("changed")
    if changed is not None and not isinstance(changed, dict):
        raise DataError(
            f"{location}: changed is {capped(changed)}; expected an object with id and text or null"
        )
    query, prompt, instruction = (  # an empty cell of a table tells nothing
        _text(record, field, location) or None for field in ("query", "prompt", "instruction")
    )
    before = _texts(record, "before", location) if record.get("before") is not None else None
    question = RecordedQuestion(line, query, prompt, instruction, before, changed)
    return None if question[1:] == (None,) * 5 else question


def _is_prompt_of(prompt: str, case: Case, *, is_tied: bool) -> bool:
    """Return whether a prompt is the case's own, or a longer one with its instruction and text.

    Where nothing else ties a line to its question, the text must stand apart in the prompt: the
    text of a source that was cut is a part of what stood there before.
    """
    if folded_question(prompt) == folded_question(prompt_alone(case)):
        return True
    instruction, text = (_pattern(part) for part in (case.instruction, case.text))
    words = unicodedata.normalize("NFC", prompt).translate(_INVISIBLE)
    rest, count = re.subn(instruction, "\n", words) if instruction else (words, 1)
    if is_tied:
        return bool(count) and re.search(text, words) is not None
    return bool(count) and re.search(f"{_BEFORE_TEXT}{text}{_AFTER_TEXT}", rest) is not None


def _pattern(text: str) -> str:
    """Return a pattern of a text in which all white space counts alike."""
    return r"\s+".join(map(re.escape, folded_question(text).split()))


def folded_question(text: str) -> str:
    """Question in the form in which two of them are compared: NFC, with white space as one."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_INVISIBLE).split())


class RecordedAnswers:
    """The answers of a recorded file, found by suite and key."""

    one_instruction = "a `suite` in each line, as in those of `fairgate plan`"
    """What would tell apart answers to one name that is asked with several instructions."""

    def __init__(
        self,
        path: str,
        answers: Mapping[Name, Execution],
        *,
        questions: Mapping[Name, Sequence[RecordedQuestion]] | None = None,
        plans: Iterable[str] = (),
    ) -> None:
        """Hold answers by key, those of lines for one suite by `(suite, key)`.

        `questions` has what lines say of their questions, where they do; `plans` are the hashes of
        plans in the file.
        """
        self.path = path
        self.answers = answers
        self._questions = questions or {}
        self._plans = frozenset(plans)

    @property
    def fingerprint(self) -> str:
        """Identify the file's bytes."""
        return file_sha256(self.path)

    def keys(self) -> list[tuple[str, str]]:
        """Return every `(suite, key)` in the order of the file; no suite named is ''."""
        return [name if isinstance(name, tuple) else ("", name) for name in self.answers]

    def names_of(self, case: Case) -> Sequence[Name]:
        """Return by what lines may name a case, what says most first."""
        return (case.suite, case.key), case.key

    def unasked(self, cases: Iterable[Case]) -> list[str]:
        """List the names of lines that answer no case."""
        asked = {name for case in cases for name in self.names_of(case)}
        # The keys of attribution's questions follow from the first answers.
        return [
            key
            for suite, key in self.keys()
            if not {key, (suite, key)} & asked and "@documents=" not in key
        ]

    def answer(self, case: Case) -> Execution | None:
        """Return the answer to a case: the line that names the suite, else the one that names none.

        None where the file has no line for it.
        """
        name = self.name_of(case)
        return None if name is None else self.answers[name]

    def name_of(self, case: Case) -> Name | None:
        """Return by what the file names a case; None where it has no line for it."""
        for name in self.names_of(case):
            if name in self.answers:
                return name
        return None

    def untied(self, plan: str, cases: Iterable[Case]) -> str:
        """Return a sentence where nothing shows what the answers answer; empty where all do.

        `plan` is the hash of the questions that are put to it, empty where it is not known;
        `cases` ask them. Raises DataError where the file was written for other ones.
        """
        if plan and self._plans == {plan}:
            return ""
        nothing = Case(key="", query="", suite="", instruction="", labels=(), cluster="")
        tied = {name for name in self._questions if self._ties(name, nothing)}
        for case in cases if tied else ():
            if (name := self.name_of(case)) in tied and not self._ties(name, case):
                tied.remove(name)
        unknown = len(self.answers) - len(tied)
        if not unknown:
            return ""
        lines = f"{unknown:,} of {len(self.answers):,} lines"
        if plan and self._plans:
            raise DataError(
                f"{self.path}: was written for other questions than the plan's (`plan` is "
                f"{', '.join(sorted(self._plans))}, expected {plan}), and {lines} do not tell "
                "theirs: answer the questions of `fairgate plan` again, and keep the `query` of "
                "each line, so that only what changed has to be asked"
            )
        return (
            f"nothing ties {lines} of the recorded answers to their questions: where a source has "
            "another text now, the answer to its old one counts. Keep the `query` of the lines of "
            "`fairgate plan`, and their `before` and `changed` where they have some, or the `plan` "
            "of its first one"
        )

    def _ties(self, name: Name, case: Case) -> bool:
        return all(question.ties(case) for question in self._questions[name])

    def require_same_questions(self, cases: Iterable[Case]) -> None:
        """Raise DataError that counts and names the lines that tell another question than a case.

        Also where one answer is for several instructions, because its name tells none.
        """
        instructions: dict[Name, str] = {}
        others: dict[int, tuple[str, tuple[str, str]]] = {}
        for case in cases:
            names = self.names_of(case)
            name = next((name for name in names if name in self.answers), None)
            if name is None:
                continue
            instruction = case.instruction
            if name != names[0]:
                instruction = instructions.setdefault(name, instruction)
            if instruction != case.instruction:
                raise DataError(
                    f"{self.path}: {quoted(str(name))} is asked with the instructions "
                    f"{quoted(instruction)} and {quoted(case.instruction)}, and the file does not "
                    f"say which of them it answers; expected {self.one_instruction}"
                )
            for question in self._questions.get(name, ()):
                both = question.difference(case)
                if both is not None:
                    others.setdefault(question.line, (case.key, both))
        if not others:
            return
        examples = "; ".join(
            f"{quoted(key)} on line {line} answers {quoted(recorded)}, "
            f"the plan asks {quoted(planned)}"
            for line, (key, (recorded, planned)) in sorted(others.items())[:_NAMED]
        )
        count = "1 line answers" if len(others) == 1 else f"{len(others):,} lines answer"
        raise DataError(
            f"{self.path}: {count} another question than the plan asks under its key: {examples}. "
            "Answer the questions of `fairgate plan` again, or bring back the sources that were "
            "asked"
        )


class RowAnswers(RecordedAnswers):
    """Answers by the folded text of their question: every row tells what it answers."""

    one_instruction = "the `prompt` of `fairgate plan` as the question of each row"

    def names_of(self, case: Case) -> Sequence[Name]:
        """Return the texts of a case: prompt, text, query; none where no row tells it apart."""
        is_told_apart = (
            case.repeat or case.documents_of is not None or case.changed is not None or case.before
        )
        texts = prompt_alone(case), case.text, case.query
        return () if is_told_apart else [folded_question(text) for text in texts]

    def answer(self, case: Case) -> Execution | None:
        """Return the answer to a case, whose options were shown as they stand in it."""
        answer = super().answer(case)
        return None if answer is None else answer._replace(options=case.options)

    def untied(self, plan: str, cases: Iterable[Case]) -> str:
        """Return nothing: every row tells its question."""
        del plan, cases
        return ""


class _Answered(NamedTuple):
    """One row that was read."""

    location: str
    name: Name
    called: str
    """Key or question, as it was written."""
    answer: Execution
    question: RecordedQuestion | None = None
    plan: str = ""


def read_recorded(path: str, columns: str | RowPaths | None = None) -> RecordedAnswers:
    """Read a file of answers, by key or, with `columns`, by the question that rows tell.

    The same row twice is one answer. Raises DataError with `path:line` for what is broken, unknown
    fields, wrong types, two different answers to one name, also where a line for one suite and one
    for all differ, and a file without any row.
    """
    answers: dict[Name, Execution] = {}
    questions: dict[Name, list[RecordedQuestion]] = {}
    plans: set[str] = set()
    noun = "key" if columns is None else "question"
    for row in _answered(path, columns):
        if answers.setdefault(row.name, row.answer) != row.answer:
            first, *_ = _places(_answered(path, columns), {row.name})
            raise DataError(
                f"{row.location}: {noun} {quoted(row.called)} was answered differently at {first}; "
                f"expected one answer a {noun}: remove one of the two"
            )
        if row.question is not None:
            questions.setdefault(row.name, []).append(row.question)
        plans.add(row.plan)
    for name, answer in answers.items():
        if isinstance(name, tuple) and answers.get(name[1], answer) != answer:
            earlier, later = _places(_answered(path, columns), {name, name[1]})
            raise DataError(
                f"{later}: key {capped(name[1])} is answered differently at {earlier}: one of the "
                f"two is for suite {capped(name[0])}, the other for every suite; name the suite on "
                "both, or remove one"
            )
    if not answers:
        wanted = (
            'lines such as {"key": "s1", "response": "positive"}: put each line of `fairgate plan '
            "POLICY` to your system and write its answer here"
        )
        wanted = wanted if columns is None else "a row a question"
        raise DataError(f"{path}: is empty; expected {wanted}")
    if columns is None:
        return RecordedAnswers(path, answers, questions=questions, plans=plans - {""})
    return RowAnswers(path, answers)


def _places(rows: Iterable[_Answered], names: Container[Name]) -> list[str]:
    """Return where each name stands first, in the order of the file."""
    places: dict[Name, str] = {}
    for row in rows:
        if row.name in names:
            places.setdefault(row.name, row.location)
    return [*places.values()]


def _answered(path: str, columns: str | RowPaths | None) -> Iterator[_Answered]:
    return _by_key(path) if columns is None else _by_question(path, columns)


def _rows(path: str, documents: str, between: str = "") -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield line and values of each row; in tables the cells of `documents` are lists as texts."""
    if PurePath(path).suffix.lower() not in _TABLES:
        yield from read_json_objects(path)
        return
    for row in read_rows(path):
        values = dict(row.values)
        if isinstance(cell := values.get(documents), str):
            values[documents] = list_in_cell(cell, f"{path}:{row.line}", documents, between=between)
        yield row.line, values


def _by_key(path: str) -> Iterator[_Answered]:
    """Yield the rows of a file with keys.

    A line that begins with its key, or with suite and key, and goes on as one that was read is the
    same answer: a source's follow-ups mostly get its answer and its documents.
    """
    shared = SharedDocuments()
    known: dict[tuple[str | None, str], Execution] = {}
    for line, text, entry in _lines(path):
        location = f"{path}:{line}"
        begin = _BEGIN.match(text) if len(text) <= _LONGEST_KNOWN else None
        same = known.get((begin[1], text[begin.end() :])) if begin else None
        if begin and same is not None:
            yield _Answered(
                location, (begin[1], begin[2]) if begin[1] else begin[2], begin[2], same
            )
            continue
        record = json_object(text, path, line) if entry is None else entry
        if record is None:
            continue
        suite, key, answer = line_from(record, location, shared)
        question = _question_of(record, location, line)
        plan = _text(record, PLAN, location) or ""
        # What begins the line need not be its suite and key: they may stand again at its end.
        if begin and (begin[1] or "", begin[2]) == (suite, key) and question is None and not plan:
            if len(known) > _MOST_KNOWN:
                known.clear()
            known[begin[1], text[begin.end() :]] = answer
        yield _Answered(location, (suite, key) if suite else key, key, answer, question, plan[:64])


def _lines(path: str) -> Iterator[tuple[int, str, Mapping[str, Any] | None]]:
    """Yield each line of a file, or each row of a table or of an array, with its line."""
    if PurePath(path).suffix.lower() in _TABLES or is_one_value(path):
        yield from ((line, "", record) for line, record in _rows(path, "documents"))
    else:
        yield from ((line, text, None) for line, text in read_lines(path))


def _by_question(path: str, columns: str | RowPaths) -> Iterator[_Answered]:
    chosen = TOOLS[columns] if isinstance(columns, str) else columns
    question, paths = json_path(chosen.question), chosen.paths
    if isinstance(columns, str):  # tools write null where nothing was retrieved
        paths = replace(paths, may_lack_documents=True)
    first = paths.documents.steps[0] if paths.documents is not None else None
    for line, row in _rows(path, str(first), _BETWEEN.get(str(columns), "")):
        location = f"{path}:{line}"
        texts = question.find(row)
        if not texts or not isinstance(texts[0], str):
            raise DataError(
                f"{location}: no text at `{chosen.question}`; expected the question, found "
                f"{', '.join(quoted(name) for name in list(row)[:8]) or 'nothing'}; see `columns`"
            )
        answer = _reply(row, paths, location)
        yield _Answered(location, folded_question(texts[0]), texts[0], answer)


def _reply(row: Mapping[str, Any], paths: ReplyPaths, location: str) -> Execution:
    try:
        return reply_of(row, paths)
    except ApplicationError as error:
        raise DataError(f"{location}: {error}") from None
