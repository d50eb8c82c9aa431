"""Keys and values of units of tokens, from which the caches of rows are put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.onnx.decoder_session import Cache, DecoderSession
from fairgate.onnx.prompt_pieces import Piece, Window


class KeptUnits:
    """The units of one window at a time; see `prompt_pieces`."""

    def __init__(self, session: DecoderSession, grain: int) -> None:
        """Take the session whose caches are kept, in units of `grain` tokens."""
        self._session = session
        self._grain = grain
        self._window = Window(carried=[], units=0)
        self._stores: list[npt.NDArray[Any]] = []
        """Per input of the cache an array `[heads, units, grain * size]`."""
        self._room: list[npt.NDArray[Any]] = []
        """Per input the memory of the cache that was put together last: new memory costs as much
        as what is copied to it."""

    def begin(self, window: Window) -> None:
        """Keep what a window takes over from the one before it, and nothing else."""
        carried = [store[:, window.carried] for store in self._stores]
        if carried and self._stores[0].shape[1] < window.units:
            self._stores = [_empty(store, window.units) for store in self._stores]
        for store, units in zip(self._stores, carried, strict=True):
            store[:, : len(window.carried)] = units
        self._window = window

    def before(self, pieces: Sequence[Piece]) -> Cache | None:
        """Return the cache in front of pieces that begin at one place; None at the beginning.

        It lasts until the next one.
        """
        units = pieces[0].start // self._grain
        if not units:
            return None
        paths = [np.array(self._window.paths[one.place][:units]) for one in pieces]
        arrays = []
        for number, store in enumerate(self._stores):
            heads, _, unit = store.shape
            size = len(pieces) * heads * units * unit
            if len(self._room) <= number:
                self._room.append(np.empty(0, dtype=store.dtype))
            if self._room[number].size < size:
                self._room[number] = np.empty(size, dtype=store.dtype)
            whole = self._room[number][:size].reshape(len(pieces), heads, units, unit)
            for row, path in zip(whole, paths, strict=True):
                store.take(path, axis=1, out=row, mode="clip")  # "raise" would copy twice
            arrays.append(whole.reshape(len(pieces), heads, units * self._grain, -1))
        return self._session.full_cache(arrays)

    def keep(self, pieces: Sequence[Piece], cache: Cache) -> None:
        """Keep what other pieces need of these, which have just been run."""
        for row, piece in enumerate(pieces):
            first = piece.start // self._grain
            units = self._window.paths[piece.place][first : piece.end // self._grain]
            if not units:
                continue
            arrays = [value.numpy() for value in cache.values]
            if not self._stores:
                self._stores = [
                    _empty(self._shaped(one[row]), self._window.units) for one in arrays
                ]
            for store, array in zip(self._stores, arrays, strict=True):
                own = array[row, :, piece.start : piece.start + len(units) * self._grain]
                store[:, units[0] : units[-1] + 1] = self._shaped(own)

    def _shaped(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return `[heads, tokens, size]` as `[heads, units, grain * size]`, without a rest."""
        heads, tokens, size = array.shape
        units = tokens // self._grain
        return array[:, : units * self._grain].reshape(heads, units, self._grain * size)


def _empty(like: npt.NDArray[Any], units: int) -> npt.NDArray[Any]:
    return np.empty((like.shape[0], units, like.shape[2]), dtype=like.dtype)
