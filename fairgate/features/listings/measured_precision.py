"""The measured precision of the relations, as FairGate ships it.

`fairgate relations measure --out` writes the file from the labelled answers beside it; a test does
so again and compares.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from fairgate.domain.json_text import read_json
from fairgate.stats.interval import Interval
from fairgate.stats.wilson import wilson

CONFIDENCE = 0.95
NOT_MEASURED = "not measured"
_FILE = ("data", "labelled", "precision.json")


def precision_of(relation: str) -> str:
    """Return a relation's precision with its interval, or that it was not measured."""
    figures = _measured().get(relation)
    return NOT_MEASURED if figures is None else share(figures["real"], figures["reported"])


def share(part: int, whole: int) -> str:
    """Return `0.95 (0.76 to 0.99; 19 of 20)`, the interval Wilson's at 0.95."""
    found = wilson(part, whole, confidence=CONFIDENCE)
    if not isinstance(found, Interval):
        return "not defined"
    return f"{part / whole:.2f} ({found.low:.2f} to {found.high:.2f}; {part} of {whole})"


@cache
def _measured() -> dict[str, Any]:
    text = resources.files("fairgate").joinpath(*_FILE).read_bytes()
    found = read_json(text)["relations"]
    assert isinstance(found, dict)  # noqa: S101 (an embedded file)
    return found
