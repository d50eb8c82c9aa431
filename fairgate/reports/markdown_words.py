"""Words as Markdown: the one place that escapes them, by their kind."""

from __future__ import annotations

from collections.abc import Callable

from fairgate.domain.outcomes import Outcome
from fairgate.reports import escaping
from fairgate.reports.spans import Inline, Kind, Span, Tone, spans

MARKS = {
    Outcome.PASS: "✅",
    Outcome.FAIL: "❌",
    Outcome.INCONCLUSIVE: "⚠️",
    Outcome.NOT_EVALUATED: "➖",
}
_STANDING_OUT = (Tone.STRONG, Tone.CHANGED, Tone.BAD, Tone.UNSURE)


def line(words: Inline, *, is_short: bool = False) -> str:
    """Return words as inline Markdown; muted ones are left out where it is short."""
    found = ""
    for span in spans(words):
        if is_short and span.tone is Tone.MUTED:
            continue
        text = _span(span)
        # Two code spans that touch would become one.
        touch = found.endswith("`") and text.startswith("`")
        found += f" {text}" if touch else text
    return found.rstrip(" ")


def strong(text: str) -> str:
    """Return text that stands out; a space at either end would undo it and stays outside."""
    body = text.strip(" ")
    start = text.index(body)
    return f"{text[:start]}**{body}**{text[start + len(body) :]}" if body else text


def plain(words: Inline) -> str:
    """Return words without any escape, for a block that keeps them as they are."""
    return "".join(span.shown for span in spans(words))


def html_line(words: Inline) -> str:
    """Return words for an element inside which Markdown is not read."""
    return "".join(
        escaping.html_prose(span.shown)
        if span.kind is Kind.PROSE
        else escaping.html_code(span.shown)
        for span in spans(words)
    )


def _span(span: Span) -> str:
    text = span.shown
    if span.kind is Kind.MARK:
        return MARKS[Outcome(text)]
    escaped = _ESCAPES[span.kind](text)
    return strong(escaped) if span.tone in _STANDING_OUT else escaped


def _prose(text: str) -> str:
    """Return prose with the one space at either end that ties it to what stands beside it."""
    before, after = (" " if edge == " " else "" for edge in (text[:1], text[-1:]))
    body = escaping.markdown_prose(text)
    return f"{before}{body}{after}" if body else before


def _figure(text: str) -> str:
    return escaping.markdown_figure(text).replace(" ", "&nbsp;")


_ESCAPES: dict[Kind, Callable[[str], str]] = {
    Kind.PROSE: _prose,
    Kind.NAME: escaping.markdown,
    Kind.CODE: escaping.markdown_code,
    Kind.COMMAND: escaping.markdown_code,
    Kind.QUOTE: escaping.markdown_code,
    Kind.FIGURE: _figure,
    Kind.DATE: escaping.markdown_date,
}
