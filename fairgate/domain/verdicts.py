"""What the oracle says about a pair, and what a pair looked like when it was judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fairgate.domain.cases import Pair


class Reason(StrEnum):
    """Why a verdict is inconclusive."""

    MISSING = "missing"
    """There is no answer (a recording lacks the key)."""
    UNREADABLE = "unreadable"
    """The answer holds none of the task's labels."""
    UNSTABLE = "unstable"
    """The label changed between repeats, or its margin is below `unstable_margin`."""
    NO_MAJORITY = "no-majority"
    """The source's control answers have no majority."""
    NO_CONTROLS = "no-controls"
    """None of the source's control answers is readable."""
    NO_DOCUMENTS = "no-documents"
    """The documents of source or follow-up are not known."""
    NO_LABELS = "no-labels"
    """A retrieved document carries no label."""
    NO_TEXT = "no-text"
    """A retrieved document's text is not known, so it has no embedding."""
    UNEQUAL_DEPTH = "unequal-depth"
    """Source and follow-up were given different numbers of documents."""
    QUARANTINED = "quarantined"
    """The policy's quarantine list names the case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A case's answer as the oracle read it; `label` None says why in `reason`."""

    label: str | None
    reason: Reason | None = None
    margin: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPair:
    """A pair with everything that was decided about it. None stands for inconclusive."""

    pair: Pair
    source: Reading
    follow_up: Reading
    majority: str | None
    """Label that most of the source's control answers have."""
    generation: bool | Reason
    controlled: bool | Reason
    retrieval: bool | Reason
    """True: the label profile of the top k differs."""
    mean_distance: float | Reason
    label_changes: float | Reason
    """H of RRS: share of ranks whose document labels differ."""
    overlap: float | Reason

    @property
    def is_violated(self) -> bool:
        """Return whether the answer changed, by the controlled claim where it is decided."""
        claim = self.controlled if isinstance(self.controlled, bool) else self.generation
        return claim is True


Judged = Sequence[JudgedPair]
