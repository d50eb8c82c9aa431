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
    from fairgate.onnx.decoder_session import BoundStep, Cache, DecoderSession, Logits

_SPARE = 512
"""Slots kept free behind the longest row at most, so that the cache is seldom moved: no memory is
taken for slots that nobody writes to."""
_FEWEST = 2
"""A lone row runs beside another: some weight formats sum a batch of one in another order."""


class JointRows:
    """Rows in a cache of their own `[rows, heads, slots, size]`, without gaps from slot 0 on."""

    def __init__(self, session: DecoderSession, spare: int = _SPARE, rows: int = _FEWEST) -> None:
        """Take the session that steps, how many tokens follow, and for how many rows at first."""
        self._session = session
        self._spare = min(spare, _SPARE)
        self._fewest = max(rows, _FEWEST)
        self._arrays: list[npt.NDArray[Any]] = []
        self._lengths = np.zeros(_FEWEST, dtype=np.int64)
        self._rows = 0
        self._bound: BoundStep | None = None

    def join(self, cache: Cache, places: Sequence[int]) -> None:
        """Add these rows of a batch that was read, behind those that are here, in this order."""
        if not places:
            return
        added, taken = cache.lengths[list(places)], list(places)
        begin, end, widest = self._rows, self._rows + len(taken), int(added.max())
        values = [value.numpy() for value in cache.values]
        self._reserve(max(end, self._fewest), widest + 1, values)
        for array, value in zip(self._arrays, values, strict=True):
            for row, place, length in zip(array[begin:end], taken, added.tolist(), strict=True):
                row[:, :length] = value[place, :, :length]
        self._lengths[begin:end] = added
        self._rows, self._bound = end, None

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
            moved = order[gap]
            length = self._lengths[gap] = self._lengths[moved]
            for array in self._arrays:
                array[gap, :, :length] = array[moved, :, :length]
        if gone:
            self._rows, self._bound = size, None
        return order

    def step(self, tokens: Sequence[int]) -> Logits:
        """Append one token to each row; return the logits `[rows, vocabulary]` after it.

        They last until the next step.
        """
        rows = max(self._rows, _FEWEST)
        lengths = self._lengths[:rows]
        # What was a row before may lie here: it has a free slot like any other.
        lengths[self._rows :] = 0
        needed = int(lengths.max()) + 1
        if needed > self._arrays[0].shape[2]:
            self._reserve(rows, needed, self._arrays)
            lengths = self._lengths[:rows]
        if self._bound is None:
            self._bound = self._bind(lengths)
        given = [*tokens, *[0] * (rows - len(tokens))]
        logits = self._bound.run(given, lengths)
        lengths[: self._rows] += 1
        return logits[: self._rows]

    def _bind(self, lengths: npt.NDArray[np.int64]) -> BoundStep:
        from onnxruntime import OrtValue

        rows = len(lengths)
        values = [OrtValue.ortvalue_from_numpy(array[:rows]) for array in self._arrays]
        return self._session.bind_step(values, lengths)

    def _reserve(self, rows: int, slots: int, like: Sequence[npt.NDArray[Any]]) -> None:
        """Make room for so many rows with so many slots each, and some to spare."""
        held = self._arrays
        here, free = (held[0].shape[0], held[0].shape[2]) if held else (0, 0)
        if rows <= here and slots <= free:
            return
        rows, slots = max(rows, here), free if slots <= free else slots + self._spare
        held_lengths = self._lengths[: self._rows]
        used = int(held_lengths.max(initial=0))
        self._arrays = [
            np.zeros((rows, each.shape[1], slots, each.shape[3]), dtype=each.dtype) for each in like
        ]
        for array, old in zip(self._arrays, held, strict=False):
            array[: self._rows, :, :used] = old[: self._rows, :, :used]
        lengths = np.zeros(rows, dtype=np.int64)
        lengths[: self._rows] = held_lengths
        self._lengths, self._bound = lengths, None
