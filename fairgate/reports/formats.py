"""The files that a finished run can be written as."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from fairgate.domain.catalogue import Catalogue
from fairgate.domain.outcomes import GateResult
from fairgate.features.exports.badge import render_badge
from fairgate.features.exports.control_map import render_control_map
from fairgate.features.exports.cyclonedx import render_cyclonedx
from fairgate.features.exports.every_eval_ever import render_every_eval_ever
from fairgate.features.exports.junit import render_junit
from fairgate.features.exports.sarif import render_sarif
from fairgate.reports.html import render_html
from fairgate.reports.judged_lines import rows_jsonl
from fairgate.reports.markdown import render_report
from fairgate.reports.run_record import render_run_record
from fairgate.reports.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A verdict, and what files for machines need beside it."""

    result: GateResult
    must_match: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Each suite's fields that a baseline must share."""
    policy_text: str = ""
    gate_lines: Mapping[int, int] = field(default_factory=dict)
    """The 1-based line of the policy that each rule's gate stands in."""
    confidence: float = 0.95
    """Of intervals and tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One way to write a run down."""

    id: str
    """As `--format` names it."""
    file: str
    render: Callable[[View, Finished], str | Iterator[str]]
    """The text, whole or in pieces that are written one after the other."""
    shown_as: str = ""
    """What the console calls the file; empty: it does not name it."""
    output: str = ""
    """Name of the action's output that holds the file's path; empty: there is none."""
    is_default: bool = False
    """Whether a run writes it where nobody names formats."""
    is_needed: bool = False
    """Whether later commands read it, so that every run writes it."""


FORMATS: Catalogue[Format] = Catalogue(
    "format",
    (
        Format(
            id="md",
            file="report.md",
            render=lambda view, _: render_report(view),
            shown_as="report",
            output="report-md",
            is_default=True,
        ),
        Format(
            id="html",
            file="report.html",
            render=lambda view, _: render_html(view),
            shown_as="page",
            output="report-html",
            is_default=True,
        ),
        Format(
            id="json",
            file="run.json",
            render=lambda _, done: render_run_record(done.result, done.must_match),
            shown_as="record",
            output="report-json",
            is_needed=True,
        ),
        Format(
            id="rows",
            file="rows.jsonl",
            render=lambda _, done: rows_jsonl(done.result),
            is_needed=True,
        ),
        Format(
            id="sarif",
            file="report.sarif",
            render=lambda view, done: render_sarif(view, done.gate_lines, done.policy_text),
            shown_as="SARIF",
            output="sarif-file",
        ),
        Format(
            id="junit",
            file="junit.xml",
            render=lambda view, _: render_junit(view),
            shown_as="JUnit",
            output="junit-file",
        ),
        Format(
            id="badge",
            file="badge.json",
            render=lambda view, _: render_badge(view),
            shown_as="badge",
            output="badge-file",
        ),
        Format(
            id="cyclonedx",
            file="model-card.cdx.json",
            render=lambda _, done: render_cyclonedx(done.result, done.confidence),
            shown_as="model card",
        ),
        Format(
            id="every-eval-ever",
            file="every-eval-ever.json",
            render=lambda _, done: render_every_eval_ever(done.result, done.confidence),
            shown_as="evaluation record",
        ),
        Format(
            id="controls",
            file="controls.json",
            render=lambda _, done: render_control_map(done.result),
            shown_as="control map",
        ),
    ),
)


def known_files() -> list[str]:
    """Return the name of every file that a format writes."""
    return [one.file for one in FORMATS]


def chosen(names: str) -> list[Format]:
    """Return the formats that a comma-separated list names, and those that every run needs.

    Empty: the default ones. Raises UsageError for an unknown name.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    named = {FORMATS[name].id for name in wanted}
    return [
        one for one in FORMATS if one.is_needed or (one.id in named if wanted else one.is_default)
    ]
