"""Embeddings from an OpenAI-compatible endpoint: `POST <base>/embeddings`.

The key is read from an environment variable whose name the policy gives; it goes into one request
header and nowhere else, over https or to this machine. A reply may repeat it, so no
text of the endpoint leaves this module before the key is replaced in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from fairgate.domain.errors import ModelError, UsageError
from fairgate.domain.ports import Vectors
from fairgate.domain.wording import concealed, quoted
from fairgate.io.http_client import HttpClient
from fairgate.io.http_messages import (
    BUSY,
    Answer,
    HttpError,
    Limits,
    Request,
    keeps_secrets,
    key_in,
    retry_after,
)

_AT_ONCE = 64
_OK = 200


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
        prompt: str = "",
        pause: Callable[[float], None] | None = None,
    ) -> None:
        """Name endpoint, model and the variable that holds the key; nothing is asked yet.

        `timeout` is in seconds, of one attempt; `prompt` stands before every text; `pause`
        replaces waiting between attempts. Raises UsageError where the key would travel in the
        clear.
        """
        if api_key_env is not None and not keeps_secrets(url):
            raise UsageError(
                f"the endpoint {quoted(url)} would be sent the key in {quoted(api_key_env)} "
                "unencrypted; give it an https:// address, or leave out `api_key_env`"
            )
        self._url = url.rstrip("/") + "/embeddings"
        self._model = model
        self._api_key_env = api_key_env
        self._limits = Limits(seconds=timeout)
        self._prompt = prompt
        self._pause = pause

    @property
    def fingerprint(self) -> str:
        """Identify endpoint, model and prompt: what the endpoint does behind is not known."""
        prompt = f"\x00{self._prompt}" if self._prompt else ""
        named = hashlib.sha256(f"{self._url}\x00{self._model}{prompt}".encode()).hexdigest()
        return f"endpoint/1:{named}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 `[len(texts), dimensions]`, L2-normalised, in order."""
        batches = [
            self._asked([self._prompt + text for text in texts[start : start + _AT_ONCE]])
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

    @cached_property
    def _client(self) -> HttpClient:
        return HttpClient(self._limits, secrets=[self._key], sleep=self._pause)

    def _asked(self, texts: list[str]) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        body = json.dumps({"model": self._model, "input": texts}).encode()
        asked = Request(method="POST", url=self._url, headers=headers, body=body)
        try:
            answer = self._client.ask(asked)
        except HttpError as error:
            raise ModelError(
                f"{self._where}: {error.sentence}; check the address and the network"
            ) from None
        if answer.status != _OK:
            raise ModelError(self._refused(answer))
        return self._vectors(answer.body, len(texts))

    def _refused(self, answer: Answer) -> str:
        wait = retry_after(answer)
        later = "try again later" if wait is None else f"try again in {wait:g} s, as it asks"
        hint = {
            401: f"check the key in {self._api_key_env or 'the variable named by `api_key_env`'}",
            403: "the key has no right to this model",
            404: "check `endpoint` (without /embeddings) and `model`",
            413: "the texts are too long for this model",
        }.get(answer.status, later if answer.status in BUSY else "check `endpoint` and `model`")
        return f"{self._where}: refused with HTTP {answer.status}; {hint}"

    def _concealed(self, text: str) -> str:
        """Return the endpoint's text for a message; the exception itself is not passed on.

        Its text may hold the key, and a traceback would show it: raise `from None`.
        """
        return quoted(concealed(text, [self._key]))

    @cached_property
    def _key(self) -> str:
        """Return the key; empty where none is to be sent. Raises UsageError."""
        return key_in(self._api_key_env)

    def _vectors(self, raw: bytes, expected: int) -> Any:
        try:
            return _embeddings(raw, expected)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ModelError(
                f"{self._where}: the answer is no list of embeddings "
                f"({self._concealed(repr(error))}); "
                'expected {"data": [{"index": 0, "embedding": […]}, …]}'
            ) from None


def _embeddings(raw: bytes, expected: int) -> Any:
    ordered = sorted(json.loads(raw)["data"], key=lambda row: int(row["index"]))
    if [int(row["index"]) for row in ordered] != list(range(expected)):
        raise ValueError(f"{len(ordered)} vectors for {expected} texts")
    found = np.asarray([row["embedding"] for row in ordered], dtype=np.float64)
    if found.ndim != 2 or not found.shape[1]:
        raise ValueError("vectors of different lengths")
    return found
