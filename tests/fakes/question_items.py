"""Question items, suites of them, and systems that always answer in one way."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from fairgate.domain.cases import TestPlan
from fairgate.domain.executions import Execution
from fairgate.domain.items import Condition, Item, ItemCase
from fairgate.engine.judge_items import ItemOptions, judge_items
from fairgate.engine.plan_items import ItemSuiteInput, with_items
from fairgate.engine.tabulate_items import tabulate_items
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import observe
from fairgate.stats.observations import estimate
from fairgate.suites.question_items.policy import BbqSuitePolicy

EMPTY = TestPlan(cases=(), pairs=())
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


def planned(items: Sequence[Item], seed: int = 42, **changes: object) -> TestPlan:
    given = ItemSuiteInput(
        suite=suite_policy(**changes),
        items=items,
        excluded=(),
        unknown_wordings=WORDINGS,
        seed=seed,
    )
    return with_items(EMPTY, [given])


def answered(plan: TestPlan, answer: Callable[[ItemCase], str | None], *, options: bool = True):
    """Return executions of all item cases; None leaves one out."""
    return {
        (case.suite, case.key): Execution(
            key=case.key,
            suite=case.suite,
            response=text,
            options=case.options if options else (),
        )
        for case in plan.items
        if (text := answer(case)) is not None
    }


def saying(respond: Responder) -> Callable[[ItemCase], str]:
    return lambda case: f" {case.item.options[respond(case.item)]}."


def table_of(plan: TestPlan, executions, **options: object):
    reading = ItemOptions(unknown_wordings=WORDINGS, **options)
    judged = judge_items(plan, executions, {"bbq": reading})
    return tabulate_items(judged, {"bbq": reading})["bbq"]


def value(table, metric: str, where=None):
    found = estimate(observe(BY_ID[metric], table, where or {}))
    return None if math.isnan(found) else round(found, 9) + 0.0


def core(table, where=None):
    return tuple(value(table, metric, where) for metric in CORE)


def swapped(item: Item) -> Item:
    """Return the item with the roles of its two groups exchanged."""
    return replace(item, stereotype=item.counter, counter=item.stereotype)
