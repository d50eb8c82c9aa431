"""Opens a decoder, and tries which ways to run it change nothing in a row but its rounding.

Products with matrices, normalisation and attention take each token by itself, but kernels may sum
in an order that depends on how many tokens, rows or slots there are. Whether they do is a matter of
graph, processor and version of the runtime, so each session asks its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.onnx.decoder_session import Cache, DecoderSession, Logits
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.session import Device

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


def open_decoder(folder: ModelFolder, *, device: Device, threads: int = 0) -> DecoderSession:
    """Return a session of the best of a graph's changed copies that shows to be right.

    On the CPU attention is replaced where the graph has the plain one, so that rows of unlike
    lengths take a step together, and what prompts begin with in common is read once. Raises
    ModelError, and OutOfMemoryError: else bits would depend on the memory that is free.
    """
    graph = str(folder.graph)
    session = DecoderSession(
        folder, device=device, threads=threads, replaces_attention=device == "cpu"
    )
    if session.joins:
        if _attempt(lambda: pads(session, graph) and steps_jointly(session)):
            session.pads = True
            session.reads_alone = bool(_attempt(lambda: reads_in_any_pieces(session, [_ROW])))
            session.shares = session.reads_alone or bool(
                _attempt(lambda: reads_in_any_pieces(session, [_ROW, _ROW]))
            )
            return session
        session = DecoderSession(folder, device=device, threads=threads)
    session.pads = pads(session, graph)
    return session


def _attempt(run: Callable[[], T]) -> T | None:
    """Call `run`; None where the graph cannot be run so. Raises OutOfMemoryError."""
    try:
        return run()
    except OutOfMemoryError:
        raise
    except ModelError:
        return None


def pads(session: DecoderSession, graph: str) -> bool:
    """Return whether rows of different lengths may share a batch.

    `graph` is its name for messages. Raises ModelError where a row's logits change with the rest of
    a batch of equal width, or nothing can be run at all.
    """
    tolerance = _tolerance(session)
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
    # Other widths sum otherwise; a row beside others of its own width has the same kernels.
    apart = tolerance * _STEPS_APART if session.multiplies_integers else tolerance
    return shared is not None and _is_near(alone, shared, apart)


def _tolerance(session: DecoderSession) -> float:
    return _FINE if session.is_fine else _COARSE


def _is_near(own: npt.NDArray[Any], other: npt.NDArray[Any], allowed: float) -> bool:
    """Return whether logits are finite and differ by no more than a share of the largest."""
    if not np.isfinite(np.stack([own, other])).all():
        return False
    return bool(np.abs(own - other).max() <= max(1.0, float(np.abs(own).max())) * allowed)


def steps_jointly(session: DecoderSession) -> bool:
    """Return whether a session steps rows of unlike lengths together, in place, as it reads.

    Layers whose attention is replaced are recognised by their nodes, so a step is compared with one
    that reads; and kernels may sum in an order that depends on how many rows or slots there are.
    """
    read = session.prefill([_ROW, _ROW], _SLOTS)[1]
    few = _stepped(session, read, [_LENGTH] * 2, spare=1)
    many = _stepped(session, read, [_SLOTS, _LENGTH, 9, _SLOTS], spare=40)
    own = session.step(read, [3, 3])[1]
    allowed = _tolerance(session) * (1 if session.is_fine else _STEPS_APART)
    return _is_near(own, few, allowed) and np.array_equal(few, many)


def _stepped(session: DecoderSession, read: Cache, lengths: Sequence[int], *, spare: int) -> Logits:
    """Return the second row's logits after one more token, stepped beside rows of other lengths.

    That row is the one that was read; the others have numbers of their own, made of its keys and
    values, so that it cannot have its logits by reading theirs.
    """
    arrays = []
    for value in read.values:
        own = value.numpy()[:1]
        rows = own[:, :, ::-1] * _FACTORS[: len(lengths)]
        rows[1] = own[0]
        free = max(0, max(lengths) + 1 - _SLOTS) + spare
        arrays.append(np.pad(rows, ((0, 0), (0, 0), (0, free), (0, 0))))
    logits: Logits = session.step_in_place(arrays, np.array(lengths), [3] * len(lengths))[1]
    return logits


def reads_in_any_pieces(session: DecoderSession, rows: list[list[int]]) -> bool:
    """Return whether a row has the same logits, keys and values in whatever pieces it is read.

    The row is read at once, in pieces beside others and with more padding, and in pieces without
    any, the last one the shortest that there is. `rows` are the row by itself, or beside its copy.
    So neither padding nor what else is in a batch shows in a row that is read.
    """

    def read(rows: list[list[int]], slots: int, *cuts: int) -> list[npt.NDArray[Any]]:
        before = None
        for start, end in pairwise([0, *cuts, _LENGTH]):
            width = (slots if end == _LENGTH else end) - start
            # Only the last piece's logits are computed, as where prompts are read.
            wanted = None if end == _LENGTH else np.zeros((len(rows), 0), dtype=np.int64)
            pieces = [row[start:end] for row in rows]
            logits, cache = session.prefill(pieces, width, wanted, before)
            values = [np.ascontiguousarray(value.numpy()[:, :, :end]) for value in cache.values]
            before = session.full_cache(values)
        return [logits[-1, 0], *(value.numpy()[-1, :, :_LENGTH] for value in cache.values)]

    whole = read(rows, _SLOTS)
    ways = (
        read([*[_ROW[::-1]] * 3, _ROW], _SLOTS + 16, 8, 40),
        read(rows, _LENGTH, 4, _LENGTH - 2),
    )
    return bool(np.isfinite(whole[0]).all()) and all(
        np.array_equal(part, own) for parts in ways for part, own in zip(parts, whole, strict=True)
    )


def _logits(
    session: DecoderSession, rows: Sequence[Sequence[int]], width: int
) -> npt.NDArray[np.float64]:
    """Return the last row's logits after the prompt and after one more token."""
    first, cache = session.prefill(rows, width)
    second = session.step(cache, [3] * len(rows))
    return np.stack([first[-1, 0], second[-1]]).astype(np.float64)
