"""No text of a stranger acts in a fork's comment, beside a report, in an annotation or an output."""

import json
import re

import pytest
from action.step_runner import parse_outputs
from golden.hostile_texts import HOSTILE
from markdown_it import MarkdownIt

from fairgate.domain.errors import DataError
from fairgate.github.foreign_reports import read_foreign_record, render_foreign_record
from fairgate.github.report import Edits, Notes, render_notes
from fairgate.github.runner import Annotation, annotation_lines, write_outputs

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
PAYLOADS = [payload for payload in HOSTILE if payload.strip()]
LIVE = re.compile(r"@\w|://|\bwww\.|#\d|\b[A-Z]+-\d|\b[0-9a-f]{7,}\b|mailto:|<!--", re.ASCII)
CODE_ELEMENT = re.compile(r"<code>(?:[^\x00-\x7f]|[A-Za-z0-9 ]|<wbr>&#\d+;|&nbsp;)*</code>")
URL = "https://github.com/octo/shop/actions/runs/1"


def blocks(text):
    return [token.type for token in MARKDOWN.parse(text) if token.type != "inline"]


def check(text, links, harmless):
    """Assert that `text` has the structure of its harmless twin and nothing alive in it."""
    assert "::" not in text
    assert "##[" not in text
    assert not [c for c in text if not c.isprintable() and c not in "\n\N{NO-BREAK SPACE}"]
    assert blocks(text) == blocks(harmless)
    inline = [c for t in MARKDOWN.parse(CODE_ELEMENT.sub("`code`", text)) for c in t.children or ()]
    assert not [c for c in inline if c.type == "image"]
    assert [c.attrGet("href") for c in inline if c.type == "link_open"] == links
    assert {c.content for c in inline if c.type == "html_inline"} <= {"<sub>", "</sub>"}
    assert not [c.content for c in inline if c.type == "text" and LIVE.search(c.content)]


def told(text):
    rule = {
        "metric": "asr/generation/controlled", "suite": text, "where": {text: text},
        "outcome": "fail", "reasons": [text, f"{text} x {text}"], "value": 0.5,
    }  # fmt: skip
    record = {
        "policy": text, "outcome": "fail", "exit_code": 1, "rules": [rule],
        "evidence": {"planned": 2, "decided": 1, "problems": [text]},
    }  # fmt: skip
    raw = json.dumps(record).encode()
    return render_foreign_record(read_foreign_record(raw), head="h" * 40, report_url=URL)


def notes(text):
    edits = Edits(
        files=[text, text], edits_policy=True, decided_by="base", base="❌ FAIL",
        proposed="✅ PASS", loosened=[text, f"max of {text} raised"], differences=[f"{text} and"],
    )  # fmt: skip
    return render_notes(Notes(remarks=[text, f"The base commit: {text}"], edits=edits))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_forks_words_are_dead(payload):
    try:
        payload.encode()
    except UnicodeEncodeError:
        with pytest.raises(DataError, match="not a run record"):
            told(payload)
    else:
        check(told(payload[:190]), [URL], told("word"))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_words_beside_a_report_are_dead(payload):
    check(notes(payload), [], notes("word"))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_an_annotation_is_one_command_and_an_output_one_value(payload, tmp_path):
    given = Annotation(level="error", title=payload, message=payload, file=payload, line=3)
    (line,) = annotation_lines([given])
    assert line.isprintable()
    command = re.fullmatch(r"::error file=([^,:]*),line=3,title=([^,:]*)::(.*)", line)
    assert command
    assert "::" not in command[3]
    write_outputs(str(tmp_path / "output"), {"first": payload, "second": "2"})
    outputs = parse_outputs((tmp_path / "output").read_bytes().decode())
    assert list(outputs) == ["first", "second"]
