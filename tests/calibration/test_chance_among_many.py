"""The largest of many differences against what as many neutral phrases reach by chance.

`-rP` prints how often the rule fails, of as many worlds as were tried.
"""

import numpy as np
import pytest
from calibration.identity import judge
from fakes.perturbation_sets import load_perturbation_sets
from fakes.planted import IDENTITY, SETS, Bench, Plant, policy_of

from fairgate.domain.outcomes import Outcome

BENCH = Bench(policy=policy_of([IDENTITY], attribution="off"))
PHRASES = [
    term.noun_phrase
    for group in load_perturbation_sets(list(SETS), "neutral")
    for term in group.terms
]
HARMED = "A gay person"


def plant(world: int, noise: float = 0.0, wording: float = 0.0, harm: float = 0.0) -> Plant:
    """Every phrase, neutral ones too, turns some answers of its own; one identity turns more."""
    own = np.abs(np.random.default_rng(world).normal(0, wording, len(PHRASES)))
    biased = dict(zip(PHRASES, own.tolist(), strict=True))
    biased[HARMED] += harm
    return Plant(world=world, noise=noise, biased=biased)


@pytest.mark.parametrize(
    "worlds",
    [1, pytest.param(6, marks=pytest.mark.whole), pytest.param(40, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    ("sets", "more", "least", "most"),
    [
        (SETS, {}, 0.0, 0.0),
        (SETS, {"noise": 0.1}, 0.0, 0.1),
        (SETS, {"noise": 0.1, "wording": 0.04}, 0.0, 0.1),
        (("orientation",), {"noise": 0.1, "wording": 0.02}, 0.0, 0.1),
        (SETS, {"noise": 0.1, "wording": 0.02, "harm": 0.3}, 0.9, 1.0),
        (("orientation",), {"noise": 0.1, "wording": 0.02, "harm": 0.3}, 0.9, 1.0),
    ],
    ids=["fair", "noise", "wording", "wording, five", "one harmed", "one harmed of five"],
)
def test_one_identity_fails_and_the_worst_of_many_fair_ones_does_not(
    sets, more, least, most, worlds
):
    bench = Bench(policy=BENCH.policy, sets=sets)
    rules = [bench.run(plant(world, **more)).result.rules[0] for world in range(worlds)]
    failed = sum(rule.outcome is Outcome.FAIL for rule in rules)
    print(f"{len(sets)} sets, {more}: {failed} of {worlds}")
    spare = 1 < worlds < 40  # of a few worlds one may be off
    assert least * worlds - spare <= failed <= most * worlds + spare


@pytest.mark.parametrize("worlds", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_false_alarms_are_as_rare_among_many_as_among_few(worlds):
    few, many = (judge("wording, 2 points", 0.0, arity, worlds, 3) for arity in (2, 40))
    print(few, many)
    assert many.by_chance > 1.5 * few.by_chance
    assert max(few.by_excess, many.by_excess) <= 0.1 * worlds
    assert many.by_value >= many.by_excess


@pytest.mark.parametrize("sources", [20, 100])
def test_what_chance_gives_is_beside_the_value_and_grows_with_the_identities(sources):
    found = [
        Bench(policy=BENCH.policy, sets=sets, sources=sources).run(plant(1, noise=0.2)).result
        for sets in (("gender",), SETS)
    ]
    few, many = (result.identities[0] for result in found)
    assert 0 < few.by_chance < many.by_chance
    assert (len(few.terms), len(many.terms)) == (3, 21)
    assert f"{100 * many.by_chance:.1f} by chance among as many neutral phrases as identities" in (
        " ".join(found[1].rules[0].reasons)
    )
    assert many.phrases == sum(
        term.noun_phrase in PHRASES
        for group in load_perturbation_sets([], "neutral")
        for term in group.terms
    )


def test_without_neutral_wording_it_is_said_that_wording_is_not_known():
    policy = policy_of([IDENTITY], attribution="off", control="none")
    [rule, *_] = Bench(policy=policy, sets=("gender",)).run(plant(1, noise=0.2)).result.rules
    assert "by chance among 3 identities, however they are worded" in " ".join(rule.reasons)
