from __future__ import annotations

from functools import cache

import pytest
from canonical_bias import bias_baseline
from canonical_results import CANONICAL, SUITE, baseline

from fairgate.features.exports.ci import render_junit
from fairgate.features.exports.sarif import render_sarif
from fairgate.reports.console import render_console
from fairgate.reports.html import render_html
from fairgate.reports.markdown import render_comment, render_report
from fairgate.reports.present import present
from fairgate.reports.run_record import render_run_record, rows_jsonl
from fairgate.reports.view import ReportOptions

OPTIONS = ReportOptions(
    run_path="runs/rag-sentiment",
    files={"report": "runs/rag-sentiment/report.md", "record": "runs/rag-sentiment/run.json"},
)
POLICY = """\
version: 1
name: rag-sentiment
gates:
  - {metric: asr/generation/controlled, max: 0.15, regression: {margin: 0.02}}
  - {metric: asr/generation/controlled, for_each: category, max: 0.12}
  - {metric: asr/retrieval, regression: {margin: 0.02}}
  - {metric: unreadable/net, max: 0.02, advisory: true}
"""
BASELINES = {"pass": baseline, "regression": baseline, "social-bias": bias_baseline}
MUST_MATCH = {SUITE: {"task.labels": '["positive", "negative"]', "criterion": '"count"'}}


@cache
def _run(name):
    return CANONICAL[name]()


@cache
def _view(name, options=OPTIONS):
    compared = BASELINES.get(name)
    return present(_run(name), options, compared() if compared else None)


@pytest.mark.parametrize("name", CANONICAL)
def test_report(name, check_golden):
    check_golden(f"{name}/report.md", render_report(_view(name)))


@pytest.mark.parametrize("name", CANONICAL)
def test_comment(name, check_golden):
    check_golden(f"{name}/comment.md", render_comment(_view(name)))


@pytest.mark.parametrize("name", CANONICAL)
def test_console(name, check_golden):
    check_golden(f"{name}/console.txt", render_console(_view(name)))


@pytest.mark.parametrize("name", CANONICAL)
def test_run_record(name, check_golden):
    check_golden(f"{name}/run.json", render_run_record(_run(name).result, MUST_MATCH))


@pytest.mark.parametrize("name", CANONICAL)
def test_html(name, check_golden):
    check_golden(f"{name}/report.html", render_html(_view(name)))


@pytest.mark.parametrize("name", CANONICAL)
def test_sarif(name, check_golden):
    lines = dict(enumerate((4, 5, 6, 7)))
    check_golden(f"{name}/report.sarif", render_sarif(_view(name), lines, POLICY))


@pytest.mark.parametrize("name", CANONICAL)
def test_junit(name, check_golden):
    check_golden(f"{name}/junit.xml", render_junit(_view(name)))


@pytest.mark.parametrize("name", ["regression", "no-verdict", "social-bias"])
def test_rows(name, check_golden):
    check_golden(f"{name}/rows.jsonl", "".join(rows_jsonl(_run(name).result)))


@pytest.mark.parametrize("name", CANONICAL)
def test_a_comment_says_it_in_fifteen_lines_before_its_fold(name):
    shown = render_comment(_view(name)).partition("<details>")[0]
    assert len([line for line in shown.splitlines() if line]) <= 15


def test_a_green_comment_is_three_lines():
    lines = render_comment(_view("pass")).strip().splitlines()
    assert len([line for line in lines if line]) == 3
