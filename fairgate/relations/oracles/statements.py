"""What an answer says, by three rules: it says a label, it concludes one, or it is unreadable.

The rules stand in docs/reference/reading-answers.md. Every sentence that names a label is read once
from its beginning to its end, so reading takes time in proportion to an answer's length.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice, pairwise, takewhile
from typing import NamedTuple

from fairgate.domain.executions import Stop
from fairgate.relations.oracles.actions import first_value
from fairgate.relations.oracles.reading import forms_of, own_part, pattern_of, readable_part
from fairgate.relations.oracles.text import is_mark, without_unfinished_tag
from fairgate.relations.oracles.words import (
    ANSWER,
    ASIDE,
    BREAK,
    CJK,
    COLON,
    COMMA,
    CONCLUSION,
    CONTRAST,
    COPULA,
    DENIED,
    JOINER,
    LEAD,
    LEADS,
    LOOSE,
    OPEN,
    THOUGH,
    UNKNOWN,
    WORD,
    Token,
    tokens,
)  # fmt: skip

MOST_READ, _MOST_NAMED, _REACH = 100_000, 200, 300
"""Characters of an answer, labels in it, and characters between labels of a list that are read."""
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
_BEGINNING = re.compile(r"(?:[\s>#*•+=\"'“(_\-→~]|\d+[.)]\s)*")
_LISTED = re.compile(r"[\s\"'*_,/|&)\](-]*")
_NUMBER = re.compile(r"\(?\b(?:\w|\d\d)[.)]")
_BESIDE = re.compile(r"[\s\"'*_)\]}>:=.\u2013-]{0,9}")
"""What stands between the labels of a list, and between a letter and its option's text."""
_LETTER = re.compile(
    rf"(?<![^\W_{CJK}])(?<!\w')(?<!&)(?:[bc](?![^\W_{CJK}]|'\w|&|-\w)|a(?=[^\w\s&])(?!['-]\w)|"
    rf"a(?=[_{CJK}]|\s*$|\s*\n|\s(?:is|was|because|since|as|here|or|and|ist|est|es|è|\W)(?!\w)))"
)
"""A letter by itself; "a" where it is no article."""
_ENDED = re.compile(r"[\s\"'*_)\]}>”’»」』]*(?:[.!\u3002](?![.!])|<)")
_HEADED = re.compile(r"[\s\"'*_)\]]*[:=]")
_SCORED = re.compile(r"[\s\"'*_)\]]*[,:=][\s\"'*_]*\d")
_RUN = re.compile(r"[^\W_]+")
_FIRST_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*(?![^\W_])")
_LAST_WORD = re.compile(r"(?<![^\W_])[^\W\d_]+(?:-[^\W\d_]*)*\Z")
_DENIAL = DENIED | LOOSE | UNKNOWN
_LISTING = JOINER | LEAD | COPULA
_DOUBT = _DENIAL | OPEN | THOUGH


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
    is_concluded: bool = False
    """Whether a word of conclusion stands before it in its sentence."""
    is_opening: bool = False
    """Whether its sentence begins with it, and says nothing else or what a colon leads to."""
    sentence: int = 0
    """Where its sentence begins."""
    is_first: bool = False
    """Whether its sentence holds only words of an introduction before it."""

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
    is a sentence. A line that the next one may continue as a list of labels is none.
    """
    end = _SENTENCE_END.search(plain, _span(_BEGINNING, plain, 0))
    if end is None:
        return None if is_open else _first(plain, stop)
    if end[0] == "\n":
        at = _span(_BEGINNING, plain, end.end())
        run = _RUN.match(plain, at)
        is_unfinished = len(plain) <= (at if run is None else run.end() + run[0].isdigit())
        if run is not None and run[0] in _first_words(stop):
            is_unfinished = len(plain) <= at + max(map(len, forms_of(stop.phrases))) + 1
            following = next(_labels(plain[at:], stop), None)
            letter = _LETTER.match(plain, at) if stop.choice else None
            if letter or (following is not None and following.start == 0):
                return None
        if is_open and is_unfinished:
            return None
    return _first(plain[: end.end()], stop)


@lru_cache(maxsize=4096)
def _first(sentence: str, stop: Stop) -> Named | None:
    named = _Answer(sentence, stop).named
    label = _one(named)
    is_said = label is not None and label == named[0] and label.is_first and label.is_ended
    return label if is_said else None


@lru_cache(maxsize=1024)
def _first_words(stop: Stop) -> frozenset[str]:
    """Return with which words a label, option or letter may begin."""
    runs = (run[0] for form in forms_of(stop.phrases) if (run := _RUN.search(form)))
    return frozenset([*runs, *("abc" if stop.choice else "")])


def _span(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a pattern that matches nothing, too, ends."""
    match = pattern.match(text, at)
    return at if match is None else match.end()


def _labels(plain: str, stop: Stop) -> Iterator[Named]:
    """Yield labels and options in their order."""
    forms = forms_of(stop.phrases)
    for match in pattern_of(forms, inside=not stop.first_named).finditer(plain.replace("\n", " ")):
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
        self.words = tokens(self.own) if stop.choice else []
        labels = list(islice(_labels(self.own, stop), _MOST_NAMED))
        if stop.choice:
            taken = {at for label in labels for at in range(label.start, label.end)}
            others = islice(self._others(), 2 * _MOST_NAMED)
            labels += [label for label in others if label.start not in taken]
        else:
            labels += self._cut(labels)
        labels = sorted(labels, key=lambda label: label.start)[:_MOST_NAMED]
        ends = [match.end() for match in _SENTENCE_END.finditer(self.own)] if labels else []
        self.sentences = list(pairwise([0, *ends, len(self.own)]))
        begins = [begin for begin, _ in self.sentences]
        self.named = list[Named]()
        for number, inside in groupby(labels, lambda one: bisect_right(begins, one.start) - 1):
            self.named += self._judged(*self.sentences[number], list(inside))
        opening = [one for one in self.named if one.is_opening and not one.why]
        is_list = len({one.value for one in opening}) > 1
        listed = [one.sentence for one in opening if is_list]
        several = {at for at, one in enumerate(self.named) if one.sentence in listed}
        for at, (left, right) in enumerate(pairwise(self.named)):
            if self._is_list(left, right):
                several |= {at, at + 1}
        for at in several:
            why = self.named[at].why or "one of several"
            self.named[at] = self.named[at]._replace(why=why)

    def said(self) -> Named | None:
        """Return the label that the answer says or concludes; None where the two disagree."""
        final = [label for label in self.named if label.is_final]
        if final:
            return _one(final)
        own, written = self.own, re.search(r"[^\W_]", self.own)
        if written is None:
            return None
        begin, end = next(span for span in self.sentences if span[1] > written.start())
        line = own.find("\n", end - 1)
        said = (
            self._only(0, len(own))
            or self._stated(begin, end)
            or self._stated(begin, len(own) if line < 0 else line)
        )
        last = [label for label in self.named if label.is_concluded]
        for begin, end in reversed(self.sentences) if last else ():
            label = self._stated(begin, end) or self._only(begin, end)
            if label is not None and label.is_concluded:
                return label if said is None or said.value == label.value else None
        return said

    def _only(self, begin: int, end: int) -> Named | None:
        """Return the one label that is named between two places."""
        only = _one([label for label in self.named if begin <= label.start < end])
        is_option = self.stop.choice and only is not None and not only.is_letter
        return only if only and (is_option or (only.is_led and only.is_ended)) else None

    def _stated(self, begin: int, end: int) -> Named | None:
        """Return the one label that is stated between two places, whatever else is mentioned."""
        inside = [label for label in self.named if begin <= label.start < end]
        return _one([label for label in inside if label.why or (label.is_led and label.is_ended)])

    def _others(self) -> Iterator[Named]:
        """Yield letters that stand for options, and words that the text does not tell."""
        for token in self.words if self.stop.unknown >= 0 else ():
            if token.flags & UNKNOWN:
                yield Named(self.stop.unknown, token.start, token.end)
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

    def _judged(self, begin: int, end: int, labels: list[Named]) -> Iterator[Named]:
        """Yield the labels of a sentence, each with how it stands."""
        own, start = self.own, _span(_BEGINNING, self.own, begin)
        inside = (
            self.words[bisect_left(self.words, (start,)) : bisect_left(self.words, (end,))]
            if self.words
            else tokens(own, start, end)
        )
        clause, place = _Clause(), 0
        for label, following in zip(labels, [*labels[1:], None], strict=True):
            while place < len(inside) and inside[place].end <= label.start:
                clause.read(inside[place])
                place += 1
            if label.number >= 0 or label.is_letter:
                while place < len(inside) and inside[place].end <= label.end:
                    place += 1
            is_same = (
                following is not None
                and following.value == label.value
                and _BESIDE.fullmatch(own, label.end, following.start) is not None
            )
            is_explained = not is_same and _HEADED.match(own, label.end) is not None
            behind = (one for one in islice(inside, place, None) if one.start >= label.end)
            is_ended, denial = (True, None) if is_same else self._behind(label, following, behind)
            named = Named(
                *label[:4],
                is_led=clause.is_led,
                is_ended=is_ended,
                is_final=clause.is_led and clause.is_final,
                is_concluded=clause.is_concluded,
                is_opening=label.start == start and (is_ended or is_explained),
                is_first=clause.is_first and not is_explained,
                sentence=begin,
            )
            if "?" in own[max(label.end, end - 4) : end]:
                yield named._replace(why="inside a question")
            elif denial is not None:
                word = own[denial.start : denial.end]
                denied = named._replace(why=f"denied by {word!r} behind it")
                yield (self._opposite(named) or denied) if is_explained else denied
            elif label.number < 0 and not label.is_letter:
                yield named  # that the text does not tell denies by itself
            elif clause.doubts:
                kind, token = max((one.flags & _DENIAL > 0, one) for one in clause.doubts)
                how = "denied" if kind else "left open"
                word = own[token.start : token.end]
                denied = named._replace(why=f"{how} by {word!r} before it")
                yield (self._opposite(named) or denied) if clause.is_opposite else denied
            else:
                yield named
            clause.pass_label(denial)

    def _behind(
        self, label: Named, following: Named | None, rest: Iterator[Token]
    ) -> tuple[bool, Token | None]:
        """Tell whether a label ends what is said, and which word behind it denies it."""
        own, has_verb = self.own, False
        is_option = self.stop.choice and not label.is_letter
        if _ENDED.match(own, label.end) or _SCORED.match(own, label.end):
            return not _SCORED.match(own, label.end), None
        for token in rest:
            flags = token.flags
            if following is not None and token.end > following.start:
                return False, None
            if flags & COLON:
                return self._explained(rest)
            is_aside = flags & ASIDE and not (has_verb and flags & LEADS)
            if is_aside or flags & (COMMA | BREAK | CONTRAST | JOINER):
                return not (has_verb and is_option), None
            if flags & _DENIAL:
                if not own[token.start].isascii() and own[token.start].isalpha():
                    return False, token
                after = next(rest, None)
                is_last = after is None or bool(after.flags & (BREAK | COMMA))
                if has_verb or flags & COPULA:
                    is_whole = is_last or (after is not None and after.flags & ~_DOUBT)
                    return False, token if is_whole else None
                return not is_last, token if is_last and not is_option else None
            if not flags & LEADS:
                return False, None
            has_verb = has_verb or bool(flags & COPULA)
        return following is None and not (has_verb and is_option), None

    def _explained(self, rest: Iterator[Token]) -> tuple[bool, Token | None]:
        """Tell whether behind a colon stands why a label is said, or what denies it."""
        words = list(islice(takewhile(lambda one: not one.flags & (COMMA | BREAK), rest), 2))
        if len(words) == 1 and words[0].flags & _DENIAL:
            return False, words[0]
        return len(words) != 1 or bool(words[0].flags & (ASIDE | LEADS)), None

    def _opposite(self, label: Named) -> Named | None:
        """Return the label that the task means by a direct denial."""
        phrase = self.stop.phrases[label.number] if label.number >= 0 else ""
        if phrase not in (negated := dict(self.stop.negated)):
            return None
        number = self.stop.phrases.index(negated[phrase])
        return label._replace(
            value=_value(self.stop, number), number=number, is_led=True, is_ended=True
        )

    def _is_list(self, left: Named, right: Named) -> bool:
        """Tell whether neighbours are not said: "A or B", a letter and a text that disagree."""
        between = _NUMBER.sub("", self.own[left.end : min(right.start, left.end + _REACH)])
        if left.value == right.value or ("\n" in between and not right.is_ended):
            return False
        if left.is_letter and not right.is_letter and _BESIDE.fullmatch(between):
            return True
        signs = WORD.sub("", between)
        if not _LISTED.fullmatch(signs):
            return False
        words = [one.flags for one in tokens(between) if between[one.start].isalpha()]
        is_joined = any(flags & JOINER for flags in words)
        is_close = not signs.strip() or not (words or "(" in signs)
        return (is_joined or is_close) and all(
            flags & _LISTING and not flags & CONTRAST for flags in words
        )


class _Clause:
    """The words before a place of a sentence, and what they mean for a label that stands there."""

    def __init__(self) -> None:
        self.is_final = self.is_concluded = self.is_direct = False
        self.is_first = True
        self._spent: Token | None = None
        self._begin()

    def _begin(self) -> None:
        self.is_led, self.doubts, self._words = True, list[Token](), 0
        self._is_aside, self._kept = False, -1

    @property
    def is_opposite(self) -> bool:
        """Tell whether a single word of denial stands directly before the place."""
        return self.is_direct and len(self.doubts) == 1

    def pass_label(self, denial: Token | None) -> None:
        """Go on by a label; a word that denied it says nothing of the next one."""
        self._spent = denial
        self.is_led = self.is_final = self.is_first = self.is_direct = False
        self._words = _LEAST_HEAD

    def read(self, token: Token) -> None:
        """Go on by one word or sign."""
        flags = token.flags
        if token is self._spent:
            self._begin()
            return
        if flags & (BREAK | CONTRAST) or (flags & COMMA and self._is_aside):
            self._begin()
        elif flags & COMMA:
            self._kept = len(self.doubts)
        elif flags & COLON and self._words >= _LEAST_HEAD:
            self.doubts = []
        if flags & COPULA and self._kept > 0:
            # A clause of its own begins at the comma; what was left open stays open.
            open_ones = [doubt for doubt in self.doubts[: self._kept] if doubt.flags & OPEN]
            self.doubts, self._kept = open_ones[-1:] + self.doubts[self._kept :], -1
        if flags & (COMMA | COLON | BREAK):
            self.is_led = self.is_led or bool(flags & COLON)
            return
        self._is_aside = self._is_aside or bool(flags & THOUGH and self._words == 0)
        self._words += 1
        self.is_concluded = self.is_concluded or bool(flags & (CONCLUSION | CONTRAST))
        if flags & _DOUBT:
            self.doubts.append(token)
            self.is_direct = bool(flags & DENIED)
        if flags & LEADS and not flags & _DOUBT:
            self.is_led = self.is_led or bool(flags & COPULA)
            self.is_final = self.is_final or bool(flags & ANSWER)
        else:
            self.is_led = self.is_final = self.is_first = False
            self.is_direct = self.is_direct and bool(flags & _DOUBT)
