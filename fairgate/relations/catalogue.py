"""Every metamorphic relation that a policy can name."""

from __future__ import annotations

from fairgate.domain.errors import UsageError
from fairgate.domain.wording import quoted, suggestion
from fairgate.relations.relation import MetamorphicRelation
from fairgate.relations.set_equivalence import SetEquivalence

RELATIONS: tuple[MetamorphicRelation, ...] = (SetEquivalence(),)


def relation_ids() -> tuple[str, ...]:
    """Return the ids in the order in which they are documented."""
    return tuple(relation.id for relation in RELATIONS)


def by_id(name: str) -> MetamorphicRelation:
    """Return the relation called `name`; raises UsageError with the nearest names."""
    for relation in RELATIONS:
        if relation.id == name:
            return relation
    hint = suggestion(name, relation_ids())
    raise UsageError(f"no relation is called {quoted(name)}; {hint} See `fairgate relations list`.")
