"""Cases that only one of the runs decided are counted where a reader compares the two values."""

import html
import re
from dataclasses import replace

import pytest
from fakes.planted import Bench, Plant, policy_of

from fairgate.reports.blocks import ReportOptions
from fairgate.reports.console import render_console
from fairgate.reports.html import render_html
from fairgate.reports.markdown import render_report
from fairgate.reports.present import present

RULES = (
    {"metric": "asr/generation", "regression": 0.02},
    {"metric": "asr/generation", "where": {"term": "woman"}, "regression": 0.02},
)
BENCH = Bench(policy=policy_of(gates=RULES), sources=20, sets=("gender",))
SILENT = Plant(refusing={"A man": 1.0})


@pytest.mark.parametrize(("now", "base"), [(Plant(), SILENT), (SILENT, Plant())])
def test_every_rule_knows_its_own_cases_and_no_others_and_full_reports_say_so(now, base):
    run = BENCH.run(now, BENCH.baseline(base))
    expected = {f"s{number:05d}#gender/man" for number in range(20)}
    found = [set(rule.change.decided_once) for rule in run.result.rules[:2]]
    assert found == [expected, set()]
    view = present(run, ReportOptions())
    for render, times in ((render_report, 1), (render_html, 1), (render_console, 0)):
        text = re.sub(r"\s+", " ", html.unescape(render(view)))
        assert text.count("20 cases decided in only one of the runs are not compared") == times


@pytest.mark.parametrize("both", [Plant(), SILENT])
def test_nothing_is_said_where_both_runs_decided_the_same_cases(both):
    run = BENCH.run(both, BENCH.baseline(both))
    assert not any(rule.change.decided_once for rule in run.result.rules[:2])
    assert "only one of the runs" not in render_report(present(run, ReportOptions()))


def test_cases_whose_text_changed_are_new_cases_and_not_counted_here():
    accepted = BENCH.baseline(SILENT)
    suite = accepted.suites["s"]
    changed = replace(suite, contents=dict.fromkeys(suite.contents, "another text"))
    run = BENCH.run(Plant(), replace(accepted, suites={"s": changed}))
    assert not any(rule.change and rule.change.decided_once for rule in run.result.rules)
