"""What is sent over HTTP and what comes back: requests, their limits and secrets, answers."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from fairgate.domain.errors import ApplicationError, FairGateError, UsageError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.wording import concealed, harmless, quoted
from fairgate.io import waits
from fairgate.io.inner_errors import TOO_LONG, InnerError, inner_error, status_of

if TYPE_CHECKING:
    from fairgate.io.http_client import HttpClient

BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
"""Statuses that another attempt may change; from 520 on those of gateways."""
UNSURE = frozenset({500, 502, 504, 520, 524})
"""Those that leave open whether the request was carried out."""
RATE_LIMITED = 429
TOO_LARGE = 413
_REFUSED = frozenset({400, TOO_LARGE, 422})
"""Statuses with which servers of models refuse a prompt that does not fit."""
ATTEMPTS = 4
"""How often a request is sent where the other side is busy."""
NOT_NOW = frozenset({RATE_LIMITED, 503, 529})
"""Those by which a server refuses whatever it is asked for the time being."""
WINDOW = 60.0
"""Seconds over which servers mostly count the requests that they allow."""
_SEVERAL = r"\bbatch|number of (?:inputs|texts)|too many (?:inputs|texts)|array length"
"""How servers say that a request has too many texts."""
_UNPAID = (
    r"insufficient.?quota|billing.?hard.?limit|credit balance|"
    r"\b(?:insufficient|out of|no more|exceeded your) (?:credits?|balance|funds|prepaid)"
)
_MOST_SHOWN = 100
_MOST_INNER = 1 << 16
"""Bytes of an answer in which an error is looked for."""


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
    RFC 9211's `Cache-Status: …; hit`, and an `Age` above 0 (RFC 9111).
    """
    for name, value in headers.items():
        is_hit = re.search(r"\bhits?\b", value, re.IGNORECASE) is not None
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
    words = answer.body[:2000].decode("utf-8", "replace")
    told = status_of((), words) if answer.status // 100 == 4 else answer.status
    return told if told in (401, 403, 404, RATE_LIMITED) else answer.status


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


def secret_in(variable: str, *, named_by: str, is_a: str, remedy: str) -> str:
    """Read an environment variable whose value goes into a header.

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


@dataclass(kw_only=True)
class HttpService:
    """Something that is asked over HTTP: how, with which secrets, and what messages say of it.

    Variables are read and connections opened when it is first asked.
    """

    name: str
    limits: Limits
    variables: Mapping[str, str]
    """Header to the NAME of the environment variable with its value."""
    before: str = ""
    """Stands before each of these values: `Bearer `."""
    more_headers: Mapping[str, str] = field(default_factory=dict)
    key: Literal["api_key_env", "headers_env"] = "api_key_env"
    """Where the policy names the variables."""
    set_to: str = "set it to the endpoint's key"
    hints: Mapping[int, str] = field(default_factory=dict)
    """By status, what to check."""
    remedy: str
    """What to check where the status says no more."""
    error: type[FairGateError] = ApplicationError
    sleep: Callable[[float], None] | None = None
    """Replaces waiting between attempts."""
    lacks: Callable[[Any], bool] | None = None
    """Whether an answer's JSON value lacks what is asked for, so that an error in it counts."""
    sets_pace: bool = True
    """Whether the policy has `concurrency` for it."""

    @cached_property
    def secrets(self) -> list[str]:
        """Return the variables' values, which no message may hold. Raises UsageError."""
        is_key = self.key == "api_key_env"
        return [
            secret_in(
                name,
                named_by=f"`{self.key}` names{'' if is_key else f' for {quoted(header)}'}",
                is_a="key" if is_key else "value",
                remedy=self.set_to,
            )
            for header, name in self.variables.items()
        ]

    @cached_property
    def client(self) -> HttpClient:
        """Open a client, with its connections."""
        from fairgate.io.http_client import HttpClient

        return HttpClient(
            self.limits, secrets=self.secrets, sleep=self.sleep, judged=self._with_inner_error
        )

    def _with_inner_error(self, answer: HttpAnswer) -> HttpAnswer:
        """Return an answer with the status of the error in it, where it lacks what was asked."""
        if self.lacks is None or answer.status // 100 != 2 or len(answer.body) > _MOST_INNER:
            return answer
        try:
            value = read_json(answer.body, strict=False)
        except JsonError:
            return answer
        if not self.lacks(value) or (inner := inner_error(value)) is None:
            return answer
        return replace(answer, status=inner.status, inner=inner)

    @cached_property
    def headers(self) -> dict[str, str]:
        """Return the headers of every request."""
        values = (self.before + secret for secret in self.secrets)
        secret = dict(zip(self.variables, values, strict=True))
        return {"Accept": "application/json", **self.more_headers, **secret}

    def get(self, url: str) -> Request:
        """Return the request for an address."""
        return Request(method="GET", url=url, headers=self.headers)

    def send(self, url: str, value: object, method: str = "POST") -> Request:
        """Return the request that carries a JSON value."""
        headers = {"Content-Type": "application/json", **self.headers}
        return Request(method=method, url=url, headers=headers, body=json.dumps(value).encode())

    def ask(self, request: Request, about: str = "") -> HttpAnswer:
        """Return the answer to one request, see `usable`."""
        ((_, answer),) = self.client.ask_all([request])
        return self.usable(answer, about)

    def usable(self, answer: HttpAnswer | HttpError, about: str = "") -> HttpAnswer:
        """Return the answer. Raises the service's error unless its status is a success."""
        subject = f"{self.name}, asked {about}" if about else self.name
        if isinstance(answer, HttpError):
            raise self.error(f"{subject}: {answer.sentence}")
        if answer.inner is not None:
            words = harmless(self.concealed(answer.inner.words))
            raise self.error(
                f"{subject}: answered with a status of success and an error in it, by its words "
                f"HTTP {answer.status}: {words!r}; {self._hint(answer)}"
            )
        if answer.status // 100 != 2:
            message = self.concealed(answer.body[:2000].decode("utf-8", "replace")).strip()
            words = f" and the message {harmless(message[:120])!r}" if message else ""
            raise self.error(
                f"{subject}: answered with HTTP {answer.status}{words}; {self._hint(answer)}"
            )
        return answer

    def is_too_long(self, answer: HttpAnswer | HttpError) -> bool:
        """Tell whether a service refuses what it was sent because that is too long."""
        if isinstance(answer, HttpError) or answer.status not in _REFUSED:
            return False
        words = answer.body[:2000].decode("utf-8", "replace")
        if answer.status == TOO_LARGE:
            return meant(answer) == TOO_LARGE and re.search(_SEVERAL, words, re.IGNORECASE) is None
        return re.search(TOO_LONG, words, re.IGNORECASE) is not None

    def concealed(self, text: str) -> str:
        """Return a text without what the variables hold."""
        return concealed(text, self.secrets)

    def _hint(self, answer: HttpAnswer) -> str:
        if TOO_LARGE in self.hints and self.is_too_long(answer):
            return self.hints[TOO_LARGE]
        if answer.is_unpaid:
            return "what its account may use is used up: look at its plan and credit"
        status = meant(answer)
        if status in self.hints and status != TOO_LARGE:
            return self.hints[status]
        if status in (401, 403):
            variables_named = ", ".join(sorted(self.variables.values()))
            return (
                f"check what {variables_named} holds"
                if variables_named
                else f"give the key in `{self.key}`"
            )
        if 300 <= answer.status < 400:
            target = harmless(self.concealed(answer.headers.get("location", ""))[:100])
            return f"redirects are not followed: name the address it leads to ({target!r})"
        slower = "lower `concurrency`" if self.sets_pace else "run again later"
        if answer.status in BUSY and (wait := asked_wait(answer)) is not None:
            return f"it asks to wait {wait:g} s: {slower}"
        if status == RATE_LIMITED and answer.status != RATE_LIMITED:
            return slower
        if answer.status == RATE_LIMITED:
            times = self.limits.attempts
            waited = f", the last time after {WINDOW:g} s without a request" if times > 1 else ""
            return f"tried {times} times{waited}: {slower}"
        if answer.status in BUSY:
            return f"tried {self.limits.attempts} times; look into its log"
        return self.remedy
