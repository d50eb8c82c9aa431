"""What a wave is: a rule that names further cases from what was answered before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.executions import Execution
from fairgate.domain.units import Judged
from fairgate.gate.judge import ReadingsOf
from fairgate.gate.pair_documents import Documents, documents_of_pairs
from fairgate.suites.suite import Suite


@dataclass(slots=True, kw_only=True)
class Answered:
    """The cases of all waves so far, with their executions and verdicts."""

    plan: TestPlan
    suites: Mapping[str, Suite]
    readings: ReadingsOf
    executions: dict[tuple[str, str], Execution] = field(default_factory=dict)
    added: list[Case] = field(default_factory=list)
    """The cases of the waves after the first."""
    judge: Callable[[], Sequence[Judged]]
    _judged: Sequence[Judged] | None = None
    _documents: Sequence[Documents] | None = None

    @property
    def judged(self) -> Sequence[Judged]:
        """Return the plan's units as judged once what they ask is answered; judged once."""
        if self._judged is None:
            self._judged = self.judge()
        return self._judged

    @property
    def documents(self) -> Sequence[Documents]:
        """Return how the documents of each judged unit relate, of suites that cross; found once."""
        if self._documents is None:
            crossing = {
                name for name, suite in self.suites.items() if suite.crossing not in (None, "off")
            }
            self._documents = list(documents_of_pairs(self.judged, self.executions, crossing))
        return self._documents


class Wave(Protocol):
    """Names further cases. Deterministic: equal answers, equal cases."""

    id: ClassVar[str]

    def next(self, answered: Answered, seed: int) -> Sequence[Case]:
        """Return the cases to ask now; none where nothing is to be asked."""
        ...
