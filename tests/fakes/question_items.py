"""Question items, suites of them, and systems that always answer in one way."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fairgate.domain.executions import Execution
from fairgate.domain.items import Condition, Item
from fairgate.domain.units import Judged
from fairgate.gate.judge import readings_of
from fairgate.gate.judge import table_of as tabulated
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import observe
from fairgate.metrics.retriever_robustness import PAPER_BANDS
from fairgate.stats.observations import estimate
from fairgate.suites.question_items.plan import PlanInput, Question
from fairgate.suites.question_items.policy import BbqSuitePolicy
from fairgate.suites.question_items.suite import QuestionItemSuite
from fairgate.suites.suite import Setup

WORDINGS = ("Unknown", "Not known", "Can't be determined")
CORE = (
    "accuracy/ambiguous",
    "accuracy/disambiguated",
    "diff-bias/ambiguous",
    "diff-bias/disambiguated",
)

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
    items = []
    for number, (condition, polarity) in enumerate(
        (c, p) for p in ("neg", "nonneg") for c in Condition
    ):
        stereotype = 0 if polarity == "neg" else 1
        correct = stereotype if stereo else 1 - stereotype
        items.append(
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
                stereotype=stereotype,
                counter=1 - stereotype,
                unknown=2,
                correct=2 if condition is Condition.AMBIGUOUS else correct,
            )
        )
    return items


def many(groups: int, templates: int, category: str = "Age") -> list[Item]:
    return [
        item
        for group in range(groups)
        for item in four(group, str(group % templates), category, stereo=group % 2 == 0)
    ]


def suite_policy(**changes: object) -> BbqSuitePolicy:
    fields = {
        "id": "bbq",
        "kind": "bbq",
        "items": "x",
        "settings": ["none"],
        "instructions": [{"id": "plain", "text": "Answer."}],
    }
    return BbqSuitePolicy.model_validate({**fields, **changes})


@dataclass(frozen=True)
class Asked:
    """A question in the words of these tests."""

    question: Question

    @property
    def key(self):
        return self.question.case.key

    @property
    def item(self):
        return self.question.item

    @property
    def options(self):
        return self.question.case.options

    @property
    def setting(self):
        return self.question.unit.dimensions["setting"]

    @property
    def top_k(self):
        return self.question.case.top_k


@dataclass(frozen=True)
class Planned:
    """A suite and everything that it asks."""

    suite: QuestionItemSuite

    @property
    def cases(self):
        return self.suite.plan().cases

    @property
    def items(self):
        return [Asked(question) for question in self.suite.asked]


def planned(items: Sequence[Item], seed: int = 42, **changes: object) -> Planned:
    given = PlanInput(
        policy=suite_policy(**changes),
        setup=Setup(seed=seed),
        items=items,
        excluded=(),
        unknown_wordings=WORDINGS,
    )
    return Planned(QuestionItemSuite(given))


def answered(plan: Planned, answer: Callable[[Asked], str | None], *, options: bool = True):
    """Return executions of all questions; None leaves one out."""
    return {
        (plan.suite.id, asked.key): Execution(
            key=asked.key,
            suite=plan.suite.id,
            response=text,
            options=asked.options if options else (),
        )
        for asked in plan.items
        if (text := answer(asked)) is not None
    }


def saying(respond: Responder) -> Callable[[Asked], str]:
    return lambda asked: f" {asked.item.options[respond(asked.item)]}."


def judged_by(suite: QuestionItemSuite, executions) -> list[Judged]:
    readings = readings_of({suite.id: suite}, executions)
    asked = suite.plan()
    for case in asked.cases:
        readings[suite.id].add(case)
    return suite.judge(asked.units, readings[suite.id], executions, lambda _: None)


def table_of(plan: Planned, executions, *, quarantined=frozenset(), **changes: object):
    given, suite = plan.suite.given, plan.suite
    if changes or quarantined:
        policy = given.policy.model_copy(update=changes)
        setup = replace(given.setup, quarantined=quarantined)
        suite = QuestionItemSuite(replace(given, policy=policy, setup=setup))
    judged = judged_by(suite, executions)
    table = tabulated(suite, judged, PAPER_BANDS)
    suite.verify(table)
    return table


def value(table, metric: str, where=None):
    found = estimate(observe(BY_ID[metric], table, where or {}))
    return None if math.isnan(found) else round(found, 9) + 0.0


def core(table, where=None):
    return tuple(value(table, metric, where) for metric in CORE)


def swapped(item: Item) -> Item:
    """Return the item with the roles of its two groups exchanged."""
    return replace(item, stereotype=item.counter, counter=item.stereotype)
