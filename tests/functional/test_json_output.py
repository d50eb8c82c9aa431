"""What machines read: `--format json`, and completion; and where FairGate does not run."""

from __future__ import annotations

import json

import pytest

from fairgate.metrics.catalogue import METRICS
from fairgate.relations.catalogue import RELATIONS


@pytest.mark.parametrize(("command", "catalogue"), [("metrics", METRICS), ("relations", RELATIONS)])
def test_catalogues_as_json(workspace, command, catalogue):
    assert workspace.run(command, "list", "--format", "json") == 0
    found = json.loads(workspace.out)
    assert [one["id"] for one in found] == [one.id for one in catalogue]
    assert workspace.out.isascii()
    assert "::" not in workspace.out


def test_power_as_json(workspace):
    workspace.sources(20)
    workspace.policy()
    (workspace.root / "answers.jsonl").touch()
    assert workspace.run("power", "policy.yaml", "--format", "json") == 0
    (row, *_) = json.loads(workspace.out)
    assert (row["metric"], row["sources"]) == ("asr/generation/controlled", 20)
    assert row["where"] == {}


def test_windows_is_told_at_start(workspace, monkeypatch):
    monkeypatch.setattr("fairgate.cli.os.name", "nt")
    code = workspace.run("metrics", "list")
    monkeypatch.undo()
    assert code == 2
    assert "does not run on Windows itself" in workspace.err
    assert "WSL" in workspace.err


def test_a_shell_is_told_what_could_follow(workspace, monkeypatch):
    monkeypatch.setenv("_FAIRGATE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "fairgate re")
    monkeypatch.setenv("COMP_CWORD", "1")
    workspace.run()
    assert [line.partition(",")[2] for line in workspace.out.splitlines()] == [
        "rescore", "relations",
    ]  # fmt: skip
    assert workspace.err == ""
