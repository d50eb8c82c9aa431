"""Answers that were produced elsewhere: a JSON Lines file, one answer a line (SPEC 10)."""

from __future__ import annotations

import json
import math
import re
import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from fairgate.domain.cases import Case
from fairgate.domain.errors import DataError
from fairgate.domain.executions import MOST_SHARED, Document, Execution, SharedDocuments
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.wording import suggestion
from fairgate.io.tables import json_object, read_json_objects
from fairgate.io.text_files import (
    MAX_TEXT_CHARACTERS,
    capped,
    checked_text,
    file_sha256,
    read_lines,
)

_Name = str | tuple[str, str]
"""The key, with the suite before it where the line names one."""
_FIELDS = ("key", "response", "documents", "options", "suite", "margin")
_PLAN_FIELDS = ("wave", "query", "prompt", "instruction", "labels")
"""What a line of `fairgate plan` carries: accepted, so that answers can be added to the plan."""
_DOCUMENT_FIELDS = ("id", "text", "label", "score")
_DOCUMENT_KEYS = frozenset(_DOCUMENT_FIELDS)
_MOST_DOCUMENTS = 1000
_MOST_LATEST = 4
_MOST_LISTS = 50_000
_MEMBER = '"documents": ['
_KEY = len(_MEMBER) - 1
_MOST_NEAR = 4
_read = partial(read_json, strict=False)
_PLAIN = r'[^"\\\x00-\x1f]'
"""A character that stands in a JSON text as itself."""
_BEGIN = re.compile(rf'{{(?:"suite": "({_PLAIN}*)", )?"key": "({_PLAIN}+)"')
_MOST_CHARACTERS = 4 * 2**20
"""Of all lines that are known, without their keys."""


class SeenDocuments:
    """The documents of the lines so far: equal ones are checked once, and held once."""

    def __init__(self) -> None:
        """Begin with none."""
        self.lists = SharedDocuments()
        self._known: dict[tuple[object, ...], Document] = {}
        self._known_lists: dict[tuple[object, ...], tuple[Document, ...]] = {}
        # `RepeatedDocuments` gives one object for a list that it meets again.
        self._latest: deque[tuple[object, tuple[Document, ...]]] = deque(maxlen=_MOST_LATEST)

    def documents(self, values: Sequence[object], place: str) -> tuple[Document, ...]:
        """Return the documents that a recording's objects are. Raises DataError."""
        for latest, documents in self._latest:
            if latest is values:
                return documents
        name = tuple(field for value in values for field in _named(value))
        try:
            found = self._known_lists.get(name)
        except TypeError:  # a list is no text; which field holds it is said below
            name = ()
            found = None
        if found is None:
            found = self.lists.held(
                self.document(value, f"{place}: documents[{i}]") for i, value in enumerate(values)
            )
            if name and len(self._known_lists) < _MOST_LISTS:
                self._known_lists[name] = found
        self._latest.appendleft((values, found))
        return found

    def document(self, value: object, place: str) -> Document:
        """Return the document that a recording's object is. Raises DataError."""
        name = _named(value)
        try:
            found = self._known.get(name)
        except TypeError:  # a list is no text; which field holds it is said below
            return _document(value, place)
        if found is None:
            found = _document(value, place)
            if len(self._known) < MOST_SHARED:
                self._known[name] = found
        return found


def _named(value: object) -> tuple[object, ...]:
    """Return what tells documents apart before they are checked: equal ones are equally valid."""
    if not isinstance(value, dict) or not value.keys() <= _DOCUMENT_KEYS:
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


class RecordedLine(NamedTuple):
    """A line of a recording."""

    suite: str
    """Empty where it names none."""
    key: str
    answer: RecordedAnswer


def line_from(record: Mapping[str, Any], place: str, seen: SeenDocuments) -> RecordedLine:
    """Return what the object of a line says. Raises DataError, which names `place`."""
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
    return RecordedLine(_text(record, "suite", place) or "", key, answer)


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

    def __init__(self, path: str, answers: Mapping[_Name, RecordedAnswer]) -> None:
        """Hold answers by key, those of lines for one suite by `(suite, key)`."""
        self.path = path
        self._answers = answers
        self._is_of_suites = any(isinstance(name, tuple) for name in answers)

    @property
    def fingerprint(self) -> str:
        """Identify the file's bytes."""
        return file_sha256(self.path)

    def __len__(self) -> int:
        """Return the number of different answers."""
        return len(self._answers)

    def __contains__(self, suite_and_key: tuple[str, str]) -> bool:
        """Return whether the file has a line for this case, even one without a response."""
        return suite_and_key in self._answers or suite_and_key[1] in self._answers

    def keys(self) -> list[tuple[str, str]]:
        """Return every `(suite, key)` in the order of the file; no suite named is ''."""
        return [name if isinstance(name, tuple) else ("", name) for name in self._answers]

    def answer(self, case: Case) -> Execution | None:
        """Return the answer to a case; None where the file has none."""
        return self.lookup(case.suite, case.key)

    def lookup(self, suite: str, key: str) -> Execution | None:
        """Return the answer to a case: the line that names the suite, else the one that names none.

        None where the file has no line for it.
        """
        found = self._answers.get((suite, key)) if self._is_of_suites else None
        if found is None:
            found = self._answers.get(key)
        return None if found is None else found.to(suite, key)


class RepeatedDocuments:
    """Reads lines as `read_json` does; equal lists of documents near each other are one object.

    Follow-ups of a source mostly get its documents, and these are most of a line: it is read
    without them.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._known: deque[tuple[str, list[Any]]] = deque(maxlen=_MOST_NEAR)
        # No file can hold it, so where it is found it stands for what was taken out.
        self._mark = secrets.token_hex(16)

    def __call__(self, text: str) -> Any:
        """Return the value of a line. Raises JsonError."""
        start = text.find(_MEMBER)
        if start < 0:
            return _read(text)
        for member, documents in self._known:
            if text.startswith(member, start):
                record = self._without(text, start, start + len(member))
                if record is not None:
                    record["documents"] = documents
                    return record
        record = _read(text)
        if isinstance(record, dict) and isinstance(record.get("documents"), list):
            documents, end = json.JSONDecoder().raw_decode(text, start + _KEY)
            if documents == record["documents"]:
                self._known.appendleft((text[start:end], record["documents"]))
        return record

    def _without(self, text: str, start: int, end: int) -> dict[str, Any] | None:
        """Return the line's object with the mark in the place of its documents.

        None where they are not the object's own, or where the line is broken: reading it whole
        says in which column.
        """
        try:
            record = _read(f'{text[:start]}"documents":"{self._mark}"{text[end:]}')
        except JsonError:
            return None
        own = isinstance(record, dict) and record.get("documents") == self._mark
        return record if own else None


class RepeatedLines:
    """The lines read so far, found by all they say beside their key.

    A line that begins with its key, or with suite and key, is the same JSON with another plain key
    in its place, so that what was read and checked once holds for it.

    A source's follow-ups mostly get its answer and its documents: such a line is read by its key
    alone.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[tuple[str | None, str], RecordedLine] = {}
        self._characters = 0

    def line(self, text: str) -> RecordedLine | None:
        """Return what a line says; None where it is to be read."""
        begin = _BEGIN.match(text)
        if begin is None or len(text) > MAX_TEXT_CHARACTERS:
            return None
        suite, key = begin.groups()
        same = self._known.get((suite, text[begin.end() :]))
        return None if same is None else RecordedLine(same.suite, key, same.answer)

    def add(self, text: str, line: RecordedLine) -> None:
        """Keep what a line was read as."""
        begin = _BEGIN.match(text)
        if begin is None or len(text) > MAX_TEXT_CHARACTERS:
            return
        if self._characters > _MOST_CHARACTERS:
            self._known.clear()
            self._characters = 0
        self._known[begin[1], text[begin.end() :]] = line
        self._characters += len(text)


def read_recorded(path: str) -> RecordedAnswers:
    """Read a recorded file. The same line twice is one answer.

    Raises DataError with `path:line` for broken JSON, unknown fields, wrong types, two different
    answers to one key, and a file without any line.
    """
    answers: dict[_Name, RecordedAnswer] = {}
    known, seen, documents = RepeatedLines(), SeenDocuments(), RepeatedDocuments()
    for number, text in read_lines(path):
        line = known.line(text)
        if line is None:
            record = json_object(text, path, number, documents)
            if record is None:
                continue
            line = line_from(record, f"{path}:{number}", seen)
            known.add(text, line)
        name = _name(line)
        first = answers.setdefault(name, line.answer)
        if first is not line.answer and first != line.answer:
            raise DataError(
                f"{path}:{number}: key {capped(line.key)} was answered differently on line "
                f"{_line_of(path, name)}; expected one answer a key: remove one of the two"
            )
    _refuse_shadows(path, answers)
    if not answers:
        raise DataError(
            f'{path}: is empty; expected lines such as {{"key": "s1", "response": "positive"}}: '
            "put each line of `fairgate plan POLICY` to your system and write its answer here"
        )
    return RecordedAnswers(path, answers)


def _name(line: RecordedLine) -> _Name:
    return (line.suite, line.key) if line.suite else line.key


def _line_of(path: str, name: _Name) -> int:
    """Return the first line of a suite and key; read again, because it is asked of wrong files."""
    wanted = name if isinstance(name, tuple) else ("", name)
    found = read_json_objects(path)
    return next(line for line, row in found if (row.get("suite") or "", row.get("key")) == wanted)


def _refuse_shadows(path: str, answers: Mapping[_Name, RecordedAnswer]) -> None:
    """Raise DataError where a line for one suite and a line for all suites answer differently."""
    for name, answer in answers.items():
        if isinstance(name, str):
            continue
        suite, key = name
        if answers.get(key, answer) != answer:
            one, other = sorted((_line_of(path, name), _line_of(path, key)))
            raise DataError(
                f"{path}:{other}: key {capped(key)} is answered differently on line {one}: one of "
                f"the lines is for suite {capped(suite)}, the other for every suite; name the "
                "suite on both, or remove one"
            )
