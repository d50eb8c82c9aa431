"""The sentences and words of an answer, in any script.

A sentence ends at `.`, `!` or `?` with quotes and a space behind it, at the marks of other scripts
(`。`, `؟`, `।`, …), or at a line's end. No sentence ends behind the number of a list or a step, a
single letter or a common abbreviation ("Dr. Lee", "e.g. tea").
"""

from __future__ import annotations

import re

from fairgate.relations.oracles.text import is_unspaced

MOST_CHARACTERS = 8_000
"""Of an answer that are read: a system may write without end."""
_END = re.compile(
    r"(?<=[.!?\u2026])[\"'\u201d\u2019\u00bb)\]*_]*\s+"
    r"|(?<=[\u3002\uff01\uff1f\uff61])[\u300d\u300f\u201d\u2019)\uff09]*\s*"
    r"|(?<=[\u061f\u06d4\u0964\u0965\u1362\u104b\u17d4])[\"\u201d\u2019\u00bb)]*\s*"
    r"|\s*[\r\n\u2028\u2029]+\s*"
)
_CLOSED = re.compile(
    r"[.!?:\u2026\u3002\uff01\uff1f\uff1a\uff61\u061f\u06d4\u0964\u0965\u1362\u104b\u17d4]\W*$"
    r"|(?:```|~~~|\|)\s*$"
)
_OPEN = re.compile(
    r"(?:^|[\s(\"'\u201c])(?:\d{1,3}|[^\W\d_]|(?:mr|mrs|ms|dr|prof|st|no|nr|vs|etc|approx|dept|fig|"
    r"e\.g|i\.e|z\.b|d\.h|u\.a|p\.ex|bzw|ca|cf|inc|ltd|tel|ext|av|sra?|mme|art)|step \d{1,3})\.$",
    re.IGNORECASE,
)
_LONGEST_OPEN = 16
"""Characters in which `_OPEN` fits, with more than one to spare."""
_LETTERS = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W_]+(?:['\u2019\-][^\W_]+)*")
_LIST_MARK = re.compile(r"^(?:[-*\u2022\u2013#>]+|\(?\d{1,3}[.)])\s+")


def sentences(answer: str) -> list[str]:
    """Split an answer into sentences, each with a letter or digit; marks of lists are left out."""
    text = answer[:MOST_CHARACTERS].strip()
    split: list[str] = []
    begin = 0
    for match in _END.finditer(text):
        # Its last characters suffice, so that time grows with the answer and not with its square.
        part = text[max(begin, match.start() - _LONGEST_OPEN) : match.start()]
        is_line = any(mark in match[0] for mark in "\r\n\u2028\u2029")
        if not is_line and _OPEN.search(part):
            continue
        split.append(text[begin : match.end()].strip())
        begin = match.end()
    split.append(text[begin:].strip())
    bare = (_LIST_MARK.sub("", sentence) for sentence in split)
    return [sentence for sentence in bare if _WORD.search(sentence)]


def is_open(answer: str) -> bool:
    """Whether a text with words ends in the middle of a sentence: without a closing mark.

    Signs behind the mark (quotes, brackets, emoji) do not count, and the end of a code block or of
    a table's row closes, too.
    """
    last = answer.rstrip()[-40:]
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


def reading_difficulty(answer: str) -> float:
    """LIX of a text: words a sentence, and words of more than six letters in per cent.

    For every language with spaces: C. H. Björnsson, Läsbarhet (1968). 0 where there is no word.
    """
    words_of_text = words(answer)
    if not words_of_text:
        return 0.0
    long_ones = sum(len(word) > 6 for word in words_of_text)
    return len(words_of_text) / max(1, len(sentences(answer))) + 100 * long_ones / len(
        words_of_text
    )
