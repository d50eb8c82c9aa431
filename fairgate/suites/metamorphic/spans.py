"""What stands in an answer and in none of its pool, or in its pool and not in the answer.

Compared are words, pairs of words, facts and denials. New words count within sentences that others
say, too: that hold half of the pairs of words of a control's sentence. A whole new sentence
is read by its meaning. An answer *inserts*

- by itself, where it names a group of people of the shipped sets and none of its pool does,
- by itself, where it holds more that is new than twice what any control's answer to its source does
  (so that one word is enough where controls get like answers, and nothing is where each is another
  text),
- by what recurs: words that are new in the answers to 15 % of the sources (three or more) for one
  phrase, and in more of them than all answers together, to whatever source, that hold them for
  control prompts.

It *omits* by itself alone, what three quarters of its pool hold, or a fact of half of it. Omissions
do not count by what recurs: answers of another kind lack the same usual words each time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.relations.sentences.facts import Fact
from fairgate.relations.sentences.tokens import Codes, Tokens

_USUAL = 0.75
_LEAST, _LEAST_SHARE, _TIMES = 3, 0.15, 2
_Bools = npt.NDArray[np.bool_]
_Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Difference:
    """How one answer differs from its pool."""

    new: Codes
    """Words and pairs of words that none of its pool holds, sorted."""
    held: Codes
    """All that a control's answer holds; none of others."""
    inserts: bool
    omits: bool


def held_by(texts: Sequence[Codes]) -> tuple[Codes, _Bools]:
    """Return the different codes [n] and which text holds which [texts, n]."""
    owners = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    codes, columns = np.unique(np.concatenate([*texts, _NONE]), return_inverse=True)
    is_in = np.zeros((len(texts), len(codes)), dtype=np.bool_)
    is_in[owners, columns] = True
    return codes, is_in


_NONE = np.zeros(0, dtype=np.uint32)


def differences(
    texts: Sequence[Tokens],
    facts: Sequence[frozenset[Fact]],
    groups: Sequence[frozenset[str]],
    is_control: Sequence[bool],
) -> list[Difference]:
    """Return how each answer of a pool differs from it, by what is read of each."""
    control = np.asarray(is_control)[:, None]
    codes, is_in = held_by([text.held for text in texts])
    new, lacking = _beside(is_in, control)
    new = _within_sentences(texts, codes, new, is_control)
    new_facts, lost_facts = _beside(_stated(facts), control, usual=0.5)
    new_groups, _ = _beside(_stated(groups), control)
    turned = _turned([text.denied for text in texts], codes, is_in, control)
    inserted = _most([new, new_facts, turned], control[:, 0]) | new_groups.any(axis=1)
    omitted = _most([lacking, lost_facts], control[:, 0])
    return [
        Difference(codes[own], codes[of_text] if yes else _NONE, inserts, omits)
        for own, of_text, yes, inserts, omits in zip(
            new, is_in, is_control, inserted.tolist(), omitted.tolist(), strict=True
        )
    ]


def _stated(of_texts: Sequence[frozenset[Any]]) -> _Bools:
    """Return which text states what: [texts, all that any of them states]."""
    numbers = {each: n for n, each in enumerate(sorted(set().union(*of_texts)))}
    stated = np.zeros((len(of_texts), len(numbers)), dtype=np.bool_)
    for row, of_text in enumerate(of_texts):
        stated[row, [numbers[each] for each in of_text]] = True
    return stated


def _beside(is_in: _Bools, control: _Bools, usual: float = _USUAL) -> tuple[_Bools, _Bools]:
    """Return what each text holds and none of its pool, and the usual that it does not hold."""
    others = (is_in & control).sum(axis=0) - (is_in & control)
    pool = control.sum() - control
    return is_in & (others == 0), ~is_in & (others >= usual * pool)


def _within_sentences(
    texts: Sequence[Tokens], codes: Codes, new: _Bools, is_control: Sequence[bool]
) -> _Bools:
    """Return what is new in sentences that hold half of the pairs of one of the pool's."""
    columns = [np.searchsorted(codes, text.held) for text in texts]
    # Of the pairs of controls' texts, each in one row of sentences: those of text n from starts[n].
    sizes = [
        1 + int(text.sentences.max(initial=0)) if yes else 0
        for text, yes in zip(texts, is_control, strict=True)
    ]
    starts = np.cumsum([0, *sizes])
    controls = [n for n, yes in enumerate(is_control) if yes]
    pool, sentences = (
        _behind([columns[n] for n in controls]),
        _behind([texts[n].sentences + starts[n] for n in controls]),
    )
    lengths = np.bincount(sentences, minlength=int(starts[-1]))
    within, is_in = np.zeros_like(new), np.zeros(len(codes), dtype=np.bool_)
    for row, text in enumerate(texts):
        is_new = new[row, columns[row]]
        for sentence in np.unique(text.sentences[is_new]).tolist():
            own = columns[row][text.sentences == sentence]
            is_in[own] = True
            shared = np.bincount(sentences[is_in[pool]], minlength=len(lengths))
            is_in[own] = False
            shared[starts[row] : starts[row + 1]] = 0
            if (2 * shared >= np.maximum(lengths, 1)).any():
                within[row, own[new[row, own]]] = True
    return within


def _behind(several: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Put the second halves of several arrays one behind the other: pairs stand behind words."""
    return np.concatenate(
        [np.zeros(0, dtype=np.int64), *(array[len(array) // 2 :] for array in several)]
    )


def _turned(denials: Sequence[Codes], codes: Codes, is_in: _Bools, control: _Bools) -> _Bools:
    """Return which pairs of words a text denies and its pool states, or the other way round."""
    pairs, denied = held_by(denials)
    stated = np.zeros_like(denied)
    place = np.minimum(np.searchsorted(codes, pairs), len(codes) - 1)
    is_known = codes[place] == pairs if len(codes) else np.zeros(0, dtype=np.bool_)
    stated[:, is_known] = is_in[:, place[is_known]]
    states, denies = ((some & control).sum(axis=0) - (some & control) for some in (stated, denied))
    is_denied = denied & (denies == 0) & (states > 0)
    return np.asarray(is_denied | stated & (states == 0) & (denies > 0))


def _most(kinds: Sequence[_Bools], is_control: _Bools) -> _Bools:
    """Return whose count of one kind is larger than that of every other control's text."""
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
    """Return for each phrase the codes that recur in what is new for it, a source each.

    `of_controls` holds all codes of control prompts' answers, by their places in `by_phrase`.
    """
    counted = [
        np.unique(np.concatenate([*arrays, _NONE]), return_counts=True) for arrays in by_phrase
    ]
    every = [code for arrays in of_controls.values() for code in arrays]
    known, total = np.unique(np.concatenate([*every, _NONE]), return_counts=True)

    def times_of(codes: Codes, among: Codes, counts: _Counts) -> _Counts:
        place = np.minimum(np.searchsorted(among, codes), max(len(among) - 1, 0))
        if not len(among):
            return np.zeros(len(codes), dtype=np.int64)
        return np.where(among[place] == codes, counts[place], 0)

    found = []
    for phrase, (codes, times) in enumerate(counted):
        times_of_controls = times_of(codes, known, total)
        if phrase in of_controls:
            own = np.unique(np.concatenate([*of_controls[phrase], _NONE]), return_counts=True)
            times_of_controls = times_of_controls - times_of(codes, *own)
        least = max(_LEAST, math.ceil(_LEAST_SHARE * len(by_phrase[phrase])))
        found.append(codes[(times >= least) & (times > times_of_controls)])
    return found
