"""No title is green while identities differ, whatever the rules ask or let pass."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import canonical_results
from canonical_results import SUITE, first_run, passing
from canonical_rules import having, rule, said, view_of
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import IdentityFinding, Outcome, TermFinding
from fairgate.domain.wording import within_sentence
from fairgate.features.exports import render_badge
from fairgate.gate.decide import decide
from fairgate.github.comments import read_foreign_record, render_foreign_record
from fairgate.github.report import Notes, job_summary, pull_request_comment, several_head, shown_of
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.identity import COMPARING
from fairgate.reports.blocks import Table
from fairgate.reports.console import render_console
from fairgate.reports.formats import render_run_record
from fairgate.reports.html import render_html
from fairgate.reports.markdown import render_comment, render_report
from fairgate.reports.sections.affected import leading

TERMS = (("age", "elderly"), ("gender", "woman"), ("race", "middle eastern"))
WHO = {term: within_sentence(phrase) for (_, term), phrase in canonical_results.TERMS.items()}
GREEN = re.compile('✅|brightgreen|the gate passed in|class="(state|mark) pass"')


@st.composite
def findings(draw):
    found = []
    for metric in COMPARING:
        for where in ({}, {"category": "age"}, {"category": "race"}):
            if draw(st.booleans()):
                p_value = draw(st.sampled_from([1e-4, 1e-3, 0.01, 0.04, 0.2, 1.0]))
                inside = [each for each in TERMS if where.get("category", each[0]) == each[0]]
                category, term = draw(st.sampled_from(inside))
                value = draw(st.sampled_from([0.01, 0.09, 0.3, 0.6]))
                top = TermFinding(
                    category=category, term=term, difference=value, p_value=p_value,
                    p_corrected=p_value, decided=10,
                )  # fmt: skip
                own = {"metric": metric.id, "value": value, "p_value": p_value, "terms": [top]}
                found.append(IdentityFinding(suite=SUITE, where=where, sources=10, **own))
    return found


@st.composite
def rules_about(draw, found):
    """Rules that ask about some of the comparisons, and let them pass or not."""
    bound = {"bounds": {"max": 0.5}, "value": 0.1}
    asked = [rule("asr/generation/controlled", 0, Outcome.PASS, "below", **bound)]
    for one in found:
        how = draw(st.sampled_from(["none", "pass", "fail", "open", "advisory", "reported"]))
        outcome = {"fail": Outcome.FAIL, "advisory": Outcome.FAIL, "open": Outcome.INCONCLUSIVE}
        if how != "none":
            about = replace(asked[0], metric=one.metric, where=one.where, value=one.value)
            asked.append(
                replace(
                    about, bounds={"max": 0.05}, outcome=outcome.get(how, Outcome.PASS),
                    failed=["identity"] if how in ("fail", "advisory") else [], warns=True,
                    advisory=how == "advisory", is_reported=how == "reported",
                )
            )  # fmt: skip
    return asked


def titles(view, record):
    """Return the title of every rendering that has one."""
    page = render_html(view)
    return {
        "console": render_console(view).partition("\n")[0],
        "report": render_report(view).partition("\n")[0],
        "comment": render_comment(view).partition("\n")[0],
        "pull request": pull_request_comment(view, Notes(), report_url="u").partition("\n")[0],
        "job summary": job_summary(view, Notes(), limit=10**6).partition("\n")[0],
        "several": several_head([shown_of(view)] * 2, view.outcome),
        "badge": render_badge(view),
        "page": page[page.index("<header") : page.index("<nav")],
        "page's heading": page[page.index("<h1") : page.index("</h1>")],
        "fork": render_foreign_record(
            read_foreign_record(record.encode()), head="", report_url="u"
        ).partition("\n")[0],
    }  # fmt: skip


@given(data=st.data())
def test_no_title_is_green_beside_a_significant_difference(data):
    run = first_run()
    found = data.draw(findings())
    rules = data.draw(rules_about(found))
    outcome, code = decide(rules, run.result.evidence, ())
    run = having(run, rules=rules, identities=found, outcome=outcome, exit_code=code)
    view = view_of(run)
    significant = [one for one in found if one.p_value * len(found) <= 0.05]
    shown = titles(view, render_run_record(run.result))
    green = {name for name, title in shown.items() if GREEN.search(title)}
    if outcome is not Outcome.PASS:
        assert not green
        return
    assert code is ExitCode.PASS
    assert green == (set() if significant else set(shown))
    if significant:
        assert any(
            f"but {within_sentence(WHO[one.terms[0].term])}" in shown["report"]
            for one in significant
        )
        assert json.loads(shown["badge"])["message"] == "pass with warning"
        asked = {(one.metric, one.terms[0].term) for one in significant}
        assert len(view.alerts) == len(asked)


@given(data=st.data())
def test_title_and_first_sentence_are_about_the_same_rule(data):
    run = data.draw(st.sampled_from([passing, first_run]))()
    found = data.draw(findings())
    first, *asked = data.draw(rules_about(found))
    how, of = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from([{}, {"term": "woman"}]))
    failed = ["bound"] if how.get("outcome") is Outcome.FAIL else []
    rules = [*asked, replace(first, where=of, failed=failed, interval=(0.02, 0.6), **how)]
    outcome, code = decide(rules, run.result.evidence, ())
    run = having(run, rules=rules, identities=found, outcome=outcome, exit_code=code)
    view = view_of(run)
    title, sentence = said(view.title), said(view.lead).partition(" Also failed: ")[0]
    in_title, in_lead = ([who for who in WHO.values() if who in text] for text in (title, sentence))
    leads = leading(run.result)
    is_of_one = BY_ID[leads.metric].compares_terms or "term" in leads.where
    if in_title and (in_lead or is_of_one):  # a mean over all of them names nobody itself
        assert in_lead == [min(in_title, key=title.index)], (title, sentence)
    if "but" in title:
        assert "points" in sentence
        warned = " ".join(said(line) for block in view.warnings for line in block.lines)
        assert sentence not in warned
        tables = [block for block in view.summary if isinstance(block, Table)]
        assert all(within_sentence(said(table.rows[0].cells[0])) == in_title[0] for table in tables)
    if "inconclusive" in sentence:
        assert "inconclusive" in title or "too little evidence" in title, (title, sentence)
    assert ("this is inconclusive" in sentence) == (leads.outcome is Outcome.INCONCLUSIVE)
    binding = [one.outcome for one in rules if not one.advisory and not one.is_reported]
    if outcome is Outcome.PASS and Outcome.INCONCLUSIVE in binding:
        assert f"{binding.count(Outcome.INCONCLUSIVE)} rule" in title
        assert "passes its limits" not in title
    assert "term woman" not in render_report(view)


KINDS = [
    {}, {"outcome": Outcome.FAIL}, {"outcome": Outcome.FAIL, "advisory": True},
    {"outcome": Outcome.INCONCLUSIVE, "warns": True}, {"outcome": Outcome.INCONCLUSIVE},
    {"is_reported": True},
]  # fmt: skip
