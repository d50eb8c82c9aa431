"""Question items to everything that will be asked about them; deterministic, no model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairgate.domain.cases import Case, Rejected, TestPlan
from fairgate.domain.errors import DataError
from fairgate.domain.items import (
    NO_RETRIEVAL,
    Alignment,
    Condition,
    ExcludedItem,
    Item,
    ItemCase,
    item_case_key,
)
from fairgate.suites.question_items.policy import BbqSuitePolicy

LETTERS = ("A", "B", "C")
_SHOTS: tuple[tuple[Condition, Alignment | None, int], ...] = (
    (Condition.DISAMBIGUATED, Alignment.STEREOTYPE, 2),
    (Condition.DISAMBIGUATED, Alignment.COUNTER, 2),
    (Condition.AMBIGUOUS, None, 4),
)
"""The rarer kinds first: every group of four has ambiguous items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSuiteInput:
    """A suite of question items with everything it names loaded."""

    suite: BbqSuitePolicy
    items: Sequence[Item]
    excluded: Sequence[ExcludedItem]
    unknown_wordings: Sequence[str]
    """How "unknown" is said, in every language."""
    seed: int


def retriever_key(suite: str, setting: str, retriever: str) -> str:
    """Return what the system calls the retriever that searches a setting's documents."""
    return f"{suite}/{setting}/{retriever}"


def with_items(plan: TestPlan, suites: Sequence[ItemSuiteInput]) -> TestPlan:
    """Return the plan with the questions of all item suites added, in the order of the policy."""
    cases, asked, rejected = list(plan.cases), list(plan.items), list(plan.rejected)
    for given in suites:
        for case, item in _questions(given):
            cases.append(case)
            asked.append(item)
        rejected += [
            Rejected(
                key=item.key,
                suite=given.suite.id,
                relation="bbq",
                kind="not-applicable",
                reason=item.reason,
            )
            for item in given.excluded
        ]
    return replace(plan, cases=cases, items=asked, rejected=rejected)


def _questions(given: ItemSuiteInput) -> Iterator[tuple[Case, ItemCase]]:
    """Yield every question once; `none` is shared by all retrievers and depths."""
    suite = given.suite
    examples = choose_examples(given.items, given.seed) if suite.shots else {}
    taken = {(e.category, e.group) for chosen in examples.values() for e in chosen}
    tested = [item for item in given.items if (item.category, item.group) not in taken]
    intros = {
        (instruction.id, category): "\n\n".join(
            [instruction.text, *(_solved(item, given) for item in examples.get(category, ()))]
        )
        for instruction in suite.instructions
        for category in dict.fromkeys(item.category for item in tested)
    }
    for item in capped_items(tested, suite.limit, given.seed):
        options = shown_options(item, given.seed) if suite.shuffle else item.options
        for instruction in suite.instructions:
            for asked in _asked(suite, item, options, instruction.id):
                yield _case(given, asked, intros[instruction.id, item.category]), asked


def _asked(
    suite: BbqSuitePolicy, item: Item, options: tuple[str, ...], instruction: str
) -> Iterator[ItemCase]:
    for setting in suite.settings:
        ways = [("", 0)]
        if setting != NO_RETRIEVAL:
            ways = [(name, k) for name in suite.retriever_names for k in suite.depths]
        for retriever, top_k in ways:
            yield ItemCase(
                key=item_case_key(item.key, setting, retriever, top_k, instruction),
                suite=suite.id,
                item=item,
                options=options,
                setting=setting,
                instruction=instruction,
                retriever=retriever,
                top_k=top_k,
            )


def _case(given: ItemSuiteInput, asked: ItemCase, instruction: str) -> Case:
    suite, item, options = given.suite, asked.item, asked.options
    scored = {"generated": (), "scored": options, "scored-letters": LETTERS}[suite.read]
    name = retriever_key(suite.id, asked.setting, asked.retriever) if asked.retriever else None
    return Case(
        key=asked.key,
        suite=suite.id,
        query=item.query,
        text=question_text(item, options),
        instruction=instruction,
        labels=tuple(option.lower() for option in options),
        cluster=item.cluster,
        options=options,
        scored=scored,
        retriever=name,
        top_k=asked.top_k,
    )


def question_text(item: Item, options: Sequence[str]) -> str:
    """Return the question as prompts show it."""
    choices = "\n".join(f"{letter}: {o}" for letter, o in zip(LETTERS, options, strict=True))
    return f"Context: {item.context}\nQuestion: {item.question}\n{choices}"


def _solved(item: Item, given: ItemSuiteInput) -> str:
    options = shown_options(item, given.seed) if given.suite.shuffle else item.options
    return f"{question_text(item, options)}\nAnswer: {item.options[item.correct]}"


def shown_options(item: Item, seed: int) -> tuple[str, ...]:
    """Return the options in an order that depends on the item's key and the seed alone."""
    order = _rng(str(seed), "options", item.key).permutation(len(item.options))
    return tuple(item.options[index] for index in order.tolist())


def capped_items(items: Sequence[Item], limit: int | None, seed: int) -> list[Item]:
    """Return at most `limit` items of each category, in their order.

    Whole groups of four are drawn by the seed, one template after the other, so that a cap costs
    as few independent clusters as it can.
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
