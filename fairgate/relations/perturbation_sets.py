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
    note: str = ""
    """Why the noun phrase does not contain the term, where it does not."""
    group: str = ""
    """Whose name it is, where it is a person's name: then also the first name alone, and the kind
    that names of other groups must have in common with it."""
    first: str = ""
    kind: tuple[str, ...] = ()


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
    spare: tuple[Term, ...] = ()
    """Those that were not drawn, in the order of the draw."""

    @property
    def is_pool(self) -> bool:
        """Return whether its terms are people's names, which carry what is never said."""
        return bool(self.terms and self.terms[0].group)


def drawn(
    control: PerturbationSet, identities: Iterable[PerturbationSet], count: int | None = None
) -> PerturbationSet:
    """Draw `count` of the control set's terms, or as many as it says itself.

    Of the two forms, with the set's `head` and without, as many as the identities have in
    proportion, as far as there are any. The order of the draw is the order of the hashes of id and
    term: fixed, so that a larger sample contains a smaller one, and runs pair.
    """
    count = control.draw if count is None else count
    if count is None or count >= len(control.terms):
        return control
    named = [term.noun_phrase for group in identities for term in group.terms]
    with_head, without = _by_form(control)
    if not with_head or not without:
        chosen = {term.term for term in _in_order(control.id, control.terms)[:count]}
    else:
        share = sum(_has(control.head, each) for each in named) / len(named) if named else 0.5
        first = min(len(with_head), max(count - len(without), round(share * count)))
        chosen = {term.term for term in (*with_head[:first], *without[: count - first])}
    spare = [term for term in control.terms if term.term not in chosen]
    return replace(
        control,
        terms=tuple(term for term in control.terms if term.term in chosen),
        spare=tuple(_in_order(control.id, spare)),
    )


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
