"""The cache does not grow with every version of a corpus."""

import os

import pytest
from fakes.corpus import ListCorpus
from fakes.embedder import HashEmbedder

from fairgate.retrieval import flat_index, index_cache
from fairgate.retrieval.embedding_cache import CachedEmbedder
from fairgate.retrieval.flat_index import FlatIndex
from fairgate.systems import result_store
from fairgate.systems.result_store import SqliteResultStore

TEXTS = [f"text number {i}" for i in range(40)]
MOST_VERSIONS = 3


def version(number):
    """Return a version of the corpus: one text is its own."""
    return ListCorpus([*TEXTS, f"version {number}"], f"c{number}")


class Cache:
    """A cache folder in which the order of use does not depend on a clock."""

    def __init__(self, root):
        self.root = root
        self.time = 0

    def used(self, corpus, embedder=None):
        """Use an index, one second after the last; return its name."""
        index = FlatIndex(corpus, embedder or HashEmbedder(), cache_dir=self.root)
        assert index.size
        manifest = self.root / "indexes" / index.fingerprint / "manifest.json"
        self.time += 1
        os.utime(manifest, (self.time, self.time))
        return index.fingerprint

    @property
    def names(self):
        return {path.name for path in (self.root / "indexes").iterdir()}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(index_cache, "MOST_VERSIONS", MOST_VERSIONS)
    return Cache(tmp_path)


def test_earlier_versions_beyond_the_last_used_are_removed(cache):
    names = [cache.used(version(number)) for number in range(MOST_VERSIONS + 3)]
    assert cache.names == set(names[3:])
    assert cache.used(version(4)) == names[4]
    again = [cache.used(version(number)) for number in range(20, 20 + MOST_VERSIONS - 1)]
    assert cache.names == {names[4], *again}


def test_another_corpus_and_another_embedder_are_no_versions(cache):
    others = {
        cache.used(ListCorpus([f"{n} {text}" for text in TEXTS], f"other {n}")) for n in range(5)
    }
    others |= {cache.used(version(0), HashEmbedder(fingerprint=f"e{n}")) for n in range(5)}
    parts = {cache.used(ListCorpus(TEXTS[:20], "half")), cache.used(ListCorpus(TEXTS[20:], "rest"))}
    for number in range(MOST_VERSIONS + 1):
        cache.used(version(number))
    assert cache.names > others | parts
    assert len(cache.names) == len(others | parts) + MOST_VERSIONS


def test_all_indexes_together_take_a_bounded_room(cache, monkeypatch):
    monkeypatch.setattr(index_cache, "MOST_BYTES", 0)
    names = [
        cache.used(ListCorpus([f"{n} {text}" for text in TEXTS], f"other {n}"))
        for n in range(10, 16)
    ]
    assert cache.names == set(names[-3:])


def test_an_index_in_use_stays(cache):
    held = FlatIndex(version(0), HashEmbedder(), cache_dir=cache.root)
    answers = held.retrieve(["q"], 4)
    os.utime(cache.root / "indexes" / held.fingerprint / "manifest.json", (0, 0))
    names = [cache.used(version(number)) for number in range(1, MOST_VERSIONS + 4)]
    assert cache.names == {held.fingerprint, *names[-MOST_VERSIONS:]}
    assert held.retrieve(["q"], 4) == answers
    del held
    last = cache.used(version(99))
    assert cache.names == {last, *names[1 - MOST_VERSIONS :]}


@pytest.mark.parametrize("greater_from", [None, 0, 1, 2, 3, MOST_VERSIONS + 1])
def test_what_no_index_holds_any_more_leaves_the_store(cache, monkeypatch, greater_from):
    """From the version `greater_from` on, the corpus is too great for vectors in the store."""
    store = SqliteResultStore(cache.root / "store.sqlite")
    remembers = CachedEmbedder(HashEmbedder(), store)
    remembers.embed(["a query"])
    numbers = range(MOST_VERSIONS + 2)
    for number in numbers:
        if number == greater_from:
            monkeypatch.setattr(flat_index, "MOST_IN_STORE", len(TEXTS))
        cache.used(version(number), remembers)
    inner = HashEmbedder()
    CachedEmbedder(inner, store).embed([*TEXTS, "a query", *(f"version {n}" for n in numbers)])
    stored = range(MOST_VERSIONS + 2 if greater_from is None else greater_from)
    kept = {f"version {n}" for n in stored if n >= 2} | set(TEXTS if stored else [])
    assert {*TEXTS, *(f"version {n}" for n in numbers)} - set(inner.embedded) == kept
    assert "a query" not in inner.embedded
    store.close()


def test_folders_that_are_no_index_of_ours_end_nothing(cache):
    root = cache.root / "indexes"
    name = cache.used(version(0))
    (root / "empty").mkdir()
    (root / "a file").write_text("x")
    (root / "strange").mkdir()
    (root / "strange" / "manifest.json").write_text('{"schema_version": 1}')
    other = cache.used(version(1))
    assert cache.names == {name, other, "empty", "a file", "strange"}


def test_a_store_that_is_mostly_free_becomes_small(tmp_path, monkeypatch):
    monkeypatch.setattr(result_store, "_WORTH_GIVING_BACK", 1 << 16)
    monkeypatch.setattr(result_store, "_DELETED_AT_ONCE", 7)
    path = tmp_path / "store.sqlite"
    store = SqliteResultStore(path)
    vector = HashEmbedder(dimensions=384).embed(["a"])[0]
    store.put_many("answer", [("k", "kept")])
    store.put_vectors([(f"{number:064}", vector) for number in range(500)])
    store.forget_vectors([f"{number:064}" for number in range(490)])
    assert store.get_many("answer", ["k"]) == {"k": "kept"}
    assert len(store.get_vectors([f"{number:064}" for number in range(500)])) == 10
    assert path.stat().st_size < 500 * 1536 / 4
    with SqliteResultStore(path)._connection as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM results").fetchone()
        store.forget_vectors([f"{number:064}" for number in range(490, 500)])
        other.execute("COMMIT")
    store.close()
