"""What of an answer is read, and which labels and options stand there as whole words.

Read is what follows the thinking and the task's marker (`readable_part`), without code fences and
quotations (`own_part`), in folded letters (`text.py`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import groupby

from fairgate.relations.oracles.text import Pairs, fold, folded, spoken_spans
from fairgate.relations.oracles.words import WORD, words

_IN_A_ROW = 5
"""So many words of the case's text in a row are repeated and not said."""
CJK = "\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
"""Scripts whose words need no spaces around them, for a class of characters."""
_FENCE = re.compile(
    r"(?:(?:\A|(?<=\n)) ?'''|'''(?=\n)).*?(?:'''|\Z)|(?:\A|(?<=\n)) ?~~~.*?(?:~~~|\Z)", re.DOTALL
)
_MARKS = ('""', "“”", "„“”", "«»", "»«", "\u2039\u203a", "「」", "『』", "《》")
_QUOTED = re.compile(
    "|".join(rf"(?<![^\W_]){m[0]}[^{m[1:]}\n]{{0,400}}[{m[1:]}]" for m in _MARKS)
    + r"|(?<![^\W_])'(?=[^\s\d])(?:[^'\n]|'(?=[^\W_])){1,400}'(?![^\W_])|(?:^|(?<=\n))>[^\n]*"
)
"""A quotation in one line, or a line that Markdown quotes; apostrophes within words close none."""
_INNER = re.compile(r'["“„«](.*)["”»]', re.DOTALL)


def readable_part(text: str, marker: str = "", own: Pairs = ()) -> str:
    """Fold the part of an answer that is read: what follows the thinking and the marker.

    Empty where the thinking is not closed, or the marker is not there. `own`: a user's own tags.
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


@lru_cache(maxsize=4096)
def forms_of(phrases: tuple[str, ...]) -> tuple[str, ...]:
    """Fold phrases."""
    return tuple(map(folded, phrases))


@lru_cache(maxsize=1024)
def pattern_of(forms: tuple[str, ...], *, choice: bool = False) -> re.Pattern[str]:
    """Match any of the folded forms as whole words, the longest one of those that begin together.

    Chinese, Japanese and Korean words may go on around options, and only around them: affixes can
    deny a label.
    """
    longest_first = sorted(filter(None, set(forms)), key=len, reverse=True)
    parts = []
    for (before, after), alike in groupby(longest_first, partial(_borders, choice=choice)):
        parts.append(f"{before}(?:{'|'.join(map(re.escape, alike))}){after}")
    return re.compile("|".join(parts) or r"(?!)")


def _borders(form: str, *, choice: bool) -> tuple[str, str]:
    """Return what may not stand before and behind a form.

    Forms share them in a pattern: a class of so many characters takes a millisecond to compile.
    """
    letter = f"[^\\W_{CJK}]" if choice else r"[^\W_]"
    before = rf"(?<!{letter})(?<!{letter}[-_])"
    after = rf"(?!{letter})(?![-_]{letter})(?![\u0300-\u036f\u1160-\u11ff\u3099\u309a])"
    if choice and re.match(f"[{CJK}]", form[0]):
        before = ""
    if choice and re.match(f"[{CJK}]", form[-1]):
        after = r"(?![\u1160-\u11ff\u3099\u309a])"
    before += r"(?<![-+])(?<!\d[.,])" if form[0].isdigit() else ""
    after += r"(?![.,]\d)" if form[-1].isdigit() else ""
    after += r"(?!\s+[^\W_])" if form == "no" else ""  # "no problem"
    return before, after


@lru_cache(maxsize=4096)
def own_part(plain: str, forms: tuple[str, ...] = (), shown: str = "") -> str:
    """Blank out of folded text what an answer does not say itself; the length stays.

    That is what stands in code fences and quotation marks, and what repeats the text that was
    `shown`: all of it, or five of its words in a row. A quotation that holds a label or a denial
    alone is the answer's own, and so is everything in an answer that has no other word.
    """
    said = _blank(plain, repeated(plain, shown))
    spans = [match.span() for match in _FENCE.finditer(said)]
    pattern = pattern_of(forms)
    for match in _QUOTED.finditer(_blank(said, spans)):
        others = [word for word in WORD.findall(pattern.sub(" ", match[0])) if not word.isdigit()]
        is_own = all(len(word) == 1 or next(words("denied").found(word), None) for word in others)
        if not is_own or (shown and " ".join(WORD.findall(match[0])) == _shown(shown)[0]):
            spans.append(match.span())
    left = _blank(said, spans)
    return left if any(map(str.isalnum, left)) else said


def _blank(text: str, spans: Sequence[tuple[int, int]]) -> str:
    characters = list(text) if spans else []
    for start, end in spans:
        characters[start:end] = "\ufffc" * (end - start)
    return "".join(characters) or text


def may_repeat(answer: Sequence[str], shown: str) -> bool:
    """Tell whether the words of an answer may repeat the text that was shown, or quote all of it.

    It has as many of its words as the least repetition, in any order. Else what was shown does not
    change how the answer is read.
    """
    plain = fold(shown)
    own = set(WORD.findall(plain))
    least = min(_IN_A_ROW, len(WORD.findall(plain, *_inner(plain))))
    return sum(word in own for word in answer) >= least


@lru_cache(maxsize=4096)
def words_read(text: str, marker: str = "") -> tuple[str, ...]:
    """Return the words of the part of an answer that is read."""
    return tuple(WORD.findall(readable_part(text, marker)))


def repeated(plain: str, shown: str) -> list[tuple[int, int]]:
    """List where a folded answer repeats the text that was shown."""
    if not shown:
        return []
    _, rows, least = _shown(shown)
    places = list(WORD.finditer(plain))
    return [
        (places[at].start(), places[at + size - 1].end())
        for size in {least, _IN_A_ROW}
        for at in range(len(places) - size + 1)
        if " ".join(place[0] for place in places[at : at + size]) in rows
    ]


@lru_cache(maxsize=1024)
def _shown(shown: str) -> tuple[str, frozenset[str], int]:
    """Return the words of a text or of what it quotes, all rows of words, their least length."""
    plain = fold(shown)
    begin, end = _inner(plain)
    parts = [WORD.findall(part) for part in (plain[begin:end], plain[:begin], plain[end:])]
    size = min(_IN_A_ROW, max(2, len(parts[0])))
    rows = {
        " ".join(part[at : at + length])
        for part, length in zip(parts, (size, _IN_A_ROW, _IN_A_ROW), strict=True)
        for at in range(len(part) - length + 1)
    }
    return " ".join(parts[0]), frozenset(rows), size


def _inner(plain: str) -> tuple[int, int]:
    """Return where what a folded text quotes begins and ends; all of it where it quotes nothing."""
    inner = _INNER.search(plain)
    return (0, len(plain)) if inner is None else inner.span(1)
