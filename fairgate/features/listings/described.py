"""A relation's description for readers, beside its own fields: oracle and default."""

from __future__ import annotations

from fairgate.relations.oracles.label import LABEL_RULE
from fairgate.relations.oracles.tone import TONE_RULE
from fairgate.relations.relation import MetamorphicRelation


def oracle_of(relation: MetamorphicRelation) -> str:
    """Return the rule by which answers are read."""
    if relation.reads_task:
        return f"{LABEL_RULE} or {TONE_RULE} (the suite's task)"
    return relation.oracle(None).id


def default_of(relation: MetamorphicRelation) -> str:
    """Return whether a violation counts for the gate by default."""
    if relation.advisory:
        instead = "; gating with a judge's record, where the policy has a judge"
        return f"advisory{instead if relation.judge_instead else ''}"
    return "gating with a judge's record" if relation.judge_instruction else "gating"
