"""Values to JSON and back; no two readers can understand differently what is read here.

`json.loads` accepts repeated keys (the last counts), NaN, lone surrogates and any depth that its
stack allows; code that uses the value then fails far from the file.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


MOST_LEVELS = 40
"""Greatest nesting depth that is read; FairGate's own files need six."""
_MOST_DIGITS = 300


class JsonError(ValueError):
    """A text that is no JSON, or is ambiguous; `line` and `column` from 1, 0 where not known."""

    def __init__(self, reason: str, *, line: int = 0, column: int = 0) -> None:
        """Keep the place beside the reason."""
        self.line, self.column = line, column
        super().__init__(reason)


def read_json(text: str | bytes, *, strict: bool = True) -> Any:
    """Return the value of a JSON text in UTF-8.

    Raises JsonError for broken JSON, a key that stands twice in one object, more than 40 levels
    (values count as one) and numbers of over 300 digits; where `strict`, also for half a surrogate
    pair, NaN and numbers beyond the range of a double, which others leave to those who use them.
    """
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
        value = (_STRICT if strict else _LENIENT).decode(decoded)
    except json.JSONDecodeError as error:
        reason = f"broken JSON ({error.msg})"
        raise JsonError(reason, line=error.lineno, column=error.colno) from error
    except UnicodeDecodeError as error:
        raise JsonError(f"byte {error.start} is not UTF-8") from error
    except RecursionError as error:
        raise JsonError(f"nested deeper than {MOST_LEVELS} levels") from error
    # Few texts can be either, and a corpus has millions of lines.
    may_be_half = strict and ("\\u" in decoded or not _is_text(decoded))
    if may_be_half or decoded.count("[") + decoded.count("{") > MOST_LEVELS:
        _check(value, strict=strict)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, times in counts.items() if times > 1)
        raise JsonError(
            f"the key {twice[:60]!a} occurs twice in one object, and readers differ on which of "
            "the two counts: remove one"
        )
    return members


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise JsonError(f"a number of {len(text)} digits is beyond the range of numbers")
    return int(text)


def _constant(name: str) -> float:
    raise JsonError(f"{name} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise JsonError(f"{text[:60]} is beyond the range of numbers")
    return number


def _check(value: object, *, strict: bool) -> None:
    """Raise JsonError for what is nested too deeply; where `strict`, for halves of characters."""
    level = [value]
    for _ in range(MOST_LEVELS):
        below: list[object] = []
        for item in level:
            if isinstance(item, str) and strict and not _is_text(item):
                raise JsonError(f"half a surrogate pair, which is not text, in {item[:40]!a}")
            if isinstance(item, dict):
                below += [*item, *item.values()]
            elif isinstance(item, list):
                below += item
        if not below:
            return
        level = below
    raise JsonError(f"nested deeper than {MOST_LEVELS} levels")


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# `json.loads` with hooks makes a decoder for each call, which takes longer than reading a line.
_STRICT = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_whole, parse_float=_finite, parse_constant=_constant
)
_LENIENT = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole)


def flat(record: DataclassInstance) -> dict[str, Any]:
    """Return the fields of a dataclass by name, in their order; what they hold is not copied.

    A tenth of the time of `dataclasses.asdict`, which copies deeply: made for the records of which
    a run writes tens of thousands.
    """
    return {name: getattr(record, name) for name in _names(type(record))}


@cache
def _names(kind: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
