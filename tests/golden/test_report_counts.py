"""Every count in a report is reconciled: what was planned is what was decided and every reason."""

from __future__ import annotations

import html
import re
from collections import Counter

import numpy as np
import pytest
from canonical_bias import bias_baseline
from canonical_results import CANONICAL, baseline
from canonical_rules import view_of
from fakes.planted import Bench, Plant, policy_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairgate.domain.units import REASON_WORDS, Reason
from fairgate.reports.console import render_console
from fairgate.reports.html import render_html
from fairgate.reports.markdown import render_comment, render_report

DECIDED = re.compile(r"([\d,]+) of ([\d,]+)(?: \w+)? decided(?: \(([^)]*)\))?")
REASON = re.compile(rf"([\d,]+) ({'|'.join(REASON_WORDS.values())})")
BENCH = Bench(policy=policy_of(unstable_margin=0.02), sources=8, sets=("gender",))
SHARES = st.dictionaries(
    st.sampled_from(["", "A man", "A woman", "A non-binary person", "A person", "A reader"]),
    st.sampled_from([0.2, 0.6, 1.0]),
    max_size=4,
)
PLANTS = st.builds(
    Plant, world=st.integers(0, 99), sensitive=st.sampled_from([0.0, 0.5]), biased=SHARES,
    refusing=SHARES,
)  # fmt: skip


def number(text):
    return int(text.replace(",", ""))


def check(text):
    """Assert that every count in a text adds up; return how many there are."""
    found = DECIDED.findall(re.sub(r"\s+", " ", html.unescape(re.sub(r"</?[a-z][^>]*>", "", text))))
    for decided, planned, why in found:
        reasons = REASON.findall(why or "")
        assert number(planned) == number(decided) + sum(number(many) for many, _ in reasons)
        assert len(reasons) == (why or "").count(",") + bool(why), why
    return len(found)


def changed_answers(run, report):
    if re.search(r"#+ The clearest cases$", report, re.MULTILINE):
        return  # unread answers lead, and no count stands there
    found = re.search(r"Clearest cases: \d+ of ([\d,]+) changed answer", report)
    tables = [table for name, table in run.tables.items() if "controlled" in table.values]
    main = sum(int(np.nansum(table.values["controlled"][~table.control])) for table in tables)
    assert (number(found[1]) if found else 0) == main


def check_all(run, base):
    view = view_of(run, base)
    changed_answers(run, render_report(view))
    for render in (render_report, render_html, render_console, render_comment):
        assert check(render(view)) >= 1


@pytest.mark.parametrize("name", CANONICAL)
def test_the_counts_of_every_canonical_report_add_up(name):
    check_all(CANONICAL[name](), bias_baseline() if name == "social-bias" else baseline())


@pytest.mark.whole
@settings(suppress_health_check=list(HealthCheck))
@given(PLANTS)
def test_the_counts_of_random_runs_add_up(plant):
    check_all(BENCH.run(plant), None)


def test_a_reader_is_told_the_true_reasons():
    """No majority among the neutral speakers is not called an unreadable answer."""
    half = dict.fromkeys(("A person", "A reader", "A customer", "A student"), 1.0)
    before, now = Plant(), Plant(refusing={"A man": 1.0}, biased=half)
    rules = ({"metric": "asr/generation", "regression": 0.02},)
    bench = Bench(policy=policy_of(gates=rules), sources=20, sets=("gender",))
    run = bench.run(now, bench.baseline(before))
    claims = (judged.claims["generation"] for judged in run.result.assessed)
    newly = Counter(claim for claim in claims if isinstance(claim, Reason))
    (rule,) = [r for r in run.result.rules if r.metric == "asr/generation"]
    (reason,) = [text for text in rule.reasons if "no longer decided" in text]
    told = {words: number(many) for many, words in REASON.findall(reason)}
    assert told == {REASON_WORDS[why]: many for why, many in newly.items()}
    assert sum(told.values()) == number(re.search(r"decided: (\d+) that", reason)[1])
