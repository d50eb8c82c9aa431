"""What a line of a recording says: its fields checked, and equal documents held once."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairgate.domain.errors import DataError
from fairgate.domain.executions import MOST_SHARED, Document, Execution, SharedDocuments
from fairgate.domain.wording import suggestion
from fairgate.io.lines import capped, checked_text

_FIELDS = ("key", "response", "documents", "options", "suite", "margin")
_PLAN_FIELDS = ("wave", "query", "prompt", "instruction", "labels")
"""What a line of `fairgate plan` carries: accepted, so that answers can be added to the plan."""
_DOCUMENT_FIELDS = ("id", "text", "label", "score")
_DOCUMENT_KEYS = frozenset(_DOCUMENT_FIELDS)
_MOST_DOCUMENTS = 1000
_MOST_LATEST = 4
_MOST_LISTS = 50_000


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
