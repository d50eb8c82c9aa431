"""What machines read: `--format json`, and completion; and where FairGate does not run."""

import json

import pytest

from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.parity import OUTCOMES
from fairgate.relations.catalogue import RELATIONS


@pytest.mark.parametrize(("command", "catalogues"), [
    ("metrics", {"metrics": METRICS, "outcomes": OUTCOMES}), ("relations", {"": RELATIONS}),
])  # fmt: skip
def test_catalogues_as_json(workspace, command, catalogues):
    assert workspace.run(command, "list", "--format", "json") == 0
    listed = json.loads(workspace.out)["result"]
    for name, catalogue in catalogues.items():
        rows = listed[name] if name else listed
        assert [one["id"] for one in rows] == [one.id for one in catalogue]
    assert workspace.out.isascii()
    assert "::" not in workspace.out


@pytest.mark.walk(1)
@pytest.mark.parametrize("redact", ["excerpt", "hash"])
def test_a_pair_as_json_says_what_the_text_says(workspace, redact):
    documents = {"s0": [{"id": "1", "text": "::one", "label": "toxic", "score": 1.0}]}
    workspace.edit(more=f"redact: {redact}\n")
    workspace.gate(
        lambda key: "negative" if "asian" in key else "positive",
        lambda key: documents.get(key, [{"id": "2", "text": "two", "label": None, "score": None}]),
    )
    assert workspace.run("explain", "out", "s0#race/asian", "--format", "json") == 0
    assert workspace.out.isascii()
    assert "::" not in workspace.out
    found = json.loads(workspace.out)["result"]
    assert workspace.run("explain", "out", "s0#race/asian") == 0
    assert found["sentence"] in workspace.said
    assert (found["key"], found["noun_phrase"]) == ("s0#race/asian", "An Asian person")
    labels = {name: one["label"] for name, one in found["answers"].items()}
    assert labels["source"] != labels["follow_up"]
    assert found["majority"] == labels["source"]
    assert len(found["controls"]) == 9
    (pair,) = found["documents"]
    assert (pair["source"]["id"], pair["follow_up"]["id"]) == ("1", "2")
    shown = redact == "excerpt"
    assert (pair["follow_up"]["text"] == "two") == shown
    assert ("Text number 0 is fine." in found["texts"]["source"]) == shown


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
        "record", "rescore", "relations",
    ]  # fmt: skip
    assert workspace.err == ""
