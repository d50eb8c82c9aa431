"""Embeddings from an OpenAI-compatible endpoint: `POST <base>/embeddings`.

The key is read from an environment variable whose name the policy gives; it goes into one request
header and nowhere else, over https or to this machine. What the endpoint says may repeat it, so no
text of the endpoint's leaves this module before the key is replaced in it.
"""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from fairgate.domain.errors import ModelError, UsageError
from fairgate.domain.secrets import concealed
from fairgate.domain.wording import quoted
from fairgate.engine.ports import Vectors

_AT_ONCE = 64
_MOST_BYTES = 64 << 20
_TRIES = 4
_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_LONGEST_PAUSE = 30.0


class EndpointEmbedder:
    """A port `Embedder` over the network: float32 vectors of length one.

    Wrap it in CachedEmbedder, so that no text is paid for twice. Busy endpoints (429, 5xx) and lost
    connections are tried again up to three times, with growing pauses. Raises ModelError for
    anything that is not one finite vector a text, UsageError where the key is not set.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key_env: str | None = None,
        timeout: float = 30.0,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Name endpoint, model and the variable that holds the key; nothing is asked yet.

        Raises UsageError where the key would travel in the clear.
        """
        if api_key_env is not None and not _keeps_secrets(url):
            raise UsageError(
                f"the endpoint {quoted(url)} would be sent the key in {quoted(api_key_env)} "
                "unencrypted; give it an https:// address, or leave out `api_key_env`"
            )
        self._url = url.rstrip("/") + "/embeddings"
        self._model = model
        self._api_key_env = api_key_env
        self._timeout = timeout
        self._pause = pause
        self._opener = _opener(url)

    @property
    def fingerprint(self) -> str:
        """Identify endpoint and model: what the endpoint does behind that name is not known."""
        named = hashlib.sha256(f"{self._url}\x00{self._model}".encode()).hexdigest()
        return f"endpoint/1:{named}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 `[len(texts), dimensions]`, L2-normalised, in order."""
        batches = [
            self._asked(list(texts[start : start + _AT_ONCE]))
            for start in range(0, len(texts), _AT_ONCE)
        ]
        if not batches:
            return np.zeros((0, 0), dtype=np.float32)
        widths = {batch.shape[1] for batch in batches}
        if len(widths) > 1:
            raise ModelError(
                f"{self._where}: answered with vectors of {sorted(widths)} dimensions; expected one"
            )
        vectors = np.concatenate(batches)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(vectors).all() or not lengths.all():
            raise ModelError(f"{self._where}: answered with a vector that is zero or not finite")
        unit: Vectors = (vectors / lengths).astype(np.float32)
        return unit

    @property
    def _where(self) -> str:
        return f"the endpoint {quoted(self._url)}, model {quoted(self._model)}"

    def _asked(self, texts: list[str]) -> Any:
        body = json.dumps({"model": self._model, "input": texts}).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._api_key_env is not None:
            headers["Authorization"] = f"Bearer {self._key(self._api_key_env)}"
        for attempt in range(1, _TRIES + 1):
            # Only http(s): the policy's schema refuses other schemes. A request of its own for each
            # attempt: where there is a proxy, urllib turns the request into one to the proxy.
            request = urllib.request.Request(self._url, body, headers)  # noqa: S310
            try:
                with self._opener.open(request, timeout=self._timeout) as answer:
                    raw = answer.read(_MOST_BYTES + 1)
                return self._vectors(raw, len(texts))
            except urllib.error.HTTPError as error:
                reason = f"HTTP {error.code}"
                error.close()
                if error.code not in _BUSY or attempt == _TRIES:
                    raise ModelError(self._refused(error.code, reason)) from None
                wait = _seconds(error.headers.get("Retry-After"))
            except (urllib.error.URLError, OSError, http.client.HTTPException) as error:
                if attempt == _TRIES:
                    why = getattr(error, "reason", None) or error
                    raise ModelError(
                        f"{self._where}: cannot be reached ({self._told(str(why))}), tried "
                        f"{_TRIES} times; check the address and the network"
                    ) from None
                wait = None
            self._pause(min(_LONGEST_PAUSE, wait if wait is not None else 0.5 * 2**attempt))
        raise ModelError(f"{self._where}: gave no answer")

    def _refused(self, code: int, reason: str) -> str:
        hint = {
            401: f"check the key in {self._api_key_env or 'the variable named by `api_key_env`'}",
            403: "the key has no right to this model",
            404: "check `endpoint` (without /embeddings) and `model`",
            413: "the texts are too long for this model",
        }.get(code, "try again later" if code in _BUSY else "check `endpoint` and `model`")
        return f"{self._where}: refused with {reason}; {hint}"

    def _told(self, text: str) -> str:
        """Return what the endpoint has said, for a message; the exception itself goes no further.

        Its text may hold the key, and a traceback would show it: raise `from None`.
        """
        key = os.environ.get(self._api_key_env, "") if self._api_key_env is not None else ""
        return quoted(concealed(text, [key]))

    def _key(self, name: str) -> str:
        key = os.environ.get(name, "")
        if not key or not key.isprintable() or not key.isascii():
            raise UsageError(
                f"the environment variable {quoted(name)}, which `api_key_env` names, "
                f"{'holds no usable key' if key else 'is not set'}; set it to the endpoint's key"
            )
        return key

    def _vectors(self, raw: bytes, expected: int) -> Any:
        try:
            return _embeddings(raw, expected)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ModelError(
                f"{self._where}: the answer is no list of embeddings ({self._told(repr(error))}); "
                'expected {"data": [{"index": 0, "embedding": […]}, …]}'
            ) from None


def _embeddings(raw: bytes, expected: int) -> Any:
    if len(raw) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES >> 20} MiB")
    ordered = sorted(json.loads(raw)["data"], key=lambda row: int(row["index"]))
    if [int(row["index"]) for row in ordered] != list(range(expected)):
        raise ValueError(f"{len(ordered)} vectors for {expected} texts")
    found = np.asarray([row["embedding"] for row in ordered], dtype=np.float64)
    if found.ndim != 2 or not found.shape[1]:
        raise ValueError("vectors of different lengths")
    return found


def _keeps_secrets(url: str) -> bool:
    """Return whether what is sent there is encrypted, or stays on this machine."""
    return url.startswith("https://") or _is_here(url)


def _is_here(url: str) -> bool:
    """Return whether an address is this machine's own."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to an address that the policy does not name."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Refuse; the status code is then an error like any other."""


def _opener(url: str) -> urllib.request.OpenerDirector:
    """Return what opens addresses by the environment's proxies; this machine needs none of them.

    A proxy would read the key on an open line, and its own `localhost` is another machine.
    """
    direct = [urllib.request.ProxyHandler({})] if _is_here(url) else []
    return urllib.request.build_opener(_NoRedirect, *direct)


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else None
