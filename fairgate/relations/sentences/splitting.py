"""The sentences and words of an answer, in any script.

A sentence ends at `.`, `!` or `?` with quotes and a space behind it, at the marks of other scripts
(`。`, `؟`, `।`, …), at a line's end, or before an item of a list. HTML is read as its lines, and a
reference to a source (`[1]`) is no part of a sentence. No sentence ends behind the number of a list
or a step, an ordinal ("am 3. Mai"), an initial or a common abbreviation ("Dr. Lee", "e.g. tea").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fairgate.relations.oracles.text import is_unspaced
from fairgate.relations.sentences.months import MONTHS

MOST_CHARACTERS = 20_000
"""Of a text that are read: a system may write without end."""
_LINKED = re.compile(
    r"<a\b[^<>]{0,400}?\bhref\s*=\s*[\"']?([^\"'\s<>]{1,400})[^<>]{0,400}>", re.IGNORECASE
)
_BLOCK = re.compile(
    r"</?(?:p|br|li|ul|ol|dl|dt|dd|div|h[1-6]|hr|table|thead|tbody|tr|td|th|pre|blockquote|section|"
    r"article)\b[^<>]*>",
    re.IGNORECASE,
)
_INLINE = re.compile(
    r"</?(?:a|b|i|u|em|strong|span|small|mark|code|kbd|sup|sub|font|cite|q)\b[^<>]*>", re.IGNORECASE
)
_REFERENCE = re.compile(
    r"[ \u00a0]?(?:\[\^?\d{1,3}(?:\s?[,;\u2013-]\s?\d{1,3})*\](?![(:])"
    r"|\u3010[^\u3010\u3011\n]{1,60}\u3011)"
    r"|(?<=[.!?])[\u00b9\u00b2\u00b3\u2070-\u2079]+"
)
_END = re.compile(
    r"(?<=[.!?\u2026])[\"'\u201d\u2019\u00bb)\]*_]*\s+"
    r"|(?<=[\u3002\uff0e\uff01\uff1f\uff61])[\u300d\u300f\u201d\u2019)\uff09]*\s*"
    r"|(?<=[\u061f\u06d4\u0964\u0965\u0589\u1362\u104b\u17d4])[\"\u201d\u2019\u00bb)]*\s*"
    # A blank was left out: "Wait.Then call", "여세요.전화".
    r"|(?<=[^\W\d_A-Z]{2}[.!?])(?=[A-Z\u00c0-\u00de][^\W\d_A-Z]*[\s,])"
    r"|(?<=[\uac00-\ud7a3][.!?])(?=[\uac00-\ud7a3])"
    r"|\s*[\r\n\u2028\u2029]+\s*"
    r"|\s+(?=[\u2022\u25aa\u25cf\u25e6\u2023]\s)"
    r"|\s+(?=\(?(?P<item>\d{1,2})[.)]\s)"
)
_BEFORE_FIRST = re.compile(r"[:;,\"\u201c\u2013-]\s+1\.|.\s+\(?1\)", re.DOTALL)
_CLOSED = re.compile(
    r"[.!?:\u2026\u3002\uff0e\uff01\uff1f\uff1a\uff61\u061f\u06d4\u0964\u0965\u0589\u1362\u104b\u17d4]\W*$"
    r"|(?:```|~~~|\|)\s*$"
)
_ALONE = r"(?:^|[\s(\"'\u201c])"
_NUMBER_OF_LIST = re.compile(r"\W{0,4}\d{1,2}\.")
_ITEM = re.compile(r"\W{0,4}(\d{1,2})[.)]\s")
_LINE = re.compile(r"[\r\n\u2028\u2029]")
_OPEN = re.compile(
    rf"{_ALONE}(?:mr|mrs|ms|dr|prof|st|vs|approx|dept|e\.\s?g|i\.\s?e|z\.\s?b|d\.\s?h|u\.\s?a|p\.\s?ex|"
    r"bzw|ca|cf|av|sra?|mme|step \d{1,3}|"
    # Ordinals in German: "im 2. Schritt".
    r"(?:a[mb]|im|bis|vom|zum|zur|beim|de[rmns]|d[ia]e?s?|ein\w*|und|jede[rsmn]?) \d{1,3})\.$",
    re.IGNORECASE,
)
_BEFORE_DIGITS = re.compile(rf"{_ALONE}(?:no|nr|fig|tel|ext|art|sec|vol|pp?)\.$", re.IGNORECASE)
_BEFORE_SMALL = re.compile(rf"{_ALONE}(?:etc|inc|ltd|co|(?:[^\W\d_]\.)*[^\W\d_])\.$", re.IGNORECASE)
_INITIAL = re.compile(r"(?:^|(?:^|\s)[A-Z\u00c0-\u00de][\w.]*\s)[A-Z\u00c0-\u00de]\.$")
_BEFORE_MONTH = re.compile(rf"{_ALONE}\d{{1,2}}\.$")
_DATE = re.compile(r"\d{4}\.(?:\s?\d{1,2}\.)?$")
"""Korean dates: "2024. 3. 14."."""
_MONTH = re.compile(rf"(?:{MONTHS})\b", re.IGNORECASE)
_LONGEST_OPEN = 24
_MOST_TOKENS = 250
"""Of a sentence; small embedders read 256 of a text. A token is taken for two letters at least, for
one of other alphabets."""
_PIECE = re.compile(r"\w{1,100}|[^\w\s]")
"""Characters in which the patterns above fit, with more than one to spare."""
_LETTERS = re.compile(r"[^\W\d_]")
_EMOJI = re.compile("[\u2639\u263a\U0001f300-\U0001faff]")
_WORD = re.compile(r"[^\W_]+(?:['\u2019\-][^\W_]+)*")
_LIST_MARK = re.compile(
    rf"^(?:[-*\u2022\u25aa\u25cf\u25e6\u2023\u2013#>]+|\(?[1-9]\d?[.)])\s+(?!(?:{MONTHS})\b)",
    re.IGNORECASE,
)


def _lines(answer: str) -> str:
    """Write HTML as lines, and leave out references to sources."""
    text = answer[:MOST_CHARACTERS]
    if "<" in text:
        text = _INLINE.sub("", _BLOCK.sub("\n", _LINKED.sub(r"\1 ", text)))
    return _REFERENCE.sub("", text).strip()


def _goes_on(before: str, behind: str) -> bool:
    """Whether a mark after some characters ends no sentence, by what stands around it."""
    if _OPEN.search(before) or _INITIAL.search(before):
        return True
    first = behind[:1]
    return (
        (first.isdigit() and bool(_BEFORE_DIGITS.search(before)))
        or bool(_DATE.search(before) and _NUMBER_OF_LIST.match(behind))
        or ((first.islower() or behind[1:2] == ".") and bool(_BEFORE_SMALL.search(before)))
        or bool(_BEFORE_MONTH.search(before) and (first.islower() or _MONTH.match(behind)))
    )


def _item_at(text: str, begin: int) -> int:
    """Give the number of the list's item that begins at a place; 0 where none does."""
    match = _ITEM.match(text, begin)
    return int(match[1]) if match else 0


@dataclass(frozen=True, slots=True)
class Split:
    """An answer in its sentences."""

    sentences: list[str]
    """Each with a letter, digit or emoji; one of more than some 80 words is several."""
    text: str
    """All of it in one, as it is read: without HTML, references and marks of lists."""
    items: int
    """Items of its lists, numbered or not."""


def sentences(answer: str) -> list[str]:
    """List the sentences of an answer, without marks of lists."""
    return split(answer).sentences


def split(answer: str) -> Split:
    """Split an answer into sentences."""
    parts: list[str] = []
    text: list[str] = []
    items = 0
    for segment in _segments(_lines(answer)):
        mark = _LIST_MARK.match(segment.rstrip())
        items += mark is not None and mark[0][0] not in "#>"
        text.append(segment[mark.end() :] if mark else segment)
        parts += (p for p in _parts(text[-1].strip()) if _WORD.search(p) or _EMOJI.search(p))
    return Split(parts, "".join(text), items)


def _segments(text: str) -> Iterator[str]:
    """Yield the sentences of a text, each with the blanks behind it."""
    begin, item = 0, _item_at(text, 0)
    for match in _END.finditer(text):
        start, end = match.span()
        if match["item"]:
            # Of a list in one line, in the order of its numbers: "do this: 1. Open it 2. Close it".
            number = int(match["item"])
            if not (_BEFORE_FIRST.match(text, start - 1) if number == 1 else number == item + 1):
                continue
        elif text[start - 1] == "." and not _LINE.search(match[0]):
            # The last characters suffice: time grows with the answer, not with its square.
            before = text[max(begin, start - _LONGEST_OPEN) : start]
            if _NUMBER_OF_LIST.fullmatch(before) or _goes_on(before, text[end : end + 12]):
                continue
        yield text[begin:end]
        begin, item = end, _item_at(text, end) or item
    yield text[begin:]


def _parts(sentence: str) -> Iterator[str]:
    """Cut a sentence that is longer than embedders read: its end would count as read."""
    begin = size = 0
    for piece in _PIECE.finditer(sentence) if len(sentence) > _MOST_TOKENS else ():
        tokens = (len(piece[0]) + 1) // 2 if piece[0].isascii() else len(piece[0])
        if size + tokens > _MOST_TOKENS:
            yield sentence[begin : piece.start()].strip()
            begin, size = piece.start(), 0
        size += tokens
    yield sentence[begin:].strip()


def is_open(answer: str) -> bool:
    """Whether a text with words ends in the middle of a sentence: without a closing mark.

    Signs behind the mark (quotes, brackets, emoji) do not count, and the end of a code block or of
    a table's row closes, too.
    """
    last = _lines(answer[-MOST_CHARACTERS:])[-40:]
    return bool(_WORD.search(last)) and not _CLOSED.search(last)


def words(text: str) -> list[str]:
    """List the words of a text in lower case; of scripts without spaces, every character."""
    all_words: list[str] = []
    for match in _WORD.finditer(text.lower()):
        word = match[0]
        if _LETTERS.search(word) and any(map(is_unspaced, word)):
            all_words += [character for character in word if not character.isspace()]
        else:
            all_words.append(word)
    return all_words
