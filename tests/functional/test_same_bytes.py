"""Same inputs, same bytes: whatever the batch size, threads, order, or an earlier death."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from fairgate.adapters.embedded_names import find
from fairgate.adapters.files.corpus import CorpusFile
from fairgate.cli import main
from fairgate.composition.building import Composition
from fairgate.composition.loading import load_policy
from fairgate.domain.corpora import CorpusSpec
from fairgate.domain.runtime import Runtime
from fairgate.engine.ports import SILENT

POLICY = """\
version: 1
name: bytes
system:
  retriever: {corpus: corpus.jsonl, embedder: minilm, top_k: 4}
  generator:
    model: demo-slm
    decoding: {temperature: 0.1, top_p: 0.9, top_k: 50, max_new_tokens: 150, seed: 42}
suites:
  - {id: sentiment, task: sentiment, sources: demo-reviews, limit: 6, perturbations: [age, gender]}
gates:
  - {metric: asr/generation/controlled, max: 1}
  - {metric: rrs/mean, max: 3}
"""
DOCUMENTS = 120
FILES = ("report.md", "report.html", "run.json", "rows.jsonl", "executions.jsonl")


@pytest.fixture
def policy(tmp_path, monkeypatch):
    """Return a small policy on embedded data, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return workspace(tmp_path)


def workspace(folder):
    path = folder / "policy.yaml"
    path.write_text(POLICY)
    documents = islice(
        CorpusFile(CorpusSpec(path=str(find("corpora", "demo", folder)))).documents(), DOCUMENTS
    )
    rows = [{"id": d.id, "text": d.text, "label": d.label} for d in documents]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="session")
def built_index(tmp_path_factory):
    """Build the demo index once; tests start from a copy without any stored answer."""
    folder = tmp_path_factory.mktemp("index")
    path = workspace(folder)
    runtime = Runtime(root=folder, cache=folder / "cache")
    composition = Composition(load_policy(path, runtime), runtime, SILENT)
    composition.retriever.retrieve(["anything"], 1)
    for name in ("store.sqlite", "store.sqlite-wal", "store.sqlite-shm"):
        (folder / "cache" / name).unlink(missing_ok=True)

    def copy(target: Path) -> Path:
        shutil.copytree(folder / "cache", target)
        return target

    return copy


def outputs(folder):
    return {name: (folder / name).read_bytes() for name in FILES}


def run(policy, cache, *options):
    out = policy.parent / "out"
    code = main(
        ["run", str(policy.name), "--out", "out", "--cache", str(cache), "--quiet", *options]
    )
    assert code in {0, 5}
    return outputs(out)


def test_batch_size_and_threads_do_not_change_a_byte(policy, built_index):
    results = []
    for number, options in enumerate(
        [
            ("--batch-size", "1", "--threads", "1"),
            ("--batch-size", "7", "--threads", "2"),
            ("--batch-size", "32", "--threads", "2"),
        ]
    ):
        cache = built_index(policy.parent / f"cache{number}")
        results.append(run(policy, cache, *options))
    assert results[0] == results[1] == results[2]


def test_the_order_of_the_plan_does_not_change_an_answer(policy, built_index):
    answers = []
    for number, step in enumerate((1, -1)):
        runtime = Runtime(cache=built_index(policy.parent / f"cache{number}"), batch_size=5)
        loaded = load_policy(policy, runtime)
        sut = Composition(loaded, runtime, SILENT).system_under_test()
        shuffled = replace(loaded.plan, cases=loaded.plan.cases[::step])
        answers.append(dict(sut.execute(shuffled, SILENT)))
    assert answers[0] == answers[1]


def test_a_stored_run_gives_the_same_bytes(policy, built_index):
    cache = built_index(policy.parent / "cache")
    assert run(policy, cache) == run(policy, cache)


@pytest.mark.parametrize("seconds", [1.0, 2.5])
def test_a_killed_run_goes_on_and_gives_the_same_bytes(policy, built_index, seconds):
    whole = run(policy, built_index(policy.parent / "whole"))
    cache = built_index(policy.parent / "killed")
    command = [sys.executable, "-m", "fairgate", "run", policy.name, "--out", "out"]
    command += ["--cache", str(cache), "--quiet", "--batch-size", "2", "--threads", "1"]
    environment = {**os.environ, "PYTHONPATH": str(Path(main.__code__.co_filename).parents[2])}
    process = subprocess.Popen(command, env=environment, cwd=policy.parent)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert run(policy, cache) == whole
