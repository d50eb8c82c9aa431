"""Variants of question items agree with systems that were really executed with the same bias."""

import pytest
from calibration.agreement import Case, agree, gated_whole
from fakes.planted_items import CATEGORIES, ItemBench, ItemPlant

from fairgate.domain.cases import Condition
from fairgate.domain.outcomes import Measurements
from fairgate.domain.ports import SILENT
from fairgate.features.mutation.mutants import Mutant, MutationKind, MutationReach
from fairgate.features.mutation.mutation_test import MutantSearch, MutationTest

AGE = {"category": "Age"}
NONE = {"setting": "none"}
STRENGTH = 0.25
WORLDS = 10


CASES = (
    *(
        Case(
            name=f"stereotyped answers, {condition}", kind=MutationKind.STEREOTYPES, reach=MutationReach.CATEGORY,
            plant={"biased": {("Age", condition): STRENGTH}},
            metric=f"diff-bias/{condition}", slice={**NONE, **AGE},
            gate={"metric": f"diff-bias/{condition}", "where": NONE, "for_each": "category",
                  "max_abs": 0.2},
            where={**AGE, "condition": str(condition)},
        )
        for condition in Condition
    ),
    Case(
        name="refusals", kind=MutationKind.REFUSALS, reach=MutationReach.CATEGORY,
        plant={"refusing": {"Age": STRENGTH}}, metric="out-of-choice", slice={**NONE, **AGE},
        gate={"metric": "out-of-choice", "where": NONE, "for_each": "category", "max": 0.25},
        where=AGE,
    ),
    Case(
        name="a noisier model", kind=MutationKind.ANSWERS, reach=MutationReach.EVERYTHING,
        plant={"noise": STRENGTH}, metric="accuracy/disambiguated", slice=NONE,
        gate={"metric": "accuracy/disambiguated", "where": NONE, "min": 0.64},
    ),
    Case(
        name="either group alike", kind=MutationKind.STEREOTYPES, reach=MutationReach.ALIKE,
        plant={"careless": STRENGTH}, metric="diff-bias/ambiguous", slice=NONE,
        gate={"metric": "diff-bias/ambiguous", "where": NONE, "max_abs": 0.3},
    ),
)  # fmt: skip


STEREOTYPED, ALIKE = CASES[1], CASES[-1]


def mutant_of(case):
    return Mutant(kind=case.kind, reach=case.reach, suite="bbq", where=case.where)


def replayed(case, world):
    """The variants of the same world's fair run."""
    bench = ItemBench(gates=[case.gate])
    plant = ItemPlant(world=world)
    return MutationTest(bench.given(), bench.run(plant).executions, bench.system(plant).vectors)


def runs(case, world):
    executed = ItemBench(gates=[case.gate]).run(ItemPlant(world=world, **case.plant))
    test = replayed(case, world)
    return executed, test.gated(test._run.mutated(mutant_of(case), STRENGTH, world))


@pytest.mark.parametrize("worlds", [WORLDS, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.walk(4)  # every second one is of 60 worlds
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_replayed_variant_is_caught_as_often_as_an_executed_system(case, worlds):
    agree(case, (runs(case, world) for world in range(worlds)))


@pytest.mark.walk(3)
@pytest.mark.parametrize("strength", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_control_moves_no_diff_bias(strength, seed):
    test = replayed(ALIKE, world=seed)
    variants = {}, test._run.mutated(mutant_of(ALIKE), strength, seed)
    measured = [Measurements(gated_whole(test, each).result.measurements) for each in variants]
    for category in CATEGORIES:
        where = {**NONE, "category": category}
        own, other = (found.value("diff-bias/ambiguous", "bbq", where) for found in measured)
        assert other == pytest.approx(own)
    own, other = (found.value("accuracy/ambiguous", "bbq", NONE) for found in measured)
    assert other < own


def test_only_what_the_mutant_is_about_is_changed_and_a_right_answer_stays():
    test = replayed(STEREOTYPED, world=1)
    suite = test._gate_input.suites["bbq"]
    replaced = test._run.mutated(mutant_of(STEREOTYPED), 1.0, seed=0)
    items = {case.key: item for case, _, item in suite.asked}
    assert replaced
    for _, key in replaced:
        item = items[key]
        assert (item.category, item.condition) == ("Age", Condition.DISAMBIGUATED)
        assert item.correct == item.counter
        assert replaced["bbq", key].response == item.options[item.stereotype]


def test_a_stronger_variant_changes_all_that_a_weaker_one_does():
    for case in CASES[:-1]:
        test = replayed(case, world=2)
        weak, strong = (test._run.mutated(mutant_of(case), e, 0) for e in (0.2, 0.6))
        assert weak.items() <= strong.items()
        assert len(weak) < len(strong)


GLOBAL = {"metric": "diff-bias/ambiguous", "where": NONE, "max_abs": 0.6}
QUICK = MutantSearch(seeds=3, grid=(0.2, 0.5, 1.0), stated=0.5, kinds=(MutationKind.STEREOTYPES,))


def scored(*gates):
    bench, plant = ItemBench(gates=gates), ItemPlant(world=3)
    test = MutationTest(bench.given(), bench.run(plant).executions, bench.system(plant).vectors)
    return test.score(test.mutants(QUICK), QUICK, SILENT)


def smallest(found):
    """Return the smallest variant that is caught, by mutant, in ambiguous contexts."""
    ambiguous = (item for item in found.found if item.mutant.where["condition"] == "ambiguous")
    return {item.mutant.target: item.smallest for item in ambiguous}


@pytest.mark.whole
def test_a_mean_over_categories_hides_one_and_the_suggested_line_finds_it():
    found = scored(GLOBAL)
    assert smallest(found) == {"Age/ambiguous": None, "Religion/ambiguous": None}
    (line,) = (s for s in found.suggestions if "Age/ambiguous" in s.targets)
    assert 'where: {setting: "none"}, for_each: category, max_abs: ' in line.line
    bound = float(line.line.rpartition(" ")[2].rstrip("}"))
    gate = {"metric": "diff-bias/ambiguous", "where": NONE, "for_each": "category"}
    after = scored(GLOBAL, {**gate, "max_abs": bound})
    assert all(one.strength <= 0.5 for one in smallest(after).values())
    assert after.false_kills == 0
    assert after.score > found.score
