"""Whether a label is denied by what stands before it in its clause: "not positive".

The words are English, with the plainest ones of German, French, Spanish, Italian, Portuguese and
Dutch, and those of Chinese. What follows the label is never looked at. In doubt a label
counts as denied: an unreadable answer is counted as such, a wrongly read one is not noticed.
"""

from __future__ import annotations

import re
from enum import Enum


class Negation(Enum):
    """How a label is denied."""

    NONE = "none"
    DIRECT = "direct"
    """The negation belongs to the label itself ("is not toxic", "no toxic words"): its opposite."""
    LOOSE = "loose"
    """Something in the clause is denied ("cannot say whether it is toxic"), or one of several
    labels is ("neither …"): what the label means then is open."""


_DIRECT = frozenset(
    [
        "not", "no", "non", "never", "without", "cannot", "n't", "nicht", "kein", "keine",
        "keinen", "nie", "pas", "jamais", "sin", "sans", "ohne", "senza", "sem", "não",
        "nao", "niet", "geen", "ikke", "inte", "nije", "není", "не", "ليس",
    ]
)  # fmt: skip
_LOOSE = frozenset(
    [
        "neither", "nor", "none", "nothing", "nobody", "nowhere", "hardly", "barely",
        "scarcely", "rarely", "seldom", "unlikely", "lacks", "lack", "lacking", "fails",
        "failed", "unable", "absence", "devoid", "wrong", "incorrect", "refuse", "refuses",
        "doubt", "doubts", "less", "weder", "keineswegs", "ni", "aucun", "aucune",
        "tampoco", "né", "ne", "nem", "noch", "ни",
    ]
)  # fmt: skip
_CONTRACTED = re.compile(
    r".+n't|(?:is|are|was|were|do|does|did|ca|wo|would|could|should|has|have|had|must|ai)nt"
)
_PHRASES = (
    (re.compile(r"\b(?:no|without(?: a| any)?) (?:doubt|question)\b|\bnothing but\b"), " "),
    (re.compile(r"\b(?:anything|all) but\b|\brather than\b|\binstead of\b"), " neither "),
    (re.compile(r"\b(?:far|free|other|opposed|opposite)(?: (?:from|of|than|to))\b"), " neither "),
)
_FILLERS = frozenset(
    [
        "a", "an", "any", "the", "at", "all", "in", "way", "be", "been", "being", "is",
        "considered", "to", "contain", "containing", "contains", "include", "includes",
        "seem", "appear", "look", "sound", "have", "has", "as", "language", "words",
        "content", "text", "classified", "categorized", "categorised", "labeled", "labelled",
        "rated", "deemed", "regarded", "judged",
    ]
)  # fmt: skip
_ENDS = re.compile(r"(\.\.\.|[.!?;:\n|(\u2192]|\s-\s|--|[\u2014\u2015\u3002\uff61])")
_HARD_ENDS = frozenset(".!?;\u3002\uff61")
_CONTRAST = re.compile(r"\b(?:but|although|though|whereas|however(?!\s*,))\b")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_COMMA = re.compile(r"[,\u3001]")
_PARTICLES = frozenset(
    [
        "no", "nope", "nah", "yes", "yeah", "well", "ok", "okay", "sure", "hmm", "hm", "oh",
        "so",
    ]
)  # fmt: skip
_STARTERS = frozenset(
    [
        "it", "it's", "its", "this", "that", "these", "the", "i", "i'd", "i'll", "i'm",
        "my", "he", "she", "they", "we", "you", "there", "which", "making", "here", "and",
        "overall",
    ]
)  # fmt: skip
_LINKS = frozenset(["so", "thus", "therefore", "hence", "then", "but", "yet"])
_RELATIVES = frozenset(["who", "that", "which", "whom"])
_COPULAS = frozenset(["is", "was", "are", "were", "be", "seems"])
_SIGN = re.compile(r"[!\u00ac][*_\"']*$|(?:\[ ?\]|[\u2610\u2b1c])[\s*_]*$")
"""Marks right before a label: `!positive`, and the box of a list that is not ticked."""
_UNSPACED = re.compile(
    r"不是|并非|並非|没有|沒有|不能|不会|不會|不可能|不一定|不知|无法|無法|未能|않|[不非未没沒无無]$"
)
DENYING_SUFFIXES = (
    "ではな",
    "ではあり",
    "じゃな",
    "じゃあり",
    "でな",
    *(
        f"{particle}{gap}{verb}"
        for particle in ("이", "가", "은", "는")
        for gap in ("", " ")
        for verb in ("아니", "아닙", "아닌", "아님")
    ),
)
"""Endings by which Japanese and Korean deny the word before them: they belong to it like a prefix
does. After other words nothing is looked at."""


def negation_before(context: str, *, unspaced: bool = False) -> Negation:
    """Return how a label is denied by the folded text in front of it, up to where reading began.

    `unspaced` looks for Chinese negations too, which are no words of their own.
    """
    clause = _clause(context)
    words = [word for word in _WORD.findall(clause) if word]
    places = [place for place, word in enumerate(words) if denies(word)]
    if _SIGN.search(context) or (unspaced and _UNSPACED.search(clause)):
        return Negation.LOOSE
    if not places or _is_relative(words, places):
        return Negation.NONE
    is_one = len(places) == 1 and words[places[0]] not in _LOOSE and "," not in clause
    if is_one and all(word in _FILLERS for word in words[places[0] + 1 :]):
        return Negation.DIRECT
    return Negation.LOOSE


def denies(word: str) -> bool:
    """Return whether a folded word is a denial by itself."""
    return word in _DIRECT or word in _LOOSE or _CONTRACTED.fullmatch(word) is not None


def _is_relative(words: list[str], places: list[int]) -> bool:
    """Return whether only a relative clause is denied: "the one who was not late was …"."""
    before = words[: places[0]]
    return not _RELATIVES.isdisjoint(before) and words[-1] in _COPULAS


def _clause(context: str) -> str:
    for pattern, plain in _PHRASES:
        context = pattern.sub(plain, context)
    pieces = _ENDS.split(context)
    last = pieces[-1]
    if len(pieces) > 1 and pieces[-2] not in _HARD_ENDS:
        # "not: positive", "it is not ... positive", but "no - positive"
        before = _WORD.findall(pieces[-3])
        if before and denies(before[-1]) and before[-1] != "no":
            last = f"{before[-1]} {last}"
    last = _CONTRAST.split(last)[-1]
    parts = _COMMA.split(last)
    kept = [parts.pop()]
    while parts:
        words = _WORD.findall(kept[0])
        begins = words and (words[0] in _LINKS or (words[0] in _STARTERS and len(words) > 1))
        if begins or all(word in _PARTICLES for part in parts for word in _WORD.findall(part)):
            break
        kept.insert(0, parts.pop())
    return ",".join(kept)
