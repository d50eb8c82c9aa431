"""Keys and values of the blocks that prompts begin with, each computed once.

A prompt is read in blocks of `BLOCK` tokens from its first one on, and a rest of at least one.
Each is the same computation whatever else is asked and whatever is kept: the keys and values of a
block depend on the tokens up to its end alone, under whose hash they are kept. So prompts that
begin alike share them, and no answer changes by that. Shared prefixes in blocks: Kwon et al.,
Efficient Memory Management for Large Language Model Serving with PagedAttention, SOSP 2023, 4.4.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.adapters.onnx_engine.batches import batches_by_width
from fairgate.adapters.onnx_engine.decoder_session import (
    Cache,
    DecoderSession,
    Integers,
    Logits,
)

BLOCK = 32
"""Tokens: smaller blocks share more and run more often; measured by `bench_prefixes.py`."""
KEPT_BYTES = 256 * 2**20
"""Keys and values kept at once; one batch of prompts is always kept whole."""
_ROWS = 4
"""Times as many blocks as prompts run together: a prompt has several times a block's tokens."""

_Block = list[npt.NDArray[Any]]
"""Per input of the cache an array `[heads, BLOCK, size]`."""


Read = tuple[list[int], int]
"""A prompt's tokens, and from which length on its logits are read."""
WidthOf = Callable[[int, int], int]
"""By the tokens in blocks and those that follow them: how wide the latter are padded."""


class PromptBlocks:
    """Reads prompts: their blocks once, then what follows, in batches.

    Keeps the blocks of the prompts that are read now and lets the others go. Where a session does
    not share, prompts have no blocks and are read at once.
    """

    def __init__(
        self, session: DecoderSession, batch_size: int, kept_bytes: int = KEPT_BYTES
    ) -> None:
        """Take the session that computes, and how many prompts run together at most."""
        self._session = session
        self._batch_size = batch_size
        self._most = max(1, kept_bytes // max(1, session.token_bytes * BLOCK))
        self._kept: dict[bytes, _Block] = {}

    def batches(self, rows: Sequence[Read], width_of: WidthOf) -> Iterator[tuple[int, list[int]]]:
        """Yield `(width, places)` of rows that run together, whose blocks are computed and kept.

        `width` is that of what follows the blocks, of which rows of a batch have as many.
        """
        for places, paths in self._windows(rows):
            self._compute([rows[place][0] for place in places], paths)
            by_depth: dict[int, list[int]] = {}
            for place, path in zip(places, paths, strict=True):
                by_depth.setdefault(len(path), []).append(place)
            for depth, alike in sorted(by_depth.items()):
                done = depth * BLOCK
                rests = [len(rows[place][0]) - done for place in alike]
                sized = batches_by_width(rests, self._batch_size, partial(width_of, done))
                for width, batch in sized:
                    yield width, [alike[n] for n in batch]
        self._kept = {}

    def prefill(
        self, rows: Sequence[Read], width: int, read: Integers | None = None
    ) -> tuple[Logits, Cache]:
        """Return the logits after the rows of a batch, and their cache; see `DecoderSession`.

        `read` `[rows, positions]` counts from the prompts' beginnings.
        """
        done = self.whole_blocks(rows[0][1]) * BLOCK
        before = self._before([self._path(row) for row in rows])
        rests = [tokens[done:] for tokens, _ in rows]
        return self._session.prefill(rests, width, None if read is None else read - done, before)

    def whole_blocks(self, first_read: int) -> int:
        """Return how many blocks a prompt has whose logits are read from this length on."""
        return (first_read - 1) // BLOCK if self._session.shares else 0

    def _windows(self, rows: Sequence[Read]) -> Iterator[tuple[list[int], list[list[bytes]]]]:
        """Yield places and blocks of rows whose blocks are kept together.

        In the order of their tokens prompts that begin alike stand side by side, so what two
        windows share are blocks of the last prompt, and no block is computed twice.
        """
        places: list[int] = []
        paths: list[list[bytes]] = []
        named: set[bytes] = set()
        for place in sorted(range(len(rows)), key=lambda place: rows[place][0]):
            path = self._path(rows[place])
            if len(named.union(path)) > self._most and len(places) >= self._batch_size:
                yield places, paths
                places, paths, named = [], [], set()
            places.append(place)
            paths.append(path)
            named.update(path)
        if places:
            yield places, paths

    def _path(self, row: Read) -> list[bytes]:
        """Return for each of a prompt's blocks the hash of all tokens up to its end."""
        tokens, first_read = row
        keys, hashed = [], hashlib.sha256()
        for start in range(0, self.whole_blocks(first_read) * BLOCK, BLOCK):
            hashed.update(np.asarray(tokens[start : start + BLOCK], dtype="<i8").tobytes())
            keys.append(hashed.digest())
        return keys

    def _compute(self, prompts: Sequence[Sequence[int]], paths: Sequence[Sequence[bytes]]) -> None:
        """Compute the blocks of these prompts that are not kept, and keep no others."""
        wanted = {key for path in paths for key in path}
        self._kept = {key: block for key, block in self._kept.items() if key in wanted}
        for level in range(max(map(len, paths), default=0)):
            missing: dict[bytes, int] = {}
            for place, path in enumerate(paths):
                if level < len(path) and path[level] not in self._kept:
                    missing.setdefault(path[level], place)
            places, most = list(missing.values()), self._batch_size * _ROWS
            for start in range(0, len(places), most):
                part = places[start : start + most]
                self._compute_blocks(
                    [prompts[place][level * BLOCK : (level + 1) * BLOCK] for place in part],
                    [paths[place][: level + 1] for place in part],
                )

    def _compute_blocks(
        self, blocks: list[Sequence[int]], paths: Sequence[Sequence[bytes]]
    ) -> None:
        # A lone row runs beside its own copy, as answers do.
        twice = 2 if len(blocks) == 1 else 1
        before = self._before([path[:-1] for path in paths] * twice)
        _, cache = self._session.prefill(blocks * twice, BLOCK, before=before)
        values = [value.numpy()[:, :, -BLOCK:] for value in cache.values]
        for place, path in enumerate(paths):
            self._kept[path[-1]] = [value[place].copy() for value in values]

    def _before(self, paths: Sequence[Sequence[bytes]]) -> Cache | None:
        """Return the cache of rows with as many blocks each, all of them kept; None without any."""
        if not paths[0]:
            return None
        arrays = []
        for name, first in enumerate(self._kept[paths[0][0]]):
            heads, _, size = first.shape
            whole = np.empty((len(paths), heads, len(paths[0]) * BLOCK, size), dtype=first.dtype)
            for row, path in zip(whole, paths, strict=True):
                for place, key in enumerate(path):
                    row[:, place * BLOCK : (place + 1) * BLOCK] = self._kept[key][name]
            arrays.append(whole)
        return self._session.full_cache(arrays)
