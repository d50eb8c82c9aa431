"""A bound holds on the baseline's cases too: no easy source dilutes it, no hard one is left out."""

import dataclasses

import pytest
from fakes.planted import Bench, Plant, PlantedGenerator, PlantedRetriever, parsed, policy_of
from fakes.planted_items import ItemBench, ItemPlant, PlantedItemGenerator

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Outcome
from fairgate.domain.ports import SILENT
from fairgate.gate.accepted_runs import baseline_of
from fairgate.gate.baseline import AcceptedRun, AcceptedRuns
from fairgate.gate.gate import run_gate
from fairgate.systems.execute import LocalSystem
from fairgate.systems.revisions import NoStore

WOMAN = {"category": "gender", "term": "woman"}
EVERYBODY = ("A woman", "A man", "A non-binary person")
GENERATION = "asr/generation"
RULES = {
    "bound": {"metric": GENERATION, "max": 0.15},
    "where": {"metric": GENERATION, "where": WOMAN, "max": 0.15},
    "minimum": {"metric": "retrieval/overlap", "min": 0.85},
    "distance": {"metric": "retrieval/mean-distance", "max": 0.18},
    "significant": {"metric": GENERATION, "max": 0.15, "evidence": "significant"},
    "parity": {"parity": "answers", "max": 0.15, "regression": 0.9},
    "identity": {"parity": "answers", "max": 0.15, "regression": 0.9},
    "refusals": {"parity": "unreadable", "max": 0.15, "regression": 0.9},
}


def plant(kind, share):
    harm = dict.fromkeys(("A woman",) if kind == "identity" else EVERYBODY, share)
    if kind in ("minimum", "distance"):
        return Plant(retrieval=harm)
    return Plant(refusing=harm) if kind == "refusals" else Plant(biased=harm)


def partly(harmful, fair, method, is_harmed):
    """Return the harmful part of a system, which elsewhere does as the fair one does."""
    harm, fairly = getattr(harmful, method), getattr(fair, method)
    setattr(harmful, method, lambda it, *more: (harm if is_harmed(it) else fairly)(it, *more))
    return harmful


def bench(gates, sources, start=0):
    policy = policy_of(gates).model_copy(update={"min_decided": 0.5})
    return Bench(policy=policy, sources=sources, start=start, sets=("gender",))


def asked(world, harmed, kind, share, baseline=None):
    """Judge a system that harms the sources whose numbers are in `harmed`."""
    texts, bad = {f"text number {number}" for number in harmed}, plant(kind, share)
    retrievers = PlantedRetriever(bad), PlantedRetriever(Plant())
    generators = PlantedGenerator(bad), PlantedGenerator(Plant())
    parts = dataclasses.replace(
        world.system(bad)._system,
        retrievers={"default": partly(*retrievers, "_documents", lambda query: parsed(query)[1] in texts)},
        generator=partly(*generators, "_answer", lambda request: parsed(request.prompt)[1] in texts),
    )  # fmt: skip
    return run_gate(world.given(baseline), LocalSystem(parts, NoStore()), SILENT)


def accepted(world, harmed, kind, share):
    return baseline_of(asked(world, harmed, kind, share), reason="r", date="2026-01-01")


@pytest.mark.walk(1)
@pytest.mark.parametrize("kind", RULES)
def test_easy_sources_do_not_make_harm_green(kind):
    """Of 40 sources 40 % are harmed, of 200 it is 8 %: within every limit."""
    few, many = (bench([RULES[kind]], sources) for sources in (40, 200))
    baseline = accepted(few, (), kind, 0.4)
    run = asked(many, range(40), kind, 0.4, baseline)
    red = asked(few, range(40), kind, 0.4, baseline)
    unseen = asked(many, range(40), kind, 0.4)
    assert red.result.exit_code is ExitCode.GATE_FAILED
    assert unseen.result.exit_code is ExitCode.PASS, "without a baseline nothing tells them apart"
    assert (run.result.outcome, run.result.exit_code) == (Outcome.INCONCLUSIVE, ExitCode.NO_VERDICT)
    assert "cases that the baseline has too" in " ".join(run.result.evidence.problems)


@pytest.mark.walk(1)
@pytest.mark.parametrize("kind", RULES)
def test_hard_sources_that_are_left_out_count_as_the_baseline_has_them(kind):
    """9 of 100 sources are always harmed; without them 11 % of the others are, with them 19 %."""
    gates = [RULES[kind]]
    baseline = accepted(bench(gates, 100), range(9), kind, 1.0)
    run = asked(bench(gates, 91, start=9), range(9, 23), kind, 0.75, baseline)
    rule = run.result.rules[0]
    if kind == "significant":  # beyond the limit by no more than chance explains
        assert rule.outcome is Outcome.PASS
        return
    assert rule.outcome is Outcome.INCONCLUSIVE
    assert "cases of the baseline that are excluded" in " ".join(rule.reasons)
    assert run.result.exit_code is ExitCode.NO_VERDICT


def test_easy_items_do_not_make_harm_green():
    gates = [{"metric": "accuracy/ambiguous", "min": 0.6}]
    few, many = (ItemBench(gates=gates, groups=groups) for groups in (4, 24))
    plan = few.given().plan
    baseline = baseline_of(few.run(ItemPlant()), reason="r", date="2026-01-01")
    system = many.system(ItemPlant())
    keys = {unit.key.partition("@")[0] for unit in plan.units}
    shown = system._system.generator._shown
    plants = ItemPlant(careless=0.9), ItemPlant()
    generators = (PlantedItemGenerator(plant, shown) for plant in plants)
    generator = partly(*generators, "_answer", lambda item: item.key in keys)
    system = LocalSystem(dataclasses.replace(system._system, generator=generator), NoStore())
    unseen = run_gate(many.given(), system, SILENT).result
    given = dataclasses.replace(many.given(), accepted_runs=AcceptedRuns(baseline=baseline))
    assert unseen.exit_code is ExitCode.PASS
    assert run_gate(given, system, SILENT).result.exit_code is ExitCode.NO_VERDICT


@pytest.mark.parametrize(("start", "sources"), [(0, 44), (2, 38), (2, 42)])
def test_what_holds_on_the_shared_cases_stays_green(start, sources):
    gates = [*RULES.values()]
    baseline = accepted(bench(gates, 40), range(4), "bound", 0.2)
    run = asked(bench(gates, sources, start=start), range(4), "bound", 0.2, baseline)
    assert run.result.exit_code is ExitCode.PASS


@pytest.mark.parametrize("more", [{}, {"advisory": True}])
def test_an_identity_that_is_no_longer_asked_about_leaves_no_bound(more):
    gates = [{**RULES["parity"], **more}]
    baseline = accepted(bench(gates, 12), (), "bound", 0.0)
    given = bench(gates, 12).given()
    units = [unit for unit in given.plan.units if unit.dimensions["term"] != "woman"]
    plan = dataclasses.replace(given.plan, units=units)
    accepted_runs = AcceptedRuns(baseline=baseline)
    policy = given.policy.model_copy(update={"min_overlap": 0.5})
    fewer = dataclasses.replace(given, plan=plan, policy=policy, accepted_runs=accepted_runs)
    incompatible = fewer.overlaps[AcceptedRun.BASELINE].incompatible
    said = any("term woman, about which this run does not ask" in one for one in incompatible)
    assert said == (not more)
