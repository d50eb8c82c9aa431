"""The harm that a green says it could hide: of that size it is found in about half of the worlds.

`-rP` prints the share that greens state, and how often harm of that size, and of a third, is red.
"""

from dataclasses import dataclass, replace
from functools import cache
from statistics import median

import numpy as np
import pytest
from calibration.verdicts import SETS, own, planted
from fakes.planted_policies import Behaviour

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Outcome
from fairgate.gate.accepted_runs import baseline_of
from fairgate.gate.unseen import unseen_harm

NET = "  - {metric: asr/generation/net, for_each: term, max: 0.1, evidence: significant}"
IDENTITY = "  - {metric: identity/max-difference, max: 0.05}"
DIRECTION = "  - {metric: direction/net, for_each: term, max: 0.02, evidence: significant}"
REGRESSION = "  - {metric: asr/generation/controlled, regression: {margin: 0.02}}"
MEAN = "  - {metric: asr/generation/net, max: 0.03, evidence: significant}"


@dataclass(frozen=True)
class Cell:
    """Gates, and a fair system that they judge."""

    gates: str
    sets: str = "gender"
    sources: int = 40
    noise: float = 0.1


QUICK = [Cell(f"{NET}\n{IDENTITY}", sources=30), Cell(REGRESSION, sources=30, noise=0.05)]
SLOW = [
    Cell(gates, sets, sources, noise)
    for gates in (NET, IDENTITY, f"{NET}\n{IDENTITY}", DIRECTION, REGRESSION)
    for sets, sources in (("gender", 40), (SETS, 60))
    for noise in (0.02, 0.1)
]


@cache
def base(cell):
    """The baseline of a policy that compares with one."""
    if "regression" not in cell.gates:
        return None
    fair = policy(cell).run(Behaviour(world=9000, noise=cell.noise, run=1))
    return baseline_of(fair, reason="planted", date="2026-01-01")


def policy(cell):
    return planted(own(cell.gates, cell.sets), cell.sources)


def run(cell, world, harm=0.0):
    # A regression rule compares runs of one world.
    world, number = (9000, world + 2) if base(cell) else (world, 0)
    return policy(cell).run(
        Behaviour(world=world, noise=cell.noise, harm=harm, run=number), base(cell)
    )


def stated(result):
    """The share of the one suite of a green run; None where the run is not green."""
    found = list(unseen_harm(result.given.policy, result.result, result.tables))
    assert len(found) == (result.result.outcome is Outcome.PASS)
    return found[0].share if found else None


def planted_harm(cell, share):
    """What makes as many more answers others: half of the sources have a worse one, noise aside."""
    return 2 * share / (1 - 2 * cell.noise)


def reds(cell, share, seeds):
    codes = (run(cell, world, planted_harm(cell, share)).result.exit_code for world in seeds)
    return sum(code is ExitCode.GATE_FAILED for code in codes)


@pytest.mark.parametrize(
    ("cells", "seeds"), [(QUICK, 8), pytest.param(SLOW, 40, marks=pytest.mark.slow)]
)
def test_harm_of_the_stated_size_is_found_in_about_half_of_the_worlds_and_a_third_of_it_is_not(
    cells, seeds
):
    wrong = []
    for cell in cells:
        shares = [share for world in range(seeds // 2) if (share := stated(run(cell, 500 + world)))]
        share = median(shares)
        if planted_harm(cell, share) > 1:
            continue
        at, below = (reds(cell, part * share, range(seeds)) for part in (1, 1 / 3))
        print(f"{cell}: {share:.3f}; {at} and {below} of {seeds} red")
        if not (0.2 * seeds <= at <= 0.9 * seeds and below <= 0.2 * seeds):
            wrong.append((cell, share, at, below))
    assert not wrong


def test_a_green_states_nothing_smaller_than_what_passes_and_a_mean_hides_one_of_many():
    """No number contradicts an outcome: what a rule lets pass is not above what is stated."""
    for gates in (NET, f"{NET}\n{IDENTITY}"):
        for world in range(4):
            result = run(Cell(gates, noise=0.2), world, harm=0.2)
            share = stated(result)
            rules = [rule for rule in result.result.rules if "term" in rule.where]
            assert share is None or share >= max(rule.value for rule in rules)
    assert stated(run(Cell(MEAN, SETS, 20), 1)) is None


def test_it_is_the_same_in_whatever_order_the_cases_are():
    result = run(Cell(f"{NET}\n{IDENTITY}"), 3)
    [(suite, table)] = result.tables.items()
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(table.keys))
        shuffled = replace(result, tables={suite: table.of_rows(order)})
        assert stated(shuffled) == stated(result)
