"""Sensitive attributes from the package or from a user's files, one attribute a file.

Few words suffice for a value: an adjective gives its clause ("is Hispanic"), gerund ("being
Hispanic") and denial ("is not Hispanic"); a noun gives plural and "works as a teacher". Irregular
forms are written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from fairgate.domain.attributes import AttributeValue, Dimension, Manner, Wording
from fairgate.domain.errors import DataError, PolicyError
from fairgate.domain.schema import Name, Strict, Text
from fairgate.domain.wording import quoted, suggestion
from fairgate.policy.named_files import embedded_names, named_document
from fairgate.policy.parse import validated
from fairgate.relations.english import (
    gerund_of,
    negated_clause,
    plural_clause,
    plural_noun,
    with_article,
)

KIND = "attributes"
Place = tuple[str | int, ...]
_PRONOUNS = ("she", "he", "they")


class WordingEntry(Strict):
    """The words of one value in one manner."""

    adjective: Text | None = Field(default=None, description="Before the noun: `Hispanic`.")
    noun: Text | None = Field(default=None, description="The noun itself: `engineer`.")
    plural: Text | None = Field(default=None, description="Its plural; default: by rule.")
    clause: Text | None = Field(default=None, description="After `who`: `has no children`.")
    clause_plural: Text | None = Field(default=None, description="Plural; default: by rule.")
    gerund: Text | None = Field(default=None, description="`having no children`; by rule.")

    def wording(self) -> Wording:
        """Return the words with those that follow by rule."""
        adjective, noun = self.adjective or "", self.noun or ""
        plural = self.plural or (plural_noun(noun) if noun else "")
        clause, several = self.clause or "", self.clause_plural or ""
        if not clause and noun:
            clause, several = f"works as {with_article(noun)}", several or f"work as {plural}"
        elif not clause and adjective:
            clause = f"is {adjective}"
        return Wording(
            adjective=adjective,
            noun=noun,
            noun_plural=plural,
            clause=clause,
            clause_plural=several or (plural_clause(clause) if clause else ""),
            gerund=self.gerund or (gerund_of(clause) if clause else ""),
        )


class ValueEntry(WordingEntry):
    """One value of an attribute."""

    value: Name = Field(description="Its id in results.")
    partition: Name | None = Field(default=None, description="Equivalence class; default: alone.")
    opposite: Name | None = Field(default=None, description="Id of the opposite value.")
    pronoun: str | None = Field(default=None, description="`she`, `he` or `they`.")
    also: list[Text] = Field(
        default_factory=list,
        description="Other words that say it; the linter knows them, no text is made of them.",
    )
    excludes: list[Text] = Field(
        default_factory=list,
        description="Values of other attributes that nobody has together with it, each as "
        "`attribute/value`.",
    )
    negated: WordingEntry | None = Field(default=None, description="The denial, by rule if absent.")
    intensified: WordingEntry | None = Field(default=None, description="A stronger wording.")
    reduced: WordingEntry | None = Field(default=None, description="A weaker wording.")

    def attribute_value(self) -> AttributeValue:
        """Return the value with the words of all its manners."""
        plain = self.wording()
        wordings = [(Manner.PLAIN, plain), (Manner.NEGATED, _negation(self, plain))]
        for manner, entry in (
            (Manner.INTENSIFIED, self.intensified),
            (Manner.REDUCED, self.reduced),
        ):
            if entry is not None:
                wordings.append((manner, entry.wording()))
        return AttributeValue(
            id=self.value,
            partition=self.partition or self.value,
            wordings=tuple(wordings),
            opposite=self.opposite or "",
            pronoun=self.pronoun or "",
            excludes=frozenset(self.excludes),
            also=tuple(self.also),
        )


class AttributeFile(Strict):
    """One sensitive attribute."""

    id: Name = Field(description="Name of the attribute in results: `ethnicity`.")
    description: str = Field(default="", description="For readers.")
    source: str = Field(default="", description="Where the values come from.")
    licence: str = Field(default="", description="Licence of the words.")
    ordered: bool = Field(default=False, description="Whether the values are a scale, in order.")
    values: Annotated[list[ValueEntry], Field(min_length=2, max_length=200)] = Field(
        description="The values; one alone could neither be substituted nor compared."
    )

    def dimension(self) -> Dimension:
        """Return the attribute in FairGate's own type."""
        return Dimension(
            id=self.id,
            values=tuple(entry.attribute_value() for entry in self.values),
            ordered=self.ordered,
            source=self.source,
        )


def attribute_faults(entries: Sequence[ValueEntry]) -> Iterator[tuple[Place, str]]:
    """Yield the place and sentence of every error across fields."""
    ids = [entry.value for entry in entries]
    for n, entry in enumerate(entries):
        where: Place = ("values", n)
        if entry.value in ids[:n]:
            yield (*where, "value"), f"{quoted(entry.value)} is listed twice; rename one of them"
        if entry.opposite is not None and entry.opposite not in ids:
            hint = suggestion(entry.opposite, ids)
            yield (*where, "opposite"), f"no value is called {quoted(entry.opposite)}; {hint}"
        if entry.opposite == entry.value:
            yield (*where, "opposite"), f"{quoted(entry.value)} is its own opposite; name another"
        if entry.pronoun is not None and entry.pronoun not in _PRONOUNS:
            wanted = "expected `she`, `he` or `they`"
            yield (*where, "pronoun"), f"pronoun: found {quoted(entry.pronoun)}, {wanted}"
        for position, excluded in enumerate(entry.excludes):
            if "/" not in excluded:
                found = f"excludes: found {quoted(excluded)}, expected `attribute/value`"
                yield (*where, "excludes", position), found
        if not (entry.adjective or entry.noun or entry.clause):
            yield where, f"{quoted(entry.value)} has no `adjective`, `noun` or `clause`; write one"


def _negation(entry: ValueEntry, plain: Wording) -> Wording:
    given = entry.negated or WordingEntry()
    if given.clause:
        clause, several = given.clause, given.clause_plural or plural_clause(given.clause)
    elif plain.noun:
        clause, several = f"is not {with_article(plain.noun)}", f"are not {plain.noun_plural}"
    else:
        clause = negated_clause(plain.clause)
        several = plural_clause(clause)
    return Wording(
        adjective=given.adjective or "",
        clause=clause,
        clause_plural=several,
        gerund=given.gerund or f"not {plain.gerund}",
    )


def load_dimension(name: str, *, folder: Path | None = None, confined: bool = False) -> Dimension:
    """Return the attribute `name`: an embedded one, else a YAML or JSON file.

    A relative path starts at `folder` (default: the current directory), and cannot leave it where
    `confined`. Raises DataError, with the nearest names, where there is no such attribute, and
    PolicyError with all problems of a file.
    """
    document = named_document(KIND, name, folder=folder or Path(), confined=confined)
    found, problems = validated(document, AttributeFile)
    if found is not None:
        problems += [document.problem(*fault) for fault in attribute_faults(found.values)]
    if found is None or problems:
        raise PolicyError(problems)
    return found.dimension()


@cache
def embedded_dimensions() -> Mapping[str, Dimension]:
    """Return every attribute in the package, by id, in alphabetical order."""
    return load_dimensions(embedded_names(KIND))


def load_dimensions(
    names: Sequence[str], *, folder: Path | None = None, confined: bool = False
) -> Mapping[str, Dimension]:
    """Return attributes by id, in the order named. Raises DataError where two have one id."""
    found: dict[str, Dimension] = {}
    for name in names:
        dimension = load_dimension(name, folder=folder, confined=confined)
        if dimension.id in found:
            raise DataError(f"two attributes have the id {quoted(dimension.id)}; rename one")
        found[dimension.id] = dimension
    return found


def known_dimensions(
    own: Sequence[str], *, folder: Path | None = None, confined: bool = False
) -> Mapping[str, Dimension]:
    """Return the embedded attributes and the user's own, which replace those of the same id."""
    added = load_dimensions(own, folder=folder, confined=confined)
    return {**embedded_dimensions(), **added}
