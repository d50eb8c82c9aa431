"""No text of a stranger acts: each payload goes everywhere, through every renderer."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from canonical_bias import bias_baseline, social_bias
from canonical_results import baseline, regression
from canonical_rules import having, started, view_of
from hostile_texts import HOSTILE, HUGE
from markdown_it import MarkdownIt
from poisoning import Elements, check_lines, poisoned

import fairgate.cli  # noqa: F401 (whose import adds the formats of features)
from fairgate.features.shipped import SHIPPED
from fairgate.github.report import Edits, Notes, render_notes
from fairgate.reports.console import render_console
from fairgate.reports.formats import Format, formats
from fairgate.reports.html import render_html
from fairgate.reports.markdown import length, render_comment, render_report

TAGS = re.compile(r"</?(?:details|summary|sub|code)>|<br>")
LIVE = re.compile(r"@\w|://|\bwww\.|#\d|\b[A-Z]+-\d|\b[0-9a-f]{7,}\b|:\w+:|mailto:|<!--", re.ASCII)
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

BLOCKS = MarkdownIt("commonmark", {"html": True}).enable("table").disable("inline")


RUN = "https://github.com/octo/shop/actions/runs/1"


def _notes(text: str) -> Notes:
    text = text if text.strip() else "word"
    edits = Edits(
        files={"sources": [text, text]}, edits_policy=True, decided_by="base", base="❌ FAIL",
        proposed="✅ PASS", loosened=[text, f"max of {text} raised"], differences=[f"{text} and"],
    )  # fmt: skip
    return Notes(remarks=[text, f"The base commit: {text}"], edits=edits)


@cache
def _plain_run():
    """Return a result with two sources only: copies of it are made 600 times."""
    run = regression()
    kept = ("s00000", "s00001")
    whole = run.result.gate_input.plan
    cases = [case for case in whole.cases if case.cluster in kept]
    units = [unit for unit in whole.units if unit.cluster in kept]
    assessed = [item for item in run.result.assessed if item.unit.cluster in kept]
    executions = {key: run.executions[key] for key in ((c.suite, c.key) for c in cases)}
    few = having(started(run, plan=replace(whole, cases=cases, units=units)), assessed=assessed)
    return replace(few, executions=executions)


@lru_cache(maxsize=4)
def _run(payload):
    run = _plain_run()
    result = poisoned(run.result, payload)
    tables = dict(zip([result.gate_input.policy.suites[0].id], run.tables.values(), strict=True))
    executions = poisoned(run.executions, payload)
    return replace(run, result=result, executions=executions, tables=tables)


@lru_cache(maxsize=4)
def _view(payload):
    base = poisoned(replace(baseline(), suites={}, metric_versions={}), payload)
    path = poisoned("runs/1", payload)
    return view_of(_run(payload), base, run_path=path, has_explain=True, report_only=True)


def _rendered(form, text):
    return "".join(form.render(_view(text)))  # texts come whole or in pieces


WRITTEN = {
    **{form.file: partial(_rendered, form) for form in formats()},
    "report.md": lambda text: render_report(_view(text), limit=10**9),
    "comment": lambda text: render_comment(_view(text), limit=10**9),
    "page of items": lambda text: render_html(_bias_view(text)),
    "notes": lambda text: render_notes(_notes(text)),
}
"""What is written where every text is `text`: each format that there is, and what has none."""


def _blocks(text):
    return [token.type for token in BLOCKS.parse(text) if token.type != "inline"]


@cache
def _harmless(file, read=_blocks):
    """Return what a text consists of where everything in it is a word."""
    return read(WRITTEN[file]("word"))


def _check_markdown(text):
    for token in MARKDOWN.parse(text):
        if token.type == "html_block":
            # Only the lines that our templates write stand here; what is inside is our words.
            rest = TAGS.sub("", token.content)
            assert "<" not in rest
            assert not LIVE.search(rest)
        for child in token.children or ():
            assert child.type != "image", child
            assert child.type != "link_open", child
            if child.type == "html_inline":
                assert TAGS.fullmatch(child.content), child.content
            if child.type == "text":
                assert not LIVE.search(child.content), child.content
    assert "<!--" not in text


@pytest.mark.walk(25)
@pytest.mark.parametrize("payload", HOSTILE)
def test_payload_never_acts(payload):
    for form in formats():
        _check(form.file, payload)
    _check_text("comment", payload)
    _check_console(_view(payload))


def _check(file, payload):
    CHECKS.get(Path(file).suffix, _check_plain)(file, payload)


def _check_plain(file, payload):
    """Check a format that is not known here: it acts on no terminal, and has no line more."""
    text = WRITTEN[file](payload)
    check_lines(text)
    assert text.count("\n") == WRITTEN[file]("word").count("\n")


@pytest.mark.parametrize("payload", ["::error::owned", "\x1b[2J", "a\nb"])
def test_a_format_that_shows_texts_as_they_are_fails(monkeypatch, payload):
    raw = Format(id="raw", file="raw.txt", render=lambda view: view.policy)
    monkeypatch.setitem(WRITTEN, raw.file, partial(_rendered, raw))
    _check(raw.file, "word")
    with pytest.raises(AssertionError):
        _check(raw.file, payload)


def _check_text(file, payload):
    text = WRITTEN[file](payload)
    check_lines(text)
    _check_markdown(_without_code_elements(text))
    assert _blocks(text) == _harmless(file)


@pytest.mark.parametrize("payload", HOSTILE)
def test_what_stands_beside_a_report_is_dead(payload):
    _check_text("notes", payload)


def _without_code_elements(text):
    """Take out `<code>…</code>`, inside which GitHub resolves nothing, when it holds no markup."""

    def inner(match):
        dead = r"(?:[^\x00-\x7f]|[A-Za-z0-9 ]|<wbr>&#\d+;|&nbsp;)*"
        assert re.fullmatch(dead, match[1]), match[0]
        return "`code`"

    return re.sub(r"<code>(.*?)</code>", inner, text)


def _check_console(view):
    text = render_console(view)
    check_lines(text)
    coloured = render_console(view, colour=True)
    assert re.sub("\033\\[[0-9]+m", "", coloured) == text


def _check_record(file, payload):
    text = WRITTEN[file](payload)
    assert text.isascii()
    assert json.loads(text)["policy"] == _run(payload).result.gate_input.policy.name
    assert [line for line in text.splitlines() if line.lstrip().startswith(("::", "##["))] == []


def _check_rows(file, payload):
    text = WRITTEN[file](payload)
    assert text.isascii()
    keys = [json.loads(line)["key"] for line in text.splitlines()]
    assert keys == [item.unit.key for item in _run(payload).result.assessed]


def _elements(page):
    return Elements(page).found


def _check_page(file, payload):
    page = WRITTEN[file](payload)
    check_lines(re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>", "", page))
    assert _elements(page) == _harmless(file, _elements)
    page.encode()


def _xml_tags(text):
    return [element.tag for element in ET.fromstring(text).iter()]  # noqa: S314 (made by us)


def _check_xml(file, payload):
    text = WRITTEN[file](payload)
    check_lines(text)
    assert _xml_tags(text) == _harmless(file, _xml_tags)


def _check_sarif(file, payload):
    text = WRITTEN[file](payload)
    assert text.isascii()
    for result in json.loads(text)["runs"][0]["results"]:
        message = result["message"]["text"]
        check_lines(message)
        assert not re.search(r"(?<!\\)(?:\\\\)*\[|@\w|://|\{\d", message, re.ASCII), message


CHECKS = {
    ".md": _check_text, ".html": _check_page, ".json": _check_record, ".jsonl": _check_rows,
    ".xml": _check_xml, ".sarif": _check_sarif,
}  # fmt: skip
"""What each kind of file is checked for besides; of any other kind `_check_plain` is."""


@pytest.mark.walk(6)
@pytest.mark.parametrize("payload", HUGE, ids=lambda payload: repr(payload[:6]))
@pytest.mark.parametrize("redact", ["none", "excerpt", "hash"])
def test_huge_texts_stay_small(payload, redact):
    run = _plain_run()
    cases = [case._replace(query=case.query + payload) for case in run.gate_input.plan.cases]
    executions = {
        key: value._replace(response=payload + (value.response or ""))
        for key, value in run.executions.items()
    }
    long = replace(
        started(run, plan=replace(run.gate_input.plan, cases=cases)), executions=executions
    )
    view = view_of(long, baseline(), redact=redact)
    report, comment, console = render_report(view), render_comment(view), render_console(view)
    assert len(render_html(view)) < 300_000
    for text in (report, comment, console):
        check_lines(text)
    assert length(comment) <= 60_000
    assert length(report) <= (700_000 if redact == "none" else 60_000)
    assert len(console.splitlines()) < 50


def test_hashed_texts_do_not_leak():
    view = view_of(regression(), baseline(), redact="hash")
    for render in (render_report, render_comment, render_console, render_html):
        text = html.unescape(render(view))
        for hidden in ("The delivery was late", "The sentiment is", "Text of doc-1"):
            assert hidden not in text
        assert "sha256:" in text


def test_no_shipped_format_is_left_out():
    assert {name for feature in SHIPPED for name in feature.formats} <= {
        form.id for form in formats()
    }


def test_there_are_enough_payloads():
    assert len(set(HOSTILE)) >= 200


@cache
def _plain_bias():
    """Return a run of question items, of which a few were asked, all of them with documents."""
    run = social_bias()
    few = [item for item in run.result.assessed if item.unit.names["template"] == "0"]
    assessed = [item for item in few if item.unit.dimensions["retriever"]]
    return having(run, assessed=assessed)


def _bias_view(payload):
    run = _plain_bias()
    changed = replace(run, result=poisoned(run.result, payload))
    return view_of(changed, poisoned(bias_baseline(), payload))


@pytest.mark.walk(25)
@pytest.mark.parametrize("payload", HOSTILE)
def test_payload_never_acts_in_a_page_of_items(payload):
    _check_page("page of items", payload)


def test_a_page_of_question_items_shows_the_texts():
    page = WRITTEN["page of items"]("word")
    assert "wordAgeword" in page
    assert "setting wordstereoword" in page
