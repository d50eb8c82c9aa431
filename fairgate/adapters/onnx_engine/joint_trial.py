"""Tries out whether rows that are stepped together in place get the bits that each has by itself.

Layers whose attention is replaced are recognised by their nodes, so the result is compared with the
graph's own; and kernels may sum in an order that depends on how many rows or slots there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairgate.adapters.onnx_engine.joint_attention import JOINT_INPUT
from fairgate.adapters.onnx_engine.joint_rows import JointRows
from fairgate.domain.errors import ModelError, OutOfMemoryError

if TYPE_CHECKING:
    from fairgate.adapters.onnx_engine.decoder_session import DecoderSession, Logits

_TOKENS = 11
"""Numbers of tokens that every vocabulary has."""
_STEPS_APART = 4
"""Activations in 8 bits turn a difference in the last bits into whole steps, layer by layer:
rounding moved a logit by .018 of the largest, a scale that is wrong by half by .48 (random Llama of
30 M in int8)."""
_WIDTH = 80
"""Of all rows: what a prompt is padded to may change its last bits, beside whatever it is read."""
_ROW = [(place * place + 3) % _TOKENS for place in range(75)]
_OTHERS = [[(7 * place + n) % _TOKENS for place in range(size)] for n, size in ((1, 80), (2, 9))]


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
        few, own = _stepped(session, [_ROW, _ROW], spare=1)
        many, _ = _stepped(session, [_OTHERS[0], _ROW, _OTHERS[1], _OTHERS[0]], spare=40)
    except OutOfMemoryError:
        raise  # else bits would depend on the memory that is free
    except ModelError:
        return False
    allowed = tolerance if session.is_fine else tolerance * _STEPS_APART
    size = max(1.0, float(np.abs(own).max()))
    return bool(np.abs(own - few).max() <= size * allowed) and np.array_equal(few, many)


def _stepped(
    session: DecoderSession, rows: Sequence[Sequence[int]], *, spare: int
) -> tuple[Logits, Logits]:
    """Return the second row's logits after one more token, stepped in place and as before."""
    _, cache = session.prefill(rows, _WIDTH)
    joint = JointRows(session, spare)
    joint.join(cache, range(len(rows)))
    tokens = [3] * len(rows)
    return joint.step(tokens)[1], session.step(cache, tokens)[1]
