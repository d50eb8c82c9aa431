"""Typing errors: the message names the thing that was probably meant."""

import pytest


@pytest.mark.parametrize(("typed", "said"), [
    *(
        (typed, f"no command is called '{typed}'; did you mean `{meant}`?")
        for typed, meant in (
            ("rnu", "run"), ("chekc", "check"), ("baselines", "baseline"),
        )
    ),
    ("xyzzy", "no command is called 'xyzzy'; see `fairgate --help`"),
    ("baseline acept", "accept"),
])  # fmt: skip
def test_a_mistyped_command(workspace, typed, said):
    assert workspace.run(*typed.split(), "policy.yaml") == 2
    assert said in workspace.err


def test_a_mistyped_file_of_one_s_own(workspace):
    (workspace.root / "data").mkdir()
    (workspace.root / "data" / "answers.jsonl").touch()
    workspace.edit("recorded: answers.jsonl", "recorded: data/anwsers.jsonl")
    workspace.edit("sources.jsonl", "source.jsonl")
    assert workspace.run("check", "policy.yaml") == 2
    assert "did you mean `data/answers.jsonl`?" in workspace.err
    assert "did you mean `sources.jsonl`?" in workspace.err


@pytest.mark.parametrize(("between", "said"), [(";", "`;`"), ("|", "`|`"), ("\t", "tabs")])
def test_another_separator_than_the_comma(workspace, between, said):
    rows = [("id", "text"), ("1", "One."), ("2", "Two.")]
    (workspace.root / "s.csv").write_text("".join(between.join(row) + "\n" for row in rows))
    workspace.edit("sources.jsonl", "s.csv")
    assert workspace.run("check", "policy.yaml") == 2
    assert f"with {said} between its names; expected commas in .csv" in workspace.err
