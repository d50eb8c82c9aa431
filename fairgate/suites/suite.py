"""The interface of every kind of suite: a policy model, and a suite that plans and judges.

The engine sees suites through these Protocols alone: to add a kind is to add a folder and one line
in `suites/catalogue.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from fairgate.domain.cases import Case, Rejected, Source, Task
from fairgate.domain.executions import Document, Execution
from fairgate.domain.items import ExcludedItem, Item
from fairgate.domain.schema import Columns
from fairgate.domain.units import Judged, Reason, Unit
from fairgate.relations.perturbation_sets import PerturbationSet

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from fairgate.metrics.table import Table
    from fairgate.relations.oracles.oracle import Oracle
    from fairgate.suites.metamorphic.policy import TaskPolicy
    from fairgate.suites.question_items.policy import ItemsPolicy
    from fairgate.suites.readings import Readings

Loaded = TypeVar("Loaded")
VectorsOf: TypeAlias = "Callable[[Sequence[Document]], npt.NDArray[np.float32] | None]"
"""Documents to unit vectors `[n, d]`; None where a text is not known."""
Executions = Mapping[tuple[str, str], Execution]
"""(suite, key) to what happened; a case without an entry has no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePlan:
    """What one suite asks and judges, in a fixed order."""

    cases: Sequence[Case]
    units: Sequence[Unit]
    rejected: Sequence[Rejected] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSetup:
    """What a suite needs to know of the policy's judge."""

    count: int
    """How many models vote."""
    definition: str
    """What identifies them."""
    is_proven: bool
    """Whether their record suffices for their verdicts to fail a build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a suite needs to know of the policy around it."""

    seed: int
    quarantined: frozenset[str] = frozenset()
    """Keys of excluded cases: in no verdict, in no majority of the controls."""
    retriever: str | None = "default"
    """Which of the system's retrievers answers; None asks without documents."""
    top_k: int = 0
    takes_documents: bool = True
    """Whether the system is given the documents that the suite's own retrievers find."""
    judge: JudgeSetup | None = None
    """None where the policy names no judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """Question items as they were read."""

    items: Sequence[Item]
    excluded: Sequence[ExcludedItem]


class Materials(Protocol):
    """Reads what a suite names. Errors are collected with their place; the result is then None."""

    def task(self, named: str | TaskPolicy) -> Task | None:
        """Return an embedded task, a task file, or one written in the policy."""
        ...

    def sources(
        self, named: str | Columns, limit: int | None, attributes: Sequence[str] = ()
    ) -> Sequence[Source] | None:
        """Return the sources of a table; `attributes` are files of the user's own."""
        ...

    def perturbation_sets(
        self, names: Sequence[str], control: str
    ) -> Sequence[PerturbationSet] | None:
        """Return the sets in the order named, the control arm's last."""
        ...

    def items(self, named: str | ItemsPolicy, categories: Sequence[str] | None) -> Items | None:
        """Return question items and what was left out."""
        ...

    def unknown_wordings(self) -> tuple[str, ...]:
        """Return the wordings of "unknown", in every language."""
        ...

    def check_collections(self, names: Sequence[str], settings: Sequence[str], depth: int) -> None:
        """Read every collection once, so that a missing stance is reported early."""
        ...

    def attempt(self, field: str, load: Callable[[], Loaded]) -> Loaded | None:
        """Report a DataError or UsageError that `load` raises at the field of the suite."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSearch:
    """A retriever that a suite brings itself: documents of one stance, searched in one way."""

    key: str
    """The system's name of the retriever (`Case.retriever`)."""
    name: str
    """Its name in keys and slices."""
    way: object
    """`dense`, `bm25`, `contriever:MODEL`, or an endpoint's policy."""
    collections: Sequence[str]
    setting: str


class Suite(Protocol):
    """A suite of the policy with everything it names loaded. Pure: no model, no files."""

    @property
    def id(self) -> str:
        """Name of the suite."""
        ...

    @property
    def kind(self) -> str:
        """Id of its kind."""
        ...

    @property
    def oracles(self) -> Mapping[str, Oracle]:
        """What reads the answers, by the name that `Case.oracle` gives."""
        ...

    @property
    def unstable_margin(self) -> float:
        """Margin in nats below which an answer counts as unstable."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the claims that become columns of the suite's table."""
        ...

    @property
    def crossing(self) -> str | None:
        """Which pairs attribution crosses: `sampled`, `all` or `off`; None: there are no pairs."""
        ...

    @property
    def most_crossed(self) -> int | None:
        """Most pairs that attribution crosses; None: as many as `crossing` says."""
        ...

    @property
    def repeats(self) -> int:
        """How often each case is asked."""
        ...

    @property
    def has_control_arm(self) -> bool:
        """Whether the suite asks neutral wording too."""
        ...

    def size(self) -> int:
        """Return at least as many cases as `plan` makes, without making them."""
        ...

    def plan(self) -> SuitePlan:
        """Return everything the suite asks; equal inputs, equal plan."""
        ...

    def judge(
        self,
        units: Sequence[Unit],
        readings: Readings,
        executions: Executions,
        vectors: VectorsOf,
    ) -> list[Judged]:
        """Return a judged unit for each unit, in their order."""
        ...

    def absent(self, column: str, reasons: Sequence[Reason]) -> str | None:
        """Return why the suite cannot have a column without any value; None: it has it."""
        ...

    def verify(self, table: Table) -> None:
        """Raise RuntimeError where values contradict each other: FairGate has a bug then."""
        ...

    def bands(self, quartiles: tuple[float, float] | None) -> tuple[float, float]:
        """Return the upper limits of the RRS bands; `quartiles` are a baseline's."""
        ...

    def must_match(self) -> Mapping[str, object]:
        """Return what must be equal for two runs of the suite to be comparable (SPEC 9)."""
        ...

    def reading_rule(self) -> Mapping[str, object]:
        """Return the rules that cut and read answers: `rescore` refuses others."""
        ...

    def searches(self) -> Sequence[CollectionSearch]:
        """Return the retrievers that the suite brings itself."""
        ...

    def replica(self, controls: Sequence[PerturbationSet]) -> Suite:
        """Return the suite with another wording of equal meaning; itself where there is none."""
        ...

    def without_crossing(self) -> Suite:
        """Return the suite without attribution (burn-in)."""
        ...

    def describe(self, plan: SuitePlan) -> Iterator[str]:
        """Yield the lines of `fairgate check` about the suite."""
        ...


class _Policy(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def unstable_margin(self) -> float: ...


Policy_co = TypeVar("Policy_co", bound=_Policy, covariant=True)


class _Given(Protocol[Policy_co]):
    @property
    def policy(self) -> Policy_co: ...


@dataclass(frozen=True)
class NamedByPolicy(Generic[Policy_co]):
    """A suite that is called as its part of the policy calls it."""

    given: _Given[Policy_co]

    @property
    def policy(self) -> Policy_co:
        """Return the suite's part of the policy."""
        return self.given.policy

    @property
    def id(self) -> str:
        """Return the suite's name."""
        return self.policy.id

    @property
    def kind(self) -> str:
        """Return the kind."""
        return self.policy.kind

    @property
    def unstable_margin(self) -> float:
        """Return the policy's margin."""
        return self.policy.unstable_margin
