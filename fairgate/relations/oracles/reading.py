"""What of an answer is read, and which labels and options stand there as whole words.

Read is what follows the thinking and the task's marker (`readable_part`), without code fences and
quotations (`own_part`), in folded letters (`text.py`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import chain, groupby, islice

from fairgate.relations.oracles.text import Pairs, fold, folded, spoken_spans
from fairgate.relations.oracles.words import CJK, WORD, tokens

_IN_A_ROW = 5
"""So many words of the case's text in a row are repeated and not said."""
_FENCE = re.compile(
    r"(?:(?:\A|(?<=\n)) ?'''|'''(?=\n)).*?(?:'''|\Z)|(?:\A|(?<=\n)) ?~~~.*?(?:~~~|\Z)", re.DOTALL
)
_INNER_END = re.compile(r"[.!?\u3002](?=.)")
"""An end of a sentence within a quotation."""
_STRUCK = re.compile(r"~~[^~\n]{1,400}~~")
_MARKS = ('""', "“”", "„“”", "«»", "»«", "\u2039\u203a", "「」", "『』", "《》")
_QUOTED = re.compile(
    r"(?=[\"'>“„«»\u2039「『《])(?:"
    + "|".join(rf"(?<![^\W_]){m[0]}[^{m[1:]}\n]{{0,400}}[{m[1:]}]" for m in _MARKS)
    + r"|(?<![^\W_])'(?=[^\s\d])(?:[^'\n]|'(?=[^\W_])){1,400}'(?![^\W_])|(?:^|(?<=\n))>[^\n]*)"
)
"""A quotation in one line, or a line that Markdown quotes; apostrophes within words close none."""


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

    def folded_length(end: int) -> int:
        return len(fold(" ".join(text[a : min(b, end)] for a, b in spans if a < end)))

    ends = range(len(text) + 1)
    return max(bisect_right(ends, before + position, key=folded_length) - 1, 0)


@lru_cache(maxsize=4096)
def forms_of(phrases: tuple[str, ...]) -> tuple[str, ...]:
    """Fold phrases."""
    return tuple(map(folded, phrases))


@lru_cache(maxsize=1024)
def pattern_of(forms: tuple[str, ...], *, inside: bool = False) -> re.Pattern[str]:
    """Match any of the folded forms as whole words, the longest one of those that begin together.

    With `inside`, Chinese, Japanese and Korean words may go on around them.
    """
    longest_first = sorted(filter(None, set(forms)), key=len, reverse=True)
    parts = []
    for (before, after), alike in groupby(longest_first, partial(_borders, inside=inside)):
        parts.append(f"{before}(?:{'|'.join(map(re.escape, alike))}){after}")
    firsts = "".join(sorted({re.escape(form[0]) for form in longest_first}))
    return re.compile(f"(?=[{firsts}])(?:{'|'.join(parts)})" if parts else r"(?!)")


def _borders(form: str, *, inside: bool) -> tuple[str, str]:
    """Return what may not stand before and behind a form.

    Forms share them in a pattern: a class of so many characters takes a millisecond to compile.
    """
    letter = f"[^\\W_{CJK}]" if inside else r"[^\W_]"
    before = rf"(?<!{letter})(?<!{letter}[-_])"
    after = rf"(?!{letter})(?![-_]{letter})(?![\u0300-\u036f\u1160-\u11ff\u3099\u309a])"
    after += r"(?!'s(?![^\W_]))" if inside else ""
    if inside and re.match(f"[{CJK}]", form[0]):
        before = ""
    if inside and re.match(f"[{CJK}]", form[-1]):
        after = r"(?![\u1160-\u11ff\u3099\u309a])"
    before += r"(?<![-+])(?<!\d[.,])" if form[0].isdigit() else ""
    after += r"(?![.,]\d)" if form[-1].isdigit() else ""
    after += r"(?!\s+[^\W_]|\. ?\d)" if form == "no" else ""  # "no problem", "no. 5"
    return before, after


@lru_cache(maxsize=4096)
def own_part(plain: str, forms: tuple[str, ...] = (), shown: str = "") -> str:
    """Blank out of folded text what an answer does not say itself; the length stays.

    That is what stands in code fences and quotation marks, and five words in a row of the text that
    was `shown`. A quotation that holds a label or a denial alone is the answer's own, and so is
    everything in an answer that has no other word.
    """
    said = _blank(plain, _repeated(plain, shown))
    has_fence = "'''" in said or "~~~" in said
    spans = [match.span() for match in _FENCE.finditer(said)] if has_fence else []
    spans += [match.span() for match in _STRUCK.finditer(said)] if "~~" in said else []
    pattern = pattern_of(forms)
    for match in _QUOTED.finditer(_blank(said, spans)):
        rest = pattern.sub(" ", match[0])
        words = [one for one in tokens(rest) if rest[one.start].isalpha()]
        if sum(one.end - one.start for one in words if one.before != "n") > 1:
            spans.append(match.span())
        elif match[0][0] != ">":
            quoted = _INNER_END.sub(",", match[0])
            said = f"{said[: match.start()]}{quoted}{said[match.end() :]}"
    left = _blank(said, spans)
    return left if any(map(str.isalnum, left)) else said


def _blank(text: str, spans: Sequence[tuple[int, int]]) -> str:
    characters = list(text) if spans else []
    for start, end in spans:
        characters[start:end] = "\ufffc" * (end - start)
    return "".join(characters) or text


@lru_cache(maxsize=4096)
def may_repeat(answer: str) -> bool:
    """Tell whether an answer has as many words as count as a repetition of what was shown."""
    return len(list(islice(WORD.finditer(answer), _IN_A_ROW))) == _IN_A_ROW


def _repeated(plain: str, shown: str) -> list[tuple[int, int]]:
    """List where a folded answer repeats the text that was shown."""
    places = list(WORD.finditer(plain)) if shown else []
    words = [place[0] for place in places]
    rows = zip(*(words[at:] for at in range(_IN_A_ROW)), strict=False)
    known = _rows(shown) if shown else frozenset()
    return [
        (places[at].start(), places[at + _IN_A_ROW - 1].end())
        for at, row in enumerate(rows)
        if row in known
    ]


@lru_cache(maxsize=1024)
def _rows(shown: str) -> frozenset[tuple[str, ...]]:
    """Return all sequences of this many words of a text, and of what it quotes."""
    parts = map(WORD.findall, re.split(r'["“”„«»]', fold(shown)))
    rows = (zip(*(part[at:] for at in range(_IN_A_ROW)), strict=False) for part in parts)
    return frozenset(chain.from_iterable(rows))
