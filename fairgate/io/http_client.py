"""The one client for HTTP: connections kept, everything bounded, secrets in no text.

Bounded are the time from sending to the last byte, the size of an answer, the attempts and the
pauses between them. A redirect is an answer like any other and never followed: it would carry a
secret to an address that was not named. Proxies are the environment's, but never between this
machine and itself: they would read what is sent there, and their own `localhost` is another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import random
import ssl
import time
import weakref
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol, Self
from urllib.parse import urlsplit
from urllib.request import getproxies

from fairgate import __version__
from fairgate.domain.wording import concealed, harmless
from fairgate.io.event_loop import Group, close_at_exit, submitted
from fairgate.io.http_messages import (
    Answer,
    HttpError,
    Limits,
    Pause,
    Request,
    busy_pause,
    is_local,
    keeps_secrets,
    retry_after,
)

if TYPE_CHECKING:
    import httpcore2
    import httpx2


_SHOWN = 200
_IN_A_POOL = 4
_KEPT_SECONDS = 5.0
"""Without a request, until a connection is closed."""
_HEADERS = {"User-Agent": f"fairgate/{__version__}", "Accept-Encoding": "identity"}
_MOST_HEADS = 64
Errors = tuple[type[Exception], ...]


def errors() -> tuple[Errors, Errors]:
    """Return what sending raises: for a request that is wrong itself, and for a lost one."""
    import httpcore2
    import httpx2

    useless = (
        httpx2.InvalidURL,
        httpx2.UnsupportedProtocol,
        httpx2.LocalProtocolError,
        httpcore2.UnsupportedProtocol,
        httpcore2.LocalProtocolError,
        ImportError,
        ValueError,
    )
    lost = (
        httpx2.HTTPError,
        httpcore2.TimeoutException,
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        OSError,
    )
    return useless, lost


@dataclass(frozen=True, slots=True)
class Arriving:
    """An answer whose body has not been read; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class Opened(Protocol):
    """A few connections."""

    def sent(self, request: Request) -> contextlib.AbstractAsyncContextManager[Arriving]:
        """Send a request; leaving the context ends what is still under way."""
        ...

    async def close(self) -> None:
        """Close them."""
        ...


class Connections:
    """What a client holds open: connections through the environment's proxies, and without.

    They lie in pools of a few connections each: a pool looks at all of its connections whenever a
    request begins or ends, which takes longer the more there are.

    Through proxies they are httpx2's: which proxy stands before which address is for it to say.
    Where the environment names none, the layer below it, httpcore2, is used directly, which costs
    less processor time. What is sent is httpx2's either way: address, headers, and the credentials
    an address holds.
    """

    def __init__(self, limits: Limits) -> None:
        """Open nothing yet."""
        self._limits = limits
        self._pools: dict[tuple[bool, bool], list[_Pool]] = {}

    @property
    def are_open(self) -> bool:
        """Return whether there is anything to close."""
        return bool(self._pools)

    @contextlib.asynccontextmanager
    async def sent(self, request: Request) -> AsyncIterator[Arriving]:
        """Send a request over the pool with the fewest requests."""
        kind = (is_local(request.url), request.url[:5].lower() == "http:")
        if kind not in self._pools:
            self._pools[kind] = self._opened(direct=kind[0], plain=kind[1])
        pool = min(self._pools[kind], key=lambda each: each.under_way)
        pool.under_way += 1
        try:
            async with pool.opened.sent(request) as arriving:
                yield arriving
        finally:
            pool.under_way -= 1

    def _opened(self, *, direct: bool, plain: bool) -> list[_Pool]:
        import httpx2

        straight = direct or not _has_proxies()
        # Reading the certificates takes 20 ms; a connection without TLS trusts none and needs none.
        trusted = (
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if plain and straight
            else httpx2.create_ssl_context(trust_env=not direct)
        )
        count = math.ceil(self._limits.concurrency / _IN_A_POOL)
        if straight:
            heads = _Heads(_client(self._limits, trusted, direct=True))
            return [_Pool(_Straight(self._limits, trusted, heads)) for _ in range(count)]
        return [_Pool(_Routed(_client(self._limits, trusted, direct=False))) for _ in range(count)]

    async def close(self) -> None:
        """Close all of them; the next request opens new ones."""
        pools, self._pools = [each for pools in self._pools.values() for each in pools], {}
        for pool in pools:
            await pool.opened.close()


@dataclass(slots=True)
class _Pool:
    opened: Opened
    under_way: int = 0


def _has_proxies() -> bool:
    found = getproxies()
    return any(found.get(scheme) for scheme in ("http", "https", "all"))


def _client(limits: Limits, trusted: ssl.SSLContext, *, direct: bool) -> httpx2.AsyncClient:
    import httpx2

    return httpx2.AsyncClient(
        headers=_HEADERS,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        timeout=httpx2.Timeout(limits.idle_seconds, pool=None),
        limits=httpx2.Limits(
            max_connections=_IN_A_POOL,
            max_keepalive_connections=_IN_A_POOL,
            keepalive_expiry=_KEPT_SECONDS,
        ),
        follow_redirects=False,
        trust_env=not direct,
        verify=trusted,
    )


class _Routed:
    """Connections that httpx2 leads through the proxies of the environment."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    @contextlib.asynccontextmanager
    async def sent(self, request: Request) -> AsyncIterator[Arriving]:
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() != "content-length"  # is what the body's is
        }
        async with self._client.stream(
            request.method, request.url, headers=headers, content=request.body
        ) as answer:
            headers = {name.lower(): value for name, value in answer.headers.items()}
            yield Arriving(answer.status_code, headers, answer.aiter_raw())

    async def close(self) -> None:
        await self._client.aclose()


class _Straight:
    """Connections of httpcore2 to the address itself."""

    def __init__(self, limits: Limits, trusted: ssl.SSLContext, heads: _Heads) -> None:
        import httpcore2
        import httpx2

        from fairgate.io.joined_writes import backend

        self._heads = heads
        self._timeout = httpx2.Timeout(limits.idle_seconds, pool=None).as_dict()
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=trusted,
            max_connections=_IN_A_POOL,
            max_keepalive_connections=_IN_A_POOL,
            keepalive_expiry=_KEPT_SECONDS,
            network_backend=backend(),
        )

    @contextlib.asynccontextmanager
    async def sent(self, request: Request) -> AsyncIterator[Arriving]:
        import httpcore2
        import httpx2

        head = self._heads.of(request)
        asked = httpcore2.Request(
            head.method,
            head.url,
            headers=head.headers_for(request.body),
            content=request.body,
            extensions={"timeout": self._timeout},
        )
        answer = await self._pool.handle_async_request(asked)
        try:
            headers = httpx2.Headers(answer.headers)
            yield Arriving(answer.status, dict(headers.items()), answer.aiter_stream())
        finally:
            await answer.aclose()

    async def close(self) -> None:
        await self._pool.aclose()


@dataclass(frozen=True, slots=True)
class _Head:
    """What requests that differ in their bodies only have in common."""

    method: str
    url: httpcore2.URL
    headers: list[tuple[bytes, bytes]]

    def headers_for(self, body: bytes | None) -> list[tuple[bytes, bytes]]:
        length = b"%d" % len(body or b"")
        return [
            (name, length if name.lower() == b"content-length" else value)
            for name, value in self.headers
        ]


@dataclass(frozen=True, slots=True)
class _Heads:
    """What httpx2 makes of address and headers, kept for the next request with the same."""

    client: httpx2.AsyncClient
    kept: dict[tuple[object, ...], _Head] = field(default_factory=dict)

    def of(self, request: Request) -> _Head:
        key = (request.method, request.url, tuple(request.headers.items()), bool(request.body))
        found = self.kept.get(key)
        if found is None:
            if len(self.kept) >= _MOST_HEADS:
                self.kept.clear()
            found = self.kept[key] = self._made(request)
        return found

    def _made(self, request: Request) -> _Head:
        import httpcore2
        import httpx2

        made = self.client.build_request(
            request.method, request.url, headers=request.headers, content=request.body
        )
        if made.url.username or made.url.password:
            made = next(httpx2.BasicAuth(made.url.username, made.url.password).auth_flow(made))
        url = httpcore2.URL(
            scheme=made.url.raw_scheme,
            host=made.url.raw_host,
            port=made.url.port,
            target=made.url.raw_path,
        )
        return _Head(made.method, url, made.headers.raw)


class HttpClient:
    """Asks over kept connections, from one thread at a time.

    `secrets` are values that no text of an HttpError holds, and that go nowhere unencrypted.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        secrets: Sequence[str] = (),
        pause: Pause = busy_pause,
        sleep: Callable[[float], None] | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Open nothing yet. `sleep` replaces waiting; pauses of ours vary by `jitter`, 0 to 1."""
        self._limits = limits
        self._secrets = [*secrets, *_proxy_passwords()]
        self._pause = pause
        self._sleep = _waiting(sleep)
        self._jitter = jitter
        self._next_start = 0.0
        self._group = Group()
        self._connections = Connections(limits)
        # Left to itself it is closed too, without waiting for that: this may be the loop's thread.
        weakref.finalize(self, _close_soon, self._connections).atexit = False
        close_at_exit(self._connections)

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close its connections."""
        self.close()

    def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        if self._connections.are_open:
            submitted(self._connections.close()).result()

    def ask(self, request: Request) -> Answer:
        """Return the answer, whatever its status. Raises HttpError."""
        for _, found in self.ask_all([request]):
            if isinstance(found, HttpError):
                raise found
            return found
        raise AssertionError  # pragma: no cover  (one request, one answer)

    def ask_all(self, requests: Iterable[Request]) -> Iterator[tuple[int, Answer | HttpError]]:
        """Yield position and answer as they come; so many at once as the limits say.

        Requests are taken from the iterable as there is room. Closing the iterator, or an
        interrupt, ends what is under way before it returns.
        """
        source = enumerate(requests)
        pending: dict[Future[Answer | HttpError], int] = {}
        done: SimpleQueue[Future[Answer | HttpError]] = SimpleQueue()
        try:
            while self._fill(pending, source, done):
                answered = done.get()
                position, found = pending.pop(answered), answered.result()
                # Before the caller's work on this answer, so that no room is empty meanwhile.
                self._fill(pending, source, done)
                yield position, found
        finally:
            if pending:
                self._group.end()

    def _fill(
        self,
        pending: dict[Future[Answer | HttpError], int],
        source: Iterator[tuple[int, Request]],
        done: SimpleQueue[Future[Answer | HttpError]],
    ) -> bool:
        """Start requests while there is room; return whether any is under way."""
        while len(pending) < self._limits.concurrency:
            position, request = next(source, (-1, None))
            if request is None:
                break
            future = self._group.submit(self._answer(request, self._start()))
            pending[future] = position
            future.add_done_callback(done.put)
        return bool(pending)

    def _start(self) -> float:
        """Return when the next request may start, on the loop's clock."""
        start = max(time.monotonic(), self._next_start)
        if self._limits.per_second is not None:
            self._next_start = start + 1 / self._limits.per_second
        return start

    async def _answer(self, request: Request, start: float) -> Answer | HttpError:
        """Return the last attempt's answer, or why there is none."""
        if (early := start - time.monotonic()) > 0:
            await asyncio.sleep(early)
        for attempt in range(1, self._limits.attempts + 1):
            found = await self._attempt(request, attempt)
            if isinstance(found, HttpError) and not found.is_lost:
                return found
            answer = found if isinstance(found, Answer) else None
            pause = self._pause(request, answer, attempt)
            is_last = attempt == self._limits.attempts
            if pause is None or pause > self._limits.longest_pause or is_last:
                return found
            is_ours = answer is None or retry_after(answer) is None
            await self._sleep(pause * (1 - self._jitter() / 4) if is_ours else pause)
        raise AssertionError  # pragma: no cover  (the loop returns)

    async def _attempt(self, request: Request, attempt: int) -> Answer | HttpError:
        useless, lost = errors()
        try:
            self._check(request)
            async with asyncio.timeout(self._limits.seconds):
                return await self._once(request)
        except TimeoutError:
            text, is_lost = f"no complete answer within {self._limits.seconds:g} s", True
        except useless as error:
            text, is_lost = self._shown(error), False
        except lost as error:
            text, is_lost = self._shown(error), True
        return HttpError(text, attempts=attempt, is_lost=is_lost)

    def _check(self, request: Request) -> None:
        """Raise ValueError for what must not be sent, or cannot be."""
        _ = urlsplit(request.url).port  # raises where it is none
        sent = [*request.headers.values(), request.url]
        has_secret = any(secret in text for secret in self._secrets if secret for text in sent)
        if has_secret and not keeps_secrets(request.url):
            raise ValueError("a secret would be sent unencrypted")

    async def _once(self, request: Request) -> Answer:
        async with self._connections.sent(request) as arriving:
            if arriving.headers.get("content-encoding", "identity") != "identity":
                raise ValueError("the answer is compressed, which was not asked for")
            body = bytearray()
            async for chunk in arriving.chunks:
                body += chunk
                if len(body) > self._limits.most_bytes:
                    raise ValueError(f"the answer is larger than {self._limits.most_bytes:,} bytes")
            return Answer(status=arriving.status, headers=arriving.headers, body=bytes(body))

    def _shown(self, error: BaseException) -> str:
        """Return an error's own words: the system's, where it is one of the network."""
        at: BaseException | None = error
        text = str(error)
        while at is not None:
            if isinstance(at, ssl.SSLError):
                text = str(at)  # the number of such an error is not the system's
            elif isinstance(at, OSError) and at.errno:
                # What asyncio makes of a refused connection does not say that it was refused.
                text = os.strerror(at.errno) if at.errno > 0 else str(at.strerror)
            at = at.__cause__ or at.__context__
        return harmless(concealed(text or type(error).__name__, self._secrets)[:_SHOWN])


def _close_soon(connections: Connections) -> None:
    if connections.are_open:
        submitted(connections.close())


def _waiting(sleep: Callable[[float], None] | None) -> Callable[[float], Awaitable[None]]:
    if sleep is None:
        return asyncio.sleep

    async def wait(seconds: float) -> None:
        sleep(seconds)

    return wait


def _proxy_passwords() -> list[str]:
    """Return the passwords in the addresses of proxies, which errors may repeat."""
    found = []
    for address in getproxies().values():
        try:
            found += [urlsplit(address).password or ""]
        except ValueError:
            found += [address]
    return found
