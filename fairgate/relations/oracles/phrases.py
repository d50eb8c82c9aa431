"""The first label or option that an answer says: one definition for reading and for ending.

An answer is read after its thinking and after the task's marker. There the phrase counts that
begins first, the longest where several begin together, as whole words in any spelling
(`text.py`), where the answer says it and does not only mention it (`said_part`). Nothing behind
it is read. A phrase is *complete* when no continuation could change it: something that is no part
of its word follows, and no longer phrase is still growing.

It may be denied by what stands before it in its clause (`negation_before`): "not positive". The
words are English, with the plainest ones of German, French, Spanish, Italian, Portuguese and Dutch,
and those of Chinese. What follows the phrase is never looked at. In doubt it counts as denied: an
unreadable answer is counted as such, a wrongly read one is not noticed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from fairgate.domain.executions import Stop
from fairgate.relations.oracles.text import (
    fold,
    folded,
    is_mark,
    is_unspaced,
    is_word,
    spoken_spans,
    without_unfinished_tag,
)

_JOINERS = ("-", "_")
_DENYING_PREFIX = re.compile(r"(?<![^\W_])(?:no|non|not)[-_]$")
_HANGUL_PARTS = range(0x1160, 0x1200)
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
_REVERSED = ("\u00bb", "\u203a", "\u201e")
_ELISION = re.compile(r"'(?:\d\ds?|tis|twas|em|cause|til|n)(?![^\W_])")
"""Apostrophes at the beginning of a word: '90s, 'tis."""
_QUOTED_LINE = re.compile(r"(?:^|(?<=\n)) ?>[^\n]*")
_INNER = re.compile(r'["\u201c\u201e\u00ab](.*)["\u201c\u201d\u00bb]', re.DOTALL)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_LETTER = re.compile(r"[(\[]?[a-c][)\].:]\s*")


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


@lru_cache(maxsize=4096)
def said_part(plain: str, forms: tuple[str, ...], shown: str = "") -> tuple[str, int]:
    """Return folded text with its mentions blanked out, and how much of that no more can change.

    `forms`: folded labels. `shown`: the text that the answer may repeat. Both texts are of one
    length. What is left when the answer goes on agrees with this up to the second value.

    Mentioned is what stands between two marks of quotation of one kind, in a line that Markdown
    quotes, and what repeats the text of the case word for word: all of it, or five words of it in a
    row. It neither names nor denies a label. A quotation that holds a label alone ("positive", "not
    toxic"), or a denial alone, is the answer's own; so are quotations that leave no other word in
    the answer. A mark without its counterpart is none.
    """
    if not _SIGN.search(plain) and ">" not in plain and not shown:
        return plain, len(plain)
    repeated, growing = _repeated(plain, shown) if shown else ([], len(plain))
    own = _blank(plain, repeated)
    quoted, settled = _quotations(own)
    settled = min([settled, growing, *(start for start, end in quoted if end > growing)])
    words_shown = _shown_words(shown) if shown else ""
    mentioned: list[tuple[int, int]] = []
    for start, end in sorted(quoted, key=lambda span: (span[0], -span[1])):
        content = plain[start + 1 : end - 1 if plain[end - 1] in _KIND_OF else end]
        is_inside = mentioned and end <= mentioned[-1][1]
        if not is_inside and (_words(content) == words_shown != "" or not _is_own(content, forms)):
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
    """Return what stands in quotes, marks included, and where the first is that may still close."""
    spans: list[tuple[int, int]] = []
    opened: dict[tuple[str, str, str], list[int]] = {kind: [] for kind in _KINDS}
    settled = len(plain)
    for found in _SIGN.finditer(plain):
        sign, at = found.group(), found.start()
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
    for line in _QUOTED_LINE.finditer(plain):
        spans.append(line.span())
        if line.end() == len(plain):
            settled = min(settled, line.start())
    return spans, min([settled, *(place for places in opened.values() for place in places)])


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


def repeats(response: str, shown: str) -> bool:
    """Return whether it matters for reading an answer what it was shown."""
    plain, is_marked, is_long = _form_of(response)
    if is_marked or not is_long:
        return is_marked
    return any(not rows.isdisjoint(_in_a_row(plain, size)) for size, rows, _ in _rows(shown))


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
def _shown_words(shown: str) -> str:
    """Return the words of a text, or of what it quotes."""
    inner = _INNER.search(shown)
    return _words(fold(shown if inner is None else inner[1]))


@lru_cache(maxsize=1024)
def _rows(shown: str) -> tuple[tuple[int, frozenset[str], str], ...]:
    """Return for each part of a text how many words in a row repeat it, all these, and itself.

    The parts are what it quotes and what stands around ("A man says the following text: …").
    """
    inner = _INNER.search(shown)
    found = [_part(shown if inner is None else inner[1], whole=True)]
    if inner is not None:
        found += map(_part, (shown[: inner.start()], shown[inner.end() :]))
    return tuple(part for part in found if part[1])


@lru_cache(maxsize=4096)
def _part(text: str, *, whole: bool = False) -> tuple[int, frozenset[str], str]:
    """Return `_rows` of one part; with `whole` a shorter one is repeated by all its words."""
    words = _words(fold(text))
    size = min(_IN_A_ROW, words.count(" ") + 1) if whole else _IN_A_ROW
    return size, _in_a_row(words, size) if size > 1 else frozenset(), f" {words} "


def _repeated(plain: str, shown: str) -> tuple[list[tuple[int, int]], int]:
    """Return what repeats a text, and where words begin that may still become a repetition."""
    found = list(_WORD.finditer(plain))
    words = [word.group() for word in found]
    is_ended = bool(found) and plain[found[-1].end() :] not in ("", "'")
    spans, growing = [], len(plain)
    for size, rows, text in _rows(shown):
        spans += [
            (found[at].start(), found[at + size - 1].end())
            for at in range(len(words) - size + 1)
            if " ".join(words[at : at + size]) in rows
        ]
        for at in range(max(0, len(words) - size + is_ended), len(words)):
            if f" {' '.join(words[at:])}{' ' * is_ended}" in text:
                growing = min(growing, found[at].start())
                break
    return spans, growing


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


class Negation(Enum):
    """How a label is denied."""

    NONE = "none"
    DIRECT = "direct"
    """The negation belongs to the label itself ("is not toxic", "no toxic words"): its opposite."""
    LOOSE = "loose"
    """Something in the clause is denied ("cannot say whether it is toxic"), or one of several
    labels is ("neither …"): what the label means then is open."""


_DIRECT = frozenset(
    """not no non never without cannot n't nicht kein keine keinen nie pas jamais sin sans ohne
    senza sem não nao niet geen ikke inte nije není не ليس""".split()  # noqa: SIM905 (reads better so)
)
_LOOSE = frozenset(
    """neither nor none nothing nobody nowhere hardly barely scarcely rarely seldom unlikely lacks
    lack lacking fails failed unable absence devoid wrong incorrect refuse refuses doubt doubts
    less weder keineswegs ni aucun aucune tampoco né ne nem noch ни""".split()  # noqa: SIM905 (reads better so)
)
_CONTRACTED = re.compile(
    r".+n't|(?:is|are|was|were|do|does|did|ca|wo|would|could|should|has|have|had|must|ai)nt"
)
_REPLACED = (
    (re.compile(r"\b(?:no|without(?: a| any)?) (?:doubt|question)\b|\bnothing but\b"), " "),
    (re.compile(r"\b(?:anything|all) but\b|\brather than\b|\binstead of\b"), " neither "),
    (re.compile(r"\b(?:far|free|other|opposed|opposite)(?: (?:from|of|than|to))\b"), " neither "),
)
_FILLERS = frozenset(
    """a an any the at all in way be been being is considered to contain containing contains
    include includes seem appear look sound have has as language words content text classified
    categorized categorised labeled labelled rated deemed regarded judged""".split()  # noqa: SIM905 (reads better so)
)
_ENDS = re.compile(r"(\.\.\.|[.!?;:\n|(\u2192]|\s-\s|--|[\u2014\u2015\u3002\uff61])")
_HARD_ENDS = frozenset(".!?;\u3002\uff61")
_CONTRAST = re.compile(r"\b(?:but|although|though|whereas|however(?!\s*,))\b")
_COMMA = re.compile(r"[,\u3001]")
_PARTICLES = frozenset(
    """no nope nah yes yeah well ok okay sure hmm hm oh so""".split()  # noqa: SIM905 (reads better so)
)
_STARTERS = frozenset(
    """it it's its this that these the i i'd i'll i'm my he she they we you there which making here
    and overall""".split()  # noqa: SIM905 (reads better so)
)
_LINKS = frozenset(["so", "thus", "therefore", "hence", "then", "but", "yet"])
_RELATIVES = frozenset(["who", "that", "which", "whom"])
_COPULAS = frozenset(["is", "was", "are", "were", "be", "seems"])
_DENYING_SIGN = re.compile(r"[!\u00ac][*_\"']*$|(?:\[ ?\]|[\u2610\u2b1c])[\s*_]*$")
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
    if _DENYING_SIGN.search(context) or (unspaced and _UNSPACED.search(clause)):
        return Negation.LOOSE
    # Only a relative clause is denied: "the one who was not late was …".
    is_relative = places and not _RELATIVES.isdisjoint(words[: places[0]])
    if not places or (is_relative and words[-1] in _COPULAS):
        return Negation.NONE
    is_one = len(places) == 1 and words[places[0]] not in _LOOSE and "," not in clause
    if is_one and all(word in _FILLERS for word in words[places[0] + 1 :]):
        return Negation.DIRECT
    return Negation.LOOSE


def denies(word: str) -> bool:
    """Return whether a folded word is a denial by itself."""
    return word in _DIRECT or word in _LOOSE or _CONTRACTED.fullmatch(word) is not None


def _clause(context: str) -> str:
    for pattern, plain in _REPLACED:
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
