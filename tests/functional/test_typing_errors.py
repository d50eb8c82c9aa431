"""Typing errors: the message names the thing that was probably meant."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("rnu", "run"), ("chekc", "check"), ("baselines", "baseline"), ("burnin", "burn-in")],
)
def test_a_mistyped_command(workspace, typed, meant):
    assert workspace.run(typed, "policy.yaml") == 2
    assert f"no command is called '{typed}'; did you mean `{meant}`?" in workspace.err


def test_a_word_that_is_no_command(workspace):
    assert workspace.run("xyzzy") == 2
    assert "no command is called 'xyzzy'; see `fairgate --help`" in workspace.err
    assert workspace.run("baseline", "acept", "run") == 2
    assert "accept" in workspace.err


def test_a_mistyped_file_of_one_s_own(workspace):
    workspace.sources()
    workspace.policy()
    (workspace.root / "data").mkdir()
    (workspace.root / "data" / "answers.jsonl").touch()
    text = (workspace.root / "policy.yaml").read_text()
    text = text.replace("recorded: answers.jsonl", "recorded: data/anwsers.jsonl")
    (workspace.root / "policy.yaml").write_text(text.replace("sources.jsonl", "source.jsonl"))
    assert workspace.run("check", "policy.yaml") == 2
    assert "did you mean `data/answers.jsonl`?" in workspace.err
    assert "did you mean `sources.jsonl`?" in workspace.err


@pytest.mark.parametrize(("between", "said"), [(";", "`;`"), ("|", "`|`"), ("\t", "tabs")])
def test_another_separator_than_the_comma(workspace, between, said):
    rows = [("id", "text"), ("1", "One."), ("2", "Two.")]
    (workspace.root / "s.csv").write_text("".join(between.join(row) + "\n" for row in rows))
    workspace.policy()
    (workspace.root / "answers.jsonl").touch()
    text = (workspace.root / "policy.yaml").read_text().replace("sources.jsonl", "s.csv")
    (workspace.root / "policy.yaml").write_text(text)
    assert workspace.run("check", "policy.yaml") == 2
    assert f"with {said} between its names; expected commas in .csv" in workspace.err
