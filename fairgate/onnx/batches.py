"""Which rows a model runs together: as many as memory holds, and each padded to its own width.

No result depends on how many there are, so rows that memory had no room for are simply run again,
half as many at once.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from fairgate.domain.errors import ModelError, OutOfMemoryError

T = TypeVar("T")

MOST = 16
"""Rows at once on the CPU, where more gain nothing; elsewhere `_MOST_ELSEWHERE`."""
_MOST_ELSEWHERE = 64
_SHARE = 4
"""One part in so many of the free memory is for keys and values: they are held twice for a moment,
beside what each layer computes."""
_ALONE = (
    "Memory ran out with one row at a time: use a machine or a GPU with more memory, raise the "
    "limit of the container or of `ulimit -v`, shorten prompts (the "
    "retriever's `document_characters` or `top_k`) or `max_new_tokens`, or export the model in a "
    "smaller precision (`fairgate export MODEL --precision int8`)."
)
_SYSTEM = Path("/proc/meminfo")
_STATUS = Path("/proc/self/status")
_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)
"""Limit and use of a container, in version 2 and 1."""


def most_rows(*, on_cpu: bool) -> int:
    """Return how many rows run together where memory has room for all of them."""
    return MOST if on_cpu else _MOST_ELSEWHERE


def free_bytes() -> int | None:
    """Return the least of what the machine, the container and `ulimit -v` leave; None: unknown."""
    sizes = [_in_kilobytes(_SYSTEM, "MemAvailable:")]
    sizes += [_difference(limit, used) for limit, used in _CGROUPS]
    limits = [size for size in sizes if size is not None]
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _in_kilobytes(_STATUS, "VmSize:")
    if limit != resource.RLIM_INFINITY and used is not None:
        limits.append(limit - used)
    return min((max(0, size) for size in limits), default=None)


def _difference(limit: Path, used: Path) -> int | None:
    try:
        return int(limit.read_text(encoding="ascii")) - int(used.read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max": without a limit
        return None


def _in_kilobytes(file: Path, name: str) -> int | None:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
    except (OSError, ValueError, IndexError, StopIteration):
        return None


class BatchSize:
    """How many rows run together from now on."""

    def __init__(self, rows: int | None) -> None:
        """Take a number; None fits it to the memory that is free when rows are first run."""
        self.rows = MOST if rows is None else max(1, rows)
        self._fits = rows is not None
        self._effect = "no answer changed"
        """What another number of rows means for answers."""
        self.notices: list[str] = []
        """What users should know: that memory ran out."""

    def fit(self, row_bytes: int, *, on_cpu: bool) -> None:
        """Choose how many rows of a given size run together, if nobody has chosen.

        Where free memory is not known, as on a GPU, it begins with the most.
        """
        if not on_cpu:
            self._effect = "which can change the last digits of a margin on a GPU"
        if self._fits:
            return
        self._fits = True
        free = free_bytes() if on_cpu else None
        self.rows = most_rows(on_cpu=on_cpu)
        if free is not None:
            self.rows = max(1, min(self.rows, free // (_SHARE * max(1, row_bytes))))

    def halving(
        self, number: int, run: Callable[[Sequence[int]], Iterator[tuple[int, T]]]
    ) -> Iterator[tuple[int, T]]:
        """Yield `(position, result)` for positions from 0 to `number`, as `run` gives them.

        Where memory runs out, the remaining positions are run again, half as many rows at once.
        Raises ModelError where there is no room for one row.
        """
        remaining: Sequence[int] = range(number)
        while remaining:
            done: set[int] = set()
            reason = ""
            try:
                for position, result in run(remaining):
                    done.add(position)
                    yield position, result
            except OutOfMemoryError as error:
                reason = error.failure
            except MemoryError as error:
                reason = f"MemoryError {error}".strip()
            # Behind the handlers, so that nothing of what failed is held any longer.
            remaining = (
                [position for position in remaining if position not in done] if reason else []
            )
            if remaining and self.rows == 1:
                raise ModelError(f"{reason}. {_ALONE}")
            if remaining:
                before, self.rows = self.rows, self.rows // 2
                self.notices.append(
                    f"memory ran out with {before} prompts at a time; the run went on with "
                    f"{self.rows} (`--batch-size`), {self._effect}"
                )


def padded_width(length: int) -> int:
    """Return the width for a row of `length` tokens: less than 8 or an eighth more than needed.

    Multiples of 8 up to 128, of 16 up to 256, of 32 up to 512 and so on; 0 for 0.
    """
    step = 8
    while length > step * 16:
        step *= 2
    return -(-length // step) * step


def batches_by_width(
    lengths: Sequence[int], batch_size: int, width_of: Callable[[int], int] = padded_width
) -> Iterator[tuple[int, list[int]]]:
    """Yield `(width, positions)`, narrow rows first, at most `batch_size` rows of one width.

    A row's arithmetic depends on the width it is padded to (ONNX Runtime sums in another order), so
    that width must never depend on the row's companions. Rows of one width share batches; which and
    how many they are was measured to change no bit on the CPU in float32.
    """
    widths = [width_of(length) for length in lengths]
    by_width: dict[int, list[int]] = {}
    for position in sorted(range(len(lengths)), key=lambda row: (widths[row], row)):
        by_width.setdefault(widths[position], []).append(position)
    for width, positions in by_width.items():
        for start in range(0, len(positions), batch_size):
            yield width, positions[start : start + batch_size]
