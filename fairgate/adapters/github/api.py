"""GitHub's REST API over the standard library: a few endpoints, time-outs, retries, no surprises.

A client of our own rather than PyGithub: the action's environment stays small (no requests, no
cryptography), and what matters here is decided here: what is retried, for how long, that a redirect
never carries the token to another host, and that the token appears in no message.
"""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fairgate import __version__
from fairgate.domain.errors import ApiError
from fairgate.domain.secrets import concealed
from fairgate.domain.wording import harmless

PER_PAGE = 100
MAX_PAGES = 100
MAX_ANSWER_BYTES = 300 << 20
TIMEOUT_SECONDS = 15.0
ATTEMPTS = 4
LONGEST_WAIT_SECONDS = 60.0
"""GitHub asks for up to an hour when a quota is spent; a build does not wait for that."""

_JSON = "application/vnd.github+json"
RAW = "application/vnd.github.raw+json"
_NEXT = re.compile(r'<([^<>]+)>\s*;[^,]*\brel="next"')
_SERVER_ERROR = 500
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_UNREACHED = (OSError, http.client.HTTPException, ValueError)
"""What a request raises; ValueError where an address that GitHub named is none."""
_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows nothing: a redirect would carry the token wherever it points."""

    def redirect_request(self, *_: Any) -> None:
        return None


class GitHubApi:
    """Requests in the name of one token. Every failure is an ApiError."""

    def __init__(
        self, root: str, token: str, *, sleep: Callable[[float], None] | None = None
    ) -> None:
        """Talk to the API at `root`; `sleep` waits between attempts. Raises ApiError."""
        address = _split(root)
        is_safe = address.scheme == "https" or address.hostname in _LOCAL
        if address.scheme not in {"http", "https"} or not is_safe:
            raise ApiError(f"{harmless(root[:100])} is no address of an API; expected https://…")
        self._root = root.rstrip("/")
        self._origin = (address.scheme, address.netloc)
        self._token = token
        self._sleep = sleep or time.sleep
        # A proxy has nothing to do between this machine and itself, and would read the token.
        direct = [urllib.request.ProxyHandler({})] if address.hostname in _LOCAL else []
        self._opener = urllib.request.build_opener(_NoRedirects, *direct)

    def __repr__(self) -> str:
        """Say where it talks to, never with which token."""
        return f"GitHubApi({self._root!r})"

    def get(self, path: str, **query: str | int) -> Any:
        """Return the JSON answer."""
        return _parsed(self._request("GET", self._url(path, query))[0])

    def get_raw(self, path: str, **query: str | int) -> bytes:
        """Return a file's bytes."""
        return self._request("GET", self._url(path, query), accept=RAW)[0]

    def download(self, path: str, limit: int) -> bytes:
        """Return the file that an address redirects to, which is asked without the token."""
        target = self._redirected(path)
        address = _split(target)
        if address.scheme != "https" and address.hostname not in _LOCAL:
            raise ApiError(f"GET {path}: redirects to an address that is not https")
        request = urllib.request.Request(target, headers={"User-Agent": "fairgate"})  # noqa: S310
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                raw: bytes = answer.read(limit + 1)
        except _UNREACHED as error:
            raise ApiError(f"GET {path}: {self._told(error)}") from None
        if len(raw) > limit:
            raise ApiError(f"GET {path}: larger than {limit >> 20} MiB")
        return raw

    def _redirected(self, path: str) -> str:
        request = self._prepared("GET", self._url(path, {}), None, _JSON)
        try:
            self._once(request)
        except urllib.error.HTTPError as error:
            target = error.headers.get("Location") if error.code in _REDIRECTS else None
            if not target:
                raise self._failure("GET", path, error) from None
            error.close()
            return str(target)
        except _UNREACHED as error:
            raise ApiError(f"GET {path}: {self._told(error)}") from None
        raise ApiError(f"GET {path}: expected a redirect to the file")

    def pages(self, path: str, **query: str | int) -> Iterator[Any]:
        """Yield the items of all pages of a list."""
        url = self._url(path, {"per_page": PER_PAGE, **query})
        for _ in range(MAX_PAGES):
            raw, headers = self._request("GET", url)
            items = _parsed(raw)
            if not isinstance(items, list):
                raise ApiError(f"GET {path}: the answer is no list")
            yield from items
            following = _NEXT.search(headers.get("link", ""))
            if following is None:
                return
            url = following[1]
        raise ApiError(f"GET {path}: more than {MAX_PAGES} pages")

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the answer to POST, PATCH or DELETE.

        A POST is repeated only where GitHub says that it did nothing (rate limits): after an error
        of the server, what it was to create may be there, and only the caller can look.
        """
        return _parsed(self._request(method, self._url(path, {}), body=body)[0])

    def query(self, url: str, query: str) -> Any:
        """Return the answer of the GraphQL API at `url` to a query without variables."""
        return _parsed(self._request("POST", url, body={"query": query}, repeat=True)[0])

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
    ) -> tuple[bytes, Mapping[str, str]]:
        repeatable = repeat or method != "POST"
        for attempt in range(1, ATTEMPTS + 1):
            # One of its own each time: where there is a proxy, urllib makes it one to the proxy.
            request = self._prepared(method, url, body, accept)
            try:
                return self._once(request)
            except urllib.error.HTTPError as error:
                wait = _wait_for(error, attempt, repeatable=repeatable)
                failure = self._failure(method, url, error)
            except _UNREACHED as error:
                wait = 2.0**attempt if repeatable else None
                reason = getattr(error, "reason", error)
                failure = ApiError(f"{self._named(method, url)}: {self._told(reason)}")
            if wait is None or wait > LONGEST_WAIT_SECONDS or attempt == ATTEMPTS:
                raise failure
            self._sleep(wait)
        raise AssertionError  # pragma: no cover  (the loop returns or raises)

    def _prepared(
        self, method: str, url: str, body: Mapping[str, Any] | None, accept: str
    ) -> urllib.request.Request:
        address = _split(url)
        if (address.scheme, address.netloc) != self._origin:
            raise ApiError("GitHub named an address on another host; the token stays here")
        headers = {
            "Accept": accept,
            "User-Agent": f"fairgate/{__version__}",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        return urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310

    def _once(self, request: urllib.request.Request) -> tuple[bytes, Mapping[str, str]]:
        with self._opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
            raw = answer.read(MAX_ANSWER_BYTES + 1)
            if len(raw) > MAX_ANSWER_BYTES:
                raise http.client.HTTPException("the answer is too large")
            return raw, {name.lower(): value for name, value in answer.headers.items()}

    def _failure(self, method: str, url: str, error: urllib.error.HTTPError) -> ApiError:
        try:
            said = json.loads(error.read(100_000)).get("message", "")
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            said = ""
        finally:
            error.close()
        words = self._told(said) or "no reason given"
        return ApiError(f"{self._named(method, url)}: {error.code} {words}", status=error.code)

    def _named(self, method: str, url: str) -> str:
        return f"{method} {self._told(urllib.parse.urlsplit(url).path)}"

    def _told(self, said: object) -> str:
        """Return what the server has said, which may repeat the token; shortened only then.

        The exception itself goes no further: a traceback would show it. Raise `from None`.
        """
        return harmless(concealed(str(said), [self._token])[:200])


def _wait_for(error: urllib.error.HTTPError, attempt: int, *, repeatable: bool) -> float | None:
    """Return how long to wait before the next attempt; None where it would not help."""
    asked = _seconds(error.headers.get("Retry-After"))
    spent = error.headers.get("X-RateLimit-Remaining") == "0"
    limited = error.code == http.HTTPStatus.TOO_MANY_REQUESTS or (
        error.code == http.HTTPStatus.FORBIDDEN and (asked is not None or spent)
    )
    if limited:
        reset = _seconds(error.headers.get("X-RateLimit-Reset"))
        if asked is None and spent and reset is not None:
            return max(1.0, reset - time.time())
        return asked if asked is not None else 2.0**attempt
    if error.code >= _SERVER_ERROR and repeatable:
        return asked if asked is not None else 2.0 ** (attempt - 1)
    return None


def _seconds(value: str | None) -> float | None:
    return float(value) if value is not None and re.fullmatch(r"[0-9]{1,12}", value) else None


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
