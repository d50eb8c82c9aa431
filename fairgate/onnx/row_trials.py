"""Tries out what rows of a batch may share without changing each other's logits.

Whether padding or the other rows show in a row's numbers is a matter of graph, processor and
version of the runtime, so each session asks its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError, OutOfMemoryError

if TYPE_CHECKING:
    from fairgate.onnx.decoder_session import DecoderSession

Doubles = npt.NDArray[np.float64]

_LONG, _SHORT = tuple(range(11)), (0, 1, 2)
"""Rows of tokens that every vocabulary has, to try a graph out."""


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
