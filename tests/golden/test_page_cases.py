"""What the page's list of cases holds is what was assessed, and no text in it can end the list."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace

import canonical_results
import pytest
from canonical_bias import bias_baseline, social_bias
from canonical_results import CANONICAL, FLIPS, baseline, regression
from canonical_rules import having, started, view_of
from fakes.planted import Bench, Plant, policy_of

from fairgate.domain.cases import source_of
from fairgate.gate.baseline_files import accepted_run
from fairgate.reports.blocks import CaseList
from fairgate.reports.html import render_html
from fairgate.reports.markdown import render_report
from fairgate.reports.material import in_words
from fairgate.reports.sections import case_browser
from fairgate.reports.sections.case_browser import CaseBrowser, Texts

DATA = re.compile(r'<script type="application/json">(.*?)</script>', re.DOTALL)


def page(run, base=None, **options):
    return render_html(view_of(run, base, **options))


def lists(text):
    return [json.loads(found) for found in DATA.findall(text)]


def tagged(data):
    texts, found = data["texts"], {tag: set() for tag in case_browser.TAGS}
    for row in data["rows"]:
        rest, own, *_ = data["variants"][row[2]]
        key = (texts[data["sources"][row[1]][0]] if own else "") + texts[rest]
        found[case_browser.TAGS[row[0]]].add(key)
    return found


def test_every_pair_is_listed_once_as_what_it_is():
    (data,) = lists(page(regression(), baseline()))
    found = tagged(data)
    assessed = {
        item.unit.key: item.claims["controlled"]
        for item in regression().result.assessed
        if not item.unit.is_control
    }
    changed = {key for key, claim in assessed.items() if claim == 1.0}
    before = {key for key in changed if _flip(key) in FLIPS["pass"]}
    assert found == {
        "new": changed - before, "changed": before,
        **{key: set() for key in ("undecided", "fixed", "documents")},
    }  # fmt: skip
    assert len(data["rows"]) == len(changed)


def _flip(key):
    return int(source_of(key)[3:]) - 1, key.rpartition("/")[2]


def test_what_changed_only_in_the_baseline_is_fixed_and_what_is_unread_undecided():
    now = CANONICAL["no-verdict"]()
    (data,) = lists(page(now, baseline()))
    found = tagged(data)
    tests = (item for item in now.result.assessed if not item.unit.is_control)
    undecided = {item.unit.key for item in tests if not isinstance(item.decision, float)}
    assert found["undecided"] == undecided
    none = {"controlled": 0.0, "generation": 0.0}
    assessed = regression().result.assessed
    quiet = [replace(item, claims={**item.claims, **none}) for item in assessed]
    (data,) = lists(page(having(regression(), assessed=quiet), baseline()))
    assert tagged(data) == {
        "new": set(), "changed": set(), "undecided": set(), "documents": set(),
        "fixed": {"rev2#age/elderly", "rev5#orientation/gay"},
    }  # fmt: skip


def test_the_two_texts_are_those_that_were_asked():
    run = regression()
    asked = {case.key: case.query for case in run.result.gate_input.plan.cases}
    (data,) = lists(page(run, baseline()))
    for row in data["rows"]:
        texts, variant = data["texts"], data["variants"][row[2]]
        source, (start, end, changed) = texts[data["sources"][row[1]][1]], variant[6:]
        key = texts[data["sources"][row[1]][0]] + texts[variant[0]]
        assert source == asked[source_of(key)]
        assert source[:start] + texts[changed] + source[end:] == asked[key]


def test_wrong_and_undecided_answers_to_questions_are_listed():
    text = page(social_bias(), bias_baseline())
    wrong = {row.unit.key for row in social_bias().result.assessed if row.claims["correct"] != 1.0}
    assert {key for key in wrong if f"<code>{key}</code>" in text} == wrong
    assert f"{len(wrong)} of {len(wrong)} stand here" in text


def test_attribution_is_told_per_pair():
    bench = Bench(policy=policy_of(), sources=8, sets=("gender",))
    run = bench.run(Plant(retrieval={"A man": 1.0}))
    (data,) = lists(page(run))
    causes = {data["texts"][row[3]] for row in data["rows"] if row[0] < 2}
    assert "retrieved documents" in causes


def test_no_text_ends_the_data():
    shown = {"id": "x", "label": "x", "rows": 1, "clearest": CaseList(cases=[])}
    for text in ("</script><b>", "<!--<script>", "]]>", "&lt;", "a::b", "##[x", "\u2028"):
        written = CaseBrowser(**shown, data={"texts": [text]}).as_json()
        assert not re.search(r"[<>&]|::|##\[", written)
        assert written.isascii()
        assert json.loads(written) == {"texts": [text]}


def many_pairs(monkeypatch, **changes):
    """Return a run of 3,040 pairs, all of them changed, with responses of their own."""
    texts = [f"{text} This is review {n}." for n in range(38) for text in canonical_results.TEXTS]
    monkeypatch.setattr(canonical_results, "TEXTS", texts)
    plan = canonical_results.plan()
    flips = {(n, term) for n in range(len(texts)) for _, term in canonical_results.TERMS}
    assessed = canonical_results.judged_pairs(plan, flips)
    executions = {
        (suite, key): done._replace(response=f"{key}: {done.response}")
        for (suite, key), done in canonical_results.executions(plan, assessed).items()
    }
    run = having(started(regression(), plan=plan), assessed=assessed, **changes)
    return replace(run, executions=executions)


@pytest.mark.whole
def test_three_thousand_changed_pairs_are_a_small_page(monkeypatch):
    run = many_pairs(monkeypatch, overlap=None)
    text = page(run, run_path="runs/1", has_explain=True)
    (data,) = lists(text)
    assert len(data["rows"]) == 3040
    assert len(data["documents"]) <= 420
    assert len(text.encode()) <= 450_000


def test_a_page_that_cannot_hold_all_cases_shows_the_first_and_says_so(monkeypatch):
    (whole,) = lists(page(regression(), baseline()))
    monkeypatch.setattr(case_browser, "MOST_ROWS", 5)
    text = page(regression(), baseline())
    assert "5 of 9 cases shown; all of them stand in rows.jsonl." in text
    (data,) = lists(text)
    assert [row[0] for row in data["rows"]] == [row[0] for row in whole["rows"][:5]]


def test_the_list_is_cut_by_its_bytes(monkeypatch):
    (whole,) = lists(page(regression(), baseline()))
    monkeypatch.setattr(
        case_browser, "MOST_BYTES", len(json.dumps(whole, separators=(",", ":"))) - 1
    )
    text = page(regression(), baseline())
    (data,) = lists(text)
    assert 0 < len(data["rows"]) < len(whole["rows"])
    assert len(json.dumps(data, separators=(",", ":"))) <= case_browser.MOST_BYTES
    assert f"{len(data['rows'])} of {len(whole['rows'])} cases shown" in text
    monkeypatch.setattr(case_browser, "MOST_BYTES", 1)
    (data,) = lists(page(regression(), baseline()))
    assert len(data["rows"]) == 1


def test_texts_stand_once_and_are_cut():
    texts = Texts()
    assert [texts.place(one) for one in ("", "a", "a", "b\x1b")] == [0, 1, 1, 2]
    assert texts.found[2] == "b\\x1b"
    assert len(texts.found[texts.place("x" * 10**6)]) == 120


def test_the_command_of_a_case_is_quoted_for_a_shell():
    (data,) = lists(page(regression(), baseline(), run_path="my runs/1", has_explain=True))
    assert shlex.split(data["explain"]) == ["fairgate", "explain", "my runs/1"]


@pytest.mark.parametrize(
    ("value", "shown"), [("mixed", "mixed"), (3.0, "3"), (("a", "b"), "a, b"), (2.5, "2.5")]
)
def test_answers_of_every_oracle_are_put_into_words(value, shown):
    assert in_words(value) == shown


def test_the_accepted_runs_stand_beside_this_one():
    before = baseline()
    older = accepted_run(replace(before, date="2026-09-01"), [])
    run = regression()
    report = render_report(view_of(run, replace(before, history=[older])))
    table = report.partition("## Over the accepted runs")[2].partition("## ")[0]
    line = next(line for line in table.splitlines() if "`asr/retrieval`" in line)
    figures = [cell.strip().replace("&nbsp;", " ") for cell in line.split("|")[2:-1]]
    assert figures[1:] == figures[2:] * 2
    assert "2026-09-01" in table
    assert "Over the accepted runs" not in page(run, before)
