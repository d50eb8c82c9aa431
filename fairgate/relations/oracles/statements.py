"""What an answer says, by three rules: it says a label, it concludes one, or it is unreadable.

The rules stand in docs/reference/reading-answers.md. All is decided within a sentence and some
hundred characters of it, so reading takes time in proportion to an answer's length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

from fairgate.domain.executions import Stop
from fairgate.relations.oracles.reading import (
    CJK,
    forms_of,
    own_part,
    pattern_of,
    readable_part,
    repeated,
)
from fairgate.relations.oracles.text import folded, is_mark, without_unfinished_tag
from fairgate.relations.oracles.words import WORD, words

MOST_READ, _MOST_NAMED, _REACH, _NEAR, _LIST = 100_000, 200, 300, 9, 40
"""Characters of an answer, and labels in it, that are read; characters before a label that may deny
it, between a letter and its option's text, and between labels of one list."""
_LEAST_LEFT, _MOST_CUT = 4, 3
"""Letters that are left of a label that was cut, and letters that are missing at its front."""
_MOST_HEAD = 2
"""Words before a colon that belong to the clause behind it: "not:", "first impression:"."""
_SENTENCE_END = re.compile(
    r"[.!?\n\u3002\uff01\uff1f](?:(?<=[\u3002\uff01\uff1f])|"
    r"(?<=\n)(?<![:=]\n)(?<![:=][*_]\n)(?<!:\*\*\n)|(?<=[.!?])(?<!\b[^\W\d_][.!?])(?<!\.[.!?])"
    r"(?:(?<=[!?])(?<![!?][!?])[!?]*|(?<=\.)(?<!\n\d\.)(?<!\A\d\.)(?!\.))(?=[\"'”’»)\]*_}]*\s))"
)
"""It begins with one character of a set, for which the search looks quickly."""
_CLAUSE_END = re.compile(r"[;:(|→\u2014\u2015\n\u3001]|\s-+\s|(?<!\.)\.\s")
_DECORATION = re.compile(r"[\s\"'*_)\]}>”’»」』]*")
_BEHIND_LETTER = re.compile(r"[\s\"'*_)\]}>:=\u2013-]*")
_BEGINNING = re.compile(r"(?:[\s>#*•+=\"'“(\[<_\-→~]|\d+[.)]\s)*")
_ANNOUNCED = re.compile(r"[:=→][\s\"'*_(\[<{“「]*$")
_HEADED = re.compile(
    r"[\s\"'*_)\]]*[:=|][\s\"'*_]*(\d|(?:false|no|none|nein|non|null)\b)|[\"'],\s*(\d)"
)
"""The score of a label, or its denial as a value: "toxic: no"."""
_UNMARKED = re.compile(r"(?:\[ ?\]|[☐⬜❌✗])[\s*_]*$|[!¬][*_\"']*$")
_CROSSED = re.compile(r"[ |*_)\]:.-]*(?:[❌✗✘☐⬜]|\[ ?\](?= *(?:\n|$)))")
_OR = r"(?:or|and|oder|und|ou|et|y)"
_END_OF_LINE = r"\s*(?:$|\n)"
_LETTER = re.compile(
    r"[(\[{$>\"'*_|]\s?([abc])\s?[)\]}$<\"'*_|]|(?<![^\W_])([abc])\)|"  # (b) b)
    r"(?:(?<=\n)|^\s*|(?<=[*_>#-] )|(?<=\n[*_>])|(?<=[.!?;] ))[*_\"'“<]*([abc])"
    r"(?=[\"'*_>”]*(?:$|[.,:;\n]|\s?[-\u2013\u2014]\s|\s(?:is|was|ist|est|es|è|é)\s)|[*_\"'>”]+\s)|"
    rf"(?<![^\W_])([abc])(?=\s?(?:[/&,]|{_OR})\s?[abc](?![^\W_]))|"  # a or b
    r"(?:(?<=[abc] or )|(?<=[abc] and )|(?<=[abc]/))([abc])(?![^\W_])|"
    rf"(?<![^\W_{CJK}])(a(?=[\"'*_)\]}}>”]*[.!\u3002]{_END_OF_LINE})|"  # it is b
    rf"[bc](?=[\"'*_)\]}}>”.!\u3002]*{_END_OF_LINE}))"
)
"""A letter that stands for an option by how it is set, or where its line ends with it."""
_CUED = re.compile(
    r"(?:(?:answer|option|choice|letter|pick|choose|select|antwort|réponse|respuesta|risposta|"
    r"resposta|antwoord|opción|opção|opzione|letra|buchstabe)(?![^\W_])|选项|選項|答案|정답|보기|답|"
    r"答え|正解|選択肢|选|選)"
    r"(?:[\s:=*_\"'“(\[<{은는이がは是为「]|(?:is|(?:would|must|should) be|has to be|"
    r"est|ist|es|è|é|lautet|la|correcta|corretta|correta)(?![^\W_]))*"
    rf"(?<![^\W_{CJK}])([abc])(?=[\"'*_)\]}}>”]*(?:$|[.,:;!\n\u3002」]|\s?[-\u2013\u2014]\s|[{CJK}])|"
    r"[)\]}]|\s(?:because|since|as|is|here|입)\s?)"
)
"""A letter behind a word that announces one."""
_DENIALS = ("denied", "loose", "open")
_LEADS = ("lead", "kind", "copula", "modifier", "answer", "conclusion", "contrast")


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

    @property
    def is_letter(self) -> bool:
        """Tell whether it is an option's letter."""
        return self.number < 0 and self.end - self.start == 1


class Statement(NamedTuple):
    """What an answer comes to, and every label that it names."""

    said: Named | None
    named: tuple[Named, ...]


@lru_cache(maxsize=4096)
def statement(plain: str, stop: Stop, *, letters: bool = True) -> Statement:
    """Decide what the readable part of an answer says. `letters`: whether an option's may stand.

    An answer of which more than is read is left says only what nothing behind could change.
    """
    is_cut = len(plain) > MOST_READ
    plain = plain[:MOST_READ]
    if stop.first_named:
        first = next(_labels(plain, stop), None)
    else:
        first = _beginning(plain, stop, letters=letters, is_open=is_cut)
    if first is not None or stop.first_named or is_cut:
        return Statement(first, () if first is None else (first,))
    answer = _Answer(own_part(plain, forms_of(stop.phrases), stop.shown), stop, letters=letters)
    return Statement(answer.said(), tuple(answer.named))


def is_settled(text: str, stop: Stop) -> bool:
    """Tell whether what an answer says can no longer change, whatever is appended to `text`."""
    finished = without_unfinished_tag(text.rstrip("\ufffd"), stop.thinking)
    plain = readable_part(finished, stop.marker, stop.thinking)
    if not stop.first_named:
        return _beginning(plain, stop, is_open=True) is not None
    first = next(_labels(plain, stop), None)
    longest = max(map(len, forms_of(stop.phrases)))
    return first is not None and len(plain) > first.start + longest + 1


def _beginning(
    plain: str, stop: Stop, *, letters: bool = True, is_open: bool = False
) -> Named | None:
    """Return the label that an answer's first sentence says and nothing else; None without one.

    The sentence ends with its mark, or with "because" right behind the label; nothing that follows
    changes it. `is_open`: the answer goes on, and only what ends is a sentence.
    """
    begin = _span(_BEGINNING, plain, 0)
    end = _SENTENCE_END.search(plain, begin)
    label = pattern_of(forms_of(stop.phrases), choice=stop.choice).search(plain, begin)
    reason = label and WORD.match(plain, _span(_DECORATION, plain, label.end()))
    if reason and reason[0] in words("reason").single and (end is None or reason.end() < end.end()):
        end = reason if plain[reason.end() : reason.end() + 1].isspace() else end
    if end is None and is_open:
        return None
    return _first(plain if end is None else plain[: end.end()], begin, stop, letters)


@lru_cache(maxsize=4096)
def _first(sentence: str, begin: int, stop: Stop, letters: bool) -> Named | None:  # noqa: FBT001
    answer = _Answer(sentence, stop, letters=letters)
    label = _one([label for label in answer.named if not label.why], answer.named)
    if label is None or label != answer.named[0] or len(sentence) > _REACH + label.end:
        return None
    is_led = _leads().issuperset(WORD.findall(sentence, begin, label.start))
    is_repeated = any(a <= label.start < b for a, b in repeated(sentence, stop.shown))
    return label if is_led and answer.ends_behind(label) and not is_repeated else None


@cache
def _leads() -> frozenset[str]:
    return frozenset().union(*(words(kind).single for kind in _LEADS))


@cache
def _firsts() -> frozenset[str]:
    """Return the words with which denials begin: a cheap look."""
    return frozenset().union(*({*words(kind).single, *words(kind).by_first} for kind in _DENIALS))


def _span(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a pattern that matches nothing, too, ends."""
    match = pattern.match(text, at)
    return at if match is None else match.end()


def _labels(plain: str, stop: Stop) -> Iterator[Named]:
    """Yield labels and options in their order."""
    forms = forms_of(stop.phrases)
    for match in pattern_of(forms, choice=stop.choice).finditer(plain.replace("\n", " ")):
        number = forms.index(match[0])
        if not is_mark(plain[match.end() : match.end() + 1] or " "):
            value = stop.values[number] if stop.values else number
            yield Named(value, *match.span(), number)


def _one(said: Sequence[Named], labels: Sequence[Named]) -> Named | None:
    """Return the first of labels that are said if they are all one, and nowhere denied."""
    denied = {label.value for label in labels if label.why.startswith(("denied", "followed"))}
    is_one = len({label.value for label in said}) == 1 and said[0].value not in denied
    return said[0] if is_one else None


class _Answer:
    """What an answer says itself, and every label in it."""

    def __init__(self, own: str, stop: Stop, *, letters: bool) -> None:
        self.own, self.stop = own, stop
        self.ends = [match.end() for match in _SENTENCE_END.finditer(own)]
        labels = list(islice(_labels(own, stop), _MOST_NAMED))
        if stop.choice:
            taken = {at for label in labels for at in range(label.start, label.end)}
            others = (label for label in self._others(letters=letters) if label.start not in taken)
            labels = sorted([*labels, *others], key=lambda label: label.start)
        named = list(map(self._judged, [*self._cut(labels), *labels[:_MOST_NAMED]]))
        for number in range(1, len(named)):
            named[number - 1 : number + 1] = self._together(*named[number - 1 : number + 1])
        self.named = named

    def said(self) -> Named | None:
        """Return the label that the answer says or concludes."""
        explicit = self._explicit()
        if explicit or any(one.why.startswith("followed by a number") for one in self.named):
            return _one(explicit, ())
        spans = list(zip([0, *self.ends], [*self.ends, len(self.own)], strict=True))
        spans = [span for span in spans if any(map(str.isalnum, self.own[slice(*span)]))]
        whole = self._only(self.named)
        if whole is not None or not spans:
            return whole
        begin, end = spans[0]
        line = self.own.find("\n", end - 1)
        for last in (end, len(self.own) if line < 0 else line):
            inside = [label for label in self.named if begin <= label.start < last]
            only = self._only(inside)
            label = only if only is not None and self._is_stated(only) else self._led_one(inside)
            if label is not None:
                return label
        for begin, end in reversed(spans):
            inside = [label for label in self.named if begin <= label.start < end]
            if inside and any(words("conclusion").found(self.own[begin : inside[-1].start])):
                label = self._only(inside) or self._led_one(inside)
                if label is not None:
                    return label
        return None

    def _only(self, labels: Sequence[Named]) -> Named | None:
        """Return the one label that is said among others that are not; None for several."""
        return _one([label for label in labels if not label.why], labels)

    def _led_one(self, labels: Sequence[Named]) -> Named | None:
        """Return the one of several labels that stands behind a copula: "is mixed, with …"."""
        led = [label for label in labels if not label.why and self._is_led(label)]
        return _one(led, labels) if all(map(self.ends_behind, led)) else None

    def _explicit(self) -> list[Named]:
        """Return the labels right behind words that name the final answer."""
        said: list[Named] = []
        for label in self.named:
            before = self.own[max(0, label.start - 120) : label.start]
            places = [end for _, end in words("answer").found(before)]
            between = before[max(places, default=0) :]
            lead = WORD.findall(between)
            if not places or label.why or (lead and _SENTENCE_END.search(between)):
                continue
            is_lead = (words("copula").single | words("modifier").single).issuperset(lead)
            if is_lead and (not lead or self._is_behind_copula(label)):
                near = range(label.start, label.end + _NEAR)
                said += [one for one in self.named if one.start in near and not one.why]
        return said

    def _sentence(self, at: int) -> tuple[int, int]:
        number = bisect_right(self.ends, at)
        return [0, *self.ends][number], [*self.ends, len(self.own)][number]

    def _others(self, *, letters: bool) -> Iterable[Named]:
        """Yield letters that stand for options, and words that the text does not tell."""
        last, places = max(self.stop.values, default=-1), set[tuple[int, int]]()
        for pattern in (_LETTER, _CUED) if letters else ():
            found = islice(pattern.finditer(self.own), _MOST_NAMED)
            places |= {match.span(match.lastindex or 0) for match in found}
        for start, end in places:
            value = "abc".index(self.own[start])
            if value <= last:
                yield Named(value, start, end)
        if self.stop.unknown >= 0:
            for start, end in islice(words("unknown").found(self.own), _MOST_NAMED):
                yield Named(self.stop.unknown, start, end)

    def _cut(self, labels: Sequence[Named]) -> list[Named]:
        """Return the label of which an answer begins with the end, or ends with the beginning."""
        own, forms = self.own, list(enumerate(forms_of(self.stop.phrases)))
        first = WORD.search(own)
        begin = first.start() if first is not None else 0
        word = re.match(
            r"([^\W\d_]+(?:-[^\W\d_]+)*)[\s\"'*_)]*(?:$|[.,!;:])", own[begin : begin + 80]
        )
        found = []
        if word is not None and (not labels or labels[0].start > begin):
            size = len(word[1])
            for number, form in forms:
                if (
                    form.endswith(word[1])
                    and size >= _LEAST_LEFT
                    and 0 < len(form) - size <= _MOST_CUT
                ):
                    found.append(Named(self._value(number), begin, begin + size, number))
        for number, form in () if labels or found else forms:
            for size in range(max(_LEAST_LEFT, (len(form) + 1) // 2), len(form)):
                start = len(own) - size
                if own.endswith(form[:size]) and not own[start - 1 : start].isalnum():
                    found.append(Named(self._value(number), start, len(own), number))
        return found[:1] if len({label.value for label in found}) == 1 else []

    def _value(self, number: int) -> int:
        return self.stop.values[number] if self.stop.values else number

    def _judged(self, label: Named) -> Named:
        """Say what keeps a label from being said, or what it means where it is denied."""
        own, (_, end) = self.own, self._sentence(label.start)
        decoration = _BEHIND_LETTER if label.is_letter else _DECORATION
        behind = words("behind").at(own, _span(decoration, own, label.end))
        headed = _HEADED.match(own, label.end, label.end + _LIST)
        if _UNMARKED.search(own, max(0, label.start - 9), label.start):
            return label._replace(why="denied by the sign before it")
        if _CROSSED.match(own, label.end):
            return label._replace(why="denied by the sign behind it")
        if "?" in own[max(label.end, end - 4) : end]:
            return label._replace(why="inside a question")
        if behind:
            return label._replace(why=f"denied by {behind!r} behind it")
        if label.number < 0 and not label.is_letter:
            return label  # that the text does not tell denies by itself
        if headed is not None and (headed[2] or headed[1].isdigit()):
            return label._replace(why="followed by a number")
        if headed is not None:
            return self._opposite(label) or label._replace(why=f"followed by {headed[1]!r}")
        return self.denied(label)

    def _opposite(self, label: Named) -> Named | None:
        """Return the label that the task means by a direct denial."""
        phrase = self.stop.phrases[label.number] if self.stop.negated and label.number >= 0 else ""
        meant = dict(self.stop.negated).get(phrase)
        if meant is None:
            return None
        number = forms_of(self.stop.phrases).index(folded(meant))
        return label._replace(value=self._value(number), number=number)

    def denied(self, label: Named) -> Named:
        """Say which words of its clause before a label deny it or leave it open."""
        begin, _ = self._sentence(label.start)
        before = self.own[max(begin, label.start - _REACH) : label.start].rstrip(" \n\"'*_([{<“")
        is_plain = before.isascii() and "n't" not in before
        if is_plain and _firsts().isdisjoint(WORD.findall(before)):
            return label
        clause = before[_clause_begin(before, pattern_of(forms_of(self.stop.phrases))) :]
        harmless = list(words("harmless").found(clause))
        direct, loose, opens = (
            [
                (start, end)
                for start, end in words(kind).found(clause)
                if not any(a < end and start < b for a, b in harmless)
            ]
            for kind in _DENIALS
        )
        if len(direct) == 1 and not loose and not opens:
            between = WORD.findall(clause, direct[0][1])
            opposite = self._opposite(label)
            if opposite is not None and words("filler").single.issuperset(between):
                return opposite
        if not direct and not loose and not opens:
            return label
        start, end = max(direct + loose or opens)
        how = "denied" if direct or loose else "left open"
        return label._replace(why=f"{how} by {clause[start:end]!r} before it")

    def _together(self, left: Named, right: Named) -> tuple[Named, Named]:
        """Judge neighbours: "A or B" stand or fall together, a letter and another text disagree."""
        between = self.own[left.end : right.start]
        joiners = WORD.findall(between)
        if len(between) > _LIST or not words("joiner").single.issuperset(joiners):
            return left, right
        is_beside = left.is_letter and not joiners and len(between) <= _NEAR
        why = left.why or right.why
        if left.value == right.value:
            return left, right._replace(why=left.why if is_beside else right.why)
        if is_beside and not right.is_letter:
            why = "denied by the letter and the text that disagree"
            return left._replace(why=why), right._replace(why=why)
        if not joiners:
            return left, right
        return left._replace(why=left.why or why), right._replace(why=right.why or why)

    def ends_behind(self, label: Named) -> bool:
        """Tell whether what stands behind a label describes nothing else: no "positive aspects"."""
        own, (_, end) = self.own, self._sentence(label.start)
        at = _span(_DECORATION, own, label.end)
        word = WORD.match(own, at)
        while word is not None and word[0] in words("kind").single:
            at = _span(_DECORATION, own, word.end())
            word = WORD.match(own, at)
        following = next((one for one in self.named if one.start >= label.end), None)
        is_same = following is None or following.value == label.value
        if following is not None and not is_same and following.start - label.end <= _LIST:
            between = WORD.findall(own, label.end, following.start)
            if words("joiner").single.issuperset(between):
                return False
        if at >= end or own[at] in ",.!;(\u2014\u2013-\u3002":
            return not own.startswith("..", at)
        if own[at] == ":":  # the letter of the option behind it
            return following is not None and is_same and following.start <= at + _NEAR
        return word is not None and word[0] in words("aside").single

    def _is_behind_copula(self, label: Named) -> bool:
        """Tell whether a copula, or a colon, leads to a label."""
        begin, _ = self._sentence(label.start)
        before = self.own[max(begin, label.start - _REACH) : label.start]
        for word in reversed(WORD.findall(before.rpartition(",")[2])):
            if word in words("copula").single or word in words("seeming").single:
                return True
            if word not in words("modifier").single:
                break
        return _ANNOUNCED.search(before) is not None

    def _is_led(self, label: Named) -> bool:
        """Tell whether a copula leads to a label, or only words that may begin an answer."""
        begin, _ = self._sentence(label.start)
        lead = WORD.findall(self.own, begin, label.start)
        return self._is_behind_copula(label) or _leads().issuperset(lead)

    def _is_stated(self, label: Named) -> bool:
        """Tell whether a sentence says its one label of the whole text."""
        behind = WORD.match(self.own, _span(_DECORATION, self.own, label.end))
        is_kind = behind is not None and behind[0] in words("kind").single
        return self.ends_behind(label) and (is_kind or self._is_led(label))


def _clause_begin(before: str, labels: re.Pattern[str]) -> int:
    """Find where the last clause of a text begins; at a comma where it has a verb of its own."""
    begin = 0
    for ending in _CLAUSE_END.finditer(before):
        head = WORD.findall(before, begin, ending.start())
        is_led = ending[0] in ":\u2014" and len(head) <= _MOST_HEAD
        if not is_led or words("particle").single.issuperset(head):
            begin = ending.end()
    begin += max((end for _, end in words("contrast").found(before[begin:])), default=0)
    at = len(before)
    while (comma := before.rfind(",", begin, at)) >= 0:
        piece = before[max(begin, before.rfind(",", begin, comma) + 1) : comma]
        head = WORD.findall(piece)
        is_new = words("particle").single.issuperset(head) or head[0] in words("subordinate").single
        if is_new or labels.search(piece) or any(words("copula").found(before[comma:])):
            return comma + 1
        at = comma
    return begin
