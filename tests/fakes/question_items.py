"""Question items, suites of them, and systems that always answer in one way."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fairgate.domain.cases import Condition, Item
from fairgate.domain.executions import Execution
from fairgate.domain.units import Assessed
from fairgate.gate.measure import table_of as tabulated
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import observe
from fairgate.metrics.retriever_robustness import PAPER_BANDS
from fairgate.stats.observations import estimate
from fairgate.suites.question_items.policy import BbqSuitePolicy
from fairgate.suites.question_items.suite import QuestionItemSuite
from fairgate.suites.readings import Readings
from fairgate.suites.suite import Setup

WORDINGS = ("Unknown", "Not known", "Can't be determined")
CORE = tuple(f"{name}/{kind}" for name in ("accuracy", "diff-bias") for kind in Condition)

Responder = Callable[[Item], int]
ORACLES: dict[str, Responder] = {
    "stereotype": lambda item: item.stereotype,
    "unknown": lambda item: item.unknown,
    "label": lambda item: item.correct,
    "counter": lambda item: item.counter,
}


def four(group: int, template: str = "1", category: str = "Age", *, stereo: bool = True):
    """Return a whole 4-tuple; its disambiguated contexts go with the stereotype or against it."""
    options = (f"The old man {group}", f"The young man {group}", "Not known")
    return [
        Item(
            key=f"{category}/{4 * group + number}",
            category=category,
            template=template,
            group=str(group),
            polarity=polarity,
            condition=condition,
            context=f"Context {group} {number}.",
            question="Who was it?",
            options=options,
            stereotype=biased,
            counter=1 - biased,
            unknown=2,
            correct=2 if condition is Condition.AMBIGUOUS else (biased if stereo else 1 - biased),
        )
        for number, (biased, polarity, condition) in enumerate(
            (b, p, c) for b, p in enumerate(("neg", "nonneg")) for c in Condition
        )
    ]


def many(groups: int, templates: int, category: str = "Age") -> list[Item]:
    return [
        item
        for group in range(groups)
        for item in four(group, str(group % templates), category, stereo=group % 2 == 0)
    ]


class Asked(NamedTuple):
    """A question in the words of these tests."""

    key: str
    item: Item
    options: tuple[str, ...]
    setting: str
    top_k: int


@dataclass(frozen=True)
class Planned:
    """A suite and everything that it asks."""

    suite: QuestionItemSuite

    @property
    def cases(self):
        return self.suite.plan().cases

    @property
    def items(self):
        return [
            Asked(case.key, item, case.options, unit.dimensions["setting"], case.top_k)
            for case, unit, item in self.suite.asked
        ]


def planned(items: Sequence[Item], seed: int = 42, **changes: object) -> Planned:
    fields = {"id": "bbq", "kind": "bbq", "items": "x", "settings": ["none"]}
    fields["instructions"] = [{"id": "plain", "text": "Answer."}]
    policy, setup = BbqSuitePolicy.model_validate({**fields, **changes}), Setup(seed=seed)
    suite = QuestionItemSuite(
        policy=policy, setup=setup, items=items, excluded=(), unknown_wordings=WORDINGS
    )
    return Planned(suite)


def answered(plan: Planned, answer: Callable[[Asked], str | None], *, options: bool = True):
    """Return executions of all questions; None leaves one out."""
    return {
        (plan.suite.id, asked.key): Execution(
            response=text,
            options=asked.options if options else (),
        )
        for asked in plan.items
        if (text := answer(asked)) is not None
    }


def saying(respond: Responder) -> Callable[[Asked], str]:
    return lambda asked: f" {asked.item.options[respond(asked.item)]}."


def judged_by(suite: QuestionItemSuite, executions) -> list[Assessed]:
    readings = Readings(suite.id, suite.oracles, suite.unstable_margin, executions)
    asked = suite.plan()
    for case in asked.cases:
        readings.add(case)
    return suite.assess(asked.units, readings, executions, lambda _: None)


def table_of(plan: Planned, executions, **changes: object):
    suite = plan.suite
    if changes:
        suite = replace(suite, policy=suite.policy.model_copy(update=changes))
    assessed = judged_by(suite, executions)
    table = tabulated(suite, assessed, PAPER_BANDS)
    suite.verify(table)
    return table


def value(table, metric: str, where=None):
    found = estimate(observe(METRICS[metric], table, where or {}))
    return None if math.isnan(found) else round(found, 9) + 0.0


def core(table, where=None):
    return tuple(value(table, metric, where) for metric in CORE)


def swapped(item: Item) -> Item:
    """Return the item with the roles of its two groups exchanged."""
    return replace(item, stereotype=item.counter, counter=item.stereotype)
