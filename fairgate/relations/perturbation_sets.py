"""Perturbation sets: the terms of one demographic, or of the control arm, and their phrases."""

from __future__ import annotations

from dataclasses import dataclass


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

    @property
    def is_pool(self) -> bool:
        """Return whether its terms are people's names, which carry what is never said."""
        return bool(self.terms and self.terms[0].group)
