"""Embeddings from an OpenAI-compatible endpoint: `POST <base>/embeddings`.

The key is read from an environment variable whose name the policy gives; it goes into one request
header and nowhere else, over https or to this machine. A reply may repeat it, so no
text of the endpoint leaves this module before the key is replaced in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from fairgate.domain.errors import ModelError, UsageError
from fairgate.domain.executions import Usage, usage_of
from fairgate.domain.ports import Vectors
from fairgate.domain.wording import harmless, quoted, shown
from fairgate.io.http_messages import HttpAnswer, Limits, keeps_secrets
from fairgate.io.http_service import HttpService
from fairgate.io.replies import outline

AT_ONCE = 64
"""Texts of one request, if nothing else is said."""
_MOST_SHOWN = 200
_FEWER = frozenset({400, 413, 422})
"""Statuses with which servers refuse too many texts at once."""


class Metered(Protocol):
    """What counts requests and ends them with the policy's budget."""

    def begin(self, remaining: int) -> None:
        """Count one request; `remaining` texts still have no vector. Raises BudgetError."""
        ...

    def add(self, usage: Usage) -> None:
        """Count what an answer cost. Raises UsageError where a limit cannot be kept."""
        ...


class EndpointEmbedder:
    """A port `Embedder` over the network: float32 vectors of length one.

    Wrap it in CachedEmbedder, so that no text is paid for twice. Busy endpoints (429, 5xx) and lost
    connections are tried again up to three times, with growing pauses. Raises ModelError for
    anything that is not one finite vector a text, UsageError where the key is not set.
    """

    def __init__(  # noqa: PLR0913 (one setting of the policy each; most by name)
        self,
        url: str,
        model: str,
        meter: Metered,
        *,
        api_key_env: str | None = None,
        timeout: float = 30.0,
        at_once: int = AT_ONCE,
        pause: Callable[[float], None] | None = None,
    ) -> None:
        """Name endpoint, model and the variable that holds the key; nothing is asked yet.

        `meter` counts every request before it is sent, and what its answer cost; `timeout` is in
        seconds, of one attempt; `at_once` texts are sent in one
        request, and half as many where the server refuses these; `pause` replaces waiting between
        attempts. Raises UsageError where the key would travel in the clear.
        """
        if api_key_env is not None and not keeps_secrets(url):
            raise UsageError(
                f"the endpoint {quoted(url)} would be sent the key in {quoted(api_key_env)} "
                "unencrypted; give it an https:// address, or leave out `api_key_env`"
            )
        self._url = url.rstrip("/") + "/embeddings"
        self._model = model
        self._at_once = at_once
        self._meter = meter
        self._service = HttpService(
            name=f"the endpoint {quoted(self._url)}, model {quoted(model)}",
            limits=Limits(seconds=timeout),
            variables={"Authorization": api_key_env} if api_key_env else {},
            before="Bearer ",
            error=ModelError,
            hints={
                403: "the key has no right to this model",
                404: "check `endpoint` (without /embeddings) and `model`",
                413: "the text is too long for this model",
            },
            remedy="check `endpoint` and `model`",
            sleep=pause,
            lacks=lambda value: not isinstance(value, dict) or not value.get("data"),
            sets_pace=False,
        )

    @property
    def fingerprint(self) -> str:
        """Identify endpoint and model: what the endpoint does behind is not known."""
        digest = hashlib.sha256(f"{self._url}\x00{self._model}".encode()).hexdigest()
        return f"endpoint/1:{digest}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 `[len(texts), dimensions]`, L2-normalised, in order.

        Raises BudgetError where the meter's budget is spent.
        """
        batches, start = [], 0
        while start < len(texts):
            self._meter.begin(len(texts) - start)
            batch = list(texts[start : start + self._at_once])
            if (vectors := self._asked(batch)) is None:
                self._at_once = len(batch) // 2
                continue
            batches.append(vectors)
            start += len(batch)
        if not batches:
            return np.zeros((0, 0), dtype=np.float32)
        widths = {batch.shape[1] for batch in batches}
        if len(widths) > 1:
            raise ModelError(
                f"{self._service.name}: answered with vectors of {sorted(widths)} dimensions; "
                "expected one"
            )
        vectors = np.concatenate(batches)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        is_bad = ~(np.isfinite(lengths) & (lengths > 0))[:, 0]
        if is_bad.any():
            text = texts[int(is_bad.argmax())]
            raise ModelError(
                f"{self._service.name}: answered {quoted(text)} with a vector that is zero or not "
                "finite"
            )
        unit: Vectors = (vectors / lengths).astype(np.float32)
        return unit

    def _asked(self, texts: list[str]) -> Any:
        """Return the vectors; None where the server refuses this many texts at once."""
        service = self._service
        request = service.send(self._url, {"model": self._model, "input": texts})
        ((_, answer),) = service.client.ask_all([request])
        is_refused = isinstance(answer, HttpAnswer) and answer.status in _FEWER
        if is_refused and len(texts) > 1:
            return None
        about = f"a text of {len(texts[0]):,} characters that ends in {quoted(texts[0][-30:])}"
        answer = service.usable(answer, about if is_refused else "")
        try:
            value = json.loads(answer.body)
            vectors = _embeddings(value, len(texts))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            # The error's own text may hold the key, which a traceback would show.
            raise ModelError(
                f"{service.name}: the answer is no list of embeddings "
                f"({harmless(service.concealed(str(error))[:_MOST_SHOWN])}); "
                'expected {"data": [{"index": 0, "embedding": […]}, …]}: give `endpoint` the base '
                "of the server's OpenAI-compatible addresses, and `model` one that embeds texts"
            ) from None
        self._meter.add(usage_of(value))
        return vectors


def _embeddings(value: Any, expected: int) -> Any:
    if not isinstance(value, dict) or not isinstance(value.get("data"), list):
        raise TypeError(f"found {outline(value)}")
    for number, row in enumerate(value["data"]):
        vector = row.get("embedding") if isinstance(row, dict) else None
        if not isinstance(vector, list) or any(isinstance(part, list) for part in vector):
            nested = " of lists" * isinstance(vector, list)
            raise ValueError(f"`data[{number}].embedding` is {shown(vector)}{nested}")
    indexed = {int(row.get("index", n)): row["embedding"] for n, row in enumerate(value["data"])}
    if len(value["data"]) != expected:
        raise ValueError(f"{len(value['data'])} vectors for {expected} texts")
    if sorted(indexed) != list(range(expected)):
        raise ValueError(f"`index` is not 0 to {expected - 1}, each once")
    vectors = np.asarray([indexed[n] for n in range(expected)], dtype=np.float64)
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise ValueError("vectors of different lengths")
    return vectors
