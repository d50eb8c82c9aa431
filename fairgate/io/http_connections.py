"""Connections that are kept open: on httpx2 through proxies, on httpcore2 without.

Which proxy stands before which address is httpx2's to say. Where the environment names none, the
layer below it is spoken to directly, which costs less processor time. What is sent is httpx2's
either way: address, headers, and the credentials an address holds.
"""

from __future__ import annotations

import contextlib
import math
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Protocol
from urllib.request import getproxies

from fairgate import __version__
from fairgate.io.http_messages import Limits, Request, is_local

if TYPE_CHECKING:
    import httpcore2
    import httpx2

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
