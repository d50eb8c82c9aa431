"""How many rows a model runs together: a number, or as many as memory holds; fewer once it ran out.

No result depends on it, so rows that memory had no room for are simply run again, half as many at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.onnx.free_memory import free_bytes

Result = TypeVar("Result")

MOST = 16
"""Rows at once on the CPU, where more gain nothing; elsewhere `_MOST_ELSEWHERE`."""
_MOST_ELSEWHERE = 64
_SHARE = 4
"""One part in so many of the free memory is for keys and values: they are held twice for a moment,
beside what each layer computes."""
_ALONE = (
    "Memory ran out with one row at a time: use a machine or a card with more memory, raise the "
    "limit of the container or of `ulimit -v`, use fewer --workers, shorten prompts (the "
    "retriever's `document_characters` or `top_k`) or `max_new_tokens`, or export the model in a "
    "smaller precision (`fairgate export MODEL --precision int8`)."
)


def most_rows(*, on_cpu: bool) -> int:
    """Return how many rows run together where memory has room for all of them."""
    return MOST if on_cpu else _MOST_ELSEWHERE


class BatchSize:
    """How many rows run together from now on."""

    def __init__(self, rows: int | None, sharing: int = 1) -> None:
        """Take a number; None fits it to the memory that is free when rows are first run.

        `sharing` is how many processes run a model in that memory.
        """
        self._sharing = sharing
        self.rows = MOST if rows is None else max(1, rows)
        self._fits = rows is not None
        self.notices: list[str] = []
        """What users should know: that memory ran out."""

    def fit(self, row_bytes: int, *, on_cpu: bool) -> None:
        """Choose how many rows of so many bytes run together, if nobody has chosen.

        Where free memory is not known, as on a card, it begins with the most.
        """
        if self._fits:
            return
        self._fits = True
        free = free_bytes(self._sharing) if on_cpu else None
        self.rows = most_rows(on_cpu=on_cpu)
        if free is not None:
            self.rows = max(1, min(self.rows, free // (_SHARE * max(1, row_bytes))))

    def halving(
        self,
        number: int,
        run: Callable[[Sequence[int]], Iterator[tuple[int, Result]]],
    ) -> Iterator[tuple[int, Result]]:
        """Yield `(place, result)` for the places 0 to `number`, as `run` gives them for those left.

        Where memory runs out, the rest is run again, half as many rows at once. Raises ModelError
        where there is no room for one.
        """
        left: Sequence[int] = range(number)
        while left:
            done: set[int] = set()
            reason = ""
            try:
                for place, result in run(left):
                    done.add(place)
                    yield place, result
            except OutOfMemoryError as error:
                reason = error.what
            except MemoryError as error:
                reason = f"MemoryError {error}".strip()
            # Behind the handlers, so that nothing of what failed is held any longer.
            left = [place for place in left if place not in done] if reason else []
            if left:
                self._halve(reason)

    def _halve(self, reason: str) -> None:
        if self.rows == 1:
            raise ModelError(f"{reason}. {_ALONE}")
        before, self.rows = self.rows, self.rows // 2
        self.notices.append(
            f"memory ran out with {before} prompts at a time; the run went on with {self.rows} "
            "(`--batch-size`), no answer changed"
        )
