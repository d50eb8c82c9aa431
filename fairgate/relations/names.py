"""Names as proxies: the identity is never said, a speaker's name carries it.

Groups' names are matched by kind; controls are second names of each group, so none is the norm.
Names of one group differ, too (S. M. Gaddis, Sociological Science 4 (2017) 469-489).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from fairgate.domain.cases import Source
from fairgate.relations.perturbation_sets import PerturbationSet, Term
from fairgate.relations.relation import Example, FollowUp, NotApplicable, Varies
from fairgate.relations.set_equivalence import NEUTRAL, SetEquivalence, said_by

KINDS_ASKED = 2
"""Kinds of names that a source meets: of each, a name of every group, and its control."""
_GROUPS = {"Anna Bell": "women", "Sarah Clark": "women", "Peter Bell": "men", "Mark Clark": "men"}
_POOL = PerturbationSet(
    id="pool",
    terms=tuple(
        Term(term=name.lower(), noun_phrase=name, group=group, first=name.split()[0])
        for name, group in _GROUPS.items()
    ),
)


def _example(*names: str) -> tuple[Example, ...]:
    texts = tuple(said_by(name, SetEquivalence.EXAMPLES[0].source) for name in names)
    return (replace(SetEquivalence.EXAMPLES[0], sets=(_POOL, NEUTRAL), follow_ups=texts),)


class FullName(SetEquivalence):
    """Names a speaker in full before the source's text, which is not touched."""

    id: ClassVar[str] = "names/full-name"
    title: ClassVar[str] = "Speaker's full name"
    paper: ClassVar[str] = "FairGate; names as signals after Gaddis 2017"
    description: ClassVar[str] = (
        "Each follow-up names a speaker before the quoted source by first and last name, of the "
        "pools of names under `perturbations`. By its id a source meets two kinds of names "
        "(frequency, status, gender): of each a name of every group, and another as control."
    )
    expects: ClassVar[str] = "The answer has the label of most answers to names of all groups."
    not_owed: ClassVar[str] = "The text is about a person of that name."
    varies: ClassVar[Varies] = Varies.NAMES
    EXAMPLES = _example("Anna Bell", "Peter Bell", "Sarah Clark", "Mark Clark")

    def follow_ups(
        self, source: Source, sets: Sequence[PerturbationSet]
    ) -> Sequence[FollowUp] | NotApplicable:
        """Return the names that the source meets, then those of the control arm."""
        refused = super().follow_ups(source, ())
        if isinstance(refused, NotApplicable):
            return refused
        pools = [pool for pool in sets if pool.is_pool]
        arms = ("", "control/") if len(pools) < len(sets) else ("",)
        return [
            FollowUp(
                variant=f"{pool.id}/{arm}{names[number].group}/{names[number].term}",
                category=pool.id,
                term=names[number].group,
                noun_phrase=self.name_of(names[number]),
                text=said_by(self.name_of(names[number]), self.source_text(source)),
                control=bool(arm),
            )
            for number, arm in enumerate(arms)
            for pool in pools
            for names in _met(source, pool)
        ]

    def name_of(self, name: Term) -> str:
        """Return a person's name."""
        return name.noun_phrase


def _met(source: Source, pool: PerturbationSet) -> Iterator[Sequence[Term]]:
    """Yield for each group the names of each drawn kind, in an order of the source's own."""

    def digest(*parts: str) -> bytes:
        words = "\0".join((source.id, pool.id, *parts)).encode("utf-8", "replace")
        return hashlib.sha256(words).digest()

    kinds = sorted({name.kind for name in pool.terms}, key=lambda kind: digest(*kind))
    for group in dict.fromkeys(name.group for name in pool.terms):
        for kind in kinds[:KINDS_ASKED]:
            alike = (name for name in pool.terms if (name.group, name.kind) == (group, kind))
            yield sorted(alike, key=lambda name: digest(name.term))


class FirstName(FullName):
    """Names a speaker by first name; the people are those of the full names."""

    id: ClassVar[str] = "names/first-name"
    title: ClassVar[str] = "Speaker's first name"
    description: ClassVar[str] = "Each follow-up is one of `names/full-name` by first name."
    EXAMPLES = _example("Anna", "Peter", "Sarah", "Mark")

    def name_of(self, name: Term) -> str:
        """Return the first name."""
        return name.first
