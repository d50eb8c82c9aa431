"""A build of a great index that did not end: what it embedded is used, whatever became of it."""

import pytest
from fakes.corpus import ListCorpus
from fakes.embedder import HashEmbedder

from fairgate.retrieval import flat_index
from fairgate.retrieval.embedding_cache import BATCH, CachedEmbedder
from fairgate.retrieval.flat_index import FlatIndex
from fairgate.systems.result_store import SqliteResultStore

TEXTS = [f"text number {i}" for i in range(3 * BATCH)]


class Failing(HashEmbedder):
    """An embedder that is interrupted after some batches."""

    def __init__(self, batches):
        super().__init__()
        self.batches = batches

    def embed(self, texts):
        if len(self.embedded) >= self.batches * BATCH:
            raise KeyboardInterrupt
        return super().embed(texts)


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Return a function that builds an index: its files, and the texts that were embedded."""
    monkeypatch.setattr(flat_index, "MOST_IN_STORE", 10)
    store = SqliteResultStore(tmp_path / "store.sqlite")

    def build(corpus, embedder=None, root=tmp_path):
        embedder = embedder or HashEmbedder()
        index = FlatIndex(corpus, CachedEmbedder(embedder, store), cache_dir=root)
        if isinstance(embedder, Failing):
            with pytest.raises(KeyboardInterrupt):
                index.retrieve(["q"], 1)
            return None, embedder.embedded
        assert index.size
        folder = root / "indexes" / index.fingerprint
        return {path.name: path.read_bytes() for path in folder.iterdir()}, embedder.embedded

    yield build
    assert not list((tmp_path / "indexes").glob(".*"))
    store.close()


def test_a_build_goes_on_as_often_as_it_is_interrupted(built, tmp_path):
    for _ in range(2):
        assert len(built(ListCorpus(TEXTS), Failing(1))[1]) == BATCH
    files, embedded = built(ListCorpus(TEXTS))
    assert len(embedded) == BATCH
    whole, again = built(ListCorpus(TEXTS), root=tmp_path / "whole")
    assert files == whole
    assert len(again) == len(TEXTS), "the store keeps nothing of a great index that is whole"


def test_another_version_uses_what_an_interrupted_build_has_embedded(built):
    built(ListCorpus(TEXTS), Failing(2))
    built(ListCorpus([f"other {text}" for text in TEXTS], "c3"))
    assert len(built(ListCorpus([*TEXTS, "new"], "c2"))[1]) == BATCH + 1
