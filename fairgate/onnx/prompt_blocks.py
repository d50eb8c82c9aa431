"""Reads prompts: what they begin with in common once, then what follows, in batches.

Where a graph gives each token the same bits in whatever pieces a prompt is read, a prompt is cut
where it parts from others. Elsewhere prompts are read whole, in batches of one width. Either way no
bit of an answer depends on what is shared, kept or computed together.
Shared prefixes: Kwon et al., Efficient Memory Management for Large Language Model Serving with
PagedAttention, SOSP 2023, 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fairgate.onnx.batches import batches_by_width, padded_width
from fairgate.onnx.decoder_session import Cache, DecoderSession, Logits, TokenArray

KEPT_BYTES = 256 * 2**20
"""Keys and values kept at once; one batch of prompts is always kept whole."""
_PIECES_A_ROW = 2
"""Times as many pieces as prompts run together: a prompt has several times a piece's tokens."""
Read = tuple[list[int], int]
"""A prompt's tokens, and after how many of them, 1 or more, its logits are read first."""


class Cuts(NamedTuple):
    """Where prompts may be cut, in tokens from their first one on."""

    unit: int
    """A cut is at a multiple; this many tokens' keys and values are kept and shared at a time."""
    length: int
    """A multiple of `unit`: a piece ends at the next multiple, or with its prompt."""


CUTS = Cuts(4, 128)


class PromptPiece(NamedTuple):
    """Tokens `start` to `end` of a prompt, which run at once."""

    row: int
    """Index of the prompt among those that are read."""
    start: int
    end: int
    width: int
    """Pieces of one start and width run together; the last one of a prompt has room to spare."""
    is_rest: bool


class PromptBatch(NamedTuple):
    """Prompts that are read together to their ends: to be read before the next batch is asked."""

    row_indices: list[int]
    """Of the prompts among all that are read."""
    prefill: Callable[[], tuple[Logits, Cache]]
    """Return the logits `[rows, positions, vocabulary]` of the prompts, and their cache.

    Positions count from where logits are read first. Rows may follow that are copies: a lone prompt
    is read twice, since kernels sum a single row in another order.
    """


def whole_prompts(
    session: DecoderSession, most: int, rows: Sequence[Read], width_of: Callable[[int], int]
) -> Iterator[PromptBatch]:
    """Yield rows that are read whole, at most this many together, each padded to its own width."""
    lengths = [len(tokens) for tokens, _ in rows]

    def read(width: int, row_indices: list[int]) -> tuple[Logits, Cache]:
        size = max(most if session.fills_batches else 0, len(row_indices), 2)
        filled = [*row_indices, *[row_indices[0]] * (size - len(row_indices))]
        pieces = [PromptPiece(row, 0, lengths[row], width, is_rest=True) for row in filled]
        return session.prefill([rows[row][0] for row in filled], width, _positions(rows, pieces))

    for width, row_indices in batches_by_width(lengths, most, width_of):
        yield PromptBatch(row_indices, partial(read, width, row_indices))


@dataclass(slots=True)
class Window:
    """Prompts whose keys and values are kept at the same time."""

    carried: list[int]
    """Units of the window before it, which are the first units of this one."""
    units: int
    """How many are kept."""
    paths: dict[int, list[int]] = field(default_factory=dict)
    """By prompt: the units of its tokens from the first on, as far as they are kept."""
    pieces: list[PromptPiece] = field(default_factory=list)

    def batches(self, most: int) -> Iterator[list[PromptPiece]]:
        """Yield pieces that run together, after those whose keys and values they need.

        At most `most` rests, and more of the others.
        """
        alike: dict[tuple[int, int, bool], list[PromptPiece]] = {}
        for piece in self.pieces:
            alike.setdefault((piece.start, piece.width, piece.is_rest), []).append(piece)
        for (_, _, is_rest), pieces in sorted(alike.items()):
            rows = most if is_rest else most * _PIECES_A_ROW
            for start in range(0, len(pieces), rows):
                yield pieces[start : start + rows]


def windows(
    rows: Sequence[Read], *, most_units: int, least_prompts: int, cuts: Cuts = CUTS
) -> Iterator[Window]:
    """Yield what is read one after the other, so that each unit of tokens is computed once.

    A window has at most `most_units` units, or `least_prompts` prompts.

    In the order of their tokens prompts that begin alike stand side by side: what a prompt has in
    common with any before it, it has in common with the last one. The tree of prefixes is
    RadixAttention's: Zheng et al., SGLang: Efficient Execution of Structured Language Model
    Programs, NeurIPS 2024, section 3.
    """
    unit, length = cuts
    window = Window([], 0)
    path: list[int] = []
    before: list[int] = []
    for number in sorted(range(len(rows)), key=lambda number: rows[number][0]):
        tokens, first_read = rows[number]
        # Logits are read behind the last cut. Two tokens at least follow it where there are two:
        # of one by itself attention would take kernels of another order of sums.
        last = max(0, min(first_read - 1, len(tokens) - 2)) // unit
        pairs = zip(before, tokens, strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        shared = min(common // unit, last)
        # What further prompts share of a rest is kept, too.
        new = range(window.units, window.units + shared - len(path))
        window.units += len(new)
        path += new
        path = path[:shared]
        further = len(tokens) // unit - shared
        if window.units + further > most_units and len(window.paths) >= least_prompts:
            yield window
            window = Window(path, shared)
            path = list(range(shared))
        start = shared * unit
        ends = [start, *range(start - start % length + length, last * unit + 1, length)]
        path += range(window.units, window.units + (ends[-1] - start) // unit)
        window.units += len(path) - shared
        window.paths[number] = path
        window.pieces += [
            PromptPiece(number, a, b, b - a, is_rest=False) for a, b in pairwise(ends)
        ]
        done, end = ends[-1], len(tokens)
        window.pieces.append(PromptPiece(number, done, end, padded_width(end - done), is_rest=True))
        before = tokens
    if window.paths:
        yield window


class PromptPieces:
    """Reads prompts in pieces, by a session that shares what they begin with in common."""

    def __init__(self, session: DecoderSession, batch_size: int) -> None:
        """Take the session that computes, and how many prompts run together at most."""
        self._session = session
        self._batch_size = batch_size
        self._stores: list[npt.NDArray[Any]] = []
        """Per input of the cache an array `[heads, units, tokens of a unit * size]`."""

    def batches(self, rows: Sequence[Read]) -> Iterator[PromptBatch]:
        """Yield rows that run together; each batch must be read before the next is asked for."""
        most = max(1, KEPT_BYTES // max(1, self._session.token_bytes * CUTS.unit))
        for window in windows(rows, most_units=most, least_prompts=self._batch_size):
            carried = [store[:, window.carried] for store in self._stores]
            if carried and self._stores[0].shape[1] < window.units:
                self._stores = [_empty(store, window.units) for store in self._stores]
            for store, units in zip(self._stores, carried, strict=True):
                store[:, : len(window.carried)] = units
            for pieces in window.batches(self._batch_size):
                if pieces[0].is_rest:
                    row_indices = [piece.row for piece in pieces]
                    yield PromptBatch(row_indices, partial(self._read, rows, pieces, window))
                else:
                    read = self._accompanied(pieces)
                    self._run(rows, read, window, np.zeros((len(read), 0), dtype=np.int64))

    def _accompanied(self, pieces: list[PromptPiece]) -> list[PromptPiece]:
        """Put a lone piece beside itself where its bits would be others without that."""
        return pieces * 2 if len(pieces) == 1 and not self._session.reads_alone else pieces

    def _keep(self, pieces: Sequence[PromptPiece], window: Window, cache: Cache) -> None:
        """Keep what other pieces need of these, which have just been run."""
        unit = CUTS.unit
        paths = [
            window.paths[piece.row][piece.start // unit : piece.end // unit] for piece in pieces
        ]
        slices = [_as_slice(path) for path in paths]
        for number, value in enumerate(cache.values if any(paths) else ()):
            for units, unit_slice, piece, row in zip(
                paths, slices, pieces, value.numpy(), strict=True
            ):
                own = row[:, piece.start : piece.start + len(units) * unit]
                own = own.reshape(len(row), len(units), unit * row.shape[2])
                if len(self._stores) <= number:
                    self._stores.append(_empty(own, window.units))
                self._stores[number][:, unit_slice] = own

    def _read(
        self, rows: Sequence[Read], pieces: list[PromptPiece], window: Window
    ) -> tuple[Logits, Cache]:
        """Read prompts to their ends; equal ones, which differ in their seeds, once.

        Of equal ones the last is read: what further prompts share of it is kept by its path.
        """
        keys = [(rows[piece.row][1], *rows[piece.row][0]) for piece in pieces]
        unlike = dict(zip(keys, pieces, strict=True))
        row_by_key = {key: row for row, key in enumerate(unlike)}
        chosen = [row_by_key[key] for key in keys]
        read = self._accompanied([*unlike.values()])
        logits, cache = self._run(rows, read, window, _positions(rows, read))
        if chosen == list(range(len(chosen))):
            return logits, cache
        return logits[chosen], self._session.select(cache, chosen)

    def _run(
        self,
        rows: Sequence[Read],
        pieces: Sequence[PromptPiece],
        window: Window,
        read: TokenArray,
    ) -> tuple[Logits, Cache]:
        """Run pieces of one start and width behind what is kept; keep what others need of them.

        `read` `[rows, positions]`: whose logits are wanted; without positions none are computed.
        """
        tokens = [rows[piece.row][0][piece.start : piece.end] for piece in pieces]
        unit, before = CUTS.unit, None
        if units := pieces[0].start // unit:
            paths = [np.array(window.paths[piece.row][:units]) for piece in pieces]
            arrays = []
            for store in self._stores:
                whole = np.empty((len(pieces), store.shape[0], units, store.shape[2]), store.dtype)
                for row, path in zip(whole, paths, strict=True):
                    store.take(path, axis=1, out=row, mode="clip")  # "raise" would copy twice
                arrays.append(whole.reshape(*whole.shape[:2], units * unit, -1))
            before = self._session.full_cache(arrays)
        width = max(2, *map(len, tokens))  # nothing depends on the slots behind
        logits, cache = self._session.prefill(tokens, width, read, before)
        self._keep(pieces, window, cache)
        return logits, cache


def _as_slice(units: list[int]) -> slice | list[int]:
    """Return neighbours as a slice, which is copied at once."""
    neighbours = slice(units[0], units[0] + len(units)) if units else slice(0)
    return neighbours if units == [*range(neighbours.start or 0, neighbours.stop)] else units


def _empty(like: npt.NDArray[Any], units: int) -> npt.NDArray[Any]:
    return np.empty((like.shape[0], units, like.shape[2]), dtype=like.dtype)


def _positions(rows: Sequence[Read], pieces: Sequence[PromptPiece]) -> TokenArray:
    """Return `[rows, positions]`, counted from the pieces' beginning, whose logits are read."""
    first = [rows[piece.row][1] - 1 - piece.start for piece in pieces]
    ends = [piece.end - piece.start for piece in pieces]
    most = max(end - begin for begin, end in zip(first, ends, strict=True))
    read = np.repeat(np.array(first, dtype=np.int64)[:, None], most, axis=1)
    for row, begin, end in zip(read, first, ends, strict=True):
        row[: end - begin] = np.arange(begin, end)
    return read
