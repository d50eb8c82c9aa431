"""Something that is asked over HTTP: how, with which secrets, and what messages say of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from fairgate.domain.errors import ApplicationError, FairGateError, UsageError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.wording import concealed, harmless, quoted
from fairgate.io.http_messages import (
    BUSY,
    RATE_LIMITED,
    TOO_LARGE,
    WINDOW,
    HttpAnswer,
    HttpError,
    Limits,
    Request,
    asked_wait,
    meant,
)
from fairgate.io.inner_errors import TOO_LONG, inner_error, is_broken

if TYPE_CHECKING:
    from fairgate.io.http_client import HttpClient

_REFUSED = frozenset({400, TOO_LARGE, 422})
"""Statuses with which servers of models refuse a prompt that does not fit."""
_SEVERAL = r"\bbatch|number of (?:inputs|texts)|too many (?:inputs|texts)|array length"
"""How servers say that a request has too many texts."""
_BYTES = r"request entity|payload|\bbody\b.{0,20}\b(?:large|size|limit)"
"""How a server, or one in between, says that a request has too many bytes."""
_MOST_SAID = 200
_MOST_INNER = 1 << 16
"""Bytes of an answer in which an error is looked for."""


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
    key: Literal["api_key_env", "headers_env"] = "api_key_env"
    """Where the policy names the variables."""
    set_to: str = "set it to the endpoint's key"
    hints: Mapping[int, str] = field(default_factory=dict)
    """By status, what to check."""
    advice: Callable[[str], str] | None = None
    """What to do by the words of a refusal; empty where they say no more than its status."""
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
        if not (self.lacks(value) or is_broken(value)) or (inner := inner_error(value)) is None:
            return answer
        return replace(answer, status=inner.status, inner=inner)

    @cached_property
    def headers(self) -> dict[str, str]:
        """Return the headers of every request."""
        values = (self.before + secret for secret in self.secrets)
        secret = dict(zip(self.variables, values, strict=True))
        return {"Accept": "application/json", **secret}

    def get(self, url: str) -> Request:
        """Return the request for an address."""
        return Request(method="GET", url=url, headers=self.headers)

    def send(self, url: str, value: object, method: str = "POST") -> Request:
        """Return the request that carries a JSON value."""
        headers = {"Content-Type": "application/json", **self.headers}
        return Request(method=method, url=url, headers=headers, body=json.dumps(value).encode())

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
            message = harmless(self.concealed(_said(answer)))
            words = f" and the message {message!r}" if message else ""
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
            others = f"{_SEVERAL}|{_BYTES}"
            return meant(answer) == TOO_LARGE and re.search(others, words, re.IGNORECASE) is None
        return re.search(TOO_LONG, words, re.IGNORECASE) is not None

    def concealed(self, text: str) -> str:
        """Return a text without what the variables hold."""
        return concealed(text, self.secrets)

    def _hint(self, answer: HttpAnswer) -> str:
        if TOO_LARGE in self.hints and self.is_too_long(answer):
            return self.hints[TOO_LARGE]
        if answer.is_unpaid:
            return "what its account may use is used up: look at its plan and credit"
        message = _said(answer)
        by_words = self.advice if answer.status // 100 == 4 else None
        if by_words is not None and (advice := by_words(message)):
            return advice
        if answer.status == TOO_LARGE and re.search(_BYTES, message, re.IGNORECASE):
            return "it takes no request of this size: raise its limit, or send shorter texts"
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


def _said(answer: HttpAnswer) -> str:
    """Return a refusal's own words: of its error, or its text without the tags of HTML."""
    with suppress(JsonError):
        if inner := answer.inner or inner_error(read_json(answer.body, strict=False)):
            return inner.words
    text = answer.body[:2000].decode("utf-8", "replace")
    text = re.sub(r"<[^>]*>", " ", text) if text.lstrip().startswith("<") else text
    return " ".join(text.split())[:_MOST_SAID]
