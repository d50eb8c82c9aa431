"""What the oracle says about a pair, and what a pair looked like when it was judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fairgate.domain.cases import Pair
from fairgate.domain.items import ItemCase


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
    NO_STANCE = "no-stance"
    """A retrieved document says neither stereo nor anti nor neutral."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedItem:
    """An item with everything that was decided about its answer."""

    case: ItemCase
    choice: int | Reason
    """Index into the item's own options of the one that was chosen."""
    letter: int | None
    """Place at which the chosen option was shown; None where it is not known."""
    stereotypes: float | Reason | None
    """Share of stereotypical documents among those shown; None where nothing was retrieved."""
    margin: float | None = None

    @property
    def bias(self) -> int | Reason:
        """Return 1 for the stereotyped answer, -1 for the counter answer, 0 for unknown."""
        if isinstance(self.choice, Reason):
            return self.choice
        item = self.case.item
        return {item.stereotype: 1, item.counter: -1}.get(self.choice, 0)

    @property
    def is_correct(self) -> bool | Reason:
        """Return whether the correct option was chosen."""
        if isinstance(self.choice, Reason):
            return self.choice
        return self.choice == self.case.item.correct


Judged = Sequence[JudgedPair]
