"""Several policies of one step: one outcome, one comment, one summary."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.outcomes import Outcome
from fairgate.domain.wording import quoted
from fairgate.github.ci_files import ChangeReport
from fairgate.github.report import several_head
from fairgate.github.runner import SUMMARY_BYTES, Annotation
from fairgate.reports.markdown import COMMENT_LIMIT, length

_WORSE = (ExitCode.GATE_FAILED, ExitCode.BASELINE, ExitCode.NO_VERDICT, ExitCode.PASS)
"""The worst first (SPEC 2); what is not in here ends a run without any verdict."""
_SUMS = ("violations", "regressions")
_NAMED = ("outcome", "exit-code", "violations", "regressions", "value", "base", "run-folder")


def several_key(place: str) -> str:
    """Return what distinguishes the comment of several policies: where they are, not which."""
    return f"policies/{place}".rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralReports:
    """The reports of at least two policies, in the order in which the workflow names them.

    Raises UsageError where two have one name: reports and comments would take each other's place.
    """

    reports: Sequence[ChangeReport]
    place: str

    def __post_init__(self) -> None:
        """Check the names."""
        names = [report.view.policy for report in self.reports]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"two policies are called {quoted(name)}; rename one of them")

    @property
    def worst(self) -> ChangeReport:
        """Return the report whose exit code is the step's."""
        return min(self.reports, key=lambda report: _WORSE.index(ExitCode(report.exit_code)))

    @property
    def key(self) -> str:
        """Return what distinguishes the comment from those of other gates."""
        return several_key(self.place)

    @property
    def outcome(self) -> Outcome:
        """Return the worst outcome."""
        return self.worst.outcome

    @property
    def exit_code(self) -> int:
        """Return the worst exit code."""
        return self.worst.exit_code

    @property
    def needs_attention(self) -> bool:
        """Return whether a reviewer should be informed of any of them."""
        return any(report.needs_attention for report in self.reports)

    @property
    def annotations(self) -> Sequence[Annotation]:
        """Return those of all policies."""
        return [one for report in self.reports for one in report.annotations]

    @property
    def outputs(self) -> Mapping[str, str]:
        """Return the sums, else what the worst policy gives, and `results` with each one's own."""
        results = {
            report.view.policy: {name: report.outputs[name] for name in _NAMED}
            for report in self.reports
        }
        sums = {name: sum(int(report.outputs[name]) for report in self.reports) for name in _SUMS}
        return {
            **self.worst.outputs,
            **{name: str(value) for name, value in sums.items()},
            "results": json.dumps(results),
        }

    def comment(self, report_url: str) -> str:
        """Return a line for each policy, and the reports of those that need attention."""
        head = several_head([report.view for report in self.reports], self.outcome)
        open_ones = [report for report in self.reports if report.needs_attention]
        room = (COMMENT_LIMIT - length(head)) // max(1, len(open_ones)) - 2
        parts = [report.comment(report_url, room).strip() for report in open_ones]
        while parts and length("\n\n".join([head, *parts])) >= COMMENT_LIMIT:
            parts.pop()
        return "\n\n".join([head.strip(), *parts]) + "\n"

    def summary(self, remarks: Sequence[str] = ()) -> str:
        """Return the job summaries, one after the other; `remarks` are what happened since."""
        head = several_head([report.view for report in self.reports], self.outcome)
        room = (SUMMARY_BYTES - len(head.encode())) // len(self.reports) - 2
        last = len(self.reports) - 1
        parts = [
            report.summary(remarks if place == last else (), room).strip()
            for place, report in enumerate(self.reports)
        ]
        return "\n\n".join([head.strip(), *parts]) + "\n"
