"""How a label stands in its sentence: stated, described or mentioned, denied, left open, in a list.

A sentence is read as its words' tags (`words.py`). Patterns of the tags before a label, its head,
and of those behind it, its tail, tell how it stands there.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from fairgate.domain.executions import Stop
from fairgate.relations.oracles.words import Token, tokens

_MOST_BEFORE, _MOST_BEHIND = 100, 40
"""Words before and behind a label that are read."""
_BEGINNING = re.compile(r"(?:[\s>#*•+=\"'“(_\-→~]|\d+[.)]\s)*")
MENTIONED, DESCRIBED, STATED, FINAL = range(4)
_HOW = {**dict.fromkeys("nxuNK", "denied"), "o": "left open", "t": "set aside"}

# Tags before a label; "L" is an earlier label that may be said, "D" one that is not.
_CLAUSE = re.compile(r"(?:.*[;b])?(?:,*t[^,]*,)?")
"""It begins behind a break, a word of contrast and the comma of a concession."""
_COLON = re.compile(r"(?:.*[LD].*|.{3,}):")
"""What is denied before a colon says nothing of what stands behind it; not so "not:"."""
_COMMA = re.compile(r".*,(?=.*c)")
"""What is denied before a comma says nothing of a clause with a copula behind it."""
_DESCRIBED = re.compile(r"(?:(?:^|,)[clACJ:]*|c[lACJ:]*|^[^L]*:[lACJ]*)$")
_STATED = re.compile(r"(?:^(?:[^L]*,)?[clACJ:]*|,[lACJ:]*c[clACJ:]*)$")
_FINAL = re.compile(r"A[clACJ:,]*$")
_LED = re.compile(r"(?:c|(?<![LD]):)[clACJ]*$")
_OPPOSITE = re.compile(r"[^nxuot]*n[clACJ]*")
"""A direct denial."""
_NO = re.compile(r"l*n,")
"""A denied question, before anything else."""
# Tags behind a label; "$" ends its sentence, "S" is the same label again, "L" another one.
_REST_DENIED = re.compile(r".*[nN]\$")
"""What else is said so is denied it: "this is positive, the rest is not"."""
_YES_DENIED = re.compile(r",[^,;aA(]*[nNK]")
_BEGINS = re.compile(r"l+[aA]")
"""It begins a clause of which more is said: "the negative remark about"."""
_EXPLAINED = re.compile(r"[^noKNb]*?(?:a|,A|[(:])")


class _Tails(NamedTuple):
    """Patterns of the tags behind labels, options' texts or letters."""

    denied: re.Pattern[str]
    ended: re.Pattern[str]
    """Nothing goes on with what it says."""
    listed: re.Pattern[str]
    """Another label follows it as one of several."""


_LABEL = _Tails(
    denied=re.compile(r"[lcA]*(?:K|[nNo][lcAnNo]*[a(,;bj$]|,(?:bl*)?o|:n)"),
    ended=re.compile(r"(?![,:]?d)l*(?:[aA(,;:bj$S]|c[lcA]*[a(,;bj$S])"),
    listed=re.compile(r"[j,;d]*[SL]|(?=.*j)[ljA,;]*[SL]"),
)
_TEXT = _Tails(
    denied=re.compile(r"[lA]*(?:K|(?:N|o|c[lcA]*[nNo])[lcAnNo]*[a(,;bj$L]|,(?:bl*)?o|:n)"),
    ended=re.compile(r"(?![,:]?d)(?:[aA(;:b$S]|,[aAb])"),
    listed=_LABEL.listed,
)
_LETTER = _LABEL._replace(listed=re.compile(r"[j,;:d(]*[SL]"))
"""It is in a list, too, in "B: the grandfather", where that is not B's text."""


class Named(NamedTuple):
    """A label, option or letter where it stands in the readable part of an answer."""

    value: int
    """The phrase's number, or what `Stop.values` gives it."""
    start: int
    end: int
    number: int = -1
    """The phrase's own number; -1: a letter, or words that the text does not tell."""
    sentence: int = 0
    """The number of its sentence."""
    why: str = ""
    """What keeps it from being said, in words; empty where nothing does."""
    strength: int = MENTIONED
    """DESCRIBED: a copula or colon leads to it; STATED: and nothing else stands before it."""
    is_concluded: bool = False
    """Whether a word of conclusion or contrast stands before it in its sentence."""
    is_attribute: bool = False
    """Whether it describes a noun: "positive aspects"."""
    is_aside: bool = False
    """Whether it explains a label before it."""

    @property
    def is_letter(self) -> bool:
        """Tell whether it is an option's letter."""
        return self.number < 0 and self.end - self.start == 1

    @property
    def may_be(self) -> bool:
        """Tell whether it is neither denied nor part of a reason or concession."""
        return not self.why.startswith(("denied", "set aside"))


def value_of(stop: Stop, number: int) -> int:
    """Return which answer a phrase gives."""
    return stop.values[number] if stop.values else number


def is_text(label: Named, stop: Stop) -> bool:
    """Tell whether it is an option's text, behind which the answer to a question goes on."""
    return stop.choice and not label.is_letter


def beginning_end(own: str, begin: int = 0) -> int:
    """Return where the spaces, bullets and marks end with which a sentence begins."""
    match = _BEGINNING.match(own, begin)
    return begin if match is None else match.end()


class _Doubt(NamedTuple):
    """A word that keeps a label from being said."""

    word: Token
    tag: str
    place: str
    is_direct: bool

    def why(self, own: str) -> str:
        """Say what the word does to the label."""
        return f"{_HOW[self.tag]} by {own[self.word.start : self.word.end]!r} {self.place} it"


def stand_in_sentence(
    own: str, stop: Stop, begin: int, end: int, labels: Sequence[Named]
) -> list[Named]:
    """Return the labels of a sentence, in their order, each with how it stands there."""
    words = tokens(own, beginning_end(own, begin), end)
    starts = [word.start for word in words]
    judged, before, at, is_listed, is_explained = list[Named](), list[Token](), 0, False, False
    for label, following in zip(labels, [*labels[1:], None], strict=True):
        before = [*before, *words[at : bisect_left(starts, label.start)]][-_MOST_BEFORE:]
        at = bisect_left(starts, label.end)
        until = end if following is None else following.start
        behind = [word for word in words[at : at + _MOST_BEHIND] if word.end <= until]
        sign = "$" if following is None else "S" if following.value == label.value else "L"
        head = "".join(word.before for word in before)
        tail = "".join(word.behind for word in behind) + sign
        tails = _TEXT if is_text(label, stop) else _LETTER if label.is_letter else _LABEL
        is_unknown = tails is _TEXT and label.value == stop.unknown
        doubt = None if is_unknown else _doubt(before, behind, head, tail, tails)
        if "?" in own[max(label.end, end - 4) : end]:
            why = "inside a question"
        elif "c" in head and tails is not _TEXT and _REST_DENIED.match(tail):
            why = "denied of something else"
        elif doubt is not None:
            why = doubt.why(own)
        elif is_listed:
            why = "one of several"
        elif _contradicts_itself(own[label.start : label.end], stop, head, tail):
            why = "denied by its own sentence"
        else:
            why = ""
        is_listed = (
            not why.startswith("denied")
            and sign in ("LS" if is_listed else "L")
            and tails.listed.match(tail) is not None
        )
        strength = _strength(head, tail, tails)
        named = label._replace(
            why=why or ("one of several" if is_listed else ""),
            strength=strength,
            is_concluded="b" in head or "C" in head,
            is_attribute=not strength and tail[0] in "wl",
            is_aside=is_explained and tail[0] != ":" and _LED.search(head) is None,
        )
        is_explained |= bool(strength and not named.why and _EXPLAINED.match(tail))
        if doubt is not None and doubt.is_direct and why == doubt.why(own):
            named = _opposite(named, stop)
        judged.append(named)
        if doubt is not None and doubt.place == "behind" and doubt.tag != "o":
            before, at = [], words.index(doubt.word) + 1
        tag = "u" if is_unknown else "D" if named.why else "L"
        before.append(Token(label.start, label.end, tag, ""))
    said = [label for label in judged if label.strength and not label.why and not label.is_aside]
    is_final = any(label.strength == FINAL for label in judged)
    if is_final or len({label.value for label in said}) <= 1:
        return judged
    return [label._replace(why=label.why or "one of several") for label in judged]


def _doubt(
    before: Sequence[Token], behind: Sequence[Token], head: str, tail: str, tails: _Tails
) -> _Doubt | None:
    """Return the word behind or before a label that denies it or leaves it open, if one does."""
    if tails.denied.match(tail):
        at = next(at for at, tag in enumerate(tail) if tag in "KnNo")
        return _Doubt(behind[at], tail[at], "behind", ":" in tail[:at])
    begin = _end(_COLON, head, _end(_CLAUSE, head, 0))
    clause = _end(_COMMA, head, begin)
    at = max(head.rfind(tag, clause) for tag in "nxu")
    if at < 0:
        at = max(head.rfind("o", begin), head.rfind("t", clause))
    return None if at < 0 else _Doubt(before[at], head[at], "before", _is_opposite(head))


def _is_opposite(head: str) -> bool:
    """Tell whether a label is denied directly."""
    return _OPPOSITE.fullmatch(head) is not None


def _contradicts_itself(word: str, stop: Stop, head: str, tail: str) -> bool:
    """Tell whether a "no" stands before what it would deny, or a denial behind a "yes"."""
    is_denied = word in dict(stop.negated) and _NO.match(head) is not None
    return is_denied or (word == "yes" and _YES_DENIED.match(tail) is not None)


def _strength(head: str, tail: str, tails: _Tails) -> int:
    """Tell how the words around a label say it."""
    clause = head[_end(_CLAUSE, head, 0) :]
    is_led = _DESCRIBED.search(clause) is not None and tails.ended.match(tail) is not None
    if not is_led or (tails is _LABEL and len(clause) <= 1 and _BEGINS.match(tail)):
        return MENTIONED
    if _FINAL.search(head):
        return FINAL
    return STATED if _STATED.search(clause) else DESCRIBED


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a pattern ends; where it does not match, where it would have begun."""
    match = pattern.match(text, at)
    return at if match is None else match.end()


def _opposite(label: Named, stop: Stop) -> Named:
    """Return the label that the task means by a direct denial, if it says so."""
    phrase = stop.phrases[label.number] if label.number >= 0 else ""
    if phrase not in (negated := dict(stop.negated)):
        return label
    number = stop.phrases.index(negated[phrase])
    return label._replace(value=value_of(stop, number), number=number, strength=STATED, why="")
