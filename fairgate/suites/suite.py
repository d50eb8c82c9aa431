"""The interface of every kind of suite: a policy model, and a suite that plans and assesses.

The engine sees suites through `Suite` alone: to add a kind is to add a folder and one line in
`suites/catalogue.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fairgate.domain.cases import (
    SYSTEM_RETRIEVER,
    ExcludedItem,
    Item,
    Source,
    Task,
    TestPlan,
)
from fairgate.domain.ports import Executed
from fairgate.domain.schema import Columns
from fairgate.domain.units import Assessed, Reason, Unit
from fairgate.metrics.columns import VectorsOf
from fairgate.metrics.retriever_robustness import PAPER_BANDS
from fairgate.relations.perturbation_sets import PerturbationSet

if TYPE_CHECKING:
    from fairgate.metrics.metric import Table
    from fairgate.relations.oracles.oracle import Oracle
    from fairgate.suites.metamorphic.policy import TaskPolicy
    from fairgate.suites.question_items.policy import ItemsPolicy
    from fairgate.suites.readings import Readings

Loaded = TypeVar("Loaded")
LABEL_ORDER = "task.order"
"""Field of `Suite.must_match` that only the direction of answers rests on."""
DEGREES_FIELD = "degrees"
"""Field of `Suite.must_match` that only degrees of answers rest on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSetup:
    """What a suite needs to know of the policy's judge."""

    count: int
    """How many models vote."""
    definition: str
    """What identifies them."""
    proven: frozenset[str]
    """Kinds of prompts for which their record suffices, so that their verdicts may fail a build."""
    shows_pair: bool = True
    """Whether they see both prompts and responses, or the follow-up's alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a suite needs to know of the policy around it."""

    seed: int
    """The policy's seed, from which cases are drawn and shuffled."""
    retriever: str | None = SYSTEM_RETRIEVER
    """Which of the system's retrievers answers; None asks without documents."""
    top_k: int = 0
    takes_documents: bool = True
    """Whether the system is given the documents that the suite's own retrievers find."""
    answers: bool = True
    """Whether the system answers; else it retrieves alone."""
    judge: JudgeSetup | None = None
    """None where the policy names no judge."""
    has_reference: bool = False
    """Whether the policy names a reference, which is asked every case as well."""
    lacks_base: str = ""
    """Why the base commit's system, which the policy names as its reference, is not asked."""

    @property
    def names_reference(self) -> bool:
        """Whether answers are compared with a reference, or would be if there were a base."""
        return self.has_reference or bool(self.lacks_base)


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """Question items as they were read."""

    items: Sequence[Item]
    excluded: Sequence[ExcludedItem]
    unknown_wordings: Sequence[str]
    """The wordings of "unknown", in every language."""


class Materials(Protocol):
    """Reads what a suite names. Errors are collected with their place; the result is then None."""

    def task(self, named: str | TaskPolicy) -> Task | None:
        """Return a bundled task, a task file, or one written in the policy."""
        ...

    def sources(
        self, named: str | Columns, limit: int | None, attributes: Sequence[str] = ()
    ) -> Sequence[Source] | None:
        """Return the sources of a table; `attributes` are files of the user's own."""
        ...

    def perturbation_sets(
        self,
        names: Sequence[str],
        control: str,
        *,
        phrases: int | None = None,
    ) -> Sequence[PerturbationSet] | None:
        """Return the sets in the order named, the control arm's last.

        `phrases` are the most for each term.
        """
        ...

    def items(self, named: str | ItemsPolicy, categories: Sequence[str] | None) -> Items | None:
        """Return question items and what was excluded."""
        ...

    def check_collections(self, names: Sequence[str], settings: Sequence[str], depth: int) -> None:
        """Read every collection once, so that a missing stance is reported early."""
        ...

    def report(self, field: str, sentence: str) -> None:
        """Report what is wrong with a field of the suite."""
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


class Suite(ABC):
    """A suite of the policy with everything it names loaded. Pure: no model, no files.

    What is not abstract is as most kinds have it: no pairs to cross, no repeats, no control arm.
    """

    policy: Any
    """The suite's part of the policy."""
    setup: Setup = Setup(seed=0)
    """What it knows of the policy around it; of a kind that takes none, the defaults."""

    @property
    def id(self) -> str:
        """Name of the suite."""
        return str(self.policy.id)

    @property
    def kind(self) -> str:
        """Id of its kind."""
        return str(self.policy.kind)

    @property
    def unstable_margin(self) -> float:
        """Label margin in nats below which an answer counts as unstable."""
        return float(self.policy.unstable_margin)

    @property
    def thinking(self) -> tuple[tuple[str, str], ...]:
        """Tags of thinking beside those that are known: pairs of an opening and a closing one."""
        return tuple(
            (opening.strip(), closing.strip()) for opening, closing in self.policy.thinking
        )

    @property
    @abstractmethod
    def oracles(self) -> Mapping[str, Oracle]:
        """What reads the answers, by the name that `Case.oracle` gives."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the claims that become columns of the suite's table."""

    @property
    def crossing(self) -> str | None:
        """Which pairs attribution crosses: `sampled`, `all` or `off`; None: there are no pairs."""
        return None

    @property
    def why_uncrossed(self) -> str:
        """Why attribution crosses nothing where it is `off`."""
        return "attribution is off: the policy says so (`attribution: off`)"

    def lacks(self, column: str) -> str:
        """Say why a column can have no value, whatever a run brings; empty where it can."""
        del column
        return ""

    @property
    def most_crossed(self) -> int | None:
        """Most pairs that attribution crosses by the policy; None: it says nothing."""
        chosen = getattr(self.policy, "attribution", None)
        return chosen if isinstance(chosen, int) else None

    @property
    def repeats(self) -> int:
        """How often each case is asked."""
        return getattr(self.policy, "repeats", 1)

    @property
    def selected_from(self) -> float | None:
        """The score that selects somebody, with the better ones; None: nobody is selected."""
        return None

    @property
    def has_control_arm(self) -> bool:
        """Whether the suite asks control prompts too."""
        return False

    def why_unread(self, response: str) -> str:
        """Say why an answer counts as unreadable, whatever its oracle reads; empty: it does not.

        Whoever reads only a part of it does not know what the rest says.
        """
        del response
        return ""

    @property
    def own_control_phrases(self) -> Sequence[str]:
        """Phrases that a user's file calls neutral: whether they are, somebody has to read."""
        return ()

    @abstractmethod
    def size(self) -> int:
        """Return at least as many cases as `plan` makes, without making them."""

    @abstractmethod
    def plan(self) -> TestPlan:
        """Return everything the suite asks; equal inputs, equal plan."""

    @abstractmethod
    def assess(
        self, units: Sequence[Unit], readings: Readings, executions: Executed, vectors: VectorsOf
    ) -> Sequence[Assessed]:
        """Return an assessed unit for each unit, in their order: as columns, or as rows."""

    @abstractmethod
    def absent(self, column: str, reasons: Sequence[Reason]) -> str | None:
        """Return why the suite cannot have a column without any value; None: it has it."""

    def verify(self, table: Table) -> None:
        """Raise RuntimeError where values contradict each other: a bug in FairGate."""
        del table

    def bands(self, quartiles: tuple[float, float] | None) -> tuple[float, float]:
        """Return the upper limits of the RRS bands, P1's; `quartiles` are a baseline's."""
        del quartiles
        return PAPER_BANDS

    @abstractmethod
    def must_match(self) -> Mapping[str, object]:
        """Return the facts that must be equal for two runs of the suite to be comparable."""

    @abstractmethod
    def reading_rule(self) -> Mapping[str, object]:
        """Return the rules that cut and read answers: `rescore` refuses others."""

    def searches(self) -> Sequence[CollectionSearch]:
        """Return the retrievers that the suite brings itself."""
        return ()

    def without_crossing(self) -> Suite:
        """Return the suite without attribution."""
        return self

    @abstractmethod
    def describe(self, plan: TestPlan) -> Iterator[str]:
        """Yield the lines of `fairgate check` about the suite."""
