"""Loads a metamorphic suite from its policy, and says which settings do not fit together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from fairgate.domain.cases import WRITTEN, Source, Task
from fairgate.domain.errors import DataError
from fairgate.domain.wording import listed, quoted
from fairgate.metrics.sentences import FEWEST_CONTROLS
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.relations.relation import (
    MetamorphicRelation,
    NotApplicable,
    Varies,
    judge_instruction,
)
from fairgate.suites.metamorphic.definition import answer_forms, relations_of
from fairgate.suites.metamorphic.policy import NO_CONTROL, NO_TASK, SuitePolicy
from fairgate.suites.metamorphic.suite import MetamorphicSuite
from fairgate.suites.suite import JudgeSetup, Materials, Setup

_NAMES_APART = (
    "the relations `names/*` need pools of names, such as `names-us-gender`, and no other relation "
    "takes them: give names a suite of their own, with pools alone under `perturbations`"
)


def loaded_suite(
    policy: SuitePolicy, setup: Setup, materials: Materials
) -> MetamorphicSuite | None:
    """Return the suite; None where the materials reported a problem."""
    if not setup.answers:
        depth = policy.retrieve_only or setup.top_k
        policy = policy.model_copy(update={"retrieve_only": depth})
    relations = relations_of(policy)
    makes = any(relation.varies is not Varies.PAIRS for relation in relations)
    task = materials.task(policy.task) if policy.task != NO_TASK else None
    setup = replace(setup, top_k=policy.retrieve_only or setup.top_k)
    faults = list(misfits(policy, setup.judge, relations, task))
    for field, sentence in faults:
        materials.report(field, sentence)
    limit = None if any(relation.varies is Varies.PAIRS for relation in relations) else policy.limit
    read = materials.sources(policy.sources, limit, policy.attributes)
    policy = policy.with_matched_control(relations)
    sets: Sequence[PerturbationSet] | None = ()
    if makes:
        sets = materials.perturbation_sets(
            policy.perturbations, policy.control, phrases=policy.phrases
        )
    if read is None or sets is None:
        return None
    by_name = {
        relation.varies is Varies.NAMES
        for relation in relations
        if relation.varies is not Varies.PAIRS
    }
    if len(by_name | {group.is_pool for group in sets if not group.control}) > 1:
        materials.report("perturbations", _NAMES_APART)
        return None
    controls = sum(len(group.terms) for group in sets if group.control)
    if policy.reads_sentences and controls < FEWEST_CONTROLS:
        words = (
            f"answers in sentences are read beside {FEWEST_CONTROLS} control prompts or more; the "
            f"suite has {controls}: name a larger set, such as `control: neutral-phrases`"
        )
        materials.report("control", words)
        return None
    sources = materials.attempt("sources", lambda: chosen_sources(read, relations, policy.limit))
    if sources is None or faults or (task is None and policy.task != NO_TASK):
        return None
    return MetamorphicSuite(policy=policy, setup=setup, task=task, sources=sources, sets=sets)


def misfits(
    policy: SuitePolicy,
    judge: JudgeSetup | None,
    relations: Sequence[MetamorphicRelation],
    task: Task | None,
) -> Iterator[tuple[str, str]]:
    """Yield field and sentence for each pair of settings that do not fit together."""
    reads = [
        relation.id for relation in relations if relation.reads_task and not policy.retrieve_only
    ]
    if policy.reads_degrees:
        yield from _unscorable(policy, reads, task)
    others = [relation.id for relation in relations if relation.varies is not Varies.DOCUMENTS]
    if others and len(others) < len(relations):
        needs = "changes questions, and `documents/subject` documents: give each a suite of its own"
        yield "relations", f"{listed(others, last='and')} {needs}"
    if policy.repeats > 1 and policy.retrieve_only:
        yield "repeats", "nothing varies that is only retrieved; leave it out"
    if policy.task == NO_TASK and reads:
        yield "task", f"{listed(reads)} reads labels, so the suite needs a `task`; add one"
    answered = () if policy.retrieve_only else relations
    judged = [relation for relation in answered if judge_instruction(relation, task)]
    if several := [relation.id for relation in judged if relation.compares_three]:
        sentence = (
            f"{listed(several, last='and')} compares three answers, which no judge does: name a "
            "task with `labels` or `tone` for it"
        )
        yield "relations", sentence
    elif judge is None and judged:
        names = listed([relation.id for relation in judged], last="and")
        sentence = (
            f"{names} compares open answers, which language models judge: "
            "name them with `judge` at the top of the policy, or name only relations that need "
            "none"
        )
        yield "relations", sentence
    if policy.turns and not any(relation.varies is Varies.TURNS for relation in relations):
        turning = listed(
            [f"`{relation.id}`" for relation in RELATIONS if relation.varies is Varies.TURNS]
        )
        yield "turns", f"no relation of the suite asks in turns; add {turning}, or remove them"
    if policy.reads_sentences and policy.retrieve_only:
        yield "read", "the suite asks for no answers, only for documents; leave it out"
    if task is not None and task.is_judged and policy.control != NO_CONTROL:
        sentence = (
            "judges compare an answer with the source's, not with those of control prompts; set "
            "`control: none`"
        )
        yield "control", sentence


def _unscorable(
    policy: SuitePolicy, reads: Sequence[str], task: Task | None
) -> Iterator[tuple[str, str]]:
    """Yield why a suite that asks for label probabilities cannot have them."""
    if not reads or task is None or not task.labels:
        sentence = (
            "label probabilities need a task's labels, and the suite reads none: take `degrees` "
            "out, or name a task with `labels`"
        )
        yield "read", sentence
    elif not task.scale:
        sentence = (
            "label probabilities need labels from the worst to the best: give the task an "
            "`order`, or take `degrees` out"
        )
        yield "read", sentence
    else:
        texts = sorted(answer_forms(task, policy.forms), key=lambda form: form[1])
        for (label, text), (other, longer) in pairwise(texts):
            if longer.startswith(text):
                sentence = (
                    f"{quoted(longer)} ({quoted(other)}) begins with {quoted(text)} "
                    f"({quoted(label)}), so that one probability would count twice; remove a form, "
                    "or rename a label"
                )
                yield "forms", sentence
    if not policy.generates and policy.repeats > 1:
        yield "repeats", "label probabilities do not vary where nothing is generated; leave it out"


def chosen_sources(
    sources: Sequence[Source], relations: Sequence[MetamorphicRelation], limit: int | None
) -> list[Source]:
    """Return the sources that the relations use, at most `limit` for each relation.

    Written follow-ups belong to the relation that they name, everything else to the relations that
    make their own. Those of other relations are left out. Raises DataError where a relation has
    none, where written ones that name none are not asked, and where a row is none of its relation.
    """
    if any(each.varies is Varies.DOCUMENTS for each in relations) and not any(
        each.document for each in sources
    ):
        raise DataError(
            "no source names a document: give the table the columns `document_id` and `document`, "
            "its text with braces around whom it names"
        )
    makes = [relation.id for relation in relations if relation.varies is not Varies.PAIRS]
    counts = dict.fromkeys(
        (relation.id for relation in relations if relation.varies is Varies.PAIRS), 0
    )
    free = 0
    chosen: list[Source] = []
    for source in sources:
        name = source.pairs[0].relation if source.pairs else ""
        if name == WRITTEN and WRITTEN not in counts:
            raise DataError(
                f"source {quoted(source.id)} has written follow-ups, such as "
                f"{quoted(source.pairs[0].variant)}, which none of the suite's relations asks: add "
                "`written` to `relations`, or rename the table's columns that have a `/`"
            )
        free += (is_plain := name in ("", WRITTEN))
        if name in counts:
            counts[name] += 1
            reason = RELATIONS[name].follow_ups(source, ())
            if isinstance(reason, NotApplicable):
                raise DataError(f"source {quoted(source.id)} {reason.reason}; change its row")
            if limit is None or counts[name] <= limit:
                chosen.append(source)
        elif is_plain and makes and (limit is None or free <= limit):
            chosen.append(source)
    without = [name for name, count in counts.items() if not count]
    if without:
        there = Counter(source.pairs[0].relation for source in sources if source.pairs)
        offered = f"; it has pairs of {listed(sorted(there), last='and')}" if there else ""
        raise DataError(
            f"the table has no pairs of {listed(without)}{offered}: name another table "
            "(`meta-fair` is bundled), or take the relation out"
        )
    if makes and not free:
        raise DataError(
            f"every row of the table names its relation, and {listed(makes)} makes its follow-ups "
            "from rows that name none: give that relation a suite of its own"
        )
    return chosen
