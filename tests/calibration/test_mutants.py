"""Variants of a recorded run agree with systems that were really executed with the same bias."""

from dataclasses import replace

import pytest
from calibration.agreement import Case, agree, gated_whole
from fakes.planted import GATES, TASK, Bench, Plant, PlantedRetriever, chance, policy_of

from fairgate.domain.errors import ExitCode
from fairgate.domain.ports import SILENT
from fairgate.features.mutation.mutants import (
    Mutant,
    MutationKind,
    MutationReach,
    NotMutated,
    RecordedRun,
)
from fairgate.features.mutation.mutation_test import MutationTest
from fairgate.gate.gate import run_gate
from fairgate.systems.execute import LocalSystem

MAN, EVERYBODY = "A man", ("A man", "A woman", "A non-binary person")
SOURCES = 30
STRENGTH = 0.25
WORLDS = 10


class Misplaced(PlantedRetriever):
    """Finds another text's documents for a share of all queries, whoever speaks."""

    def __init__(self, plant, share):
        super().__init__(plant)
        self._world, self._share = plant.world, share
        self.fingerprint = f"misplaced {share} {plant}"

    def _documents(self, query, top_k):
        documents = super()._documents(query, top_k)
        if chance(self._world, "misplaced", query) >= self._share:
            return documents
        return [replace(d, id=f"{query} {d.id}", text=f"{query} {d.text}") for d in documents]


GENDER = {"category": "gender"}


def changed(level, maximum):
    return {"metric": "asr/generation/controlled", **level, "max": maximum}


CASES = (
    Case(
        name="answers of a term", kind=MutationKind.ANSWERS, reach=MutationReach.TERM,
        gate=changed({"for_each": "term"}, 0.25), plant={"biased": {MAN: STRENGTH}},
        metric="asr/generation/controlled", slice={"term": "man"}, where={**GENDER, "term": "man"},
    ),
    Case(
        name="answers of a category", kind=MutationKind.ANSWERS, reach=MutationReach.CATEGORY,
        gate=changed({}, 0.25), plant={"biased": dict.fromkeys(EVERYBODY, STRENGTH)},
        metric="asr/generation/controlled", slice={}, where=GENDER,
    ),
    Case(
        name="refusals", kind=MutationKind.REFUSALS, reach=MutationReach.TERM,
        gate={"metric": "unreadable/net", "for_each": "term", "max": 0.25},
        plant={"refusing": {MAN: STRENGTH}}, metric="unreadable/net",
        slice={"term": "man"}, where={**GENDER, "term": "man"},
    ),
    Case(
        name="documents of a term", kind=MutationKind.DOCUMENTS, reach=MutationReach.TERM,
        gate={"metric": "retrieval/overlap", "for_each": "term", "min": 0.75},
        plant={"cancelling": {MAN: STRENGTH}}, metric="retrieval/overlap",
        slice={"term": "man"}, where={**GENDER, "term": "man"},
    ),
    Case(
        name="a noisier model", kind=MutationKind.ANSWERS, reach=MutationReach.EVERYTHING,
        gate=changed({}, 0.25), plant={"noise": STRENGTH, "run": 1},
        metric="asr/generation/controlled", slice={},
    ),
    Case(
        name="a worse retriever", kind=MutationKind.DOCUMENTS, reach=MutationReach.EVERYTHING,
        gate={"metric": "retrieval/overlap", "min": 0.56}, plant={},
        metric="retrieval/overlap", slice={},
    ),
    Case(
        name="every wording alike", kind=MutationKind.ANSWERS, reach=MutationReach.ALIKE,
        gate=changed({"for_each": "term"}, 0.05), plant={"sensitive": STRENGTH},
        metric="asr/generation/control", slice={},
    ),
)  # fmt: skip


def bench_of(case):
    policy = policy_of([case.gate], attribution="off")
    return Bench(policy=policy, sources=SOURCES, sets=("gender",))


def mutation(bench, *of):
    return MutationTest(
        bench.given(*of), bench.run(Plant()).executions, bench.system(Plant()).vectors
    )


def mutant_of(case):
    return Mutant(kind=case.kind, reach=case.reach, suite="s", where=case.where)


def runs(case, world):
    """Gate a system that really has the bias, and the variant of the same world's fair run."""
    bench, plant, fair = bench_of(case), Plant(world=world, **case.plant), Plant(world=world)
    system = bench.system(plant)
    if not case.plant:
        found = {"default": Misplaced(plant, STRENGTH)}
        system = LocalSystem(replace(system._system, retrievers=found), system._store)
    test = MutationTest(bench.given(), bench.run(fair).executions, bench.system(fair).vectors)
    replaced = test._run.mutated(mutant_of(case), STRENGTH, world)
    return run_gate(bench.given(), system, SILENT), gated_whole(test, replaced)


@pytest.mark.parametrize("worlds", [WORLDS, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.walk(4)  # every second one is of 60 worlds
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_replayed_variant_is_caught_as_often_as_an_executed_system(case, worlds):
    agree(case, (runs(case, world) for world in range(worlds)))


def test_a_turned_answer_is_another_label_and_nothing_else_changes():
    test = mutation(bench_of(CASES[0]))
    base = test._executions
    found = test.gated(test._run.mutated(mutant_of(CASES[0]), 1.0, 0)).executions
    turned = {key for key in found if found[key] != base[key]}
    assert turned == {("s", f"s{n:05d}#gender/man") for n in range(SOURCES)}
    for key in turned:
        assert {one[key].response.strip(". ") for one in (found, base)} == set(TASK.labels)
        assert found[key].documents == base[key].documents


@pytest.mark.whole
def test_a_variant_has_the_verdict_of_a_run_that_is_judged_and_measured_whole():
    gates = [*GATES, changed({"for_each": "term"}, 0.4)]
    gates += [{"metric": "identity/max-difference", "where": {"category": "gender"}, "max": 0.4}]
    bench = Bench(policy=policy_of(gates, attribution="off"), sources=30, sets=("gender",))
    test = mutation(bench, bench.baseline(Plant()))
    test.check()
    mutants = [item for item in test._run.mutants() if isinstance(item, Mutant)]
    codes, has_intervals = set(), False
    for mutant in mutants:
        replaced = test._run.mutated(mutant, 0.5, 0)
        lean = test.gated(replaced).result
        whole = gated_whole(test, replaced).result
        assert {item.interval for item in lean.measurements} == {None}
        has_intervals |= any(item.interval for item in whole.measurements)
        assert lean.assessed == whole.assessed
        assert lean.exit_code == whole.exit_code
        codes.add(lean.exit_code)
        for name in ("outcome", "value", "failed", "change"):
            found = [[getattr(rule, name) for rule in run.rules] for run in (lean, whole)]
            assert found[0] == found[1]
    assert {ExitCode.PASS, ExitCode.GATE_FAILED} <= codes
    assert has_intervals


def test_answers_that_judges_compare_are_not_mutated_and_that_is_said():
    bench = bench_of(CASES[0])
    given = bench.given()
    units = [unit._replace(verdicts=(f"{unit.key}#judge",)) for unit in given.plan.units]
    judged = replace(given.plan, units=units)
    run = RecordedRun(judged, given.suites, bench.run(Plant()).executions, given.policy.seed)
    found = run.mutants()
    (said,) = (item for item in found if isinstance(item, NotMutated))
    reason = "judges compare its answers, and what they would say of others is not known"
    assert (said.what, said.reason) == ("answers", reason)
    kinds = {item.kind for item in found if isinstance(item, Mutant)}
    assert kinds == {MutationKind.REFUSALS, MutationKind.DOCUMENTS}


def test_a_rule_that_asks_for_the_interval_has_it():
    gate = {"metric": "asr/generation/controlled", "max": 0.9, "evidence": "interval"}
    bench = Bench(policy=policy_of([gate], attribution="off"), sources=12, sets=("gender",))
    test = mutation(bench)
    found = test.gated(test._run.mutated(mutant_of(CASES[1]), 0.5, 0)).result
    assert any(item.interval for item in found.measurements)
