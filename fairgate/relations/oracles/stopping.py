"""When an answer may end: one rule for every decode loop, whichever oracle reads the answer."""

from __future__ import annotations

from fairgate.domain.executions import Stop
from fairgate.relations.oracles.choice import CHOICE_RULE, is_choice_complete
from fairgate.relations.oracles.label import LABEL_RULE, is_label_complete

STOP_RULE = f"{LABEL_RULE}, {CHOICE_RULE}"
"""Identifies the rules by which generation stops early; part of every stored answer's key."""


def is_complete(text: str, stop: Stop) -> bool:
    """Return whether nothing that could be appended to `text` would change how it is read."""
    return is_choice_complete(text, stop) if stop.choice else is_label_complete(text, stop)
