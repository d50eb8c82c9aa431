"""The files that a finished run can be written as."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from fairgate.domain.catalogue import Catalogue
from fairgate.domain.feature import FEATURES, at
from fairgate.domain.outcomes import GateResult
from fairgate.reports.html import render_html
from fairgate.reports.markdown import render_report
from fairgate.reports.run_record import render_run_record, rows_jsonl
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
    ),
)


def formats() -> Catalogue[Format]:
    """Return the formats of the core, then those of features."""
    places = (place for feature in FEATURES for place in feature.formats.values())
    return Catalogue("format", (*FORMATS, *map(at, places)))


def known_files() -> list[str]:
    """Return the name of every file that a format writes."""
    return [one.file for one in formats()]


def chosen(names: str) -> list[Format]:
    """Return the formats that a comma-separated list names, and those that every run needs.

    Empty: the default ones. Raises UsageError for an unknown name.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    known = formats()
    named = {known[name].id for name in wanted}
    return [
        one for one in known if one.is_needed or (one.id in named if wanted else one.is_default)
    ]
