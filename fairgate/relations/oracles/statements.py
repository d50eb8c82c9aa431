"""What an answer says, sentence by sentence: one definition for reading and for ending.

A label (an option, a word such as "yes") that stands in an answer is affirmed, denied ("not
positive", "positive is wrong"), left open (inside a question, an alternative such as "A or B", or
a condition) or guessed ("it may be A"). Of those that are affirmed counts, in this order,

1. the one that the answer begins with, behind a lead-in such as "The sentiment of the text is";
2. the one of the first explicit answer ("the answer is", "final answer", a box, a member of JSON);
3. the one of the last conclusion ("therefore", "overall", "so it is");
4. the one of the last sentence that says nothing else ("I'd say it is negative");
5. the first one, and before a sentence that names several options one that names one of them;
6. the only one that is guessed.

"It is unknown who" is an affirmed option too, where an item has it. An answer is *complete* when no
continuation could change what counts: after 1, once the words behind the label cannot take it back,
and after 2. Everything is decided within a sentence, so reading is linear in an answer's length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from fairgate.domain.executions import Stop
from fairgate.relations.oracles.negation import (
    WORD,
    Negation,
    exchanged_before,
    negation_before,
)
from fairgate.relations.oracles.phrases import forms_of, is_settled, named
from fairgate.relations.oracles.reading_patterns import (
    AFTER_AFFIRMED,
    AFTER_DENIED,
    AFTER_NO,
    AFTER_SCORE,
    ANSWERS,
    ARTICLE_NO,
    ASKED_TAG,
    ATTRIBUTE,
    BEHIND_WORDS,
    CHOOSING,
    CONCESSION,
    CONCLUSION,
    CONDITION,
    CONTRAST,
    EVIDENCE,
    EXPLICIT,
    GUESSED,
    GUESSED_BEHIND,
    HEADING,
    HEADS,
    IN_SPITE_OF,
    INVERTED,
    JOINED,
    KIND,
    LEAD_WORDS,
    LETTER_ALONE,
    LETTER_CUED,
    LETTER_FIRST,
    LETTER_FITS,
    LETTER_JUDGED,
    LETTER_STATED,
    LETTER_TICKED,
    LETTER_WRONG,
    LETTERS_THAT_FIT,
    NEXT_WORDS,
    NO_IDIOM,
    NOT_BOTH,
    PROPOSED,
    QUESTION,
    REASON,
    REMAINS,
    REPORTED_NO,
    SENTENCE_END,
    STATED,
    TAKEN_BACK,
    TICKS,
    UNKNOWN_BEHIND,
    UNKNOWN_SAID,
    UNKNOWN_STRONG,
    UNKNOWN_WHOLE,
    UNREAL,
)
from fairgate.relations.oracles.text import is_unspaced

MOST_READ = 100_000
"""Characters of an answer that are read."""
_MOST_LEAD = 2_000
"""Characters in front of a label that may announce it: it may quote a text there."""
_MOST_FILLER = 24
"""Characters between a letter and the text of its option."""
_MOST_BETWEEN = 40
"""Characters between two labels of one list."""
_CLAUSE = 120
"""Characters before a label in which its clause, and the words that announce it, are looked for."""
_CLOSING = re.compile(r"[\s*_\"'\u201d\u2019)\]}>]*")
_NEXT_WORD = re.compile(r",?\s*([^\W_]+(?:'[^\W_]+)*)")
_ARTICLE = re.compile(r"(?:^|[^\w'])an? $")
_LETTERS = "abc"
_SAID = Negation.NONE
_ECHO = re.compile(r", no[\s\"'*_.!]*$")
"""A denial at the end of a sentence, which repeats what the sentence denies."""
_NEITHER = re.compile(r"(?<![^\W_])neither[\s\"'*_]*$")
_DECORATION = " \n*_\"'\u201d\u2019)]"
_TAKING_BACK, _AFFIRMING = "-\u2014,", ":=-\u2192[|\u2611\u2705"
"""What stands behind a label, decoration left out, where `TAKEN_BACK` and `AFTER_AFFIRMED` hold."""
_JUDGING = (LETTER_TICKED, LETTER_FITS)
"""Patterns whose letter is the answer by the words behind it."""


class Status(Enum):
    """How a label stands in its sentence."""

    AFFIRMED = "affirmed"
    DENIED = "denied"
    OPEN = "open"
    """Asked about, one of several, or under a condition."""
    GUESSED = "guessed"


class NamedLabel(NamedTuple):
    """A label, option or letter where it stands in the readable part of an answer."""

    value: int
    """The phrase's number, or the option's index."""
    start: int
    end: int
    status: Status = Status.AFFIRMED
    negation: Negation = Negation.NONE
    is_explicit: bool = False
    """Whether the words before it say that it is the answer."""
    score: float | None = None
    """What a table of scores gives it."""
    why: str = ""
    """What keeps it from being affirmed, in words; empty where words before it deny it."""
    reach: int = 0
    """Where words that deny it begin at the earliest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What an answer comes to."""

    named: NamedLabel | None
    """None: nothing that counts."""
    is_complete: bool
    """Whether nothing that could follow changes it."""
    passed: tuple[NamedLabel, ...] = ()
    """Where nothing counts: the labels that stand there, with what keeps each from counting."""


@lru_cache(maxsize=4096)
def outcome(own: str, stop: Stop, *, is_open: bool, letters: bool = True) -> Statement:
    """Decide what the readable part of an answer says, without wrappers and mentions.

    `is_open`: the answer goes on, and its last sentence may too. `letters`: whether letters of
    options count. What stands behind the characters that are read counts as not known.
    """
    if len(own) > MOST_READ:
        begun = outcome(own[:MOST_READ], stop, is_open=True, letters=letters)
        return begun if begun.is_complete else Statement(named=None, is_complete=False)
    answer = _Answer(own, own.replace("\n", " "), stop, is_open)
    if stop.choice:
        labels = list(answer.texts())
        if letters:
            alone = list(answer.letters(labels))
            labels = sorted([*labels, *alone], key=lambda label: label.start) if alone else labels
        return (answer.by_first_letter(labels) if letters else None) or answer.by_sentences(labels)
    texts = answer.texts()
    first = next(texts, None)
    if first is None:
        return Statement(named=None, is_complete=False)
    return answer.by_beginning(first) or answer.by_sentences([first, *texts])


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer as it is read: with line ends, and without."""

    own: str
    flat: str
    stop: Stop
    is_open: bool

    def texts(self) -> Iterator[NamedLabel]:
        """Yield labels and options in their order."""
        forms = forms_of(self.stop.phrases)
        values = self.stop.values or range(len(forms))
        for start, end, number in named(self.flat, forms, choice=self.stop.choice):
            if forms[number] != "no" or not self._is_quantity(start, end):
                yield NamedLabel(value=values[number], start=start, end=end)

    def letters(self, texts: Sequence[NamedLabel]) -> Iterator[NamedLabel]:
        """Yield letters that stand for options behind words which say so, outside of `texts`."""
        first = LETTER_ALONE.search(self.own)
        if first is None:
            return
        last = max(self.stop.values, default=-1)
        taken = bytearray(len(self.own))
        for text in texts:
            taken[text.start : text.end] = b"\1" * (text.end - text.start)
        may_fit = not self.own.isascii() or any(word in self.own for word in LETTERS_THAT_FIT)
        patterns = (
            *((LETTER_TICKED,) if any(tick in self.own for tick in TICKS) else ()),
            *(LETTER_CUED, LETTER_JUDGED),
            *((LETTER_FITS,) if may_fit else ()),
            LETTER_STATED,
        )
        for pattern in patterns:
            # It begins with its letter, or in front of it in its line.
            begin = self.own.rfind("\n", 0, first.start()) + 1 if pattern is LETTER_JUDGED else 0
            for match in pattern.finditer(self.own, begin):
                start, end = match.span(match.lastindex or 1)
                value = _LETTERS.index(self.own[start:end])
                if not taken[start] and value <= last:
                    taken[start] = 1
                    yield NamedLabel(
                        value=value,
                        start=start,
                        end=end,
                        is_explicit=pattern in _JUDGING
                        or (pattern is LETTER_CUED and ANSWERS.match(match[0]) is not None),
                    )

    def _is_quantity(self, start: int, end: int) -> bool:
        """Tell whether "no" is none: "there is no evidence", "no problem"."""
        before, after = self.flat[max(0, start - 40) : start], self.flat[end : end + 40]
        if NO_IDIOM.match(after):
            return True
        is_article = ARTICLE_NO.search(before) and not REPORTED_NO.search(before)
        return bool(is_article and after[:2].strip(" .,!"))

    def _is_settled(self, label: NamedLabel) -> bool:
        return is_settled(self.flat, label.start, label.end, self.stop)

    def by_first_letter(self, labels: Sequence[NamedLabel]) -> Statement | None:
        """Read an answer that begins with a letter; None for others."""
        own = self.own
        match = LETTER_FIRST.match(own)
        if match is None or _LETTERS.index(match[1]) > max(self.stop.values, default=-1):
            return None
        start, end = match.span(1)
        first = next((label for label in labels if label.end - label.start > 1), None)
        if first is not None and first.start <= start and "\n" not in own[first.start : first.end]:
            return None  # `A. Smith` may be an option's text
        letter = NamedLabel(value=_LETTERS.index(match[1]), start=start, end=end)
        line = own.find("\n", end)
        line = len(own) if line < 0 else line
        behind = next(
            (label for label in labels if label.start >= end and label.end - label.start > 1), None
        )
        if behind is not None and behind.end <= line and _is_filler(own[end : behind.start]):
            is_same = behind.value == letter.value
            if is_same and negation_before(own, behind.start, begin=end, unspaced=True) is _SAID:
                return Statement(named=letter, is_complete=self._is_settled(behind))
            why = "the letter and the text behind it disagree"
            passed = (letter._replace(status=Status.DENIED, why=why),)
            return Statement(named=None, is_complete=self._is_settled(behind), passed=passed)
        if LETTER_WRONG.match(own, end, line):
            return None
        if match[1] == "a" and own[end : end + 1] == ":" and own[end + 1 : line].strip():
            # `A:` may only announce the answer.
            later = self.by_sentences([label for label in labels if label.start > end], end + 1)
            is_later = later.named is not None and (later.named.is_explicit or later.is_complete)
            return later if is_later else Statement(named=letter, is_complete=False)
        reach = end + _MOST_FILLER + max(map(len, forms_of(self.stop.phrases)), default=0)
        return Statement(named=letter, is_complete=line < len(own) or len(own) > reach)

    def by_beginning(self, label: NamedLabel) -> Statement | None:
        """Read an answer that begins with its label; None for others, and where more is read."""
        if not self._is_lead(0, label.start):
            return None
        if negation_before(self.own, label.start) is not _SAID:
            return None
        stays = self._stays(label)
        if stays is False:
            return None
        return Statement(named=label, is_complete=stays is True and self._is_settled(label))

    def _is_lead(self, begin: int, end: int) -> bool:
        """Tell whether only words that announce an answer stand in front of it."""
        if end - begin > _MOST_LEAD:
            return False
        first = ""
        for match in WORD.finditer(self.own, begin, end):
            if match[0] not in LEAD_WORDS or first in INVERTED:
                return False
            first = first or match[0]
        return True

    def _stays(self, label: NamedLabel) -> bool | None:
        """Tell whether the words right behind a label leave it as it is; None: too few."""
        rest = self.own[label.end : label.end + 80]
        closing = _CLOSING.match(rest)
        around = "" if closing is None else closing[0]
        rest = rest[len(around) :]
        if "\n" in around or (rest and rest[0] in ".!;("):
            return True
        if not rest:
            return None if self.is_open else True
        if self._is_attribute(label):
            return False
        kind = KIND.match(rest)
        if kind is not None and rest[kind.end() : kind.end() + 1].isspace():
            rest = rest[kind.end() :]
        word = _NEXT_WORD.match(rest)
        if word is None and kind is not None:
            return None if self.is_open else True
        if word is None:
            return False
        if word.end() == len(rest) and self.is_open:
            return None
        forms = forms_of(self.stop.phrases)
        return word[1] not in NEXT_WORDS and not any(form.startswith(word[1]) for form in forms)

    def _is_attribute(self, label: NamedLabel) -> bool:
        """Tell whether a label describes something else: "positive aspects", "a negative start"."""
        rest = self.own[label.end : label.end + 80]
        if EVIDENCE.match(rest):
            return True
        before = self.own[max(0, label.start - 4) : label.start]
        return _ARTICLE.search(before) is not None and (
            KIND.match(rest) is None and ATTRIBUTE.match(rest) is not None
        )

    def sentences(self, labels: Sequence[NamedLabel], begin: int) -> Iterator[tuple[int, int, str]]:
        """Yield where each sentence begins and ends, and its mark; the last one may have none."""
        own, start = self.own, begin
        starts = [label.start for label in labels]
        for mark in SENTENCE_END.finditer(own, begin):
            end, behind = mark.span()
            at = bisect_right(starts, end) - 1
            if at >= 0 and end < labels[at].end:
                continue  # inside a label
            sign = mark[0]
            if sign == "\n" and _goes_on(own[max(start, end - 80) : end]):
                continue
            if not own[start:end].isspace() and start < end:
                yield start, end, sign
            start = behind
        if own[start:].strip():
            yield start, len(own), ""

    def by_sentences(self, labels: Sequence[NamedLabel], begin: int = 0) -> Statement:
        """Decide by the sentences of an answer, from a place on."""
        tally = _Tally(self.stop)
        number = 0
        is_first = True
        # Of one label alone it does not matter how it is called.
        is_only = len(labels) == 1 and not self.is_open and self.stop.unknown < 0
        heads = self._heads(labels)
        unknown = _Unknown(self.own)
        may_be_unknown = self.stop.unknown >= 0
        for start, end, mark in self.sentences(labels, begin):
            inside = []
            while number < len(labels) and labels[number].start < end:
                inside.append(labels[number])
                number += 1
            tally.reply(self.own, start)
            if not inside and not (may_be_unknown and unknown.within(start, end)):
                is_first = False
                continue
            sentence = _Sentence(self.own, start, end, mark)
            judged = sentence.judged(inside, begin, unspaced=self.stop.choice)
            if heads:
                judged = [
                    label._replace(status=Status.OPEN, why="the heading of a list")
                    if label.start in heads and label.status is Status.AFFIRMED
                    else label
                    for label in judged
                ]
            choice = sentence.said(judged, self.stop, unknown)
            if choice is not None and choice.status is Status.AFFIRMED:
                if is_first and self._is_all(sentence, choice, judged, begin):
                    is_complete = sentence.is_closed and self._is_settled(choice)
                    return Statement(named=choice, is_complete=is_complete)
                cue = None if is_only else sentence.cue(choice)
                if cue is EXPLICIT:
                    is_complete = sentence.is_closed and self._is_settled(choice)
                    return Statement(
                        named=choice._replace(is_explicit=True), is_complete=is_complete
                    )
                if cue is CONCLUSION:
                    tally.concluded = choice._replace(is_explicit=True)
                elif self._is_stated(sentence, choice):
                    tally.stated.append((choice, self._is_bare(sentence, choice)))
            tally.add(sentence, choice, judged)
            is_first = False
        return tally.outcome()

    def _is_stated(self, sentence: _Sentence, choice: NamedLabel) -> bool:
        """Tell whether a sentence says that the label is so, and nothing else: "I'd say A."."""
        behind = self.own[choice.end : sentence.end]
        return self._is_lead(sentence.start, choice.start) and STATED.match(behind) is not None

    def _is_bare(self, sentence: _Sentence, choice: NamedLabel) -> bool:
        """Tell whether no word stands in front of a label in its sentence."""
        return WORD.search(self.own, sentence.start, choice.start) is None

    def _heads(self, labels: Sequence[NamedLabel]) -> set[int]:
        """Find labels under which evidence is listed: "Positive aspects: …", "- The man: …"."""
        heads: dict[int, int] = {}
        nouns: set[int] = set()
        for label in labels:
            if label.end - label.start < 2:
                continue
            behind = HEADS.match(self.own, label.end, label.end + 80)
            if behind is None or not HEADING.search(
                self.own[max(0, label.start - 40) : label.start]
            ):
                continue
            if behind["noun"]:
                nouns.add(label.start)
            elif self.stop.choice and not AFTER_AFFIRMED.match(self.own, label.end):
                heads[label.start] = label.value
        return nouns | (set(heads) if len(set(heads.values())) > 1 else set())

    def _is_all(
        self, sentence: _Sentence, choice: NamedLabel, judged: Sequence[NamedLabel], begin: int
    ) -> bool:
        """Tell whether the first sentence says a label and hardly anything else."""
        if not self._is_lead(begin, choice.start):
            return False
        if not self.stop.choice:
            return not self._is_attribute(choice)
        several = {label.value for label in judged if label.status is Status.AFFIRMED}
        behind = WORD.findall(self.own[choice.end : min(sentence.end, choice.end + _CLAUSE)])
        return len(several) < 2 and all(word in BEHIND_WORDS for word in behind)


def _is_filler(between: str) -> bool:
    """Tell whether only articles and denials stand between a letter and a text."""
    return len(between) < _MOST_FILLER and all(
        word in LEAD_WORDS or word in ("not", "isn't") for word in WORD.findall(between)
    )


def _goes_on(line: str) -> bool:
    """Tell whether a line announces what the next one says."""
    bare = line.rpartition("\n")[2].strip(" \"'>#*_-")
    return bare.endswith((":", "=")) or EXPLICIT.fullmatch(f"{bare}:") is not None


class _Unknown:
    """Where an answer says that something is not known: looked for once, not in every sentence."""

    def __init__(self, own: str) -> None:
        self._own = own
        self._next = -1
        """The first such place behind the last one that was asked about."""

    def within(self, start: int, end: int) -> re.Match[str] | None:
        """Find such words within a sentence. Sentences are asked about in their order."""
        if self._next < start:
            if self._own.isascii():
                pattern = UNKNOWN_BEHIND if "n't" in self._own else UNKNOWN_WHOLE
                match = pattern.search(f" {self._own}", start)
            else:
                match = UNKNOWN_SAID.search(self._own, start)
            self._next = len(self._own) if match is None else match.start()
        return UNKNOWN_SAID.search(self._own, start, end) if self._next < end else None


class _Tally:
    """What the sentences of an answer have said so far."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        self.concluded: NamedLabel | None = None
        self.stated: list[tuple[NamedLabel, bool]] = []
        """With whether the label stands alone in its sentence."""
        self._passed: list[NamedLabel] = []
        self._affirmed: list[tuple[NamedLabel, bool]] = []
        """With whether it is the only one of its sentence."""
        self._guessed: list[NamedLabel] = []
        self._asked: NamedLabel | None = None
        """The only label of the question right before."""

    def reply(self, own: str, start: int) -> None:
        """Take the sentence that begins at `start` as the answer to the question before it."""
        if self._asked is None:
            return
        reply = AFTER_NO.match(own, start)
        if reply is not None and reply["no"] is None:
            status, negation = Status.AFFIRMED, Negation.NONE
            self._affirmed.append((self._asked._replace(status=status, negation=negation), True))
        elif reply is not None and is_negated(self._asked, self.stop):
            self._affirmed.append((self._asked._replace(negation=Negation.DIRECT), True))
        self._asked = None

    def add(
        self, sentence: _Sentence, choice: NamedLabel | None, judged: Sequence[NamedLabel]
    ) -> None:
        """Take what a sentence says."""
        if "?" in sentence.mark and len(judged) == 1:
            self._asked = judged[0]
        if choice is None or choice.status is Status.GUESSED:
            self._passed += judged
            self._guessed += [] if choice is None else [choice]
            return
        values = {label.value for label in judged if label.status is Status.AFFIRMED}
        self._affirmed.append((choice, len(values) <= 1))

    def _stated(self) -> NamedLabel | None:
        """Pick the last of whole sentences about a label; bare ones, if they say the same."""
        sentences = [label for label, is_bare in self.stated if not is_bare]
        if sentences:
            return sentences[-1]
        bare = [label for label, _ in self.stated]
        return bare[0] if len({label.value for label in bare}) == 1 else None

    def outcome(self) -> Statement:
        """Decide between the sentences of an answer that does not say which one counts."""
        winner = self.concluded or self._stated()
        if winner is None and self._affirmed:
            single = [label for label, is_single in self._affirmed if is_single]
            winner = single[0] if single and self.stop.choice else self._affirmed[0][0]
        if winner is None and len({label.value for label in self._guessed}) == 1:
            winner = self._guessed[0]
        table = [label for label in self._passed if label.score is not None]
        if winner is None and len({label.value for label in table}) > 1:
            most = max(label.score or 0.0 for label in table)
            leaders = [label for label in table if label.score == most]
            winner = leaders[0] if len(leaders) == 1 else None
        passed = () if winner is not None else tuple(self._passed)
        return Statement(named=winner, is_complete=False, passed=passed)


def is_negated(label: NamedLabel, stop: Stop) -> bool:
    """Tell whether the direct denial of a label is an answer."""
    return not stop.choice and stop.phrases[label.value] in stop.negated


@dataclass(frozen=True, slots=True)
class _Sentence:
    own: str
    start: int
    end: int
    mark: str
    """What closes it; empty for a last one that may go on."""

    @property
    def is_closed(self) -> bool:
        return self.mark != ""

    def _is_asked(self) -> bool:
        if "?" not in self.mark and not QUESTION.search(
            self.own, max(self.start, self.end - 6), self.end
        ):
            return False
        is_tag = ASKED_TAG.search(self.own[max(self.start, self.end - 20) : self.end])
        return not is_tag and not PROPOSED.match(self.own, self.start)

    def judged(
        self, labels: Sequence[NamedLabel], begin: int, *, unspaced: bool
    ) -> list[NamedLabel]:
        """Tell of each label whether it is affirmed here, and what speaks against it."""
        if not labels:
            return []
        is_asked, joined = self._is_asked(), self._joined(labels)
        is_unreal = UNREAL.match(self.own, self.start) is not None
        result: list[NamedLabel] = []
        reach, is_conditional = begin, False
        for number, label in enumerate(labels):
            clause, before = self._clause_before(label.start), reach
            after = self.own[label.end : min(self.end, label.end + 80)]
            begin = max(reach, self._line_of_letter(label))
            negation = negation_before(self.own, label.start, begin=begin, unspaced=unspaced)
            if _ECHO.match(self.own, max(0, label.start - 2), self.end):
                negation = _SAID  # "I wouldn't say so, no"
            denial = AFTER_DENIED.match(after)
            condition = CONDITION.search(clause)
            sign = after.lstrip(_DECORATION)[:1]
            if sign in _TAKING_BACK and TAKEN_BACK.match(after):
                status, negation, why = Status.DENIED, Negation.LOOSE, "taken back behind it"
            elif sign in _AFFIRMING and AFTER_AFFIRMED.match(after):
                status, negation, why = Status.AFFIRMED, Negation.NONE, ""
            elif denial is not None or negation is not Negation.NONE:
                why = ""
                if denial is not None:
                    negation = Negation.DIRECT if denial["direct"] else Negation.LOOSE
                    why = f"denied by {denial[0].strip(' :=*_-')!r} behind it"
                    reach = label.end + denial.end()
                if (
                    _NEITHER.search(clause)
                    and len({other_label.value for other_label in labels}) == 1
                ):
                    negation = Negation.DIRECT
                status = Status.DENIED
            else:
                status, why = self._open(
                    label, after, clause, joined.get(number), is_asked=is_asked
                )
                if status is Status.AFFIRMED and self._is_conceded(labels, number, clause):
                    status, why = Status.OPEN, "conceded"
                if status is Status.AFFIRMED and is_unreal:
                    status, why = Status.OPEN, "in a case that is not real"
                if status is Status.AFFIRMED and (condition is not None or is_conditional):
                    status, why = Status.OPEN, "under a condition, or what is asked about"
            if exchanged_before(self.own, label.start):
                reach = label.end
            if condition is not None and condition["if"] and not CHOOSING.search(clause):
                is_conditional = True
            row = AFTER_SCORE.match(after) if status is Status.OPEN else None
            score = None if row is None else float(row["score"] or row["percent"])
            result.append(
                label  # as it was found
                if status is Status.AFFIRMED and negation is Negation.NONE
                else label._replace(
                    status=status, negation=negation, why=why, score=score, reach=before
                )
            )
        return result

    def _line_of_letter(self, label: NamedLabel) -> int:
        """Find where the line of a letter begins that stands first in it: none before it denies."""
        if label.end - label.start > 1:
            return 0
        line = self.own.rfind("\n", 0, label.start) + 1
        return 0 if self.own[line : label.start].strip(" >*_([\"'-") else line

    def _open(
        self, label: NamedLabel, after: str, clause: str, joint: str | None, *, is_asked: bool
    ) -> tuple[Status, str]:
        """Tell how a label stands that is not denied, and why it does not count."""
        if AFTER_SCORE.match(after):
            return Status.OPEN, "a member of a table of scores"
        if is_asked:
            return Status.OPEN, "inside a question"
        if joint is not None:
            return Status.OPEN, f"one of several that {joint!r} joins"
        if NOT_BOTH.match(after) and NOT_BOTH.search(self.own[label.end : self.end]):
            return Status.OPEN, "denied by the end of its sentence"
        if GUESSED.search(clause) or GUESSED_BEHIND.match(after):
            return Status.GUESSED, "only called possible"
        return Status.AFFIRMED, ""

    def _clause_before(self, at: int) -> str:
        """Cut out what stands before a place in its clause."""
        clause = self.own[max(self.start, at - _CLAUSE) : at]
        for sign in ",;:(":
            if sign in clause:
                clause = clause.rpartition(sign)[2]
        return clause

    def _is_subordinate(self, label: NamedLabel) -> bool:
        """Tell whether a label stands in a clause such as "although its end is negative"."""
        clause = self._clause_before(label.start).lstrip(" \"'*_")
        return CONCESSION.match(clause) is not None

    def _is_conceded(self, labels: Sequence[NamedLabel], number: int, clause: str) -> bool:
        """Tell whether a label is the first of a clause such as "despite some negative remarks"."""
        before = labels[number - 1].end if number else 0
        is_first = before <= labels[number].start - len(clause)
        return is_first and IN_SPITE_OF.match(clause) is not None

    def _joined(self, labels: Sequence[NamedLabel]) -> dict[int, str]:
        """Name for labels that stand in an alternative, or side by side, what joins them."""
        result: dict[int, str] = {}
        chain, words = [0], ""
        for number in range(1, len(labels) + 1):
            link = None
            if number < len(labels):
                between = self.own[labels[number - 1].end : labels[number].start]
                link = JOINED.fullmatch(between) if len(between) <= _MOST_BETWEEN else None
                if (
                    link is not None
                    and words
                    and ";" in between
                    and not (link["or"] or link["and"])
                ):
                    link = None
            if link is not None:
                chain.append(number)
                words = link["or"] or link["and"] or words
                continue
            several = len({labels[number].value for number in chain})
            if (words and several > 1) or several > 2:
                result |= dict.fromkeys(chain, words.strip() or ",")
            chain, words = [number], ""
        return result

    def said(
        self, judged: Sequence[NamedLabel], stop: Stop, unknown: _Unknown
    ) -> NamedLabel | None:
        """Pick what the sentence says; None where that is nothing."""
        affirmed = [label for label in judged if label.status is Status.AFFIRMED]
        if len(affirmed) > 1:
            main = [label for label in affirmed if not self._is_subordinate(label)]
            affirmed = main or affirmed
        open_option = self._unknown(judged, stop.unknown, unknown) if stop.unknown >= 0 else None
        if open_option is not None:
            options = [label for label in affirmed if label.value != stop.unknown]
            return self._despite(open_option, options) or open_option
        if affirmed:
            cued = (label for label in affirmed if self.cue(label) is not None)
            return affirmed[0] if len(affirmed) == 1 else next(cued, affirmed[0])
        guessed = [label for label in judged if label.status is Status.GUESSED]
        if len({label.value for label in guessed}) == 1:
            return guessed[0]
        direct = (
            label
            for label in judged
            if label.negation is Negation.DIRECT and is_negated(label, stop)
        )
        return None if guessed else next(direct, None)

    def _unknown(
        self, judged: Sequence[NamedLabel], value: int, unknown: _Unknown
    ) -> NamedLabel | None:
        """Find where the sentence says that the answer is not known."""
        if "?" in self.mark:
            return None
        wording = next((label for label in judged if label.value == value), None)
        match = unknown.within(self.start, self.end)
        if match is not None and (wording is None or match.start() < wording.start):
            return NamedLabel(value=value, start=match.start(), end=match.end())
        if wording is None or wording.status is Status.DENIED:
            return None
        return wording._replace(status=Status.AFFIRMED)

    def _despite(self, unknown: NamedLabel, options: Sequence[NamedLabel]) -> NamedLabel | None:
        """Find the option that the sentence affirms although it calls something unknown."""
        begins = CONCESSION.match(self.own[self.start : unknown.start].lstrip(" \"'*_"))
        for option in options:
            if option.start >= unknown.end:
                between = self.own[unknown.end : option.start]
                is_concluded = REASON.search(between) or self.cue(option) is not None
                if is_concluded or CONTRAST.search(between) or (begins and "," in between):
                    return option
                continue
            between = self.own[option.end : unknown.start]
            is_late = any(map(is_unspaced, self.own[unknown.start : unknown.end]))
            is_strong = UNKNOWN_STRONG.search(self.own, unknown.start, unknown.end) is not None
            is_new = is_strong or CONTRAST.search(between) or ";" in between
            if not is_late and (not is_new or CONCESSION.search(between)):
                return option
        return None

    def cue(self, label: NamedLabel) -> re.Pattern[str] | None:
        """Tell which words before a label, in the sentence, make it the answer."""
        if label.is_explicit:
            return EXPLICIT
        before = self.own[max(self.start, label.start - _CLAUSE) : label.start]
        if EXPLICIT.search(before):
            return EXPLICIT
        if CONCLUSION.search(before) or REMAINS.match(self.own, label.end, self.end):
            return CONCLUSION
        return None
