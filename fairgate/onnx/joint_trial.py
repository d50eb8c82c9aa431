"""Tries out whether rows that are stepped together in place get the bits that each has by itself.

Layers whose attention is replaced are recognised by their nodes, so the result is compared with the
graph's own; and kernels may sum in an order that depends on how many rows or slots there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.onnx.joint_attention import JOINT_INPUT
from fairgate.onnx.joint_rows import JointRows
from fairgate.onnx.trial_rows import trial_row

if TYPE_CHECKING:
    from fairgate.onnx.decoder_session import Cache, DecoderSession, Logits

_STEPS_APART = 4
"""Activations in 8 bits turn a difference in the last bits into whole steps, layer by layer:
rounding moved a logit by .018 of the largest, a scale that is wrong by half by .48 (random Llama of
30 M in int8)."""
_LENGTH, _SLOTS = 75, 80
_ROW = trial_row(1, _LENGTH)
_FACTORS = np.array([-1, 1, 0.5, -2], dtype=np.float32)[:, None, None, None]
"""By row: what the keys and values that were read are multiplied with, exactly."""


def steps_jointly(session: DecoderSession, *, tolerance: float) -> bool:
    """Return whether a session can step rows of unlike lengths together, in place.

    `tolerance`: how far logits may be from the graph's own, as a share of the largest. Windows and
    switches of rotary factors count slots, and experts the tokens of all rows.
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
