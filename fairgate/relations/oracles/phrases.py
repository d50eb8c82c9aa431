"""Where an answer names labels and options: what of it is read, and what stands there as a word.

An answer is read after its thinking and after the task's marker (`readable_part`), without what
wraps it and without what it only mentions (`said_part`). In what is left labels are whole words in
any spelling (`text.py`), of several that begin together the longest one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

from fairgate.domain.executions import Stop
from fairgate.relations.oracles import mentions
from fairgate.relations.oracles.negation import DENYING_SUFFIXES
from fairgate.relations.oracles.text import (
    Pairs,
    fold,
    folded,
    is_mark,
    is_unspaced,
    is_word,
    spoken_spans,
    without_unfinished_tag,
)
from fairgate.relations.oracles.wrappers import unwrapped

_JOINERS = ("-", "_")
_DENYING_PREFIX = re.compile(r"(?<![^\W_])(?:no|non|not)[-_]$")
_APART = frozenset(["", *' *"():;!?'])
"""What joins no word to the next one, whatever stands behind it."""
_HANGUL_PARTS = range(0x1160, 0x1200)
_LETTERS = ("a", "b", "c")
_LONGEST_SUFFIX = max(map(len, DENYING_SUFFIXES))


def readable_part(text: str, marker: str = "", own: Pairs = ()) -> str:
    """Fold the part of an answer that is read: what follows the thinking and the marker.

    Empty where there is nothing to read: the thinking is not closed, or the marker is not there.
    `own`: a user's own tags of thinking.
    """
    return _readable(text, spoken_spans(text, own)[0], marker)[1]


def _readable(text: str, spans: list[tuple[int, int]], marker: str) -> tuple[int, str]:
    """Count the folded characters before the readable part, and fold that part."""
    plain = fold(" ".join(text[start:end] for start, end in spans))
    if not marker:
        return 0, plain
    sign = _marker(fold(marker).strip()).search(plain)
    begin = len(plain) if sign is None else sign.end()
    return begin, plain[begin:]


@lru_cache(maxsize=64)
def _marker(sign: str) -> re.Pattern[str]:
    """Match a marker that Markdown may emphasise or JSON may quote."""
    return re.compile("[*_'\"]*".join(map(re.escape, re.findall(r"\w+|\s+|[^\w\s]", sign))))


def finished_part(text: str, marker: str = "", own: Pairs = ()) -> str:
    """Fold the readable part of an answer that goes on, as far as it cannot change.

    Unfinished characters (U+FFFD while a token is only a part of one) and tags are left out.
    """
    return readable_part(without_unfinished_tag(text.rstrip("\ufffd"), own), marker, own)


def said_part(plain: str, phrases: tuple[str, ...], case_text: str = "") -> tuple[str, int]:
    """Take wrappers and mentions from folded text; tell how much of it can change no more.

    `phrases`: labels or options as they are spelled. `case_text`: the text that the answer may
    repeat. All texts are of one length.
    """
    forms = forms_of(phrases)
    bare, finished = unwrapped(plain, (*forms, *_LETTERS))
    own, settled = mentions.said_part(bare, (*forms, *_LETTERS), case_text)
    return own, min(settled, finished)


@lru_cache(maxsize=4096)
def forms_of(phrases: tuple[str, ...]) -> tuple[str, ...]:
    """Fold phrases."""
    return tuple(map(folded, phrases))


@lru_cache(maxsize=1024)
def _pattern(forms: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, int]]:
    """Match any of the forms, the longest first, and map each to its first number."""
    ordered = sorted(filter(None, set(forms)), key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, ordered)) or r"(?!)")
    return pattern, {form: number for number, form in reversed(list(enumerate(forms)))}


def named(flat: str, forms: tuple[str, ...], *, choice: bool) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and number of each form that stands in a text as whole words.

    In their order; of forms that begin together the longest one.
    """
    pattern, numbers = _pattern(forms)
    at = 0
    while (match := pattern.search(flat, at)) is not None:
        start = match.start()
        here = [match[0]]
        if not stands(flat, start, match.end(), choice=choice):
            here = sorted((f for f in numbers if f and flat.startswith(f, start)), key=len)
            here = [f for f in here if stands(flat, start, start + len(f), choice=choice)]
        if here:
            yield start, start + len(here[-1]), numbers[here[-1]]
        at = start + (len(here[-1]) if here else 1)


def raw_place(text: str, position: int, marker: str = "", own: Pairs = ()) -> int:
    """Count the characters of the answer itself before a place of its readable part."""
    spans, _ = spoken_spans(text, own)
    before, _ = _readable(text, spans, marker)
    places = [at for start, end in spans for at in range(start, end)]

    def folded_length(number: int) -> int:
        last = places[number]
        cut = [(start, min(end, last + 1)) for start, end in spans if start <= last]
        return len(fold(" ".join(text[start:end] for start, end in cut)))

    number = bisect_right(range(len(places)), before + position, key=folded_length)
    return places[min(number, len(places) - 1)]


def occurrence(flat: str, form: str, begin: int, *, choice: bool) -> int:
    """Find where a form first stands as whole words; -1 where it does not."""
    start = flat.find(form, begin) if form else -1
    while start >= 0:
        if stands(flat, start, start + len(form), choice=choice):
            return start
        start = flat.find(form, start + 1)
    return -1


def stands(flat: str, start: int, end: int, *, choice: bool) -> bool:
    """Tell whether what stands at `[start, end)` is whole words."""
    if flat[start - 1 : start] in _APART and (
        flat[end : end + 1] in _APART or (flat[end] in ".," and not flat[end - 1].isdigit())
    ):
        return True
    before, after = flat[max(0, start - 2) : start][::-1], flat[end : end + 2]
    if before[:1] in _JOINERS and _DENYING_PREFIX.search(flat, max(0, start - 5), start):
        before = ""  # "non-positive" is a denied label, not another word
    return not (
        (choice and flat.startswith(DENYING_SUFFIXES, end))
        or _is_joined(before, flat[start], choice=choice)
        or _is_joined(after, flat[end - 1], choice=choice, follows=True)
    )


def _is_joined(outer: str, edge: str, *, choice: bool, follows: bool = False) -> bool:
    """Tell whether a form's edge and the characters next to it, nearest first, are one word."""
    near, beyond = outer[:1], outer[1:2]
    if not near:
        return False
    if follows and (is_mark(near) or ord(near) in _HANGUL_PARTS):
        return True
    if edge.isdigit() and not follows and near in ("-", "+"):
        return True  # a sign: -1 is not 1
    if edge.isdigit() and near in (".", ","):
        return beyond.isdigit()
    if near in _JOINERS:
        return _are_one_word(beyond, edge, choice=choice)
    return _are_one_word(near, edge, choice=choice)


def _are_one_word(near: str, edge: str, *, choice: bool) -> bool:
    """Tell whether two neighbours belong to one word.

    Korean particles follow a noun directly, and Japanese and Chinese have no spaces at all: an
    option may stand inside their words. A label may not, since affixes can deny it.
    """
    if not near or not is_word(near) or not is_word(edge):
        return False
    return not (choice and (is_unspaced(near) or is_unspaced(edge)))


def is_settled(flat: str, start: int, end: int, stop: Stop) -> bool:
    """Tell whether the form at `[start, end)` stays the first one whatever follows."""
    longest = max(map(len, forms_of(stop.phrases)))
    rest = flat[end : end + _LONGEST_SUFFIX + 1]
    if not rest or rest in _JOINERS or (rest in (".", ",") and flat[end - 1].isdigit()):
        return False
    if stop.choice and any(suffix.startswith(rest) for suffix in DENYING_SUFFIXES):
        return False
    # The last character may still change by a mark upon it.
    tails = [(at, flat[at:]) for at in range(max(0, len(flat) - longest - 1), start + 1)]
    return not any(
        form.startswith((tail, tail[:-1])) and len(form) >= len(tail)
        for at, tail in tails
        for form in forms_of(stop.phrases)
        if (at, len(form)) != (start, end - start)
    )
