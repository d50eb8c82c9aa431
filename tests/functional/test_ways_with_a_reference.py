"""A policy with a reference in parts, after an interruption, and mutated."""

import shutil
from pathlib import Path

import pytest
from calibration.kill_score import MutantSearch, kill_score
from fakes.shards import in_parts, merged, whole

GATES = """\
  - {metric: shift/answer, max: 0.05, evidence: significant}
  - {parity: answers, max: 0.05}
"""
SYSTEM, REFERENCE = "system: {recorded: answers.jsonl}\n", "reference: {recorded: before.jsonl}\n"
ITEMS = """\
version: 1
name: items
system: {recorded: answers.jsonl}
reference: {recorded: before.jsonl}
suites:
  - {id: b, kind: bbq, items: demo-bbq, settings: [none], limit: 12}
  - {id: s, task: sentiment, sources: sources.jsonl, perturbations: [gender]}
constant_answers: allow
gates:
  - {metric: shift/option, max: 0.2, evidence: significant}
  - {metric: shift/answer, max: 0.2, evidence: significant}
"""


def answered(row):
    """Answer as the system and as its reference do: they differ for one identity."""
    options = row.get("options")
    if options:
        return options[len(row["key"]) % len(options)]
    return "positive" if int(row["key"][1:].split("#")[0]) % 2 else "negative"


def turned(row):
    said = answered(row)
    if row["key"].endswith("gender/woman"):
        return "negative" if said == "positive" else "positive"
    return said


@pytest.mark.walk(1)
@pytest.mark.parametrize("of", [2, 5])
def test_parts_give_the_bytes_of_one_process(workspace, of):
    """Question items and pairs; both sides of a source are in its part."""
    (workspace.root / "policy.yaml").write_text(ITEMS)
    (workspace.root / "before.jsonl").touch()
    workspace.respond(answered)
    shutil.copy(workspace.root / "answers.jsonl", workspace.root / "before.jsonl")
    workspace.respond(turned)
    expected = whole(workspace.run, "policy.yaml")
    assert b"@reference" in expected["executions.jsonl"]
    in_parts(workspace.run, "policy.yaml", of)
    assert merged(workspace.run) == expected, workspace.said


def test_parts_that_asked_beside_another_reference_are_refused(workspace):
    workspace.policy(GATES)
    workspace.edit(SYSTEM, SYSTEM + REFERENCE)
    workspace.write("before.jsonl", [])
    workspace.respond(answered)
    shutil.copy(workspace.root / "answers.jsonl", workspace.root / "before.jsonl")
    shutil.copy(workspace.root / "answers.jsonl", workspace.root / "other.jsonl")
    in_parts(workspace.run, "policy.yaml", 2)
    workspace.edit("before.jsonl", "other.jsonl")
    assert workspace.run("merge", "policy.yaml", "parts", "--out", "out", "--quiet") == 2
    assert "another" in workspace.said or "system" in workspace.said


APP = """\
import pathlib
def ask(prompt):
    return counted("own", prompt)
def before(prompt):
    if pathlib.Path("stop").exists() and lines("beside") >= 5:
        raise RuntimeError("the server is gone")
    return counted("beside", prompt)
def lines(name):
    path = pathlib.Path(name)
    return len(path.read_text().splitlines()) if path.exists() else 0
def counted(name, prompt):
    with pathlib.Path(name).open("a") as file:
        file.write("asked\\n")
    return "positive" if len(prompt) % 2 else "negative"
"""
ASKING = """\
version: 1
name: asking
system: {python: "app_beside:ask"}
reference: {python: "app_beside:before"}
suites:
  - {id: s, task: sentiment, sources: sources.jsonl, perturbations: [gender]}
constant_answers: allow
gates:
  - {metric: shift/answer, max: 0.9}
"""


def test_a_run_that_stopped_at_the_reference_goes_on_there(workspace, monkeypatch):
    """No question is put to either side twice, and the bytes are those of a run without a stop."""
    workspace.sources(3)
    (workspace.root / "policy.yaml").write_text(ASKING)
    (workspace.root / "app_beside.py").write_text(APP)
    monkeypatch.syspath_prepend(str(workspace.root))
    asked = len(workspace.plan())
    (workspace.root / "stop").touch()
    options = ("--allow-python", "--out", "out")
    assert workspace.run("run", "policy.yaml", *options) not in (0, 1)
    (workspace.root / "stop").unlink()
    code = workspace.run("run", "policy.yaml", *options)
    assert code in (0, 5), workspace.said
    count = {
        name: len((workspace.root / name).read_text().splitlines()) for name in ("own", "beside")
    }
    assert count["own"] == asked
    assert asked <= count["beside"] <= asked + 5
    first = (workspace.root / "out/executions.jsonl").read_bytes()
    assert workspace.run("run", "policy.yaml", *options, "--cache", "fresh") == code
    assert (workspace.root / "out/executions.jsonl").read_bytes() == first


@pytest.mark.whole
def test_mutants_of_the_system_are_caught_by_rules_about_the_reference(workspace):
    """Biases are planted in the system's answers, never in the reference's."""
    workspace.policy(GATES)
    workspace.edit(SYSTEM, SYSTEM + REFERENCE)
    workspace.edit("[race, gender]", "[gender]")
    workspace.write("before.jsonl", [])
    workspace.answers("positive")
    shutil.copy(workspace.root / "answers.jsonl", workspace.root / "before.jsonl")
    assert workspace.run("run", "policy.yaml", "--out", "out") == 0
    search = MutantSearch(stated=0.5, seeds=2)
    score = kill_score(Path("policy.yaml"), Path("out"), search)
    killed = {
        item["mutant"]["where"].get("term")
        for item in score["found"]
        if item["mutant"]["kind"] == "answers" and item["smallest"]
    }
    assert "woman" in killed
