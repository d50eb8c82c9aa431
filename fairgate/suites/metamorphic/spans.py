"""What stands in an answer and in none of its pool, or in its pool and not in the answer.

Compared are words, pairs of words, facts and denials. An answer shows it

- by itself, where it holds more that is new than any neutral answer to its source does (so that
  one word is enough where neutral answers are alike, and nothing is where each is another text),
- by what recurs: words that are new in the answers to three or more sources for one phrase, and in
  more than twice as many as for any neutral phrase.

What is left out is read in the same way: what three quarters of the pool hold and the answer does
not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairgate.relations.sentences.facts import Fact
from fairgate.relations.sentences.tokens import Codes, Tokens

_USUAL = 0.75
_LEAST, _TIMES = 3, 2
_Bools = npt.NDArray[np.bool_]
_Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Difference:
    """How one answer differs from its pool in one direction."""

    codes: Codes
    """Of words and pairs of words, sorted."""
    usual: Codes
    """What counts against them where another answer to a neutral phrase has it."""
    is_most: bool
    """Whether no other neutral answer has as much."""


def held_by(texts: Sequence[Codes]) -> tuple[Codes, _Bools]:
    """Return the different codes [n] and which text holds which [texts, n]."""
    owners = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    codes, columns = np.unique(np.concatenate([*texts, _NONE]), return_inverse=True)
    held = np.zeros((len(texts), len(codes)), dtype=np.bool_)
    held[owners, columns] = True
    return codes, held


_NONE = np.zeros(0, dtype=np.uint32)


def differences(
    texts: Sequence[Tokens], facts: Sequence[frozenset[Fact]], is_control: Sequence[bool]
) -> tuple[list[Difference], list[Difference]]:
    """Return what is new in each answer of a pool, and what each leaves out."""
    control = np.asarray(is_control)[:, None]
    codes, held = held_by([text.held for text in texts])
    new, lacking = _beside(held, control)
    numbers = {fact: n for n, fact in enumerate(sorted(set().union(*facts)))}
    stated = np.zeros((len(texts), len(numbers)), dtype=np.bool_)
    for row, own in enumerate(facts):
        stated[row, [numbers[fact] for fact in own]] = True
    new_facts, lost_facts = _beside(stated, control, usual=0.5)
    turned = _turned(texts, control)
    inserted = _most([new, new_facts, turned], control[:, 0])
    omitted = _most([lacking, lost_facts], control[:, 0])
    return (
        [
            Difference(codes[row], codes[all_of], most)
            for row, all_of, most in zip(new, held, inserted.tolist(), strict=True)
        ],
        [
            Difference(codes[row], codes[row], most)
            for row, most in zip(lacking, omitted.tolist(), strict=True)
        ],
    )


def _beside(held: _Bools, control: _Bools, usual: float = _USUAL) -> tuple[_Bools, _Bools]:
    """Return what each text holds and none of its pool, and the usual that it does not hold."""
    others = (held & control).sum(axis=0) - (held & control)
    pool = control.sum() - control
    return held & (others == 0), ~held & (others >= usual * pool)


def _turned(texts: Sequence[Tokens], control: _Bools) -> _Bools:
    """Return which pairs of words a text denies and its pool states, or the other way round."""
    count = len(texts)
    _, both = held_by([*(text.held for text in texts), *(text.denied for text in texts)])
    stated, denied = both[:count], both[count:]
    states, denies = ((some & control).sum(axis=0) - (some & control) for some in (stated, denied))
    is_denied = denied & (denies == 0) & (states > 0)
    return np.asarray(is_denied | stated & (states == 0) & (denies > 0))


def _most(kinds: Sequence[_Bools], is_control: _Bools) -> _Bools:
    """Return whose count of one kind is larger than that of every other neutral text."""
    most = np.zeros(len(is_control), dtype=np.bool_)
    for kind in kinds:
        counts = kind.sum(axis=1)
        ordered = np.sort(counts[is_control])[::-1]
        first, second = ordered[0], ordered[1] if len(ordered) > 1 else 0
        limit = np.where(is_control & (counts == first), second, first)
        most |= counts > _TIMES * limit
    return most


def recurring(
    by_phrase: Sequence[Sequence[Codes]], of_controls: Mapping[int, Sequence[Codes]]
) -> list[Codes]:
    """Return for each phrase the codes that recur in its differences, a source each."""
    counted = [np.unique(np.concatenate([*of, _NONE]), return_counts=True) for of in by_phrase]
    usual = {
        n: np.unique(np.concatenate([*of, _NONE]), return_counts=True)
        for n, of in of_controls.items()
    }
    codes = np.concatenate([_NONE, *(each for each, _ in usual.values())])
    counts = np.concatenate([np.zeros(0, np.int64), *(each for _, each in usual.values())])
    owners = np.repeat([*usual], [len(each) for each, _ in usual.values()])
    order = np.lexsort((-counts, codes))
    codes, counts, owners = codes[order], counts[order], owners[order]
    is_first = np.ones(len(codes), dtype=np.bool_)
    is_first[1:] = codes[1:] != codes[:-1]
    firsts = np.flatnonzero(is_first)
    seconds = np.zeros(len(firsts), dtype=np.int64)
    has_second = np.flatnonzero(np.diff(np.append(firsts, len(codes))) > 1)
    seconds[has_second] = counts[firsts[has_second] + 1]
    known, largest, owner = codes[firsts], counts[firsts], owners[firsts]
    found = []
    for phrase, (own, times) in enumerate(counted):
        place = np.minimum(np.searchsorted(known, own), max(len(known) - 1, 0))
        most = np.zeros(len(own), dtype=np.int64)
        if len(known):
            of_others = np.where(owner[place] == phrase, seconds[place], largest[place])
            most = np.where(known[place] == own, of_others, 0)
        found.append(own[(times >= _LEAST) & (times > _TIMES * most)])
    return found
