"""Answers that were produced elsewhere: a JSON Lines file, one answer a line (SPEC 10)."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairgate.adapters.files.lines import capped, checked_text, file_sha256
from fairgate.adapters.files.repeated_documents import RepeatedDocuments
from fairgate.adapters.files.tables import read_json_objects
from fairgate.domain.cases import Case
from fairgate.domain.errors import DataError
from fairgate.domain.executions import MOST_SHARED, Document, Execution, SharedDocuments
from fairgate.domain.records import flat
from fairgate.domain.wording import suggestion

_FIELDS = ("key", "response", "documents", "options", "suite", "margin")
_PLAN_FIELDS = ("wave", "query", "prompt", "instruction", "labels")
"""What a line of `fairgate plan` carries: accepted, so that answers can be added to the plan."""
_DOCUMENT_FIELDS = ("id", "text", "label", "score")
_DOCUMENT_KEYS = frozenset(_DOCUMENT_FIELDS)
_MOST_DOCUMENTS = 1000
_MOST_TEXTS = 1000
_MOST_LATEST = 4
_AS_JSON = json.JSONEncoder(ensure_ascii=False).encode
_MOST_LISTS = 50_000


class RecordedAnswers:
    """The executions of a recorded file, found by suite and key."""

    def __init__(self, path: str, executions: dict[tuple[str, str], Execution]) -> None:
        """Hold executions by `(suite, key)`; the suite is empty where the line names none."""
        self.path = path
        self._executions = executions

    @property
    def fingerprint(self) -> str:
        """Identify the file's bytes."""
        return file_sha256(self.path)

    def __len__(self) -> int:
        """Return the number of different answers."""
        return len(self._executions)

    def __contains__(self, suite_and_key: tuple[str, str]) -> bool:
        """Return whether the file has a line for this case, even one without a response."""
        suite, key = suite_and_key
        return (suite, key) in self._executions or ("", key) in self._executions

    def keys(self) -> list[tuple[str, str]]:
        """Return every `(suite, key)` in the order of the file; no suite named is ''."""
        return list(self._executions)

    def answer(self, case: Case) -> Execution | None:
        """Return the answer to a case; None where the file has none."""
        return self.lookup(case.suite, case.key)

    def lookup(self, suite: str, key: str) -> Execution | None:
        """Return the answer to a case: the line that names the suite, else the one that names none.

        None where the file has no line for it.
        """
        found = self._executions.get((suite, key)) or self._executions.get(("", key))
        if found is None or found.suite == suite:
            return found
        # It takes the place of the line's, so that a million answers are not held twice.
        named = self._executions["", key] = Execution(
            key=key,
            suite=suite,
            documents=found.documents,
            response=found.response,
            margin=found.margin,
            options=found.options,
        )
        return named


def read_recorded(path: str) -> RecordedAnswers:
    """Read a recorded file. The same line twice is one answer.

    Raises DataError with `path:line` for broken JSON, unknown fields, wrong types, two different
    answers to one key, and a file without any line.
    """
    executions: dict[tuple[str, str], Execution] = {}
    seen = SeenDocuments()
    for line, record in read_json_objects(path, RepeatedDocuments()):
        execution = execution_from(record, f"{path}:{line}", seen)
        name = (execution.suite, execution.key)
        first = executions.setdefault(name, execution)
        if first is not execution and first != execution:
            raise DataError(
                f"{path}:{line}: key {capped(execution.key)} was answered differently on line "
                f"{_line_of(path, name)}; expected one answer a key: remove one of the two"
            )
    _refuse_shadows(path, executions)
    if not executions:
        raise DataError(
            f'{path}: is empty; expected lines such as {{"key": "s1", "response": "positive"}}: '
            "put each line of `fairgate plan POLICY` to your system and write its answer here"
        )
    return RecordedAnswers(path, executions)


def _line_of(path: str, name: tuple[str, str]) -> int:
    """Return the first line of a suite and key; read again, because it is asked of wrong files."""
    found = read_json_objects(path)
    return next(line for line, row in found if (row.get("suite") or "", row.get("key")) == name)


def _refuse_shadows(path: str, executions: Mapping[tuple[str, str], Execution]) -> None:
    """Raise DataError where a line for one suite and a line for all suites answer differently."""
    for (suite, key), execution in executions.items():
        general = executions.get(("", key))
        if suite and general is not None and replace(general, suite=suite) != execution:
            one, other = sorted(_line_of(path, (each, key)) for each in (suite, ""))
            raise DataError(
                f"{path}:{other}: key {capped(key)} is answered differently on line {one}: one of "
                f"the lines is for suite {capped(suite)}, the other for every suite; name the "
                "suite on both, or remove one"
            )


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


def execution_from(record: Mapping[str, Any], place: str, seen: SeenDocuments) -> Execution:
    """Return the execution that a line describes. Raises DataError, which names `place`."""
    _refuse_unknown(record, (*_FIELDS, *_PLAN_FIELDS), place)
    key = _text(record, "key", place)
    if not key:
        raise DataError(f"{place}: no `key`; expected the key of a case, see `fairgate plan`")
    if "response" not in record:
        raise DataError(
            f"{place}: no `response`; expected the answer as text, empty if there is none"
        )
    return Execution(
        key=key,
        suite=_text(record, "suite", place) or "",
        documents=_documents(record.get("documents"), place, seen),
        response=_text(record, "response", place),
        margin=_number(record.get("margin"), f"{place}: margin"),
        options=_options(record.get("options"), place),
    )


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


def execution_to(execution: Execution) -> dict[str, Any]:
    """Return an execution as a line of a recording holds it."""
    row = dict(_fields_of(execution))
    if execution.documents is not None:
        row["documents"] = [document_to(document) for document in execution.documents]
    return row


def _fields_of(execution: Execution) -> Iterator[tuple[str, Any]]:
    """Yield what a line holds, name by name; the documents as they are."""
    yield "suite", execution.suite
    yield "key", execution.key
    yield "response", execution.response
    if execution.margin is not None:
        yield "margin", execution.margin
    if execution.documents is not None:
        yield "documents", execution.documents
    if execution.options:
        yield "options", list(execution.options)


def execution_lines(executions: Iterable[Execution]) -> Iterator[str]:
    """Yield the line of each execution: what `execution_to` gives, as JSON.

    Answers that lie near each other share documents, so their text is made once.
    """
    known: dict[int, tuple[Sequence[Document], str]] = {}
    for execution in executions:
        parts = [
            f'"{name}": {_text_of(value, known) if name == "documents" else _AS_JSON(value)}'
            for name, value in _fields_of(execution)
        ]
        yield "{" + ", ".join(parts) + "}"


def _text_of(
    documents: Sequence[Document], known: dict[int, tuple[Sequence[Document], str]]
) -> str:
    """Return documents as JSON, from `known` where the same ones stand there; else add them."""
    listed, text = known.get(id(documents), (None, ""))
    if listed is not documents:
        text = _AS_JSON([document_to(document) for document in documents])
        if len(known) >= _MOST_TEXTS:
            known.clear()
        known[id(documents)] = documents, text
    return text


def document_to(document: Document) -> dict[str, Any]:
    """Return what is known of a document, as recordings hold it."""
    return {name: value for name, value in flat(document).items() if value is not None}
