"""GitHub's REST API: a few endpoints over the one HTTP client, and what GitHub asks of callers.

Not PyGithub: the action's environment stays small (no requests, no cryptography), and what matters
is decided here: what is retried, for how long, that no other host is sent the token, and that the
token appears in no message.
"""

from __future__ import annotations

import http
import io
import json
import re
import time
import urllib.parse
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from fairgate.domain.errors import ApiError, DataError
from fairgate.domain.wording import concealed, harmless, quoted
from fairgate.io.http_client import HttpClient
from fairgate.io.http_messages import (
    Answer,
    HttpError,
    Limits,
    Request,
    keeps_secrets,
    retry_after,
    whole_seconds,
)

PER_PAGE = 100
MAX_PAGES = 100
LIMITS = Limits(seconds=300.0, idle_seconds=15.0, most_bytes=300 << 20, longest_pause=60.0)
"""GitHub asks for up to an hour when a quota is spent; a build does not wait for that."""

_JSON = "application/vnd.github+json"
RAW = "application/vnd.github.raw+json"
_NEXT = re.compile(r'<([^<>]+)>\s*;[^,]*\brel="next"')
_SERVER_ERROR = 500
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAX_ARCHIVE_BYTES = 16 << 20
"""Also bounds the table of contents, which is read whole."""
MAX_MEMBER_BYTES = 16 << 20


class GitHubApi:
    """Requests in the name of one token. Every failure is an ApiError."""

    def __init__(
        self, root: str, token: str, *, sleep: Callable[[float], None] | None = None
    ) -> None:
        """Talk to the API at `root`; `sleep` waits between attempts. Raises ApiError."""
        address = _split(root)
        if address.scheme not in {"http", "https"} or not keeps_secrets(root):
            raise ApiError(f"{harmless(root[:100])} is no address of an API; expected https://…")
        self._root = root.rstrip("/")
        self._origin = (address.scheme, address.netloc)
        self._token = token
        self._sleep = sleep
        self._client = HttpClient(LIMITS, secrets=[token], pause=_pause, sleep=sleep)

    def __repr__(self) -> str:
        """Name the address, never the token."""
        return f"GitHubApi({self._root!r})"

    def get(self, path: str, **query: str | int) -> Any:
        """Return the JSON answer."""
        return _parsed(self._request("GET", self._url(path, query)).body)

    def get_raw(self, path: str, **query: str | int) -> bytes:
        """Return a file's bytes."""
        return self._request("GET", self._url(path, query), accept=RAW).body

    def download(self, path: str, limit: int) -> bytes:
        """Return the file that an address redirects to, which is asked without the token."""
        target = self._redirected(path)
        if not keeps_secrets(target):
            raise ApiError(f"GET {path}: redirects to an address that is not https")
        limits = replace(LIMITS, most_bytes=limit)
        with HttpClient(limits, secrets=[self._token], sleep=self._sleep) as client:
            answer = self._asked(client, Request(method="GET", url=target), f"GET {path}")
        if not _is_fine(answer):
            raise self._failure(f"GET {path}", answer)
        return answer.body

    def _redirected(self, path: str) -> str:
        named = f"GET {path}"
        answer = self._asked(self._client, self._prepared("GET", self._url(path, {})), named)
        target = answer.headers.get("location") if answer.status in _REDIRECTS else None
        if target:
            return target
        if not _is_fine(answer):
            raise self._failure(named, answer)
        raise ApiError(f"{named}: expected a redirect to the file")

    def pages(self, path: str, **query: str | int) -> Iterator[Any]:
        """Yield the items of all pages of a list."""
        url = self._url(path, {"per_page": PER_PAGE, **query})
        for _ in range(MAX_PAGES):
            answer = self._request("GET", url)
            items = _parsed(answer.body)
            if not isinstance(items, list):
                raise ApiError(f"GET {path}: the answer is no list")
            yield from items
            following = _NEXT.search(answer.headers.get("link", ""))
            if following is None:
                return
            url = following[1]
        raise ApiError(f"GET {path}: more than {MAX_PAGES} pages")

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the answer to POST, PATCH or DELETE.

        A POST is repeated only where GitHub reports that it did nothing (rate limits): after an
        error of the server, the new object may exist, and only the caller can check.
        """
        return _parsed(self._request(method, self._url(path, {}), body=body).body)

    def query(self, url: str, query: str) -> Any:
        """Return the answer of the GraphQL API at `url` to a query without variables."""
        return _parsed(self._request("POST", url, body={"query": query}, repeat=True).body)

    def _url(self, path: str, query: Mapping[str, str | int]) -> str:
        tail = f"?{urllib.parse.urlencode(query)}" if query else ""
        return f"{self._root}{urllib.parse.quote(path)}{tail}"

    def _request(
        self,
        method: str,
        url: str,
        *,
        body: Mapping[str, Any] | None = None,
        accept: str = _JSON,
        repeat: bool = False,
    ) -> Answer:
        request = self._prepared(method, url, body, accept=accept, repeat=repeat)
        named = f"{method} {self._concealed(urllib.parse.urlsplit(url).path)}"
        answer = self._asked(self._client, request, named)
        if not _is_fine(answer):
            raise self._failure(named, answer)
        return answer

    def _prepared(
        self,
        method: str,
        url: str,
        body: Mapping[str, Any] | None = None,
        *,
        accept: str = _JSON,
        repeat: bool = False,
    ) -> Request:
        address = _split(url)
        if (address.scheme, address.netloc) != self._origin:
            raise ApiError("GitHub named an address on another host; the token stays here")
        headers = {"Accept": accept, "X-GitHub-Api-Version": "2022-11-28"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        return Request(
            method=method,
            url=url,
            headers=headers,
            body=None if body is None else json.dumps(body).encode(),
            is_repeatable=repeat or method != "POST",
        )

    def _asked(self, client: HttpClient, request: Request, named: str) -> Answer:
        try:
            return client.ask(request)
        except HttpError as error:
            raise ApiError(f"{named}: {error}") from None

    def _failure(self, named: str, answer: Answer) -> ApiError:
        try:
            message = json.loads(answer.body[:100_000]).get("message", "")
        except (ValueError, AttributeError, RecursionError):
            message = ""
        words = self._concealed(message) or "no reason given"
        return ApiError(f"{named}: {answer.status} {words}", status=answer.status)

    def _concealed(self, message: object) -> str:
        """Return the server's message with the token replaced, and then shortened."""
        return harmless(concealed(str(message), [self._token])[:200])


def _is_fine(answer: Answer) -> bool:
    return http.HTTPStatus.OK <= answer.status < http.HTTPStatus.MULTIPLE_CHOICES


def _pause(request: Request, answer: Answer | None, attempt: int) -> float | None:
    """Return how long to wait before the next attempt; None where it would not help."""
    if answer is None:
        return 2.0**attempt if request.is_repeatable else None
    asked = retry_after(answer)
    spent = answer.headers.get("x-ratelimit-remaining") == "0"
    limited = answer.status == http.HTTPStatus.TOO_MANY_REQUESTS or (
        answer.status == http.HTTPStatus.FORBIDDEN and (asked is not None or spent)
    )
    if limited:
        reset = whole_seconds(answer.headers.get("x-ratelimit-reset"))
        if asked is None and spent and reset is not None:
            return max(1.0, reset - time.time())
        return asked if asked is not None else 2.0**attempt
    if answer.status >= _SERVER_ERROR and request.is_repeatable:
        return asked if asked is not None else 2.0 ** (attempt - 1)
    return None


def _split(url: str) -> urllib.parse.SplitResult:
    try:
        return urllib.parse.urlsplit(url)
    except ValueError as error:
        raise ApiError(f"{harmless(url[:100])} is no address of an API") from error


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw) if raw.strip() else None
    except (ValueError, RecursionError) as error:
        raise ApiError("GitHub's answer is no JSON") from error


def artifact_member(
    api: GitHubApi, repository: str, run: int, artifact: str, member: str, *, head: str
) -> bytes:
    """Return a file of an artifact that a run of commit `head` has left.

    Nothing is unpacked: the one member is read in memory, up to its limit, whatever it claims.
    Raises ApiError, and DataError where the run has no such artifact of that commit.
    """
    path = f"/repos/{repository}/actions/runs/{run}/artifacts"
    found = api.get(path, per_page=100, name=artifact)
    listed = found.get("artifacts") if isinstance(found, dict) else None
    matching = [
        item
        for item in (listed if isinstance(listed, list) else [])
        if isinstance(item, dict)
        and item.get("name") == artifact
        and isinstance(item.get("id"), int)
        and not item.get("expired")
    ]
    if not matching:
        raise DataError(
            f"run {run} has no artifact {quoted(artifact)}; upload the gate's `report-json` under "
            "that name, or name the artifact in the step's `with:`"
        )
    newest = max(matching, key=lambda item: int(item["id"]))  # a repeated run leaves several
    origin = newest.get("workflow_run")
    commit = origin.get("head_sha") if isinstance(origin, dict) else None
    if commit not in (None, head):  # older servers do not say it
        raise DataError(
            f"artifact {quoted(artifact)} of run {run} belongs to commit {quoted(str(commit))}, "
            f"not to {head[:12]}, which ran; run the gate again"
        )
    archive = f"/repos/{repository}/actions/artifacts/{newest['id']}/zip"
    raw = api.download(archive, MAX_ARCHIVE_BYTES)
    return member_of(raw, artifact, member, MAX_MEMBER_BYTES)


def member_of(raw: bytes, artifact: str, member: str, most: int) -> bytes:
    """Return a file of an archive, of at most so many bytes. Raises DataError."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive, archive.open(member) as file:
            content = file.read(most + 1)
    except (zipfile.BadZipFile, KeyError, OSError, EOFError, ValueError, RuntimeError) as error:
        raise DataError(
            f"artifact {quoted(artifact)} has no readable {member} ({type(error).__name__}): it "
            "may be truncated, run the gate again"
        ) from error
    except Exception as error:  # zlib.error and what other decompressors raise
        raise DataError(f"artifact {quoted(artifact)} is damaged; run the gate again") from error
    if len(content) > most:
        size = f"{most >> 20} MiB"
        raise DataError(f"{member} of artifact {quoted(artifact)} is larger than {size}")
    return content
