"""What a stream of generated cases holds, above all which combinations of t attribute values.

A combination is t values of t different attributes that one template can state together, of a
person who has nothing that the attributes exclude. Coverage is the share of them that some case
states (t-way coverage of combinatorial testing; negated values are not stated).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.attributes import AttributeUse, AttributeValue, Dimension, Manner, excluded
from fairgate.domain.wording import harmless
from fairgate.features.generation.templates import Template
from fairgate.suites.metamorphic.sources import GeneratedCase

Combination = tuple[str, ...]
"""Names such as `age/young`, in alphabetical order."""
MOST_STRENGTH = 4
"""Largest t: the shipped attributes have 160,000 combinations of four values."""
_PLAIN = "plain"


def named_values(template: Template) -> list[list[tuple[str, AttributeValue]]]:
    """Return for each slot its values with their names (`age/young`)."""
    return [
        [(f"{slot.dimension.id}/{value.id}", value) for value in slot.dimension.values]
        for slot in template.slots
    ]


def combinations_of(template: Template, strength: int) -> Iterator[Combination]:
    """Yield the combinations that a row of a template can state, each once."""
    slots = named_values(template)
    clashes = {
        name: {other[0] for values in slots for other in values if excluded((name, value), other)}
        for slot in slots
        for name, value in slot
    }

    def fits(name: str, chosen: Sequence[str]) -> bool:
        return clashes[name].isdisjoint(chosen)

    def held(chosen: Combination, others: Sequence[Sequence[str]]) -> bool:
        """Return whether the other slots can be filled too."""
        return not others or any(
            fits(name, chosen) and held((*chosen, name), others[1:]) for name in others[0]
        )

    names = [[name for name, _ in slot] for slot in slots]
    for numbers in itertools.combinations(range(len(names)), strength):
        others = [slot for n, slot in enumerate(names) if n not in numbers]
        for chosen in itertools.product(*(names[n] for n in numbers)):
            if all(fits(name, chosen) for name in chosen) and held(chosen, others):
                yield tuple(sorted(chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many combinations there are and how many are stated."""

    strength: int
    possible: int
    covered: int
    missing: tuple[Combination, ...] = ()
    """The first few that are not stated, in alphabetical order."""

    @property
    def share(self) -> float:
        """Return covered / possible, 1 where there is nothing to cover."""
        return self.covered / self.possible if self.possible else 1.0


class CombinationCounts:
    """How often each combination was stated."""

    def __init__(self, templates: Sequence[Template], strength: int) -> None:
        """Start with every combination of the templates, at zero."""
        self.strength = strength
        self._counts: dict[Combination, int] = {}
        for template in templates:
            self._counts.update(dict.fromkeys(combinations_of(template, strength), 0))

    def of(self, combination: Combination) -> int:
        """Return how often a combination was stated; 0 for one that is not possible."""
        return self._counts.get(combination, 0)

    def add(self, uses: Iterable[AttributeUse]) -> None:
        """Count the combinations that a case states."""
        names = sorted(use.name for use in uses if use.manner is not Manner.NEGATED)
        for combination in itertools.combinations(names, self.strength):
            count = self._counts.get(combination)
            if count is not None:
                self._counts[combination] = count + 1

    def coverage(self, shown: int = 5) -> Coverage:
        """Return what is covered so far, with the first `shown` missing combinations."""
        missing = sorted(name for name, count in self._counts.items() if count == 0)
        return Coverage(
            strength=self.strength,
            possible=len(self._counts),
            covered=len(self._counts) - len(missing),
            missing=tuple(missing[:shown]),
        )


class Inventory:
    """Counts cases as they pass; memory does not grow with their number."""

    def __init__(
        self, dimensions: Mapping[str, Dimension], templates: Sequence[Template], strength: int
    ) -> None:
        """Begin with nothing; coverage is of the templates' combinations."""
        self.cases = 0
        self.templates: Counter[str] = Counter()
        self.operators: Counter[str] = Counter()
        self.values: Counter[str] = Counter()
        self.attributes: Counter[str] = Counter()
        self._known = {f"{d.id}/{value.id}" for d in dimensions.values() for value in d.values}
        self._combinations = CombinationCounts(templates, strength)

    def add(self, case: GeneratedCase) -> None:
        """Count a case."""
        self.cases += 1
        self.templates[case.template] += 1
        self.operators.update({name.partition(":")[0] for name in case.operators} or {_PLAIN})
        asserted = [use.name for use in case.attributes if use.manner is not Manner.NEGATED]
        self.values.update(asserted)
        self.attributes.update(use.dimension.id for use in case.attributes)
        self._combinations.add(case.attributes)

    @property
    def coverage(self) -> Coverage:
        """Return the t-way coverage so far."""
        return self._combinations.coverage()

    def lines(self) -> Iterator[str]:
        """Yield the counts for people."""
        yield f"  templates: {_counted(self.templates)}"
        yield f"  operators: {_counted(self.operators)}"
        yield f"  attributes: {_counted(self.attributes)}"
        unused = sorted(self._known - set(self.values))
        if unused:
            more = f" and {len(unused) - 5} more" if len(unused) > 5 else ""
            yield f"  values never stated: {', '.join(unused[:5])}{more}"
        found = self.coverage
        yield (
            f"  {found.strength}-way coverage: {found.covered} of {found.possible} combinations "
            f"({_percent(found.share)} %)"
        )
        for combination in found.missing:
            yield f"    missing, for instance: {' + '.join(combination)}"


def _counted(counts: Counter[str]) -> str:
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{harmless(name)} {count}" for name, count in ordered) or "none"


def _percent(share: float) -> str:
    """Return a share times 100, never rounded to a whole that it is not."""
    return f"{100 * share:.1f}" if share in (0.0, 1.0) else f"{min(99.9, 100 * share):.1f}"
