"""What is sent to an application: a JSON value of the user's with places for the question.

`{{query}}`, `{{text}}`, `{{instruction}}`, `{{prompt}}` and `{{top_k}}` stand anywhere in texts;
`{{options}}` and `{{documents}}` are lists and stand alone. What a question says is not expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fairgate.domain.applications import Question
from fairgate.domain.wording import quoted, suggestion

TEXTS = ("query", "text", "instruction", "prompt", "top_k")
LISTS = ("options", "documents")
_CASE = frozenset({"query", "text", "prompt"})
"""One of these must be sent: without it every test case would be the same."""
_PLACE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """A JSON value with places."""

    value: Any

    @property
    def takes_documents(self) -> bool:
        """Return whether documents can be handed over."""
        return "documents" in set(_named(self.value))

    def filled(self, question: Question) -> Any:
        """Return the value for a question; where no documents are handed over, the list is null."""
        return _filled(self.value, question)


def request_template(value: Any) -> RequestTemplate:
    """Return the template. Raises ValueError for unknown or misplaced placeholders."""
    named = set(_named(value))
    known = (*TEXTS, *LISTS)
    for name in sorted(named):
        if name not in known:
            raise ValueError(f"`{{{{{name[:40]}}}}}` means nothing; {suggestion(name, known)}")
    for text in _texts(value):
        inside = [name for name in _PLACE.findall(text) if name in LISTS]
        if inside and not _PLACE.fullmatch(text):
            raise ValueError(
                f"{quoted(text)}: `{{{{{inside[0]}}}}}` is a list and must be the whole text"
            )
    if not named & _CASE:
        raise ValueError("never sends the test case; put `{{query}}` or `{{prompt}}` into it")
    return RequestTemplate(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _named(value: Any) -> Iterator[str]:
    for text in _texts(value):
        yield from _PLACE.findall(text)


def _filled(value: Any, question: Question) -> Any:
    if isinstance(value, Mapping):
        return {name: _filled(inner, question) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(inner, question) for inner in value]
    if not isinstance(value, str):
        return value
    alone = _PLACE.fullmatch(value)
    if alone is not None and alone[1] == "top_k":
        return question.top_k
    if alone is not None and alone[1] in LISTS:
        return _list(question, alone[1])
    return _PLACE.sub(lambda match: str(getattr(question, match[1])), value)


def _list(question: Question, name: str) -> list[Any] | None:
    if name == "options":
        return list(question.options)
    return None if question.documents is None else [asdict(d) for d in question.documents]
