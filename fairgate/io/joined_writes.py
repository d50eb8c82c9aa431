"""A network stream that sends the head and the body of a request in one piece.

httpcore2 writes them one after the other. Each write is a system call, and the first one wakes a
server that cannot answer yet.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

SocketOption = (
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
)


def backend() -> httpcore2.AsyncNetworkBackend:
    """Return what opens such streams."""
    return _Backend()


class _Backend(httpcore2.AnyIOBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  (httpcore2's own name)
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(
            await super().connect_tcp(host, port, timeout, local_address, socket_options)
        )


class _Stream(httpcore2.AsyncNetworkStream):
    """Keeps what is written until something is read: an HTTP client always reads next."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._unsent: list[bytes] = []

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109  (sent with the next read's)
    ) -> None:
        self._unsent.append(buffer)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        if self._unsent:
            joined, self._unsent = b"".join(self._unsent), []
            # A server may answer, and close, before it has read everything.
            with contextlib.suppress(httpcore2.WriteError):
                await self._stream.write(joined, timeout)
        return await self._stream.read(max_bytes, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
