"""Same inputs, same bytes: whatever the batch size, threads, order, or an earlier death."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fakes.corpus import write_demo_documents

from fairgate.cli import main
from fairgate.domain.ports import SILENT, Runtime
from fairgate.gate.composition import Composition
from fairgate.gate.loaded_policy import load_policy

pytestmark = pytest.mark.xdist_group("same bytes")  # one worker, so that `whole` is run once
POLICY = """\
version: 1
name: bytes
system:
  retriever: {corpus: corpus.jsonl, embedder: minilm, top_k: 4}
  generator:
    model: demo-slm
    decoding: {temperature: 0.1, top_p: 0.9, top_k: 50, max_new_tokens: 40, seed: 42}
suites:
  - {id: sentiment, task: sentiment, sources: demo-reviews, limit: 3, perturbations: [gender]}
gates:
  - {metric: asr/generation, max: 0.99}
  - {metric: rrs/mean, max: 2.9}
"""
DOCUMENTS = 60
FILES = ("report.md", "report.html", "run.json", "rows.jsonl", "executions.jsonl")


@pytest.fixture
def policy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return workspace(tmp_path)


def workspace(folder):
    path = folder / "policy.yaml"
    path.write_text(POLICY)
    write_demo_documents(folder, DOCUMENTS)
    return path


@pytest.fixture(scope="session")
def built_index(tmp_path_factory):
    """Build the demo index once; tests start from a copy without any stored answer."""
    folder = tmp_path_factory.mktemp("index")
    path = workspace(folder)
    runtime = Runtime(root=folder, cache=folder / "cache", threads=1)
    composition = Composition(load_policy(path, runtime), runtime, SILENT)
    composition.system.retriever.retrieve(["anything"], 1)
    for name in ("store.sqlite", "store.sqlite-wal", "store.sqlite-shm"):
        (folder / "cache" / name).unlink(missing_ok=True)

    def copy(target: Path) -> Path:
        shutil.copytree(folder / "cache", target)
        return target

    return copy


class Whole:
    """One run that nothing disturbed, to which the others are held: its bytes and its store."""

    def __init__(self, folder, cache):
        self._cache = cache
        self.outputs = run(workspace(folder), cache, "--batch-size", "32", "--threads", "1")

    def stored(self, target):
        shutil.copytree(self._cache, target)
        return target


@pytest.fixture(scope="session")
def whole(tmp_path_factory, built_index):
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return Whole(folder, built_index(folder / "cache"))


def outputs(folder, cache):
    """Return the bytes of the files; the cache's path, which commands name, is another each time."""
    return {
        name: (folder / name).read_bytes().replace(str(cache).encode(), b"CACHE") for name in FILES
    }


def run(policy, cache, *options):
    out = policy.parent / "out"
    code = main(
        ["run", str(policy.name), "--out", "out", "--cache", str(cache), "--quiet", *options]
    )
    assert code in {0, 5}
    return outputs(out, cache)


@pytest.mark.walk(1)
@pytest.mark.parametrize("options", [(1, 1), (7, 2)], ids=str)
def test_batch_size_and_threads_do_not_change_a_byte(policy, built_index, whole, options):
    batch, threads = map(str, options)
    cache = built_index(policy.parent / "cache")
    assert run(policy, cache, "--batch-size", batch, "--threads", threads) == whole.outputs


@pytest.mark.whole
def test_the_order_of_the_plan_does_not_change_an_answer(policy, built_index, whole):
    stored, fresh = (
        Runtime(cache=cache, batch_size=5, threads=1)
        for cache in (whole.stored(policy.parent / "a"), built_index(policy.parent / "b"))
    )
    loaded = load_policy(policy, stored)
    answers = dict(Composition(loaded, stored, SILENT).system.execute(loaded.plan.cases, SILENT))
    backwards = loaded.plan.cases[::-1]
    sut = Composition(load_policy(policy, fresh), fresh, SILENT).system
    assert dict(sut.execute(backwards, SILENT)) == answers


@pytest.mark.whole
def test_a_stored_run_gives_the_same_bytes(policy, whole):
    assert run(policy, whole.stored(policy.parent / "cache")) == whole.outputs


DYING = """
    import os, signal, sys
    from fairgate.systems.result_store import SqliteResultStore
    from fairgate.cli import main

    place, batches = sys.argv[1], int(sys.argv[2])
    put_many = SqliteResultStore.put_many

    def dying(self, kind, rows):
        global batches
        answers = kind == "answer"
        batches -= answers
        if answers and batches < 0 and place == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        put_many(self, kind, rows)
        if answers and batches < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    SqliteResultStore.put_many = dying
    main(sys.argv[3:])
"""


def killed(options, place, batches):
    """Run a command that dies before or after it stores its next batch of answers."""
    command = [sys.executable, "-c", textwrap.dedent(DYING), place, str(batches), *options]
    environment = {**os.environ, "PYTHONPATH": str(Path(main.__code__.co_filename).parents[2])}
    return subprocess.run(command, env=environment, check=False).returncode


@pytest.mark.whole
@pytest.mark.parametrize(("place", "batches"), [("before", 0), ("after", 6)])
def test_a_killed_run_goes_on_and_gives_the_same_bytes(policy, built_index, whole, place, batches):
    """Killed before its first answer is stored, and in the second wave of cases."""
    cache = built_index(policy.parent / "killed")
    options = ["run", policy.name, "--out", "out", "--cache", str(cache), "--quiet"]
    options += ["--batch-size", "4", "--threads", "1"]
    assert killed(options, place, batches) == -signal.SIGKILL
    assert run(policy, cache, "--threads", "1") == whole.outputs


@pytest.mark.whole
def test_two_parts_of_which_one_was_killed_give_the_same_bytes(policy, built_index, whole):
    """Attribution's questions follow from all answers; `merge` finds what the one process asked."""
    caches = [built_index(policy.parent / f"cache-{part}") for part in (1, 2)]
    for number, cache in enumerate(caches, start=1):
        options = ["run", policy.name, "--cache", str(cache), "--quiet", "--out", f"parts/{number}"]
        options += ["--shard", f"{number}/2", "--batch-size", str(3 + number)]
        if number == 2:
            assert killed(options, "after", 0) == -signal.SIGKILL
            assert not (policy.parent / "parts" / "2" / "shard.json").exists()
        assert main(options) == 0
    merging = whole.stored(policy.parent / "merging")
    merge = ["merge", policy.name, "parts", "--out", "out", "--quiet"]
    assert main([*merge, "--cache", str(merging)]) in {0, 5}
    assert outputs(policy.parent / "out", merging) == whole.outputs
