"""An application behind an address: one HTTP request a question, one JSON answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import urlencode, urlsplit, urlunsplit

from fairgate.domain.applications import Question, Reply, Used, not_counted, usage_of
from fairgate.domain.errors import ApplicationError
from fairgate.domain.wording import concealed, quoted
from fairgate.io.http_client import HttpClient
from fairgate.io.http_messages import Answer, Asker, HttpError, Limits, Request, secret_in, usable
from fairgate.io.replies import ReplyPaths, parsed_json, reply_of, without_secrets
from fairgate.systems.request_template import RequestTemplate

_VERSION = "http-1"
"""Part of the fingerprint: raise it when the same answers would be read otherwise."""
_MOST_REVISION = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """Where an application is asked, and how."""

    url: str
    method: str
    template: RequestTemplate
    paths: ReplyPaths
    headers: Mapping[str, str] = field(default_factory=dict)
    headers_env: Mapping[str, str] = field(default_factory=dict)
    """Header to the NAME of the environment variable that holds its value."""
    revision: str | None = None
    revision_url: str | None = None
    """Answers with what changes when the application does."""


class HttpApplication:
    """A port `Application`: what comes back is read by the paths, whatever its declared type."""

    def __init__(
        self,
        address: HttpAddress,
        limits: Limits,
        *,
        used: Used = not_counted,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        """Take the address; nothing is asked and no variable is read yet."""
        self._address = address
        self._used = used
        self._limits = limits
        self._sleep = sleep

    @property
    def name(self) -> str:
        """Say where it is."""
        return f"the system at {quoted(self._address.url)}"

    @cached_property
    def revision(self) -> str | None:
        """Return the application's revision; None where it is not known.

        Raises ApplicationError where `revision_url` gives none.
        """
        if self._address.revision_url is None:
            return self._address.revision
        request = Request(method="GET", url=self._address.revision_url, headers=self._headers)
        answer = self._fine(self._asked(request), "its revision")
        text = answer.body.decode("utf-8", "replace").strip()
        if not text or len(text) > _MOST_REVISION:
            raise ApplicationError(
                f"{quoted(self._address.revision_url)} answers with {len(text):,} characters; "
                f"expected a revision of 1 to {_MOST_REVISION:,}"
            )
        return f"{self._address.revision or ''}{text}"

    @property
    def fingerprint(self) -> str:
        """Identify address, request, mapping and revision; never what a variable holds."""
        address = self._address
        parts = (
            _VERSION,
            address.method,
            address.url,
            address.template.value,
            repr(address.paths),
            sorted(address.headers.items()),
            sorted(address.headers_env.items()),
            self.revision,
        )
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def ask(self, questions: Sequence[Question]) -> Generator[tuple[int, Reply], None, None]:
        """Yield `(position in questions, reply)` as they come.

        Raises ApplicationError for the first question without a usable answer, UsageError where a
        variable is not set.
        """
        requests = (self._request(question) for question in questions)
        for position, asked in self._client.ask_all(requests):
            about = f"the question {quoted(questions[position].query)}"
            answer = self._fine(asked, about)
            try:
                value = parsed_json(answer.body)
                self._used(usage_of(value))
                found = without_secrets(reply_of(value, self._address.paths), self._secrets)
            except ApplicationError as error:
                text = concealed(str(error), self._secrets)
                raise ApplicationError(f"{self.name}, {about}: {text}") from None
            yield position, found

    def _asked(self, request: Request) -> Answer | HttpError:
        try:
            return self._client.ask(request)
        except HttpError as error:
            return error

    def _fine(self, found: Answer | HttpError, about: str) -> Answer:
        """Return the answer. Raises ApplicationError unless its status is a success."""
        asker = Asker(
            name=self.name,
            secrets=self._secrets,
            variables=tuple(sorted(self._address.headers_env.values())),
            attempts=self._limits.attempts,
            remedy="check `url`, `method` and `request`; if that is how it refuses to answer, let "
            "it send status 200 and an empty answer, which counts as unreadable",
        )
        return usable(found, asker, about)

    def _request(self, question: Question) -> Request:
        address = self._address
        value = address.template.filled(question)
        if address.method == "GET":
            url = urlsplit(address.url)
            query = "&".join(part for part in (url.query, urlencode(_flat(value))) if part)
            return Request(
                method="GET", url=urlunsplit(url._replace(query=query)), headers=self._headers
            )
        return Request(
            method=address.method,
            url=address.url,
            headers={"Content-Type": "application/json", **self._headers},
            body=json.dumps(value).encode(),
        )

    @cached_property
    def _client(self) -> HttpClient:
        return HttpClient(self._limits, secrets=self._secrets, sleep=self._sleep)

    @cached_property
    def _headers(self) -> dict[str, str]:
        secret = zip(self._address.headers_env, self._secrets, strict=True)
        return {"Accept": "application/json", **self._address.headers, **dict(secret)}

    @cached_property
    def _secrets(self) -> list[str]:
        """Return what the variables of `headers_env` hold. Raises UsageError."""
        return [
            secret_in(
                name,
                named_by=f"`headers_env` names for {quoted(header)}",
                is_a="value",
                remedy="set it to the whole value of the header",
            )
            for header, name in self._address.headers_env.items()
        ]


def _flat(value: object) -> list[tuple[str, str]]:
    """Return the parameters of an address: names with a text, or with several."""
    if not isinstance(value, Mapping):
        raise ApplicationError("a GET request needs a mapping as `request`: names and texts")
    found = []
    for name, inner in value.items():
        entries = inner if isinstance(inner, list) else [inner]
        found += [
            (str(name), entry if isinstance(entry, str) else json.dumps(entry)) for entry in entries
        ]
    return found
