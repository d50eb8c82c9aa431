"""What a report shows of a suite of question items, as plain values; not escaped yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasCell:
    """Diff-Bias of a setting in a category: ambiguous and disambiguated, as P2 prints it."""

    ambiguous: str
    disambiguated: str
    ambiguous_mark: str
    """`max` or `min` of the category's settings; empty in between."""
    disambiguated_mark: str


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
class BiasView:
    """A suite of question items."""

    suite: str
    size: str
    cautions: Sequence[str]
    """What the reader must know before reading any bias into the figures."""
    categories: Sequence[str]
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
