"""Judges a pair of texts by reading them: a follow-up is its source with the one declared edit.

`fairgate lint` judges by it: nothing is known but the two texts, the kind of edit and a catalogue
of attributes. What a run executes is judged by the rule of its relation, which knows the declared
edit (`relation.py`, `written_pairs.py`); the tests compare the two. Three questions are asked: do
the mentioned attributes differ as the edit says, are all other words the same but for what English
makes agree (articles, pronouns, "who", commas and "and" of a list), and is the result good English.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairgate.domain.attributes import Dimension
from fairgate.domain.errors import DataError
from fairgate.domain.wording import harmless, listed
from fairgate.features.lint.mentions import (
    EditKind,
    Item,
    Lexicon,
    Mention,
    Token,
    edit_kind,
    mention_fault,
)
from fairgate.features.lint.pair_unknown import (
    Walk,
    WordAgreement,
    common_beginning,
    left_behind,
    unknown_attribute_faults,
    walk_of,
)
from fairgate.io.tables import Row, read_rows
from fairgate.io.text_files import capped, checked_text
from fairgate.policy.attribute_files import embedded_dimensions
from fairgate.relations.english import FUNCTION_WORDS, PRONOUNS, new_english_fault

_GLUE = {"a": "a", "an": "a", "who": "w", "and": "&", ",": ","}
_HEADS = frozenset({"person", "people"})
_NO_HEADS: frozenset[str] = frozenset()
_LONGEST_STAND_IN = 4
"""Most words that stand where no gerund does ("your background")."""
_LIST = r"{0}(?:(?:,{0})*&{0})?"
_PHRASE = re.compile(rf",?(?:a?(?:M,?)*N?M?H?(?:,?w{_LIST.format('C')})?|{_LIST.format('G')}),?")
_COMMA = "a comma is left over or missing"


@dataclass(slots=True)
class _Reading:
    """A text as ordinary words, and what stands before each of them."""

    words: list[Token] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    """Pattern of attributes and glue before each word, and one after the last."""
    mentions: list[Mention] = field(default_factory=list)


def _read(items: Sequence[Item], heads: frozenset[str] = _NO_HEADS) -> _Reading:
    """Split items into ordinary words and patterns; `heads` stand in for an attribute's noun."""
    reading = _Reading()
    gap = ""
    for item in items:
        if isinstance(item, Mention):
            reading.mentions.append(item)
            gap += item.part
        elif item.text.lower() in _GLUE:
            gap += _GLUE[item.text.lower()]
        elif item.text.lower() in heads:
            gap += "H"
        else:
            reading.words.append(item)
            reading.gaps.append(gap)
            gap = ""
    reading.gaps.append(gap)
    return reading


class PairLinter:
    """Judges pairs by the words of one catalogue of attributes."""

    def __init__(self, dimensions: Mapping[str, Dimension]) -> None:
        """Read the words of the attributes once."""
        self._lexicon = Lexicon(dimensions)

    def fault(self, kind: EditKind, source: str, follow_up: str) -> str | None:
        """Return why a follow-up is not its source with the edit, None where it is."""
        return next(self._faults(kind, source, follow_up), None)

    def _faults(self, kind: EditKind, source: str, follow_up: str) -> Iterator[str]:
        yield from _text_faults(source, follow_up)
        before, after = self._lexicon.read(source), self._lexicon.read(follow_up)
        one, other = _read(before), _read(after)
        same = [m.key for m in one.mentions] == [m.key for m in other.mentions]
        if same and kind is not EditKind.COUNTERFACTUAL:
            yield from unknown_attribute_faults(kind, before, after)
            return
        fault = mention_fault(kind, one.mentions, other.mentions)
        walk = walk_of(kind, before, after)
        if fault is not None and walk is not None and _known_on_one_side(kind, walk, one, other):
            yield from unknown_attribute_faults(kind, before, after)
            return
        if fault is not None:
            yield fault
        elif walk is not None and (edited := _edited(walk.old, one)):
            yield from left_behind(walk, noun=any(mention.part == "N" for mention in edited))
        wrong = next((mention for mention in other.mentions if not mention.right_case), None)
        if wrong is not None:
            yield f"'{wrong.words}' is not in its usual case"
        if _nouns(one) != _nouns(other):
            heads = _HEADS | _stand_ins(one, other)
            one, other = _read(before, heads), _read(after, heads)
        if _traits(one) and not _traits(other):
            _leave_out_stand_in(one, other)
        yield from _other_words(kind, one, other)


def _edited(words: Sequence[str], reading: _Reading) -> list[Mention]:
    """Return the mentions of a text that are said by the edited words."""
    wanted = " ".join(words)
    return [mention for mention in reading.mentions if mention.words.lower() == wanted]


def _known_on_one_side(kind: EditKind, walk: Walk, one: _Reading, other: _Reading) -> bool:
    """Whether words of the catalogue stand for words that it does not know, or these for them.

    The other attributes are the same then, and a noun keeps its number.
    """
    old, new = _edited(walk.old, one), _edited(walk.new, other)
    if kind is not EditKind.SUBSTITUTE_ONE or bool(old) == bool(new):
        return False
    keys = [Counter(mention.key for mention in reading.mentions) for reading in (one, other)]
    edited = {mention.key for mention in (*old, *new)}
    if any(mention.part not in "MN" for mention in (*old, *new)):
        return False
    if any(keys[0][key] != keys[1][key] for key in (keys[0] | keys[1]) if key not in edited):
        return False
    unknown = (walk.new if old else walk.old)[-1]
    several = re.search(r"[^s]s$|men$|people$|children$", unknown) is not None
    return all(bool(mention.plural) == several for mention in (*old, *new))


def _text_faults(source: str, follow_up: str) -> Iterator[str]:
    if " ".join(source.split()).casefold() == " ".join(follow_up.split()).casefold():
        yield "the text is the same as that of the source"
    fault = new_english_fault(source, follow_up)
    if fault is not None:
        yield f"the follow-up {fault}"
    if not _first_sign(source).islower() and _first_sign(follow_up).islower():
        yield "the follow-up does not begin with a capital letter"


def _first_sign(text: str) -> str:
    return next((sign for sign in text if sign.isalnum()), "")


def _nouns(reading: _Reading) -> int:
    return sum(mention.part == "N" for mention in reading.mentions)


def _traits(reading: _Reading) -> bool:
    return any(mention.part == "G" for mention in reading.mentions)


def _stand_ins(one: _Reading, other: _Reading) -> set[str]:
    """Return the word that one text has where the other has an attribute as the noun."""
    longer, shorter = (one, other) if len(one.words) > len(other.words) else (other, one)
    words = [token.text.lower() for token in longer.words]
    place = common_beginning(words, [token.text for token in shorter.words])
    word = words[place] if place < len(words) else ""
    return {word} if word.isalpha() and word not in FUNCTION_WORDS else set()


def _leave_out_stand_in(one: _Reading, other: _Reading) -> None:
    """Take out of the follow-up the few words that stand where the source lists gerunds."""
    place = common_beginning([t.text for t in one.words], [t.text for t in other.words])
    extra = len(other.words) - len(one.words)
    if 0 < extra <= _LONGEST_STAND_IN and place < len(one.gaps) and "G" in one.gaps[place]:
        del other.words[place : place + extra]
        other.gaps[place : place + extra + 1] = [one.gaps[place]]


def gap_fault(was: str, now: str, *, permuted: bool) -> str | None:
    """Return what is wrong with the pattern `now` where the source has `was`.

    A pattern is what stands between two ordinary words, a letter for each part: `a` an article, `w`
    "who", `&` "and", `,` a comma, `M` an adjective, `N` a noun, `H` what stands in for a noun, `C`
    a clause, `G` a gerund.
    """
    if was == now:
        return None
    return (
        _article_fault(was, now)
        or (_place_fault(was, now) if permuted else None)
        or _left_over(was, now)
        or _list_fault(was, now)
        or _comma_fault(was, now)
    )


def _article_fault(was: str, now: str) -> str | None:
    if "a" in was and "a" not in now and not was.startswith(","):
        return "an article is gone"
    return "an article is added" if "a" in now and "a" not in was else None


def _place_fault(was: str, now: str) -> str | None:
    moved = re.sub("[a,]", "", was) != re.sub("[a,]", "", now)
    return "an attribute stands among other words" if moved else None


def _left_over(was: str, now: str) -> str | None:
    if {was, now} == {",", ""} or (",w" in now and ",w" not in was):
        return _COMMA
    return "an 'and' is left over" if now.endswith("&") and not was.endswith("&") else None


def _list_fault(was: str, now: str) -> str | None:
    if _PHRASE.fullmatch(was) is None:  # two persons, say: only the glue is compared
        same = re.sub("[^a,w&]", "", was) == re.sub("[^a,w&]", "", now)
        return None if same or len(now) < len(was) - 1 else "the words of a list do not fit"
    if _PHRASE.fullmatch(now) is None:
        return "a word or a comma of a list is left over or missing"
    return None


def _comma_fault(was: str, now: str) -> str | None:
    if now == ",":
        return None if was.endswith(",") and was[0] != "," else _COMMA
    if now and (was[:1] == ",") != (now[:1] == ","):
        return _COMMA
    enclosed = was[:1] == "," and not now
    return _COMMA if was and (was[-1:] == ",") != (now[-1:] == ",") and not enclosed else None


def _other_words(kind: EditKind, one: _Reading, other: _Reading) -> Iterator[str]:
    words: Sequence[Token] | None = other.words
    if kind is EditKind.COUNTERFACTUAL:
        words = _affirmed(one.words, other.words)
    if words is None:
        yield "the statement is not denied"
        return
    if len(words) != len(one.words):
        yield _first_difference(one.words, words)
        return
    singular = any("a" in gap and set(gap) & set("MNC") for gap in other.gaps)
    agreement = WordAgreement(one.mentions, other.mentions, singular=singular)
    faults = [
        agreement.fault(old, new, verb=_beside_pronoun(words, place))
        for place, (old, new) in enumerate(zip(one.words, words, strict=True))
    ]
    if kind is not EditKind.COUNTERFACTUAL:
        permuted = kind is EditKind.PERMUTE
        pairs = zip(one.gaps, other.gaps, strict=True)
        faults += [gap_fault(*pair, permuted=permuted) for pair in pairs]
    yield from (fault for fault in faults if fault is not None)
    for mention in other.mentions:
        if mention.plural and mention.part == "C" and _is_singular(one):
            yield f"'{mention.words}' means several persons"


def _beside_pronoun(words: Sequence[Token], place: int) -> bool:
    beside = (*words[max(0, place - 1) : place], *words[place + 1 : place + 2])
    return any(token.text.lower() in PRONOUNS for token in beside)


def _is_singular(reading: _Reading) -> bool:
    numbers = {mention.plural for mention in reading.mentions if mention.part in "NC"}
    return False in numbers and True not in numbers


def _affirmed(before: Sequence[Token], after: Sequence[Token]) -> list[Token] | None:
    """Return a follow-up's words without what denies the source's statement; None without it."""
    for place, new in enumerate(after):
        old = before[place] if place < len(before) else None
        if old is not None and (_same(old, new) or _both_pronouns(old, new)):
            continue
        if new.text.lower() == "not":
            return [*after[:place], *after[place + 1 :]]
        helps = new.text.lower() in {"do", "does", "did"}
        if helps and old is not None and [t.text for t in after[place + 1 : place + 2]] == ["not"]:
            verb = next((token.text for token in after[place + 2 : place + 3]), "")
            if verb != old.text and verb[:1] == old.text[:1]:
                return [*after[:place], old, *after[place + 3 :]]
        return None
    return None


def _same(old: Token, new: Token) -> bool:
    return old.text.lower() == new.text.lower()


def _both_pronouns(old: Token, new: Token) -> bool:
    return old.text.lower() in PRONOUNS and new.text.lower() in PRONOUNS


def _first_difference(before: Sequence[Token], after: Sequence[Token]) -> str:
    for old, new in zip(before, after, strict=False):
        if not _same(old, new) and not _both_pronouns(old, new):
            return f"other words differ: '{old.text}' and '{new.text}'"
    longer = before if len(before) > len(after) else after
    return f"other words differ: '{longer[min(len(before), len(after))].text}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedPairs:
    """What the linter says of the pairs of a file."""

    lines: tuple[str, ...]
    rejected: int
    labelled: bool
    """Whether every pair says if it is valid."""


@dataclass(frozen=True, slots=True)
class _Judged:
    line: int
    fault: str | None
    valid: bool | None


def lint_pairs(path: Path) -> LintedPairs:
    """Judge every pair. Raises DataError with `path:line` for a line that is no pair."""
    judged = list(_judged(str(path)))
    if not judged:
        raise DataError(f"{path}: holds no pairs; expected a JSON object a line")
    labelled = all(pair.valid is not None for pair in judged)
    rejected = [pair for pair in judged if pair.fault is not None]
    lines = [f"{path}:{pair.line}: {harmless(pair.fault or '')}" for pair in rejected]
    lines.append(
        f"{len(judged)} pairs: {len(judged) - len(rejected)} accepted, {len(rejected)} rejected"
    )
    return LintedPairs(
        lines=(*lines, *(_agreement(judged) if labelled else ())),
        rejected=len(rejected),
        labelled=labelled,
    )


def _judged(path: str) -> Iterator[_Judged]:
    linter = PairLinter(embedded_dimensions())
    for row in read_rows(path):
        kind, source, follow_up = _pair(row, f"{path}:{row.line}")
        valid = row.values.get("valid")
        if valid is not None and not isinstance(valid, bool):
            raise DataError(
                f"{path}:{row.line}: `valid` is {capped(valid)}; expected true or false"
            )
        yield _Judged(row.line, linter.fault(kind, source, follow_up), valid)


def _pair(row: Row, place: str) -> tuple[EditKind, str, str]:
    name, source, follow_up = (
        checked_text(row.values.get(key), place, key) for key in ("relation", "source", "follow_up")
    )
    kind = edit_kind(name)
    if kind is None:
        known = listed([each.value for each in EditKind])
        raise DataError(f"{place}: `relation` is {capped(name)}; expected {known}")
    return kind, source, follow_up


def _agreement(judged: list[_Judged]) -> Iterator[str]:
    """Yield how the linter agrees with the labels; what is broken is what it should find."""
    hits = sum(pair.fault is not None and not pair.valid for pair in judged)
    rejected = sum(pair.fault is not None for pair in judged)
    broken = sum(not pair.valid for pair in judged)
    yield f"  labelled broken: {broken}, of them rejected: {hits} (recall {_share(hits, broken)})"
    yield f"  rejected: {rejected}, of them broken: {hits} (precision {_share(hits, rejected)})"
    for pair in judged:
        if (pair.fault is None) != pair.valid:
            what = "valid, but rejected" if pair.valid else "broken, but accepted"
            yield f"  line {pair.line}: {what}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "not defined"
