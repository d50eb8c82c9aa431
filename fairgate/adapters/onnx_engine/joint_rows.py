"""Keys and values of rows that answer together, each with as many tokens as it has.

Rows join and leave at any step, whatever their lengths: a session that `joins` reads of each row
its own tokens only, so that no bit of one depends on the others or on where they lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from fairgate.adapters.onnx_engine.decoder_session import Cache, DecoderSession, Logits

_SPARE = 64
"""Slots kept free behind the longest row, so that the cache is moved once in as many steps."""
_FEWEST = 2
"""A lone row runs beside another: some weight formats sum a batch of one in another order."""


class JointRows:
    """Rows in a cache of their own `[rows, heads, slots, size]`, without gaps from slot 0 on."""

    def __init__(self, session: DecoderSession, spare: int = _SPARE) -> None:
        """Take the session that steps, and how many slots are kept free."""
        self._session = session
        self._spare = spare
        self._arrays: list[npt.NDArray[Any]] = []
        self._lengths = np.zeros(_FEWEST, dtype=np.int64)
        self._rows = 0
        self._bound: list[Any] = []

    def join(self, cache: Cache, places: Sequence[int]) -> None:
        """Add these rows of a batch that was read, behind those that are here, in this order."""
        if not places:
            return
        added, taken = cache.lengths[list(places)], list(places)
        begin, end, widest = self._rows, self._rows + len(taken), int(added.max())
        values = [value.numpy() for value in cache.values]
        self._reserve(max(end, _FEWEST), widest + 1, values)
        for array, value in zip(self._arrays, values, strict=True):
            array[begin:end, :, :widest] = value[taken, :, :widest]
        self._lengths[begin:end] = added
        self._rows, self._bound = end, []

    def leave(self, places: Iterable[int]) -> list[int]:
        """Take rows out and return the others' places in their new order.

        Rows from the end fill the gaps.
        """
        gone = set(places)
        size = self._rows - len(gone)
        order = list(range(size))
        last = (place for place in range(size, self._rows) if place not in gone)
        for gap in sorted(place for place in gone if place < size):
            order[gap] = next(last)
            for array in (*self._arrays, self._lengths):
                array[gap] = array[order[gap]]
        if gone:
            self._rows, self._bound = size, []
        return order

    def step(self, tokens: Sequence[int]) -> Logits:
        """Append one token to each row; return the logits `[rows, vocabulary]` after it."""
        from onnxruntime import OrtValue

        rows = max(self._rows, _FEWEST)
        needed = int(self._lengths[: self._rows].max()) + 1
        if needed > self._arrays[0].shape[2]:
            self._reserve(rows, needed, self._arrays)
        if not self._bound:
            self._bound = [OrtValue.ortvalue_from_numpy(array[:rows]) for array in self._arrays]
        lengths = self._lengths[:rows]
        given = [*tokens, *[0] * (rows - len(tokens))]
        # What was a row before may lie here: it has a free slot like any other.
        lengths[self._rows :] = 0
        logits = self._session.step_in_place(self._bound, lengths, given)
        lengths[: self._rows] += 1
        return logits[: self._rows]

    def _reserve(self, rows: int, slots: int, like: Sequence[npt.NDArray[Any]]) -> None:
        """Make room for so many rows with so many slots each, and some to spare."""
        held = self._arrays
        here, free = (held[0].shape[0], held[0].shape[2]) if held else (0, 0)
        if rows <= here and slots <= free:
            return
        rows, slots = max(rows, here), free if slots <= free else slots + self._spare
        self._arrays = [
            np.zeros((rows, each.shape[1], slots, each.shape[3]), dtype=each.dtype) for each in like
        ]
        for array, old in zip(self._arrays, held, strict=False):
            array[:here, :, :free] = old
        lengths = np.zeros(rows, dtype=np.int64)
        lengths[: self._rows] = self._lengths[: self._rows]
        self._lengths, self._bound = lengths, []
