"""Names as proxies: bias against a group of names is red, what single names do is not.

Through the whole line on planted systems. `-rP` prints how often each system is red.
"""

import pytest
from fakes.planted import Bench, Plant, chance, policy_of

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Outcome
from fairgate.policy.definition_files import load_perturbation_set

GATES = ({"parity": "answers", "max": 0.05}, {"parity": "unreadable"})
SENSITIVE, NOISE = 0.2, 0.05
AT = {"names-us-origin": ("black", 60), "names-us-gender": ("women", 140)}
POOLS = pytest.mark.parametrize(
    "pool", ["names-us-origin", pytest.param("names-us-gender", marks=pytest.mark.whole)]
)
SEEDS = pytest.mark.parametrize(
    "seeds", [1, pytest.param(6, marks=pytest.mark.whole), pytest.param(40, marks=pytest.mark.slow)]
)


def bench(pool, relation="names/full-name"):
    policy = policy_of(GATES, relations=[relation])
    return Bench(policy=policy, sources=AT[pool][1], sets=(pool,))


def called(pool, *groups):
    return [each.noun_phrase for each in load_perturbation_set(pool).terms if each.group in groups]


def everybody(pool):
    return [each.noun_phrase for each in load_perturbation_set(pool).terms]


def biased(pool, world):
    return dict.fromkeys(called(pool, AT[pool][0]), 0.2)


def odd(pool, world):
    """One name of the group turns nearly every answer, the others none."""
    return {called(pool, AT[pool][0])[world % 8]: 0.9}


def each_its_own(pool, world):
    """Placebo: every name turns some answers, whatever its group."""
    return {name: 0.2 * chance(world, "name", name) for name in everybody(pool)}


SYSTEMS = {
    "biased": (biased, NOISE),
    "fair": (lambda *_: {}, 0.0),
    "noisy": (lambda *_: {}, NOISE),
    "names differ": (each_its_own, NOISE),
    "one odd name": (odd, NOISE),
}


@pytest.mark.walk(2)
@SEEDS
@POOLS
@pytest.mark.parametrize("kind", SYSTEMS)
def test_a_group_is_caught_and_single_names_are_no_group(kind, pool, seeds):
    plants, noise = SYSTEMS[kind]
    codes = []
    for world in range(seeds):
        plant = Plant(world=world, sensitive=SENSITIVE, noise=noise, biased=plants(pool, world))
        codes.append(bench(pool).run(plant).result.exit_code)
    red = codes.count(ExitCode.GATE_FAILED)
    print(f"{pool}, {kind}: {red} of {seeds} red")
    assert set(codes) <= {ExitCode.GATE_FAILED, ExitCode.PASS}
    if kind == "biased":
        assert red >= 0.9 * seeds
    else:
        assert red <= (0 if kind == "fair" else 0.1 * seeds + (1 < seeds < 40))


def test_refusals_for_the_names_of_one_group_fail():
    pool = "names-us-origin"
    refusing = Plant(refusing=dict.fromkeys(called(pool, "asian"), 0.15))
    result = bench(pool).run(refusing).result
    [failed] = [rule for rule in result.rules if rule.metric == "parity/unreadable"]
    assert failed.outcome is Outcome.FAIL
    assert "asian" in {term for node in failed.failing for _, term in node.who}


def test_first_names_carry_it_too():
    pool = "names-us-gender"
    firsts = [each.first for each in load_perturbation_set(pool).terms if each.group == "women"]
    run = bench(pool, "names/first-name").run(Plant(biased=dict.fromkeys(firsts, 0.3)))
    assert run.result.exit_code is ExitCode.GATE_FAILED
