"""An embedder that never embeds a text twice."""

import numpy as np
import pytest
from fakes.embedder import HashEmbedder, TableEmbedder

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import embedding_key
from fairgate.retrieval.embedding_cache import BATCH, CachedEmbedder
from fairgate.systems.result_store import SqliteResultStore


@pytest.fixture
def store(tmp_path):
    store = SqliteResultStore(tmp_path / "results.sqlite")
    yield store
    store.close()


def test_results_are_the_embedders_own_in_order(store):
    texts = [f"text {i % 400} " + "x" * (i % 7) for i in range(700)]
    inner = HashEmbedder()
    found = CachedEmbedder(inner, store).embed(texts)
    assert found.dtype == np.float32
    assert (found == HashEmbedder().embed(texts)).all()
    assert len(inner.embedded) == len(set(texts))


def test_only_new_texts_cost_anything_and_another_embedder_shares_nothing(store):
    texts = [f"text {i}" for i in range(1000)]
    CachedEmbedder(HashEmbedder(), store).embed(texts)
    inner = HashEmbedder()
    grown = CachedEmbedder(inner, store).embed([*texts, "new"])
    assert inner.embedded == ["new"]
    assert (grown == HashEmbedder().embed([*texts, "new"])).all()
    other = HashEmbedder(fingerprint="other")
    CachedEmbedder(other, store).embed(["text 1"])
    assert other.embedded == ["text 1"]


def test_a_failure_loses_one_batch_at_most(store):
    class Failing(HashEmbedder):
        def embed(self, texts):
            if len(self.embedded) >= 2 * BATCH:
                raise KeyboardInterrupt
            return super().embed(texts)

    texts = [f"text {i}" for i in range(3 * BATCH)]
    with pytest.raises(KeyboardInterrupt):
        CachedEmbedder(Failing(), store).embed(texts)
    inner = HashEmbedder()
    CachedEmbedder(inner, store).embed(texts)
    assert len(inner.embedded) == BATCH


@pytest.mark.parametrize("vector", [[np.nan, 0.0], [np.inf, 0.0]])
def test_vectors_that_are_no_numbers_are_not_stored(store, vector):
    with pytest.raises(ModelError, match="not finite"):
        CachedEmbedder(TableEmbedder({"a": vector}), store).embed(["a"])


def test_stored_vectors_of_other_lengths_are_computed_again_or_told(store):
    texts = [f"text {i}" for i in range(5)]
    embedder = CachedEmbedder(HashEmbedder(), store)
    right = embedder.embed(texts)
    keys = [embedding_key(embedder.fingerprint, text) for text in texts]
    store.put_vectors([(keys[0], np.ones(3, dtype=np.float32))])
    assert (embedder.embed(texts) == right).all()
    assert (embedder.embed(texts) == right).all()
    store.put_vectors([(key, np.ones(3, dtype=np.float32)) for key in keys])
    with pytest.raises(ModelError, match="delete the store"):
        embedder.embed([*texts, "new"])
