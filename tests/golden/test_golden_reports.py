from __future__ import annotations

import re
from functools import cache

import pytest
from canonical_bias import bias_baseline
from canonical_results import CANONICAL, baseline
from canonical_rules import view_of

from fairgate.features.exports import render_junit, render_sarif
from fairgate.reports.console import render_console
from fairgate.reports.formats import render_run_record, rows_jsonl
from fairgate.reports.html import render_html
from fairgate.reports.markdown import render_comment, render_report

OPTIONS = {
    "run_path": "runs/rag-sentiment",
    "files": {"report": "runs/rag-sentiment/report.md", "record": "runs/rag-sentiment/run.json"},
}
POLICY = """\
version: 1
name: rag-sentiment
gates:
  - {parity: answers, max: 0.15}
  - {parity: unreadable, advisory: true}
  - {parity: documents}
  - {metric: direction/net, max: 0.02}
"""
BASELINES = {"pass": baseline, "regression": baseline, "social-bias": bias_baseline}


@cache
def _run(name):
    return CANONICAL[name]()


@cache
def _view(name):
    compared = BASELINES.get(name)
    return view_of(_run(name), compared() if compared else None, **OPTIONS)


def _page(name):
    """One page stands there whole; style sheet and script are the same in all of them."""
    page = render_html(_view(name))
    if name == "regression":
        return page
    return re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>", "", page)


WRITTEN = {
    "report.md": lambda name: render_report(_view(name)),
    "comment.md": lambda name: render_comment(_view(name)),
    "console.txt": lambda name: render_console(_view(name)),
    "run.json": lambda name: render_run_record(_run(name).result),
    "report.html": _page,
    "report.sarif": lambda name: render_sarif(_view(name), dict(enumerate((4, 5, 6, 7))), POLICY),
    "junit.xml": lambda name: render_junit(_view(name)),
    "rows.jsonl": lambda name: "".join(rows_jsonl(_run(name).result)),
}


RECORDS = ("regression", "social-bias")
"""Canonical runs whose files for programs stand there; each of their shapes does."""
KEPT = {"report.md": CANONICAL, "comment.md": CANONICAL, "console.txt": CANONICAL}
KEPT |= {"report.html": ("pass", *RECORDS), "junit.xml": ("no-verdict", *RECORDS)}
KEPT |= {"run.json": ("regression",)}


@pytest.mark.parametrize(
    ("name", "file"), [(name, file) for file in WRITTEN for name in KEPT.get(file, RECORDS)]
)
def test_every_file_is_the_golden_one(name, file, check_golden):
    check_golden(f"{name}/{file}", WRITTEN[file](name))


@pytest.mark.parametrize("name", CANONICAL)
def test_a_comment_says_it_in_fifteen_lines_before_its_fold(name):
    shown = render_comment(_view(name)).partition("<details>")[0]
    assert len([line for line in shown.splitlines() if line]) <= 15


def test_a_green_comment_is_three_lines():
    lines = render_comment(_view("pass")).strip().splitlines()
    assert len([line for line in lines if line]) == 3
