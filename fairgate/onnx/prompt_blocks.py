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
from dataclasses import dataclass
from functools import partial

import numpy as np

from fairgate.onnx.batches import batches_by_width
from fairgate.onnx.decoder_session import Cache, DecoderSession, Integers, Logits
from fairgate.onnx.kept_units import KeptUnits
from fairgate.onnx.prompt_pieces import Cuts, Piece, Prompt, windows

BLOCK = 32
"""Tokens: smaller blocks share more and run more often; measured by `bench_prefixes.py`."""
_FREE = Cuts(grain=8, length=128)
_FIXED = Cuts(grain=BLOCK, length=BLOCK)
KEPT_BYTES = 256 * 2**20
"""Keys and values kept at once; one batch of prompts is always kept whole."""
_ROWS = 2
"""Times as many pieces as prompts run together: a prompt has several times a piece's tokens."""

Read = tuple[list[int], int]
"""A prompt's tokens, and from which length on its logits are read."""
WidthOf = Callable[[int, int], int]
"""By the tokens in blocks and those that follow them: how wide the latter are padded."""


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
