"""A finished run to texts: what is written beside it, and what is said on stdout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from fairgate.engine.gate import GateInput, GateRun
from fairgate.reports.console import render_console
from fairgate.reports.html import render_html
from fairgate.reports.item_rows import item_rows_jsonl
from fairgate.reports.markdown import render_report
from fairgate.reports.present import present
from fairgate.reports.run_record import render_run_record, rows_jsonl
from fairgate.reports.view import ReportOptions

REPORT, PAGE, RECORD, ROWS = "report.md", "report.html", "run.json", "rows.jsonl"


def run_texts(
    run: GateRun, given: GateInput, out: Path, *, report_only: bool
) -> Mapping[str, Callable[[], str]]:
    """Return what each file of a run will hold, by the file's name."""
    view = present(run, _options(given, out, report_only=report_only), given.baseline)
    return {
        REPORT: lambda: render_report(view),
        PAGE: lambda: render_html(view),
        ROWS: lambda: "".join(
            (*rows_jsonl(run.result.judged), *item_rows_jsonl(run.result.judged_items))
        ),
        RECORD: lambda: render_run_record(run.result, given.must_match),
    }


def console_text(
    run: GateRun, given: GateInput, out: Path, *, report_only: bool, colour: bool = False
) -> str:
    """Return what a person reads on stdout."""
    view = present(run, _options(given, out, report_only=report_only), given.baseline)
    return render_console(view, colour=colour)


def _options(given: GateInput, out: Path, *, report_only: bool) -> ReportOptions:
    return ReportOptions(
        redact=given.policy.redact,
        confidence=given.policy.confidence,
        report_only=report_only,
        run_path=str(out),
        has_explain=True,
        files={"report": str(out / REPORT), "page": str(out / PAGE), "record": str(out / RECORD)},
    )
