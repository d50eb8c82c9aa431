"""Same inputs, same bytes: whatever the batch size, threads, order, or an earlier death."""

import shutil
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
  - {id: sentiment, task: sentiment, sources: demo-reviews, limit: 2, perturbations: [gender]}
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
