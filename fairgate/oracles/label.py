"""The label oracle: the first of the task's labels that an answer contains as a whole word.

Source: P1 section 4.3 (Set Equivalence MRT); SPEC section 3, "Label oracle".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

STOP_RULE = "label/1"
"""Identifies the rule by which generation stops early; part of every stored answer's key."""


@lru_cache(maxsize=256)
def _pattern(labels: tuple[str, ...]) -> re.Pattern[str]:
    alternatives = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE)


def first_label(text: str, labels: Sequence[str]) -> str | None:
    """Return the label that comes first in `text` as a whole word, lower case; None without one.

    Where several labels start at the same place the longest counts, so `non-toxic` is never
    read as `toxic`.
    """
    match = _pattern(tuple(labels)).search(text)
    return match.group().lower() if match else None


def label_span(text: str, labels: Sequence[str]) -> tuple[int, int] | None:
    """Return where in `text` the label that `first_label` returns stands: `(start, end)`."""
    match = _pattern(tuple(labels)).search(text)
    return match.span() if match else None


def is_complete(text: str, labels: Sequence[str]) -> bool:
    """Return whether `first_label` can no longer change, whatever is appended to `text`.

    True only if something already follows the label (so that "positive" is not the start of
    "positively") and no longer label could still grow from what has been said.
    """
    match = _pattern(tuple(labels)).search(text)
    if match is None or match.end() == len(text):
        return False
    lowered = text.lower()
    return not any(
        label.lower().startswith(lowered[start:])
        for start in range(match.start() + 1)
        for label in labels
        if len(label) > len(text) - start
    )
