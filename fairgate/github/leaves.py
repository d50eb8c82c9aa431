"""What differs between two versions of a part of a policy: its leaf keys, with both values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from pydantic import BaseModel

_LONGEST, _AROUND = 80, 16
"""Characters that are shown of a value, and of these before the first one that differs."""
_PLAIN = re.compile(r"[\w-]{1,80}")
_EMPTY: tuple[object, ...] = (None, {}, [])
_ABSENT = object()
_Change = tuple[str, object, object]
"""Path, old value, new value."""


def leaf_changes(before: object, after: object) -> Iterator[str]:
    """Yield a sentence for each leaf key that differs: `retriever.top_k changed from 4 to 2`.

    Both are models, or their data. A list's elements are told apart by their values: one that comes
    or goes changes no other. A key that one kind of model has, and that holds nothing, is left out.
    """
    changes = [*_changes(_data(before), _data(after), "")]
    telling = [change for change in changes if not _is_idle(*change)] or changes
    for path, then, now in telling:
        yield f"{_short(path)} changed from {' to '.join(_differing_parts(then, now))}".lstrip()


def _is_idle(path: str, then: object, now: object) -> bool:
    is_field = "." not in path and "[" not in path
    return is_field and _ABSENT in (then, now) and {then in _EMPTY, now in _EMPTY} == {True, False}


def leaves_of(
    part: BaseModel, *, without: frozenset[str] = frozenset(), with_defaults: bool = True
) -> str:
    """Return the leaf keys that hold something: `max 0.2, regression.margin 0.02`.

    Without those that `without` names and, if they are not wanted, those that have their defaults.
    """
    data = part.model_dump(
        mode="json", by_alias=True, exclude_defaults=not with_defaults, exclude=set(without)
    )
    return ", ".join(f"{_short(path)} {_cut(_json(value), 0)}" for path, value in _alone(data, ""))


def _data(part: object) -> object:
    return part.model_dump(mode="json", by_alias=True) if isinstance(part, BaseModel) else part


def _below(path: str, key: object) -> str:
    name = str(key) if _PLAIN.fullmatch(str(key)) else _json(str(key))
    return f"{path}.{name}" if path else name


def _changes(then: object, now: object, path: str) -> Iterator[_Change]:
    if _json(then) == _json(now):
        return
    if isinstance(then, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*then, *now)):
            values = then.get(key, _ABSENT), now.get(key, _ABSENT)
            yield from _changes(*values, _below(path, key))
    elif isinstance(then, list) and isinstance(now, list):
        matched = SequenceMatcher(None, [*map(_json, then)], [*map(_json, now)], autojunk=False)
        for _, first, end, first_now, end_now in matched.get_opcodes():
            for n in range(max(end - first, end_now - first_now)):
                old = then[first + n] if first + n < end else _ABSENT
                new = now[first_now + n] if first_now + n < end_now else _ABSENT
                index = first + n if old is not _ABSENT else first_now + n
                yield from _changes(old, new, f"{path}[{index}]")
    elif isinstance(then, dict | list) or isinstance(now, dict | list):
        # One side is no container: its leaf goes, and those of the other come.
        yield from ((leaf_path, value, _ABSENT) for leaf_path, value in _alone(then, path))
        yield from ((leaf_path, _ABSENT, value) for leaf_path, value in _alone(now, path))
    else:
        yield path, then, now


def _alone(part: object, path: str) -> list[tuple[str, object]]:
    leaves = list(_leaves(part, path)) if part is not _ABSENT else []
    return [leaf for leaf in leaves if leaf[1] not in _EMPTY] or leaves


def _leaves(part: object, path: str) -> Iterator[tuple[str, object]]:
    children: list[tuple[str, object]] = []
    if isinstance(part, dict):
        children = [(_below(path, key), value) for key, value in part.items()]
    elif isinstance(part, list):
        children = [(f"{path}[{n}]", value) for n, value in enumerate(part)]
    if not children:
        yield path, part
    for inner, value in children:
        yield from _leaves(value, inner)


def _json(value: object) -> str:
    return "nothing" if value is _ABSENT else json.dumps(value, ensure_ascii=False)


def _differing_parts(then: object, now: object) -> tuple[str, str]:
    """Return two values, of long ones the part where they begin to differ."""
    texts = _json(then), _json(now)
    pairs = enumerate(zip(*texts, strict=False))
    differs = next((n for n, (old, new) in pairs if old != new), min(map(len, texts)))
    return _cut(texts[0], differs), _cut(texts[1], differs)


def _cut(text: str, differs: int) -> str:
    if len(text) <= _LONGEST:
        return text
    begin = max(0, min(differs - _AROUND, len(text) - _LONGEST))
    end = begin + _LONGEST
    of_all = f" (of {len(text):,} characters)"
    return f"{'…' * (begin > 0)}{text[begin:end]}{'…' * (end < len(text))}{of_all}"


def _short(path: str) -> str:
    return path if len(path) <= _LONGEST else f"{path[: _LONGEST // 2]}…{path[-_LONGEST // 2 :]}"
