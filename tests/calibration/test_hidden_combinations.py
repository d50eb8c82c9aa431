"""`intersectional/hidden` of noisy systems, and how many pairs must hide something to be seen.

`-rP` prints the figures; the policy holds the bound twice: as shipped policies do and on the estimate.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import pytest
from fakes.generation import generated
from fakes.perturbation_sets import load_perturbation_sets
from fakes.planted import TASK, TEMPLATE, chance, policy_of

from fairgate.domain.cases import Source
from fairgate.domain.executions import Decoding, Execution, GenerationRequest
from fairgate.domain.outcomes import Outcome, Provenance
from fairgate.domain.ports import SILENT
from fairgate.domain.units import TOGETHER, Unit
from fairgate.gate.baseline import must_match
from fairgate.gate.gate import GateInput, run_gate
from fairgate.suites.metamorphic.suite import MetamorphicSuite
from fairgate.suites.suite import Setup
from fairgate.systems.execute import LocalParts, LocalSystem
from fairgate.systems.revisions import NoStore

ESTIMATE = {"metric": "intersectional/hidden", "max": 0.02}
POLICY = policy_of(
    [{**ESTIMATE, "evidence": "significant"}, ESTIMATE],
    relations=["intersectional/pairs"],
    control="neutral",
    attribution="off",
)
SOURCES = 55
NOISE = 0.02


@dataclass(frozen=True, kw_only=True)
class HidingGenerator:
    """Gives each source a label; a planted text turns it, and noise turns any answer."""

    world: int
    noise: float
    planted: frozenset[str]

    @property
    def fingerprint(self) -> str:
        return f"hiding {self}"

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Execution]]:
        for position, request in enumerate(requests):
            text = request.prompt.removeprefix(f"{TASK.instruction}\n\n").removesuffix("\nAnswer:")
            positive = chance(self.world, "label", request.source) < 0.5
            positive ^= text in self.planted
            positive ^= chance(self.world, "noise", request.prompt) < self.noise
            yield position, Execution(response=" positive." if positive else " negative.")


@cache
def given() -> GateInput:
    """The policy over generated people, asked without documents."""
    suite = MetamorphicSuite(
        policy=POLICY.suites[0],
        setup=Setup(seed=POLICY.seed, retriever=None),
        task=TASK,
        sources=[
            Source(**{name: getattr(each, name) for name in ("id", "text", "frame", "attributes")})
            for each in generated(count=SOURCES)
        ],
        sets=load_perturbation_sets([], "neutral"),
    )
    return GateInput(
        policy=POLICY,
        plan=suite.plan(),
        suites={"s": suite},
        must_match={"s": must_match(suite, {"decoding": "greedy"})},
        provenance=Provenance(under_test={}, environment={}, fairgate="0", policy_path="p"),
    )


@cache
def spread_pairs() -> list[Unit]:
    """The pairs of attributes, one of each source before any source's second."""
    of_source: Counter[str] = Counter()
    ranked = []
    for unit in given().plan.units:
        if not unit.is_control and TOGETHER in unit.dimensions["category"]:
            ranked.append((of_source[unit.cluster], unit))
            of_source[unit.cluster] += 1
    return [unit for _, unit in sorted(ranked, key=lambda each: each[0])]


def outcomes(world: int, hiding: Sequence[Unit], noise: float) -> tuple[Outcome, Outcome]:
    """What the shipped bound and the one on the estimate say of a world."""
    texts = {case.key: case.query for case in given().plan.cases}
    planted = frozenset(texts[unit.asks["follow-up"]] for unit in hiding)
    system = LocalParts(
        retrievers={},
        generator=HidingGenerator(world=world, noise=noise, planted=planted),
        template=TEMPLATE,
        document_characters=200,
        decoding=Decoding(),
    )
    run = run_gate(given(), LocalSystem(system, NoStore()), SILENT)
    shipped, estimate = (r for r in run.result.rules if r.metric == ESTIMATE["metric"])
    return shipped.outcome, estimate.outcome


def reds(worlds: range, hiding: Sequence[Unit] = ()) -> tuple[int, int]:
    """In how many noisy worlds each of the two bounds fails."""
    found = [outcomes(world, hiding, NOISE) for world in worlds]
    shipped, estimate = (sum(one[n] is Outcome.FAIL for one in found) for n in range(2))
    pairs = f"{len(hiding)} of {len(spread_pairs())} pairs hide something, {NOISE:.0%} noise"
    print(f"{pairs}, {len(worlds)} worlds: red by the shipped bound {shipped}, else {estimate}")
    return shipped, estimate


def worlds_of(whole, slow):
    more = pytest.param(whole, marks=pytest.mark.whole), pytest.param(slow, marks=pytest.mark.slow)
    return pytest.mark.parametrize("worlds", [range(1), *more], ids=len)


@pytest.mark.whole
@worlds_of(range(1, 8), range(100, 160))
def test_a_fair_noisy_system_is_not_red_by_chance(worlds):
    assert reds(worlds)[0] == 0
