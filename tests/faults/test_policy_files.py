"""Broken and hostile policy files: a clear sentence, the right place, bounded time, no traceback."""

from __future__ import annotations

import codecs
import os
import time
from pathlib import Path

import pytest
from fakes.policies import parse_policy

from fairgate.domain.errors import ExitCode, PolicyError
from fairgate.policy.yaml_text import MAX_BYTES, decode_yaml, load_yaml, read_yaml_file

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 10)
)


def problems_of(text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "p.yaml")
    assert caught.value.exit_code == ExitCode.USAGE
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.walk(12)
@pytest.mark.parametrize(
    ("text", "first"),
    [
        (BOMB, "5:10: aliases expand to more than 10,000 values, the limit"),
        ("a: &a [*a]\n", "1:8: the alias 'a' contains itself; write the values out"),
        ("version: *nowhere\n", "1:10: the alias 'nowhere' has no anchor before it"),
        ("a: !!python/object:os.system x\n", "1:4: tags are not accepted; found 'tag:yaml.org,2002:python/object:os.system', write a plain value"),
        ("a: 1\nb: !include /etc/passwd\n", "2:4: tags are not accepted; found '!include', write a plain value"),
        ("!x\na: 1\n", "1:1: tags are not accepted; found '!x', write a plain value"),
        ("a: 1\na: 2\n", "2:1: the key 'a' is already given in line 1"),
        ("a:\n\tb: 1\n", "2:1: not valid YAML: a tab is used for indentation; YAML needs spaces"),
        ("a: 'open\nb: 1\n", "1:4: not valid YAML: a quoted text is not closed"),
        ("a: b: c\n", "1:5: not valid YAML: unexpected `: `; check the indentation, or quote the text"),
        ("a:\n  b: 1\n c: 2\n", "3:2: not valid YAML: this line's indentation does not fit the lines above it"),
        ("a: [1, 2\nb: 3\n", "2:2: not valid YAML: a list in brackets is not closed: expected `,` or `]`"),
        ("a: {b: 1\n", "2:1: not valid YAML: a mapping in braces is not closed: expected `,` or `}`"),
        ("a: @b\n", "1:4: not valid YAML: a value cannot start like this; put it in quotes"),
        ("a: 1\n---\nb: 2\n", "2:1: a second document starts here (`---`); only one is read"),
        ("a: x\0y\n", "1:5: the character U+0000 is not allowed in a text file; remove it"),
        ("a: 1\nb: \x1b[31m\n", "2:4: the character U+001B is not allowed in a text file; remove it"),
        ('a: "\\0"\n', "1:4: the text holds the character U+0000; remove it"),
        ('a: "\\ud800"\n', "1:4: the text holds the character U+D800; remove it"),
        ("? [a, b]\n: 1\n", "1:3: a key must be plain text, not a list or mapping"),
        ("1: a\n", "1:1: a key must be text; found 1, put it in quotes"),
        ("<<: {a: 1}\n", "1:1: merge keys (`<<`) are not part of YAML 1.2; repeat the keys"),
        ("[" * 100_000, "1:25: nested deeper than 24 levels, the limit"),
        ("- " * 40_000, "1:49: nested deeper than 24 levels, the limit"),
        ("a: " + "x" * 200_000, "1:1: the line is longer than 100,000 characters, the limit"),
        ("".join(f"k{n}: 1\n" for n in range(6000)), "5000:8: more than 10,000 values, the limit; split the file"),
        ("x" * (MAX_BYTES + 1), "1:1: the text is larger than 1 MiB, the limit for files of this kind"),
        ("%FOO bar\n", "2:1: not valid YAML"),
        ("%YAML 9.0\n---\na: 1\n", "1:1: not valid YAML"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)  # fmt: skip
def test_each_defect_has_its_sentence_and_place(text, first):
    assert any(problem.startswith(f"p.yaml:{first}") for problem in problems_of(text))


def test_defects_of_yaml_and_of_the_schema_come_together():
    text = "version: 1\nversion: 2\nname: !x n\nsystem: {generator: {modl: m}}\ngates: {}\n"
    assert problems_of(text) == [
        "p.yaml:1:1: `suites` is missing; add it: What is tested",
        "p.yaml:2:1: the key 'version' is already given in line 1; keep one of them",
        "p.yaml:3:7: tags are not accepted; found '!x', write a plain value",
        "p.yaml:4:22: unknown key `modl` in `system.generator`; did you mean `model`?",
        "p.yaml:5:1: gates: found an empty mapping, expected a list",
    ]


@pytest.mark.parametrize("key", ["<<mapping>", "<mapping>", "<scalar>", "'<<'", "''"])
def test_odd_keys_are_unknown_keys(key):
    assert any(
        f"unknown key `{key.strip(chr(39))}`" in p or "merge keys" in p
        for p in problems_of(f"{key}: 1\n")
    )


def test_what_could_not_be_read_is_not_called_missing():
    assert len(problems_of("version: 1\nname: 'x\n")) == 1


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: " + "&x " * 300_000, id="anchors"),
        pytest.param("!" * 99_000 + "\n" + "!" * 99_000, id="bangs"),
        pytest.param("a: b\n" + "  c\n" * 250_000, id="plain lines"),
        pytest.param("#\n" * 500_000, id="comments"),
        pytest.param("? " * 300_000, id="question marks"),
        pytest.param("{a: " * 200_000, id="braces"),
        pytest.param('a: "' + "\\x41" * 20_000 + '"', id="escapes"),
    ],
)
def test_a_hostile_megabyte_costs_seconds_at_most(text):
    start = time.process_time()
    load_yaml(text, "p.yaml")
    # Measured 0.0 to 1.5 s; the bound only tells linear time from quadratic (minutes).
    assert time.process_time() - start < 20


def test_a_message_cannot_command_a_ci_runner_or_a_terminal():
    text = 'name: "::error file=x::\\u202e\\e[31m ##[error]\\nx"\n"::set-output name=a::b": 1\n'
    for problem in problems_of(text):
        assert "::" not in problem
        assert "##[" not in problem
        assert problem.isprintable()


def test_a_path_cannot_either():
    with pytest.raises(PolicyError) as caught:
        parse_policy("", "::error::\n.yaml")
    assert str(caught.value).startswith(": :error: :\\n.yaml:1:1: the file is empty")


def test_long_values_are_cut():
    (problem,) = [p for p in problems_of("name: " + "A" * 5000 + "\n") if "name:" in p]
    assert len(problem) < 250
    assert "…" in problem


def test_a_ten_megabyte_file_is_refused_unread(tmp_path):
    file = tmp_path / "big.yaml"
    with file.open("wb") as stream:
        stream.truncate(10 * 1024 * 1024)
    with pytest.raises(PolicyError, match=r"big\.yaml:1:1: the file is larger than 1 MiB"):
        read_yaml_file(file)


def test_bytes_that_are_not_utf8_are_placed():
    with pytest.raises(PolicyError) as caught:
        decode_yaml("a: 1\nbé: x".encode() + b"\xff\n", "p.yaml")
    said = "p.yaml:2:6: byte 0xff is not UTF-8; save the file with encoding UTF-8"
    assert str(caught.value) == said


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-16-le", "utf-32"])
def test_utf16_is_named(tmp_path, encoding):
    """With its mark by its name; without, by the characters that it leaves in a text."""
    raw = "a: 1\nb: Zoë\n".encode(encoding)
    raw = codecs.BOM_UTF16_BE + raw if encoding == "utf-16-be" else raw
    (tmp_path / "p.yaml").write_bytes(raw)
    with pytest.raises(PolicyError) as caught:
        read_yaml_file(tmp_path / "p.yaml")
    is_marked = raw[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    words = "p.yaml:1:1: the file is in UTF-16 or UTF-32; save the file with encoding UTF-8"
    assert (words in str(caught.value)) == is_marked


@pytest.mark.parametrize("name", ["missing.yaml", ".", "a\0b"])
def test_files_that_cannot_be_read(tmp_path, name):
    with pytest.raises(PolicyError, match="the file cannot be read"):
        read_yaml_file(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("a: 1")
    file.chmod(0)
    with pytest.raises(PolicyError, match="Permission denied"):
        read_yaml_file(Path(file))
