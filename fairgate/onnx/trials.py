"""Finds out which ways to run a loaded graph change nothing in a row, or no more than rounding.

Products with matrices, normalisation and attention take each token by itself, but kernels may sum
in an order that depends on how many tokens, rows or slots there are. Whether they do is a matter of
graph, processor and version of the runtime, so each session asks its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError, OutOfMemoryError

if TYPE_CHECKING:
    from fairgate.onnx.decoder_session import Cache, DecoderSession, Logits

_FINE, _COARSE = 1e-3, 1e-2
"""Allowed differences of logits, as a share of the largest: in float32, and in fewer bits."""
_STEPS_APART = 4
"""Activations in 8 bits turn a difference in the last bits into whole steps, layer by layer:
rounding moved a logit by .018 of the largest, a scale that is wrong by half by .48 (random Llama of
30 M in int8); hidden padding by .017, padding that is read by .36 (SmolLM2 in int8-rows)."""
_LENGTH, _SLOTS = 75, 80
"""As long as most prompts' unlike parts."""
_TOKENS = range(11)
"""Numbers of tokens that every vocabulary has."""
_ROW = random.Random(1).choices(_TOKENS, k=_LENGTH)  # noqa: S311 (no secret)
"""Tokens in an order without a period, the same in every run."""
_FACTORS = np.array([-1, 1, 0.5, -2], dtype=np.float32)[:, None, None, None]
"""By row: what the keys and values that were read are multiplied with, exactly."""
_LONG, _SHORT = tuple(_TOKENS), (0, 1, 2)
T = TypeVar("T")
LoneReading = Callable[[], "tuple[Logits, Cache]"]
"""Reads a row by itself, at once."""


class Abilities(NamedTuple):
    """Results of the trials of a session."""

    pads: bool
    """Whether rows of different lengths may share a batch."""
    splits: bool
    """Whether a prompt may be read in parts, with bits that depend on the parts alone."""
    cuts_freely: bool
    """Whether a token's bits are the same in whatever pieces its prompt is read."""
    joins: bool
    """Whether rows of unlike lengths are stepped together, each with its own bits."""
    reads_alone: bool
    """Whether a row without companions has the bits that it has beside others."""


def try_out(session: DecoderSession, graph: str) -> Abilities:
    """Determine a session's abilities; its inputs and its reach are known.

    `graph` is its name for messages. Raises ModelError where a row's logits change with the rest of
    a batch of equal width, or nothing can be run at all, and OutOfMemoryError.
    """
    tolerance = _FINE if session.is_fine else _COARSE
    # Other kernels sum otherwise; a row beside others of its own width has the same ones.
    apart = tolerance * _STEPS_APART if session.multiplies_integers else tolerance
    alone = _logits(session, [_SHORT, _SHORT], len(_SHORT))
    together = _logits(session, [_LONG[-len(_SHORT) :], _SHORT], len(_SHORT))
    # Where it is not finite the first answer says so, with its length.
    if np.isfinite(alone).all() and not _is_near(alone, together, tolerance / 2):
        raise ModelError(
            f"the answers of {graph!r} depend on what else is in the batch "
            f"(a logit moved by {np.abs(alone - together).max():.3g}): it scales over the "
            "batch somewhere, as dynamic quantisation does. Use the fp32 or fp16 graph of the "
            "model, or make one with `fairgate export MODEL`."
        )
    shared = _attempt(lambda: _logits(session, [_LONG, _SHORT], 16))
    pads = shared is not None and _is_near(alone, shared, apart)
    able = session.selects and not session.counts and not session.one_by_one
    splits = able and pads and splitting_is_exact(session, alone, apart)
    lone = cache(partial(session.prefill, [_ROW], _SLOTS))
    reads = _attempt(lambda: reads_in_any_pieces(session, lone)) if splits else None
    cuts_freely, reads_alone = reads or (False, False)
    joins = steps_jointly(session, tolerance, lone)
    return Abilities(pads, splits, cuts_freely, joins, reads_alone)


def _attempt(run: Callable[[], T]) -> T | None:
    """Call `run`; None where the graph cannot be run so. Raises OutOfMemoryError."""
    try:
        return run()
    except OutOfMemoryError:
        raise  # else bits would depend on the memory that is free
    except ModelError:
        return None


def _is_near(own: npt.NDArray[Any], other: npt.NDArray[Any], allowed: float) -> bool:
    """Return whether logits are finite and differ by no more than a share of the largest."""
    if not np.isfinite(np.stack([own, other])).all():
        return False
    return bool(np.abs(own - other).max() <= max(1.0, float(np.abs(own).max())) * allowed)


def steps_jointly(session: DecoderSession, tolerance: float, lone: LoneReading) -> bool:
    """Return whether a session can step rows of unlike lengths together, in place.

    `tolerance`: how far logits may be from the graph's own, as a share of the largest; `lone` reads
    `_ROW` in `_SLOTS`. Windows and switches of rotary factors count slots, and experts the tokens
    of all rows.

    Layers whose attention is replaced are recognised by their nodes, so the result is compared with
    the graph's own; and kernels may sum in an order that depends on how many rows or slots there
    are.
    """
    reach = session.reach
    counts = reach.slot_window is not None or reach.switch is not None
    able = session.attends_jointly and session.selects and not session.one_by_one
    if not able or counts:
        return False

    def run() -> tuple[Logits, Logits, Logits]:
        read = lone()[1]
        few = _stepped(session, read, [_LENGTH] * 2, spare=1)
        many = _stepped(session, read, [_SLOTS, _LENGTH, 9, _SLOTS], spare=40)
        return session.step(session.select(read, [0, 0]), [3, 3])[1], few, many

    if (trial := _attempt(run)) is None:
        return False
    own, few, many = trial
    allowed = tolerance if session.is_fine else tolerance * _STEPS_APART
    return _is_near(own, few, allowed) and np.array_equal(few, many)


def _stepped(session: DecoderSession, read: Cache, lengths: Sequence[int], *, spare: int) -> Logits:
    """Return the second row's logits after one more token, stepped beside rows of other lengths.

    That row is the one that was read; the others have numbers of their own, made of its keys and
    values, so that it cannot have its logits by reading theirs.
    """
    arrays = []
    for value in read.values:
        own = value.numpy()
        rows = own[:, :, ::-1] * _FACTORS[: len(lengths)]
        rows[1] = own[0]
        free = max(0, max(lengths) + 1 - _SLOTS) + spare
        arrays.append(np.pad(rows, ((0, 0), (0, 0), (0, free), (0, 0))))
    logits: Logits = session.step_in_place(arrays, np.array(lengths), [3] * len(lengths))[1]
    return logits


def splitting_is_exact(
    session: DecoderSession, alone: npt.NDArray[np.float64], tolerance: float
) -> bool:
    """Compare a short row that is read in two parts with the same row read at once, `alone`.

    What is read after something else must not depend on the batch by a single bit.
    """
    few = _attempt(lambda: _logits(session, [_SHORT, _SHORT], len(_LONG), head=2))
    rows = [_LONG, _SHORT, _LONG[::-1], _SHORT]
    many = None if few is None else _attempt(lambda: _logits(session, rows, len(_LONG), head=2))
    if few is None or many is None:
        return False
    return _is_near(alone, few, tolerance) and np.array_equal(few, many)


def reads_in_any_pieces(session: DecoderSession, lone: LoneReading) -> tuple[bool, bool]:
    """Determine whether a row has the same logits, keys and values in other pieces, and alone.

    The row is read at once, in pieces beside others and with more padding, and in pieces without
    any, the last one the shortest that there is: by itself (`lone` reads it at once), or else
    beside itself. So neither padding nor what else is in a batch shows in a row that is read.
    """

    def read(rows: list[list[int]], slots: int, *cuts: int) -> tuple[Logits, Cache]:
        before = None
        for start, end in pairwise([0, *cuts, _LENGTH]):
            width = (slots if end == _LENGTH else end) - start
            # Only the last piece's logits are computed, as where prompts are read.
            wanted = None if end == _LENGTH else np.zeros((len(rows), 0), dtype=np.int64)
            pieces = [row[start:end] for row in rows]
            logits, cache = session.prefill(pieces, width, wanted, before)
            values = [np.ascontiguousarray(value.numpy()[:, :, :end]) for value in cache.values]
            before = session.full_cache(values)
        return logits, cache

    def bits(logits: Logits, cache: Cache) -> list[npt.NDArray[Any]]:
        return [logits[-1, 0], *(value.numpy()[-1, :, :_LENGTH] for value in cache.values)]

    together = bits(*read([_ROW[::-1], _ROW], _SLOTS + 16, 8, 40))

    def agree(whole: tuple[Logits, Cache], rows: list[list[int]]) -> bool:
        own, tight = bits(*whole), bits(*read(rows, _LENGTH, 4, _LENGTH - 2))
        return bool(np.isfinite(own[0]).all()) and all(
            np.array_equal(one, two) and np.array_equal(one, three)
            for one, two, three in zip(own, together, tight, strict=True)
        )

    alone = agree(lone(), [_ROW])
    return alone or agree(read([_ROW, _ROW], _SLOTS), [_ROW, _ROW]), alone


def _logits(
    session: DecoderSession, rows: Sequence[Sequence[int]], width: int, head: int = 0
) -> npt.NDArray[np.float64]:
    """Return the last row's logits after the prompt and after one more token.

    With `head`, so many tokens of each row are read first.
    """
    unread = np.zeros((len(rows), 0), dtype=np.int64)
    before = session.prefill([row[:head] for row in rows], head, unread)[1] if head else None
    first, cache = session.prefill([row[head:] for row in rows], width - head, before=before)
    second = session.step(cache, [3] * len(rows))
    return np.stack([first[-1, 0], second[-1]]).astype(np.float64)
