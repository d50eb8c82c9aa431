"""What a run believes without asking again comes from no folder that a change can write."""

import os
import sqlite3
import subprocess
import sys

import pytest

from fairgate.cli import main
from fairgate.systems.result_store import SqliteResultStore

POLICY = """\
version: 1
name: stored
constant_answers: allow # a forger would vary the answers
system: {generator: {model: demo-slm}}
suites:
  - {id: sentiment, task: sentiment, sources: demo-reviews, limit: 5, perturbations: [race]}
gates:
  - {metric: asr/generation, max: 0.01}
"""


def forge(store):
    """Put the answer that is wanted in the place of each that the model gave."""
    connection = sqlite3.connect(store)
    keys = [key for (key,) in connection.execute("SELECT key FROM results WHERE kind = 'answer'")]
    value = connection.execute("SELECT value FROM results WHERE kind = 'answer'").fetchone()[0]
    connection.close()
    opened = SqliteResultStore(store)
    opened.put_many("answer", [(key, value.decode()) for key in keys])
    opened.close()


@pytest.fixture(scope="module")
def forged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forged")
    (folder / "policy.yaml").write_text(POLICY)
    store = folder / "cache" / "store.sqlite"
    run = ["run", str(folder / "policy.yaml"), "--cache", str(folder / "cache"), "--quiet"]
    assert main(run) == 1
    forge(store)
    assert main(run) == 0  # that is what a committed one could do
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return store.read_bytes()


@pytest.fixture
def project(tmp_path, monkeypatch):
    root = tmp_path / "project"
    root.mkdir()
    (root / "policy.yaml").write_text(POLICY)
    monkeypatch.chdir(root)
    monkeypatch.delenv("FAIRGATE_CACHE", raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    git("init", "-q", ".")
    return root


def git(*arguments):
    subprocess.run(["git", *arguments], check=True, capture_output=True)


def test_a_committed_store_is_refused_and_so_is_any_other_part_of_a_cache(project, forged, capsys):
    for part in ("store.sqlite", "corpora/x.jsonl", "models/org--model/config.json"):
        path = project / ".fairgate" / part
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(forged if part == "store.sqlite" else b"x")
        git("add", "-f", ".")
        assert main(["run", "policy.yaml", "--quiet"]) == 2
        said = capsys.readouterr().err
        assert f"git tracks '.fairgate/{part}' (1 in all)" in said
        assert "--cache" in said
        git("rm", "-q", "--cached", f".fairgate/{part}")
        path.rename(project / "kept") if part == "store.sqlite" else path.unlink()
    (project / "kept").rename(project / ".fairgate" / "store.sqlite")
    assert main(["run", "policy.yaml", "--quiet"]) == 0  # it is the user's own now


@pytest.mark.whole
def test_a_cache_in_a_committed_submodule_is_refused(project, forged, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "store.sqlite").write_bytes(forged)
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    git("-C", str(other), "init", "-q")
    git("-C", str(other), "add", ".")
    git("-C", str(other), *who, "commit", "-qm", "x")
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), ".fairgate")
    assert main(["run", "policy.yaml", "--quiet"]) == 2


def test_where_git_is_missing_an_old_cache_in_a_checkout_is_refused(project, monkeypatch, capsys):
    (project / ".fairgate").mkdir()
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["run", "policy.yaml", "--quiet"]) == 2
    assert "put git on the PATH" in capsys.readouterr().err


def test_stored_answers_inside_the_checkout_are_refused(job, history, tmp_path):
    (history.root / "stores").mkdir()
    (tmp_path / "link").symlink_to(history.root / "stores")
    (history.root / "way").symlink_to(tmp_path)
    for place in (
        "stores", ".", "./a/../stores", ".fairgate", str(history.root / "stores"),
        str(tmp_path / "link"), str(tmp_path / "link" / "inner"), "way/cache",
    ):  # fmt: skip
        assert job.push(history, FAIRGATE_CACHE_DIR=place) == 2, place
        assert "cache-dir is" in job.err
        assert "lies in the checkout" in job.err
        assert job.outputs["exit-code"] == "2"
    assert job.push(history, FAIRGATE_CACHE_DIR=str(tmp_path / "stores")) == 0


def test_nor_does_another_believed_folder_lie_in_it(job, history):
    for name in ("RUNNER_TEMP", "HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE"):
        assert job.push(history, **{name: str(history.root / "cache")}) == 2
        assert f"{name} is" in job.err


def test_an_interpreter_of_the_checkout_is_not_started(history, steps, tmp_path):
    trace = tmp_path / "ran"
    history.branch()
    history.write(".venv/bin/python", f'#!/bin/sh\ntouch {trace}\nexec {sys.executable} "$@"\n')
    (history.root / ".venv/bin/python").chmod(0o755)
    (history.root / "link").symlink_to(sys.executable)
    history.commit()
    for place in (".venv/bin/python", str(history.root / ".venv/bin/python"), "./link"):
        done = steps.pull(inputs={"python": place}, code=2)
        assert "lies in the checkout" in done.log
        history.git("checkout", "-q", "topic")
    assert not trace.exists()
