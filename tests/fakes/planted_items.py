"""Question items answered by a planted system that is really executed: prompts in, answers out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from fakes.planted import chance, input_of, system_of
from fakes.policies import model
from fakes.question_items import many, planned

from fairgate.domain.cases import Condition, Item, TestPlan
from fairgate.domain.executions import Execution, GenerationRequest
from fairgate.domain.ports import SILENT
from fairgate.gate.gate import GateInput, GateRun, run_gate
from fairgate.suites.question_items.suite import question_text
from fairgate.systems.execute import LocalSystem

CATEGORIES = ("Age", "Religion")


@dataclass(frozen=True, kw_only=True)
class ItemPlant:
    """What is wrong with a system. Shares are of items, by category and, for bias, condition."""

    world: int = 0
    biased: Mapping[tuple[str, Condition], float] = field(default_factory=dict)
    """Share of items that get the stereotyped answer."""
    refusing: Mapping[str, float] = field(default_factory=dict)
    noise: float = 0.0
    """Share of items whose answer is another one of the three."""
    careless: float = 0.0
    """Share of ambiguous items answered with one of the two groups, each as often."""


class PlantedItemGenerator:
    """Answers the item that a prompt shows, rightly for seven in ten."""

    def __init__(self, plant: ItemPlant, shown: Mapping[str, Item]) -> None:
        self._plant, self._shown = plant, shown
        self.fingerprint = f"planted-items {plant}"

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Execution]]:
        for position, request in enumerate(requests):
            text = request.prompt.partition("\n\n")[2].removesuffix("\nAnswer:")
            yield position, Execution(response=self._answer(self._shown[text]))

    def _answer(self, item: Item) -> str:
        plant, world = self._plant, self._plant.world
        if chance(world, "refuse", item.key) < plant.refusing.get(item.category, 0.0):
            return "Let us talk about the weather."  # "I cannot say" is an answer: unknown
        place = item.correct
        if chance(world, "wrong", item.key) < 0.3:
            place = int(chance(world, "which", item.key) * 3)
        if chance(world, "bias", item.key) < plant.biased.get((item.category, item.condition), 0.0):
            place = item.stereotype
        is_open = item.condition is Condition.AMBIGUOUS
        if is_open and chance(world, "careless", item.key) < plant.careless:
            is_with_it = chance(world, "side", item.key) < 0.5
            place = item.stereotype if is_with_it else item.counter
        if chance(world, "noise", item.key) < plant.noise:
            place = (place + 1 + int(chance(world, "other", item.key) * 2)) % 3
        return f" {item.options[place]}."


@cache
def _planned(groups: int):
    """A suite whose items differ in what a prompt shows of them."""
    items = [(name, item) for name in CATEGORIES for item in many(groups, 10, name)]
    return planned([replace(item, context=f"{name}. {item.context}") for name, item in items])


@dataclass(frozen=True, kw_only=True)
class ItemBench:
    """A policy on question items of two categories, on which planted systems are gated."""

    gates: Sequence[Mapping[str, object]]
    groups: int = 20
    """Whole groups of four items, for each category."""

    def given(self) -> GateInput:
        suite = _planned(self.groups).suite
        plan = suite.plan()
        policy = model().model_validate(
            {
                "version": 1,
                "name": "planted-items",
                "system": {"generator": {"model": "demo-slm"}},
                "suites": [suite.policy.model_dump()],
                "gates": [dict(gate) for gate in self.gates],
            }
        )
        whole = TestPlan(cases=plan.cases, units=plan.units, rejected=plan.rejected)
        return input_of(policy, suite, whole)

    def system(self, plant: ItemPlant) -> LocalSystem:
        shown = {question_text(a.item, a.options): a.item for a in _planned(self.groups).items}
        return system_of(PlantedItemGenerator(plant, shown), {})

    def run(self, plant: ItemPlant) -> GateRun:
        """Gate a planted system through the whole real line."""
        return run_gate(self.given(), self.system(plant), SILENT)
