"""Requests, answers, how far a request may go, and when it is worth another attempt."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fairgate.domain.wording import quoted

BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Statuses that another attempt may change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far a request may go."""

    seconds: float = 30.0
    """From sending to the last byte, of one attempt."""
    idle_seconds: float | None = None
    """Without a byte; None: no limit besides `seconds`."""
    most_bytes: int = 64 << 20
    attempts: int = 4
    longest_pause: float = 60.0
    """Where a server asks to wait longer, it is not asked again."""
    concurrency: int = 1
    per_second: float | None = None
    """Requests started in a second; None: no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    is_repeatable: bool = True
    """Whether asking twice does no harm where the first answer was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back, whatever the status; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpError(Exception):
    """No answer: the text is the reason, on one line, without secrets, and has no `__cause__`."""

    def __init__(self, text: str, *, attempts: int, is_lost: bool) -> None:
        """Take what happened and the number of attempts; not `is_lost`: a retry would not help."""
        super().__init__(text)
        self.attempts = attempts
        self.is_lost = is_lost

    @property
    def sentence(self) -> str:
        """Return what every asker says of it, behind the name of what was asked."""
        what = "cannot be reached" if self.is_lost else "gives no usable answer"
        return f"{what} ({quoted(str(self))}), tried {self.attempts} times"


Pause = Callable[[Request, Answer | None, int], float | None]
"""Request, its answer or None where there is none, attempt from 1: seconds, None to give up."""


def busy_pause(request: Request, answer: Answer | None, attempt: int) -> float | None:
    """Return how long to wait before asking again: what the server asks for, else 1, 2, 4, … s."""
    if answer is None:
        return 2.0 ** (attempt - 1) if request.is_repeatable else None
    if answer.status not in BUSY:
        return None
    asked = retry_after(answer)
    return 2.0 ** (attempt - 1) if asked is None else asked


def retry_after(answer: Answer) -> float | None:
    """Return the seconds that a server asks to wait; None where it gives none, or a date."""
    return whole_seconds(answer.headers.get("retry-after"))


def asks_to_wait(answer: Answer) -> str:
    """Return what to do where a server says how long to wait; empty where it says nothing."""
    wait = retry_after(answer)
    return (
        ""
        if wait is None
        else (f"it asks to wait {wait:g} s: lower `concurrency` or set `per_second`")
    )


def whole_seconds(text: str | None) -> float | None:
    """Return a header's whole number; None where it is none."""
    return float(text) if text is not None and re.fullmatch(r"[0-9]{1,12}", text) else None


def is_local(url: str) -> bool:
    """Return whether an address is this machine's own."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def keeps_secrets(url: str) -> bool:
    """Return whether what is sent there is encrypted, or stays on this machine."""
    return url.startswith("https://") or is_local(url)
