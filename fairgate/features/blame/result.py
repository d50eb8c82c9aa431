"""What `fairgate blame` found: which factor moved the values, and which documents the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from fairgate.features.blame.mixed_corpus import ChangedDocument


class Factor(StrEnum):
    """A part of a system that a change can replace alone."""

    MODEL = "model"
    PROMPT = "prompt"
    DECODING = "decoding"
    EMBEDDER = "embedder"
    CORPUS = "corpus"
    TOP_K = "top_k"


class Known(StrEnum):
    """How far the question is answered."""

    NOTHING_DIFFERS = "nothing-differs"
    GREEN = "green"
    """HEAD fails no rule that BASE does not fail."""
    EXPLAINED = "explained"
    OUT_OF_BUDGET = "out-of-budget"
    """The budget ended before every combination was run: nothing is claimed."""
    NOT_COMBINABLE = "not-combinable"
    """A combination of both sides cannot be run, such as a prompt that BASE's model refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What one factor moved a rule's value by."""

    factor: Factor
    change: float
    """Shapley value, in the metric's unit; all factors' add up to the whole change."""
    share: float | None
    """Of the whole change; None where that is 0."""
    interval: tuple[float, float] | None
    note: str = ""
    """Why there is no interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRule:
    """A rule that fails at HEAD and not at BASE, on the cases that every combination decided."""

    metric: str
    suite: str
    where: Mapping[str, str]
    base: float | None
    head: float | None
    """None where no case is decided in every combination: then nothing is divided."""
    cases: int
    left_out: int
    """Cases that some combination did not decide: they count in the gate, and not here."""
    moves: Sequence[Move]
    residual: float = 0.0
    """What the moves from both ends missed and share equally; 0 where all combinations were run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedDocuments:
    """What the search among the changed documents found."""

    changed: Mapping[str, int]
    """Kind of change to the number of documents."""
    found: Sequence[ChangedDocument] = ()
    """Reverting these alone restores the verdict; empty where that is known of no set."""
    minimal: bool = False
    """Whether leaving any one of them as it is at HEAD keeps the verdict red."""
    reverted: Sequence[float | None] = ()
    """Values of the rules at HEAD with the found documents as they were, in the rules' order."""
    trials: int = 0
    """How often the gate was run on a mixture of both corpora."""
    why_not: str = ""
    """Why no documents are named, or why the set is no claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Which part of a change explains a red verdict."""

    known: Known
    factors: Sequence[Factor]
    """Those that differ between BASE and HEAD, in the order of `Factor`."""
    notes: Sequence[str]
    """What differs besides, and what a reader must know."""
    combinations: int = 0
    rules: Sequence[ExplainedRule] = ()
    failing: Sequence[str] = ()
    """The rules that fail at HEAD and not at BASE, in words; also where nothing is explained."""
    restoring: Sequence[Factor] = ()
    """Factors of which taking back one alone restores the verdict."""
    documents: SearchedDocuments | None = None
    asked: int = 0
    """Questions that the model answered; stored answers cost none."""
    budget: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    """`base` and `head`: how the user named the sides."""
