"""Finds out which ways to run a loaded graph change nothing in a row, or no more than rounding.

The strongest trials come first, and what follows from them is not tried again: a row that has the
same bits in any pieces, beside others and padded, depends neither on its companions nor on padding.
Rows of unlike lengths are not read in one batch there. That follows too: padding stands behind a
row's tokens, which attend to no later slot, and a companion's length shows in its own slots only.

Products with matrices, normalisation and attention take each token by itself, but kernels may sum
in an order that depends on how many tokens, rows or slots there are. Whether they do is a matter of
graph, processor and version of the runtime, so each session asks its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.onnx.fused_layers import FUSED_INPUT
from fairgate.onnx.joint_attention import JOINT_INPUT
from fairgate.onnx.joint_rows import JointRows

if TYPE_CHECKING:
    from fairgate.onnx.decoder_session import Cache, DecoderSession, Logits

_FINE, _COARSE = 1e-3, 1e-2
"""Allowed differences of logits, as a share of the largest: in float32, and in fewer bits."""
_STEPS_APART = 4
"""Activations in 8 bits turn a difference in the last bits into whole steps, layer by layer:
rounding moved a logit by .018 of the largest, a scale that is wrong by half by .48 (random Llama of
30 M in int8)."""
_LENGTH, _SLOTS = 75, 80
_TOKENS = range(11)
"""Numbers of tokens that every vocabulary has."""
_FACTORS = np.array([-1, 1, 0.5, -2], dtype=np.float32)[:, None, None, None]
"""By row: what the keys and values that were read are multiplied with, exactly."""
Bits = list[npt.NDArray[Any]]
Doubles = npt.NDArray[np.float64]
_LONG, _SHORT = tuple(range(11)), (0, 1, 2)
"""Rows of tokens that every vocabulary has, to try a graph out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What the trials of a session found."""

    pads: bool
    """Whether rows of different lengths may share a batch."""
    splits: bool
    """Whether a prompt may be read in parts, with bits that depend on the parts alone."""
    cuts_freely: bool
    """Whether a token's bits are the same in whatever pieces its prompt is read."""
    fuses: bool
    """Whether prompts are read with these bits when one operator attends."""
    joins: bool
    """Whether rows of unlike lengths are stepped together, each with its own bits."""


def trial_row(seed: int, length: int) -> list[int]:
    """Return so many tokens from 0 to 10 in an order without a period, the same in every run."""
    return random.Random(seed).choices(_TOKENS, k=length)  # noqa: S311 (no secret)


_ROW = trial_row(1, _LENGTH)


def steps_jointly(session: DecoderSession, *, tolerance: float) -> bool:
    """Return whether a session can step rows of unlike lengths together, in place.

    `tolerance`: how far logits may be from the graph's own, as a share of the largest. Windows and
    switches of rotary factors count slots, and experts the tokens of all rows.

    Layers whose attention is replaced are recognised by their nodes, so the result is compared with
    the graph's own; and kernels may sum in an order that depends on how many rows or slots there
    are.
    """
    reach = session.reach
    counts = reach.slot_window is not None or reach.switch is not None
    able = session.has_input(JOINT_INPUT) and session.selects and not session.one_by_one
    if not able or counts:
        return False
    try:
        _, read = session.prefill([_ROW], _SLOTS)
        few = _stepped(session, read, [_LENGTH] * 2, spare=1)
        many = _stepped(session, read, [_SLOTS, _LENGTH, 9, _SLOTS], spare=40)
        own = session.step(session.select(read, [0, 0]), [3, 3])[1]
    except OutOfMemoryError:
        raise  # else bits would depend on the memory that is free
    except ModelError:
        return False
    allowed = tolerance if session.is_fine else tolerance * _STEPS_APART
    if not np.isfinite(np.stack([few, own])).all():
        return False
    size = max(1.0, float(np.abs(own).max()))
    return bool(np.abs(own - few).max() <= size * allowed) and np.array_equal(few, many)


def _stepped(session: DecoderSession, read: Cache, lengths: Sequence[int], *, spare: int) -> Logits:
    """Return the second row's logits after one more token, stepped beside rows of other lengths.

    That row is the one that was read; the others have numbers of their own, made of its keys and
    values, so that it cannot have its logits by reading theirs.
    """
    from onnxruntime import OrtValue

    values = []
    for value in read.values:
        rows = value.numpy()[:, :, ::-1] * _FACTORS[: len(lengths)]
        rows[1] = value.numpy()[0]
        values.append(OrtValue.ortvalue_from_numpy(rows))
    cache = replace(read, values=values, lengths=np.array(lengths))
    joint = JointRows(session, spare)
    joint.join(cache, range(len(lengths)))
    logits: Logits = joint.step([3] * len(lengths))[1]
    return logits


_PIECES_ROW, *_OTHERS = [trial_row(seed, 75) for seed in (1, 2, 3)]


def reads_in_any_pieces(session: DecoderSession) -> bool:
    """Return whether logits, keys and values of a row are the same bits in other pieces.

    The row is read by itself at once, beside others in pieces and with more padding, and in two
    pieces without any. It is as long as most prompts' unlike parts. So neither padding nor what
    else is in a batch shows in a row that is read.
    """
    return _are_alike(lambda: (_alone(session), *_in_pieces(session, fuses=False)))


def fuses_attention(session: DecoderSession) -> bool:
    """Return whether they are also those of the row at once when one operator attends in pieces."""
    return _are_alike(lambda: (_alone(session), *_in_pieces(session, fuses=True)))


def _alone(session: DecoderSession) -> Bits:
    return _bits(session, [_PIECES_ROW], cuts=(0,), slots=80, fuses=False)


def _in_pieces(session: DecoderSession, *, fuses: bool) -> tuple[Bits, Bits]:
    beside = _bits(session, [*_OTHERS, _PIECES_ROW], cuts=(0, 8, 40), slots=96, fuses=fuses)
    return beside, _bits(session, [_PIECES_ROW], cuts=(0, 72), slots=75, fuses=fuses)


def _are_alike(run: Callable[[], tuple[Bits, ...]]) -> bool:
    try:
        alone, *others = run()
    except OutOfMemoryError:
        raise  # else bits would depend on the memory that is free
    except ModelError:
        return False
    return bool(np.isfinite(alone[0]).all()) and all(
        np.array_equal(one, other)
        for found in others
        for one, other in zip(alone, found, strict=True)
    )


def _bits(
    session: DecoderSession,
    rows: Sequence[Sequence[int]],
    *,
    cuts: Sequence[int],
    slots: int,
    fuses: bool,
) -> Bits:
    """Return the last row's logits after its last token, and keys and values of its tokens."""
    before = None
    size = len(rows[0])
    for start, end in zip(cuts, [*cuts[1:], size], strict=True):
        pieces = [row[start:end] for row in rows]
        width = slots - start if end == size else end - start
        read = np.full((len(rows), 2), end - start - 1, dtype=np.int64)
        logits, cache = session.prefill(pieces, width, read, before, fuses=fuses)
        values = [np.ascontiguousarray(value.numpy()[:, :, :end]) for value in cache.values]
        before = session.full_cache(values)
    return [logits[-1, 0], *(value[-1] for value in values)]


class RowTrials:
    """Compares a short row's logits in different batches with those beside itself."""

    def __init__(self, session: DecoderSession, graph: str, *, tolerance: float) -> None:
        """Run the row beside itself. `tolerance`: allowed difference, as a share of the largest."""
        self._session = session
        self._graph = graph
        self._tolerance = tolerance
        self._alone = self._try([_SHORT, _SHORT], len(_SHORT))

    def refuse_dependence_on_companions(self) -> None:
        """Raise ModelError where a row's logits change with the rest of a batch of equal width."""
        beside = self._try([_LONG[-len(_SHORT) :], _SHORT], len(_SHORT))
        finite = np.isfinite(self._alone).all()  # else the first answer says so, with its length
        if finite and not self._is_same(beside, 0.5):
            raise ModelError(
                f"the answers of {self._graph!r} depend on what else is in the batch "
                f"(a logit moved by {np.abs(self._alone - beside).max():.3g}): it scales over the "
                "batch somewhere, as dynamic quantisation does. Use the fp32 or fp16 graph of the "
                "model, or make one with `fairgate export MODEL`."
            )

    def padding_is_exact(self) -> bool:
        """Compare a short row that shares a padded batch with the same row by itself."""
        try:
            shared = self._try([_LONG, _SHORT], 16)
        except OutOfMemoryError:
            raise
        except ModelError:
            return False
        return self._is_same(shared, 1.0)

    def splitting_is_exact(self) -> bool:
        """Compare a short row that is read in two parts with the same row read at once.

        What is read after something else must not depend on the batch by a single bit.
        """
        try:
            few = self._try([_SHORT, _SHORT], len(_LONG), head=2)
            many = self._try([_LONG, _SHORT, _LONG[::-1], _SHORT], len(_LONG), head=2)
        except OutOfMemoryError:
            raise
        except ModelError:
            return False
        return self._is_same(few, 1.0) and np.array_equal(few, many)

    def _is_same(self, found: Doubles, share: float) -> bool:
        """Return whether logits are the short row's own, up to a share of the tolerance."""
        if not np.isfinite(np.stack([self._alone, found])).all():
            return False
        size = max(1.0, float(np.abs(self._alone).max()))
        return bool(np.abs(self._alone - found).max() <= size * self._tolerance * share)

    def _try(self, rows: Sequence[Sequence[int]], width: int, head: int = 0) -> Doubles:
        """Return the last row's logits after the prompt and after one more token.

        With `head`, so many tokens of each row are read first.
        """
        session = self._session
        before = session.prefill([row[:head] for row in rows], head)[1] if head else None
        first, cache = session.prefill([row[head:] for row in rows], width - head, before=before)
        second = session.step(cache, [3] * len(rows))
        return np.stack([first[-1, 0], second[-1]]).astype(np.float64)


def try_out(session: DecoderSession, graph: str) -> Abilities:
    """Return what a session can do; its inputs and its reach are known.

    `graph` is its name for messages. Raises ModelError where a row's logits change with the rest of
    a batch of equal width, or nothing can be run at all, and OutOfMemoryError.
    """
    tolerance = _FINE if session.is_fine else _COARSE
    able = session.selects and not session.counts and not session.one_by_one
    fuses = able and session.has_input(FUSED_INPUT) and fuses_attention(session)
    cuts_freely = fuses or (able and reads_in_any_pieces(session))
    joins = steps_jointly(session, tolerance=tolerance)
    if cuts_freely and joins:
        return Abilities(pads=True, splits=True, cuts_freely=True, fuses=fuses, joins=True)
    rows = RowTrials(session, graph, tolerance=tolerance)
    rows.refuse_dependence_on_companions()
    pads = rows.padding_is_exact()
    splits = able and pads and rows.splitting_is_exact()
    return Abilities(
        pads=pads,
        splits=splits,
        cuts_freely=cuts_freely and splits,
        fuses=fuses and splits,
        joins=joins,
    )
