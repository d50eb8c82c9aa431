"""Which relations a suite has, and which of the sources belong to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fairgate.domain.cases import Source, Task
from fairgate.domain.errors import DataError
from fairgate.domain.wording import listed
from fairgate.metrics.intersectional import RELATION as COMBINES
from fairgate.relations.catalogue import RELATIONS, relations_named
from fairgate.relations.relation import MetamorphicRelation, judge_instruction
from fairgate.suites.metamorphic.policy import NO_CONTROL, SuitePolicy
from fairgate.suites.suite import JudgeSetup


def relations_of(policy: SuitePolicy) -> list[MetamorphicRelation]:
    """Return the relations that a suite names, families expanded."""
    return [RELATIONS[name] for name in relations_named(policy.relations)]


def without_task(relations: Sequence[MetamorphicRelation]) -> Sequence[MetamorphicRelation]:
    """Return the relations of a suite without a task. Raises DataError where one reads labels."""
    reads = [relation.id for relation in relations if relation.reads_task]
    if reads:
        raise DataError(f"{listed(reads)} reads labels, so the suite needs a `task`; add one")
    return relations


def judge_named(
    judge: JudgeSetup | None, relations: Sequence[MetamorphicRelation], task: Task | None
) -> bool:
    """Return True. Raises DataError where a relation is judged and the policy names no judge.

    Nor can a judge say of two changes together what neither does alone.
    """
    judged = [relation.id for relation in relations if judge_instruction(relation, task)]
    if COMBINES in judged:
        raise DataError(
            f"`{COMBINES}` compares three answers, which no judge does: name a task with `labels` "
            "or `tone` for it"
        )
    if judge is None and judged:
        raise DataError(
            f"{listed(judged, last='and')} compares open answers, which language models judge: "
            "name them with `judge` at the top of the policy, or name only relations that need none"
        )
    return True


def no_control_arm(policy: SuitePolicy, task: Task | None) -> bool:
    """Return True. Raises DataError where judged answers were to be compared with neutral ones."""
    if task is not None and task.is_judged and policy.control != NO_CONTROL:
        raise DataError(
            "judges compare an answer with the source's, not with those of neutral phrases; set "
            "`control: none`"
        )
    return True


def chosen_sources(
    sources: Sequence[Source], relations: Sequence[MetamorphicRelation], limit: int | None
) -> list[Source]:
    """Return the sources that the relations use, at most `limit` for each relation.

    Pairs belong to the relation that they name, everything else to the relations that make their
    follow-ups. Pairs of other relations are left out. Raises DataError where a relation has none.
    """
    makes = [relation.id for relation in relations if not relation.takes_pairs]
    counts = dict.fromkeys((relation.id for relation in relations if relation.takes_pairs), 0)
    free = 0
    chosen: list[Source] = []
    for source in sources:
        if source.pair is None:
            free += 1
            if makes and (limit is None or free <= limit):
                chosen.append(source)
        elif source.pair.relation in counts:
            counts[source.pair.relation] += 1
            if limit is None or counts[source.pair.relation] <= limit:
                chosen.append(source)
    without = [name for name, count in counts.items() if not count]
    if without:
        there = Counter(source.pair.relation for source in sources if source.pair is not None)
        known = f"; it has pairs of {listed(sorted(there), last='and')}" if there else ""
        raise DataError(
            f"the table has no pairs of {listed(without)}{known}: name another table (`meta-fair` "
            "is embedded), or take the relation out"
        )
    if makes and not free:
        raise DataError(
            f"the table holds written pairs only, and {listed(makes)} makes its follow-ups from "
            "plain texts: give that relation a suite of its own"
        )
    return chosen
