"""Whole numbers of fixed widths, packed without gaps: what a baseline keeps of each source.

A source's text is base64 of its columns one after the other, each with one number a case, the
highest bit first; zero bits fill it up to whole groups of three bytes.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]

MOST_BITS = 64
_GROUP = 24
_BITS_AT_ONCE = 1 << 23


def text_length(cases: int, bits: int) -> int:
    """Return how many characters the text of a source has, from the bits of one case."""
    return -(-cases * bits // _GROUP) * 4


def pack(columns: Sequence[Codes], widths: Sequence[int], counts: Counts) -> list[str]:
    """Return a text for each source; `counts` gives the cases of each, which lie side by side."""
    starts = np.cumsum(counts) - counts
    texts = [""] * len(counts)
    for sources, cases in _of_equal_length(counts, sum(widths)):
        rows = starts[sources][:, None] + np.arange(cases)
        bits = np.concatenate(
            [_bits(column[rows], width) for column, width in zip(columns, widths, strict=True)],
            axis=1,
        )
        bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % _GROUP)))
        text = binascii.b2a_base64(np.packbits(bits, axis=1).tobytes(), newline=False).decode()
        size = len(text) // len(sources)
        for place, source in enumerate(sources.tolist()):
            texts[source] = text[place * size : (place + 1) * size]
    return texts


def unpack(texts: Sequence[str], widths: Sequence[int], counts: Counts) -> list[Codes]:
    """Return the columns of all cases, source by source.

    The texts must have the length that `text_length` gives, which bounds what is made of them.
    Raises ValueError where one is not base64.
    """
    starts = np.cumsum(counts) - counts
    columns = [np.empty(int(counts.sum()), dtype=np.uint64) for _ in widths]
    for sources, cases in _of_equal_length(counts, sum(widths)):
        joined = "".join(texts[source] for source in sources.tolist())
        raw = np.frombuffer(binascii.a2b_base64(joined, strict_mode=True), dtype=np.uint8)
        bits = np.unpackbits(raw.reshape(len(sources), -1), axis=1)
        rows, end = starts[sources][:, None] + np.arange(cases), 0
        for column, width in zip(columns, widths, strict=True):
            begin, end = end, end + width * cases
            column[rows] = _numbers(bits[:, begin:end], width)
    return columns


def _of_equal_length(counts: Counts, bits: int) -> Iterator[tuple[npt.NDArray[np.int64], int]]:
    """Yield sources with equally many cases, as many as are handled at once, and that number."""
    order = np.argsort(counts, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(counts[order])) + 1):
        cases = int(counts[group[0]]) if len(group) else 0
        if cases:
            step = max(1, _BITS_AT_ONCE // (cases * bits))
            for start in range(0, len(group), step):
                yield group[start : start + step], cases


def _bits(numbers: Codes, width: int) -> npt.NDArray[np.uint8]:
    """Return the lowest `width` bits of a matrix's numbers, row by row."""
    octets = -(-width // 8)
    each = numbers.astype(">u8").view(np.uint8).reshape(*numbers.shape, 8)[..., 8 - octets :]
    return np.unpackbits(each, axis=2)[..., 8 * octets - width :].reshape(len(numbers), -1)


def _numbers(bits: npt.NDArray[np.uint8], width: int) -> Codes:
    """Return the matrix of numbers whose bits the rows hold."""
    octets = -(-width // 8)
    each = bits.reshape(len(bits), -1, width)
    whole = np.zeros((*each.shape[:2], 8), dtype=np.uint8)
    whole[..., 8 - octets :] = np.packbits(
        np.pad(each, ((0, 0), (0, 0), (8 * octets - width, 0))), axis=2
    )
    return whole.view(">u8")[..., 0].astype(np.uint64)
