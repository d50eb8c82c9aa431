"""What an answer only mentions: quotations, and what repeats the text that it was asked about."""

from __future__ import annotations

import re
from functools import lru_cache

from fairgate.relations.oracles.negation import denies
from fairgate.relations.oracles.text import fold, is_word

_MENTIONED = "\ufffc"
"""Stands for each mentioned character: no part of a word, no end of a clause."""
_IN_A_ROW = 5
_KINDS = (("\u201c\u201e\u201f\u301d\u275d", "\u201d\u301e\u275e", '"'), ("", "", "'"),
          ("\u00ab", "\u00bb", ""), ("\u2039", "\u203a", ""), ("\u300c", "\u300d", ""),
          ("\u300e", "\u300f", ""), ("\u300a", "\u300b", ""), ("\u3008", "\u3009", ""))  # fmt: skip
"""Signs that open, that close, and that do either; folding makes every apostrophe, single mark and
backtick one sign. Where nothing is open, some languages open with what closes here."""
_KIND_OF = {sign: kind for kind in _KINDS for signs in kind for sign in signs}
_SIGN = re.compile(f"[\n{''.join(_KIND_OF)}]")
_QUOTING = re.compile(f"[{''.join(_KIND_OF)}](?:(?<!')|(?<![^\\W_]')|(?![^\\W_]))")
"""A sign that may open or close: no apostrophe within a word does."""
_REVERSED = ("\u00bb", "\u203a", "\u201e")
_ELISION = re.compile(r"'(?:\d\ds?|tis|twas|em|cause|til|n)(?![^\W_])")
"""Apostrophes at the beginning of a word: '90s, 'tis."""
_QUOTED_LINE = re.compile(r"(?:^|(?<=\n)) ?>[^\n]*")
_OPENING = re.compile('["\u201c\u201e\u00ab]')
_CLOSINGS = ('"', "\u201c", "\u201d", "\u00bb")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_MOST_AROUND = 60
"""Characters of a quotation beside the label that it holds; a longer one is mentioned."""
_LETTER = re.compile(r"[(\[]?[a-c][)\].:]\s*")


@lru_cache(maxsize=4096)
def said_part(plain: str, forms: tuple[str, ...], case_text: str = "") -> tuple[str, int]:
    """Blank out the mentions in folded text, and tell how much of it can change no more.

    `forms`: folded labels. `case_text`: the text that the answer may repeat. Both texts are of one
    length. What is left when the answer goes on agrees with this up to the second value.

    Mentioned is what stands between two marks of quotation of one kind, in a line that Markdown
    quotes, and what repeats the text of the case word for word: all of it, or five words of it in a
    row. It neither names nor denies a label. A quotation that holds a label alone ("positive", "not
    toxic"), or a denial alone, is the answer's own; so are quotations that leave no other word in
    the answer. A mark without its counterpart is none.
    """
    if not case_text and ">" not in plain and not _QUOTING.search(plain):
        return plain, len(plain)
    repeated, growing = _repeated(plain, case_text) if case_text else ([], len(plain))
    own = _blank(plain, repeated)
    quoted, settled = _quotations(own)
    settled = min([settled, growing, *(start for start, end in quoted if end > growing)])
    words_shown = _shown_words(case_text) if case_text else ""
    longest = max(map(len, forms), default=0) + _MOST_AROUND
    mentioned: list[tuple[int, int]] = []
    for start, end in sorted(quoted, key=lambda span: (span[0], -span[1])):
        if mentioned and end <= mentioned[-1][1]:
            continue
        inner = start + 1, end - 1 if plain[end - 1] in _KIND_OF else end
        if inner[1] - inner[0] > longest:
            mentioned.append((start, end))
            continue
        content = plain[slice(*inner)]
        if _words(content) == words_shown != "" or not _is_own(content, forms):
            mentioned.append((start, end))
    left = _blank(own, mentioned)
    if mentioned and not any(map(is_word, left)):
        return own, 0
    return left, settled


def _blank(text: str, spans: list[tuple[int, int]]) -> str:
    if not spans:
        return text
    characters = list(text)
    for start, end in spans:
        characters[start:end] = _MENTIONED * (end - start)
    return "".join(characters)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text))


def _is_own(content: str, forms: tuple[str, ...]) -> bool:
    """Return whether a quotation is a verdict: a label, a denial, or a number, and nothing else."""
    bare = _LETTER.sub("", content.strip(" \n*_.,:;!?'\""), count=1) or content.strip()
    for form in forms:
        if form and bare.endswith(form):
            bare = bare[: -len(form)]
            break
    return not any(map(str.isalpha, bare)) or all(map(denies, _WORD.findall(bare)))


def _quotations(plain: str) -> tuple[list[tuple[int, int]], int]:
    """Return the quotations, marks included, and the first opening mark that may still close."""
    spans: list[tuple[int, int]] = []
    opened: dict[tuple[str, str, str], list[int]] = {kind: [] for kind in _KINDS}
    settled = len(plain)
    for mark in _SIGN.finditer(plain):
        sign, at = mark.group(), mark.start()
        if sign == "\n":
            opened[_KIND_OF["'"]].clear()
            continue
        places = opened[_KIND_OF[sign]]
        if places and _closes(plain, at, places[-1]):
            spans.append((places.pop(), at + 1))
            if sign == "'" and at + 1 == len(plain):  # a letter behind it would make it none
                settled = min(settled, spans[-1][0])
        elif _opens(plain, at):
            places.append(at)
    for line in _QUOTED_LINE.finditer(plain) if ">" in plain else ():
        spans.append(line.span())
        if line.end() == len(plain):
            settled = min(settled, line.start())
    return spans, min([settled, *(start for places in opened.values() for start in places)])


def _closes(plain: str, at: int, begin: int) -> bool:
    """Return whether the mark at a place closes the one at `begin`."""
    sign, before, after = plain[at], plain[at - 1], plain[at + 1 : at + 2]
    opening, closing, _ = _KIND_OF[sign]
    if plain[begin] in _REVERSED:
        return sign in (opening + closing) and sign != plain[begin]
    if sign in opening:
        return False
    if sign in closing:
        return True
    if before.isspace() or before in "([{<":
        return False
    is_inner = bool(after) and is_word(after)
    return not (is_inner and (sign == "'" or at - 1 == begin))


def _opens(plain: str, at: int) -> bool:
    sign, before, after = plain[at], plain[at - 1 : at], plain[at + 1 : at + 2]
    if sign in _KIND_OF[sign][0]:
        return True
    if (before and is_word(before)) or not after or after.isspace():
        return False
    return sign != "'" or _ELISION.match(plain, at) is None


def repeats(response: str, case_text: str) -> bool:
    """Return whether it matters for reading an answer what it was shown."""
    plain, is_marked, is_long = _form_of(response)
    if is_marked or not is_long:
        return is_marked
    return any(not rows.isdisjoint(_in_a_row(plain, size)) for size, rows, _ in _rows(case_text))


@lru_cache(maxsize=4096)
def _form_of(response: str) -> tuple[str, bool, bool]:
    """Return an answer folded, whether it holds a mark, and whether it has more than a word."""
    plain = fold(response)
    is_marked = _SIGN.search(plain) is not None or ">" in plain
    return plain, is_marked, len(_WORD.findall(plain)) > 1


@lru_cache(maxsize=4096)
def _in_a_row(plain: str, size: int) -> frozenset[str]:
    """Return all so many words that stand in a row."""
    words = _WORD.findall(plain)
    return frozenset(" ".join(words[at : at + size]) for at in range(len(words) - size + 1))


@lru_cache(maxsize=1024)
def _shown_words(case_text: str) -> str:
    """Fold the words of a text, or of what it quotes."""
    begin, end = _quoted(case_text)
    return _words(fold(case_text[begin:end]))


def _quoted(case_text: str) -> tuple[int, int]:
    """Find what a text quotes, from its first mark to its last one; all of it without marks."""
    opening = _OPENING.search(case_text)
    last = max(map(case_text.rfind, _CLOSINGS))
    return (
        (0, len(case_text)) if opening is None or last <= opening.start() else (opening.end(), last)
    )


@lru_cache(maxsize=1024)
def _rows(case_text: str) -> tuple[tuple[int, frozenset[str], str], ...]:
    """List for each part of a text how many words in a row repeat it, all these, and itself.

    The parts are what it quotes and what stands around ("A man says the following text: …").
    """
    begin, end = _quoted(case_text)
    parts = [_part(case_text[begin:end], whole=True)]
    if (begin, end) != (0, len(case_text)):
        parts += map(_part, (case_text[: begin - 1], case_text[end + 1 :]))
    return tuple(part for part in parts if part[1])


@lru_cache(maxsize=4096)
def _part(text: str, *, whole: bool = False) -> tuple[int, frozenset[str], str]:
    """Return `_rows` of one part; with `whole` a shorter one is repeated by all its words."""
    words = _words(fold(text))
    size = min(_IN_A_ROW, words.count(" ") + 1) if whole else _IN_A_ROW
    return size, _in_a_row(words, size) if size > 1 else frozenset(), f" {words} "


def _repeated(plain: str, case_text: str) -> tuple[list[tuple[int, int]], int]:
    """Return repetitions of a text, and the first position that may still become one."""
    matches = list(_WORD.finditer(plain))
    words = [word.group() for word in matches]
    is_ended = bool(matches) and plain[matches[-1].end() :] not in ("", "'")
    spans, growing = [], len(plain)
    for size, rows, text in _rows(case_text):
        spans += [
            (matches[at].start(), matches[at + size - 1].end())
            for at in range(len(words) - size + 1)
            if " ".join(words[at : at + size]) in rows
        ]
        for at in range(max(0, len(words) - size + is_ended), len(words)):
            if f" {' '.join(words[at:])}{' ' * is_ended}" in text:
                growing = min(growing, matches[at].start())
                break
    return spans, growing
