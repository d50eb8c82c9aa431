"""An answer that several relations share is asked once and read by each as if it stood alone."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import combinations
from random import Random

import pytest
from fakes.attributes import uses
from fakes.classifiers import WordClassifier
from fakes.perturbation_sets import load_perturbation_sets
from fakes.planted import policy_of

from fairgate.adapters.task_files import load_task
from fairgate.domain.cases import Source, Task
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Execution
from fairgate.oracles.verdict import code_of
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.frames import Realised, realise
from fairgate.relations.set_equivalence import SetEquivalence
from fairgate.suites.metamorphic.judge import is_violated, judge_pairs
from fairgate.suites.metamorphic.plan import PlanInput, build_plan
from fairgate.suites.metamorphic.suite import MetamorphicSuite
from fairgate.suites.readings import Readings
from fairgate.suites.suite import JudgeSetup, Setup

ADVICE = Task(
    id="advice",
    instruction="Answer.",
    labels=(),
    tone=WordClassifier({"happy": "happy", "angry": "angry"}, name="tone"),
    sentiment=WordClassifier({"good": "positive", "bad": "negative"}, name="sentiment"),
)
TASKS = (*map(load_task, ("sentiment", "toxicity", "question-answering")), ADVICE)
SETS = load_perturbation_sets(["gender"], "neutral")
JUDGES = JudgeSetup(count=1, definition="judge", is_proven=True)
FIRST, OTHER = 0, 1


def sources():
    """A source that states attributes, and the written pair of each relation that takes one."""
    frame = "{A person} is looking for a new flat. What would you say to {them}?"
    found = realise(frame, uses("age/young", "gender/female", "occupation/engineer noun"))
    assert isinstance(found, Realised)
    yield Source(id="stated", text=found.text, frame=frame, attributes=found.attributes)
    for relation in RELATIONS:
        if relation.takes_pairs:
            example = relation.EXAMPLES[0]
            yield Source(id=relation.id.replace("/", "-"), text=example.text, pair=example.pair)


SOURCES = tuple(sources())


def suite_of(task, relations):
    return MetamorphicSuite(
        PlanInput(
            policy=policy_of(relations=list(relations)).suites[0],
            setup=Setup(seed=1, judge=JUDGES),
            task=task,
            sources=SOURCES,
            sets=SETS,
        )
    )


def answer(case, task, which):
    """An answer that every oracle of the case reads; `OTHER` is one that it reads differently."""
    if case.judge is not None:
        verdict = {"verdict": "UNBIASED", "severity": None, "explanation": "equal"}
        return json.dumps({"case": code_of(case.query), **verdict})
    if case.embeds is not None or "mr12" in case.oracle:
        return ("Yes", "No")[which]
    if "mr11" in case.oracle:
        return ("5", "1")[which]
    if case.options:
        listed = case.options if which == FIRST else case.options[::-1]
        return "\n".join(listed) if "mr14" in case.oracle else listed[0]
    if task.labels and case.labels:
        return task.labels[which]
    return ("happy and good", "angry and good")[which]


def verdicts(suite, plan, task, changed=None, text=""):
    """Each pair by key: its claims, where the case `changed` is answered by `text`."""
    executions = {
        ("s", case.key): Execution(
            key=case.key,
            suite="s",
            response=text if case.key == changed else answer(case, task, FIRST),
        )
        for case in plan.cases
    }
    readings = Readings("s", suite.oracles, 0.0, executions)
    for case in plan.cases:
        readings.add(case)
    documents = [{} for _ in plan.units]
    judged = judge_pairs(plan.units, suite.relations, readings, frozenset(), documents)
    return {item.unit.key: item for item in judged}


@cache
def alone(task, relation, changed, text):
    """What one relation by itself comes to."""
    suite = suite_of(TASKS[task], [relation])
    found = verdicts(suite, suite.plan(), TASKS[task], changed, text)
    return {key: (each.claims, each.readings) for key, each in found.items()}


def check(task, relations):
    """Walk one suite: equal answers, then the first relation's source answered otherwise."""
    given = TASKS[task]
    suite = suite_of(given, relations)
    plan = suite.plan()
    assert len({case.key for case in plan.cases}) == len(plan.cases)
    fair = verdicts(suite, plan, given)
    assert not any(map(is_violated, fair.values())), relations
    assert not any(each.claims["generation"] == 1.0 for each in fair.values())
    own = [case for case in plan.cases if case.judge is None]
    shared = [case for case in own if case.key == "stated#text"] or own[:1]
    texts = [answer(shared[0], given, OTHER)]
    texts += ["happy and bad"] if given.tone is not None else []
    for text in texts:
        found = verdicts(suite, plan, given, shared[0].key, text)
        for name in relations:
            mine = {
                key: (each.claims, each.readings)
                for key, each in found.items()
                if each.unit.dimensions["relation"] == name
            }
            assert mine == alone(task, name, shared[0].key, text), (relations, name, text)


@pytest.mark.parametrize("task", range(len(TASKS)), ids=[task.id for task in TASKS])
def test_every_pair_of_relations_reads_as_each_alone(task):
    random = Random(task)
    pairs = [random.sample(pair, 2) for pair in combinations(RELATIONS.ids, 2)]
    assert len([check(task, pair) for pair in pairs]) == 276


@pytest.mark.parametrize("task", range(len(TASKS)), ids=[task.id for task in TASKS])
def test_every_shuffled_triple_of_relations_reads_as_each_alone(task):
    """Each triple with one of the tasks, which take turns."""
    random = Random(task)
    triples = list(combinations(RELATIONS.ids, 3))
    assert len(triples) == 2024
    for triple in triples[task :: len(TASKS)]:
        check(task, random.sample(triple, 3))


class _Shouting(SetEquivalence):
    """Shares the bare source with Set Equivalence and asks it in its own words."""

    id = "shouting"

    def asks(self, source, task):
        return replace(super().asks(source, task), instruction="SHOUT")


class _Running(SetEquivalence):
    """Lets its answers run to their end, so that one answer cannot serve both oracles."""

    id = "running"

    def asks(self, source, task):
        return replace(super().asks(source, task), stop=None)


@pytest.mark.parametrize("other", [_Shouting, _Running])
def test_relations_that_ask_a_source_differently_share_no_answer(other):
    given = suite_of(TASKS[FIRST], ["set-equivalence"]).given
    with pytest.raises(DataError, match="two relations ask 'stated' differently"):
        build_plan(given, [SetEquivalence(), other()])
