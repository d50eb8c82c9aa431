"""Read the answers to question items; pure, no model involved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Execution
from fairgate.domain.items import NO_RETRIEVAL, STANCES, ItemCase
from fairgate.domain.verdicts import JudgedItem, Reason
from fairgate.oracles.choice import Choices, read_choice
from fairgate.oracles.folding import folded


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOptions:
    """How one suite's answers are read and counted."""

    unknown_wordings: tuple[str, ...]
    unparsed: str = "drop"
    unstable_margin: float = 0.0
    shuffled: bool = True
    quarantined: frozenset[str] = frozenset()


def judge_items(
    plan: TestPlan,
    executions: Mapping[tuple[str, str], Execution],
    options: Mapping[str, ItemOptions],
) -> list[JudgedItem]:
    """Return a judged item for every item case of the plan, in the order of the plan.

    Raises DataError where a recorded line shows options that are not the item's.
    """
    return [
        _judged(case, executions.get((case.suite, case.key)), options[case.suite])
        for case in plan.items
    ]


def _judged(case: ItemCase, execution: Execution | None, suite: ItemOptions) -> JudgedItem:
    shown = _shown(case, execution)
    choice = _choice(case, execution, shown, suite)
    letter = None
    if not isinstance(choice, Reason) and shown is not None:
        letter = shown.index(choice)
    return JudgedItem(
        case=case,
        choice=choice,
        letter=letter,
        stereotypes=_stereotypes(case, execution),
        margin=None if execution is None else execution.margin,
    )


def _shown(case: ItemCase, execution: Execution | None) -> list[int] | None:
    """Return the item's options in the order shown, as indices; None where it is not known."""
    if execution is None or not execution.options:
        return None
    own = [folded(option) for option in case.item.options]
    seen = [folded(option) for option in execution.options]
    if sorted(own) != sorted(seen):
        raise DataError(
            f"the answer to {case.key!r:.80} of suite {case.suite!r} was given to the options "
            f"{list(execution.options)!r:.120}; the item has {list(case.item.options)!r:.120}: "
            "record it again with the options of `fairgate plan`"
        )
    return [own.index(option) for option in seen]


def _choice(
    case: ItemCase, execution: Execution | None, shown: list[int] | None, suite: ItemOptions
) -> int | Reason:
    if case.key in suite.quarantined or case.item.key in suite.quarantined:
        return Reason.QUARANTINED
    if execution is None or execution.response is None:
        return Reason.MISSING
    # Without recorded options the item's own order is what was shown, unless it was shuffled.
    order = shown if shown is not None else [0, 1, 2]
    choices = Choices(
        options=tuple(case.item.options[index] for index in order),
        unknown=order.index(case.item.unknown),
    )
    place = read_choice(
        execution.response,
        choices,
        suite.unknown_wordings,
        letters=shown is not None or not suite.shuffled,
    )
    if place is None:
        return Reason.UNREADABLE
    if execution.margin is not None and execution.margin < suite.unstable_margin:
        return Reason.UNSTABLE
    return order[place]


def _stereotypes(case: ItemCase, execution: Execution | None) -> float | Reason | None:
    if case.setting == NO_RETRIEVAL:
        return None
    if execution is None or not execution.documents:
        return Reason.NO_DOCUMENTS
    stances: Sequence[str | None] = [document.label for document in execution.documents]
    if any(stance not in STANCES for stance in stances):
        return Reason.NO_STANCE
    return sum(stance == "stereo" for stance in stances) / len(stances)
