"""Question items to everything that will be asked about them; deterministic, no model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairgate.domain.cases import Case, Rejected
from fairgate.domain.errors import DataError
from fairgate.domain.items import (
    NO_RETRIEVAL,
    Alignment,
    Condition,
    ExcludedItem,
    Item,
    item_case_key,
)
from fairgate.domain.units import Unit
from fairgate.relations.oracles.choice import choice_stop
from fairgate.suites.suite import Setup, SuitePlan

if TYPE_CHECKING:
    from fairgate.suites.question_items.policy import BbqSuitePolicy

ANSWER = "answer"
"""The role of a question's one case."""
LETTERS = ("A", "B", "C")
_SHOTS: tuple[tuple[Condition, Alignment | None, int], ...] = (
    (Condition.DISAMBIGUATED, Alignment.STEREOTYPE, 2),
    (Condition.DISAMBIGUATED, Alignment.COUNTER, 2),
    (Condition.AMBIGUOUS, None, 4),
)
"""The rarer kinds first: every group of four has ambiguous items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """What a suite's policy names, loaded."""

    policy: BbqSuitePolicy
    setup: Setup
    items: Sequence[Item]
    excluded: Sequence[ExcludedItem]
    unknown_wordings: Sequence[str]
    """The wordings of "unknown", in every language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One item as it is asked."""

    case: Case
    unit: Unit
    item: Item

    @property
    def key(self) -> str:
        """Return the key of case and unit."""
        return self.case.key


def retriever_key(suite: str, setting: str, retriever: str) -> str:
    """Return the system's name of the retriever that searches a setting's documents."""
    return f"{suite}/{setting}/{retriever}"


def questions(given: PlanInput) -> Iterator[Question]:
    """Yield every question once; `none` is shared by all retrievers and depths."""
    policy, seed, wordings = given.policy, given.setup.seed, tuple(given.unknown_wordings)
    examples = choose_examples(given.items, seed) if policy.shots else {}
    taken = {(e.category, e.group) for chosen in examples.values() for e in chosen}
    tested = [item for item in given.items if (item.category, item.group) not in taken]
    intros = {
        (instruction.id, category): "\n\n".join(
            [instruction.text, *(_solved(item, given) for item in examples.get(category, ()))]
        )
        for instruction in policy.instructions
        for category in dict.fromkeys(item.category for item in tested)
    }
    for item in capped_items(tested, policy.limit, seed):
        options = shown_options(item, seed) if policy.shuffle else item.options
        for instruction in policy.instructions:
            intro = intros[instruction.id, item.category]
            for way in _ways(policy):
                yield _question(policy, item, options, (instruction.id, intro), way, wordings)


def build_plan(
    suite: str, asked: Sequence[Question], excluded: Sequence[ExcludedItem]
) -> SuitePlan:
    """Return the questions as a plan; excluded items are listed with the reason."""
    return SuitePlan(
        cases=[question.case for question in asked],
        units=[question.unit for question in asked],
        rejected=[
            Rejected(
                key=item.key, suite=suite, relation="bbq", kind="not-applicable", reason=item.reason
            )
            for item in excluded
        ],
    )


_Way = tuple[str, str, int]
"""Setting, retriever (empty without one) and depth."""


def _ways(policy: BbqSuitePolicy) -> Iterator[_Way]:
    for setting in policy.settings:
        if setting == NO_RETRIEVAL:
            yield setting, "", 0
            continue
        for name in policy.retriever_names:
            yield from ((setting, name, k) for k in policy.depths)


def _question(
    policy: BbqSuitePolicy,
    item: Item,
    options: tuple[str, ...],
    instruction: tuple[str, str],
    way: _Way,
    wordings: Sequence[str],
) -> Question:
    name, intro = instruction
    setting, retriever, top_k = way
    key = item_case_key(item.key, setting, retriever, top_k, name)
    case = Case(
        key=key,
        suite=policy.id,
        query=item.query,
        text=question_text(item, options),
        instruction=intro,
        labels=tuple(option.lower() for option in options),
        stop=choice_stop(options, wordings, policy.marker or ""),
        cluster=item.cluster,
        options=options,
        scored={"generated": (), "scored": options, "scored-letters": LETTERS}[policy.read],
        retriever=retriever_key(policy.id, setting, retriever) if retriever else None,
        top_k=top_k,
    )
    unit = Unit(
        key=key,
        suite=policy.id,
        asks={ANSWER: key},
        cluster=item.cluster,
        dimensions={
            "category": item.category,
            "setting": setting,
            "retriever": retriever,
            "k": str(top_k) if top_k else "",
            "instruction": name,
            "condition": str(item.condition),
            "alignment": str(item.alignment or ""),
        },
        content=_content(item, options),
        follows=item.role(item.correct),
        names={"item": item.key, "template": item.template},
    )
    return Question(case=case, unit=unit, item=item)


def _content(item: Item, options: Sequence[str]) -> str:
    parts = (item.context, item.question, *item.options, *options)
    roles = f"{item.stereotype}{item.unknown}{item.correct}"
    shown = "\0".join((*parts, roles)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(shown).hexdigest()[:10]


def question_text(item: Item, options: Sequence[str]) -> str:
    """Return the question as prompts show it."""
    choices = "\n".join(f"{letter}: {o}" for letter, o in zip(LETTERS, options, strict=True))
    return f"Context: {item.context}\nQuestion: {item.question}\n{choices}"


def _solved(item: Item, given: PlanInput) -> str:
    options = shown_options(item, given.setup.seed) if given.policy.shuffle else item.options
    return f"{question_text(item, options)}\nAnswer: {item.options[item.correct]}"


def shown_options(item: Item, seed: int) -> tuple[str, ...]:
    """Return the options in an order that depends on the item's key and the seed alone."""
    order = _rng(str(seed), "options", item.key).permutation(len(item.options))
    return tuple(item.options[index] for index in order.tolist())


def capped_items(items: Sequence[Item], limit: int | None, seed: int) -> list[Item]:
    """Return at most `limit` items of each category, in their order.

    Whole groups of four are drawn by the seed, one template after the other, so that a limit
    loses as few independent clusters as possible.
    """
    if limit is None:
        return list(items)
    kept: set[tuple[str, str]] = set()
    by_category: dict[str, dict[str, dict[str, int]]] = {}
    for item in items:
        groups = by_category.setdefault(item.category, {}).setdefault(item.template, {})
        groups[item.group] = groups.get(item.group, 0) + 1
    for category, templates in by_category.items():
        rng = _rng(str(seed), "limit", category)
        piles = [
            [list(groups.items())[index] for index in rng.permutation(len(groups)).tolist()]
            for groups in templates.values()
        ]
        piles = [piles[index] for index in rng.permutation(len(piles)).tolist()]
        left = limit
        for depth in range(max(map(len, piles))):
            for pile in piles:
                if depth < len(pile) and pile[depth][1] <= left:
                    kept.add((category, pile[depth][0]))
                    left -= pile[depth][1]
    return [item for item in items if (item.category, item.group) in kept]


def choose_examples(items: Sequence[Item], seed: int) -> Mapping[str, list[Item]]:
    """Return eight worked examples for each category, each of another group of four.

    Four ambiguous, two stereotyped and two counter ones, in an order drawn by the seed. Raises
    DataError where a category has too few groups.
    """
    chosen: dict[str, list[Item]] = {}
    for category in dict.fromkeys(item.category for item in items):
        rng = _rng(str(seed), "examples", category)
        own = [item for item in items if item.category == category]
        pool = [own[index] for index in rng.permutation(len(own)).tolist()]
        picked: list[Item] = []
        for condition, alignment, many in _SHOTS:
            taken = {item.group for item in picked}
            fitting = [
                item
                for item in pool
                if (item.condition, item.alignment) == (condition, alignment)
                and item.group not in taken
            ]
            picked += list({item.group: item for item in fitting}.values())[:many]
        if len(picked) < sum(many for _, _, many in _SHOTS):
            raise DataError(
                f"category {category!r:.60} has too few items for 8 examples; it needs 4 "
                "ambiguous, 2 stereotyped and 2 counter ones of different 4-tuples: use `shots: 0`"
            )
        chosen[category] = [picked[index] for index in rng.permutation(len(picked)).tolist()]
    return chosen


def _rng(*parts: str) -> np.random.Generator:
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))
