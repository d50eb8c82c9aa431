"""Results to stored texts and back: a text without the expected form counts as missing.

A store is a file that may have been edited; what is missing is computed again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from fairgate.domain.executions import Answer, Document
from fairgate.domain.json_text import flat, read_json

Key = TypeVar("Key")
Value = TypeVar("Value")


def read_back(
    keys: Mapping[Key, str],
    stored: Mapping[str, str],
    decode: Callable[[Key, object], Value | None],
) -> dict[Key, Value]:
    """Return what is stored for each key and has its form; `decode` returns None where not."""
    found: dict[Key, Value] = {}
    for key, name in keys.items():
        if name not in stored:
            continue
        try:
            value = decode(key, read_json(stored[name]))
        except ValueError:
            continue
        if value is not None:
            found[key] = value
    return found


def documents_to(documents: Sequence[Document]) -> str:
    """Return the stored text of a list of documents."""
    rows = [[d.id, d.text, d.label, d.score] for d in documents]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def documents_from(value: object, most: int) -> list[Document] | None:
    """Return the documents of a stored list; a retriever may have found fewer than `most`."""
    if not isinstance(value, list):
        return None
    rows = value
    if len(rows) > most or not all(isinstance(row, list) and len(row) == 4 for row in rows):
        return None
    if not all(_is_text(part) for row in rows for part in row[:3]):
        return None
    if not all(row[3] is None or _is_number(row[3]) for row in rows):
        return None
    return [Document(id=row[0], text=row[1], label=row[2], score=row[3]) for row in rows]


def answer_to(answer: Answer) -> str:
    """Return the stored text of an answer."""
    return json.dumps(flat(answer), ensure_ascii=False, separators=(",", ":"))


def answer_from(value: object) -> Answer | None:
    """Return a stored answer."""
    fields = value if isinstance(value, dict) else {}
    text, margin = fields.get("text"), fields.get("margin")
    tokens, stopped = fields.get("tokens", 0), fields.get("stopped", "end")
    if not isinstance(text, str) or not isinstance(stopped, str) or type(tokens) is not int:
        return None
    if margin is not None and not _is_number(margin):
        return None
    return Answer(text=text, margin=margin, tokens=tokens, stopped=stopped)


def scores_from(value: object, count: int) -> list[float] | None:
    """Return the stored scores of `count` options."""
    if not isinstance(value, list) or len(value) != count:
        return None
    return list(value) if all(map(_is_number, value)) else None


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
