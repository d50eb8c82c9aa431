"""A finding and its smallest form, for terminals and as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fairgate.domain.json_text import flat
from fairgate.features.shrink.shrink import Shrunk
from fairgate.reports.escaping import Redaction, plain, redacted


def render_shrunk(found: Shrunk, *, redact: Redaction) -> str:
    """Return the lines of one finding; texts are cut or hashed as the policy's `redact` asks."""
    return "\n".join(_lines(found, redact))


def shrunk_record(found: Shrunk, *, redact: Redaction) -> dict[str, Any]:
    """Return one finding as plain data, its texts cut or hashed in the same way."""
    texts = {role: redacted(text, redact) for role, text in found.texts.items()}
    return flat(replace(found, before=redacted(found.before, redact), texts=texts))


def _lines(found: Shrunk, redact: Redaction) -> Iterator[str]:
    yield f"{plain(found.key)} in suite {plain(found.suite)} ({found.claim})"
    yield f"  was          {_text(found.before, redact)}"
    if not found.texts:
        why = "the question limit was reached" if not found.questions else "its answers differ now"
        yield f"  not seen again when it was asked once more: {why}"
        return
    for role, text in found.texts.items():
        yield f"  {role:<12} {_text(text, redact)}"
        yield f"  {'':<12} answered: {plain(found.answers[role])}"
    yield (
        f"  1-minimal after {found.questions} questions: no word and no attribute can be left out"
        if found.minimal
        else f"  the best of {found.questions} questions; more may be left out: raise --questions"
    )


def _text(text: str, redact: Redaction) -> str:
    return plain(redacted(text, redact))
