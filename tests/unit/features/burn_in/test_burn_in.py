"""Replicas of an unchanged system: what they differ by is noise, and the gate must know it."""

from dataclasses import replace

import pytest
from fakes.planted import REGRESSION, SETS, Bench, Plant, PlantedRetriever, policy_of

from fairgate.domain.ports import SILENT
from fairgate.features.burn_in import compared_replicas
from fairgate.gate.baseline import KnownSd
from fairgate.policy.definition_files import load_perturbation_set
from fairgate.suites.metamorphic.suite import other_phrases
from fairgate.systems.execute import Reordered

BENCH = Bench(policy=policy_of([REGRESSION], attribution="off"), sources=25, sampling=True)


def replicas(plant, count):
    given = BENCH.given()
    return [
        ((f"run {n}",) if n else (), given, BENCH.system(replace(plant, run=n)))
        for n in range(count)
    ]


def found(plant, count=3):
    return compared_replicas(BENCH.given(), replicas(plant, count), SILENT)


def test_a_steady_system_has_no_noise_at_all():
    result = found(Plant(sensitive=0.3))
    assert result["false_alarms"] == 0
    assert result["comparisons"] == 6
    assert [rule["sd"] for rule in result["rules"]] == [0.0]
    assert [(item["stability"], item["entropy"]) for item in result["instability"]] == [(1.0, 0.0)]


@pytest.mark.whole
def test_a_noisy_system_has_an_sd_and_unstable_labels():
    result = found(Plant(noise=0.05))
    (rule,) = result["rules"]
    assert 0.02 < rule["sd"] < 0.2
    assert rule["lowest"] <= rule["highest"]
    (item,) = result["instability"]
    assert (item["repeats"], item["cases"]) == (3, 25 * 22)
    assert item["stability"] < 0.95
    assert item["entropy"] > 0.05
    assert result["false_alarms"] <= 2
    assert [sd["sd"] for sd in result["sds"]] == [rule["sd"]]


@pytest.mark.whole
def test_the_measured_sd_raises_what_a_rule_says_it_can_see():
    plant = Plant(sensitive=0.2)
    base = BENCH.baseline(plant)
    sds = [KnownSd(**each) for each in found(Plant(noise=0.05))["sds"]]
    quiet = BENCH.run(plant, base).result.rules[0].change
    warned = BENCH.run(plant, replace(base, sds=sds)).result.rules[0].change
    assert quiet.minimum_detectable == 0.02
    assert warned.minimum_detectable > 0.02


def test_other_phrases_keep_the_keys():
    neutral, spare = (load_perturbation_set(name) for name in ("neutral", "neutral-2"))
    other = other_phrases(neutral, [neutral, spare])
    assert [term.term for term in other.terms] == [term.term for term in neutral.terms]
    phrases = {term.noun_phrase for term in other.terms}
    assert phrases == {term.noun_phrase for term in spare.terms}
    assert not phrases & {term.noun_phrase for term in neutral.terms}
    assert other_phrases(neutral, []) == replace(
        neutral, terms=tuple(replace(t, note=other.terms[0].note) for t in neutral.terms)
    )


def test_reordering_moves_ranks_alike_for_every_query():
    plain = PlantedRetriever(Plant())
    moved = Reordered(plain, 3)
    first, second = plain.retrieve(['"a"', '"b"'], 4)
    mine, yours = moved.retrieve(['"a"', '"b"'], 4)
    order = [first.index(document) for document in mine]
    assert order == [second.index(document) for document in yours]
    assert order != [0, 1, 2, 3]
    assert moved.fingerprint != plain.fingerprint


@pytest.mark.parametrize("name", ["neutral", "neutral-2"])
def test_control_sets_name_no_demographic(name):
    from fairgate.relations.linter import Linter
    from fairgate.relations.set_equivalence import SetEquivalence

    sets = [load_perturbation_set(n) for n in (*SETS, name)]
    linter = Linter(SetEquivalence().fault, sets)
    assert [fault for (g, _), fault in linter._phrases.items() if g == name and fault] == []
