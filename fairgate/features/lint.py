"""`fairgate lint`: whether the second of two texts is the first one with the declared edit.

Nothing is known but the two texts, the kind of edit and a catalogue of attributes. What a run
executes is judged by the rule of its relation, which knows the declared edit
(`fairgate/relations/linter.py`); the tests compare the two. Three questions are asked: do the
mentioned attributes differ as the edit says, are all other words the same but for what English
makes agree (articles, pronouns, "who", commas and "and" of a list), and is the result good English.

A text is read as a row of items: mentions (the longest words of the catalogue that stand there) and
single words and signs between them. An edit of few words that the catalogue does not know is read
where two texts first differ, and then both are walked side by side (`Walk`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import product, takewhile
from pathlib import Path
from typing import NamedTuple

import click

from fairgate.domain.attributes import AttributeValue, Dimension, Manner
from fairgate.domain.errors import DataError, ExitCode, UsageError
from fairgate.domain.executions import CorpusSpec
from fairgate.domain.wording import harmless, listed
from fairgate.io.tables import capped, checked_text, read_rows
from fairgate.policy.definition_files import embedded_dimensions, known_dimensions
from fairgate.relations.agreement import (
    PARTNERS,
    TITLES,
    new_title_fault,
    uncontracted,
)
from fairgate.relations.clauses import negated_clause, plural_clause, plural_noun, plural_verb
from fairgate.relations.english import (
    CASES,
    FUNCTION_WORDS,
    NOUNS,
    PRONOUNS,
    new_english_fault,
    pieces,
)
from fairgate.relations.language import other_language
from fairgate.terminal.options import EXISTING_FILE, given_options, require_terminal

LONGEST = 3
"""Most words of an attribute that the catalogue does not know."""
_LONGEST_STAND_IN = 4
"""Most words that stand where no gerund does ("your background")."""
_SENTENCE_END = frozenset('.?!:"\u201c')
_MANY = re.compile(r"men$|women$|people$|children$")
_INDEFINITE = frozenset({"a", "an", "another", "other"})
_DETERMINERS = _INDEFINITE | frozenset(
    """the this that these those my your his her its our their one two three every each some any
    no""".split()  # noqa: SIM905 (reads better so)
)
_FORMS_OF_BE = {(word,) for word in ("is", "are", "was", "were")}
_HEADS = frozenset({"person", "people"})
_GLUE = {"a": "a", "an": "a", "who": "w", "and": "&", ",": ","}
_LIST = r"{0}(?:(?:,{0})*&{0})?"
_PHRASE = re.compile(rf",?(?:a?(?:M,?)*N?M?H?(?:,?w{_LIST.format('C')})?|{_LIST.format('G')}),?")
_HALF_OF_PARTNERS = "the word for a partner changes in one place and stays in another"
_COMMA = "a comma is left over or missing"
_Words = tuple[str, ...]


class EditKind(StrEnum):
    """How a follow-up is made of its source: GenFair's MR1 to MR8, in order (P3 section V-B2)."""

    REMOVE_ONE = "remove-one"
    REMOVE_ALL = "remove-all"
    NEGATE_ONE = "negate-one"
    NEGATE_ALL = "negate-all"
    SUBSTITUTE_ALL = "substitute-all"
    SUBSTITUTE_ONE = "substitute-one"
    COUNTERFACTUAL = "counterfactual"
    PERMUTE = "permute"


def edit_kind(name: str) -> EditKind | None:
    """Return the kind that a name means: `remove-one`, or `genfair/mr1-removal-one` for it."""
    number = re.fullmatch(r"genfair/mr([1-8])(?:-[a-z0-9-]+)?", name)
    if number is not None:
        return tuple(EditKind)[int(number.group(1)) - 1]
    return EditKind(name) if name in set(EditKind) else None


class Token(NamedTuple):
    """One word or sign of a text."""

    text: str
    starts: bool
    """Whether a sentence begins with it."""

    @property
    def lower(self) -> str:
        """Return it in lower case."""
        return self.text.lower()

    @property
    def folded(self) -> str:
        """Return it in lower case, and "a" for "an"."""
        return "a" if self.lower == "an" else self.lower


@dataclass(frozen=True, slots=True)
class Mention:
    """An attribute that a text states."""

    dimension: Dimension
    value: AttributeValue
    manner: Manner
    part: str
    """`M` before or beside a noun, `N` a noun, `C` a clause, `G` a gerund."""
    plural: bool | None
    """Of nouns and clauses: whether they mean several persons."""
    words: str = ""
    """As the text has them."""
    right_case: bool = True

    @property
    def key(self) -> tuple[str, str, Manner]:
        """Return the key of the statement: dimension, value, manner."""
        return self.dimension.id, self.value.id, self.manner


Mentions = Sequence[Mention]


def tokens(text: str) -> list[Token]:
    """Return the words and signs of a text, in order; "isn't" is "is" and "not"."""
    words_and_signs: list[Token] = []
    starts = True
    for sign in pieces(uncontracted(text)):
        words_and_signs.append(Token(sign, starts))
        starts = sign in _SENTENCE_END or (starts and not sign[0].isalnum())
    return words_and_signs


def _wordings(value: AttributeValue) -> Iterator[tuple[str, Manner, str, bool | None]]:
    """Yield the words of a value, denials by rule included, with manner, part and plural."""
    for manner, wording in value.wordings:
        clauses = []
        if wording.adjective:
            yield wording.adjective, manner, "M", None
            yield f"being {wording.adjective}", manner, "G", None
            clauses.append((f"is {wording.adjective}", f"are {wording.adjective}"))
        if wording.noun:
            yield wording.noun, manner, "N", False
            yield wording.noun_plural, manner, "N", True
        if wording.clause:
            clauses.append((wording.clause, wording.clause_plural))
        if wording.gerund:
            yield wording.gerund, manner, "G", None
        for clause, several in clauses:
            yield clause, manner, "C", False
            yield several, manner, "C", True
        if manner is Manner.NEGATED:
            continue
        denials = [denial for clause, _ in clauses if (denial := negated_clause(clause))]
        for denial in denials:
            yield denial, Manner.NEGATED, "C", False
            if of_several := plural_clause(denial):
                yield of_several, Manner.NEGATED, "C", True
        gerunds = [f"being {wording.adjective}"] if wording.adjective else []
        for gerund in (*gerunds, *filter(None, [wording.gerund])):
            yield f"not {gerund}", Manner.NEGATED, "G", None
    for words in value.also:
        part, plural = ("N", bool(_MANY.search(words))) if value.pronoun else ("M", None)
        yield words, Manner.PLAIN, part, plural


class PairLinter:
    """Judges pairs by the words of one catalogue of attributes."""

    def __init__(self, dimensions: Mapping[str, Dimension]) -> None:
        """Take every wording of every value."""
        entries: dict[_Words, tuple[_Words, Mention]] = {}
        for dimension in dimensions.values():
            for value in dimension.values:
                for words, manner, part, plural in _wordings(value):
                    parts = tuple(pieces(words))
                    mention = Mention(dimension, value, manner, part, plural)
                    entries.setdefault(tuple(map(str.lower, parts)), (parts, mention))
        self._by_first: dict[str, list[tuple[_Words, Mention]]] = {}
        for folded in sorted(entries, key=lambda each: (-len(each), each)):
            self._by_first.setdefault(folded[0], []).append(entries[folded])

    def fault(self, kind: EditKind, source: str, follow_up: str) -> str | None:
        """Return why a follow-up is not its source with the edit, None where it is."""
        return next(self._faults(kind, source, follow_up), None)

    def _faults(self, kind: EditKind, source: str, follow_up: str) -> Iterator[str]:
        if " ".join(source.split()).casefold() == " ".join(follow_up.split()).casefold():
            yield "the text is the same as that of the source"
        if words := other_language(source):
            yield f"the source is not English ({words}), and the rules know no other language"
        english = new_english_fault(source, uncontracted(follow_up))
        if english := english or new_title_fault(source, follow_up):
            yield f"the follow-up {english}"
        texts = (source, follow_up)
        was, now = (next((sign for sign in text if sign.isalnum()), "") for text in texts)
        if now.islower() and not was.islower():
            yield "the follow-up does not begin with a capital letter"
        before, after = tokens(source), tokens(follow_up)
        one, other = self._read(before), self._read(after)
        keys = [mention.key for mention in one.mentions]
        same = keys == [mention.key for mention in other.mentions]
        walk = walk_of(kind, before, after)
        fault = next(_mention_faults(kind, one.mentions, other.mentions), None)
        if (same and kind is not EditKind.COUNTERFACTUAL) or (
            fault is not None
            and walk is not None
            and _known_on_one_side(kind, walk, one.mentions, other.mentions)
        ):
            yield from unknown_attribute_faults(kind, walk, before, after)
            return
        if fault is not None:
            yield fault
        elif walk is not None and (edited := _edited(walk.old, one.mentions)):
            yield from left_behind(walk, noun=any(mention.part == "N" for mention in edited))
        for mention in other.mentions:
            if not mention.right_case:
                yield f"'{mention.words}' is not in its usual case"
        if one.count("N") != other.count("N"):
            heads = _HEADS | _stand_ins(one, other)
            one, other = self._read(before, heads), self._read(after, heads)
        if one.count("G") and not other.count("G"):
            _leave_out_stand_in(one, other)
        yield from _other_words(kind, one, other)

    def _read(self, row: Sequence[Token], heads: frozenset[str] = frozenset()) -> _Reading:
        """Split a text into ordinary words and patterns; `heads` stand in for attributes' nouns."""
        reading = _Reading()
        gap, position = "", 0
        while position < len(row):
            token = row[position]
            mention_and_length = self._mention(row, position)
            if mention_and_length is not None:
                reading.mentions.append(mention_and_length[0])
                gap += mention_and_length[0].part
            elif token.lower in _GLUE:
                gap += _GLUE[token.lower]
            elif token.lower in heads:
                gap += "H"
            else:
                reading.words.append(token)
                reading.gaps.append(gap)
                gap = ""
            position += mention_and_length[1] if mention_and_length else 1
        reading.gaps.append(gap)
        return reading

    def _mention(self, row: Sequence[Token], position: int) -> tuple[Mention, int] | None:
        """Return the mention that stands at a place and its number of words; None without one."""
        for parts, mention in self._by_first.get(row[position].lower, ()):
            here = row[position : position + len(parts)]
            if [token.lower for token in here] == [part.lower() for part in parts]:
                right = all(
                    token.text == part
                    or (token.starts and token.text == part[:1].upper() + part[1:])
                    for token, part in zip(here, parts, strict=True)
                )
                words = " ".join(token.text for token in here)
                return replace(mention, words=words, right_case=right), len(parts)
        return None


@dataclass(slots=True)
class _Reading:
    """A text as ordinary words, and what stands before each of them."""

    words: list[Token] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    """Pattern of attributes and glue before each word, and one after the last."""
    mentions: list[Mention] = field(default_factory=list)

    def count(self, part: str) -> int:
        """Return how many mentions have a part in their sentence."""
        return sum(mention.part == part for mention in self.mentions)


# Whether the mentions of two texts differ as the edit says.


def _mention_faults(kind: EditKind, before: Mentions, after: Mentions) -> Iterator[str]:
    """Yield how the mentions of two texts differ otherwise than the edit allows."""
    if not before:
        yield "the source mentions no attribute that could be edited"
        return
    removed, added = _difference(before, after), _difference(after, before)
    if len(removed) == len(added) or not added:  # one edit in several places is one
        removed, added = _distinct(removed), _distinct(added)
    if kind in (EditKind.NEGATE_ALL, EditKind.SUBSTITUTE_ALL):
        yield from _faults_of_all(kind, before, after)
    elif kind is EditKind.REMOVE_ONE:
        if added:
            yield f"'{added[0].words}' is added where an attribute is to be removed"
        if len(removed) != 1:
            yield f"{len(removed)} attributes are removed, not one"
    elif kind is EditKind.REMOVE_ALL:
        yield from (f"'{mention.words}' is still there" for mention in after)
    elif kind is EditKind.PERMUTE:
        yield from (f"'{mention.words}' is lost" for mention in removed)
        yield from (f"'{mention.words}' is added" for mention in added)
        if [mention.key for mention in before] == [mention.key for mention in after]:
            yield "the attributes stand in the same order"
    elif removed or added or kind is not EditKind.COUNTERFACTUAL:
        if len(removed) == len(added) == 1:
            swapped = (added[0].key, removed[0].key) in zip(
                (mention.key for mention in before),
                (mention.key for mention in after),
                strict=False,
            )
            yield from _faults_of_one(kind, removed[0], added[0], swapped=swapped)
        else:
            done = "denied" if kind is EditKind.NEGATE_ONE else "replaced"
            yield f"{len(removed)} attributes are taken away and {len(added)} added, not one {done}"


def _difference(mentions: Mentions, other: Mentions) -> list[Mention]:
    left = Counter(mention.key for mention in other)
    missing = []
    for mention in mentions:
        if left[mention.key]:
            left[mention.key] -= 1
        else:
            missing.append(mention)
    return missing


def _distinct(mentions: Mentions) -> list[Mention]:
    return list({mention.key: mention for mention in reversed(mentions)}.values())[::-1]


def _faults_of_all(kind: EditKind, before: Mentions, after: Mentions) -> Iterator[str]:
    negates = kind is EditKind.NEGATE_ALL
    stated = {mention.dimension.id: mention for mention in after}
    if not negates and len(after) != len(before):
        yield f"the source mentions {len(before)} attributes, the follow-up {len(after)}"
    for old in before:
        new = stated.get(old.dimension.id)
        if new is None:
            yield f"'{old.words}' is left out, not {'denied' if negates else 'replaced'}"
        elif not negates:
            yield from _replacement_faults(old, new)
        elif new.key == old.key:
            yield f"'{old.words}' is not denied"
    if len(after) != len(before):
        yield "an attribute is added"


def _faults_of_one(kind: EditKind, old: Mention, new: Mention, *, swapped: bool) -> Iterator[str]:
    if kind is not EditKind.NEGATE_ONE:
        if swapped:
            yield f"'{new.words}' becomes '{old.words}' as well as the other way"
        yield from _replacement_faults(old, new)
        return
    if old.value.id == new.value.id:
        denies = (old.manner is Manner.NEGATED) != (new.manner is Manner.NEGATED)
    else:
        denies = (
            new.value.id == old.value.opposite and new.manner is old.manner is not Manner.NEGATED
        )
    if not denies or old.dimension.id != new.dimension.id:
        yield f"'{new.words}' does not deny '{old.words}'"


def _replacement_faults(old: Mention, new: Mention) -> Iterator[str]:
    if old.dimension.id != new.dimension.id:
        yield f"'{old.words}' ({old.dimension.id}) becomes '{new.words}' ({new.dimension.id})"
    elif old.value.id == new.value.id:
        yield f"'{new.words}' says the same attribute as '{old.words}'"
    if (old.manner is Manner.NEGATED) != (new.manner is Manner.NEGATED):
        yield f"'{new.words}' denies where '{old.words}' is to be replaced"
    if old.plural is not None and new.plural is not None and old.plural != new.plural:
        yield f"'{old.words}' becomes '{new.words}': the number disagrees"


# Edits of words that the catalogue does not know.


@dataclass(slots=True)
class Walk:
    """Two texts side by side, under the assumption of one edit."""

    before: Sequence[Token]
    after: Sequence[Token]
    old: _Words
    new: _Words
    places: list[int] = field(default_factory=list)
    """Where the source's words are edited."""
    left: list[int] = field(default_factory=list)
    """Where the source has the words and the follow-up keeps them."""
    pronouns: set[tuple[str, str]] = field(default_factory=set)
    """Pronouns that change, as the forms `she`, `he`, `they` name them."""
    kept: set[str] = field(default_factory=set)
    """Pronouns that do not change."""
    spelt: set[str] = field(default_factory=set)
    """How the follow-up writes the edit where no sentence begins with it."""
    wrong_case: str | None = None
    partners: set[bool] = field(default_factory=set)
    """Whether words for a partner change, of those that could."""
    complete: bool = False

    def __post_init__(self) -> None:
        """Walk as far as the texts are one another's but for the edit."""
        n = m = 0
        before, after = self.before, self.after
        forms = _both_numbers(self.old, self.new)
        if self._are_full_names():
            forms += [(self.old[:1], self.new[:1]), (self.old[1:], self.new[1:])]
        while n < len(before) or m < len(after):
            form = next((f for f in forms if _at(before, n, f[0]) and _at(after, m, f[1])), None)
            if form is not None and (form[1] or not _at(after, m, form[0])):
                self.places.append(n)
                self._spell(m, form)
                n, m = n + len(form[0]), m + len(form[1])
                continue
            if n >= len(before) or m >= len(after) or not self._same(n, m):
                return
            if any(_at(before, n, f[0]) and f[0] for f in forms):
                self.left.append(n)
            n, m = n + 1, m + 1
        self.complete = bool(self.places)

    def _are_full_names(self) -> bool:
        """Whether the edit is of a first and last name, each of which may also stand alone."""
        words = {*self.old, *self.new}
        spelt = {token.text for token in (*self.before, *self.after) if token.lower in words}
        two = len(self.old) == len(self.new) == 2
        return (
            two
            and all(word[:1].isupper() for word in spelt)
            and not words & (FUNCTION_WORDS | _DETERMINERS)
        )

    def _spell(self, m: int, form: tuple[_Words, _Words]) -> None:
        here = self.after[m : m + len(form[1])]
        if form[1] == self.new and here and not here[0].starts:
            self.spelt.add(" ".join(token.text for token in here if token.lower != "an"))
            if len(self.spelt) > 1:
                self.wrong_case = f"'{' '.join(self.new)}' is not written the same in every place"

    def _same(self, n: int, m: int) -> bool:
        old, new = self.before[n], self.after[m]
        was, now = old.folded, new.folded
        if partner := _are_partners(was, now):
            self.partners.add(was != now)
        if was == now:
            self.kept |= {PRONOUNS[was]} if was in PRONOUNS else set()
            self.wrong_case = self.wrong_case or (None if was == "a" else case_fault(old, new))
            return True
        if was in PRONOUNS and now in PRONOUNS and any({was, now} <= case for case in CASES):
            self.pronouns.add((PRONOUNS[was], PRONOUNS[now]))
            if old.starts == new.starts and old.text[0].isupper() != new.text[0].isupper():
                self.wrong_case = f"'{old.text}' becomes '{new.text}': the case changes"
            following = self.after[m + 1].folded if m + 1 < len(self.after) else "."
            ends = not following[0].isalnum() or following in FUNCTION_WORDS
            return not (was == "her" and now == "his" and ends)
        if old.text in TITLES and new.text in TITLES:
            self.pronouns.add((TITLES[old.text], TITLES[new.text]))
            return True
        if partner:
            return True
        counted = any("they" in change for change in self.pronouns)
        return counted and (plural_verb(was) == now or plural_verb(now) == was)

    def next_word(self, position: int) -> str:
        """Return the word behind an occurrence of the edited words in the source, singular."""
        position += len(self.old)
        word = self.before[position].folded if position < len(self.before) else "."
        return word.removesuffix("s") if len(word) > 3 else word

    def words_before(self, position: int) -> _Words:
        """Return the two words before a place of the source, fewer at its beginning."""
        return tuple(token.folded for token in self.before[max(0, position - 2) : position])

    @property
    def follows_a_form_of_be(self) -> bool:
        """Whether the words stand where "not" denies an attribute: "is not Catholic"."""
        return all(self.words_before(position)[-1:] in _FORMS_OF_BE for position in self.places)

    @property
    def names(self) -> bool:
        """Whether the words stand as names do: capitals, and no adjective or noun of a phrase."""
        spelt = [token.text for n in self.places for token in self.before[n : n + len(self.old)]]
        spelt += [token.text for token in self.after if token.lower in self.new]
        capitals = all(word[:1].isupper() for word in spelt)
        return capitals and not any(map(self._in_phrase, self.places))

    def _in_phrase(self, position: int) -> bool:
        """Whether a determiner stands before the words, and a word that may be a noun behind."""
        for token in self.before[max(0, position - LONGEST) : position][::-1]:
            if token.folded in _DETERMINERS:
                return _content(self.next_word(position))
            if not _content(token.folded):
                return False
        return False


def _are_partners(was: str, now: str) -> bool:
    return any({was, now} <= group for group in PARTNERS)


def _content(word: str) -> bool:
    return word[:1].isalnum() and word not in FUNCTION_WORDS


def _at(row: Sequence[Token], position: int, words: _Words) -> bool:
    return tuple(token.folded for token in row[position : position + len(words)]) == words


def _both_numbers(old: _Words, new: _Words) -> list[tuple[_Words, _Words]]:
    """Return the edit, and the same edit in the other number."""
    pairs = [(old, new)]
    if old and new:
        several = plural_noun(old[-1]), plural_noun(new[-1])
        if several[0] and several[1]:
            pairs.append(((*old[:-1], several[0]), (*new[:-1], several[1])))
        if old[-1].endswith("s") and new[-1].endswith("s"):
            pairs.append(((*old[:-1], old[-1][:-1]), (*new[:-1], new[-1][:-1])))
    return pairs


def walk_of(kind: EditKind, before: Sequence[Token], after: Sequence[Token]) -> Walk | None:
    """Return the walk with the shortest edit that explains two texts; None where there is none."""
    was, now = ([token.folded for token in row] for row in (before, after))
    first = 0
    while first < min(len(was), len(now)) and (
        was[first] == now[first] or {was[first], now[first]} <= PRONOUNS.keys()
    ):
        first += 1
    shapes = sorted(product(range(1, LONGEST + 1), range(LONGEST + 2)), key=sum)
    for taken, added in shapes:
        old, new = tuple(was[first : first + taken]), tuple(now[first : first + added])
        allowed = {
            EditKind.REMOVE_ONE: bool(old) and not new,
            EditKind.SUBSTITUTE_ONE: bool(old) and 0 < len(new) <= LONGEST,
            EditKind.NEGATE_ONE: tuple(w.removeprefix("non-") for w in new) == old != new
            or ("not", *old) == new
            or ("not", *new) == old != ("not",),
        }
        if allowed.get(kind, False):
            walk = Walk(before, after, old, new)
            says_not = "not" in (*old[:1], *new[:1]) and kind is EditKind.NEGATE_ONE
            if walk.complete and not (says_not and not walk.follows_a_form_of_be):
                return walk
    return None


def _edited(words: _Words, mentions: Mentions) -> list[Mention]:
    """Return the mentions that are said by the edited words."""
    wanted = " ".join(words)
    return [mention for mention in mentions if mention.words.lower() == wanted]


def _known_on_one_side(kind: EditKind, walk: Walk, before: Mentions, after: Mentions) -> bool:
    """Whether words of the catalogue stand for words that it does not know, or these for them.

    The other attributes are the same then, and a noun keeps its number.
    """
    old, new = _edited(walk.old, before), _edited(walk.new, after)
    if kind is not EditKind.SUBSTITUTE_ONE or bool(old) == bool(new):
        return False
    mentions = [*old, *new]
    edited = {mention.key for mention in mentions}
    others = (Counter(m.key for m in row if m.key not in edited) for row in (before, after))
    if any(mention.part not in "MN" for mention in mentions) or next(others) != next(others):
        return False
    unknown = (walk.new if old else walk.old)[-1]
    several = re.search(r"[^s]s$|men$|people$|children$", unknown) is not None
    return all(bool(mention.plural) == several for mention in mentions)


def unknown_attribute_faults(
    kind: EditKind, walk: Walk | None, before: Sequence[Token], after: Sequence[Token]
) -> Iterator[str]:
    """Yield why two texts are not one edit of words, with what agrees with it."""
    if kind is EditKind.PERMUTE:
        yield from _permutation_faults(before, after)
        return
    if walk is None:
        yield "no attribute of the source is edited, or more than one"
        return
    edited = {*walk.old, *walk.new} - {"not" if kind is EditKind.NEGATE_ONE else ""}
    if not all(word[:1].isalnum() for word in edited) or FUNCTION_WORDS & edited:
        yield "words are edited that are no attribute"
    if walk.wrong_case:
        yield walk.wrong_case
    yield from left_behind(walk)
    old, new = NOUNS.get(walk.old[-1]), NOUNS.get(walk.new[-1]) if walk.new else None
    for was, now in walk.pronouns:
        if was != now and not (walk.names or (old == was and now == (new or "they"))):
            yield f"the pronoun of '{was}' becomes that of '{now}', which is not the attribute"
    if len(walk.partners) > 1:
        yield _HALF_OF_PARTNERS
    if True in walk.partners and not (walk.pronouns or old != new or walk.names):
        yield "the word for a partner changes, and the person's gender does not"
    follows = {was for was, _ in walk.pronouns} | ({old} if new and old != new else set())
    if len(walk.pronouns) > 1 or follows & walk.kept:
        yield "a pronoun does not agree with the person"


def left_behind(walk: Walk, *, noun: bool = False) -> Iterator[str]:
    """Yield where the edit is not applied although the same is meant; `noun`: a noun is edited.

    Another person may have the attribute, too: "the old man helped the old woman". The same is
    meant by a name, by the words in the same phrase, and by a noun that "a" does not introduce.
    """
    after = {
        walk.next_word(position) for position in walk.places if _content(walk.next_word(position))
    }
    before = {words for position in walk.places if len(words := walk.words_before(position)) == 2}
    articles = {words[-1:] for words in map(walk.words_before, walk.places)}
    noun = noun or not all(
        _content(walk.next_word(position)) for position in walk.places + walk.left
    )
    for position in walk.left:
        last = walk.words_before(position)[-1:]
        if last and last[0] in _INDEFINITE:
            continue
        if (
            noun
            or walk.names
            or walk.next_word(position) in after
            or walk.words_before(position) in before
            or (last == ("the",) and ("a",) in articles)
        ):
            yield f"'{' '.join(walk.old)}' is edited in one place and left in another"


def _permutation_faults(one: Sequence[Token], other: Sequence[Token]) -> Iterator[str]:
    """Yield why what differs, from the first word to the last, is no other order of attributes."""
    was, now = ([token.lower for token in row if token.folded != "a"] for row in (one, other))
    head = common_beginning(was, now)
    tail = common_beginning(was[head:][::-1], now[head:][::-1])
    before, after = ([w for w in row[head : len(row) - tail] if w != ","] for row in (was, now))
    if sorted(before) != sorted(after) or before == after:
        yield "the words are not the same in another order"
    if len(before) > 2 * LONGEST or FUNCTION_WORDS & set(before):
        yield "more than attributes change their places"


def common_beginning(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many words two rows have in common from their beginning, whatever the case."""
    pairs = zip(map(str.lower, first), map(str.lower, second), strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


# Whether all other words are the same, but for what agrees with the attributes.


def _stand_ins(before: _Reading, after: _Reading) -> frozenset[str]:
    """Return the word that one text has where the other has an attribute as the noun."""
    longer, shorter = (before, after) if len(before.words) > len(after.words) else (after, before)
    words = [token.lower for token in longer.words]
    position = common_beginning(words, [token.text for token in shorter.words])
    word = words[position] if position < len(words) else ""
    return frozenset({word} if word.isalpha() and word not in FUNCTION_WORDS else ())


def _leave_out_stand_in(before: _Reading, after: _Reading) -> None:
    """Take out of the follow-up the few words that stand where the source lists gerunds."""
    position = common_beginning([t.text for t in before.words], [t.text for t in after.words])
    extra = len(after.words) - len(before.words)
    if (
        0 < extra <= _LONGEST_STAND_IN
        and position < len(before.gaps)
        and "G" in before.gaps[position]
    ):
        del after.words[position : position + extra]
        after.gaps[position : position + extra + 1] = [before.gaps[position]]


def _other_words(kind: EditKind, before: _Reading, after: _Reading) -> Iterator[str]:
    words: Sequence[Token] | None = after.words
    if kind is EditKind.COUNTERFACTUAL:
        words = _affirmed(before.words, after.words)
    if words is None:
        yield "the statement is not denied"
        return
    if len(words) != len(before.words):
        for old, new in zip(before.words, words, strict=False):
            if not _alike(old, new):
                yield f"other words differ: '{old.text}' and '{new.text}'"
        longer, shorter = sorted((before.words, words), key=len, reverse=True)
        yield f"other words differ: '{longer[len(shorter)].text}'"
        return
    yield from _faults_word_by_word(before, after, words)
    if kind is not EditKind.COUNTERFACTUAL:
        for was, now in zip(before.gaps, after.gaps, strict=True):
            yield from _gap_faults(was, now, permuted=kind is EditKind.PERMUTE)
    numbers = {mention.plural for mention in before.mentions if mention.part in "NC"}
    for mention in after.mentions:
        if mention.plural and mention.part == "C" and False in numbers and True not in numbers:
            yield f"'{mention.words}' means several persons"


def _faults_word_by_word(
    before: _Reading, after: _Reading, words: Sequence[Token]
) -> Iterator[str]:
    """Yield which of the other words is another one and does not agree with the person."""
    pronoun, calls = _pronoun_of(before.mentions), _pronoun_of(after.mentions)
    changes = pronoun != calls
    wanted = calls or "they"
    partners: set[bool] = set()
    for position, (old, new) in enumerate(zip(before.words, words, strict=True)):
        fault = None
        if changes and pronoun is not None and PRONOUNS.get(old.lower) == pronoun:
            fault = _pronoun_fault(old, new, wanted, after.gaps)
        elif changes and _are_partners(old.lower, new.lower):
            partners.add(old.lower != new.lower)
        elif old.lower == new.lower:
            fault = case_fault(old, new)
        elif changes and pronoun == TITLES.get(old.text) and new.text in TITLES:
            if TITLES[new.text] != wanted:
                fault = f"the title '{new.text}' does not agree with the person ('{wanted}')"
        elif not _verb_agrees(words, position, old, {pronoun, calls} if changes else set()):
            fault = f"'{old.text}' becomes '{new.text}', which is not the attribute"
        if fault is not None:
            yield fault
    if len(partners) > 1:
        yield _HALF_OF_PARTNERS


def _pronoun_of(mentions: Mentions) -> str | None:
    """Return the pronoun of the person whose gender is said or denied; None where it is not."""
    genders = [mention for mention in mentions if mention.value.pronoun]
    if not genders:
        return None
    pronouns = {m.value.pronoun for m in genders if m.manner is not Manner.NEGATED}
    several = any(mention.plural for mention in mentions)
    return pronouns.pop() if len(pronouns) == 1 and not several else "they"


def _pronoun_fault(old: Token, new: Token, wanted: str, gaps: Sequence[str]) -> str | None:
    """Return how the pronoun of a person whose gender changes does not follow it."""
    singular = any("a" in gap and set(gap) & set("MNC") for gap in gaps)  # an article shows one
    if PRONOUNS.get(new.lower) == "they" and not singular and old.lower == new.lower:
        return None  # several persons
    if PRONOUNS.get(new.lower) != wanted:
        return f"the pronoun '{new.text}' does not agree with the person ('{wanted}')"
    if not any({old.lower, new.lower} <= case for case in CASES):
        return f"the pronoun '{new.text}' has another case than '{old.text}'"
    return None


def _verb_agrees(
    words: Sequence[Token], position: int, old: Token, pronouns: set[str | None]
) -> bool:
    """Whether a word beside a pronoun is another number of a verb, where one becomes several.

    `pronouns` are those of both texts' persons where they differ.
    """
    now = words[position].lower
    beside = (*words[max(0, position - 1) : position], *words[position + 1 : position + 2])
    return (
        bool(pronouns & {"they", None})
        and any(token.lower in PRONOUNS for token in beside)
        and (plural_verb(old.lower) == now or plural_verb(now) == old.lower)
    )


def case_fault(old: Token, new: Token) -> str | None:
    """Return how the same word is written in another case than its place in the sentence wants."""
    if old.text == new.text and not (new.starts and new.text[:1].islower() and not old.starts):
        return None
    if new.starts and new.text[:1].isupper() and new.lower == old.lower:
        return None
    if old.starts and not new.starts and new.text == old.text[:1].lower() + old.text[1:]:
        return None
    return f"'{old.text}' becomes '{new.text}': the case changes"


def _gap_faults(was: str, now: str, *, permuted: bool) -> Iterator[str]:
    """Yield what is wrong with the pattern `now` where the source has `was`.

    A pattern is what stands between two ordinary words, a letter for each part: `a` an article, `w`
    "who", `&` "and", `,` a comma, `M` an adjective, `N` a noun, `H` what stands in for a noun, `C`
    a clause, `G` a gerund.
    """
    if was == now:
        return
    if "a" in was and "a" not in now and not was.startswith(","):
        yield "an article is gone"
    if "a" in now and "a" not in was:
        yield "an article is added"
    if permuted and re.sub("[a,]", "", was) != re.sub("[a,]", "", now):
        yield "an attribute stands among other words"
    if {was, now} == {",", ""} or (",w" in now and ",w" not in was):
        yield _COMMA
    if now.endswith("&") and not was.endswith("&"):
        yield "an 'and' is left over"
    if _PHRASE.fullmatch(was) is None:  # two persons, say: only the glue is compared
        same = re.sub("[^a,w&]", "", was) == re.sub("[^a,w&]", "", now)
        if not same and len(now) >= len(was) - 1:
            yield "the words of a list do not fit"
    elif _PHRASE.fullmatch(now) is None:
        yield "a word or a comma of a list is left over or missing"
    if now == ",":
        fits = was.endswith(",") and was[0] != ","
    else:
        enclosed = was[:1] == "," and not now
        fits = not now or (was[:1] == ",") == (now[:1] == ",")
        fits = fits and (not was or (was[-1:] == ",") == (now[-1:] == ",") or enclosed)
    if not fits:
        yield _COMMA


def _affirmed(before: Sequence[Token], after: Sequence[Token]) -> list[Token] | None:
    """Return a follow-up's words without what denies the source's statement; None without it."""
    for position, new in enumerate(after):
        old = before[position] if position < len(before) else None
        if old is not None and _alike(old, new):
            continue
        if new.lower == "not":
            return [*after[:position], *after[position + 1 :]]
        helps = new.lower in {"do", "does", "did"}
        if (
            helps
            and old is not None
            and [t.text for t in after[position + 1 : position + 2]] == ["not"]
        ):
            verb = next((token.text for token in after[position + 2 : position + 3]), "")
            if verb != old.text and verb[:1] == old.text[:1]:
                return [*after[:position], old, *after[position + 3 :]]
        return None
    return None


def _alike(old: Token, new: Token) -> bool:
    """Return whether two words are the same, or both pronouns."""
    return old.lower == new.lower or (old.lower in PRONOUNS and new.lower in PRONOUNS)


@click.command(short_help="Judge pairs of texts, or find what texts state.")
@click.argument("pairs", type=EXISTING_FILE, metavar="FILE")
@click.option(
    "--annotate", is_flag=True,
    help="Find the attributes that plain texts state, and write them as "
"cases once you agree.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path),
    help="JSONL file for the cases of --annotate.",
)  # fmt: skip
@click.option(
    "--attributes", multiple=True, metavar="FILE",
    help="`--annotate`: an attribute of your own beside the embedded ones; can be repeated.",
)  # fmt: skip
@click.option("--yes", is_flag=True, help="`--annotate`: write without asking.")
def lint(
    pairs: Path, *, annotate: bool, out: Path | None, attributes: tuple[str, ...], yes: bool
) -> int:
    """Judge whether each follow-up of FILE (JSONL) is its source with the edit of its relation.

    A line is {"relation", "source", "follow_up", "valid"?}; `relation` is `remove-one`,
    `remove-all`, `negate-one`, `negate-all`, `substitute-one`, `substitute-all`, `counterfactual`,
    `permute`, or the id of a GenFair relation. Exit code 1 where a pair is rejected; with `valid`
    on every line precision and recall of the linter are shown, and the exit code is 0.
    """
    if annotate:
        return _annotate(pairs, out, attributes, yes=yes)
    if strange := [option for name, option in given_options().items() if name != "pairs"]:
        raise UsageError(f"{strange[0]} belongs to --annotate; add it, or leave {strange[0]} out")
    judged = list(_judged(str(pairs)))
    if not judged:
        raise DataError(f"{pairs}: holds no pairs; expected a JSON object a line")
    rejected = [(line, fault) for line, fault, _ in judged if fault is not None]
    for line, fault in rejected:
        click.echo(f"{pairs}:{line}: {harmless(fault)}")
    accepted = len(judged) - len(rejected)
    click.echo(f"{len(judged)} pairs: {accepted} accepted, {len(rejected)} rejected")
    if any(valid is None for *_, valid in judged):
        return ExitCode.GATE_FAILED if rejected else ExitCode.PASS
    # What is broken is what the linter should find.
    hits = sum(fault is not None and not valid for _, fault, valid in judged)
    broken = sum(not valid for *_, valid in judged)
    recall, precision = _share(hits, broken), _share(hits, len(rejected))
    click.echo(f"  labelled broken: {broken}, of them rejected: {hits} (recall {recall})")
    click.echo(f"  rejected: {len(rejected)}, of them broken: {hits} (precision {precision})")
    for line, found, valid in judged:
        if (found is None) != valid:
            what = "valid, but rejected" if valid else "broken, but accepted"
            click.echo(f"  line {line}: {what}")
    return ExitCode.PASS


def _annotate(path: Path, out: Path | None, own: Sequence[str], *, yes: bool) -> int:
    """Show the attributes that the texts of a table state, and write the cases if that is right."""
    from fairgate.io.durable import write_lines
    from fairgate.relations.annotation import Annotator
    from fairgate.suites.metamorphic import sources as cases

    if out is not None and out.exists():
        raise UsageError(f"{out}: is there already; name another file, or remove it")
    annotator = Annotator(known_dimensions(own, folder=Path()))
    lines: list[str] = []
    texts = cases.read_sources(CorpusSpec(path=str(path)))
    for source in texts:
        annotated = annotator.annotate(source.text)
        if isinstance(annotated, str):
            click.echo(f"{harmless(source.id)}: left out: {harmless(annotated)}")
            continue
        click.echo(f"{harmless(source.id)}: {harmless(annotated.marked)}")
        if annotated.unmarked:
            click.echo(f"  stays as it is: {harmless(', '.join(annotated.unmarked))}")
        case = cases.GeneratedCase(
            id=source.id,
            text=source.text,
            template=cases.ANNOTATED,
            frame=annotated.frame,
            attributes=annotated.attributes,
        )
        lines.append(json.dumps(cases.case_row(case), ensure_ascii=False))
    click.echo(f"{len(lines)} of {len(texts)} texts state attributes that can be changed")
    if not lines:
        raise DataError(f"{path}: no text states an attribute in a form that can be changed")
    if out is None:
        return ExitCode.PASS
    if not yes:
        require_terminal("--yes once you have read the marks")
        click.confirm(f"Is every mark right? Write them to {harmless(str(out))}", abort=True)
    header = {cases.HEADER_KEY: cases.FORMAT, "generator": cases.ANNOTATED}
    header |= {"own-attributes": list(own)} if own else {}
    write_lines(out, [json.dumps(header, ensure_ascii=False), *lines])
    click.echo(f"{harmless(str(out))}: {len(lines)} cases; name the file under `sources`")
    return ExitCode.PASS


def _judged(path: str) -> Iterator[tuple[int, str | None, bool | None]]:
    """Yield the line of every pair, its fault and its label.

    Raises DataError with `path:line` for a line that is no pair.
    """
    linter = PairLinter(embedded_dimensions())
    for row in read_rows(path):
        location = f"{path}:{row.line}"
        name, source, follow_up = (
            checked_text(row.values.get(key), location, key)
            for key in ("relation", "source", "follow_up")
        )
        kind = edit_kind(name)
        if kind is None:
            expected = listed([member.value for member in EditKind])
            raise DataError(f"{location}: `relation` is {capped(name)}; expected {expected}")
        valid = row.values.get("valid")
        if valid is not None and not isinstance(valid, bool):
            raise DataError(f"{location}: `valid` is {capped(valid)}; expected true or false")
        yield row.line, linter.fault(kind, source, follow_up), valid


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "not defined"
