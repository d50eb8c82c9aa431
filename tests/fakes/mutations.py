"""Hand-edited JSON: a sound value with a few parts replaced, removed, doubled or renamed."""

import copy
import random
import re
from collections.abc import Iterator


def nested(levels: int) -> object:
    value: object = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


STRANGE = (
    None, True, False, 0, -1, 1, 2**70, 10**299, 0.5, -0.5, 1e308, -1e308, 5e-324, "", "x", "s" * 21,
    "\ud800", "a\x00b", "::error::x", "\u202e", "9" * 500, [], {}, [[]], [None], ["a"], [1], [0.1] * 3,
    {"a": 1}, {"a": {}}, nested(20), nested(200),
)  # fmt: skip
NO_JSON = (
    b"", b"{", b"null", b"[]", b"1", b'"x"', b"\xff\xfe", b"\x00", b"1e999", b"NaN", b"[" * 10**5,
    b'{"a":1,"a":2}', b"9" * 5000, b'{"a": "\\ud800"}', b"\xed\xa0\x80",
)  # fmt: skip
"""Whole files that hold something else."""


def _places(value: object, at: tuple = ()) -> Iterator[tuple]:
    if at:
        yield at
    for key in (
        value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    ):
        yield from _places(value[key], (*at, key))


def mutated(value, rng: random.Random):
    """Return a copy with one to three changes."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            break
        # What stands near the top decides more, and there is much less of it.
        shallow = [place for place in places if len(place) <= 3]
        *path, last = rng.choice(shallow if rng.random() < 0.6 else places)
        holder = value
        for key in path:
            holder = holder[key]
        _change(holder, last, rng)
    return value


def _change(holder, key, rng: random.Random) -> None:
    kind = rng.choice(("replace",) * 5 + ("remove", "rename", "double"))
    if kind == "remove":
        del holder[key]
    elif kind == "rename" and isinstance(holder, dict):
        holder[rng.choice(("", "x", f"{key}x"))] = holder.pop(key)
    elif kind == "double" and isinstance(holder, list):
        holder.insert(0, copy.deepcopy(holder[key]))
    else:
        holder[key] = copy.deepcopy(rng.choice(STRANGE))


def edited_case(baseline: str) -> str:
    """Return a baseline's text with another digit in the first content of its first source."""
    found = re.search(r'": \[0,"(.)', baseline)
    letter = "b" if found[1] == "a" else "a"
    return baseline[: found.start(1)] + letter + baseline[found.end(1) :]
