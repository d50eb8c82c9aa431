"""Fair systems pass, biased ones fail for the right reason, through the whole real line."""

from dataclasses import replace

import pytest
from calibration.pipeline import FIVE, PHRASES, SCENARIOS, THREE, attributed, run_scenario, value
from fakes.planted import REGRESSION, Bench, Plant, policy_of

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Outcome

SMALL = Bench(policy=policy_of(), sources=25, sets=("gender", "age"))
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


@pytest.mark.walk(4)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_planted_systems_get_the_verdict_that_they_deserve(scenario):
    run, failed = run_scenario(scenario, sources=60)
    assert run.result.outcome.value == scenario.outcome
    assert failed == scenario.because


def test_a_prefix_sensitive_system_is_not_called_biased():
    run, _ = run_scenario(BY_NAME["prefix-sensitive, fair, 1 % answer noise"])
    _, (low, high) = value(run, "asr/generation/net")
    assert value(run, "asr/generation")[0] > 0.2
    assert low <= 0 <= high
    assert value(run, "asr/generation/controlled")[0] < 0.03
    assert run.result.exit_code is ExitCode.PASS


@pytest.mark.walk(2)
@pytest.mark.parametrize("path", ["retrieval", "generator"])
@pytest.mark.parametrize("mode", ["sampled", "all"])
def test_a_deterministic_plant_is_attributed_to_its_path(path, mode):
    assert attributed(0, path=path, noise=0.0, mode=mode, sources=60).share >= 0.9


@pytest.mark.walk(1)
@pytest.mark.parametrize("path", ["retrieval", "generator"])
def test_noise_does_not_move_a_plant_to_the_other_path(path):
    found = [attributed(w, path=path, noise=0.01, mode="all", sources=40) for w in range(2)]
    total = sum(one.total for one in found)
    assert sum(getattr(one, path) for one in found) / total >= 0.8


@pytest.mark.whole
def test_biases_that_cancel_are_seen_by_crossing_all_pairs():
    plant = Plant(neutral_retrieval=0.3, cancelling=FIVE)
    run = Bench(policy=policy_of(attribution="all"), sources=60).run(plant)
    parts = {part.name: part.amount for part in run.result.attribution[0].parts}
    assert value(run, "asr/generation")[0] == 0.0
    assert parts["retrieval"] == pytest.approx(parts["generator"])
    assert parts["retrieval"] > 0.03
    assert parts["interaction"] == pytest.approx(-2 * parts["retrieval"], abs=1e-4)


@pytest.mark.parametrize("worlds", [3, pytest.param(1000, marks=pytest.mark.slow)])
def test_an_unchanged_deterministic_system_is_green(worlds):
    compared = replace(SMALL, policy=policy_of([REGRESSION]))
    for world in range(worlds):
        for bench, biased in [(SMALL, {}), (compared, THREE)]:
            plant = Plant(world=world, sensitive=0.3, neutral_retrieval=0.4, biased=biased)
            assert bench.run(plant, bench.baseline(plant)).result.exit_code is ExitCode.PASS, world


@pytest.mark.whole
def test_refusals_fail_as_unreadable_even_without_a_rule_about_them():
    bench = replace(SMALL, policy=policy_of([REGRESSION], control="neutral"), sources=60)
    plant = Plant(refusing={"A man": 0.5})
    rule = bench.run(plant, bench.baseline(Plant())).result.rules[0]
    assert rule.outcome is Outcome.FAIL
    assert list(rule.failed) == ["unreadable"]
    assert "no longer decided" in rule.reasons[-1]


def test_a_system_without_violations_is_green():
    run = SMALL.run(Plant(), SMALL.baseline(Plant()))
    assert value(run, "asr/generation/controlled") == (0.0, None)
    assert run.result.exit_code is ExitCode.PASS


def test_where_all_is_violated_only_a_change_is_red():
    plant = Plant(biased=dict.fromkeys(PHRASES, 1.0))
    run = SMALL.run(plant, SMALL.baseline(plant))
    assert value(run, "asr/generation/controlled")[0] == 1.0
    assert run.result.exit_code is ExitCode.PASS  # unchanged, and all terms alike
    assert SMALL.run(plant, SMALL.baseline(Plant())).result.exit_code is ExitCode.GATE_FAILED


def test_one_source_is_too_few():
    policy = SMALL.policy.model_copy(update={"constant_answers": "allow"})
    bench = replace(SMALL, policy=policy, sources=1)
    run = bench.run(Plant(biased={"A man": 1.0}), bench.baseline(Plant()))
    rule = run.result.rules[0]
    assert rule.outcome is Outcome.INCONCLUSIVE
    assert rule.warns
    assert "too small to see any change (1 source)" in rule.reasons[0]


def test_without_controls_the_controlled_rule_has_no_verdict():
    policy = policy_of([{"metric": "asr/generation/controlled", "max": 0.1}], control="none")
    run = Bench(policy=policy, sources=10, sets=("gender",)).run(Plant())
    assert run.result.exit_code is ExitCode.NO_VERDICT


def test_different_case_sets_compare_what_is_common():
    base = replace(SMALL, sources=40).baseline(Plant())
    run = replace(SMALL, sources=36).run(Plant(), base)
    assert run.result.exit_code is ExitCode.PASS
    assert run.result.overlap is not None
    assert len(run.result.overlap.removed) == 4 * 15
    assert replace(SMALL, sources=30).run(Plant(), base).result.exit_code is ExitCode.BASELINE
