"""One event loop for all waiting of the process, in its own thread, started on first use.

So requests go on while the caller works on earlier answers, an interrupt of the caller ends them,
and no caller has to be free of an event loop itself.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Closable(Protocol):
    """A resource that is open on the loop until it is closed there."""

    async def close(self) -> None:
        """Close it."""


_lock = threading.Lock()
_open: weakref.WeakSet[Closable] = weakref.WeakSet()
_running: list[tuple[asyncio.AbstractEventLoop, threading.Thread]] = []


def submitted(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Start `work` on the loop; cancelling what is returned cancels it. For any thread."""
    with _lock:
        if not _running:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="fairgate-loop", daemon=True)
            thread.start()
            _running.append((loop, thread))
            atexit.register(_stop)
    return asyncio.run_coroutine_threadsafe(work, _running[0][0])


class Group:
    """Work on the loop that is ended together."""

    def __init__(self) -> None:
        """Start with none."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._futures: set[Future[Any]] = set()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start `work`; cancelling what is returned cancels it."""
        future = submitted(self._counted(work))
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    def finish(self) -> None:
        """Return when nothing is under way any more."""
        submitted(self._idle()).result()

    def end(self) -> None:
        """Cancel what is under way, and return when it has ended."""
        for future in list(self._futures):
            future.cancel()
        submitted(self._idle()).result()

    async def _counted(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await work

    async def _idle(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)


def close_at_exit(opened: Closable) -> None:
    """Close it on the loop when the process ends, where nobody did before."""
    _open.add(opened)


def _stop() -> None:
    """End what is under way and the loop itself, when the process ends."""
    with _lock:
        loop, thread = _running.pop()

    async def ended() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for opened in list(_open):
            await opened.close()

    asyncio.run_coroutine_threadsafe(ended(), loop).result(timeout=5)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=5)
    loop.close()
