"""Where two answers differ, in their own words: "45 minutes" and "46 minutes"."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

_ALIKE = 0.4
"""Common share of the words below which two sentences say different things."""
_SHORT = 2
"""Words up to which a difference is shown with its neighbours."""
_MOST_WORDS = 200
_MARKS = ".,;:!?()[]\"'*_\u2026\u201c\u201d\u201e\u00ab\u00bb\u00bf\u00a1\u3002\uff01\uff1f"


@dataclass(frozen=True, slots=True)
class Differing:
    """One run of words, and what stands in its place in another answer; empty: nothing."""

    own: str
    other: str
    sentence: str
    """The own sentence that holds it."""


def bare(sentence: str) -> list[str]:
    """List what stands between the blanks of a sentence, in lower case and without marks."""
    return [part.strip(_MARKS).lower() for part in sentence.split()]


def pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    """List words with the one before them."""
    return list(zip(["", *words[:-1]], words, strict=True))


def differing(
    own: Sequence[str], other: Sequence[str], wanted: Collection[str | tuple[str, str]]
) -> Differing | None:
    """Return the run of words of one answer that holds most of what is wanted.

    `own` and `other` are sentences, `wanted` words and pairs of words (`bare`, `pairs`). None where
    no sentence holds any.
    """

    def worth(sentence: str) -> tuple[int, int]:
        words = bare(sentence)
        return sum(word in wanted for word in words), sum(pair in wanted for pair in pairs(words))

    first = max(own, key=worth, default="")
    if not any(worth(first)):
        return None
    words = bare(first)[:_MOST_WORDS]
    others = [
        (text, SequenceMatcher(None, words, bare(text)[:_MOST_WORDS], autojunk=False))
        for text in other
    ]
    text, nearest = max(others, key=lambda each: each[1].ratio(), default=("", None))
    if nearest is None or nearest.ratio() < _ALIKE:
        return Differing(first, "", first)
    runs = list(_runs(nearest, len(words)))

    def held(run: tuple[int, int, int, int]) -> tuple[int, int, int]:
        begin, end, *_ = run
        new_pairs = sum(pair in wanted for pair in pairs(words)[begin : end + 1])
        return sum(word in wanted for word in words[begin:end]), new_pairs, end - begin

    begin, end, from_, to = max(runs, key=held, default=(0, len(words), 0, 0))
    parts, of_other = first.split(), text.split()
    if end - begin <= _SHORT and to - from_ <= _SHORT:
        before = int(begin > 0 and from_ > 0)
        behind = int(end < len(words) and to < len(of_other))
        begin, from_, end, to = begin - before, from_ - before, end + behind, to + behind
    return Differing(" ".join(parts[begin:end]), " ".join(of_other[from_:to]), first)


def _runs(matcher: SequenceMatcher[str], words: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield what differs: from and to which word, here and there."""
    for kind, begin, end, from_, to in matcher.get_opcodes():
        if kind != "equal" and begin <= words:
            yield begin, end, from_, to


def changed(sentence: str, other: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a sentence in their order, and whether another one lacks them."""
    matcher = SequenceMatcher(
        None, bare(sentence)[:_MOST_WORDS], bare(other)[:_MOST_WORDS], autojunk=False
    )
    parts = sentence.split()
    for kind, begin, end, *_ in matcher.get_opcodes():
        if begin < end:
            yield " ".join(parts[begin:end]), kind != "equal"
    if len(parts) > _MOST_WORDS:
        yield " ".join(parts[_MOST_WORDS:]), False
