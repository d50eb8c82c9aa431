"""What every metamorphic relation offers: a transformation, its examples, and its status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from fairgate.domain.cases import Source
from fairgate.relations.perturbation_sets import PerturbationSet


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """A follow-up test case: the text put to the system under test, and what made it."""

    key: str
    """SPEC 10's key: `<source id>#<set>/<term>`."""
    source: str
    """Id of the source."""
    category: str
    """Id of the perturbation set."""
    term: str
    noun_phrase: str
    text: str
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
    template: ClassVar[str]
    """The wording with {noun_phrase} and {source}; the linter holds follow-ups to it."""
    EXAMPLES: ClassVar[tuple[Example, ...]]
    NOT_APPLICABLE: ClassVar[tuple[CounterExample, ...]]

    def source_text(self, source: Source) -> str:
        """Return what is put to the system under test for the source itself."""
        ...

    def follow_ups(
        self, source: Source, sets: Sequence[PerturbationSet]
    ) -> Sequence[FollowUp] | NotApplicable:
        """Return one follow-up per term, or why there are none."""
        ...
