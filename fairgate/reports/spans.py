"""Words as reports hold them: spans that say whose words they are, so that a renderer can escape.

A renderer escapes every span by its kind and cuts it to the kind's length, so that no section can
forget either. Only what the policy's `redact` hides is hidden before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from fairgate.reports.escaping import (
    FULL_CHARACTERS,
    NAME_CHARACTERS,
    SENTENCE_CHARACTERS,
    excerpt,
)


class Kind(StrEnum):
    """Whose words a span holds, and so how it is escaped."""

    PROSE = "prose"
    """A sentence of ours, which may quote untrusted text."""
    NAME = "name"
    """An untrusted name or label."""
    CODE = "code"
    """Verbatim: a key, an id, a fingerprint."""
    COMMAND = "command"
    """Verbatim: what a reader can run."""
    QUOTE = "quote"
    """An untrusted text, already cut or hashed as the policy's `redact` asks."""
    FIGURE = "figure"
    """Numbers of ours, kept on one line."""
    DATE = "date"
    """A day, if it is one."""
    MARK = "mark"
    """The value of an outcome, drawn as its mark."""


_CHARACTERS = {
    Kind.NAME: NAME_CHARACTERS,
    Kind.CODE: NAME_CHARACTERS,
    Kind.FIGURE: NAME_CHARACTERS,
    Kind.DATE: NAME_CHARACTERS,
    Kind.QUOTE: FULL_CHARACTERS,
}


class Tone(StrEnum):
    """How a span stands out."""

    NORMAL = "normal"
    STRONG = "strong"
    MUTED = "muted"
    """Left out where there is little room."""
    GOOD = "good"
    BAD = "bad"
    UNSURE = "unsure"
    CHANGED = "changed"
    """The part of a text that another text lacks."""


@dataclass(frozen=True, slots=True)
class Span:
    """Words of one kind."""

    text: str
    kind: Kind = Kind.PROSE
    tone: Tone = Tone.NORMAL

    @property
    def shown(self) -> str:
        """Return the words, cut to the length that their kind may have; not escaped."""
        return excerpt(self.text, _CHARACTERS.get(self.kind, SENTENCE_CHARACTERS))


Inline = str | Span | Sequence[str | Span]
"""Words on a line; a bare string is prose."""
Words = list[str | Span]
"""Words on a line that is being put together."""


def spans(words: Inline) -> list[Span]:
    """Return the spans of a line, without empty ones."""
    parts = [words] if isinstance(words, str | Span) else words
    found = [part if isinstance(part, Span) else Span(part) for part in parts]
    return [span for span in found if span.text]


def name(text: str, tone: Tone = Tone.NORMAL) -> Span:
    """Return an untrusted name or label."""
    return Span(text, Kind.NAME, tone)


def code(text: str, tone: Tone = Tone.NORMAL) -> Span:
    """Return a key, an id or a fingerprint."""
    return Span(text, Kind.CODE, tone)


def command(text: str) -> Span:
    """Return what a reader can run."""
    return Span(text, Kind.COMMAND)


def figure(text: str, tone: Tone = Tone.NORMAL) -> Span:
    """Return numbers of ours."""
    return Span(text, Kind.FIGURE, tone)


def strong(text: str) -> Span:
    """Return words of ours that stand out."""
    return Span(text, Kind.PROSE, Tone.STRONG)


def muted(words: Inline) -> list[Span]:
    """Return words that are left out where there is little room."""
    return [replace(span, tone=Tone.MUTED) for span in spans(words)]


def joined(items: Sequence[Inline], separator: str = ", ") -> list[Span]:
    """Return the spans of all items with a separator between them."""
    found: list[Span] = []
    for position, item in enumerate(items):
        found += [Span(separator)] if position else []
        found += spans(item)
    return found
