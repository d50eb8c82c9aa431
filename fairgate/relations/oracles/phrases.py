"""The first label or option in an answer: one definition for reading an answer and for ending it.

An answer is read after its thinking and after the task's marker. There the phrase counts that
begins first, the longest where several begin together, as whole words in any spelling
(`folding.py`), where the answer says it and does not only mention it (`quotation.py`). Nothing
behind it is read. A phrase is *complete* when no continuation could change
it: something that is no part of its word follows, and no longer phrase is still growing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

from fairgate.domain.executions import Stop
from fairgate.relations.oracles.folding import fold, folded, is_mark, is_unspaced, is_word
from fairgate.relations.oracles.negation import DENYING_SUFFIXES, Negation, negation_before
from fairgate.relations.oracles.quotation import said_part
from fairgate.relations.oracles.thinking import spoken_spans, without_unfinished_tag

_JOINERS = ("-", "_")
_DENYING_PREFIX = re.compile(r"(?<![^\W_])(?:no|non|not)[-_]$")
_HANGUL_PARTS = range(0x1160, 0x1200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """A phrase in the readable part of an answer."""

    number: int
    """Which of the phrases it is."""
    start: int
    """Where it begins in the readable part; `end` likewise."""
    end: int
    is_complete: bool
    """Whether it stays the first one whatever is appended to the answer."""
    negation: Negation


def readable_part(text: str, marker: str = "") -> str:
    """Return the folded text that is read: what follows the thinking and the marker.

    Empty where there is nothing to read: the thinking is not closed, or the marker is not there.
    """
    return _readable(text, spoken_spans(text)[0], marker)[1]


def _readable(text: str, spans: list[tuple[int, int]], marker: str) -> tuple[int, str]:
    """Return how many folded characters stand before the readable part, and that part."""
    plain = fold(" ".join(text[start:end] for start, end in spans))
    if not marker:
        return 0, plain
    sign = fold(marker).strip()
    at = plain.find(sign)
    begin = at + len(sign) if at >= 0 else len(plain)
    return begin, plain[begin:]


def finished_part(text: str, marker: str = "") -> str:
    """Return the readable part of an answer that goes on, as far as it cannot change.

    Unfinished characters (U+FFFD while a token is only a part of one) and tags are left out.
    """
    return readable_part(without_unfinished_tag(text.rstrip("\ufffd")), marker)


def first_phrase(plain: str, stop: Stop, begin: int = 0, end: int | None = None) -> Phrase | None:
    """Return the first of the phrases in a readable part, from `begin` on; None without one.

    An `end` says that the line to be searched ends there.
    """
    own, settled = said_part(plain, _forms(stop.phrases), stop.shown)
    flat = own[:end].replace("\n", " ")
    found = [
        (start, -len(form), number)
        for number, form in enumerate(_forms(stop.phrases))
        for start in [occurrence(flat, form, begin, choice=stop.choice)]
        if start >= 0
    ]
    if not found:
        return None
    start, length, number = min(found)
    return Phrase(
        number=number,
        start=start,
        end=start - length,
        is_complete=start - length <= settled
        and (end is not None or _is_settled(flat, start, start - length, stop)),
        negation=negation_before(own[:start], unspaced=stop.choice),
    )


def raw_place(text: str, place: int, marker: str = "") -> int:
    """Return how many characters of the answer itself stand before a place of its readable part."""
    spans, _ = spoken_spans(text)
    before, _ = _readable(text, spans, marker)
    places = [at for start, end in spans for at in range(start, end)]

    def folded_length(number: int) -> int:
        last = places[number]
        cut = [(start, min(end, last + 1)) for start, end in spans if start <= last]
        return len(fold(" ".join(text[start:end] for start, end in cut)))

    number = bisect_right(range(len(places)), before + place, key=folded_length)
    return places[min(number, len(places) - 1)]


@lru_cache(maxsize=4096)
def _forms(phrases: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(folded, phrases))


def occurrence(flat: str, form: str, begin: int, *, choice: bool) -> int:
    """Return where a form first stands as whole words; -1 where it does not."""
    start = flat.find(form, begin) if form else -1
    while start >= 0:
        end = start + len(form)
        before, after = flat[max(0, start - 2) : start][::-1], flat[end : end + 2]
        if _DENYING_PREFIX.search(flat, max(0, start - 5), start):
            before = ""  # "non-positive" is a denied label, not another word
        if not (
            (choice and flat.startswith(DENYING_SUFFIXES, end))
            or _is_joined(before, flat[start], choice=choice)
            or _is_joined(after, flat[end - 1], choice=choice, follows=True)
        ):
            return start
        start = flat.find(form, start + 1)
    return -1


def _is_joined(outer: str, edge: str, *, choice: bool, follows: bool = False) -> bool:
    """Return whether a form's edge and the characters next to it, nearest first, are one word."""
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
    """Return whether two neighbours belong to one word.

    Korean particles follow a noun directly, and Japanese and Chinese have no spaces at all: an
    option may stand inside their words. A label may not, since affixes can deny it.
    """
    if not near or not is_word(near) or not is_word(edge):
        return False
    return not (choice and (is_unspaced(near) or is_unspaced(edge)))


def _is_settled(flat: str, start: int, end: int, stop: Stop) -> bool:
    """Return whether the form at `[start, end)` stays the first one whatever follows."""
    rest = flat[end:]
    if not rest or rest in _JOINERS or (rest in (".", ",") and flat[end - 1].isdigit()):
        return False
    if stop.choice and any(suffix.startswith(rest) for suffix in DENYING_SUFFIXES):
        return False
    longest = max(map(len, _forms(stop.phrases)))
    # The last character may still change by a mark upon it.
    tails = [(at, flat[at:]) for at in range(max(0, len(flat) - longest - 1), start + 1)]
    return not any(
        form.startswith((tail, tail[:-1])) and len(form) >= len(tail)
        for at, tail in tails
        for form in _forms(stop.phrases)
        if (at, len(form)) != (start, end - start)
    )
