"""Parts of a run belong to one workflow run, of one head and one base: others are never merged."""

from __future__ import annotations

import json
import shutil

import pytest
from action.test_merge_action import Matrix
from fakes.shards import rewritten

from fairgate.cli import main


@pytest.fixture
def matrix(steps):
    return Matrix(steps)


def manifests(matrix):
    return [json.loads(path.read_text()) for path in sorted(matrix.folder.rglob("shard.json"))]


def changed(matrix, name, value, parts=(1, 2, 3)):
    """Let parts say that they are of another run."""
    for number in parts:
        for path in (matrix.folder / f"fairgate-part-{number}").rglob("shard.json"):
            manifest = json.loads(path.read_text())
            manifest["identity"][name] = value
            text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
            rewritten(path.parent, "shard.json", lambda _, text=text: text)


def test_good_parts_are_not_merged_at_a_bad_head(history, matrix, steps):
    history.branch()
    history.write("app.js", "good")
    good = history.commit()
    payload = steps.merged()
    matrix.ask(payload)
    assert matrix.decide(payload).code == 0
    history.git("checkout", "--quiet", good)
    history.write("app.js", "bad")
    history.commit()
    done = matrix.decide(steps.merged())
    assert done.code == 2, done.log
    assert done.outputs["outcome"] == "error"
    assert "it was asked for another 'head commit' than this run is of" in done.log


@pytest.mark.parametrize("parts", [(1, 2, 3), (2,)])
def test_every_other_identity_is_refused(history, matrix, steps, parts):
    history.branch()
    history.write("notes.md", "good")
    history.commit()
    payload = steps.merged()
    matrix.ask(payload)
    assert matrix.decide(payload).code == 0
    before = matrix.folder.with_name("kept")
    shutil.copytree(matrix.folder, before)
    first, *others = manifests(matrix)
    assert all(one["identity"] == first["identity"] for one in others)
    assert set(first["identity"]) == {"repository", "workflow run", "head commit", "base commit"}
    assert all(first["identity"].values())
    refused = 0
    for name in first["identity"]:
        for value in ("", "0" * 40):
            shutil.rmtree(matrix.folder)
            shutil.copytree(before, matrix.folder)
            changed(matrix, name, value, parts)
            done = matrix.decide(payload)
            assert done.code == 2, (name, value, done.log)
            assert name in done.log or "are missing" in done.log
            refused += 1
    assert refused == 8


def test_parts_of_ci_are_merged_elsewhere_if_they_are_of_one_run(history, matrix, steps, capsys):
    history.branch()
    history.write("notes.md", "good")
    history.commit()
    matrix.ask(steps.merged())
    merge = ["merge", "policies/small.yaml", str(matrix.folder), "--out", "../out", "--quiet"]
    assert main(merge) == 0, capsys.readouterr().err
    changed(matrix, "head commit", "0" * 40, (3,))
    assert main(merge) == 2
    assert "head commit" in capsys.readouterr().err
