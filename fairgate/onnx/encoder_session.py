"""Runs an encoder graph: rows of tokens in, states of the tokens (or vectors of texts) out.

Batches run at the same time, each on one thread: several threads on one batch would wait for each
other after every product.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.onnx.batch_size import most_rows
from fairgate.onnx.batches import batches_by_width, padded_width
from fairgate.onnx.folder import ModelFolder
from fairgate.onnx.graph_fields import DamagedGraphError
from fairgate.onnx.graph_outputs import output_names
from fairgate.onnx.runtime_errors import mapped_errors
from fairgate.onnx.session import Device, open_session, refuse_unsound_graph

States = npt.NDArray[np.float32]
Result = TypeVar("Result")

TOKEN_STATES = ("last_hidden_state", "token_embeddings")
POOLED = "sentence_embedding"
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})
_EXPORT = "Export it with `fairgate export MODEL --task feature-extraction`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The tokens of one text."""

    ids: list[int]
    types: list[int]
    """Which segment each token belongs to."""


def pools_by_itself(folder: ModelFolder, *, further_modules: bool) -> bool:
    """Return whether vectors of whole texts are read from the graph, by the names of its outputs.

    Token states are preferred, unless the model has modules that only the graph computes.
    """
    try:
        names = output_names(folder.graph)
    except (DamagedGraphError, OSError):
        return False
    return POOLED in names and (further_modules or not set(TOKEN_STATES) & set(names))


class EncoderSession:
    """A loaded encoder graph, whatever exported it. Nothing is loaded before the first run."""

    def __init__(
        self,
        folder: ModelFolder,
        *,
        device: Device,
        threads: int = 0,
        pooled: bool = False,
        vector: str = POOLED,
    ) -> None:
        """Name folder and device; `pooled` reads the output `vector`, one row a text.

        `threads` batches run at the same time on the CPU, 0: as many as there are processors.
        """
        self._folder = folder
        self._device: Device = device
        self._threads = 1 if device != "cpu" else threads or len(os.sched_getaffinity(0))
        self._pooled = pooled
        self._most: int | None = None
        """Rows that run at once, once memory ran out."""
        self._outputs = (vector,) if pooled else TOKEN_STATES

    @cached_property
    def pads(self) -> bool:
        """Whether rows of different lengths may share a batch: tried out, not assumed."""
        if "attention_mask" not in self._inputs:
            return False
        long, short = _trial(11), _trial(3)
        alone = self.run([short, short], 3)[-1]
        try:
            shared = self.run([long, short], 16)[-1]
        except OutOfMemoryError:
            raise  # else bits would depend on the memory that is free
        except ModelError:
            return False
        shared = shared[:3] if shared.ndim > 1 else shared
        size = float(np.abs(alone).max())
        coarse = any("float16" in node.type for node in self._session.get_outputs())
        return bool(np.abs(alone - shared).max() <= size * (1e-2 if coarse else 1e-3))

    def each_batch(
        self,
        rows: Sequence[Row],
        batch_size: int | None,
        fitting: Callable[[int], int],
        take: Callable[[list[int], States], Result],
    ) -> Iterator[Result]:
        """Yield `take(places, states)` for batches of rows, each row once; `take` runs in threads.

        `batch_size` rows run at a time, None: as many as the device gains from; `fitting` keeps
        widths within the model's. What a row gets depends on no other row and on no number of
        threads.
        """
        if not rows:
            return
        lengths = [len(row.ids) for row in rows]
        width_of = padded_width if self.pads else int  # loads the graph, before there are threads
        if batch_size is None:
            batch_size = most_rows(on_cpu=self._device == "cpu")
        most = -(-min(max(1, batch_size), len(rows)) // self._threads)
        batches = list(batches_by_width(lengths, most, width_of))

        def work(batch: tuple[int, list[int]]) -> Result:
            width, places = batch
            return take(places, self.run([rows[place] for place in places], fitting(width)))

        if self._threads == 1 or len(batches) < 2:
            yield from map(work, batches)
            return
        from concurrent.futures import ThreadPoolExecutor  # a stored gate needs none

        pool = ThreadPoolExecutor(self._threads)
        try:
            yield from pool.map(work, reversed(batches))  # the widest first: none is left for last
        finally:
            pool.shutdown(cancel_futures=True)

    def run(self, rows: Sequence[Row], width: int) -> States:
        """Return states `[rows, width, d]`, or `[rows, d]` where the graph pools.

        Where memory has no room for all rows, half as many run at once from then on.
        """
        try:
            if self._most is None or len(rows) <= self._most:
                return self._run(rows, width)
        except OutOfMemoryError:
            if len(rows) == 1:
                raise
            self._most = min(self._most or len(rows), len(rows) // 2)
        # Behind the handler, so that nothing of what failed is held any longer.
        most = self._most or len(rows)
        parts = [rows[start : start + most] for start in range(0, len(rows), most)]
        return np.concatenate([self.run(part, width) for part in parts])

    def _run(self, rows: Sequence[Row], width: int) -> States:
        if self._pooled and len(rows) == 1:
            # A lone vector would take other kernels: it runs beside its own copy.
            return self._run([*rows, *rows], width)[:1]
        ids = np.zeros((len(rows), width), dtype=np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for place, row in enumerate(rows):
            ids[place, : len(row.ids)] = row.ids
            types[place, : len(row.ids)] = row.types
            mask[place, : len(row.ids)] = 1
        lengths = mask.sum(axis=1, keepdims=True)
        feeds = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": types,
            # Padding repeats the last position: a table of positions may end there.
            "position_ids": np.minimum(np.arange(width, dtype=np.int64), lengths - 1),
        }
        feeds = {
            name: feeds[name].astype(np.int32 if "int32" in kind else np.int64)
            for name, kind in self._inputs.items()
        }
        with mapped_errors(
            f"the encoder {str(self._folder.path)!r} failed on {len(rows)} texts of {width} tokens",
            _EXPORT,
        ):
            states = np.asarray(self._session.run([self._output], feeds)[0], dtype=np.float32)
        expected = ids.shape[:1] if self._pooled else ids.shape
        if states.ndim != len(expected) + 1 or states.shape[:-1] != expected:
            raise ModelError(
                f"{str(self._folder.graph)!r} returned {self._output} of shape {states.shape} for "
                f"{len(rows)} texts of {width} tokens; expected one vector a "
                f"{'text' if self._pooled else 'token'}. {_EXPORT}"
            )
        return states

    @property
    def dimensions(self) -> int:
        """Return how many components a token's state (or a pooled vector) has."""
        [width] = [
            node.shape[-1] for node in self._session.get_outputs() if node.name == self._output
        ]
        return width if isinstance(width, int) else int(self.run([_trial(1)], 1).shape[-1])

    @cached_property
    def _session(self) -> Any:
        refuse_unsound_graph(self._folder.graph)
        return open_session(self._folder.graph, device=self._device, threads=1)

    @cached_property
    def _inputs(self) -> dict[str, str]:
        """Return the types of the graph's inputs by name."""
        inputs = {node.name: node.type for node in self._session.get_inputs()}
        if "input_ids" not in inputs or not set(inputs) <= _INPUTS:
            raise ModelError(
                f"{str(self._folder.graph)!r} is no text encoder: its inputs are "
                f"{', '.join(sorted(inputs))[:300]}, expected input_ids, attention_mask and maybe "
                f"token_type_ids and position_ids. {_EXPORT}"
            )
        return inputs

    @cached_property
    def _output(self) -> str:
        names = [node.name for node in self._session.get_outputs()]
        found = next((name for name in self._outputs if name in names), None)
        if found is None:
            raise ModelError(
                f"{str(self._folder.graph)!r} has no token states among its outputs "
                f"({', '.join(names)[:300]}); expected {' or '.join(self._outputs)}. {_EXPORT}"
            )
        return found


def _trial(length: int) -> Row:
    return Row(ids=list(range(length)), types=[0] * length)
