"""What is sent over HTTP and what comes back: requests, their limits and secrets, answers."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

from fairgate.domain.wording import harmless, quoted
from fairgate.io import waits
from fairgate.io.inner_errors import InnerError, status_of

BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
"""Statuses that another attempt may change; from 520 on those of gateways."""
UNSURE = frozenset({500, 502, 504, 520, 524})
"""Those that leave open whether the request was carried out."""
RATE_LIMITED = 429
TOO_LARGE = 413
_INVALID = 422
ATTEMPTS = 4
"""How often a request is sent where the other side is busy."""
NOT_NOW = frozenset({RATE_LIMITED, 503, 529})
"""Those by which a server refuses whatever it is asked for the time being."""
WINDOW = 60.0
"""Seconds over which servers mostly count the requests that they allow."""
_UNPAID = (
    r"insufficient.?quota|billing.?hard.?limit|credit balance|"
    r"\b(?:insufficient|out of|no more|exceeded your) (?:credits?|balance|funds|prepaid)"
)
_MOST_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far a request may go."""

    seconds: float = 30.0
    """From sending to the last byte, of one attempt."""
    idle_seconds: float | None = None
    """Without a byte; None: no limit besides `seconds`."""
    most_bytes: int = 64 << 20
    attempts: int = ATTEMPTS
    longest_pause: float = 60.0
    """Where a server asks to wait longer, it is not asked again."""
    concurrency: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    is_repeatable: bool = True
    """Whether asking twice does no harm where the first answer was lost."""
    after: float = 0.0
    """Seconds to wait before it is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """What came back, whatever the status; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    inner: InnerError | None = None
    """The error in an answer that was sent with a status of success; `status` is the error's."""

    @property
    def is_rate_limited(self) -> bool:
        """Return whether the server refuses because of the rate, without `Retry-After`."""
        return self.status == RATE_LIMITED and retry_after(self) is None

    @property
    def is_unpaid(self) -> bool:
        """Return whether the account's quota or credit is used up, so that no pause helps."""
        if self.status // 100 != 4:
            return False
        words = self.body[:2000].decode("utf-8", "replace")
        return re.search(_UNPAID, words, re.IGNORECASE) is not None


class Fault(Enum):
    """What went wrong where no answer came; the value is for sentences."""

    UNREACHED = "cannot be reached"
    LATE = "gives no complete answer in time"
    BROKEN = "breaks off before its answer is complete"
    UNUSABLE = "gives no usable answer"


_FAILURES = {
    Fault.UNREACHED: "no connection",
    Fault.LATE: "no answer in time",
    Fault.BROKEN: "half an answer",
}
_REMEDIES = {
    Fault.UNREACHED: "check that it runs, and its address",
    Fault.BROKEN: "look into its log",
    Fault.UNUSABLE: "check its address, and what it sends",
}


class HttpError(Exception):
    """No answer: the text is the reason, on one line, without secrets, and has no `__cause__`."""

    def __init__(self, text: str, *, attempts: int, fault: Fault) -> None:
        """Take what happened, the number of attempts, and what went wrong in the last one."""
        super().__init__(text)
        self.attempts = attempts
        self.fault = fault

    @property
    def is_lost(self) -> bool:
        """Whether another attempt may bring an answer."""
        return self.fault is not Fault.UNUSABLE

    @property
    def sentence(self) -> str:
        """The end of the error message, behind the name of the service, with a next step."""
        often = f"tried {self.attempts} times" if self.attempts > 1 else "tried once"
        if self.fault is Fault.LATE:
            step = "check that it runs; set a longer `timeout`, or ask less at once (`concurrency`)"
            return f"gives {self}, {often}; {step}"
        return f"{self.fault.value} ({quoted(str(self))}), {often}; {_REMEDIES[self.fault]}"


Found = HttpAnswer | HttpError


def failure_in(found: Found) -> str:
    """Return in a few words what came instead of an answer."""
    if isinstance(found, HttpError):
        return _FAILURES.get(found.fault, "no usable answer")
    return "no usable answer" if found.status // 100 == 2 else f"HTTP {found.status}"


Pause = Callable[[Request, HttpAnswer | None, int], float | None]
"""Request, its answer or None where there is none, attempt from 1: seconds, None to give up."""


def busy_pause(
    request: Request, answer: HttpAnswer | None, attempt: int, attempts: int
) -> float | None:
    """Return how long to wait before asking again: what the server asks for, else growing pauses.

    Those are 1, 2, 4, … s. For a rate limit without `Retry-After` they are 4, 16, … s, and the last
    one is a whole minute: a server that counts by the minute counts nothing of before then. Where
    it tells a time elsewhere, no pause is shorter. What is used up for good is not asked for again.
    """
    if answer is None:
        return 2.0 ** (attempt - 1) if request.is_repeatable else None
    if answer.status not in (BUSY if request.is_repeatable else BUSY - UNSURE) or answer.is_unpaid:
        return None
    if (requested := retry_after(answer)) is not None:
        return requested
    own = 2.0 ** (attempt - 1)
    if answer.is_rate_limited:
        own = WINDOW if attempt + 1 >= attempts else min(4.0**attempt, WINDOW)
        own = max(own, min(waits.window_left(answer.headers) or 0.0, WINDOW))
    # What else a server says is the least: it counts on nobody else asking meanwhile.
    return max(own, asked_wait(answer) or 0.0)


def retry_after(answer: HttpAnswer) -> float | None:
    """Return the seconds that a server asks to wait in `Retry-After`; None where it gives none."""
    return waits.retry_after(answer.headers)


def asked_wait(answer: HttpAnswer) -> float | None:
    """Return the seconds that a server asks to wait, wherever it says so; None for none."""
    if (wait := retry_after(answer)) is not None or answer.status not in NOT_NOW:
        return wait
    return waits.told_wait(answer.headers, answer.body)


def cache_hit(headers: Mapping[str, str]) -> str | None:
    """Return the header by which an answer comes from a cache; None where none says so.

    `X-Cache: Hit from …`, `cf-aig-cache-status: HIT`, `helicone-cache: HIT`, `x-cached: true`,
    RFC 9211's `Cache-Status: …; hit`, an `Age` above 0 (RFC 9111), and LiteLLM's key of what was
    in its cache, which no other reply has.
    """
    for name, value in headers.items():
        is_hit = re.search(r"\bhits?\b", value, re.IGNORECASE) is not None
        is_hit = is_hit or name == "x-litellm-cache-key"
        is_hit = is_hit or (("hit" in name or "cached" in name) and _is_set(value))
        if ("cache" in name and is_hit) or (name == "age" and (whole_seconds(value) or 0) > 0):
            return harmless(f"{name}: {value}"[:_MOST_SHOWN])
    return None


def fallback(headers: Mapping[str, str]) -> str:
    """Return the header that another model answered in place of the one asked; empty: none says so.

    `x-litellm-attempted-fallbacks: 1`, `x-litellm-fallback-model-used: small`; not the most that
    were allowed.
    """
    for name, value in headers.items():
        is_none = value.strip().lower() in ("", "0", "false", "no", "none", "null")
        if "fallback" in name and "max" not in name and not is_none:
            return f"{name}: {value}"[:_MOST_SHOWN]
    return ""


def _is_set(value: str) -> bool:
    return value.strip().lower() in ("true", "yes", "1")


def meant(answer: HttpAnswer) -> int:
    """Return the status that a refusal's words mean where they name one, else its own.

    Servers say `API key not valid` with 400, `model not found` with 400, a rate with 413.
    """
    if answer.status == _INVALID:  # its words name the fields that are not allowed
        return answer.status
    words = answer.body[:2000].decode("utf-8", "replace")
    status = status_of((), words) if answer.status // 100 == 4 else answer.status
    return status if status in (401, 403, 404, RATE_LIMITED) else answer.status


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
    """Return whether requests to an address are encrypted, or stay on this machine."""
    return url.startswith("https://") or is_local(url)
