"""What a report shows: built once from a run, rendered by every format.

Nothing in here is escaped. Texts are already cut or hashed as the policy's `redact` asks, so that
no renderer can show more than another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fairgate.domain.outcomes import Outcome
from fairgate.reports.blocks import Block, CaseItem, Section
from fairgate.reports.escaping import Redaction
from fairgate.reports.rule_rows import RuleRow
from fairgate.reports.spans import Inline

WORDS = {
    Outcome.PASS: "PASS",
    Outcome.FAIL: "FAIL",
    Outcome.INCONCLUSIVE: "NO VERDICT",
    Outcome.NOT_EVALUATED: "NO VERDICT",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What the policy and the command line say about reports."""

    redact: Redaction = "excerpt"
    confidence: float = 0.95
    report_only: bool = False
    """The exit code is 0 whatever the outcome; reports still say what the outcome is."""
    limit: int | None = None
    """Sources or items of a suite that were asked about at most, where not all were (`--limit`)."""
    run_path: str = ""
    """The run's folder, as commands name it."""
    run_command: str = ""
    """The command that made this run; empty: `fairgate run` and the policy's path."""
    place: str = ""
    """Where the run's paths start at, in the repository: `services/shop/`."""
    has_explain: bool = False
    """Whether a reader has the run's folder, and so can use `fairgate explain`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What was written, by name (`report`, `record`, …), for the console."""
    of_features: Mapping[str, object] = field(default_factory=dict)
    """What the policy says by the keys of features."""
    cases: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBeside:
    """What is said first of a run when it is shown beside something."""

    id: str
    label: Inline
    note: Inline
    """What a reader who chose it should know; empty for the usual one."""
    lead: Inline
    since: Sequence[Block]
    """What has changed since then."""
    affected: Sequence[Block]
    """Who is affected most, now and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything that a report shows."""

    policy: str
    outcome: Outcome
    exit_code: int
    exit_meaning: str
    title: Inline
    """Follows "FairGate: " and precedes "in <policy>"."""
    lead: Inline
    """The first sentence: what happens how often, or why there is no verdict."""
    choices: Sequence[ShownBeside]
    """What the page can show the run beside, the usual one first."""
    reasons: Sequence[Block]
    """What a busy reviewer reads after what changed and who is affected: why, and an example."""
    warnings: Sequence[Block]
    """What stands right under the verdict, whatever else there is room for."""
    next_step: Inline
    """What a reader can do now; empty where there is nothing to do."""
    remarks: Sequence[Block]
    """What else a reader should know beside the verdict."""
    standing: Inline
    """One line for a report that has no room: how many rules passed, of how many cases."""
    rules: Sequence[RuleRow]
    sections: Sequence[Section]
    examples: Sequence[CaseItem]
    """The clearest changed answers, for the top of the page."""
    alerts: Sequence[RuleRow]
    """Significant differences between identities that fail no rule, as rules that warn."""
    problems: Sequence[str]
    """Why there is no verdict; empty where there is one."""
    differences: Sequence[str]
    """In what must match between run and baseline."""
    run_command: str
    files: Mapping[str, str]
    fairgate: str
    commit: str
    policy_path: str
    baseline_path: str
    """Empty where nothing was compared."""
    under_test: Mapping[str, str]

    @property
    def mark(self) -> Outcome:
        """Return what gives titles their sign and colour: no pass beside an alert is green."""
        warns = self.outcome is Outcome.PASS and self.alerts
        return Outcome.INCONCLUSIVE if warns else self.outcome

    @property
    def word(self) -> str:
        """Return the outcome as titles name it."""
        return WORDS[self.outcome] if self.mark is self.outcome else "PASS WITH WARNING"

    @property
    def summary(self) -> Sequence[Block]:
        """Return what a busy reviewer reads next: what changed, who is affected, why."""
        usual = self.choices[0]
        return [*usual.since, *usual.affected, *self.reasons]
