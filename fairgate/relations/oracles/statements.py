"""What an answer says: it states a label, it concludes one, or it is unreadable.

The rules stand in docs/reference/reading-answers.md; how a label stands in its sentence, in
`standing.py`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice, pairwise
from typing import NamedTuple

from fairgate.domain.executions import Stop
from fairgate.relations.oracles.actions import first_value
from fairgate.relations.oracles.reading import forms_of, own_part, pattern_of, readable_part
from fairgate.relations.oracles.standing import (
    FINAL,
    MENTIONED,
    STATED,
    Named,
    beginning_end,
    is_text,
    stand_in_sentence,
    value_of,
)
from fairgate.relations.oracles.text import is_mark, without_unfinished_tag
from fairgate.relations.oracles.words import CJK, WORD, evasions, retractions, tokens

MOST_READ, _MOST_NAMED = 100_000, 200
"""Characters of an answer, and labels in it, that are read."""
_LEAST_LEFT, _MOST_CUT = 4, 3
"""Letters that are left of a label that was cut, and letters that are missing at its front."""
_MOST_PLAIN = 20
"""Words of plain sentences behind a statement after which nothing is read."""
_SENTENCE_END = re.compile(
    r"[.!?\n\u3002\uff01\uff1f](?:(?<=[\u3002\uff01\uff1f])|"
    r"(?<=\n)(?<![:=]\n)(?<![:=][*_]\n)(?<!:\*\*\n)|"
    r"(?<=[.!?])(?<!\b[^\W\d_][.!?])(?<!\.[.!?])(?<!\s\d\.)(?<!\A\d\.)(?=[\"'”’»)\]*_}!?]*\s))"
)
"""It begins with one character of a set, for which the search looks quickly."""
_NEXT_CASE = re.compile(r"\W*(?:text|question|q|review|input|user|human|context|passage)\s*\d*:")
"""A model that goes on with a case of its own has answered."""
_LETTER = re.compile(
    rf"(?<![^\W_{CJK}])(?<!\w')(?<!&)(?:[bc](?![^\W_{CJK}]|'\w|&|-\w)|a(?=[^\w\s&])(?!['-]\w)|"
    rf"a(?=[_{CJK}]|\s\(|\s*$|\s*\n|\s(?:is|was|because|since|as|here|or|and|ist|est|es|è|\W)(?!\w)))"
)
"""A letter by itself; "a" where it is no article."""
_FIRST_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*(?![^\W_])")
_LAST_WORD = re.compile(r"(?<![^\W_])[^\W\d_]+(?:-[^\W\d_]*)*\Z")

_SHORT_QUESTION = re.compile(
    r"[.!?\n][^\w.!?\n]{0,3}(?:[\w']{1,20}[^\w'.!?\n]{1,3}){0,3}[\w']{1,20}[^\w'.!?\n]{0,3}\?"
)
"""Behind a statement it doubts that: "Or is it?"."""
_AROUND = " \n.,;:!-–—()"


class Statement(NamedTuple):
    """What an answer comes to, and every label that it names."""

    said: Named | None
    named: tuple[Named, ...]
    objection: str = ""
    """Why a label is not what the answer says although it is stated there."""


@lru_cache(maxsize=4096)
def statement(plain: str, stop: Stop) -> Statement:
    """Decide what the readable part of an answer says.

    An answer of which more than is read is left says only what nothing behind could change.
    """
    is_cut = len(plain) > MOST_READ
    plain = plain[:MOST_READ]
    first = next(_labels(plain, stop), None) if stop.first_named else _beginning(plain, stop)
    if first is not None or stop.first_named or is_cut:
        return Statement(first, () if first is None else (first,))
    named = _named(plain, stop)
    said = _said(named, stop)
    objection = "" if said is None else _objection(plain, named, said, stop)
    return Statement(None if objection else said, named, objection)


def _objection(plain: str, named: Sequence[Named], said: Named, stop: Stop) -> str:
    """Say what else in an answer keeps a label from being what it says; empty: nothing."""
    word = plain[said.start : said.end]
    if other := next((label for label in named if _disagrees(label, said, stop)), None):
        return f"it says {word!r}, and {plain[other.start : other.end]!r} as well"
    doubt = _doubt_about(plain, said, stop)
    return doubt and f"it says {word!r}, and {doubt!r} as well"


def is_complete(text: str, stop: Stop) -> bool:
    """Tell whether nothing that could be appended to `text` would change how it is read."""
    if not stop.phrases:
        return first_value(text) is not None
    finished = without_unfinished_tag(text.rstrip("\ufffd"), stop.thinking)
    plain = readable_part(finished, stop.marker, stop.thinking)
    if not stop.first_named:
        return _beginning(plain, stop) is not None
    first = next(_labels(plain, stop), None)
    longest = max(map(len, forms_of(stop.phrases)))
    return first is not None and len(plain) > first.start + longest + 1


def _beginning(plain: str, stop: Stop) -> Named | None:
    """Return the label with which reading ends; None where the whole answer is read.

    The first sentence states it, no sentence up to one of words enough contradicts it or takes it
    back, and what follows that one is not read.
    """
    first, begin, plain_words = None, 0, 0
    for match in _SENTENCE_END.finditer(plain):
        end = match.end()
        if first is not None:
            is_over = _NEXT_CASE.match(plain, begin) is not None
            if is_over:
                end = begin
            else:
                if any(_contradicts(label, first) for label in _named(plain[begin:end], stop)):
                    return None
                plain_words += _plain_words(plain, begin, end)
                is_over = plain_words >= _MOST_PLAIN
            if is_over:
                return None if _doubt_about(plain[:end], first, stop) else first
        elif WORD.search(plain, begin, end) is not None:
            named = _named(plain[:end], stop)
            first = _said(named, stop)
            if first is None or first.strength < STATED:
                return None
            if any(_disagrees(label, first, stop) for label in named):
                return None
        begin = end
    return None


def _plain_words(plain: str, begin: int, end: int) -> int:
    """Count the words of a sentence without denial, doubt, contrast and conclusion."""
    words = tokens(plain, begin, end)
    return 0 if any(word.before in "bCnxuot" for word in words) else len(words)


def _said(named: Sequence[Named], stop: Stop) -> Named | None:
    """Return the label that an answer says or concludes; None where statements disagree."""
    said = [label for label in named if not label.why]
    strongest = max((label.strength for label in said), default=MENTIONED)
    concluded = [
        label for label in said if label.is_concluded and (label.strength or is_text(label, stop))
    ]
    if strongest == FINAL:
        final = [label for label in named if label.strength == FINAL]
        later = [label for label in concluded if label.strength and label.start > final[-1].start]
        return _one(final + later)
    if strongest == STATED or concluded:
        return _one([label for label in named if label.why or label.strength == STATED] + concluded)
    only = _one([label for label in named if label.why or label.strength == strongest])
    if only is None or (strongest and stop.choice):
        return only
    possible = said if strongest else [label for label in named if label.may_be]
    is_alone = len({label.value for label in possible}) == 1 or only.value == stop.unknown
    return only if is_alone and (strongest or is_text(only, stop)) else None


def _one(labels: Sequence[Named]) -> Named | None:
    """Return the strongest of the labels that are said if they are all one, and nowhere denied."""
    said = [label for label in labels if not label.why]
    denied = {label.value for label in labels if label.why.startswith("denied")}
    is_one = len({label.value for label in said}) == 1 and said[0].value not in denied
    return max(said, key=lambda one: (one.strength, one.number >= 0)) if is_one else None


def _disagrees(label: Named, said: Named, stop: Stop) -> bool:
    """Tell whether another label of an answer keeps one from being what it says."""
    is_before = label.start < said.start
    if label.sentence > said.sentence or stop.choice:
        return not (is_before and said.strength == FINAL) and _contradicts(label, said)
    if label.value == said.value or label.is_aside or not label.may_be:
        return False
    if is_before:
        is_weaker = said.strength == FINAL or (said.is_concluded and label.strength < STATED)
        return not (label.why or label.is_attribute or is_weaker)
    return True


def _contradicts(label: Named, said: Named) -> bool:
    """Tell whether a label of a later sentence, or an option, says something else."""
    return label.value != said.value and not label.why and label.strength > MENTIONED


def _doubt_about(plain: str, label: Named, stop: Stop) -> str:
    """Return the words that take a label back, doubt it or commit to nothing; empty: none."""
    own = own_part(plain, forms_of(stop.phrases), stop.shown)
    behind = retractions().search(own, label.end) or _SHORT_QUESTION.search(own, label.end)
    doubt = evasions().search(own) or behind
    return "" if doubt is None else doubt[0].strip(_AROUND)


def _labels(plain: str, stop: Stop) -> Iterator[Named]:
    """Yield labels and options in their order."""
    forms = forms_of(stop.phrases)
    for match in pattern_of(forms, inside=not stop.first_named).finditer(plain.replace("\n", " ")):
        if not is_mark(plain[match.end() : match.end() + 1] or " "):
            number = forms.index(match[0])
            yield Named(value_of(stop, number), *match.span(), number)


@lru_cache(maxsize=4096)
def _named(plain: str, stop: Stop) -> tuple[Named, ...]:
    """List the labels that an answer names itself, each with how it stands."""
    own = own_part(plain, forms_of(stop.phrases), stop.shown)
    labels = list(islice(_labels(own, stop), _MOST_NAMED))
    if stop.choice:
        taken = {at for label in labels for at in range(label.start, label.end)}
        others = islice(_others(own, stop), 2 * _MOST_NAMED)
        labels += [label for label in others if label.start not in taken]
    else:
        labels += _cut(own, labels, stop)
    labels = sorted(labels, key=lambda label: label.start)[:_MOST_NAMED]
    ends = [match.end() for match in _SENTENCE_END.finditer(own)] if labels else []
    bounds = [*pairwise([0, *ends, len(own)])]
    named = list[Named]()
    for number, inside in groupby(labels, lambda label: bisect_right(ends, label.start)):
        labels_inside = [label._replace(sentence=number) for label in inside]
        named += stand_in_sentence(own, stop, *bounds[number], labels_inside)
    return tuple(named)


def _others(own: str, stop: Stop) -> Iterator[Named]:
    """Yield letters that stand for options, and words that the text does not tell."""
    for token in tokens(own) if stop.unknown >= 0 else ():
        if token.before == "u":
            yield Named(stop.unknown, token.start, token.end)
    for match in _LETTER.finditer(own):
        if "abc".index(match[0]) <= max(stop.values):
            yield Named("abc".index(match[0]), *match.span())


def _cut(own: str, labels: Sequence[Named], stop: Stop) -> list[Named]:
    """Return the label of which an answer begins with the end, or ends with the beginning."""
    begin, cut = beginning_end(own), []
    if labels and labels[0].start <= begin:
        return []
    first = _FIRST_WORD.match(own[begin : begin + 80])
    last = None if labels else _LAST_WORD.search(own[-80:])
    for number, form in enumerate(forms_of(stop.phrases)):
        named = Named(value_of(stop, number), begin, len(own), number)
        size = len(first[0]) if first and form.endswith(first[0]) else 0
        if size >= _LEAST_LEFT and 0 < len(form) - size <= _MOST_CUT:
            cut.append(named._replace(end=begin + size))
        size = len(last[0]) if last and form.startswith(last[0]) else 0
        if max(_LEAST_LEFT, len(form) // 2) <= size < len(form):
            cut.append(named._replace(start=len(own) - size))
    return cut[:1] if len({label.value for label in cut}) == 1 else []
