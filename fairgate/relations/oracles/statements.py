"""What an answer says, by three rules: it says a label, it concludes one, or it is unreadable.

The rules stand in docs/reference/reading-answers.md. All is decided within a sentence and some
hundred characters of it, so reading takes time in proportion to an answer's length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from fairgate.domain.executions import Stop
from fairgate.relations.oracles.actions import first_value
from fairgate.relations.oracles.reading import CJK, forms_of, own_part, pattern_of, readable_part
from fairgate.relations.oracles.text import is_mark, without_unfinished_tag
from fairgate.relations.oracles.words import WORD, Words, words

MOST_READ, _MOST_NAMED, _REACH = 100_000, 200, 300
"""Characters of an answer, labels in it, and characters before a label that are read."""
_LEAST_LEFT, _MOST_CUT = 4, 3
"""Letters that are left of a label that was cut, and letters that are missing at its front."""
_LEAST_HEAD = 3
"""Words before a colon that are a clause of their own: no "not:", no "first impression:"."""
_SENTENCE_END = re.compile(
    r"[.!?\n\u3002\uff01\uff1f](?:(?<=[\u3002\uff01\uff1f])|"
    r"(?<=\n)(?<![:=]\n)(?<![:=][*_]\n)(?<!:\*\*\n)|"
    r"(?<=[.!?])(?<!\b[^\W\d_][.!?])(?<!\.[.!?])(?<!\n\d\.)(?<!\A\d\.)(?=[\"'”’»)\]*_}!?]*\s))"
)
"""It begins with one character of a set, for which the search looks quickly."""
_CLAUSE_END = re.compile(r"[;(|→\u2014\u2015\n\u3001]|\s-+\s|(?<!\.)\.\s")
_BEGINNING = re.compile(r"(?:[\s>#*•+=\"'“(\[<_\-→~]|\d+[.)]\s)*")
_DECORATION = re.compile(r"[\s\"'*_)\]}>”’»」』]*")
_BEHIND = re.compile(r"[ \"'*_)\]}>”’»」』:=|\u2013-]*")
_ANNOUNCED = re.compile(r"[:=→>][\s\"'*_(\[<{“「]*$|[{,]\s*\"$")
"""A colon, or the beginning of a key in JSON."""
_HEADED = re.compile(
    r"[\s\"'*_)\]]*[:=|][\s\"'*_]*(\d|(?:false|no|none|nein|non|null)\b)|[\"'],\s*(\d)"
)
"""The score of a label, or its denial as a value: "toxic: no"."""
_UNMARKED = re.compile(r"(?:\[ ?\]|[☐⬜❌✗!¬])[\s*_\"']*$")
_LISTED = re.compile(r"[\s\"'*_,/|&)\]-]*")
_BESIDE = re.compile(r"[\s\"'*_)\]}>:=.\u2013-]{0,9}")
"""What stands between the labels of a list, and between a letter and its option's text."""
_LETTER = re.compile(
    rf"(?<![^\W_{CJK}])(?<!\w')(?<!&)(?:[bc](?![^\W_{CJK}]|'\w|&|-\w)|a(?=[^\w\s&])(?!['-]\w)|"
    rf"a(?=[_{CJK}]|\s*$|\s*\n|\s(?:is|was|because|since|as|here|or|and|ist|est|es|è|\W)(?!\w)))"
)
"""A letter by itself; "a" where it is no article."""
_FIRST_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*(?![^\W_])")
_LAST_WORD = re.compile(r"(?<![^\W_])[^\W\d_]+(?:-[^\W\d_]*)*\Z")


class Named(NamedTuple):
    """A label, option or letter where it stands in the readable part of an answer."""

    value: int
    """The phrase's number, or what `Stop.values` gives it."""
    start: int
    end: int
    number: int = -1
    """The phrase's own number; -1: a letter, or words that the text does not tell."""
    why: str = ""
    """What keeps it from being said, in words; empty where nothing does."""
    is_led: bool = False
    """Whether a copula, a colon or nothing but words of an introduction leads to it."""
    is_ended: bool = False
    """Whether nothing stands behind it that it describes: no "positive aspects"."""
    is_final: bool = False
    """Whether words lead to it that name the final answer."""

    @property
    def is_letter(self) -> bool:
        """Tell whether it is an option's letter."""
        return self.number < 0 and self.end - self.start == 1


class Statement(NamedTuple):
    """What an answer comes to, and every label that it names."""

    said: Named | None
    named: tuple[Named, ...]


@lru_cache(maxsize=4096)
def statement(plain: str, stop: Stop) -> Statement:
    """Decide what the readable part of an answer says.

    An answer of which more than is read is left says only what nothing behind could change.
    """
    is_cut = len(plain) > MOST_READ
    plain = plain[:MOST_READ]
    if stop.first_named:
        first = next(_labels(plain, stop), None)
    else:
        first = _beginning(plain, stop, is_open=is_cut)
    if first is not None or stop.first_named or is_cut:
        return Statement(first, () if first is None else (first,))
    answer = _Answer(plain, stop)
    return Statement(answer.said(), tuple(answer.named))


def is_complete(text: str, stop: Stop) -> bool:
    """Tell whether nothing that could be appended to `text` would change how it is read."""
    if not stop.phrases:
        return first_value(text) is not None
    finished = without_unfinished_tag(text.rstrip("\ufffd"), stop.thinking)
    plain = readable_part(finished, stop.marker, stop.thinking)
    if not stop.first_named:
        return _beginning(plain, stop, is_open=True) is not None
    first = next(_labels(plain, stop), None)
    longest = max(map(len, forms_of(stop.phrases)))
    return first is not None and len(plain) > first.start + longest + 1


def _beginning(plain: str, stop: Stop, *, is_open: bool = False) -> Named | None:
    """Return the label that an answer's first sentence says and nothing else; None without one.

    Nothing that follows the sentence changes it. `is_open`: the answer goes on, and only what ends
    is a sentence.
    """
    end = _SENTENCE_END.search(plain, _span(_BEGINNING, plain, 0))
    if end is None and is_open:
        return None
    return _first(plain if end is None else plain[: end.end()], stop)


@lru_cache(maxsize=4096)
def _first(sentence: str, stop: Stop) -> Named | None:
    begin, first = _span(_BEGINNING, sentence, 0), next(_labels(sentence, stop), None)
    if not stop.choice and (first is None or not _leads().covers(sentence[begin : first.start])):
        return None  # a cheap look
    named = _Answer(sentence, stop).named
    label = _one(named)
    if label is None or label != named[0] or not (label.is_led and label.is_ended):
        return None
    return label if _leads().covers(sentence[begin : label.start]) else None


def _leads() -> Words:
    return words("lead", "kind", "copula", "answer", "conclusion", "contrast")


def _span(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a pattern that matches nothing, too, ends."""
    match = pattern.match(text, at)
    return at if match is None else match.end()


def _labels(plain: str, stop: Stop) -> Iterator[Named]:
    """Yield labels and options in their order."""
    forms = forms_of(stop.phrases)
    for match in pattern_of(forms, choice=stop.choice).finditer(plain.replace("\n", " ")):
        if not is_mark(plain[match.end() : match.end() + 1] or " "):
            number = forms.index(match[0])
            yield Named(_value(stop, number), *match.span(), number)


def _value(stop: Stop, number: int) -> int:
    return stop.values[number] if stop.values else number


def _one(labels: Sequence[Named]) -> Named | None:
    """Return the first of the labels that are said if they are all one, and nowhere denied."""
    said = [label for label in labels if not label.why]
    denied = {label.value for label in labels if label.why.startswith("denied")}
    is_one = len({label.value for label in said}) == 1 and said[0].value not in denied
    return said[0] if is_one else None


class _Answer:
    """What an answer says itself, and every label in it."""

    def __init__(self, plain: str, stop: Stop) -> None:
        self.own, self.stop = own_part(plain, forms_of(stop.phrases), stop.shown), stop
        ends = [match.end() for match in _SENTENCE_END.finditer(self.own)]
        self.begins, self.ends = [0, *ends], [*ends, len(self.own)]
        labels = list(islice(_labels(self.own, stop), _MOST_NAMED))
        if stop.choice:
            taken = {at for label in labels for at in range(label.start, label.end)}
            others = islice(self._others(), 2 * _MOST_NAMED)
            labels += [label for label in others if label.start not in taken]
        else:
            labels += self._cut(labels)
        labels = sorted(labels, key=lambda label: label.start)[:_MOST_NAMED]
        self.named = list(map(self._judged, labels, [*labels[1:], None]))
        for number in range(1, len(labels)):
            pair = self.named[number - 1 : number + 1]
            why = self._together(*pair)
            self.named[number - 1 : number + 1] = [a._replace(why=a.why or why) for a in pair]

    def said(self) -> Named | None:
        """Return the label that the answer says or concludes."""
        final = [label for label in self.named if label.is_final]
        if final or any(label.why == "followed by a number" for label in self.named):
            return _one(final)
        spans = [
            span
            for span in zip(self.begins, self.ends, strict=True)
            if any(map(str.isalnum, self.own[slice(*span)]))
        ]
        if not spans:
            return None
        begin, end = spans[0]
        line = self.own.find("\n", end - 1)
        said = (
            self._only(0, len(self.own))
            or self._stated(begin, end)
            or self._stated(begin, len(self.own) if line < 0 else line)
        )
        for begin, end in () if said else reversed(spans):
            label = self._stated(begin, end) or self._only(begin, end)
            if label and words("conclusion").found(self.own[begin : label.start]):
                return label
        return said

    def _only(self, begin: int, end: int) -> Named | None:
        """Return the one label that is named between two places."""
        inside = [label for label in self.named if begin <= label.start < end]
        only = _one(inside)
        if only is None or (self.stop.choice and not only.is_letter):
            return only
        is_alone = len({label.value for label in inside}) == 1
        return only if only.is_led and (is_alone or only.is_ended) else None

    def _stated(self, begin: int, end: int) -> Named | None:
        """Return the one label that is stated between two places, whatever else is mentioned."""
        inside = [label for label in self.named if begin <= label.start < end]
        led = _one([label for label in inside if label.is_led or label.why])
        return led if led is not None and led.is_ended else None

    def _others(self) -> Iterator[Named]:
        """Yield letters that stand for options, and words that the text does not tell."""
        if self.stop.unknown >= 0:
            for place in words("unknown").found(self.own)[:_MOST_NAMED]:
                yield Named(self.stop.unknown, *place)
        for match in _LETTER.finditer(self.own):
            if "abc".index(match[0]) <= max(self.stop.values):
                yield Named("abc".index(match[0]), *match.span())

    def _cut(self, labels: Sequence[Named]) -> list[Named]:
        """Return the label of which an answer begins with the end, or ends with the beginning."""
        begin, found = _span(_BEGINNING, self.own, 0), []
        if labels and labels[0].start <= begin:
            return []
        first = _FIRST_WORD.match(self.own[begin : begin + 80])
        last = None if labels else _LAST_WORD.search(self.own[-80:])
        for number, form in enumerate(forms_of(self.stop.phrases)):
            named = Named(_value(self.stop, number), begin, len(self.own), number)
            size = len(first[0]) if first and form.endswith(first[0]) else 0
            if size >= _LEAST_LEFT and 0 < len(form) - size <= _MOST_CUT:
                found.append(named._replace(end=begin + size))
            size = len(last[0]) if last and form.startswith(last[0]) else 0
            if max(_LEAST_LEFT, len(form) // 2) <= size < len(form):
                found.append(named._replace(start=len(self.own) - size))
        return found[:1] if len({label.value for label in found}) == 1 else []

    def _judged(self, label: Named, following: Named | None) -> Named:
        """Say how a label stands, what keeps it from being said, or what it means if denied."""
        own, number = self.own, bisect_right(self.begins, label.start) - 1
        begin = max(_span(_BEGINNING, own, self.begins[number]), label.start - _REACH)
        before = words("harmless").blanked(own[begin : label.start])
        before = before.rstrip("([ ") if label.is_letter else before
        clause = _clause(before)
        is_led = _is_led(before, clause)
        label = label._replace(
            is_led=is_led,
            is_final=is_led and _is_final(before),
            is_ended=self._is_ended(label, following, self.ends[number]),
        )
        if _UNMARKED.search(own, max(0, label.start - 9), label.start):
            return label._replace(why="denied by the sign before it")
        if "?" in own[max(label.end, self.ends[number] - 4) : self.ends[number]]:
            return label._replace(why="inside a question")
        headed = _HEADED.match(own, label.end)
        if headed is not None and (headed[2] or headed[1].isdigit()):
            return label._replace(why="followed by a number")
        if headed is not None:
            return self._opposite(label) or label._replace(why=f"denied by {headed[1]!r} behind it")
        if denial := words("behind").at(own, _span(_BEHIND, own, label.end)):
            return label._replace(why=f"denied by {denial!r} behind it")
        if label.number < 0 and not label.is_letter:
            return label  # that the text does not tell denies by itself
        return self._denied(label, clause)

    def _denied(self, label: Named, clause: str) -> Named:
        """Say which words of its clause before a label deny it or leave it open."""
        if not words("denied", "loose", "open").found(clause):
            return label
        direct, loose, opens = (words(kind).found(clause) for kind in ("denied", "loose", "open"))
        denials = direct + loose
        start, end = max(denials or opens)
        how = "denied" if denials else "left open"
        denied = label._replace(why=f"{how} by {clause[start:end]!r} before it")
        is_direct = len(direct) == 1 and not loose and not opens and _leads().covers(clause[end:])
        return (self._opposite(label) or denied) if is_direct else denied

    def _opposite(self, label: Named) -> Named | None:
        """Return the label that the task means by a direct denial."""
        phrase = self.stop.phrases[label.number] if label.number >= 0 else ""
        if phrase not in (negated := dict(self.stop.negated)):
            return None
        number = self.stop.phrases.index(negated[phrase])
        return label._replace(value=_value(self.stop, number), number=number, is_led=True)

    def _is_ended(self, label: Named, following: Named | None, end: int) -> bool:
        at = _span(_DECORATION, self.own, label.end)
        while (word := WORD.match(self.own, at)) and word[0] in words("kind").single:
            at = _span(_DECORATION, self.own, word.end())
        if at >= end or self.own[at] in ",.!;(<\u2014\u2013-\u3002":
            return not self.own.startswith("..", at)
        if label.is_letter and following is not None and following.value == label.value:
            return _BESIDE.fullmatch(self.own, label.end, following.start) is not None
        return bool(words("aside").at(self.own, _span(_BEHIND, self.own, at)))

    def _together(self, left: Named, right: Named) -> str:
        """Say why neighbours are not said: "A or B", a letter and a text that disagree."""
        between = self.own[left.end : right.start]
        if left.is_letter and not right.is_letter and _BESIDE.fullmatch(between):
            is_one = left.value == right.value
            return left.why if is_one else "denied by the letter and the text that disagree"
        if left.value == right.value or len(between) > _REACH:
            return ""
        inside = WORD.findall(between)
        is_joined = not words("joiner").single.isdisjoint(inside)
        marks = WORD.sub("", between).rstrip("([" if is_joined else "")
        is_list = (is_joined or not inside) and words("joiner", "lead").covers(between)
        return "one of several" if is_list and _LISTED.fullmatch(marks) else ""


def _is_led(before: str, clause: str) -> bool:
    """Tell whether a copula, a colon or only words that may begin an answer lead to a label."""
    for word in reversed(WORD.findall(before.rpartition(",")[2])):
        if word in words("copula").single:
            return True
        if word not in words("lead", "kind").single:
            break
    return _ANNOUNCED.search(before) is not None or _leads().covers(clause)


def _is_final(before: str) -> bool:
    """Tell whether words that name the final answer lead to a label."""
    places = words("answer").found(before)
    return bool(places) and _leads().covers(before[max(places)[1] :])


def _clause(before: str) -> str:
    """Return the last clause of a sentence; at a comma begins one that has a copula of its own."""
    ends = (end.end() for end in _CLAUSE_END.finditer(before))
    contrasts = (end for _, end in words("contrast").found(before))
    clause = before[max(chain(ends, contrasts), default=0) :]
    last = max((start for start, _ in words("copula").found(clause)), default=0)
    first = WORD.search(clause)
    if first is not None and first[0] in words("open").single:
        last = len(clause)  # "although …, it"
    clause = clause[clause.rfind(",", 0, last) + 1 :]
    head, _, rest = clause.rpartition(":")
    return rest if len(WORD.findall(head)) >= _LEAST_HEAD else clause
