"""One number of every case of a suite: which texts or values it stands for, both ways.

A field is `bits` wide. Where it lists `values`, number n is the n-th of them, and 0 is none (not
decided); else a content is a hexadecimal number, and n is n - 1 millionths in a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairgate.domain.wording import shown
from fairgate.gate.packed_numbers import MOST_BITS, Codes, Counts
from fairgate.metrics.table import Column, is_verdict
from fairgate.stats.levels import Levels

_VERDICTS = (0.0, 1.0, -1.0)
"""Listed whatever a run decided, so that one verdict more does not move the bits of all others."""
_MOST_LISTED = 63
_HEX = frozenset("0123456789abcdef")
_DIGIT = 4
_DIGITS = MOST_BITS // _DIGIT
_MILLION = 1_000_000
_MOST_MILLIONTHS = 1 << 52


@dataclass(frozen=True, slots=True)
class Field:
    """One number of every case: how wide it is, and the values that it counts, if it does."""

    bits: int
    values: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where a file says something else."""
        listed = self.values is None or isinstance(self.values, list | tuple)
        if type(self.bits) is not int or not 1 <= self.bits <= MOST_BITS or not listed:
            raise ValueError(
                f"a field is {shown(self.bits)} bits wide, values {shown(self.values)}; expected "
                f"1 to {MOST_BITS} and a list"
            )

    def described(self) -> dict[str, Any]:
        """Return what stands in the file."""
        return {"bits": self.bits} | ({} if self.values is None else {"values": [*self.values]})

    def listed(self, codes: Codes, name: str, least: int = 1) -> Sequence[Any]:
        """Return the values, having made sure that all numbers are among them."""
        values = self.values if self.values is not None else ()
        wrong = codes[(codes < least) | (codes > len(values))]
        if len(wrong):
            raise ValueError(f"{name} has number {int(wrong[0])} of {len(values)} values")
        return values


def field_of_texts(texts: Sequence[str]) -> tuple[Field, Codes]:
    """Return the numbers of texts, from 1 in the order in which they first come."""
    levels = Levels.of(texts)
    numbers = {text: number for number, text in enumerate(levels.first_rows(), 1)}
    places = np.asarray([numbers.get(name, 0) for name in levels.names], dtype=np.uint64)
    return Field(max(1, len(numbers).bit_length()), list(numbers)), places[levels.codes]


def field_of_contents(contents: Sequence[str]) -> tuple[Field, Codes]:
    """Return hashes as the numbers that they are; other texts are listed."""
    digits = len(contents[0]) if contents else 1
    hashes = 0 < digits <= _DIGITS and all(len(content) == digits for content in contents)
    if not hashes or not _HEX.issuperset("".join(contents)):
        return field_of_texts(contents)
    raw = bytes.fromhex("".join(content.zfill(_DIGITS) for content in contents))
    return Field(_DIGIT * digits), np.frombuffer(raw, dtype=">u8").astype(np.uint64)


def field_of_numbers(column: Column) -> tuple[Field, Codes]:
    """Return a column's numbers: of few values, else of millionths where all are such."""
    decided = ~np.isnan(column)
    known = column[decided] + 0.0  # no negative zero
    values = np.asarray(_VERDICTS) if is_verdict(column) else np.unique(known)
    codes = np.zeros(len(column), dtype=np.uint64)
    parts = np.rint(known * _MILLION)
    if (
        len(values) > _MOST_LISTED
        and 0 <= parts.min() <= parts.max() < _MOST_MILLIONTHS
        and np.array_equal(parts / _MILLION, known)
    ):
        codes[decided] = parts.astype(np.uint64) + np.uint64(1)
        return Field(8 * -(-int(codes.max()).bit_length() // 8)), codes
    rising = np.argsort(values)
    codes[decided] = rising[np.searchsorted(values, known, sorter=rising)] + 1
    return Field(max(1, len(values).bit_length()), values.tolist()), codes


def contents_of(field: Field, codes: Codes) -> list[str]:
    """Return the content of every case. Raises ValueError."""
    if field.values is not None:
        return list(texts_of(field, codes, "content"))
    if field.bits % _DIGIT:
        raise ValueError(f"content is {field.bits} bits wide; expected hexadecimal digits")
    every, digits = codes.astype(">u8").tobytes().hex(), field.bits // _DIGIT
    return [every[end - digits : end] for end in range(_DIGITS, len(every) + 1, _DIGITS)]


def clusters_of(field: Field, codes: Codes) -> Counts:
    """Return the cluster of every case as its place among the values. Raises ValueError."""
    values = field.listed(codes, "cluster")
    if len(set(values)) < len(values):
        raise ValueError("cluster lists a name twice")
    return codes.astype(np.int64) - 1


def texts_of(field: Field, codes: Codes, name: str) -> Levels:
    """Return the text of every case. Raises ValueError where one has none.

    A file may list a text twice: that is one level.
    """
    values = field.listed(codes, name)
    return Levels.of(values).taken(codes.astype(np.int64) - 1)


def numbers_of(field: Field, codes: Codes, name: str) -> Column:
    """Return the value of every case, NaN where it has none. Raises ValueError."""
    if field.values is None:
        return np.where(codes == 0, np.nan, (codes.astype(np.float64) - 1) / _MILLION)
    values = field.listed(codes, name, least=0)
    if not all(type(value) in (int, float) for value in values):
        raise ValueError(f"{name} lists {shown(values)}; expected numbers")
    return np.asarray([np.nan, *values], dtype=np.float64)[codes]
