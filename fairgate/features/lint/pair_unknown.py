"""Edits of few words, whether a catalogue of attributes knows them or not, applied throughout.

The edit is read where two texts first differ, and then both are walked side by side: each place has
the same word, or the edit, or a pronoun or verb that agrees with it. So a substitution that is
applied in every place is one edit, and a second edit stops the walk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from fairgate.domain.attributes import Manner
from fairgate.features.lint.mentions import EditKind, Item, Mention, Token, tokens
from fairgate.relations.english import (
    CASES,
    FUNCTION_WORDS,
    NOUNS,
    PRONOUNS,
    plural_clause,
    plural_noun,
)

LONGEST = 3
"""Most words of an attribute that the catalogue does not know."""
_INDEFINITE = frozenset({"a", "an", "another", "other"})
_DETERMINERS = _INDEFINITE | frozenset(
    """the this that these those my your his her its our their one two three every each some any
    no""".split()  # noqa: SIM905 (reads better so)
)
_Words = tuple[str, ...]


class WordAgreement:
    """Judges the ordinary words of a follow-up, one beside its source's."""

    def __init__(
        self, before: Sequence[Mention], after: Sequence[Mention], *, singular: bool
    ) -> None:
        """Take the mentions of both texts; `singular`: an article shows one person."""
        self._old, self._new = _pronoun_of(before), _pronoun_of(after)
        self._singular = singular

    def fault(self, old: Token, new: Token, *, verb: bool) -> str | None:
        """Return how a word differs otherwise than the person's gender wants.

        `verb`: the word stands beside a pronoun, so it may be a verb that agrees with it.
        """
        was, now = old.text.lower(), new.text.lower()
        if self._old != self._new and self._old is not None and PRONOUNS.get(was) == self._old:
            return self._pronoun_fault(old, new)
        if was == now:
            return case_fault(old, new)
        counted = self._old != self._new and "they" in (self._new or "they", self._old)
        if verb and counted and (plural_clause(was) == now or plural_clause(now) == was):
            return None
        return f"'{old.text}' becomes '{new.text}', which is not the attribute"

    def _pronoun_fault(self, old: Token, new: Token) -> str | None:
        was, now = old.text.lower(), new.text.lower()
        wanted = self._new or "they"
        if PRONOUNS.get(now) == "they" and not self._singular and was == now:
            return None  # several persons
        if PRONOUNS.get(now) != wanted:
            return f"the pronoun '{new.text}' does not agree with the person ('{wanted}')"
        if not any(was in case and now in case for case in CASES):
            return f"the pronoun '{new.text}' has another case than '{old.text}'"
        return None


def _pronoun_of(mentions: Sequence[Mention]) -> str | None:
    """Return the pronoun of the person whose gender is said or denied; None where it is not."""
    genders = [mention for mention in mentions if mention.value.pronoun]
    if not genders:
        return None
    pronouns = {m.value.pronoun for m in genders if m.manner is not Manner.NEGATED}
    several = any(mention.plural for mention in mentions)
    return pronouns.pop() if len(pronouns) == 1 and not several else "they"


def case_fault(old: Token, new: Token) -> str | None:
    """Return how the same word is written in another case than its place in the sentence wants."""
    if old.text == new.text and not (new.starts and new.text[:1].islower() and old.starts is False):
        return None
    if new.starts and new.text[:1].isupper() and new.text.lower() == old.text.lower():
        return None
    if old.starts and not new.starts and new.text == old.text[:1].lower() + old.text[1:]:
        return None
    return f"'{old.text}' becomes '{new.text}': the case changes"


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
    complete: bool = False

    def __post_init__(self) -> None:
        """Walk as far as the texts are one another's but for the edit."""
        n = m = 0
        one, other = self.before, self.after
        forms = _forms(self.old, self.new)
        while n < len(one) or m < len(other):
            form = next((f for f in forms if _at(one, n, f[0]) and _at(other, m, f[1])), None)
            if form is not None and (form[1] or not _at(other, m, form[0])):
                self.places.append(n)
                self._spell(m, form)
                n, m = n + len(form[0]), m + len(form[1])
                continue
            if n >= len(one) or m >= len(other) or not self._same(n, m):
                return
            if any(_at(one, n, f[0]) and f[0] for f in forms):
                self.left.append(n)
            n, m = n + 1, m + 1
        self.complete = bool(self.places)

    def _spell(self, m: int, form: tuple[_Words, _Words]) -> None:
        here = self.after[m : m + len(form[1])]
        if form[1] == self.new and here and not here[0].starts:
            self.spelt.add(" ".join(token.text for token in here if token.text.lower() != "an"))
            if len(self.spelt) > 1:
                self.wrong_case = f"'{' '.join(self.new)}' is not written the same in every place"

    def _same(self, n: int, m: int) -> bool:
        old, new = self.before[n], self.after[m]
        was, now = _folded(old), _folded(new)
        if was == now:
            self.kept |= {PRONOUNS[was]} if was in PRONOUNS else set()
            self.wrong_case = self.wrong_case or (None if was == "a" else case_fault(old, new))
            return True
        if was in PRONOUNS and now in PRONOUNS and any({was, now} <= case for case in CASES):
            self.pronouns.add((PRONOUNS[was], PRONOUNS[now]))
            if old.starts == new.starts and old.text[0].isupper() != new.text[0].isupper():
                self.wrong_case = f"'{old.text}' becomes '{new.text}': the case changes"
            following = _folded(self.after[m + 1]) if m + 1 < len(self.after) else "."
            ends = not following[0].isalnum() or following in FUNCTION_WORDS
            return not (was == "her" and now == "his" and ends)
        counted = any("they" in change for change in self.pronouns)
        return counted and (plural_clause(was) == now or plural_clause(now) == was)

    def next_word(self, place: int) -> str:
        """Return the word behind an occurrence of the edited words in the source, singular."""
        place += len(self.old)
        word = _folded(self.before[place]) if place < len(self.before) else "."
        return word.removesuffix("s") if len(word) > 3 else word

    def words_before(self, place: int) -> _Words:
        """Return the two words before a place of the source, fewer at its beginning."""
        return tuple(map(_folded, self.before[max(0, place - 2) : place]))

    @property
    def names(self) -> bool:
        """Whether the words stand as names do: capitals, and no adjective or noun of a phrase."""
        spelt = [token.text for n in self.places for token in self.before[n : n + len(self.old)]]
        spelt += [t.text for t in self.after if t.text.lower() in self.new]
        capitals = all(word[:1].isupper() for word in spelt)
        return capitals and not any(map(self._in_phrase, self.places))

    def _in_phrase(self, place: int) -> bool:
        """Whether a determiner stands before the words, and a word that may be a noun behind."""
        for token in self.before[max(0, place - LONGEST) : place][::-1]:
            if _folded(token) in _DETERMINERS:
                return _content(self.next_word(place))
            if not _content(_folded(token)):
                return False
        return False


def _folded(token: Token) -> str:
    word = token.text.lower()
    return "a" if word == "an" else word


def _content(word: str) -> bool:
    return word[:1].isalnum() and word not in FUNCTION_WORDS


def _at(row: Sequence[Token], place: int, words: _Words) -> bool:
    return tuple(map(_folded, row[place : place + len(words)])) == words


def _forms(old: _Words, new: _Words) -> list[tuple[_Words, _Words]]:
    """Return the edit, and the same edit in the other number."""
    pairs = [(old, new)]
    if old and new:
        pairs.append((_plural(old), _plural(new)))
        if old[-1].endswith("s") and new[-1].endswith("s"):
            pairs.append(((*old[:-1], old[-1][:-1]), (*new[:-1], new[-1][:-1])))
    return pairs


def _plural(words: _Words) -> _Words:
    return (*words[:-1], plural_noun(words[-1]))


def walk_of(kind: EditKind, one: Sequence[Item], other: Sequence[Item]) -> Walk | None:
    """Return the walk with the shortest edit that explains two texts; None where there is none."""
    before, after = _tokens(one), _tokens(other)
    was, now = list(map(_folded, before)), list(map(_folded, after))
    first = 0
    while first < min(len(was), len(now)) and (
        was[first] == now[first] or {was[first], now[first]} <= PRONOUNS.keys()
    ):
        first += 1
    shapes = sorted(product(range(1, LONGEST + 1), range(LONGEST + 2)), key=sum)
    for taken, given in shapes:
        old, new = tuple(was[first : first + taken]), tuple(now[first : first + given])
        if _allowed(kind, old, new):
            walk = Walk(before, after, old, new)
            if walk.complete:
                return walk
    return None


def _allowed(kind: EditKind, old: _Words, new: _Words) -> bool:
    denied = tuple(word.removeprefix("non-") for word in new)
    return {
        EditKind.REMOVE_ONE: bool(old) and not new,
        EditKind.SUBSTITUTE_ONE: bool(old) and 0 < len(new) <= LONGEST,
        EditKind.NEGATE_ONE: denied == old != new,
    }.get(kind, False)


def unknown_attribute_faults(
    kind: EditKind,
    one: Sequence[Item],
    other: Sequence[Item],
) -> Iterator[str]:
    """Yield why two texts are not one edit of words, with what agrees with it."""
    if kind is EditKind.PERMUTE:
        yield from _permutation_faults(*_changed(_tokens(one), _tokens(other)))
        return
    walk = walk_of(kind, one, other)
    if walk is None:
        yield "no attribute of the source is edited, or more than one"
        return
    edited = {*walk.old, *walk.new}
    if not all(word[:1].isalnum() for word in edited) or FUNCTION_WORDS & edited:
        yield "words are edited that are no attribute"
    if walk.wrong_case:
        yield walk.wrong_case
    yield from left_behind(walk)
    yield from _pronoun_faults(walk)


def left_behind(walk: Walk, *, noun: bool = False) -> Iterator[str]:
    """Yield where the edit is not applied although the same is meant; `noun`: a noun is edited.

    Another person may have the attribute, too: "the old man helped the old woman". The same is
    meant by a name, by the words in the same phrase, and by a noun that "a" does not introduce.
    """
    after = {walk.next_word(place) for place in walk.places if _content(walk.next_word(place))}
    before = {words for place in walk.places if len(words := walk.words_before(place)) == 2}
    articles = {words[-1:] for words in map(walk.words_before, walk.places)}
    noun = noun or not all(_content(walk.next_word(place)) for place in walk.places + walk.left)
    for place in walk.left:
        last = walk.words_before(place)[-1:]
        if last and last[0] in _INDEFINITE:
            continue
        follows = walk.next_word(place)
        if (
            noun
            or walk.names
            or follows in after
            or walk.words_before(place) in before
            or (last == ("the",) and ("a",) in articles)
        ):
            yield f"'{' '.join(walk.old)}' is edited in one place and left in another"


def _pronoun_faults(walk: Walk) -> Iterator[str]:
    """Yield pronouns that change without their person, or do not follow it."""
    old, new = NOUNS.get(walk.old[-1]), NOUNS.get(walk.new[-1]) if walk.new else None
    for was, now in walk.pronouns:
        agrees = walk.names or (old == was and now == (new or "they"))
        if was != now and not agrees:
            yield f"the pronoun of '{was}' becomes that of '{now}', which is not the attribute"
    follows = {was for was, _ in walk.pronouns} | ({old} if new and old != new else set())
    if len(walk.pronouns) > 1 or follows & walk.kept:
        yield "a pronoun does not agree with the person"


def _permutation_faults(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    before, after = ([word.lower() for word in run if word != ","] for run in (old, new))
    if sorted(before) != sorted(after) or before == after:
        yield "the words are not the same in another order"
    if len(before) > 2 * LONGEST or FUNCTION_WORDS & set(before):
        yield "more than attributes change their places"


def _changed(one: Sequence[Token], other: Sequence[Token]) -> tuple[list[str], list[str]]:
    """Return what differs between two rows, from the first word to the last, without articles."""
    before, after = (
        [token.text for token in row if token.text.lower() not in {"a", "an"}]
        for row in (one, other)
    )
    head = common_beginning(before, after)
    tail = common_beginning(before[head:][::-1], after[head:][::-1])
    return before[head : len(before) - tail], after[head : len(after) - tail]


def _tokens(items: Sequence[Item]) -> list[Token]:
    """Return all words and signs, those of mentions included."""
    row: list[Token] = []
    for item in items:
        if isinstance(item, Mention):
            starts = not row or row[-1].text in ".?!:"
            words = tokens(item.words)
            row += [Token(word.text, starts and n == 0) for n, word in enumerate(words)]
        else:
            row.append(item)
    return row


def common_beginning(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two rows have in common from their beginning, whatever the case."""
    length = 0
    for a, b in zip(one, other, strict=False):
        if a.lower() != b.lower():
            break
        length += 1
    return length
