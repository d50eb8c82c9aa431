"""What the page shows a run beside: the baseline, the anchor, an earlier accepted run, or nothing."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from canonical_results import baseline, first_run, regression
from canonical_rules import having, view_of
from test_html_in_browser import DARK, DESK, LIGHT, PHONE, _examined, _opened, _result, _with_script
from test_page_cases import lists, many_pairs

from fairgate.domain.outcomes import Overlap
from fairgate.gate.baseline_files import accepted_run
from fairgate.reports.html import render_html
from fairgate.reports.markdown import render_comment, render_report

RATE = "asr/generation/controlled"


def anchor(**changes):
    """Return a run in which every pair but one source's was changed, and rates were 8 points more."""
    found = baseline()
    suites = {}
    for name, suite in found.suites.items():
        values = {column: numbers.copy() for column, numbers in suite.table.values.items()}
        cluster = suite.table.keys[0].split("#")[0]
        others = [not key.startswith(f"{cluster}#") for key in suite.table.keys]
        values["controlled"][others] = 1.0
        suites[name] = replace(suite, table=replace(suite.table, values=values))
    moved = [
        replace(m, value=m.value + 0.08) if m.metric == RATE and m.value is not None else m
        for m in found.measurements
    ]
    changed = {"date": "2026-06-01", "suites": suites, "measurements": moved, **changes}
    return replace(found, **changed)


def with_history(runs=1):
    found = baseline()
    dates = [f"2026-0{n}-01" for n in range(10 - runs, 10)]
    return replace(found, history=[accepted_run(replace(found, date=date), []) for date in dates])


def view(run=None, base=None, pinned=None):
    return view_of(run or regression(), base, pinned, run_path="runs/1", has_explain=True)


def whole():
    return render_html(view(None, with_history(), anchor()))


CHOOSE = """
const all = (selector) => [...document.querySelectorAll(selector)];
const seen = (selector) => all(selector).filter((one) => one.getClientRects().length);
const select = document.getElementById('beside');
const state = () => ({
  lead: seen('.lead').map((one) => one.textContent),
  note: seen('#summary [role=status] p').map((one) => one.textContent),
  since: seen('#summary p').filter((one) => one.textContent.startsWith('Changed since')).length,
  drawn: seen('.overview tbody line.base').map((one) => one.getAttribute('x1')),
  key: seen('.overview .key .of-base').map((one) => one.textContent.trim()),
  heads: seen('#who thead th').map((one) => one.textContent),
  ticks: seen('#who tbody line.base').length,
  rows: all('#who tbody tr').length,
  chips: all('.chips button').map((one) => one.textContent),
  tags: [...new Set(all('.found .tag').map((one) => one.textContent))],
  said: document.querySelector('.browser [role=status]').textContent,
  count: document.querySelector('nav a[href="#cases"] .count').textContent,
  hash: location.hash,
});
const out = { shown: select.parentElement.getClientRects().length,
  options: [...select.options].map((one) => [one.value, one.textContent]), states: { usual: state() } };
for (const option of [...select.options].reverse()) {
  select.value = option.value;
  select.dispatchEvent(new Event('change'));
  out.states[option.value] = state();
}
document.getElementById('result').textContent = JSON.stringify(out);
"""


@pytest.fixture(scope="module")
def chosen(tmp_path_factory):
    dom, said = _opened(_with_script(whole(), CHOOSE), tmp_path_factory.mktemp("page"))
    assert said == []
    return json.loads(json.dumps(_result(dom), ensure_ascii=False).replace("\u00a0", " "))


@pytest.mark.browser
def test_everything_that_is_stored_can_be_chosen(chosen):
    assert chosen["shown"] == 1
    assert chosen["options"] == [
        ["baseline", "baseline of 2026-11-02"],
        ["anchor", "anchor of 2026-06-01"],
        ["accepted-1", "accepted run of 2026-09-01"],
        ["alone", "nothing: this run alone"],
    ]


@pytest.mark.browser
def test_the_usual_comparison_comes_back_as_it_was(chosen):
    usual, again = chosen["states"]["usual"], chosen["states"]["baseline"]
    assert again == {**usual, "hash": "#summary"}
    assert "(11.2 %, was 2.5 %)" in usual["lead"][0]
    assert (usual["note"], usual["since"], usual["key"]) == ([], 1, ["baseline"])
    assert len(usual["drawn"]) == 8, "a tick for each identity"
    assert usual["chips"] == ["newly changed 7", "changed, not new 2", "undecided 0", "fixed 0"]


@pytest.mark.browser
def test_beside_the_anchor_headline_ticks_and_chips_are_the_anchor_s(chosen):
    found = chosen["states"]["anchor"]
    (lead,), (note,) = found["lead"], found["note"]
    assert "(11.2 %, was 10.5 % in the anchor)" in lead
    assert "The verdict stays: it was decided against the baseline." in note
    assert "beside the anchor of 2026-06-01" in note
    assert found["since"] == 1
    ticks = zip(found["drawn"], chosen["states"]["usual"]["drawn"], strict=True)
    assert all(float(then) > float(was) for then, was in ticks), "8 points more"
    assert found["key"] == ["anchor"]
    assert "anchor" in found["heads"]
    assert "base" not in found["heads"]
    assert found["ticks"] > 0
    new, changed, _, fixed = (int(chip.rsplit(" ", 1)[1]) for chip in found["chips"])
    assert new + changed == 9
    assert fixed > 0
    assert found["count"] == str(9 + fixed)
    assert found["hash"] == "#summary?beside=anchor"


@pytest.mark.browser
def test_an_accepted_run_has_values_and_no_cases(chosen):
    found = chosen["states"]["accepted-1"]
    assert "was 2.5 % in the accepted run" in found["lead"][0]
    assert "no case is marked as new or fixed" in found["note"][0]
    assert found["chips"] == ["changed 9", "undecided 0"]
    assert found["tags"] == ["changed"]
    assert found["since"] == 0, "what was under test then is not stored"


@pytest.mark.browser
def test_alone_nothing_is_beside_the_run(chosen):
    found = chosen["states"]["alone"]
    assert "was" not in found["lead"][0]
    assert "9 of 80 texts" in found["lead"][0]
    assert found["ticks"] == found["since"] == 0
    assert found["drawn"] == found["key"] == []
    assert not {"base", "anchor", "accepted run"}.intersection(found["heads"])
    assert found["chips"] == ["changed 9", "undecided 0"]
    assert (found["said"], found["count"]) == ("1–9 of 9", "9")


LINK = """
setTimeout(() => {
  const state = [document.getElementById('beside').value, location.hash];
  document.querySelectorAll('.chips button')[0].click();
  document.getElementById('result').textContent = JSON.stringify([...state, location.hash]);
}, 200);
"""


@pytest.mark.browser
@pytest.mark.parametrize(
    ("hash_", "value", "kept"),
    [
        ("#who?beside=anchor", "anchor", "#cases?show=new&beside=anchor"),
        ("#cases?beside=alone", "alone", "#cases?show=changed&beside=alone"),
        ("#cases?beside=%3Cb%3E", "baseline", "#cases?show=new"),
        ("#who", "baseline", "#cases?show=new"),
    ],
)
def test_a_link_shows_the_same_comparison(hash_, value, kept, tmp_path):
    moved = f"<script>history.replaceState(null, '', '{hash_}')</script></main>"
    page = _with_script(whole(), LINK).replace("</main>", moved)
    dom, said = _opened(page, tmp_path)
    assert said == []
    found = _result(dom)
    assert found[0] == value
    assert found[2] == kept


@pytest.mark.browser
@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("scheme", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize("other", ["anchor", "alone"])
def test_axe_finds_nothing_whatever_is_chosen(other, scheme, width, tmp_path):
    choose = (
        "<script>addEventListener('load', () => { const at = document.getElementById('beside');"
        f" at.value = '{other}'; at.dispatchEvent(new Event('change')); }});</script></head>"
    )
    found = _examined(whole().replace("</head>", choose), tmp_path, scheme, width)
    assert found == {
        "complaints": [], "fetched": [], "dark": scheme == DARK, "width": width, "too_wide": 0,
    }  # fmt: skip


def test_without_a_script_the_usual_comparison_stands_and_nothing_can_be_chosen():
    text = whole()
    assert '<p class="beside" hidden>' in text
    for tag in re.findall(r"<[^>]*data-beside=[^>]*>", text):
        assert (" hidden" in tag) == ('data-beside="baseline"' not in tag)


def test_nothing_can_be_chosen_where_nothing_is_stored():
    text = render_html(view(first_run()))
    assert 'id="beside"' not in text
    assert "data-beside=" not in text
    assert 'id="beside"' in render_html(view(first_run(), None, anchor()))


def test_an_anchor_of_other_conditions_is_not_offered():
    overlap = Overlap(compared=0, new=[], removed=[], incompatible=["task: x, was y"])
    differs = having(regression(), anchor_overlap=overlap)
    assert [one.id for one in view(differs, baseline(), anchor()).choices] == ["baseline", "alone"]


def test_words_of_a_baseline_s_file_are_no_markup():
    hostile = anchor(date="<img src=x>@all")
    text = render_html(view(None, baseline(), hostile))
    assert "<img" not in text
    assert "&lt;img src=x&gt;" in text


def test_other_reports_know_the_usual_comparison_alone():
    one = view(None, with_history(), anchor())
    plain = view(None, with_history())
    assert render_comment(one) == render_comment(plain)
    assert render_report(one).count("was 2.5 %") == render_report(plain).count("was 2.5 %")
    assert "in the anchor)" not in render_report(one)


def test_three_thousand_pairs_beside_everything_are_a_small_page(monkeypatch):
    run = many_pairs(monkeypatch)
    text = render_html(view(run, with_history(8), anchor()))
    (data,) = lists(text)
    assert len(data["rows"]) == len(data["beside"]["anchor"]) == 3040
    assert len(re.findall("<option value", text)) == 7
    assert len(text.encode()) <= 450_000
