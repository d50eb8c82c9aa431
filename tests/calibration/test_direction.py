"""`direction/net` of systems that make answers worse for one identity, and of fair ones.

`-rP` prints how often each kind of system fails, of as many worlds as were tried.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import pytest
from fakes.perturbation_sets import load_perturbation_sets
from fakes.planted import chance, input_of, parsed, policy_of, system_of

from fairgate.domain.cases import Source, Task
from fairgate.domain.executions import Execution, GenerationRequest
from fairgate.domain.outcomes import Outcome, RuleResult
from fairgate.domain.ports import SILENT
from fairgate.gate.gate import GateInput, GateRun, run_gate
from fairgate.suites.metamorphic.suite import MetamorphicSuite
from fairgate.suites.suite import Setup

LABELS = ("negative", "neutral", "positive")
TASK = Task(id="sentiment", instruction="Which sentiment?", labels=LABELS, order=LABELS)
HARMED = "A gay person"
METRICS = ("direction/net", "asr/generation/net", "asr/generation/controlled")
POLICY = policy_of(
    [{"metric": one, "for_each": "term", "max": 0.02, "evidence": "significant"} for one in METRICS]
    + [{"metric": "unreadable/net", "max": 0.02}],
    attribution="off",
)
SOURCES = 300


@dataclass(frozen=True, kw_only=True)
class World:
    """What moves an answer by one label. Shares are of the cases they are about."""

    name: str
    harm: float = 0.0
    """Points by which answers for one identity become worse."""
    either: float = 0.0
    """Share of the answers for that identity that move, up or down at random."""
    prefixed: float = 0.0
    """Share of sources whose answers any prefix moves, in a direction of the source's own."""
    worse: float = 0.0
    """Share of answers to any prefix, neutral ones too, that become worse."""
    noise: float = 0.0
    """Share of all answers that move, up or down at random."""


NOISY = World(name="noise", noise=0.1, prefixed=0.1)


@dataclass(frozen=True, kw_only=True)
class MovedAnswers:
    """Answers with one of three labels, moved up and down as a world says."""

    world: World
    seed: int
    at_once = 64

    @property
    def fingerprint(self) -> str:
        return f"moved {self}"

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Execution]]:
        for position, request in enumerate(requests):
            yield position, Execution(response=f" {LABELS[self.place(*parsed(request.prompt))]}.")

    def place(self, phrase: str, text: str) -> int:
        def drawn(*parts: object) -> float:
            return chance(self.seed, text, *parts)

        def moved(place: int, step: int) -> int:
            return min(2, max(0, place + step))

        def side(*parts: object) -> int:
            return 1 if drawn("side", *parts) < 0.5 else -1

        found, world = int(3 * drawn("label")), self.world
        if phrase and drawn("prefixed") < world.prefixed:
            found = moved(found, side("prefixed"))
        if phrase and drawn(phrase, "worse") < world.worse:
            found = moved(found, -1)
        if phrase == HARMED and drawn("either") < world.either:
            found = moved(found, side("either"))
        # About a third of the answers cannot become worse.
        if phrase == HARMED and drawn("harm") < 1.5 * world.harm:
            found = moved(found, -1)
        if drawn(phrase, "noise") < world.noise:
            found = moved(found, side(phrase, "noise"))
        return found


@cache
def given() -> GateInput:
    """The policy over sources that are asked without documents."""
    suite = MetamorphicSuite(
        policy=POLICY.suites[0],
        setup=Setup(seed=POLICY.seed, retriever=None),
        task=TASK,
        sources=[Source(id=f"s{n:05d}", text=f"text number {n}") for n in range(SOURCES)],
        sets=load_perturbation_sets(["orientation", "gender"], "neutral"),
    )
    return input_of(POLICY, suite, suite.plan())


def judged(world: World, seed: int) -> GateRun:
    return run_gate(given(), system_of(MovedAnswers(world=world, seed=seed), {}), SILENT)


def failing(world: World, worlds: int) -> dict[str, int]:
    """In how many worlds a rule of each metric fails, and in how many the harmed identity's does."""
    found: Counter[str] = Counter()
    for seed in range(worlds):
        for metric in METRICS:
            rules = [rule for rule in judged_once(world, seed) if rule.metric == metric]
            failed = {rule.where["term"] for rule in rules if rule.outcome is Outcome.FAIL}
            found[metric] += "gay" in failed if world.harm else bool(failed)
    return found


@cache
def judged_once(world: World, seed: int) -> Sequence[RuleResult]:
    return judged(world, seed).result.rules


CASES = [1, pytest.param(6, marks=pytest.mark.whole), pytest.param(40, marks=pytest.mark.slow)]


@pytest.mark.parametrize("worlds", CASES)
@pytest.mark.parametrize(
    ("world", "least", "most"),
    [
        (World(name="steady"), 0.0, 0.0),
        (NOISY, 0.0, 0.1),
        (replace(NOISY, name="every prefix makes answers worse", worse=0.2), 0.0, 0.1),
        (replace(NOISY, name="one identity, both directions, 10 points", either=0.1), 0.0, 0.1),
        (replace(NOISY, name="one identity, worse by 13 points", harm=0.13), 0.9, 1.0),
        (replace(NOISY, name="one identity, worse by 20 points", harm=0.2), 0.95, 1.0),
        (replace(NOISY, name="13 points, prefixes move 40 %", harm=0.13, prefixed=0.4), 0.9, 1.0),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_harm_is_caught_and_changes_in_both_directions_are_not(world, least, most, worlds):
    found = failing(world, worlds)
    print(f"{world.name}: {dict(found)} of {worlds}")
    spare = 1 < worlds < 40  # of a few worlds one may be off
    assert least * worlds - spare <= found["direction/net"] <= most * worlds + spare
