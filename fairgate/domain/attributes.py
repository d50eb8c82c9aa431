"""Sensitive attributes: what a text can state about a person, in which words, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations

from fairgate.domain.wording import quoted, suggestion


class Form(StrEnum):
    """The part that an attribute has in its sentence."""

    ADJECTIVE = "adjective"
    """Before the noun: "a *Hispanic* engineer"."""
    NOUN = "noun"
    """The noun itself: "a Hispanic *engineer*"."""
    CLAUSE = "clause"
    """After the noun: "an engineer who *has no children*"."""
    GERUND = "gerund"
    """In a list of traits: "how has *being Hispanic* influenced your view"."""


class Manner(StrEnum):
    """How a value is expressed."""

    PLAIN = "plain"
    NEGATED = "negated"
    INTENSIFIED = "intensified"
    REDUCED = "reduced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The words of one value in one manner; an empty form does not exist in English."""

    adjective: str = ""
    noun: str = ""
    noun_plural: str = ""
    clause: str = ""
    """A verb phrase after "who", third person singular: `has no children`."""
    clause_plural: str = ""
    gerund: str = ""

    def words(self, form: Form, *, plural: bool = False) -> str:
        """Return the words of a form, for one person or several; empty where there are none."""
        match form:
            case Form.ADJECTIVE:
                return self.adjective
            case Form.NOUN:
                return self.noun_plural if plural else self.noun
            case Form.CLAUSE:
                return self.clause_plural if plural else self.clause
            case Form.GERUND:
                return self.gerund


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeValue:
    """One value of a dimension and its wording in every manner that it has."""

    id: str
    """Stable kebab string: `middle-aged`."""
    partition: str
    """Equivalence class within its dimension."""
    wordings: tuple[tuple[Manner, Wording], ...] = field(repr=False)
    opposite: str = ""
    """Id of the value that is its opposite; empty where there is none."""
    pronoun: str = ""
    """`she`, `he` or `they`, where the value decides it; else empty."""
    excludes: frozenset[str] = frozenset()
    """Values of other attributes that nobody has together with it: `experience/long-serving`."""
    also: tuple[str, ...] = ()
    """Other words that say it in texts that were not made of the catalogue: `woman`."""

    def wording(self, manner: Manner) -> Wording | None:
        """Return the words for a manner; None where the value has none."""
        return dict(self.wordings).get(manner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One sensitive attribute, such as age, with its values."""

    id: str
    values: tuple[AttributeValue, ...]
    """In the order of the scale where `ordered`."""
    ordered: bool = False
    """Whether the values are a scale, whose first and last are the boundary values."""
    source: str = ""
    """Where the values come from."""

    def value(self, name: str) -> AttributeValue | None:
        """Return the value with that id."""
        return next((value for value in self.values if value.id == name), None)

    @property
    def boundaries(self) -> tuple[AttributeValue, ...]:
        """Return the least and the greatest value of a scale; nothing where there is no scale."""
        return (self.values[0], self.values[-1]) if self.ordered else ()

    def opposite(self, value: AttributeValue) -> AttributeValue | None:
        """Return the opposite of a value, where the catalogue has one."""
        return self.value(value.opposite)

    def others(self, value: AttributeValue) -> tuple[AttributeValue, ...]:
        """Return the values that may stand in for a value, in the order of the values."""
        return tuple(other for other in self.values if other.id != value.id)

    def hint_for(self, name: str) -> str:
        """Return a hint for the unknown value `name`: the nearest values, or all of them."""
        return f"{quoted(name)}; {suggestion(name, [value.id for value in self.values])}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeUse:
    """One attribute as a text states it: dimension, value, form, manner, and where it stands."""

    dimension: Dimension = field(repr=False)
    value: AttributeValue
    form: Form
    manner: Manner = Manner.PLAIN
    start: int = 0
    """First character of its words in the text; 0 with `end` 0 where no text stands yet."""
    end: int = 0
    """One past the last character."""

    @property
    def name(self) -> str:
        """Return `ethnicity/hispanic`."""
        return f"{self.dimension.id}/{self.value.id}"

    def words(self, form: Form | None = None, *, plural: bool = False) -> str:
        """Return its words, in its own form or another; empty where that form does not exist."""
        wording = self.value.wording(self.manner)
        return "" if wording is None else wording.words(form or self.form, plural=plural)


def excluded(first: tuple[str, AttributeValue], second: tuple[str, AttributeValue]) -> bool:
    """Return whether nobody has two values together; each with its name (`age/young`)."""
    return second[0] in first[1].excludes or first[0] in second[1].excludes


def contradiction(uses: Sequence[AttributeUse]) -> tuple[str, str] | None:
    """Return the names of two attributes that nobody has together; None where there are none.

    A denied attribute contradicts nothing.
    """
    asserted = [(use.name, use.value) for use in uses if use.manner is not Manner.NEGATED]
    pairs = (
        (first[0], second[0])
        for first, second in combinations(asserted, 2)
        if excluded(first, second)
    )
    return next(pairs, None)
