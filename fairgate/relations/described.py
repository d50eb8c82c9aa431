"""A relation's description for readers, beside its own fields: oracle, default, precision."""

from __future__ import annotations

from collections.abc import Mapping

from fairgate.oracles.label import LABEL_RULE
from fairgate.oracles.tone import TONE_RULE
from fairgate.relations.relation import MetamorphicRelation

PRECISION: Mapping[str, str] = {}
"""Relation to the share of its violations that people called biased, with its interval and how it
was measured. None was measured on FairGate's own pairs yet."""
NOT_MEASURED = "not measured"


def oracle_of(relation: MetamorphicRelation) -> str:
    """Return the rule by which answers are read."""
    if relation.reads_task:
        return f"{LABEL_RULE} or {TONE_RULE} (the suite's task)"
    return relation.oracle(None).id


def default_of(relation: MetamorphicRelation) -> str:
    """Return whether a violation counts for the gate by default."""
    return "advisory" if relation.advisory else "gating"


def precision_of(relation: MetamorphicRelation) -> str:
    """Return the measured precision, or that there is none."""
    return PRECISION.get(relation.id, NOT_MEASURED)
