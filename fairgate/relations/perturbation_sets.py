"""Perturbation sets: the terms of one demographic (or of the control arm) and how each is phrased.

A set is data. Its file says `id`, `control`, `source`, `licence` and `terms`, each term with a
`term` (the key in results) and a `noun_phrase` (stored whole, in good English).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fairgate.domain.wording import quoted, shown, suggestion

Place = tuple[str | int, ...]

_SET_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
# A term is part of a case's key, where `/`, `#` and `@` separate: SPEC 10.
_TERM = re.compile(r"[^\W_](?:[^/#@\"\s]| (?! )){0,63}(?<! )")
_SET_KEYS = ("id", "control", "description", "source", "licence", "terms")
_TERM_KEYS = ("term", "noun_phrase", "note")
_MAX_TERMS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One term and the noun phrase that carries it."""

    term: str
    """Lower case, spaces kept: `middle eastern`."""
    noun_phrase: str
    """Whole and capitalised: `A Middle Eastern person`."""
    note: str = ""
    """Why the noun phrase does not contain the term, where it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbationSet:
    """Terms of one category in a fixed order, or neutral terms for the control arm."""

    id: str
    terms: tuple[Term, ...]
    control: bool = False
    description: str = ""
    source: str = ""
    licence: str = ""


@dataclass(frozen=True, slots=True)
class Flaw:
    """An error in the data of a set: the place in it and the sentence."""

    where: Place
    message: str


def parse_perturbation_set(data: object) -> PerturbationSet | list[Flaw]:
    """Return the set that plain data (as read from YAML or JSON) describes, else all its flaws.

    Checks the form alone; the linter checks whether a phrase is correct English.
    """
    if not isinstance(data, dict):
        keys = "`id` and `terms`"
        return [Flaw((), f"found {shown(data)}, expected a mapping with {keys}")]
    flaws = list(_flaws(data))
    if flaws:
        return flaws
    texts = {key: data.get(key) or "" for key in ("description", "source", "licence")}
    return PerturbationSet(
        id=data["id"],
        control=data.get("control", False),
        terms=tuple(Term(**entry) for entry in data["terms"]),
        **texts,
    )


def _flaws(data: dict[str, Any]) -> Iterator[Flaw]:
    yield from _unknown_keys((), data, _SET_KEYS)
    name = data.get("id")
    if "id" not in data:
        yield Flaw((), "`id` is missing; add it: the name of the set in results, such as `race`")
    elif not isinstance(name, str) or not _SET_ID.fullmatch(name):
        wanted = "a name of lower-case letters, digits, `.`, `_` and `-`"
        yield Flaw(("id",), f"id: found {shown(name)}, expected {wanted}")
    if not isinstance(data.get("control", False), bool):
        found = shown(data["control"])
        yield Flaw(("control",), f"control: found {found}, expected `true` or `false`")
    for key in ("description", "source", "licence"):
        value = data.get(key)
        if value is not None and not isinstance(value, str):
            yield Flaw((key,), f"{key}: found {shown(value)}, expected text; put it in quotes")
    terms = data.get("terms")
    if "terms" not in data:
        yield Flaw((), "`terms` is missing; add it: a list of `{term: …, noun_phrase: …}`")
    elif not isinstance(terms, list) or not 1 <= len(terms) <= _MAX_TERMS:
        wanted = f"a list of 1 to {_MAX_TERMS} terms"
        yield Flaw(("terms",), f"terms: found {shown(terms)}, expected {wanted}")
    else:
        yield from _term_flaws(terms)


def _term_flaws(terms: list[Any]) -> Iterator[Flaw]:
    seen: dict[str, int] = {}
    for position, entry in enumerate(terms):
        where: Place = ("terms", position)
        if not isinstance(entry, dict):
            found = f"terms[{position}]: found {shown(entry)}"
            yield Flaw(where, f"{found}, expected a mapping `{{term: …, noun_phrase: …}}`")
            continue
        yield from _unknown_keys(where, entry, _TERM_KEYS)
        for key in _TERM_KEYS:
            if key not in entry:
                if key != "note":
                    yield Flaw(where, f"terms[{position}]: `{key}` is missing; add it")
            elif not isinstance(entry[key], str) or not entry[key].strip():
                found = shown(entry[key])
                yield Flaw((*where, key), f"terms[{position}].{key}: found {found}, expected text")
        term = entry.get("term")
        if isinstance(term, str) and term.strip():
            yield from _term_name_flaws(where, term, seen)
            seen.setdefault(term.lower(), position)


def _term_name_flaws(where: Place, term: str, seen: dict[str, int]) -> Iterator[Flaw]:
    place = (*where, "term")
    name = f"terms[{where[1]}].term"
    if term.lower() in seen:
        yield Flaw(place, f"{name}: {quoted(term)} is already `terms[{seen[term.lower()]}]`")
    if term != term.lower():
        found = f"{name}: found {quoted(term)}"
        yield Flaw(place, f"{found}, expected lower case: {quoted(term.lower())}")
    elif not _TERM.fullmatch(term):
        wanted = "up to 64 characters without `/`, `#`, `@`, double quotes and surplus blanks"
        yield Flaw(place, f"{name}: found {quoted(term)}, expected {wanted}")


def _unknown_keys(where: Place, entry: dict[str, Any], known: tuple[str, ...]) -> Iterator[Flaw]:
    for key in entry:
        if key not in known:
            message = f"unknown key {quoted(str(key))}; {suggestion(str(key), known)}"
            yield Flaw((*where, str(key)), message)
