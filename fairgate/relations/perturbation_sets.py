"""Perturbation sets: the terms of one demographic, or of the control arm, and their phrases."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

_BARE = 2
"""Words of a phrase that is an article and a noun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One term and the noun phrase that carries it."""

    term: str
    """Lower case, spaces kept: `middle eastern`."""
    noun_phrase: str
    """Whole and capitalised: `A Middle Eastern person`."""
    also: tuple[str, ...] = ()
    """Other phrases for the same people; a source meets one of all these."""
    note: str = ""
    """Why the noun phrase does not contain the term, where it does not."""
    group: str = ""
    """Whose name it is, where it is a person's name: then also the first name alone, and the kind
    that names of other groups must have in common with it."""
    first: str = ""
    kind: tuple[str, ...] = ()

    @property
    def phrases(self) -> tuple[str, ...]:
        """Return every phrase that says it, the first one that stands for it alone."""
        return (self.noun_phrase, *self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbationSet:
    """Terms of one category in a fixed order, or neutral terms for the control arm."""

    id: str
    terms: tuple[Term, ...]
    control: bool = False
    draw: int | None = None
    """How many of the terms a run asks; None: all."""
    head: str = ""
    """The word that phrases of one form have, `person` in "A tall person"; empty: one form."""
    review: str = ""
    """What somebody who knows the language has to look at; empty where nothing is to be said."""
    is_own: bool = False
    """Whether it is a user's file, not a bundled one."""

    @property
    def is_pool(self) -> bool:
        """Return whether its terms are people's names, which carry what is never said."""
        return bool(self.terms and self.terms[0].group)

    def said_to(self, source_id: str, term: Term) -> str:
        """Return the phrase that says a term to a source: the one with the least hash.

        It depends on nothing but the source's id and the phrases, and a phrase that is added or
        left out moves no source between the others (D. G. Thaler and C. V. Ravishankar, IEEE/ACM
        Trans. Networking 6 (1998) 1-14).
        """
        if not term.also:
            return term.noun_phrase

        words = f"{source_id}\0{self.id}\0{term.term}\0"

        def digest(phrase: str) -> bytes:
            return hashlib.sha256(f"{words}{phrase}".encode("utf-8", "replace")).digest()

        return min(term.phrases, key=digest)

    def of_phrases(self, most: int | None) -> PerturbationSet:
        """Return the set with at most this many phrases of each term, the first ones."""
        if most is None or all(len(term.phrases) <= most for term in self.terms):
            return self
        terms = (replace(term, also=term.also[: most - 1]) for term in self.terms)
        return replace(self, terms=tuple(terms))


def drawn(control: PerturbationSet, identities: Iterable[PerturbationSet]) -> PerturbationSet:
    """Draw as many of the control set's terms as it says.

    Of the two forms, with the set's `head` and without, as many as the identities have in
    proportion, and of each form phrases as long as the identities' are: to each quantile of their
    lengths the nearest that is left, of equally near ones by the hash of id and term. So the draw
    is always the same.
    """
    count = control.draw
    if count is None or count >= len(control.terms):
        return control
    phrases = [phrase for group in identities for term in group.terms for phrase in term.phrases]
    with_head, without = _by_form(control)
    if not with_head or not without:
        chosen = _as_long_as(phrases, [*with_head, *without], count)
    else:
        of_form = [phrase for phrase in phrases if _has(control.head, phrase)]
        share = len(of_form) / len(phrases) if phrases else 0.5
        first = min(len(with_head), max(count - len(without), round(share * count)))
        bare = [phrase for phrase in phrases if phrase not in of_form]
        chosen = _as_long_as(of_form or phrases, with_head, first)
        chosen |= _as_long_as(bare or phrases, without, count - first)
    terms = tuple(term for term in control.terms if term.term in chosen)
    return replace(control, terms=terms)


def _as_long_as(phrases: Sequence[str], terms: Sequence[Term], count: int) -> set[str]:
    """Choose terms whose phrases have the lengths of the named ones, in the terms' order."""
    lengths = sorted(map(len, phrases))
    left = list(terms)
    chosen: set[str] = set()
    # From both ends, where there are fewest to choose from.
    for number in sorted(range(count), key=lambda n: (-abs(2 * n + 1 - count), n)):
        wanted = lengths[len(lengths) * (2 * number + 1) // (2 * count)] if lengths else 0
        nearest = min(left, key=lambda term: abs(len(term.noun_phrase) - wanted))
        left.remove(nearest)
        chosen.add(nearest.term)
    return chosen


def _by_form(control: PerturbationSet) -> tuple[list[Term], list[Term]]:
    if not control.head:
        return [], _in_order(control.id, control.terms)
    of_form = [term for term in control.terms if _has(control.head, term.noun_phrase)]
    others = [term for term in control.terms if term not in of_form]
    return _in_order(control.id, of_form), _in_order(control.id, others)


def _has(head: str, phrase: str) -> bool:
    """Whether a phrase is the head with something before or behind it beside an article."""
    words = phrase.lower().split()
    return head.lower() in words and len(words) > _BARE


def _in_order(name: str, terms: Sequence[Term]) -> list[Term]:
    def place(term: Term) -> str:
        return hashlib.sha256(f"{name}/{term.term}".encode()).hexdigest()

    return sorted(terms, key=place)
