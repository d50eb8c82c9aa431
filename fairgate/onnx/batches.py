"""Which rows run together, and how wide: decided by each row's own length alone.

A row's arithmetic depends on the width it is padded to (ONNX Runtime sums in another order), so
that width must never depend on the row's companions. Rows of one width share batches; which and
how many they are was measured to change no bit on the CPU in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence


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
    """Yield `(width, positions)`, narrow rows first, at most `batch_size` rows of one width."""
    widths = [width_of(length) for length in lengths]
    by_width: dict[int, list[int]] = {}
    for position in sorted(range(len(lengths)), key=lambda place: (widths[place], place)):
        by_width.setdefault(widths[position], []).append(position)
    for width, positions in by_width.items():
        for start in range(0, len(positions), batch_size):
            yield width, positions[start : start + batch_size]
