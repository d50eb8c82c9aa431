"""Tries out whether a graph gives tokens the same bits in whatever pieces a prompt is read.

With attention in one operator they are to be those of the graph's own nodes, too.

Products with matrices, normalisation and attention take each token by itself, but kernels may sum
in an order that depends on how many tokens, rows or slots there are. Whether they do is a matter
of graph, processor and version of the runtime, so each session asks its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.onnx.trial_rows import trial_row

if TYPE_CHECKING:
    from fairgate.onnx.decoder_session import DecoderSession

Bits = list[npt.NDArray[Any]]

_ROW, *_OTHERS = [trial_row(seed, 75) for seed in (1, 2, 3)]


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
    return _bits(session, [_ROW], cuts=(0,), slots=80, fuses=False)


def _in_pieces(session: DecoderSession, *, fuses: bool) -> tuple[Bits, Bits]:
    beside = _bits(session, [*_OTHERS, _ROW], cuts=(0, 8, 40), slots=96, fuses=fuses)
    return beside, _bits(session, [_ROW], cuts=(0, 72), slots=75, fuses=fuses)


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
