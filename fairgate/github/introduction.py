"""What the pull request shows that introduces a gate which only a merged policy may run.

It is neither passed nor failed. What a reader must know is what the next pull request will do.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Outcome
from fairgate.domain.parity import Against
from fairgate.gate.rules import expand_rules, parity_rules
from fairgate.github.change import Introduction
from fairgate.github.report import PolicyRow
from fairgate.github.runner import Annotation
from fairgate.github.sides import own_control_phrases
from fairgate.reports.blocks import (
    Block,
    Inline,
    Kind,
    Span,
    Style,
    Text,
    Words,
    code,
    command,
    strong,
)
from fairgate.reports.console import render_blocks as render_blocks_as_text
from fairgate.reports.escaping import excerpt
from fairgate.reports.figures import count
from fairgate.reports.formats import Unjudged
from fairgate.reports.markdown import render_blocks

_NAMED, _LONGEST = 5, 200
"""Accesses that are named, and characters of one."""
_RUN_FOLDER = "fairgate-run"
_TITLE = "a new gate, not judged yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntroductionReport:
    """The report of a policy that this change introduces: green, and no verdict."""

    introduction: Introduction
    prefix: str = ""
    """Where the gate's root lies in its repository: `services/shop/`."""
    remarks: Sequence[str] = ()
    outcome: Outcome = field(default=Outcome.NOT_EVALUATED, init=False)
    exit_code: int = field(default=int(ExitCode.PASS), init=False)
    needs_attention: bool = field(default=True, init=False)

    @property
    def row(self) -> PolicyRow:
        """The sentence about the policy."""
        return PolicyRow(
            name=self.introduction.side.loaded.policy.name,
            mark=self.outcome,
            word=_TITLE,
            lead=self._lead,
        )

    @property
    def outputs(self) -> Mapping[str, str]:
        """Return the step's outputs: no failure, no file."""
        outcome = {"outcome": self.outcome.value, "exit-code": str(self.exit_code)}
        counts = {"violations": "0", "regressions": "0", "waived": "0"}
        return {**outcome, **counts, "run-folder": ""}

    @property
    def annotations(self) -> Sequence[Annotation]:
        """Return a notice at the policy's first line."""
        path = f"{self.prefix}{self.introduction.side.loaded.parsed.path}"
        title, text = (
            f"FairGate: {_TITLE}",
            "".join(part for part in self._lead if isinstance(part, str)),
        )
        return [Annotation(level="notice", title=title, message=text, file=path, line=1)]

    def comment(self, report_url: str, most: int | None = None) -> str:
        """Return the comment without its marker; it is short whatever the policy holds."""
        del report_url, most
        title: Inline = [
            Span(self.outcome.value, Kind.MARK),
            f" FairGate: {_TITLE}, in ",
            code(self.introduction.side.loaded.policy.name),
        ]
        return f"### {render_blocks([Text(lines=[title])])}\n\n{render_blocks(self.blocks)}\n"

    @property
    def unjudged(self) -> Unjudged:
        """Return the sentence that stands in reports instead of a verdict."""
        text = render_blocks_as_text(self.blocks)
        return Unjudged(title=f"FairGate: {_TITLE}", text=text, is_error=False)

    def summary(self, most: int | None = None) -> str:
        """Return the job summary."""
        del most
        return self.comment("")

    @property
    def _lead(self) -> Words:
        why = "nothing is asked, started or imported that no merged policy names"
        return [f"This change introduces the policy, and {why}: it is neither passed nor failed."]

    @property
    def blocks(self) -> Sequence[Block]:
        """Return why nothing was judged, what the next pull request does, and what to do now."""
        side = self.introduction.side
        policy, plan, baseline = side.loaded.policy, side.loaded.plan, side.accepted_runs.baseline
        bounds = [rule for rule in expand_rules(policy, plan) if not rule.gate.report]
        asked = parity_rules(policy, side.loaded.suites)
        compared = sum(rule.gate.regression is not None for rule in bounds)
        compared += sum(rule.against is Against.BASELINE for rule in asked)
        reaches = [excerpt(text, _LONGEST) for text in self.introduction.reaches]
        more = len(reaches) - _NAMED
        listed_reaches: list[Inline] = [
            f"{text[:1].upper()}{text[1:]}." for text in reaches[:_NAMED]
        ]
        listed_reaches += [f"{more:,} more."] if more > 0 else []
        phrase_sentences = own_control_phrases(side)
        remarks = [*self.remarks, *phrase_sentences[:_NAMED]]
        if len(phrase_sentences) > _NAMED:
            remarks.append("And more phrases that are called neutral; `fairgate check` lists them.")
        path = side.loaded.parsed.path
        if baseline is None:
            with_baseline: Words = [f"; {compared:,} of them wait for a baseline" * bool(compared)]
        else:
            with_baseline = [
                f"; {compared:,} of them compare with the baseline that this change brings, of ",
                Span(baseline.date, Kind.DATE),
            ]
        asks = f"asks {count(len(plan.cases), 'question')} and is held against "
        asks += f"{count(len(bounds) + len(asked), 'rule')} of the merged policy"
        run = f"fairgate run {shlex.quote(path)} --out {_RUN_FOLDER}"
        run = f"cd {shlex.quote(self.prefix)} && {run}" if self.prefix else run
        accept: Words = []
        if baseline is None:
            accept = [
                ", look at its report, and commit the baseline that ",
                command(f'fairgate baseline accept {_RUN_FOLDER} --reason "…"'),
                " writes",
            ]
        return [
            Text(lines=[self._lead, "A run of this policy:"]),
            Text(lines=listed_reaches, style=Style.LIST),
            Text(
                lines=[
                    [
                        strong("The next pull request"),
                        f" is the first with a verdict. Once this one is merged, each {asks}",
                        *with_baseline,
                        ".",
                    ],
                    ["Before you merge, try it: ", command(run), *accept, "."],
                ]
            ),
            *([Text(lines=remarks, style=Style.NOTE)] if remarks else []),
        ]
