"""An answer that several relations share is asked once and read by each as if it stood alone."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from functools import cache
from itertools import combinations, islice
from random import Random

import pytest
from calibration.mutants import Mutant, MutationKind, MutationReach, PairVariants
from fakes.attributes import uses
from fakes.classifiers import WordClassifier
from fakes.perturbation_sets import load_perturbation_sets
from fakes.planted import policy_of
from fakes.tasks import load_task

from fairgate.domain.cases import Source, Task
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Document, Execution
from fairgate.gate.decide import constant_answers, readable_answers
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.frames import Realised, realise
from fairgate.relations.oracles.judge import code_of
from fairgate.relations.relation import Varies
from fairgate.relations.set_equivalence import SetEquivalence
from fairgate.suites.metamorphic.assess import DocumentColumns, assess_pairs, is_violated
from fairgate.suites.metamorphic.plan import build_plan
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
JUDGES = JudgeSetup(count=1, definition="judge", proven=frozenset({"general", "names", "inverted"}))
FIRST, OTHER = 0, 1


def sources():
    """A source that states attributes, and the written pair of each relation that takes one."""
    frame = "{A person} is looking for a new flat. What would you say to {them}?"
    found = realise(frame, uses("age/young", "gender/female", "occupation/engineer noun"))
    assert isinstance(found, Realised)
    yield Source(id="stated", text=found.text, frame=frame, attributes=found.attributes)
    for relation in RELATIONS:
        if relation.varies is Varies.PAIRS:
            example = relation.EXAMPLES[0]
            yield Source(id=relation.id.replace("/", "-"), text=example.text, pairs=example.pairs)


SOURCES = tuple(sources())
ABOUT_QUESTIONS = [
    relation.id for relation in RELATIONS
    if relation.varies not in (Varies.DOCUMENTS, Varies.NAMES)
]  # fmt: skip
"""Relations that change documents, and those of names, have suites of their own."""


def suite_of(task, relations, judge=JUDGES, **policy):
    return MetamorphicSuite(
        policy=policy_of(relations=list(relations), **policy).suites[0],
        setup=Setup(seed=1, judge=judge),
        task=task,
        sources=SOURCES,
        sets=SETS,
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
    said = lambda case, task: text if case.key == changed else answer(case, task, FIRST)  # noqa: E731
    readings = readings_of(suite, plan.cases, executed(plan.cases, task, said))
    documents = DocumentColumns()
    places = task.ranks
    judged = assess_pairs(plan.units, suite.relations, readings, documents, places)
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
            own = {k: v for k, v in found.items() if v.unit.dimensions["relation"] == name}
            mine = {key: (each.claims, each.readings) for key, each in own.items()}
            assert mine == alone(task, name, shared[0].key, text), (relations, name, text)


EVERY_TASK = pytest.mark.parametrize("task", range(len(TASKS)), ids=[task.id for task in TASKS])
STEPS = pytest.mark.parametrize("step", [15, pytest.param(1, marks=pytest.mark.whole)])
"""How many pairs of relations are passed over in a sample, which starts elsewhere for each task."""


@pytest.mark.walk(2)
@EVERY_TASK
@STEPS
def test_every_pair_of_relations_reads_as_each_alone(task, step):
    random = Random(task)
    pairs = [random.sample(pair, 2) for pair in combinations(ABOUT_QUESTIONS, 2)]
    for pair in pairs[task % step :: step]:
        check(task, pair)


@pytest.mark.walk(2)
@EVERY_TASK
@STEPS
def test_every_shuffled_triple_of_relations_reads_as_each_alone(task, step):
    """Each triple with one of the tasks, which take turns."""
    random = Random(task)
    triples = list(combinations(ABOUT_QUESTIONS, 3))
    for triple in triples[task :: len(TASKS) * step]:
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
    with pytest.raises(DataError, match="two relations ask 'stated' differently"):
        build_plan(suite_of(TASKS[FIRST], ["set-equivalence"]), [SetEquivalence(), other()])


def said(case, task, which):
    """`answer`, where the other one differs for tone and for sentiment."""
    return answer(case, task, which).replace("angry and good", "angry and bad")


def drawn(case, task):
    """One of several answers, by the case's key; some that only one oracle reads."""
    number = zlib.crc32(case.key.encode())
    texts = ("happy and good", "angry and good", "angry and bad", "good", "bad", "happy", "angry")
    is_free = said(case, task, FIRST) == texts[0]
    return texts[number % len(texts)] if is_free else said(case, task, number % 2)


def executed(cases, task, answer_of):
    """What is answered; each case with a document of its own."""
    return {
        ("s", case.key): Execution(
            response=answer_of(case, task),
            documents=[Document(id=case.key, text=case.key)],
        )
        for case in cases
    }  # fmt: skip


def readings_of(suite, cases, executions):
    readings = Readings("s", suite.oracles, 0.0, executions)
    for case in cases:
        readings.add(case)
    return readings


def readers(plan):
    """Each case that pairs share, with the relations whose oracles read it."""
    found = {}
    for unit in plan.units:
        for key in unit.asks.values():
            found.setdefault(key, {})[unit.dimensions["relation"]] = None
    return found


def mutated(task, relations):
    """Every case and relation whose answer another one replaces when all answers are replaced."""
    suite = suite_of(task, relations)
    plan = suite.plan()
    own = executed(plan.cases, task, drawn)
    everything = Mutant(kind=MutationKind.ANSWERS, reach=MutationReach.EVERYTHING, suite="s")
    changed = PairVariants(suite, plan.cases, plan.units, own, seed=1).mutated(everything, 1.0, 1)
    before, after = (readings_of(suite, plan.cases, each) for each in (own, own | changed))
    return {
        (key, name)
        for key, names in readers(plan).items()
        for name in names
        if before.one(key, name).value is not None
        and not suite.oracles[name].same(before.one(key, name), after.one(key, name))
    }


@pytest.mark.walk(2)
@EVERY_TASK
@STEPS
def test_a_replaced_answer_is_another_one_to_every_relation_that_reads_it(task, step):
    alone = {name: mutated(TASKS[task], [name]) for name in RELATIONS.ids}
    random = Random(task)
    for pair in islice(combinations(ABOUT_QUESTIONS, 2), task % step, None, step):
        both = random.sample(pair, 2)
        assert mutated(TASKS[task], both) >= alone[pair[0]] | alone[pair[1]], both


@pytest.mark.walk(2)
@EVERY_TASK
@STEPS
def test_a_constant_system_is_seen_whatever_relations_share_its_answers(task, step):
    """Equal answers, which each oracle reads as a value of its own."""

    def seen(relations):
        suite = suite_of(TASKS[task], relations)
        answers = readable_answers(verdicts(suite, suite.plan(), TASKS[task]).values())
        return bool(answers), bool(constant_answers(answers))

    alone = {name: seen([name]) for name in RELATIONS.ids}
    random = Random(task)
    for pair in islice(combinations(ABOUT_QUESTIONS, 2), task % step, None, step):
        known = [alone[name][1] for name in pair if alone[name][0]]
        assert seen(random.sample(pair, 2))[1] == (bool(known) and all(known)), pair
