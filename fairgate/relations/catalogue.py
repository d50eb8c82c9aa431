"""Every metamorphic relation that a policy can name."""

from __future__ import annotations

from fairgate.domain.catalogue import Catalogue
from fairgate.relations.relation import MetamorphicRelation
from fairgate.relations.set_equivalence import SetEquivalence

RELATIONS: Catalogue[MetamorphicRelation] = Catalogue(
    "relation", (SetEquivalence(),), see="fairgate relations list"
)
