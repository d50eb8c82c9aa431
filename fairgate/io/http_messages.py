"""What is sent over HTTP and what comes back: requests, their limits and secrets, answers."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fairgate.domain.errors import ApplicationError, UsageError
from fairgate.domain.wording import concealed, harmless, quoted

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


def secret_in(variable: str, *, named_by: str, is_a: str, remedy: str) -> str:
    """Return what an environment variable holds, fit for a header.

    `named_by` is the key of the policy that names it, `is_a` what it should hold. Raises UsageError
    where it is not set, or holds what no header can carry.
    """
    value = os.environ.get(variable, "")
    if not value or not value.isprintable() or not value.isascii():
        state = f"holds no usable {is_a}" if value else "is not set"
        raise UsageError(
            f"the environment variable {quoted(variable)}, which {named_by}, {state}; {remedy}"
        )
    return value


def key_in(variable: str | None) -> str:
    """Return the key of an endpoint that `api_key_env` names; empty where none is to be sent."""
    if variable is None:
        return ""
    return secret_in(
        variable,
        named_by="`api_key_env` names",
        is_a="key",
        remedy="set it to the endpoint's key",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """What is asked, as messages name it."""

    name: str
    secrets: Sequence[str]
    """Values that no message holds."""
    variables: tuple[str, ...]
    """NAMES of the environment variables that were sent."""
    attempts: int
    remedy: str
    """What to check where the status says no more."""
    key: str = "`headers_env`"
    """Where the policy gives a key."""


def usable(found: Answer | HttpError, asker: Asker, about: str) -> Answer:
    """Return the answer. Raises ApplicationError unless its status is a success."""
    if isinstance(found, HttpError):
        raise ApplicationError(
            f"{asker.name}, asked {about}: {found.sentence}; check that it runs, and its address"
        )
    if found.status // 100 != 2:
        message = concealed(found.body[:2000].decode("utf-8", "replace"), asker.secrets)
        words = f" and the message {harmless(message.strip()[:120])!r}" if message.strip() else ""
        raise ApplicationError(
            f"{asker.name}, asked {about}: answered with HTTP {found.status}{words}; "
            f"{_hint(found, asker)}"
        )
    return found


def _hint(answer: Answer, asker: Asker) -> str:
    if answer.status in (401, 403):
        named = ", ".join(asker.variables)
        return f"check what {named} holds" if named else f"give the key in {asker.key}"
    if 300 <= answer.status < 400:
        target = harmless(concealed(answer.headers.get("location", ""), asker.secrets)[:100])
        return f"redirects are not followed: name the address it leads to ({target!r})"
    if wait := asks_to_wait(answer):
        return wait
    if answer.status in BUSY:
        return f"tried {asker.attempts} times; look into its log"
    return asker.remedy
