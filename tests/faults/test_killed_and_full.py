"""SIGKILL at any moment, a full disk, a folder that cannot be written: nothing is lost."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest
from fakes.corpus import ListCorpus
from fakes.embedder import HashEmbedder

from fairgate.domain.errors import StoreError
from fairgate.domain.executions import CorpusSpec
from fairgate.retrieval.embedding_cache import BATCH, CachedEmbedder
from fairgate.retrieval.flat_index import FlatIndex
from fairgate.retrieval.preparation import prepare_corpus
from fairgate.systems.result_store import SqliteResultStore

TEXTS = [f"document {i}" for i in range(8 * BATCH)]
FAKES = os.path.join(os.path.dirname(__file__), "..")  # noqa: PTH118, PTH120

BUILD = """
    import signal, sys
    from fakes.corpus import ListCorpus
    from fakes.embedder import HashEmbedder
    from fairgate.retrieval.embedding_cache import BATCH, CachedEmbedder
    from fairgate.retrieval.flat_index import FlatIndex
    from fairgate.systems.result_store import SqliteResultStore

    class Pausing(HashEmbedder):
        def embed(self, texts):
            vectors = super().embed(texts)
            if len(self.embedded) >= int(sys.argv[2]) * BATCH:
                print("waits", flush=True)
                signal.pause()
            return vectors

    texts = [f"document {i}" for i in range(8 * BATCH)]
    store = SqliteResultStore(sys.argv[1] + "/store.sqlite")
    FlatIndex(ListCorpus(texts), CachedEmbedder(Pausing(), store)).retrieve(["q"], 4)
"""


def without_override():
    """Return the prefix under which root, like anybody else, may not write everywhere."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root needs setpriv (util-linux) to give up writing everywhere")
    return [setpriv, "--inh-caps=-dac_override", "--bounding-set=-dac_override"]


def started(script, folder, *arguments, prefix=()):
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", textwrap.dedent(script), str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([FAKES, *sys.path])},
    )


@pytest.mark.walk(1)
@pytest.mark.parametrize("batches", [1, 4, 8])
def test_a_killed_index_loses_at_most_a_batch_of_vectors(tmp_path, batches):
    process = started(BUILD, tmp_path, str(batches))
    with contextlib.closing(process.stdout), contextlib.closing(process.stderr):
        assert process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    store = SqliteResultStore(tmp_path / "store.sqlite")
    inner = HashEmbedder()
    answers = FlatIndex(ListCorpus(TEXTS), CachedEmbedder(inner, store)).retrieve(["q"], 4)
    assert len(inner.embedded) - 1 <= (8 - batches + 1) * BATCH
    assert store.notices == []
    store.close()
    assert FlatIndex(ListCorpus(TEXTS), HashEmbedder()).retrieve(["q"], 4) == answers


ATTEMPTS = """
    import resource, sys
    from fairgate.domain.errors import StoreError
    from fairgate.io.durable import write_bytes
    from fairgate.systems.result_store import SqliteResultStore

    def tell(*attempts):
        for attempt in attempts:
            try:
                attempt()
                print("no error")
            except StoreError as error:
                print(error)
"""
FULL = f"""{ATTEMPTS}
    # The kernel refuses files over this size: the write itself fails, as on a full disk.
    sys.dont_write_bytecode = True  # a compiled module would be cut without a word
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    tell(
        lambda: write_bytes(sys.argv[1] + "/report.md", b"x" * 50_000),
        lambda: SqliteResultStore(sys.argv[1] + "/store.sqlite").put_many(
            "answer", [(str(i), "x" * 90) for i in range(900)]),
    )
"""


def test_a_write_that_the_kernel_refuses_leaves_the_old_files(tmp_path):
    (tmp_path / "report.md").write_text("old")
    process = started(FULL, tmp_path)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    report, store = out.splitlines()
    assert "report.md: cannot be written, the file would be larger than this process may" in report
    assert "--out" in report
    assert "its disk can hold" in store
    assert "--cache" in store
    assert (tmp_path / "report.md").read_text() == "old"


class Words:
    name = fingerprint = "words"

    def __call__(self, texts):
        return [len(text.split()) for text in texts]


def test_a_disk_that_fills_during_preparation_leaves_the_old_corpus(tmp_path, monkeypatch):
    table = tmp_path / "in.jsonl"
    table.write_text('{"text": "one two three four"}\n' * 50)
    prepare_corpus(CorpusSpec(path=str(table)), tmp_path / "out.jsonl", tokens=Words())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    table.write_text('{"text": "five six seven eight"}\n' * 50)
    before["in.jsonl"] = table.read_bytes()
    calls = []

    def fsync(_descriptor):
        calls.append(1)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StoreError, match="the disk is full"):
        prepare_corpus(CorpusSpec(path=str(table)), tmp_path / "out.jsonl", tokens=Words())
    assert calls == [1]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


READ_ONLY = f"""{ATTEMPTS}
    folder = sys.argv[1]
    existing = folder + "/store.sqlite"
    tell(
        lambda: write_bytes(folder + "/report.md", b"new"),
        lambda: SqliteResultStore(folder + "/new.sqlite"),
        lambda: SqliteResultStore(existing).put_many("answer", [("k", "2")]),
    )
"""


def test_a_read_only_folder_is_said_with_the_option_that_helps(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    SqliteResultStore(folder / "store.sqlite").close()
    (folder / "store.sqlite").chmod(0o444)
    folder.chmod(0o555)
    try:
        process = started(READ_ONLY, folder, prefix=without_override())
        out, err = process.communicate()
    finally:
        folder.chmod(0o755)
    assert (process.returncode, err) == (0, "")
    report, new_store, old_store = out.splitlines()
    assert "report.md: cannot be written (Permission denied)" in report
    assert "--out" in report
    assert all("--cache" in line for line in (new_store, old_store))
    assert [path.name for path in folder.iterdir()] == ["store.sqlite"]
