"""Values that no message, log line or record may hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import quote

CONCEALED = "***"
_LEAST_IN_ANSWERS = 8
"""Characters; shorter secrets also occur in ordinary answers, which would be changed."""


def concealed(text: str, secrets: Iterable[str]) -> str:
    """Return `text` with every secret's value replaced, also where it is escaped or encoded.

    Call it before a text is shortened: half a secret would not be found any more. What a hostile
    program makes of a secret beyond the spellings below (reversed, in parts) stays unknown.
    """
    spellings = {spelling for secret in secrets if secret for spelling in _spellings(secret)}
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, CONCEALED)
    return text


def concealed_in_answer(text: str, secrets: Iterable[str]) -> str:
    """Return what a system answers with every secret's value replaced that is no ordinary text."""
    return concealed(text, (each for each in secrets if len(each) >= _LEAST_IN_ANSWERS))


def _spellings(secret: str) -> Iterable[str]:
    """Yield a secret as it is, as Python and JSON write it inside a string, and as in a URL."""
    yield secret
    for written in (repr(secret), repr(f"'{secret}"), repr(f"'\"{secret}")):
        yield written[1:-1].removeprefix("\\'").removeprefix("'").removeprefix('"')
    yield json.dumps(secret)[1:-1]
    yield from (quote(secret), quote(secret, safe=""))
