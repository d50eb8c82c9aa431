"""How long a server asks to wait, in the headers and the words of an answer.

Sources: RFC 9110, section 10.2.3 (`Retry-After`); google.rpc.RetryInfo (`retryDelay`); the
references of OpenAI (`x-ratelimit-reset-requests`), Azure (`retry-after-ms`) and Anthropic
(`anthropic-ratelimit-requests-reset`) on rate limits; the IETF's draft of `RateLimit` headers.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Iterator, Mapping
from datetime import datetime

_SECONDS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_NUMBER = r"\d{1,13}(?:\.\d{1,9})?"
_UNIT = (
    r"(?:(?:milli|ms|sec|min|s|m|h)"
    r"(?:(?<=milli)seconds?|(?<=sec)(?:onds?)?|(?<=min)(?:utes?)?|ours?)?(?![a-z]))"
)
# A unit ends each number: a row of digits is read in one way alone, and in linear time.
_DURATION = rf"({_NUMBER}\s*{_UNIT}(?:\s*{_NUMBER}\s*{_UNIT})*|{_NUMBER}(?![a-z\d-]))"
"""`20s`, `1m4.2s`, `386ms`, `26 seconds`; a bare number is in seconds."""
_STEP = rf"({_NUMBER})\s*(milli|ms|sec|min|s|m|h)?"
# Compiled where they are used: most runs are never told to wait.
_FIELD = rf'"(?:retry_?(?:delay|after|in)(?:_?seconds)?|estimated_time)"\s*:\s*"?{_DURATION}'
_WORDS = rf"\b(?:try again|retry|wait)\b[^.\n\d]{{0,20}}?\b(?:in|after|for)\s+{_DURATION}(?<=[a-z])"
_MOMENT = (
    r"\b(?:retry|try again|reset|available)[^\n\d]{0,24}?"
    r"(\d{4}-\d\d-\d\d[T ][\d:.]{5,15}(?:Z|[+-]\d\d:?\d\d)?|\d{10,13})\b"
)
"""A time at which to ask again: `resets_at: 1795770030`, `try again at 2026-11-27T09:00:30Z`."""
_MOST_SEARCHED = 4000
_EPOCH = 1e9
"""From here on a number is seconds since 1970, and a thousand times as large milliseconds."""


def seconds_of_date(date: str) -> float | None:
    """Seconds since 1970 of a header's date, as mail or ISO 8601 writes it; None for none."""
    for read in (email.utils.parsedate_to_datetime, datetime.fromisoformat):
        try:
            return read(date[:64]).timestamp()
        except (ValueError, OverflowError):
            continue
    return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that `Retry-After` asks to wait, also until a date; None where it gives none.

    The clock of this machine is compared with the server's `Date`, where it sends one.
    """
    return _until(headers.get("retry-after", "").strip(), headers)


def told_wait(headers: Mapping[str, str], body: bytes) -> float | None:
    """Seconds that a refusal asks to wait elsewhere than in `Retry-After`; None where it does not.

    In headers of milliseconds, fields such as `retryDelay`, or words such as `try again in 20s`.
    """
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        if (wait := _duration(f"{headers.get(name, '').strip()}ms")) is not None:
            return wait
    text = body[:_MOST_SEARCHED].decode("utf-8", "replace")
    for pattern in (_FIELD, _WORDS, _MOMENT):
        if (match := re.search(pattern, text, re.IGNORECASE)) is not None:
            return _until(match[1], headers)
    return None


def window_left(headers: Mapping[str, str]) -> float | None:
    """Seconds until the limits that are used up start anew; None where none says so.

    A limit is used up where its header `…remaining…` is 0.
    """
    return max(_resets(headers), default=None)


def _resets(headers: Mapping[str, str]) -> Iterator[float]:
    for name, value in headers.items():
        is_reset = "reset" in name and "ratelimit" in name.replace("-", "")
        if is_reset and headers.get(name.replace("reset", "remaining")) == "0":
            wait = _until(value.strip(), headers)
            yield from [] if wait is None else [wait]
    combined = headers.get("ratelimit", "")
    if re.search(r"\b(?:r|remaining)=0\b", combined):
        yield from map(float, re.findall(r"\b(?:t|reset)=(\d{1,9})\b", combined))


def _until(text: str, headers: Mapping[str, str]) -> float | None:
    """Seconds of a duration, or until a date or a time since 1970."""
    wait = _duration(text)
    until = seconds_of_date(text) if wait is None else wait
    if until is None or until < _EPOCH:
        return until
    until /= 1000 if until >= 1000 * _EPOCH else 1
    now = seconds_of_date(headers.get("date", ""))
    return max(0.0, until - (time.time() if now is None else now))


def _duration(text: str) -> float | None:
    if re.fullmatch(_DURATION, text, re.IGNORECASE) is None:
        return None
    steps = re.findall(_STEP, text, re.IGNORECASE)
    return sum(float(number) * _SECONDS[unit.lower() or "s"] for number, unit in steps)
