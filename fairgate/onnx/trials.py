"""Finds out which ways to run a loaded graph change nothing in a row, or no more than rounding.

The strongest trials come first, and what follows from them is not tried again: a row that has the
same bits in any pieces, beside others and padded, depends neither on its companions nor on padding.
Rows of unlike lengths are not read in one batch there. That follows too: padding stands behind a
row's tokens, which attend to no later slot, and a companion's length shows in its own slots only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairgate.onnx.fused_layers import FUSED_INPUT
from fairgate.onnx.joint_trial import steps_jointly
from fairgate.onnx.piece_trial import fuses_attention, reads_in_any_pieces
from fairgate.onnx.row_trials import RowTrials

if TYPE_CHECKING:
    from fairgate.onnx.decoder_session import DecoderSession

_FINE, _COARSE = 1e-3, 1e-2
"""Allowed differences of logits, as a share of the largest: in float32, and in fewer bits."""


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
