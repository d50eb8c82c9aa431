"""A build of a great index that did not end: what it embedded is used, whatever became of it."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.corpus import ListCorpus
from fakes.embedder import HashEmbedder

from fairgate.retrieval import index_builder
from fairgate.retrieval.embedding_cache import BATCH, CachedEmbedder
from fairgate.retrieval.flat_index import FlatIndex
from fairgate.retrieval.index_folder import ROWS
from fairgate.systems.result_store import SqliteResultStore

TEXTS = [f"text number {i}" for i in range(3 * BATCH)]
ROW, VECTOR = ROWS.itemsize, 16 * 4


class Failing(HashEmbedder):
    """An embedder that is interrupted after some batches."""

    def __init__(self, batches, **other):
        super().__init__(**other)
        self.batches = batches

    def embed(self, texts):
        if len(self.embedded) >= self.batches * BATCH:
            raise KeyboardInterrupt
        return super().embed(texts)


class Builds:
    """Builds great indexes in one cache."""

    def __init__(self, root):
        self.root = root
        self.store = SqliteResultStore(root / "store.sqlite")

    def built(self, corpus, embedder=None):
        """Return the files of the index and the texts that were embedded."""
        embedder = embedder or HashEmbedder()
        index = FlatIndex(corpus, CachedEmbedder(embedder, self.store), cache_dir=self.root)
        assert index.size
        folder = self.root / "indexes" / index.fingerprint
        return {path.name: path.read_bytes() for path in folder.iterdir()}, embedder.embedded

    def interrupted(self, batches, corpus=None, **other):
        """Interrupt a build; return the folder of what it has embedded."""
        embedder = Failing(batches, **other)
        with pytest.raises(KeyboardInterrupt):
            self.built(corpus or ListCorpus(TEXTS), embedder)
        assert len(embedder.embedded) == batches * BATCH
        return self.left()[-1]

    def left(self):
        return sorted((self.root / "indexes").glob(".*"))


@pytest.fixture
def builds(tmp_path, monkeypatch):
    monkeypatch.setattr(index_builder, "MOST_IN_STORE", 10)
    made = Builds(tmp_path)
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the files of a build from nothing."""
    root = tmp_path_factory.mktemp("whole")
    index = FlatIndex(ListCorpus(TEXTS), HashEmbedder(), cache_dir=root)
    assert index.size
    return {
        path.name: path.read_bytes() for path in (root / "indexes" / index.fingerprint).iterdir()
    }


def test_a_build_goes_on_as_often_as_it_is_interrupted(builds, whole):
    builds.interrupted(1)
    builds.interrupted(1)
    files, embedded = builds.built(ListCorpus(TEXTS))
    assert (files, len(embedded)) == (whole, BATCH)
    assert builds.left() == []


def test_another_version_uses_what_an_interrupted_build_has_embedded(builds):
    builds.interrupted(2)
    _, embedded = builds.built(ListCorpus([*TEXTS, "new"], "c2"))
    assert len(embedded) == BATCH + 1
    assert builds.left() == []


def test_another_embedder_or_corpus_leaves_it_to_its_own_build(builds, whole):
    builds.interrupted(2)
    builds.built(ListCorpus(TEXTS), HashEmbedder(dimensions=8, fingerprint="other"))
    builds.built(ListCorpus([f"other {text}" for text in TEXTS], "c2"))
    assert len(builds.left()) == 1
    files, embedded = builds.built(ListCorpus(TEXTS))
    assert (files, len(embedded)) == (whole, BATCH)
    assert builds.left() == []


def cut(path, by):
    path.write_bytes(path.read_bytes()[:-by])


def flip(path, at):
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


HARM = {
    "a vector written in half": (lambda f: cut(f / "vectors-16", VECTOR // 2), 1),
    "a row written in half": (lambda f: cut(f / "rows", 7), 1),
    "rows of which nothing is on disk": (lambda f: cut(f / "rows", 5 * ROW), 5),
    "zeros at the end": (lambda f: np.zeros(BATCH * 16, "<f4").tofile(f / "vectors-16"), 2 * BATCH),
    "a flipped bit": (lambda f: flip(f / "vectors-16", VECTOR + 1), 1),
    "a flipped bit of a key": (lambda f: flip(f / "rows", 3 * ROW), 1),
    "no rows": (lambda f: (f / "rows").unlink(), 2 * BATCH),
    "another length": (lambda f: (f / "vectors-16").rename(f / "vectors-17"), 2 * BATCH),
    "no length": (lambda f: (f / "vectors-16").rename(f / "vectors-0"), 2 * BATCH),
    "two of them": (lambda f: (f / "vectors-8").touch(), 2 * BATCH),
    "an empty folder": (lambda f: [path.unlink() for path in f.iterdir()], 2 * BATCH),
}


@pytest.mark.parametrize("harm", HARM)
def test_what_is_damaged_is_embedded_again(builds, whole, harm):
    folder = builds.interrupted(2)
    do, lost = HARM[harm]
    do(folder)
    files, embedded = builds.built(ListCorpus(TEXTS))
    assert (files, len(embedded)) == (whole, BATCH + lost)
    assert builds.left() == []


@pytest.mark.parametrize("harm", HARM)
def test_a_second_interruption_after_damage_loses_nothing_more(builds, whole, harm):
    folder = builds.interrupted(2)
    do, lost = HARM[harm]
    do(folder)
    builds.interrupted(1)
    files, embedded = builds.built(ListCorpus(TEXTS))
    assert (files, len(embedded)) == (whole, lost)
    assert builds.left() == []


def test_room_is_bounded_for_unfinished_builds_too(builds, monkeypatch):
    from fairgate.retrieval import index_cache

    monkeypatch.setattr(index_cache, "MOST_BYTES", 0)
    for number in range(9):
        texts = [f"{number} {text}" for text in TEXTS]
        builds.interrupted(2, ListCorpus(texts, f"c{number}"))
    assert len(builds.left()) == 9
    builds.built(ListCorpus(TEXTS))
    sizes = {
        folder.name: sum(path.stat().st_size for path in folder.iterdir())
        for folder in (builds.root / "indexes").iterdir()
    }
    assert 1 <= len(builds.left()) < 9
    assert sum(sizes.values()) <= 3 * max(sizes.values())
