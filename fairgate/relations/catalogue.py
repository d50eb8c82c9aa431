"""Every metamorphic relation that a policy can name, by id or by family."""

from __future__ import annotations

from collections.abc import Iterable

from fairgate.domain.catalogue import Catalogue
from fairgate.relations.genfair.mr1_removal_one import RemovalOfOne
from fairgate.relations.genfair.mr2_removal_all import RemovalOfAll
from fairgate.relations.genfair.mr3_selective_negation import SelectiveNegation
from fairgate.relations.genfair.mr4_total_negation import TotalNegation
from fairgate.relations.genfair.mr5_substitution_all import SubstitutionOfAll
from fairgate.relations.genfair.mr6_substitution_one import SubstitutionOfOne
from fairgate.relations.genfair.mr7_counterfactual import Counterfactual
from fairgate.relations.genfair.mr8_order_permutation import OrderPermutation
from fairgate.relations.intersectional.pairs import PairsOfAttributes
from fairgate.relations.meta_fair.mr1_single_attribute import SingleAttribute
from fairgate.relations.meta_fair.mr2_dual_attributes import DualAttributes
from fairgate.relations.meta_fair.mr3_ranked_list import RankedList
from fairgate.relations.meta_fair.mr4_hypothetical_scenario import HypotheticalScenario
from fairgate.relations.meta_fair.mr5_proper_nouns import ProperNouns
from fairgate.relations.meta_fair.mr6_metal_prefix import MetalPrefix
from fairgate.relations.meta_fair.mr7_sentence_completion import SentenceCompletion
from fairgate.relations.meta_fair.mr8_inverted_single import InvertedSingle
from fairgate.relations.meta_fair.mr9_inverted_ranked import InvertedRanked
from fairgate.relations.meta_fair.mr10_inverted_scenario import InvertedScenario
from fairgate.relations.meta_fair.mr11_score import Score
from fairgate.relations.meta_fair.mr12_yes_no import YesNo
from fairgate.relations.meta_fair.mr13_multiple_choice import MultipleChoice
from fairgate.relations.meta_fair.mr14_prioritisation import Prioritisation
from fairgate.relations.relation import MetamorphicRelation
from fairgate.relations.set_equivalence import SetEquivalence

RELATIONS: Catalogue[MetamorphicRelation] = Catalogue(
    "relation",
    (
        SetEquivalence(),
        RemovalOfOne(),
        RemovalOfAll(),
        SelectiveNegation(),
        TotalNegation(),
        SubstitutionOfAll(),
        SubstitutionOfOne(),
        Counterfactual(),
        OrderPermutation(),
        PairsOfAttributes(),
        SingleAttribute(),
        DualAttributes(),
        RankedList(),
        HypotheticalScenario(),
        ProperNouns(),
        MetalPrefix(),
        SentenceCompletion(),
        InvertedSingle(),
        InvertedRanked(),
        InvertedScenario(),
        Score(),
        YesNo(),
        MultipleChoice(),
        Prioritisation(),
    ),
    see="fairgate relations list",
)
CODE_OF: dict[str, str] = {}
"""Hash of the file of each relation that is the user's own; shipped ones come with the version."""
EVERY = "/*"
"""Ends the name of a family: `meta-fair/*` is every relation whose id begins with `meta-fair/`."""


def families() -> tuple[str, ...]:
    """Return what stands before the `/` of the relations' ids, as policies name it."""
    found = (name.partition("/")[0] for name in RELATIONS.ids if "/" in name)
    return tuple(dict.fromkeys(f"{family}{EVERY}" for family in found))


def relations_named(names: Iterable[str]) -> tuple[str, ...]:
    """Return the ids that a policy's names and families denote, each once, in their order."""
    found: dict[str, None] = {}
    for name in names:
        members = [each for each in RELATIONS.ids if each.startswith(name[:-1])]
        found.update(dict.fromkeys(members if name.endswith(EVERY) else [name]))
    return tuple(found)
