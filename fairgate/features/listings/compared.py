"""What a relation says of two answers, without a plan and a run."""

from __future__ import annotations

from collections.abc import Sequence

from fairgate.domain.cases import Case, Source, Task
from fairgate.domain.executions import Execution
from fairgate.domain.units import Claim, Reading
from fairgate.relations.oracles.tone import ReadsTogether
from fairgate.relations.relation import MetamorphicRelation


def claim_of_answers(
    relation: MetamorphicRelation, source: Source, task: Task | None, answers: Sequence[str]
) -> Claim:
    """Return the claim `generation` about the answers to a source and its follow-up."""
    first, second = read_answers(relation, source, task, answers)
    return relation.claims(first, second, first)["generation"]


def read_answers(
    relation: MetamorphicRelation, source: Source, task: Task | None, answers: Sequence[str]
) -> Sequence[Reading]:
    """Return the answers to a source and its follow-up as the relation's oracle reads them."""
    asked = relation.asks(source, task)
    oracle = relation.oracle(task)
    if isinstance(oracle, ReadsTogether):
        oracle.prepare(answers)
    case = Case(
        key="s", suite="s", query=relation.source_text(source), instruction=asked.instruction,
        labels=asked.labels, options=asked.options, cluster="s",
    )  # fmt: skip
    cases = (case, case if asked.embedding is None else case._replace(embeds="s"))
    return [
        oracle.read(Execution(key="s", suite="s", response=answer), each)
        for answer, each in zip(answers, cases, strict=True)
    ]
