"""What a run can be shown beside: the baseline, the anchor, an earlier accepted run, or nothing.

Showing decides nothing: a run is judged against the baseline, and its budgets against the anchor.
Only what is stored is shown. Baseline and anchor hold every case; an accepted run before them is
kept as the values of the rules alone, so no case is new or fixed beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairgate.domain.measurements import Measurements
from fairgate.domain.outcomes import Change, GateResult, RuleResult
from fairgate.gate.baseline import AcceptedRun, Baseline
from fairgate.reports.spans import Inline, Kind, Span, Words, code

ALONE = "alone"
_BASELINE, _ANCHOR = "baseline", "anchor"
_ACCEPTED = 4
"""Earlier accepted runs that can be chosen, the latest ones; the file holds further ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a run is shown beside."""

    id: str
    """Unique in a report, kebab-case."""
    label: Inline
    word: str
    """What sentences call it."""
    values: Measurements
    run: Baseline | None = None
    """Where it holds every case, and what was under test."""

    @property
    def is_baseline(self) -> bool:
        """Return whether it is what the run's regression rules were decided against."""
        return self.id == _BASELINE

    def change(self, rule: RuleResult) -> Change | None:
        """Return how a rule's value moved since then, on the cases of both; None: not tested."""
        if self.id == _BASELINE:
            return rule.change
        return rule.since_anchor if self.id == _ANCHOR else None


NOTHING = Beside(id=ALONE, label="nothing: this run alone", word="", values=Measurements(()))


def what_is_beside(
    result: GateResult, baseline: Baseline | None, anchor: Baseline | None
) -> list[Beside]:
    """Return everything that a run can be shown beside, the usual one first, nothing last or alone.

    An anchor that was made under other conditions is left out: its values are of other questions.
    """
    found = [] if baseline is None else [_stored(_BASELINE, baseline)]
    overlap = result.anchor_overlap
    if anchor is not None and not (overlap and overlap.incompatible):
        found.append(_stored(_ANCHOR, anchor))
    found += _accepted(baseline.history if baseline else ())
    return [*found, NOTHING] if baseline is not None else [NOTHING, *found]


def _stored(word: str, run: Baseline) -> Beside:
    since: Words = [" of ", Span(run.date, Kind.DATE)] if run.date else []
    values = Measurements(run.measurements)
    return Beside(id=word, label=[word, *since], word=word, values=values, run=run)


def _accepted(history: Sequence[AcceptedRun]) -> list[Beside]:
    """Return the accepted runs before the baseline, the latest first."""
    return [
        Beside(
            id=f"accepted-{place}",
            label=["accepted run", *_when(run)],
            word="accepted run",
            values=Measurements(run.measurements),
        )
        for place, run in enumerate(reversed(history[-_ACCEPTED:]), start=1)
        if run.measurements
    ]


def _when(run: AcceptedRun) -> Words:
    if run.date:
        return [" of ", Span(run.date, Kind.DATE)]
    return [" ", code(run.commit)] if run.commit else []
