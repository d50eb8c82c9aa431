"""Reads prompts: what they begin with in common once, then what follows, in batches.

A prompt is read in blocks of `BLOCK` tokens from its first one on, and a rest of at least one: each
is the same computation whatever else is asked, and whole blocks are shared. So no bit of an answer
depends on what is shared, kept or computed together. Shared prefixes: Kwon et al., Efficient Memory
Management for Large Language Model Serving with PagedAttention, SOSP 2023, 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fairgate.onnx.batches import batches_by_width
from fairgate.onnx.decoder_session import Cache, DecoderSession, Integers, Logits

BLOCK = 32
"""Tokens: smaller blocks share more and run more often; measured by `bench_prefixes.py`."""
KEPT_BYTES = 256 * 2**20
"""Keys and values kept at once; one batch of prompts is always kept whole."""
_BLOCKS_A_ROW = 2
"""Times as many blocks as prompts run together: a prompt has several times a block's tokens."""
Read = tuple[list[int], int]
"""A prompt's tokens, and after how many of them, 1 or more, its logits are read first."""
WidthOf = Callable[[int, int], int]
"""By the tokens in blocks and those that follow them: how wide the latter are padded."""


class Piece(NamedTuple):
    """Tokens `start` to `end` of a prompt, which run at once: a block, or the rest."""

    place: int
    """Of the prompt among those that are read."""
    start: int
    end: int
    width: int
    """With padding, which only the rest has."""
    is_rest: bool


class PromptBatch(NamedTuple):
    """Prompts that are read together to their ends: to be read before the next batch is asked."""

    places: list[int]
    """Of the prompts among those that were given."""
    prefill: Callable[[], tuple[Logits, Cache]]
    """Return the logits `[rows, positions, vocabulary]` of the prompts, and their cache.

    Positions count from where logits are read first. A lone prompt is given twice: with one row the
    runtime takes matrix-vector kernels, whose sums differ in the last bits for some formats of
    weights.
    """


@dataclass(slots=True)
class Window:
    """Prompts whose blocks are kept at the same time."""

    carried: list[int]
    """Blocks of the window before it, which are the first blocks of this one."""
    blocks: int
    """How many are kept."""
    paths: dict[int, list[int]] = field(default_factory=dict)
    """By prompt: its blocks from the first on."""
    pieces: list[Piece] = field(default_factory=list)

    def batches(self, most: int) -> Iterator[list[Piece]]:
        """Yield pieces that run together, after those whose keys and values they need.

        At most `most` rests, and more of whole blocks.
        """
        alike: dict[tuple[int, int, bool], list[Piece]] = {}
        for piece in self.pieces:
            alike.setdefault((piece.start, piece.width, piece.is_rest), []).append(piece)
        for (_, _, is_rest), pieces in sorted(alike.items()):
            rows = most if is_rest else most * _BLOCKS_A_ROW
            for start in range(0, len(pieces), rows):
                yield pieces[start : start + rows]


def windows(
    rows: Sequence[Read], width_of: WidthOf, *, most_blocks: int, least_prompts: int
) -> Iterator[Window]:
    """Yield what is read one after the other, so that each block is computed once.

    A window has at most `most_blocks` blocks, or `least_prompts` prompts.

    In the order of their tokens prompts that begin alike stand side by side: what a prompt has in
    common with any before it, it has in common with the last one. The tree of prefixes is
    RadixAttention's: Zheng et al., SGLang: Efficient Execution of Structured Language Model
    Programs, NeurIPS 2024, section 3.
    """
    window = Window([], 0)
    path: list[int] = []
    before: list[int] = []
    for place in sorted(range(len(rows)), key=lambda place: rows[place][0]):
        tokens, first_read = rows[place]
        last = (first_read - 1) // BLOCK  # logits are read behind it
        pairs = zip(before, tokens, strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        path = path[: min(common // BLOCK, last)]
        if window.blocks + last - len(path) > most_blocks and len(window.paths) >= least_prompts:
            yield window
            window = Window(path, len(path))
            path = list(range(len(path)))
        starts = range(len(path) * BLOCK, last * BLOCK, BLOCK)
        path = [*path, *range(window.blocks, window.blocks + len(starts))]
        window.blocks += len(starts)
        window.paths[place] = path
        window.pieces += [Piece(place, n, n + BLOCK, BLOCK, is_rest=False) for n in starts]
        done, end = last * BLOCK, len(tokens)
        window.pieces.append(Piece(place, done, end, width_of(done, end - done), is_rest=True))
        before = tokens
    if window.paths:
        yield window


class PromptBlocks:
    """Reads prompts by a session; where that does not share, at once."""

    def __init__(self, session: DecoderSession, batch_size: int) -> None:
        """Take the session that computes, and how many prompts run together at most."""
        self._session = session
        self._batch_size = batch_size
        self._stores: list[npt.NDArray[Any]] = []
        """Per input of the cache an array `[heads, blocks, BLOCK * size]`."""

    def batches(self, rows: Sequence[Read], width_of: WidthOf) -> Iterator[PromptBatch]:
        """Yield rows that run together; each batch must be read before the next is asked for."""
        if not self._session.shares:
            lengths = [len(tokens) for tokens, _ in rows]
            for width, places in batches_by_width(lengths, self._batch_size, partial(width_of, 0)):
                pieces = [Piece(n, 0, lengths[n], width, is_rest=True) for n in places]
                yield PromptBatch(places, partial(self._read, rows, pieces, None))
            return
        most = max(1, KEPT_BYTES // max(1, self._session.token_bytes * BLOCK))
        for window in windows(rows, width_of, most_blocks=most, least_prompts=self._batch_size):
            carried = [store[:, window.carried] for store in self._stores]
            if carried and self._stores[0].shape[1] < window.blocks:
                self._stores = [_empty(store, window.blocks) for store in self._stores]
            for store, blocks in zip(self._stores, carried, strict=True):
                store[:, : len(window.carried)] = blocks
            for pieces in window.batches(self._batch_size):
                if pieces[0].is_rest:
                    places = [piece.place for piece in pieces]
                    yield PromptBatch(places, partial(self._read, rows, pieces, window))
                else:
                    self._keep(rows, pieces, window)

    def _keep(self, rows: Sequence[Read], pieces: list[Piece], window: Window) -> None:
        """Read whole blocks and keep their keys and values."""
        alone = len(pieces) == 1
        _, cache = self._run(rows, pieces * 2 if alone else pieces, window)
        for number, value in enumerate(cache.values):
            array = value.numpy()
            own = array[:, :, pieces[0].start : pieces[0].end]
            own = own.reshape(*array.shape[:2], BLOCK * array.shape[3])
            if len(self._stores) <= number:
                self._stores.append(_empty(own.swapaxes(0, 1), window.blocks))
            for row, piece in zip(own, pieces, strict=False):
                self._stores[number][:, window.paths[piece.place][piece.start // BLOCK]] = row

    def _read(
        self, rows: Sequence[Read], pieces: list[Piece], window: Window | None
    ) -> tuple[Logits, Cache]:
        """Read prompts to their ends; equal ones, which differ in their seeds, once."""
        read, chosen = list(pieces), list(range(len(pieces)))
        if self._session.selects:
            keys = [(rows[piece.place][1], *rows[piece.place][0]) for piece in pieces]
            unlike = dict(zip(keys, pieces, strict=True))
            read, places = list(unlike.values()), {key: row for row, key in enumerate(unlike)}
            chosen = [places[key] for key in keys]
        if len(read) == 1:
            read = read * 2
        if len(pieces) == 1:
            chosen = [0, 1]
        logits, cache = self._run(rows, read, window, _positions(rows, read))
        if chosen == list(range(len(read))):
            return logits, cache
        return logits[chosen], self._session.select(cache, chosen)

    def _run(
        self,
        rows: Sequence[Read],
        pieces: Sequence[Piece],
        window: Window | None,
        read: Integers | None = None,
    ) -> tuple[Logits, Cache]:
        """Run pieces of one place and width behind the blocks of their prompts."""
        tokens = [rows[one.place][0][one.start : one.end] for one in pieces]
        blocks, before = pieces[0].start // BLOCK, None
        if window is not None and blocks:
            paths = [np.array(window.paths[one.place][:blocks]) for one in pieces]
            arrays = []
            for store in self._stores:
                whole = np.empty((len(pieces), store.shape[0], blocks, store.shape[2]), store.dtype)
                for row, path in zip(whole, paths, strict=True):
                    store.take(path, axis=1, out=row, mode="clip")  # "raise" would copy twice
                arrays.append(whole.reshape(*whole.shape[:2], blocks * BLOCK, -1))
            before = self._session.full_cache(arrays)
        return self._session.prefill(tokens, pieces[0].width, read, before)


def _empty(like: npt.NDArray[Any], blocks: int) -> npt.NDArray[Any]:
    return np.empty((like.shape[0], blocks, like.shape[2]), dtype=like.dtype)


def _positions(rows: Sequence[Read], pieces: Sequence[Piece]) -> Integers:
    """Return `[rows, positions]`, counted from the pieces' beginning, whose logits are read."""
    first = [rows[one.place][1] - 1 - one.start for one in pieces]
    ends = [one.end - one.start for one in pieces]
    most = max(end - begin for begin, end in zip(first, ends, strict=True))
    read = np.repeat(np.array(first, dtype=np.int64)[:, None], most, axis=1)
    for row, begin, end in zip(read, first, ends, strict=True):
        row[: end - begin] = np.arange(begin, end)
    return read
