"""A reference beside the candidate: what moved is found, for whom, and nothing else is.

Through the whole line on planted pairs of systems. `-rP` prints how often each pair is red.
"""

from dataclasses import dataclass, replace

import pytest
from fakes.planted import (
    Bench,
    Plant,
    PlantedGenerator,
    PlantedRetriever,
    chance,
    policy_of,
    system_of,
)

from fairgate.domain.errors import ExitCode
from fairgate.domain.executions import Execution
from fairgate.domain.outcomes import Outcome
from fairgate.domain.ports import SILENT
from fairgate.gate.gate import run_gate
from fairgate.systems.reference import ReferencedSystem

EVERYBODY, ANSWERS, NET = "shift/answer", "shift/answer/max-difference", "shift/answer/net"
LOST, DOCUMENTS = "shift/unreadable", "shift/documents/max-difference"
FOUND = "shift/documents"
GATES = (
    {"metric": EVERYBODY, "max": 0.05, "evidence": "significant"},
    {"metric": ANSWERS, "max": 0.05},
    {"metric": NET, "max": 0.03, "evidence": "significant"},
    {"metric": LOST, "for_each": "term", "max_abs": 0.03, "evidence": "significant"},
    {"metric": FOUND, "max": 0.2, "evidence": "significant"},
    {"metric": DOCUMENTS, "max": 0.05},
)
WOMAN, FAIR = "A woman", Plant()
SEEDS = pytest.mark.parametrize(
    "seeds", [1, pytest.param(2, marks=pytest.mark.whole), pytest.param(40, marks=pytest.mark.slow)]
)
CONTROLS = pytest.mark.parametrize(
    "control", ["neutral", pytest.param("neutral-phrases", marks=pytest.mark.slow)]
)


class Moved(PlantedGenerator):
    """A planted system of which a share of the answers is turned, near ties first if asked."""

    def __init__(self, plant, share=0.0, *, ties=0.0, is_candidate=True):
        super().__init__(plant)
        self._share, self._ties, self._turns = share, ties, is_candidate
        self.fingerprint = f"moved {plant} {share} {ties} {is_candidate}"

    def _answer(self, request):
        answer, world = super()._answer(request), self._plant.world
        is_tie = chance(world, "tie", request.prompt) < self._ties
        turns = is_tie or chance(world, "moved", request.prompt) < self._share
        text = answer.response
        if self._turns and turns:
            text = " negative." if "positive" in text else " positive."
        return Execution(response=text, margin=0.0 if is_tie else answer.margin)


@dataclass(frozen=True, kw_only=True)
class Pair:
    candidate: Plant = FAIR
    share: float = 0.0
    ties: float = 0.0
    noise: float = 0.0
    """Of both systems, anew in each."""


PAIRS = {
    "equal": Pair(),
    "noisy": Pair(noise=0.01),
    "everything": Pair(share=0.10),
    "one identity": Pair(candidate=Plant(biased={WOMAN: 0.12})),
    "near ties": Pair(ties=0.04),
    "refusals for one": Pair(candidate=Plant(refusing={WOMAN: 0.12})),
    "documents for one": Pair(candidate=Plant(retrieval={WOMAN: 0.3})),
}
FINDS = {
    "equal": (),
    "noisy": (),
    "everything": (EVERYBODY,),
    "one identity": (ANSWERS,),
    "near ties": (),
    "refusals for one": (LOST, ANSWERS),
    "documents for one": (DOCUMENTS,),
}
"""Metrics of which one at least must be red in at least 90 % of the worlds."""


def gated(pair, world, *, control="neutral", sources=100):
    policy = policy_of(GATES, control=control, attribution="off")
    bench = Bench(policy=policy, sources=sources, start=1000 * world, sets=("gender", "age"))
    given = bench.given()
    suites = {
        name: replace(suite, setup=replace(suite.setup, has_reference=True))
        for name, suite in given.suites.items()
    }

    def system(plant, run, share, *, is_candidate):
        plant = replace(plant, world=world, noise=pair.noise, run=run)
        generator = Moved(plant, share, ties=pair.ties, is_candidate=is_candidate)
        return system_of(generator, {"default": PlantedRetriever(plant)})

    asked = ReferencedSystem(
        system(pair.candidate, 1, pair.share, is_candidate=True),
        system(FAIR, 2, 0.0, is_candidate=False),
    )
    return run_gate(replace(given, suites=suites), asked, SILENT, verdict_with=())


def red(run):
    return {rule.metric for rule in run.result.rules if rule.outcome is Outcome.FAIL}


@SEEDS
@CONTROLS
@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_of_systems_is_red_for_what_moved_and_for_nothing_else(name, control, seeds):
    counts, wrong, unjudged = {}, 0, 0
    for world in range(seeds):
        run = gated(PAIRS[name], world, control=control)
        found = red(run)
        for metric in found:
            counts[metric] = counts.get(metric, 0) + 1
        is_of_identity = {ANSWERS, NET, LOST, DOCUMENTS} & found
        wrong += bool(found if not FINDS[name] else is_of_identity if name == "everything" else ())
        unjudged += run.result.exit_code is ExitCode.NO_VERDICT
    print(f"{name}, {control}: {counts} of {seeds}, wrong {wrong}, without a verdict {unjudged}")
    assert unjudged == 0
    assert wrong <= 0.05 * seeds
    if FINDS[name]:
        assert max(counts.get(metric, 0) for metric in FINDS[name]) >= 0.9 * seeds
