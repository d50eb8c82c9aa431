"""The block of cases that a reader of the page searches and filters, and the data it is made from.

Texts stand once in a list and are named by their place in it, so that a page of thousands of cases
stays small. Everything is plain JSON, which the page's script shows as text and never as markup.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from fairgate.domain.wording import harmless
from fairgate.reports.blocks import Block, CaseList
from fairgate.reports.escaping import EXCERPT_CHARACTERS, Redaction, excerpt, redacted

MOST_ROWS = 20_000
"""Cases that a page holds; all of them stand in rows.jsonl."""
MOST_BYTES = 800_000
"""What the data of one list may take: a page has up to two lists, and stays below 2 MB."""
_LEADING_SHARE = 4
CLEAREST = 25
"""Cases that a page shows where no script runs."""
_AIM = 0.9
"""Share of what fits that a first sample aims at."""
_FEWEST, _MOST = 40, 400
"""Characters that a text is cut to, however many texts or few there are."""
_TEXTS, _TEXTS_OF_ROW = 16_000, 2
"""Characters that all texts of one sort may have, and what each case adds to them."""
_NAME = 120

T = TypeVar("T")
Json = str | int | float | None | Sequence["Json"] | Mapping[str, "Json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseBrowser(Block):
    """Cases that a reader searches and filters; without a script, the clearest of them."""

    id: str
    """Unique in a report; names the filters in the page's address."""
    label: str
    kind: str
    """Which of the page's drawings shows a case."""
    rows: int
    left_out: int = 0
    """Further cases, which only rows.jsonl holds."""
    leading: int = 0
    """How many of the first cases are the clearest ones, which a sample keeps before others."""
    totals: Mapping[str, int] = field(default_factory=dict)
    """Of all cases, how many there are of each kind; needed where some are left out."""
    data: Mapping[str, Json]
    clearest: CaseList

    def as_json(self) -> str:
        """Return the data for a script element, which no text in it can end.

        Only ASCII, without `<`, `>` and `&`, and without what a CI runner takes for a command.
        """
        return _as_json(self.data)


def _as_json(data: Mapping[str, Json]) -> str:
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text.replace("::", ":\\u003a").replace("##[", "##\\u005b")


def sample(rows: Sequence[T], most: int, leading: int) -> Sequence[T]:
    """Return at most `most` rows in their order: the first ones, and of the others evenly many.

    The first ones are `leading` rows, at most a quarter; none, and all are spread evenly. The same
    rows give the same sample.
    """
    if len(rows) <= most:
        return rows
    first = min(leading, most // _LEADING_SHARE)
    others, wanted = len(rows) - first, most - first
    return [*rows[:first], *(rows[first + others * n // wanted] for n in range(wanted))]


def fitting(
    rows: Sequence[T], data_of: Callable[[Sequence[T]], Mapping[str, Json]], leading: int
) -> tuple[Sequence[T], Mapping[str, Json]]:
    """Return as many rows as a page has room for, all or a sample, and the data made of them.

    A sample keeps `leading` rows before others. The data is made at most ten times, mostly thrice.
    """
    shown = sample(rows, MOST_ROWS, leading)
    data = data_of(shown)
    size = len(_as_json(data))
    if size <= MOST_BYTES or len(shown) <= 1:
        return shown, data
    one = data_of(rows[:1])
    measured = [(1, len(_as_json(one))), (len(shown), size)]
    share = _AIM
    while size > MOST_BYTES:
        aim = _rows_on_line(measured[-2], measured[-1])
        if aim <= 1:
            aim = _rows_on_line(measured[0], measured[-1])
        most = int(share * aim)
        if most <= 1:
            return rows[:1], one
        shown = sample(rows, most, leading)
        data = data_of(shown)
        size = len(_as_json(data))
        measured.append((len(shown), size))
        # Lower each time, so that few attempts are made however the bytes grow with the rows.
        share *= share
    return shown, data


def _rows_on_line(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Return where the line through two pairs of rows and bytes reaches `MOST_BYTES`.

    A line and no proportion, because texts that cases share do not shrink with them.
    """
    rise = (one[1] - other[1]) / (one[0] - other[0])
    return other[0] - (other[1] - MOST_BYTES) / rise if rise > 0 else 0.0


@dataclass(slots=True)
class Texts:
    """Texts that each stand once, in the order in which they were first named; 0 is no text."""

    found: list[str] = field(default_factory=lambda: [""])
    _places: dict[str, int] = field(default_factory=lambda: {"": 0})
    _named: dict[tuple[str, int], int] = field(default_factory=dict)
    """Short texts as they were named: most of them are named many times."""

    def place(self, text: str, most: int = _NAME) -> int:
        """Return the place of a text, cut to `most` characters and made harmless."""
        named = text, most
        known = self._named.get(named)
        if known is not None:
            return known
        text = excerpt(harmless(text[: most + 1]), most)
        if text not in self._places:
            self._places[text] = len(self.found)
            self.found.append(text)
        if len(named[0]) <= _NAME:
            self._named[named] = self._places[text]
        return self._places[text]


@dataclass(slots=True)
class Room:
    """How much of texts of one sort (sources, responses, documents) fits into a page."""

    texts: int
    """How many there are."""
    rows: int
    redact: Redaction
    _used: int = 0

    @property
    def most(self) -> int:
        """Return the characters that each text is cut to."""
        most = _MOST if self.redact == "none" else EXCERPT_CHARACTERS
        return max(_FEWEST, min(most, self._all // max(1, self.texts)))

    @property
    def _all(self) -> int:
        return _TEXTS + _TEXTS_OF_ROW * self.rows

    def has(self, text: str) -> bool:
        """Return whether a further text fits, and count it; those of the first cases do."""
        fits = self._used < self._all
        self._used += min(len(text), self.most) if fits else 0
        return fits


def kept(text: str, redact: Redaction, most: int) -> str:
    """Return what a page may show of a text: as the policy's `redact` asks, and cut to `most`."""
    return redacted(text, redact) if redact == "hash" else excerpt(text, most)
