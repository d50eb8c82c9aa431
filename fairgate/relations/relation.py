"""What every metamorphic relation offers: transformation, output relation and examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from fairgate.domain.cases import Source, Task
from fairgate.domain.units import Claim, Reading
from fairgate.oracles.label import LabelOracle
from fairgate.oracles.oracle import Oracle, majority
from fairgate.relations.perturbation_sets import PerturbationSet


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """A follow-up test case: the text put to the system under test, and what made it."""

    variant: str
    """What distinguishes it from the source's other follow-ups: `<set>/<term>`; part of the key."""
    category: str
    """Id of the perturbation set, or of the attribute's dimension."""
    term: str
    text: str
    noun_phrase: str = ""
    control: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NotApplicable:
    """The relation says nothing about a source, for a reason. Counted, never dropped silently."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A documented case of a relation; runs as a test."""

    text: str
    """Text of the source as it stands in the data."""
    sets: tuple[PerturbationSet, ...]
    source: str
    """What is put to the system under test for the source."""
    follow_ups: tuple[str, ...]
    """What is put to it for the follow-ups, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterExample:
    """A documented source that a relation says nothing about, and why; runs as a test."""

    text: str
    reason: str


class MetamorphicRelation(Protocol):
    """A transformation of a source together with what must hold between the answers.

    Deterministic: equal arguments give equal follow-ups, in the order of the sets and their terms.
    """

    id: ClassVar[str]
    """Stable kebab string, the same in policies, records and reports."""
    title: ClassVar[str]
    paper: ClassVar[str]
    description: ClassVar[str]
    expects: ClassVar[str]
    """The output relation in one sentence."""
    advisory: ClassVar[bool]
    """True where a violation is reported and does not fail a build by default."""
    source_variant: ClassVar[str]
    """Names the source's own text in its key; relations that put it alike share the name (and so
    the answer). Empty: the bare id of the source, which is Set Equivalence's (SPEC 10)."""
    EXAMPLES: ClassVar[tuple[Example, ...]]
    NOT_APPLICABLE: ClassVar[tuple[CounterExample, ...]]

    def oracle(self, task: Task) -> Oracle:
        """Return what reads the answers to source and follow-ups."""
        ...

    def source_text(self, source: Source) -> str:
        """Return what is put to the system under test for the source itself."""
        ...

    def follow_ups(
        self, source: Source, sets: Sequence[PerturbationSet]
    ) -> Sequence[FollowUp] | NotApplicable:
        """Return the follow-ups, or why there are none."""
        ...

    def fault(self, source_text: str, follow_up: FollowUp) -> str | None:
        """Return how a follow-up differs from its source otherwise than declared (SPEC 7)."""
        ...

    def expected(self, source: Reading, controls: Sequence[Reading]) -> Reading:
        """Return what the control answers of a source say together."""
        ...

    def claims(self, source: Reading, follow_up: Reading, expected: Reading) -> Mapping[str, Claim]:
        """Return `generation` and `controlled`: 1 where the output relation is violated."""
        ...


class SameLabel:
    """The output relation of most relations: the follow-up's answer has the source's label."""

    def oracle(self, task: Task) -> Oracle:
        """Return the oracle of the suite's task."""
        return LabelOracle(task)

    def expected(self, source: Reading, controls: Sequence[Reading]) -> Reading:
        """Return the label that most control answers have."""
        return majority(controls, source)

    def claims(self, source: Reading, follow_up: Reading, expected: Reading) -> Mapping[str, Claim]:
        """Compare the follow-up's label with the source's, and with most control answers'."""
        return {
            "generation": differs(follow_up, source),
            "controlled": differs(follow_up, expected),
        }


def differs(follow_up: Reading, expected: Reading) -> Claim:
    """Return 1 where the values differ, 0 where they are equal, else why one is not known."""
    for reading in (follow_up, expected):
        if reading.reason is not None:
            return reading.reason
    return float(follow_up.value != expected.value)
