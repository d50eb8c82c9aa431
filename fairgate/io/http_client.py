"""The one client for HTTP: connections kept, everything bounded, secrets in no text.

Bounded are the time from sending to the last byte, the size of an answer, the attempts and the
pauses between them. A redirect is an answer like any other and never followed: it would carry a
secret to an address that was not named. Proxies are the environment's, but never between this
machine and itself: they would read what is sent there, and their own `localhost` is another one.
"""

from __future__ import annotations

import asyncio
import os
import random
import ssl
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, Self, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

from fairgate import __version__
from fairgate.domain.wording import concealed, harmless
from fairgate.io.event_loop import Group, close_at_exit, submitted
from fairgate.io.http_messages import (
    UNSURE,
    WINDOW,
    Fault,
    Found,
    HttpAnswer,
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
    import anyio
    import httpx2

_SHOWN = 200
_sleep = asyncio.sleep
_VAIN = 2
"""Requests that fail alike in all attempts before pauses between them are given up."""
_TO_RECOVER = 100
"""Answers in a row after which a rate that was lowered is doubled."""
_KEPT_SECONDS = 5.0
"""Without a request, until a connection is closed."""
_HEADERS = {"User-Agent": f"fairgate/{__version__}", "Accept-Encoding": "identity"}


class Connections:
    """What a client holds open: connections through the environment's proxies, and without."""

    def __init__(self, limits: Limits) -> None:
        """Open nothing yet."""
        self._limits = limits
        self._clients: dict[tuple[bool, bool], httpx2.AsyncClient] = {}

    def to(self, url: str) -> httpx2.AsyncClient:
        """Return the connections that lead to an address."""
        is_here, is_plain = kind = (is_local(url), url[:5].lower() == "http:")
        if kind in self._clients:
            return self._clients[kind]
        import httpx2

        # Reading the certificates takes 20 ms; a connection without TLS trusts none and needs none.
        trusted = (
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if is_here and is_plain
            else httpx2.create_ssl_context(trust_env=not is_here)
        )
        most = self._limits.concurrency
        self._clients[kind] = httpx2.AsyncClient(
            headers=_HEADERS,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            timeout=httpx2.Timeout(self._limits.idle_seconds, pool=None),
            limits=httpx2.Limits(
                max_connections=most, max_keepalive_connections=most, keepalive_expiry=_KEPT_SECONDS
            ),
            follow_redirects=False,
            trust_env=not is_here,
            verify=trusted,
        )
        return self._clients[kind]

    def end(self) -> Future[None] | None:
        """Close all of them on the loop, without waiting; None where none is open."""
        return submitted(self.close()) if self._clients else None

    async def close(self) -> None:
        """Close all of them; the next request opens new ones."""
        while self._clients:
            await self._clients.popitem()[1].aclose()


class Pace:
    """When a client starts its requests: at once, or slower where a server says so."""

    def __init__(self) -> None:
        """Limit nothing yet."""
        self._interval = 0.0
        self._next = 0.0
        self._started = 0
        self._since = self._held_until = 0.0
        self._in_a_row = 0

    def turn(self, now: float, pause: float = 0.0) -> float:
        """Return the seconds from `now` until the next request, at least `pause`."""
        wait = max(pause, self._next - now)
        self._next = now + wait + self._interval
        if not self._started:
            self._since = now
        self._started += 1
        return wait

    def answered(self) -> None:
        """Count an answer; after many in a row the rate is doubled."""
        self._in_a_row += 1
        if self._in_a_row >= _TO_RECOVER:
            self._interval /= 2
            self._in_a_row = 0

    def refused(self, now: float, pause: float) -> None:
        """Start nothing for a pause, and halve the rate.

        What is refused during the pause was sent before it, and lowers nothing further.
        """
        self._in_a_row = 0
        if now < self._held_until:
            return
        measured = (now - self._since) / self._started
        self._interval = min(2 * max(self._interval, measured), WINDOW)
        self._next = self._since = self._held_until = now + pause
        self._started = 1

    def held(self, now: float) -> float:
        """Return the seconds from `now` for which nothing may be started."""
        return max(0.0, self._held_until - now)


Result = TypeVar("Result")
Talk = Generator[Request, Found, Result]
"""Yields one request after the other, is sent the answer to each, and returns what it found."""


class _Turns(Iterator[Request], Generic[Result]):
    """The next requests of talks; one that was answered goes before one that has not begun."""

    def __init__(self, talks: Iterable[Talk[Result]]) -> None:
        self._new = enumerate(talks)
        self._number = count()
        self.ready: deque[tuple[int, Talk[Result], Request]] = deque()
        self.asked: dict[int, tuple[int, Talk[Result]]] = {}

    def __next__(self) -> Request:
        if self.ready:
            position, talk, request = self.ready.popleft()
        else:
            position, talk = next(self._new)
            request = next(talk)
        self.asked[next(self._number)] = position, talk
        return request


class HttpClient:
    """Asks over kept connections, from one thread at a time.

    `secrets` are values that no text of an HttpError holds, and that go nowhere unencrypted.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        secrets: Sequence[str] = (),
        pause: Pause | None = None,
        sleep: Callable[[float], None] | None = None,
        jitter: Callable[[], float] = random.random,
        judged: Callable[[HttpAnswer], HttpAnswer] = lambda answer: answer,
    ) -> None:
        """Open nothing yet. `sleep` replaces waiting; pauses of ours vary by `jitter`, 0 to 1.

        `judged` gives the answer that counts for one that came: its status decides on retries.
        """
        self._limits = limits
        self._secrets = [*secrets, *_proxy_passwords()]
        self._pause = pause or partial(busy_pause, attempts=limits.attempts)
        self._sleep = sleep
        self._jitter = jitter
        self._judged = judged
        self._pace = Pace()
        self._vain: Counter[int] = Counter()
        self._helped: set[int] = set()
        self._group = Group()
        self._scopes: weakref.WeakSet[anyio.CancelScope] = weakref.WeakSet()
        self._connections = Connections(limits)
        # Left to itself it is closed too, without waiting for that: this may be the loop's thread.
        weakref.finalize(self, self._connections.end).atexit = False
        close_at_exit(self._connections)

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close its connections."""
        self.close()

    def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        if (closed := self._connections.end()) is not None:
            closed.result()

    def ask(self, request: Request) -> HttpAnswer:
        """Return the answer, whatever its status. Raises HttpError."""
        ((_, answer),) = self.ask_all([request])
        if isinstance(answer, HttpError):
            raise answer
        return answer

    def ask_all(self, requests: Iterable[Request]) -> Iterator[tuple[int, HttpAnswer | HttpError]]:
        """Yield position and answer as they come, as many at once as the limits allow.

        Requests are taken from the iterable as there is room, again after each answer. Closing the
        iterator, or an interrupt, ends what is under way before it returns.
        """
        source = enumerate(requests)
        pending: dict[Future[HttpAnswer | HttpError], int] = {}
        done: SimpleQueue[Future[HttpAnswer | HttpError]] = SimpleQueue()
        try:
            while self._fill(pending, source, done):
                answered = done.get()
                position, answer = pending.pop(answered), answered.result()
                # Before the caller's work on this answer, so that no room is empty meanwhile.
                self._fill(pending, source, done)
                yield position, answer
        finally:
            if pending:
                # While it closes connections httpx2 is safe from scopes, not from `Task.cancel`.
                submitted(self._cancel()).result()
                self._group.finish()

    def talk_all(self, talks: Iterable[Talk[Result]]) -> Iterator[tuple[int, Result]]:
        """Yield position and result of talks as they end; as many at once as `ask_all` asks.

        What a talk raises ends all of them.
        """
        turns = _Turns(talks)
        for number, answer in self.ask_all(turns):
            position, talk = turns.asked.pop(number)
            try:
                turns.ready.append((position, talk, talk.send(answer)))
            except StopIteration as ended:
                yield position, ended.value

    async def _cancel(self) -> None:
        """Cancel what is under way."""
        for scope in self._scopes:
            scope.cancel()

    def _fill(
        self,
        pending: dict[Future[HttpAnswer | HttpError], int],
        source: Iterator[tuple[int, Request]],
        done: SimpleQueue[Future[HttpAnswer | HttpError]],
    ) -> bool:
        """Start requests while there is room; return whether any is under way."""
        while len(pending) < self._limits.concurrency:
            position, request = next(source, (-1, None))
            if request is None:
                break
            future = self._group.submit(self._answer(request))
            pending[future] = position
            future.add_done_callback(done.put)
        return bool(pending)

    async def _answer(self, request: Request) -> HttpAnswer | HttpError:
        """Return the last attempt's answer, or why there is none."""
        import anyio

        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            await self._wait(self._pace.turn(time.monotonic(), request.after))
            await self._wait(self._pace.held(time.monotonic()))
            before: HttpAnswer | None = None
            for attempt in range(1, self._limits.attempts + 1):
                outcome = await self._attempt(request, attempt)
                if isinstance(outcome, HttpError) and not outcome.is_lost:
                    return outcome
                answer = outcome if isinstance(outcome, HttpAnswer) else None
                self._note(before, answer, attempt)
                before = answer
                pause = self._pause(request, answer, attempt)
                if pause is not None and answer is not None and self._is_vain(answer):
                    pause = 0.0 if attempt == 1 else None
                longest = self._limits.longest_pause if attempt < self._limits.attempts else -1
                if pause is None or pause > longest:
                    if pause is None and answer is not None:
                        self._pace.answered()
                    return outcome
                await self._wait(self._until_next(answer, pause))
        raise asyncio.CancelledError

    def _note(self, before: HttpAnswer | None, answer: HttpAnswer | None, attempt: int) -> None:
        """Count what another attempt changed, and where the last one changed nothing."""
        if before is not None and (answer is None or answer.status != before.status):
            self._helped.add(before.status)
        if answer is not None and attempt == self._limits.attempts:
            self._vain[answer.status] += 1

    def _is_vain(self, answer: HttpAnswer) -> bool:
        """Whether no pause ever changed such an answer, so that one more attempt is enough.

        So a server that fails at one identity, time after time, is not waited for at each text.
        """
        status = answer.status
        return status in UNSURE and status not in self._helped and self._vain[status] >= _VAIN

    def _until_next(self, answer: HttpAnswer | None, pause: float) -> float:
        """Return the seconds until the next attempt; for a rate limit all requests wait."""
        if answer is not None and answer.is_rate_limited:
            now = time.monotonic()
            pause *= 1 + self._jitter() / 4  # never shorter: the window must be over
            self._pace.refused(now, pause)
            return self._pace.turn(now, pause)
        if answer is None or retry_after(answer) is None:
            pause *= 1 - self._jitter() / 4
        return pause

    async def _wait(self, seconds: float) -> None:
        if seconds <= 0:
            return
        if self._sleep is None:
            await _sleep(seconds)
        else:
            self._sleep(seconds)

    async def _attempt(self, request: Request, attempt: int) -> HttpAnswer | HttpError:
        import anyio
        import httpx2

        unsendable = (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)
        unreached = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)
        fault = Fault.BROKEN
        try:
            self._check(request)
            with anyio.fail_after(self._limits.seconds):
                return self._judged(await self._once(request))
        except TimeoutError:
            text, fault = f"no complete answer within {self._limits.seconds:g} s", Fault.LATE
        except (*unsendable, ImportError, ValueError) as error:
            text, fault = self._shown(error), Fault.UNUSABLE
        except (httpx2.HTTPError, OSError) as error:
            text = self._shown(error)
            if isinstance(error, unreached):
                fault = Fault.UNREACHED
        return HttpError(text, attempts=attempt, fault=fault)

    def _check(self, request: Request) -> None:
        """Raise ValueError for what must not be sent, or cannot be."""
        _ = urlsplit(request.url).port  # raises where it is none
        sent = [*request.headers.values(), request.url]
        has_secret = any(secret in text for secret in self._secrets if secret for text in sent)
        if has_secret and not keeps_secrets(request.url):
            raise ValueError("a secret would be sent unencrypted")

    async def _once(self, request: Request) -> HttpAnswer:
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() != "content-length"  # is what the body's is
        }
        async with self._connections.to(request.url).stream(
            request.method, request.url, headers=headers, content=request.body
        ) as arriving:
            if arriving.headers.get("content-encoding", "identity") != "identity":
                raise ValueError("the answer is compressed, which was not asked for")
            body = bytearray()
            async for chunk in arriving.aiter_raw():
                body += chunk
                if len(body) > self._limits.most_bytes:
                    raise ValueError(f"the answer is larger than {self._limits.most_bytes:,} bytes")
            return HttpAnswer(
                status=arriving.status_code, headers=dict(arriving.headers), body=bytes(body)
            )

    def _shown(self, error: BaseException) -> str:
        """Return an error's own words: the system's, where it is one of the network."""
        cause: BaseException | None = error
        text = str(error)
        while cause is not None:
            if isinstance(cause, ssl.SSLError):
                text = str(cause)  # the number of such an error is not the system's
            elif isinstance(cause, OSError) and cause.errno:
                # What asyncio makes of a refused connection does not say that it was refused.
                text = os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
            cause = cause.__cause__ or cause.__context__
        return harmless(concealed(text or type(error).__name__, self._secrets)[:_SHOWN])


def _proxy_passwords() -> list[str]:
    """Return the passwords in the addresses of proxies, which errors may repeat."""
    passwords = []
    for address in getproxies().values():
        try:
            passwords += [urlsplit(address).password or ""]
        except ValueError:
            passwords += [address]
    return passwords
