"""A first mistake is told in one line: its place, what was found, what was expected, what to do."""

import pytest

from fairgate.cli import main

POLICY = """\
version: 1
name: first
system: {generator: {model: demo-slm}}
suites:
  - {id: s, task: sentiment, sources: demo-reviews, perturbations: [gender], control: paper}
gates:
  - {metric: asr/generation, max: 0.9}
"""
SUITES = POLICY[POLICY.index("suites:") : POLICY.index("gates:")]
MISTAKES = {
    "suits": (("suites:", "suits:"), "first.yaml:4:1: unknown key `suits`; did you mean `suites`?"),
    "threshold": (("max:", "threshold:"), "7:30: unknown key `threshold` in `gates[0]`; write `max` or `min`"),
    "tolerance": (("max: 0.9", "max: 0.9, tolerance: 0.1"), "7:40: unknown key `tolerance` in `gates[0]`; write `regression`"),
    "maximum": (("max:", "upper:"), "7:30: unknown key `upper` in `gates[0]`; write `max`"),
    "rules": (("gates:", "rules:"), "6:1: unknown key `rules`; write `gates`"),
    "dataset": (("sources:", "dataset:"), "5:30: unknown key `dataset` in `suites[0]`; write `sources`"),
    "empty system": (("system: {generator: {model: demo-slm}}", "system:"), "3:1: system: found nothing, expected a mapping with `retriever`, `generator`"),
    "empty gate": (("{metric: asr/generation, max: 0.9}", ""), "7:4: gates[0]: found nothing, expected a mapping with `parity` or `metric`"),
    "outside": (("sources: demo-reviews", "sources: ../x.csv"), "5:30: '../x.csv' leads out of '.'; expected a path inside it: put the file there"),
}  # fmt: skip


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main(list(arguments))
        return code, "".join(capsys.readouterr())

    return run


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_policy_is_one_line(call, tmp_path, name):
    (old, new), said = MISTAKES[name]
    assert old in POLICY
    (tmp_path / "first.yaml").write_text(POLICY.replace(old, new))
    code, told = call("check", "first.yaml", "--root", ".")
    assert code == 2
    assert said in told
    lines = [line for line in told.splitlines() if "first.yaml:" in line]
    expected = 2 if name == "dataset" else 1  # the key that is lacking then
    assert len(lines) == expected, told


@pytest.mark.parametrize("command", ["check", "run", "plan", "doctor", "power"])
def test_a_policy_that_is_not_there_is_told_with_those_that_are(call, tmp_path, command):
    code, told = call(command, "nope.yaml")
    assert (code, "there are" in told, "`fairgate init` writes a policy" in told) == (
        2,
        False,
        True,
    )
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "mine.yaml").write_text(POLICY)
    (tmp_path / "other.yaml").write_text(POLICY)
    (tmp_path / "task.yaml").write_text("id: mood\n")
    code, told = call(command, "nope.yaml")
    assert code == 2
    assert "'nope.yaml' does not exist; there are `other.yaml` and `policies/mine.yaml`;" in told


OF_RUNS = [
    "rescore RUN", "explain RUN s1#race/black", "baseline accept RUN --reason x",
    "baseline anchor RUN --reason x", "merge first.yaml RUN",
    "comment RUN",
]  # fmt: skip


@pytest.mark.parametrize("command", OF_RUNS)
def test_a_folder_that_is_no_run_is_a_mistake_of_the_call(call, tmp_path, command):
    (tmp_path / "first.yaml").write_text(POLICY)
    (tmp_path / "RUN").mkdir()
    (tmp_path / "RUN" / "notes.txt").write_text("x")
    code, told = call(*command.split())
    assert code == 2, told
    assert "RUN" in told


def test_a_model_that_is_not_here_is_a_note_of_check(call, tmp_path):
    (tmp_path / "first.yaml").write_text(POLICY.replace("demo-slm", "someone/small-model"))
    code, told = call("check", "first.yaml")
    assert code == 0
    assert "'someone/small-model' is no folder here" in told
    code, told = call("check", "first.yaml", "--models")
    assert code == 2
    assert "first.yaml:3:" in told
    assert "'someone/small-model' is no folder here" in told
    (tmp_path / "first.yaml").write_text(POLICY)
    code, told = call("check", "first.yaml", "--models")
    assert code == 0
    assert "is no folder here" not in told
