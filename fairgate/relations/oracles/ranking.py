"""The ranking oracle: in which order an answer puts the items that it was given.

The entries of the answer are its numbered or bulleted lines, else its lines, else what commas,
semicolons, `>` or arrows separate behind an introduction that ends with a colon. Each entry names
one item, as whole words before what explains it (behind `:`, a dash or a bracket); numbers that are
a permutation give the order, otherwise entries stand in order. A missing, repeated or invented item
makes the answer unreadable. Source: P4 section 3.1.14.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.units import Reading, Reason, Value
from fairgate.relations.oracles.folding import folded
from fairgate.relations.oracles.phrases import occurrence, readable_part

RANKING_RULE = "ranking/2"
"""Identifies how rankings are read; `rescore` refuses another one."""
LEAST_COMMON = 3
"""With fewer items a rank correlation means little: of two it is 1 or -1."""
LEAST_CORRELATION = 0.3
"""A rank correlation below it is weak agreement: two different answers (P4 table 2)."""

_MARK = re.compile(r"\s*(?:[(\[]?(\d{1,3})(?:st|nd|rd|th)?[.):\]]|#(\d{1,3})[.):]?|[-*\u2022+])\s+")
_INLINE = re.compile(r"(?:^|\s)[(]?(\d{1,3})[.)]\s+")
_SEPARATOR = re.compile(r"\s*(?:[,;>]|->|=>|\u2192)+\s*(?:and\s+|then\s+)*")
_EXPLAINED = re.compile(r":|\s[-\u2014]+\s|\s\(|\u2014")
_DECORATION = "*_\"'` "


def read_ranking(text: str, items: Sequence[str]) -> tuple[str, ...] | None:
    """Return the items in the order of an answer, the first one first; None where it has none."""
    entries = _entries(readable_part(text))
    if len(entries) != len(items):
        return None
    named = [_named(entry, items) for _, entry in entries]
    if None in named or len(set(named)) < len(items):
        return None
    numbers = [number for number, _ in entries]
    order = range(len(items))
    if sorted(numbers) == list(range(1, len(items) + 1)):
        order = sorted(order, key=numbers.__getitem__)  # type: ignore[assignment]
    return tuple(items[named[place]] for place in order)  # type: ignore[index]


def rank_correlation(left: Sequence[str], right: Sequence[str]) -> float | None:
    """Return Spearman's rho over the items that both rank, re-ranked among themselves.

    In [-1, 1]; None with fewer than three items in common. Items within a ranking are distinct, so
    that rho is 1 - 6 * sum of d squared / (n * (n * n - 1)). C. Spearman, The American Journal of
    Psychology 15 (1904) 72-101.
    """
    common = [item for item in left if item in set(right)]
    n = len(common)
    if n < LEAST_COMMON:
        return None
    places = {item: place for place, item in enumerate(i for i in right if i in set(common))}
    distance = sum((place - places[item]) ** 2 for place, item in enumerate(common))
    return 1 - 6 * distance / (n * (n * n - 1))


def differ(left: Value | None, right: Value | None) -> bool:
    """Return whether two rankings of the same items agree weakly or not at all."""
    if not (isinstance(left, tuple) and isinstance(right, tuple)) or set(left) != set(right):
        return True
    rho = rank_correlation(left, right)
    return rho is None or rho < LEAST_CORRELATION


def _entries(plain: str) -> list[tuple[int, str]]:
    """Return number (0: none) and text of every entry."""
    lines = [line for line in plain.split("\n") if line.strip(_DECORATION)]
    marked = [(match, line) for line in lines if (match := _MARK.match(line))]
    if len(marked) > 1:
        return [(int(m[1] or m[2] or 0), line[m.end() :]) for m, line in marked]
    flat = " ".join(lines)
    inline = list(_INLINE.finditer(flat))
    if len(inline) > 1:
        ends = [*(match.start() for match in inline[1:]), len(flat)]
        return [
            (int(match[1]), flat[match.end() : end].strip(" ,;"))
            for match, end in zip(inline, ends, strict=True)
        ]
    if len(lines) > 2 or (len(lines) > 1 and not _SEPARATOR.search(lines[-1])):
        return [(0, line) for line in lines if not line.rstrip(_DECORATION).endswith(":")]
    body = lines[-1] if lines else ""
    body = body.rpartition(":")[2].strip().rstrip(".")
    return [(0, part) for part in _SEPARATOR.split(body) if part.strip()]


def _named(entry: str, items: Sequence[str]) -> int | None:
    """Return which item an entry names before its explanation; None where it is not one."""
    head = _EXPLAINED.split(entry.strip(_DECORATION), maxsplit=1)[0].strip(f"{_DECORATION}.,")
    forms = [folded(item) for item in items]
    if head in forms:
        return forms.index(head)
    found = [
        (place, -len(form), number)
        for number, form in enumerate(forms)
        if (place := occurrence(head, form, 0, choice=False)) >= 0
    ]
    kept = [
        one
        for one in found
        if not any(
            other is not one and other[0] <= one[0] and one[0] - one[1] <= other[0] - other[1]
            for other in found
        )
    ]
    return kept[0][2] if len(kept) == 1 else None


@dataclass(frozen=True, slots=True)
class RankingOracle:
    """Reads the order of a case's items; the value is the items in that order."""

    @property
    def id(self) -> str:
        """Return the rule by which rankings are read."""
        return RANKING_RULE

    def stop(self) -> None:
        """Return None: a ranking is read to its end."""

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return the ranking; unreadable where an item is missing, repeated or invented."""
        ranking = read_ranking(execution.response or "", case.options)
        if ranking is None:
            return Reading(value=None, reason=Reason.UNREADABLE)
        return Reading(value=ranking)

    def same(self, left: Reading, right: Reading) -> bool:
        """Return whether both rank the same items in orders that agree (P4 section 3.1.14)."""
        return left.value == right.value or not differ(left.value, right.value)
