"""What an answer says: it states a label, it concludes one, or it is unreadable.

The rules stand in docs/reference/reading-answers.md. Every sentence that names a label is read as
its words' tags (`words.py`): what the tags around a label match tells how it stands there.
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
from fairgate.relations.oracles.text import is_mark, without_unfinished_tag
from fairgate.relations.oracles.words import CJK, WORD, Token, tokens

MOST_READ, _MOST_NAMED, _MOST_BEFORE, _MOST_BEHIND = 100_000, 200, 100, 40
"""Characters of an answer, labels in it, and words before and behind a label that are read."""
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
_BEGINNING = re.compile(r"(?:[\s>#*•+=\"'“(_\-→~]|\d+[.)]\s)*")
_LETTER = re.compile(
    rf"(?<![^\W_{CJK}])(?<!\w')(?<!&)(?:[bc](?![^\W_{CJK}]|'\w|&|-\w)|a(?=[^\w\s&])(?!['-]\w)|"
    rf"a(?=[_{CJK}]|\s*$|\s*\n|\s(?:is|was|because|since|as|here|or|and|ist|est|es|è|\W)(?!\w)))"
)
"""A letter by itself; "a" where it is no article."""
_FIRST_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*(?![^\W_])")
_LAST_WORD = re.compile(r"(?<![^\W_])[^\W\d_]+(?:-[^\W\d_]*)*\Z")

MENTIONED, DESCRIBED, STATED, FINAL = range(4)
_HOW = {**dict.fromkeys("nxuNK", "denied"), "o": "left open", "t": "set aside"}

# Tags before a label; "L" is an earlier label that may be said, "D" one that is not.
_OTHER_CLAUSE = re.compile(r".*(?:;|(?<!n)b|(?<![^,bLD])n,|[,b],?n:)|n,")
"""A break, a word of contrast, and a "no," that stands alone."""
_CONCEDED = re.compile(r",*t[^,]*,")
_HEAD = re.compile(r"(?:.*[LD].*|.{3,}):")
"""What is denied before a colon says nothing of what stands behind it; not so "not:"."""
_COMMA = re.compile(r".*,(?=.*c)")
"""What is denied before a comma says nothing of a clause with a copula behind it."""
_LED = re.compile(r"(?:(?:^|,|L.*[jJ])[clACJ:]*|c[lACJ:]*|^[^L]*:[lACJ]*)$")
_STATED = re.compile(r"(?:^(?:[^L]*,)?[clACJ:]*|(?:,|L.*[jJ])[lACJ:]*c[clACJ:]*)$")
_FINAL = re.compile(r"A[clACJ:,;b]*$")
_OPPOSITE = re.compile(r"[^nxuot]*n[clACJ]*")
# Tags behind a label; "$" ends its sentence, "S" is the same label again, "L" another one.
_COLON = r"[lcA]*:(?:S|[aAl]?[,;$L]|[^,;$L][^,;$L])"
"""Behind it stands an explanation, "yes", or nothing."""
_ENDED = re.compile(rf"(?![,:]?d)(?:l*[aA,;bj$S]|l*c[lcA]*[a,;bj$S]|{_COLON})")
_TEXT_ENDED = re.compile(rf"(?![,:]?d)(?:[aA,;bj$S]|{_COLON})")
_DESCRIBES = re.compile(r"l+[aA]")
"""It begins a clause and describes what more is said of: "the negative remark about"."""
_DENIED = re.compile(r"[lcA]*(?:K|[nNo][lcAnNo]*[a,;bj$]|,o|:n[,;$L]|(?:N|c[lcA]*n)[lcAnN]*L)")
_TEXT_DENIED = re.compile(r"[lA]*(?:K|(?:N|o|c[lcA]*[nNo])[lcAnNo]*[a,;bj$L]|,o|:n[,;$L])")
_ELSE_DENIED = re.compile(r".*[nN]\$")
"""What else is said so is denied it: "this is positive, the rest is not"."""
_LIST = re.compile(r"[j,;d]*[SL]|(?=.*j)[ljA,;]*[SL]")
_LETTER_LIST = re.compile(r"[j,;:d]*[SL]|(?=.*j)[ljA,;:]*[SL]")
"""So is "B: the grandfather", where that is not B's text."""


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
    strength: int = MENTIONED
    """DESCRIBED: a copula or colon leads to it; STATED: and nothing else stands before it."""
    is_concluded: bool = False
    """Whether a word of conclusion or contrast stands before it in its sentence."""

    @property
    def is_letter(self) -> bool:
        """Tell whether it is an option's letter."""
        return self.number < 0 and self.end - self.start == 1

    @property
    def may_be(self) -> bool:
        """Tell whether it is neither denied nor part of a reason or concession."""
        return not self.why.startswith(("denied", "set aside"))


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
    first = next(_labels(plain, stop), None) if stop.first_named else _beginning(plain, stop)
    if first is not None or stop.first_named or is_cut:
        return Statement(first, () if first is None else (first,))
    named = _named(plain, stop)
    return Statement(_said(named, stop), named)


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

    The first sentence states it and no other one, and so does no other sentence up to one of words
    enough that denies, doubts, contrasts and concludes nothing. What follows that one is not read.
    """
    first, begin, plain_words = None, 0, 0
    for match in _SENTENCE_END.finditer(plain):
        end = match.end()
        if first is None:
            if WORD.search(plain, begin, end) is None:
                begin = end
                continue
            first = _one(_named(plain[:end], stop))
            if first is None or first.strength < STATED:
                return None
        elif _NEXT_CASE.match(plain, begin):
            return first
        else:
            named = _named(plain[begin:end], stop)
            if any(label.value != first.value and label.strength for label in named):
                return None
            words = tokens(plain, begin, end)
            is_doubtful = any(word.before in "bCnxuot" for word in words)
            plain_words += 0 if is_doubtful else len(words)
            if plain_words >= _MOST_PLAIN:
                return first
        begin = end
    return None


def _said(named: Sequence[Named], stop: Stop) -> Named | None:
    """Return the label that an answer says or concludes; None where statements disagree."""
    said = [label for label in named if not label.why]
    strongest = max((label.strength for label in said), default=MENTIONED)
    concluded = [
        label for label in said if label.is_concluded and (label.strength or _is_text(label, stop))
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
    return only if is_alone and (strongest or _is_text(only, stop)) else None


def _is_text(label: Named, stop: Stop) -> bool:
    """Tell whether it is an option's text, behind which the answer to a question goes on."""
    return stop.choice and not label.is_letter


def _one(labels: Sequence[Named]) -> Named | None:
    """Return the strongest of the labels that are said if they are all one, and nowhere denied."""
    said = [label for label in labels if not label.why]
    denied = {label.value for label in labels if label.why.startswith("denied")}
    is_one = len({label.value for label in said}) == 1 and said[0].value not in denied
    return max(said, key=lambda one: (one.strength, one.number >= 0)) if is_one else None


def _labels(plain: str, stop: Stop) -> Iterator[Named]:
    """Yield labels and options in their order."""
    forms = forms_of(stop.phrases)
    for match in pattern_of(forms, inside=not stop.first_named).finditer(plain.replace("\n", " ")):
        if not is_mark(plain[match.end() : match.end() + 1] or " "):
            number = forms.index(match[0])
            yield Named(_value(stop, number), *match.span(), number)


def _value(stop: Stop, number: int) -> int:
    return stop.values[number] if stop.values else number


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
    sentences = [*pairwise([0, *ends, len(own)])]
    judged = list[Named]()
    for number, inside in groupby(labels, lambda label: bisect_right(ends, label.start)):
        judged += _judged(own, stop, *sentences[number], list(inside))
    return tuple(judged)


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
    begin, cut = _span(_BEGINNING, own, 0), []
    if labels and labels[0].start <= begin:
        return []
    first = _FIRST_WORD.match(own[begin : begin + 80])
    last = None if labels else _LAST_WORD.search(own[-80:])
    for number, form in enumerate(forms_of(stop.phrases)):
        named = Named(_value(stop, number), begin, len(own), number)
        size = len(first[0]) if first and form.endswith(first[0]) else 0
        if size >= _LEAST_LEFT and 0 < len(form) - size <= _MOST_CUT:
            cut.append(named._replace(end=begin + size))
        size = len(last[0]) if last and form.startswith(last[0]) else 0
        if max(_LEAST_LEFT, len(form) // 2) <= size < len(form):
            cut.append(named._replace(start=len(own) - size))
    return cut[:1] if len({label.value for label in cut}) == 1 else []


def _span(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a pattern that matches nothing, too, ends."""
    match = pattern.match(text, at)
    return at if match is None else match.end()


def _judged(own: str, stop: Stop, begin: int, end: int, labels: Sequence[Named]) -> list[Named]:
    """Return the labels of a sentence, each with how it stands."""
    judged, before, place, is_listed = list[Named](), list[Token](), 0, False
    words = tokens(own, _span(_BEGINNING, own, begin), end)
    for label, following in zip(labels, [*labels[1:], None], strict=True):
        while place < len(words) and words[place].end <= label.start:
            before.append(words[place])
            place += 1
        while place < len(words) and words[place].start < label.end:
            place += 1
        until = end if following is None else following.start
        behind = [one for one in words[place : place + _MOST_BEHIND] if one.end <= until]
        sign = "$" if following is None else "S" if following.value == label.value else "L"
        tags = "".join(word.behind for word in behind) + sign
        before = before[-_MOST_BEFORE:]
        head = "".join(word.before for word in before)
        is_text = _is_text(label, stop)
        is_unknown = is_text and label.value == stop.unknown
        why, is_opposite, doubt = "", False, _doubt(head)
        if "?" in own[max(label.end, end - 4) : end]:
            why = "inside a question"
        elif "c" in head and not is_text and _ELSE_DENIED.match(tags):
            why = "denied of something else"
        elif not is_unknown and (_TEXT_DENIED if is_text else _DENIED).match(tags):
            at = next(at for at, tag in enumerate(tags) if tag in "KnNo")
            why = f"{_HOW[tags[at]]} by {own[behind[at].start : behind[at].end]!r} behind it"
            is_opposite = ":" in tags[:at]
            if tags[at] != "o":
                before, place = [], place + at + 1
        elif not is_unknown and doubt >= 0:
            word = before[doubt]
            why = f"{_HOW[word.before]} by {own[word.start : word.end]!r} before it"
            is_opposite = _OPPOSITE.fullmatch(head) is not None
        elif is_listed:
            why = "one of several"
        is_listed = (
            not why.startswith("denied")
            and sign in ("LS" if is_listed else "L")
            and (_LETTER_LIST if label.is_letter else _LIST).match(tags) is not None
        )
        is_ended = _is_ended(tags, head, stop, is_text=is_text)
        named = label._replace(
            strength=_strength(head) if is_ended else MENTIONED,
            why=why or ("one of several" if is_listed else ""),
            is_concluded="b" in head or "C" in head,
        )
        judged.append(_opposite(named, stop) if is_opposite else named)
        tag = "u" if is_unknown else "D" if judged[-1].why else "L"
        before.append(Token(label.start, label.end, tag, ""))
    values = {one.value for one in judged if one.strength and not one.why}
    if len(values) > 1 and not any(one.strength == FINAL for one in judged):
        return [one._replace(why=one.why or "one of several") for one in judged]
    return judged


def _strength(tags: str) -> int:
    """Tell how the words before a label say it."""
    clause = tags[_clause(tags) :]
    if _LED.search(clause) is None:
        return MENTIONED
    if _FINAL.search(tags):
        return FINAL
    return STATED if _STATED.search(clause) else DESCRIBED


def _clause(tags: str) -> int:
    """Return where the clause begins that a label behind the tags is in."""
    return _span(_CONCEDED, tags, _span(_OTHER_CLAUSE, tags, 0))


def _doubt(tags: str) -> int:
    """Return which word before a label denies it or leaves it open; -1: none."""
    head = _span(_HEAD, tags, _clause(tags))
    begin = _span(_COMMA, tags, head)
    denial = max(tags.rfind(tag, begin) for tag in "nxu")
    if denial >= 0:
        return denial
    return max(tags.rfind("o", head), tags.rfind("t", begin))


def _is_ended(tags: str, head: str, stop: Stop, *, is_text: bool) -> bool:
    """Tell whether nothing behind a label goes on with what it says."""
    if not (_TEXT_ENDED if is_text else _ENDED).match(tags):
        return False
    return stop.choice or len(head) - _clause(head) > 1 or not _DESCRIBES.match(tags)


def _opposite(label: Named, stop: Stop) -> Named:
    """Return the label that the task means by a direct denial, if it says so."""
    phrase = stop.phrases[label.number] if label.number >= 0 else ""
    if phrase not in (negated := dict(stop.negated)):
        return label
    number = stop.phrases.index(negated[phrase])
    return label._replace(value=_value(stop, number), number=number, strength=STATED, why="")
