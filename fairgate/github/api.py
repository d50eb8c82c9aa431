"""GitHub's REST API over the one HTTP client, and the artifacts of its runs.

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
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairgate.domain.errors import ApiError, DataError
from fairgate.domain.wording import concealed, harmless, quoted
from fairgate.io.git import FULL_COMMIT
from fairgate.io.http_client import HttpClient
from fairgate.io.http_messages import (
    HttpAnswer,
    HttpError,
    Limits,
    Request,
    keeps_secrets,
    retry_after,
    whole_seconds,
)

PER_PAGE = 100
MAX_PAGES = 100
_HISTORY_PAGES = 10
"""Pages of commits that are looked at behind the newest."""
_IN_HISTORY = {"ahead", "identical"}
"""What GitHub says of a tip compared with a commit of its history."""
LIMITS = Limits(seconds=300.0, idle_seconds=15.0, most_bytes=300 << 20, longest_pause=60.0)
"""GitHub asks for up to an hour when a quota is spent; a build does not wait for that."""

_JSON = "application/vnd.github+json"
RAW = "application/vnd.github.raw+json"
_NEXT = re.compile(r'<([^<>]+)>\s*;[^,]*\brel="next"')
_SERVER_ERROR = 500
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
_BRANCH = re.compile(r"[^\x00-\x20\x7f~^:?*\[\\]{1,255}")
_FINE = range(200, 300)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAX_MEMBER_BYTES = 16 << 20
"""Also bounds the archive, whose table of contents is read whole."""


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
        return _parsed(self._ask("GET", self._url(path, query)).body)

    def get_raw(self, path: str) -> bytes:
        """Return a file's bytes."""
        return self._ask("GET", self._url(path, {}), accept=RAW).body

    def download(self, path: str, limit: int) -> bytes:
        """Return the file that an address redirects to, which is asked without the token."""
        target = self._ask("GET", self._url(path, {}), fine=_REDIRECTS).headers.get("location", "")
        if not keeps_secrets(target):
            raise ApiError(f"GET {path}: redirects to an address that is not https")
        limits = replace(LIMITS, most_bytes=limit)
        with HttpClient(limits, secrets=[self._token], sleep=self._sleep) as client:
            return self._answered(client, Request(method="GET", url=target), f"GET {path}").body

    def pages(self, path: str, **query: str | int) -> Iterator[Any]:
        """Yield the items of all pages of a list."""
        url = self._url(path, {"per_page": PER_PAGE, **query})
        for _ in range(MAX_PAGES):
            answer = self._ask("GET", url)
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
        return _parsed(self._ask(method, self._url(path, {}), body).body)

    def query(self, url: str, query: str) -> Any:
        """Return the answer of the GraphQL API at `url` to a query without variables."""
        return _parsed(self._ask("POST", url, {"query": query}, is_repeatable=True).body)

    def _url(self, path: str, query: Mapping[str, str | int]) -> str:
        tail = f"?{urllib.parse.urlencode(query)}" if query else ""
        return f"{self._root}{urllib.parse.quote(path)}{tail}"

    def _ask(
        self,
        method: str,
        url: str,
        body: Mapping[str, Any] | None = None,
        *,
        accept: str = _JSON,
        is_repeatable: bool = False,
        fine: Container[int] = _FINE,
    ) -> HttpAnswer:
        address = _split(url)
        if (address.scheme, address.netloc) != self._origin:
            raise ApiError("GitHub named an address on another host; the token stays here")
        headers = {"Accept": accept, "X-GitHub-Api-Version": "2022-11-28"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = Request(
            method=method,
            url=url,
            headers=headers,
            body=None if body is None else json.dumps(body).encode(),
            is_repeatable=is_repeatable or method != "POST",
        )
        request_line = f"{method} {self._concealed(address.path)}"
        return self._answered(self._client, request, request_line, fine)

    def _answered(
        self, client: HttpClient, request: Request, request_line: str, fine: Container[int] = _FINE
    ) -> HttpAnswer:
        try:
            answer = client.ask(request)
        except HttpError as error:
            raise ApiError(f"{request_line}: {error}") from None
        if answer.status in fine:
            return answer
        try:
            message = json.loads(answer.body[:100_000]).get("message", "")
        except (ValueError, AttributeError, RecursionError):
            message = ""
        words = self._concealed(message) or "no reason given"
        raise ApiError(f"{request_line}: {answer.status} {words}", status=answer.status)

    def _concealed(self, message: object) -> str:
        """Return the server's message with the token replaced, and then shortened."""
        return harmless(concealed(str(message), [self._token])[:200])


def _pause(request: Request, answer: HttpAnswer | None, attempt: int) -> float | None:
    """Return how long to wait before the next attempt; None where it would not help."""
    if answer is None:
        return 2.0**attempt if request.is_repeatable else None
    requested = retry_after(answer)
    spent = answer.headers.get("x-ratelimit-remaining") == "0"
    limited = answer.status == http.HTTPStatus.TOO_MANY_REQUESTS or (
        answer.status == http.HTTPStatus.FORBIDDEN and (requested is not None or spent)
    )
    if limited:
        reset = whole_seconds(answer.headers.get("x-ratelimit-reset"))
        if requested is None and spent and reset is not None:
            return max(1.0, reset - time.time())
        return requested if requested is not None else 2.0**attempt
    if answer.status >= _SERVER_ERROR and request.is_repeatable:
        return requested if requested is not None else 2.0 ** (attempt - 1)
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


def artifact_file(
    api: GitHubApi, repository: str, run: int, artifact: str, name: str, head: str = ""
) -> bytes:
    """Return a file of an artifact that a run, of commit `head`, has left.

    Nothing is unpacked: it is read in memory, up to a limit, whatever it claims. Raises ApiError,
    and DataError where the run has no such artifact of that commit.
    """
    listed = artifacts_of(api, f"/repos/{repository}/actions/runs/{run}", artifact)
    available = (
        entry for entry in listed if isinstance(entry.get("id"), int) and not entry.get("expired")
    )
    # A repeated run leaves several.
    newest = max(available, key=lambda item: int(item["id"]), default=None)
    if newest is None:
        raise DataError(
            f"run {run} has no artifact {quoted(artifact)}; upload the gate's `run-folder` under "
            "that name, or name the artifact in the step's `with:`"
        )
    commit = value_at(newest, "workflow_run", "head_sha")
    if head and commit not in (None, head):  # older servers do not say it
        raise DataError(
            f"artifact {quoted(artifact)} of run {run} belongs to commit {quoted(str(commit))}, "
            f"not to {head[:12]}, which ran; run the gate again"
        )
    files = files_in(api, repository, newest["id"], artifact, [name], MAX_MEMBER_BYTES)
    return files[name]


def files_in(
    api: GitHubApi, repository: str, number: int, artifact: str, names: Sequence[str], most: int
) -> dict[str, bytes]:
    """Return files of an archive, of at most this many bytes, as its archive. Raises DataError."""
    raw = api.download(f"/repos/{repository}/actions/artifacts/{number}/zip", most)
    contents, remaining_bytes, member = dict[str, bytes](), most, names[0]
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            for member in sorted({names[0]} | (set(names) & set(archive.namelist()))):
                with archive.open(member) as file:
                    contents[member] = file.read(remaining_bytes + 1)
                remaining_bytes -= len(contents[member])
    except (zipfile.BadZipFile, KeyError, OSError, EOFError, ValueError, RuntimeError) as error:
        raise DataError(
            f"artifact {quoted(artifact)} has no readable {member} ({type(error).__name__}): it "
            "may be truncated, run the gate again"
        ) from error
    except Exception as error:  # zlib.error and what other decompressors raise
        raise DataError(f"artifact {quoted(artifact)} is damaged; run the gate again") from error
    if remaining_bytes < 0:
        size = f"{most >> 20} MiB"
        raise DataError(f"{member} of artifact {quoted(artifact)} is larger than {size}")
    return contents


def value_at(value: object, *keys: str) -> Any:
    """Return the value at a path of keys, None where the path ends before."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def natural(value: object) -> int | None:
    """Return a number from 1 on, also where it is written as text; None for all else."""
    text = str(value)
    is_number = re.fullmatch(r"[0-9]{1,18}", text, re.ASCII)
    return int(text) if is_number and int(text) > 0 and not isinstance(value, bool) else None


def commit_of(value: object) -> str:
    """Return a commit's full name, nothing for all else."""
    return value if isinstance(value, str) and FULL_COMMIT.fullmatch(value) else ""


def repository_of(value: object) -> str:
    """Return `owner/name`, nothing for all else."""
    return value if isinstance(value, str) and _REPOSITORY.fullmatch(value) else ""


def branch_of(value: object) -> str:
    """Return the name of a branch, nothing for all else."""
    return value if isinstance(value, str) and _BRANCH.fullmatch(value) else ""


def artifacts_of(api: GitHubApi, owner: str, artifact: str) -> list[dict[str, Any]]:
    """List the artifacts of a run or a repository that have a name."""
    listed = value_at(api.get(f"{owner}/artifacts", per_page=100, name=artifact), "artifacts")
    return [
        item
        for item in (listed if isinstance(listed, list) else [])
        if isinstance(item, dict) and item.get("name") == artifact
    ]


def rows_of(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list, none for all else."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def is_on_first_parent_line(api: GitHubApi, repository: str, commit: str, tip: str) -> bool:
    """Return whether first parents lead from a tip to a commit, within some pages.

    What a merge brought into the history beside that line no review of the branch has seen alone.
    Raises ApiError.
    """
    first_parents: dict[str, str] = {}
    for page in range(1, _HISTORY_PAGES + 1):
        path = f"/repos/{repository}/compare/{commit}...{tip}"
        history = api.get(path, per_page=PER_PAGE, page=page)
        if value_at(history, "status") not in _IN_HISTORY:
            return False
        commits = rows_of(value_at(history, "commits"))
        first_parents |= {
            str(entry.get("sha")): commit_of(value_at(parents[0], "sha"))
            for entry in commits
            if (parents := rows_of(entry.get("parents")))
        }
        if len(commits) < PER_PAGE:
            break
    while tip and tip != commit:
        tip = first_parents.pop(tip, "")
    return tip == commit
