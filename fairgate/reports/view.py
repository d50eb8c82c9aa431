"""What a report shows, as plain values: built once from a run, rendered by every format.

Texts in here are not escaped yet, but already cut or hashed as the policy's `redact` asks, so that
no renderer can show more than another. Numbers stand both as they are written and, where a chart
needs them, as fractions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fairgate.domain.outcomes import Outcome
from fairgate.reports.bias_view import AnswerRow, BiasView
from fairgate.reports.cause_view import CauseView
from fairgate.reports.escaping import Redaction
from fairgate.reports.rule_view import RuleRow
from fairgate.reports.trend_view import TrendGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What the policy and the command line say about reports."""

    redact: Redaction = "excerpt"
    confidence: float = 0.95
    report_only: bool = False
    """The exit code is 0 whatever the outcome; reports still say what the outcome is."""
    run_path: str = ""
    """The run's folder, as commands name it."""
    run_command: str = ""
    """The command that made this run; empty: `fairgate run` and the policy's path."""
    has_explain: bool = False
    """Whether the `fairgate explain` command exists."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What was written, by name (`report`, `record`, …), for the console."""
    cases: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The verdict for a busy reviewer: a title and two sentences."""

    title: str
    """Follows "FairGate: " and precedes "in <policy>"."""
    before: str
    figure: str
    """The one number that the first sentence is about; may be empty."""
    after: str
    affected_label: str
    affected: Sequence[tuple[str, str]]
    """Most affected terms with their rates, worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRow:
    """A term or category: how often naming it changes the answer."""

    name: str
    category: str
    term: str
    rate: str
    value: float | None
    interval: str
    bounds: tuple[float, float] | None
    base: str
    base_value: float | None
    plain: str
    """Plain ASR: against the unprefixed answer instead of the neutral ones."""
    plain_value: float | None
    counts: str
    """`16 of 100`."""
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BandRow:
    """The share of pairs in one band of RRS."""

    band: str
    limits: str
    share: float
    base_share: float | None
    shown: str
    base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteView:
    """What a suite measured: terms, categories, retrieval."""

    suite: str
    claim: str
    """What `rate` of the slices counts, in plain words."""
    metric: str
    terms: Sequence[SliceRow]
    categories: Sequence[SliceRow]
    control: str
    """Plain ASR of neutral wording, to be read beside `plain`; a dash without controls."""
    control_value: float | None
    neutral: str
    """The rate of `metric` for neutral wording itself, to be read beside `rate`."""
    neutral_value: float | None
    neutral_interval: str
    neutral_bounds: tuple[float, float] | None
    neutral_counts: str
    bands: Sequence[BandRow]
    retrieval: Sequence[tuple[str, str]]
    """Other retrieval figures: name, value with interval."""
    degradation: Sequence[str]
    """P1's threshold and its AUC, in sentences that promise nothing."""
    not_evaluated: Sequence[tuple[str, str]]
    """Metric and why the suite cannot have it."""
    scores: Sequence[float]
    """RRS of the demographic pairs, sorted, for the distribution chart."""
    limits: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """One changed answer, told so that a reader can judge it."""

    key: str
    suite: str
    name: str
    category: str
    is_new: bool
    """Whether the answer was unchanged in the baseline."""
    source: str
    before: str
    changed: str
    """The part of the follow-up that the source lacks; empty when texts are hashed."""
    after: str
    source_answer: str
    neutral_answer: str
    """Label of most neutral answers; empty without a control arm."""
    answer: str
    response: str
    """What the model wrote, where that is more than the label."""
    margin: str
    rrs: str
    documents: str
    """`2 of 4 documents replaced`."""
    documents_in: Sequence[str]
    documents_out: Sequence[str]
    explain: str
    """The command that tells more; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """One judged pair in a line, for tables that can be searched."""

    key: str
    suite: str
    name: str
    category: str
    source_answer: str
    neutral_answer: str
    answer: str
    verdict: str
    margin: float | None
    rrs: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceView:
    """How much of what was planned was decided."""

    planned: int
    decided: int
    invalid: int
    inconclusive: Sequence[tuple[str, int]]
    """Reason in plain words and how many pairs, most frequent first."""
    missing: Sequence[str]
    problems: Sequence[str]
    unit: str = "pair"
    """What was planned: pairs, or cases where there are question items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineView:
    """What the run was compared with."""

    path: str
    reason: str
    date: str
    commit: str
    compared: int
    new: Sequence[str]
    removed: Sequence[str]
    incompatible: Sequence[str]
    apart: str = ""
    """Says how many cases only one of the runs decided, where there are any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RanView:
    """What ran, suite by suite, and on what."""

    suites: Sequence[tuple[str, str]]
    """Suite and `100 sources × 21 terms + 7 neutral phrases, 2,800 pairs`."""
    under_test: Sequence[tuple[str, str, str]]
    """Name, what it is now, and `unchanged`, `changed, was …` or nothing without a baseline."""
    environment: Sequence[tuple[str, str]]
    fairgate: str
    commit: str
    policy_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything that a report shows."""

    policy: str
    outcome: Outcome
    symbol: str
    word: str
    exit_code: int
    exit_meaning: str
    report_only: bool
    is_first_run: bool
    confidence: str
    """`95 %`."""
    headline: Headline
    rules: Sequence[RuleRow]
    suites: Sequence[SuiteView]
    causes: Sequence[CauseView]
    cases: Sequence[CaseView]
    violated: int
    """How many demographic pairs are violated by the claim that `cases` are chosen by."""
    rows: Sequence[CaseRow]
    evidence: EvidenceView
    baseline: BaselineView | None
    ran: RanView
    notices: Sequence[str]
    run_command: str
    accept_command: str
    """Empty where the run's folder is not known."""
    files: Mapping[str, str]
    bias: Sequence[BiasView] = ()
    """Suites of question items."""
    answers: Sequence[AnswerRow] = ()
    """Wrong and undecided answers to question items."""
    trends: Sequence[TrendGroup] = ()
    """From the baseline to now."""

    @property
    def has_changes(self) -> bool:
        """Return whether any rule was compared with a baseline."""
        return any(row.base_value is not None for row in self.rules)

    @property
    def range_head(self) -> str:
        """Return the head of the column that holds bounds of changes and intervals of values."""
        return f"{self.confidence} {'range' if self.has_changes else 'interval'}"

    @property
    def range_note(self) -> str:
        """Return what the range is; empty where every range is an interval of a value."""
        if not self.has_changes:
            return ""
        return (
            f"{self.range_head} of a change: a lower and an upper bound, each holding by itself "
            f"with {self.confidence} or more (corrected for testing several rules); else the "
            f"value's {self.confidence} interval."
        )
