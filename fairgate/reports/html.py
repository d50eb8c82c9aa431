"""The report as one HTML file: no request leaves it, nothing in it runs but its own few lines.

A content security policy allows exactly the style sheet and the script that stand in the file, by
their hashes, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from fairgate.reports import figures
from fairgate.reports.charts import bias_rows, histogram, part_rows, slice_groups, trend_rows
from fairgate.reports.markdown import rule_names
from fairgate.reports.templating import html_environment
from fairgate.reports.view import View

ROWS_SHOWN = 2000
"""Rows of a case table; all of them stand in rows.jsonl."""


def render_html(view: View) -> str:
    """Return `report.html`, complete in itself."""
    import markupsafe

    style, script = _part("report.css"), _part("report.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    template = html_environment().get_template("report.html.j2")
    return template.render(
        view=view,
        policy=policy,
        style=markupsafe.Markup(style),  # noqa: S704 (our own file)
        script=markupsafe.Markup(script),  # noqa: S704 (our own file)
        rows=view.rows[:ROWS_SHOWN],
        answers=view.answers[:ROWS_SHOWN],
        rule_names=rule_names(view.rules),
        slice_groups=slice_groups,
        trend_rows=trend_rows,
        bias_rows=bias_rows,
        part_rows=part_rows,
        histogram=histogram,
        title=figures.title,
        count=figures.count,
    )


def _part(name: str) -> str:
    """Return one of our own files that stand inside the page."""
    return resources.files("fairgate.reports").joinpath("templates", name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
