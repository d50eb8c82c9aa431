"""Keys and values of what prompts begin with, each computed once.

Where a graph gives each token the same bits in whatever pieces a prompt is read, a prompt is cut
where it parts from others. Elsewhere it is read in blocks of `BLOCK` tokens from its first one on,
and a rest of at least one: each is the same computation whatever else is asked, and whole blocks
are shared. Either way no bit of an answer depends on what is shared, kept or computed together.
Shared prefixes: Kwon et al., Efficient Memory Management for Large Language Model Serving with
PagedAttention, SOSP 2023, 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.onnx.batches import batches_by_width
from fairgate.onnx.decoder_session import Cache, DecoderSession, Integers, Logits

BLOCK = 32
"""Tokens: smaller blocks share more and run more often; measured by `bench_prefixes.py`."""
KEPT_BYTES = 256 * 2**20
"""Keys and values kept at once; one batch of prompts is always kept whole."""
_ROWS = 2
"""Times as many pieces as prompts run together: a prompt has several times a piece's tokens."""
Read = tuple[list[int], int]
"""A prompt's tokens, and from which length on its logits are read."""
WidthOf = Callable[[int, int], int]
"""By the tokens in blocks and those that follow them: how wide the latter are padded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What is read: tokens, and how many slots they take in the cache."""

    tokens: list[int]
    first_read: int
    """Logits are read after so many tokens and after each further one; 1 or more."""
    slots: int
    """Tokens and padding; a function of tokens and `first_read` alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Where prompts may be cut, and where they are."""

    grain: int
    """Tokens: a cut is at a multiple, and keys and values are kept in units of so many."""
    length: int
    """Tokens, a multiple of `grain`: a piece ends at the next multiple or with its prompt."""

    @property
    def are_fixed(self) -> bool:
        """Whether a prompt's cuts are the same whatever other prompts there are."""
        return self.grain == self.length

    def last(self, prompt: Prompt) -> int:
        """Return the last place where a prompt may be cut: logits are read behind it."""
        if self.are_fixed:
            return (prompt.first_read - 1) // self.grain * self.grain
        # Of one token by itself attention would take kernels of another order of sums.
        furthest = max(0, min(prompt.first_read - 1, prompt.slots - 2))
        return furthest // self.grain * self.grain


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Tokens `start` to `end` of a prompt, which run at once."""

    place: int
    """Of the prompt among those that are read."""
    start: int
    end: int
    width: int
    """With padding, which only the last piece of a prompt has."""
    is_last: bool


@dataclass(slots=True, kw_only=True)
class Window:
    """Prompts whose keys and values are kept at the same time."""

    carried: list[int]
    """Units of the window before it, which are the first units of this one."""
    units: int
    paths: dict[int, list[int]] = field(default_factory=dict)
    """By prompt: the units of its tokens from the first on, as far as they are kept."""
    pieces: list[Piece] = field(default_factory=list)

    def new_units(self, number: int) -> range:
        """Return so many units that nothing is kept in."""
        self.units += max(0, number)
        return range(self.units - max(0, number), self.units)

    def batches(self, rows: int, last_rows: int) -> Iterator[list[Piece]]:
        """Yield pieces that run together, after those whose keys and values they need.

        At most `last_rows` last pieces run together, and `rows` others.
        """
        alike: dict[tuple[int, int, bool], list[Piece]] = {}
        for piece in self.pieces:
            alike.setdefault((piece.start, piece.width, piece.is_last), []).append(piece)
        for (_, _, is_last), pieces in sorted(alike.items()):
            most = last_rows if is_last else rows
            for start in range(0, len(pieces), most):
                yield pieces[start : start + most]


def windows(
    prompts: Sequence[Prompt], cuts: Cuts, *, most_units: int, least_prompts: int
) -> Iterator[Window]:
    """Yield what is read one after the other, so that each unit of tokens is computed once.

    A window has at most `most_units` units, or `least_prompts` prompts.

    In the order of their tokens prompts that begin alike stand side by side: what a prompt has in
    common with any before it, it has in common with the last one. A prompt is cut there, at a
    multiple of `grain` tokens, and at multiples of `length`, so that pieces of many prompts have
    the same place and width and run together. The tree of prefixes is RadixAttention's: Zheng et
    al., SGLang: Efficient Execution of Structured Language Model Programs, NeurIPS 2024, section 3.
    """
    window = Window(carried=[], units=0)
    path: list[int] = []
    before: Sequence[int] = ()
    for place in sorted(range(len(prompts)), key=lambda place: prompts[place].tokens):
        prompt, last = prompts[place], cuts.last(prompts[place])
        shared = min(_common(before, prompt.tokens), last) // cuts.grain
        if cuts.are_fixed:
            shared = min(shared, len(path))
        path += window.new_units(shared - len(path))  # in the last piece of the prompt before
        path = path[:shared]
        further = len(prompt.tokens) // cuts.grain - shared  # with what the next one may share
        if window.units + further > most_units and len(window.paths) >= least_prompts:
            yield window
            window = Window(carried=path, units=shared)
            path = list(range(shared))
        path += window.new_units(_cut(window, place, prompt, shared * cuts.grain, cuts))
        window.paths[place] = path
        before = prompt.tokens
    if window.paths:
        yield window


def _cut(window: Window, place: int, prompt: Prompt, start: int, cuts: Cuts) -> int:
    """Cut a prompt's tokens from `start` on; return how many units stand before its last piece."""
    next_cut = start - start % cuts.length + cuts.length
    ends: list[int] = [start, *range(next_cut, cuts.last(prompt) + 1, cuts.length)]
    for begin, end in pairwise(ends):
        window.pieces.append(
            Piece(place=place, start=begin, end=end, width=end - begin, is_last=False)
        )
    window.pieces.append(
        Piece(
            place=place,
            start=ends[-1],
            end=len(prompt.tokens),
            width=prompt.slots - ends[-1],
            is_last=True,
        )
    )
    return (ends[-1] - start) // cuts.grain


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return min(len(first), len(second))


_FREE = Cuts(grain=8, length=128)
_FIXED = Cuts(grain=BLOCK, length=BLOCK)


@dataclass(frozen=True, slots=True)
class PromptBatch:
    """Prompts that are read together to their ends: to be read before the next batch is asked."""

    places: list[int]
    """Of the prompts among those that were given."""
    prefill: Callable[[], tuple[Logits, Cache]]
    """Return the logits `[rows, positions, vocabulary]` of the prompts, and their cache.

    Positions count from `first_read`. A lone prompt is given twice: with one row the runtime takes
    matrix-vector kernels, whose sums differ in the last bits for some formats of weights.
    """


class KeptUnits:
    """The units of one window at a time; see `windows`."""

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


class PromptBlocks:
    """Reads prompts: what they have in common once, then what follows, in batches.

    Where a session does not share, prompts are read at once.
    """

    def __init__(self, session: DecoderSession, batch_size: int) -> None:
        """Take the session that computes, and how many prompts run together at most."""
        self._session = session
        self._batch_size = batch_size

    def batches(self, rows: Sequence[Read], width_of: WidthOf) -> Iterator[PromptBatch]:
        """Yield rows that run together; each batch must be read before the next is asked for."""
        prompts = [self._prompt(row, width_of) for row in rows]
        if not self._session.shares:
            yield from self._whole(prompts)
            return
        cuts = _FREE if self._session.cuts_freely else _FIXED
        most = max(1, KEPT_BYTES // max(1, self._session.token_bytes * cuts.grain))
        kept = KeptUnits(self._session, cuts.grain)
        for window in windows(prompts, cuts, most_units=most, least_prompts=self._batch_size):
            kept.begin(window)
            for pieces in window.batches(self._batch_size * _ROWS, self._batch_size):
                if pieces[0].is_last:
                    places = [piece.place for piece in pieces]
                    yield PromptBatch(places, partial(self._read, prompts, pieces, kept))
                else:
                    twice = len(pieces) == 1 and cuts.are_fixed
                    self._run(prompts, pieces * 2 if twice else pieces, kept)

    def _prompt(self, row: Read, width_of: WidthOf) -> Prompt:
        tokens, first_read = row
        done = (first_read - 1) // BLOCK * BLOCK if self._session.shares else 0
        slots = done + width_of(done, len(tokens) - done)
        return Prompt(tokens=tokens, first_read=first_read, slots=slots)

    def _whole(self, prompts: Sequence[Prompt]) -> Iterator[PromptBatch]:
        """Yield prompts that are read at once."""
        lengths = [len(prompt.tokens) for prompt in prompts]
        slots = {len(prompt.tokens): prompt.slots for prompt in prompts}
        for width, places in batches_by_width(lengths, self._batch_size, slots.__getitem__):
            pieces = [
                Piece(place=n, start=0, end=lengths[n], width=width, is_last=True) for n in places
            ]
            yield PromptBatch(places, partial(self._read, prompts, pieces, None))

    def _read(
        self, prompts: Sequence[Prompt], pieces: list[Piece], kept: KeptUnits | None
    ) -> tuple[Logits, Cache]:
        """Read last pieces; equal prompts, which differ in their seeds, once.

        Of equal ones the last is read: what further prompts share of it is kept by its path.
        """
        read, chosen = list(pieces), list(range(len(pieces)))
        if self._session.selects:
            keys = [(prompts[n].first_read, *prompts[n].tokens) for n in _places(pieces)]
            unlike = dict(zip(keys, pieces, strict=True))
            read, rows = list(unlike.values()), {key: row for row, key in enumerate(unlike)}
            chosen = [rows[key] for key in keys]
        if len(read) == 1 and not (kept is not None and self._session.cuts_freely):
            read = read * 2
        if len(pieces) == 1:
            chosen = [0, len(read) - 1]
        logits, cache = self._run(prompts, read, kept, _positions(prompts, read))
        if chosen == list(range(len(read))):
            return logits, cache
        return logits[chosen], self._session.select(cache, chosen)

    def _run(
        self,
        prompts: Sequence[Prompt],
        pieces: Sequence[Piece],
        kept: KeptUnits | None,
        read: Integers | None = None,
    ) -> tuple[Logits, Cache]:
        """Run pieces of one place and width; keep what others need of them."""
        rows = [prompts[one.place].tokens[one.start : one.end] for one in pieces]
        before = kept.before(pieces) if kept is not None else None
        width = pieces[0].width
        if kept is not None and self._session.cuts_freely and self._session.joins:
            width = min(width, max(2, *map(len, rows)))  # nothing depends on the slots behind
        logits, cache = self._session.prefill(rows, width, read, before)
        if kept is not None:
            kept.keep(pieces, cache)
        return logits, cache


def _places(pieces: Sequence[Piece]) -> list[int]:
    return [piece.place for piece in pieces]


def _positions(prompts: Sequence[Prompt], pieces: Sequence[Piece]) -> Integers:
    """Return `[rows, positions]`, counted from the pieces' beginning, whose logits are read.

    A lone row has two at least: one would be projected by matrix-vector kernels.
    """
    first = [prompts[one.place].first_read - 1 - one.start for one in pieces]
    ends = [one.end - one.start for one in pieces]
    most = max(end - begin for begin, end in zip(first, ends, strict=True))
    read = np.repeat(np.array(first, dtype=np.int64)[:, None], max(most, 3 - len(pieces)), axis=1)
    for row, begin, end in zip(read, first, ends, strict=True):
        row[: end - begin] = np.arange(begin, end)
    return read
