"""Every metamorphic relation that a policy can name, by id or by family."""

from __future__ import annotations

from collections.abc import Iterable

from fairgate.domain.registry import Registry
from fairgate.relations.relation import MetamorphicRelation

RELATIONS: Registry[MetamorphicRelation] = Registry(
    "relation",
    see="fairgate relations list",
    package="fairgate.relations",
    plugins="fairgate.relations",
    locations={
        "set-equivalence": "set_equivalence:SetEquivalence",
        "written": "written:Written",
        "documents/subject": "documents:DocumentSubject",
        "conversation/introduction": "conversation:SelfIntroduction",
        "names/first-name": "names:FirstName",
        "names/full-name": "names:FullName",
        **dict.fromkeys(
            (
                "genfair/mr1-removal-one",
                "genfair/mr2-removal-all",
                "genfair/mr3-selective-negation",
                "genfair/mr4-total-negation",
                "genfair/mr5-substitution-all",
                "genfair/mr6-substitution-one",
                "genfair/mr7-counterfactual",
                "genfair/mr8-order-permutation",
                "intersectional/pairs",
            ),
            "genfair:TABLE",
        ),
        **dict.fromkeys(
            (
                "meta-fair/mr1-single-attribute",
                "meta-fair/mr2-dual-attributes",
                "meta-fair/mr3-ranked-list",
                "meta-fair/mr4-hypothetical-scenario",
                "meta-fair/mr5-proper-nouns",
                "meta-fair/mr6-metal-prefix",
                "meta-fair/mr7-sentence-completion",
                "meta-fair/mr8-inverted-single",
                "meta-fair/mr9-inverted-ranked",
                "meta-fair/mr10-inverted-scenario",
                "meta-fair/mr11-score",
                "meta-fair/mr12-yes-no",
                "meta-fair/mr13-multiple-choice",
                "meta-fair/mr14-prioritisation",
            ),
            "meta_fair:TABLE",
        ),
    },
)
"""A line for each: its id, its file and its class, or the table that it is a row of. A file is read
when its relation is named."""
CODE_OF: dict[str, str] = {}
"""Hash of the file of each relation that is the user's own; shipped ones come with the version."""
EVERY = "/*"
"""Ends the name of a family: `meta-fair/*` is every relation whose id begins with `meta-fair/`."""


def families() -> tuple[str, ...]:
    """Return the families of relations, the part of their ids before `/`, as policies name them."""
    prefixes = (name.partition("/")[0] for name in RELATIONS.ids if "/" in name)
    return tuple(dict.fromkeys(f"{family}{EVERY}" for family in prefixes))


def relations_named(names: Iterable[str]) -> tuple[str, ...]:
    """Return the ids that a policy's names and families denote, each once, in their order."""
    ids: dict[str, None] = {}
    for name in names:
        members = [id_ for id_ in RELATIONS.ids if id_.startswith(name[:-1])]
        ids.update(dict.fromkeys(members if name.endswith(EVERY) else [name]))
    return tuple(ids)
