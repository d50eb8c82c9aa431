"""Workflow commands, outputs and summaries: nothing of a stranger's breaks out of its place."""

import re

import pytest
from action.step_runner import parse_outputs
from golden.hostile_texts import HOSTILE

from fairgate.domain.errors import StoreError
from fairgate.github.runner import Annotation, annotation_lines, append_summary, write_outputs

MORE = ["a\r::set-env::b", "50% of %0A::error::x", "title,file=x:1", "x" * 1_000_000]


@pytest.mark.walk(25)
@pytest.mark.parametrize("text", [*(one for one in HOSTILE if one.strip()), *MORE])
def test_an_annotation_is_one_command_and_an_output_one_value(text, tmp_path):
    given = Annotation(level="error", title=text, message=text, file=text, line=3)
    (line,) = annotation_lines([given])
    assert line.isprintable()
    command = re.fullmatch(r"::error file=([^,:]*),line=3,title=([^,:]*)::(.*)", line)
    assert command
    assert "::" not in command[3]
    assert not re.search(r"%(?!25|0A|0D|3A|2C)", line)
    assert len(line) < 10_000
    write_outputs(str(tmp_path / "output"), {"first": text, "second": "2"})
    outputs = parse_outputs((tmp_path / "output").read_bytes().decode())
    assert list(outputs) == ["first", "second"]


def test_the_eleventh_of_a_kind_is_a_plain_line():
    many = [Annotation(level="error", title="t", message=f"m{n}\n::error::x") for n in range(13)]
    lines = list(annotation_lines([*many, Annotation(level="warning", title="t", message="w")]))
    commands = [line for line in lines if line.startswith("::")]
    assert len(commands) == 11
    assert any("3 more of kind error" in line for line in lines)
    assert not any("::error::x" in line for line in lines)


def test_outputs_end_where_they_end(tmp_path):
    path = tmp_path / "output"
    write_outputs(str(path), {"a": "1\nEOF\nb<<EOF\nevil\nEOF", "c": "2"})
    text = path.read_text()
    delimiters = re.findall(r"^(?:a|c)<<(fairgate_[0-9a-f]{32})$", text, re.MULTILINE)
    assert len(set(delimiters)) == 2
    assert all(text.count(delimiter) == 2 for delimiter in delimiters)


def test_a_value_with_its_own_delimiter_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda _: "known")
    with pytest.raises(StoreError, match="delimiter"):
        write_outputs(str(tmp_path / "output"), {"a": "x\nfairgate_known\nb=evil"})


def test_summaries_are_appended(tmp_path):
    path = tmp_path / "summary"
    append_summary(str(path), "one")
    append_summary(str(path), "two\udc80")
    assert path.read_text() == "one\n\ntwo?\n\n"


def test_no_file_is_told_nothing_and_one_that_cannot_be_written_is_an_error_of_ours(tmp_path):
    write_outputs("", {"a": "b"})
    with pytest.raises(StoreError):
        append_summary(str(tmp_path / "no" / "folder"), "x")
