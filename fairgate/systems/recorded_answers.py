"""Answers that were produced elsewhere: a JSON Lines file, one answer a line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairgate.domain.cases import Case
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Document, Execution, SharedDocuments
from fairgate.domain.wording import suggestion
from fairgate.io.tables import (
    MAX_TEXT_CHARACTERS,
    capped,
    checked_text,
    file_sha256,
    json_object,
    read_json_objects,
    read_lines,
)

_Name = str | tuple[str, str]
"""The key, with the suite before it where the line names one."""
_FIELDS = ("key", "response", "documents", "options", "suite", "margin")
_PLAN_FIELDS = ("wave", "query", "before", "prompt", "instruction", "labels", "changed")
"""What a line of `fairgate plan` carries: accepted, so that answers can be added to the plan."""
_DOCUMENT_FIELDS = ("id", "text", "label", "score")
_MOST_DOCUMENTS = 1000
_MOST_LISTS = 50_000
_PLAIN = r'[^"\\\x00-\x1f]'
"""A character that stands in a JSON text as itself."""
_BEGIN = re.compile(rf'{{(?:"suite": "({_PLAIN}*)", )?"key": "({_PLAIN}+)"')
_MOST_CHARACTERS = 4 * 2**20
"""Of all lines that are known, without their keys."""


class SeenDocuments:
    """The documents of the lines so far: equal lists are checked once, and held once."""

    def __init__(self) -> None:
        """Begin with none."""
        self._shared = SharedDocuments()
        self._known: dict[tuple[object, ...], tuple[Document, ...]] = {}

    def documents(self, values: Sequence[object], place: str) -> tuple[Document, ...]:
        """Return the documents that a recording's objects are. Raises DataError."""
        name = tuple(field for value in values for field in _named(value))
        try:
            found = self._known.get(name)
        except TypeError:  # a list is no text; which field holds it is said below
            found = None
        if found is None:
            found = self._shared.held(
                _document(value, f"{place}: documents[{i}]") for i, value in enumerate(values)
            )
            if len(self._known) < _MOST_LISTS:
                self._known[name] = found
        return found


def _named(value: object) -> tuple[object, ...]:
    """Return what tells documents apart before they are checked: equal ones are equally valid."""
    if not isinstance(value, dict) or not value.keys() <= set(_DOCUMENT_FIELDS):
        return (value,)
    id_, score = value.get("id"), value.get("score")
    # With the types, because 1, 1.0 and True are equal and not equally valid.
    return type(id_), id_, value.get("text"), value.get("label"), type(score), score


class RecordedAnswer(NamedTuple):
    """What a line says beside suite and key. Lines that say the same can share one."""

    response: str | None
    documents: tuple[Document, ...] | None
    margin: float | None
    options: tuple[str, ...]

    def to(self, suite: str, key: str) -> Execution:
        """Return the execution of the case that it answers."""
        return Execution(key, suite, self.documents, self.response, self.margin, self.options)


def line_from(
    record: Mapping[str, Any], place: str, seen: SeenDocuments
) -> tuple[str, str, RecordedAnswer]:
    """Return suite (empty where it names none), key and answer of a line's object.

    Raises DataError, which names `place`.
    """
    _refuse_unknown(record, (*_FIELDS, *_PLAN_FIELDS), place)
    key = _text(record, "key", place)
    if not key:
        raise DataError(f"{place}: no `key`; expected the key of a case, see `fairgate plan`")
    if "response" not in record:
        raise DataError(
            f"{place}: no `response`; expected the answer as text, empty if there is none"
        )
    answer = RecordedAnswer(
        response=_text(record, "response", place),
        documents=_documents(record.get("documents"), place, seen),
        margin=_number(record.get("margin"), f"{place}: margin"),
        options=_options(record.get("options"), place),
    )
    return _text(record, "suite", place) or "", key, answer


def _refuse_unknown(record: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for field in record:
        if field not in known:
            raise DataError(
                f"{place}: unknown field {capped(field)}; {suggestion(field, known)} "
                f"Expected fields: {', '.join(known)}"
            )


def _text(record: Mapping[str, Any], field: str, place: str) -> str | None:
    value = record.get(field)
    return None if value is None else checked_text(value, place, field)


def _options(value: object, place: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise DataError(f"{place}: options is {capped(value)}; expected a list of texts or null")
    return tuple(checked_text(option, place, f"options[{i}]") for i, option in enumerate(value))


def _documents(value: object, place: str, seen: SeenDocuments) -> tuple[Document, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > _MOST_DOCUMENTS:
        raise DataError(
            f"{place}: documents is {capped(value)}; expected a list of at most "
            f"{_MOST_DOCUMENTS:,} objects in rank order, or null"
        )
    return seen.documents(value, place)


def _document(value: object, place: str) -> Document:
    if not isinstance(value, dict):
        raise DataError(
            f"{place} is {capped(value)}; expected an object with id, text, label, score"
        )
    _refuse_unknown(value, _DOCUMENT_FIELDS, place)
    id_ = value.get("id")
    if isinstance(id_, int) and not isinstance(id_, bool):
        id_ = str(id_)
    return Document(
        id=None if id_ is None else checked_text(id_, place, "id"),
        text=_text(value, "text", place),
        label=_text(value, "label", place),
        score=_number(value.get("score"), f"{place}: score"),
    )


def _number(value: object, place: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{place} is {capped(value)}; expected a finite number or null")
    return float(value)


class RecordedAnswers:
    """The answers of a recorded file, found by suite and key."""

    notices: tuple[str, ...] = ()

    def __init__(self, path: str, answers: Mapping[_Name, RecordedAnswer]) -> None:
        """Hold answers by key, those of lines for one suite by `(suite, key)`."""
        self.path = path
        self._answers = answers
        self._is_of_suites = any(isinstance(name, tuple) for name in answers)

    @property
    def fingerprint(self) -> str:
        """Identify the file's bytes."""
        return file_sha256(self.path)

    def keys(self) -> list[tuple[str, str]]:
        """Return every `(suite, key)` in the order of the file; no suite named is ''."""
        return [name if isinstance(name, tuple) else ("", name) for name in self._answers]

    def answer(self, case: Case) -> Execution | None:
        """Return the answer to a case: the line that names the suite, else the one that names none.

        None where the file has no line for it.
        """
        suite, key = case.suite, case.key
        found = self._answers.get((suite, key)) if self._is_of_suites else None
        found = found or self._answers.get(key)
        return None if found is None else found.to(suite, key)


def read_recorded(path: str) -> RecordedAnswers:
    """Read a recorded file. The same line twice is one answer.

    Raises DataError with `path:line` for broken JSON, unknown fields, wrong types, two different
    answers to one key, also where a line for one suite and one for all differ, and a file without
    any line.
    """
    answers: dict[_Name, RecordedAnswer] = {}
    known, seen = _KnownLines(), SeenDocuments()
    for number, text in read_lines(path):
        if (line := known.line(text)) is None:
            if (record := json_object(text, path, number)) is None:
                continue
            line = known.add(text, line_from(record, f"{path}:{number}", seen))
        suite, key, answer = line
        name = (suite, key) if suite else key
        first = answers.setdefault(name, answer)
        if first is not answer and first != answer:
            raise DataError(
                f"{path}:{number}: key {capped(key)} was answered differently on line "
                f"{_line_of(path, name)}; expected one answer a key: remove one of the two"
            )
    for name, answer in answers.items():
        if isinstance(name, tuple) and answers.get(name[1], answer) != answer:
            one, other = sorted((_line_of(path, name), _line_of(path, name[1])))
            raise DataError(
                f"{path}:{other}: key {capped(name[1])} is answered differently on line {one}: one "
                f"of the lines is for suite {capped(name[0])}, the other for every suite; name the "
                "suite on both, or remove one"
            )
    if not answers:
        raise DataError(
            f'{path}: is empty; expected lines such as {{"key": "s1", "response": "positive"}}: '
            "put each line of `fairgate plan POLICY` to your system and write its answer here"
        )
    return RecordedAnswers(path, answers)


class _KnownLines:
    """The lines read so far, found by all they say beside their key.

    A line that begins with its key, or with suite and key, is the same JSON with another plain key
    in its place, so that what was read and checked once holds for it: a source's follow-ups mostly
    get its answer and its documents.
    """

    def __init__(self) -> None:
        self._answers: dict[tuple[str | None, str], RecordedAnswer] = {}
        self._characters = 0

    def line(self, text: str) -> tuple[str, str, RecordedAnswer] | None:
        """Return what a line says; None where it is to be read."""
        begin = _BEGIN.match(text)
        if begin is None or len(text) > MAX_TEXT_CHARACTERS:
            return None
        same = self._answers.get((begin[1], text[begin.end() :]))
        return None if same is None else (begin[1] or "", begin[2], same)

    def add(
        self, text: str, line: tuple[str, str, RecordedAnswer]
    ) -> tuple[str, str, RecordedAnswer]:
        """Keep what a line was read as, and return that."""
        begin = _BEGIN.match(text)
        # What begins the line need not be its suite and key: the suite may stand at its end.
        if begin and line[:2] == (begin[1] or "", begin[2]) and len(text) <= MAX_TEXT_CHARACTERS:
            if self._characters > _MOST_CHARACTERS:
                self._answers.clear()
                self._characters = 0
            self._answers[begin[1], text[begin.end() :]] = line[2]
            self._characters += len(text)
        return line


def _line_of(path: str, name: _Name) -> int:
    """Return the first line of a suite and key; read again, because it is asked of wrong files."""
    wanted = name if isinstance(name, tuple) else ("", name)
    found = read_json_objects(path)
    return next(line for line, row in found if (row.get("suite") or "", row.get("key")) == wanted)
