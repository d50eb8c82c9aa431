"""What a stream of generated cases holds: counts of attributes, operators, and t-way coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fairgate.domain.attributes import Dimension, Manner
from fairgate.domain.wording import harmless
from fairgate.features.generation.combinations import CombinationCounts, Coverage
from fairgate.features.generation.templates import Template
from fairgate.suites.metamorphic.case_rows import GeneratedCase

_PLAIN = "plain"


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
