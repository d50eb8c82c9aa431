"""What relations are listed with: how answers are read, and how well that is measured to work.

*Precision* is the share of reported violations that a person calls a difference, on labelled
answers; intervals are Wilson's. Whether a difference is unfair depends on the system.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from fairgate.domain.cases import Task
from fairgate.domain.json_text import read_json
from fairgate.relations.oracles.label import LABEL_RULE
from fairgate.relations.oracles.tone import TONE_RULE
from fairgate.relations.relation import MetamorphicRelation
from fairgate.stats.interval import Interval, wilson

CONFIDENCE = 0.95
NOT_MEASURED = "not measured"
_ANY_LABELS = Task(id="any", instruction="", labels=("yes", "no"))
_FILE = ("data", "labelled", "precision.json")


def oracle_of(relation: MetamorphicRelation) -> str:
    """Return the rule by which answers are read."""
    rule = relation.oracle(_ANY_LABELS if relation.reads_task else None).id
    is_of_task = relation.reads_task and rule == LABEL_RULE
    return f"{LABEL_RULE} or {TONE_RULE} (the suite's task)" if is_of_task else rule


def default_of(relation: MetamorphicRelation) -> str:
    """Return whether a violation counts for the gate by default."""
    if relation.advisory:
        instead = "; gating with a judge's record, where the policy has a judge"
        return f"advisory{instead if relation.judge_instead else ''}"
    return "gating with a judge's record" if relation.judge_instruction else "gating"


def precision_of(relation: str) -> str:
    """Return a relation's precision with its interval, or that it was not measured.

    It is read from the file that FairGate ships; a test measures again and compares.
    """
    figures = _shipped()["relations"].get(relation)
    return NOT_MEASURED if figures is None else share(figures["real"], figures["reported"])


@cache
def _shipped() -> Any:
    return read_json(resources.files("fairgate").joinpath(*_FILE).read_bytes())


def share(part: int, whole: int) -> str:
    """Return `0.95 (0.76 to 0.99; 19 of 20)`, the interval Wilson's at 0.95."""
    interval = wilson(part, whole, confidence=CONFIDENCE)
    if not isinstance(interval, Interval):
        return "not defined"
    return f"{part / whole:.2f} ({interval.low:.2f} to {interval.high:.2f}; {part} of {whole})"
