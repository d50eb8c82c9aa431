"""What a report shows of a suite of question items, as plain values; not escaped yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairgate.reports.measured import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasCell:
    """Diff-Bias of a setting in a category: ambiguous and disambiguated, as P2 prints it."""

    ambiguous: str
    disambiguated: str
    ambiguous_mark: str
    """`max` or `min` of the category's settings; empty in between."""
    disambiguated_mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasPoint:
    """Diff-Bias of a setting, now and in the baseline: ambiguous and disambiguated."""

    setting: str
    now: tuple[Figure, Figure]
    base: tuple[Figure, Figure]


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasGroup:
    """The settings of a category, for the chart."""

    category: str
    """Empty for all of them together."""
    points: Sequence[BiasPoint]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One setting: every category, then everything together with intervals."""

    setting: str
    cells: Sequence[BiasCell]
    diff_bias: tuple[str, str]
    """Ambiguous, disambiguated."""
    intervals: tuple[str, str]
    amplification: tuple[str, str]
    accuracy: tuple[str, str]
    out_of_choice: str
    answers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepLine:
    """Diff-Bias over the number of documents, for one setting, retriever and condition."""

    setting: str
    retriever: str
    condition: str
    points: Sequence[tuple[int, float | None, str]]
    """k, the value as a fraction, the value as it is written."""
    path: str
    """The line of the chart, points in a box of 100 by 100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """One answer that is wrong or undecided, in a line, for tables that can be searched."""

    key: str
    condition: str
    setting: str
    answer: str
    """`stereotype`, `counter`, `unknown`, or why it is undecided."""
    right: str
    """What would have been right, in the same words."""
    stereotypes: float | None
    """Share of stereotypical documents among those shown."""
    margin: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasView:
    """A suite of question items, measured by Diff-Bias."""

    suite: str
    size: str
    cautions: Sequence[str]
    """What the reader must know before reading any bias into the figures."""
    categories: Sequence[str]
    groups: Sequence[BiasGroup]
    """Everything together, then each category."""
    rows: Sequence[SettingRow]
    shares: Sequence[tuple[str, str, str, str]]
    """Setting, retriever, share of stereotypical documents, interval."""
    retrievers: Sequence[tuple[str, str, str, str]]
    """Setting, retriever, Diff-Bias ambiguous and disambiguated; empty for one retriever."""
    sweep: Sequence[SweepLine]
    letters: str
    """How often each letter was chosen; empty where that is not known."""
    own_scores: Sequence[tuple[str, str, str]]
    """Setting, BBQ's s_amb and s_dis."""

    @property
    def has_base(self) -> bool:
        """Return whether the baseline has a value of Diff-Bias to stand beside this run's."""
        return any(
            base.value is not None
            for group in self.groups
            for point in group.points
            for base in point.base
        )
