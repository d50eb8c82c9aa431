"""An index over a corpus: what it returns, what it embeds and what it refuses."""

import sys
from functools import partial

import numpy as np
import pytest
from fakes.corpus import ListCorpus
from fakes.embedder import HashEmbedder, TableEmbedder

from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import CorpusDocument, Document
from fairgate.domain.ports import Progress
from fairgate.retrieval import flat_index
from fairgate.retrieval.embedding_cache import CachedEmbedder
from fairgate.retrieval.flat_index import FlatIndex
from fairgate.systems.result_store import SqliteResultStore

TEXTS = [f"text number {i} with ünïcode\nand lines" for i in range(60)]


def test_documents_come_with_id_text_label_and_score(tmp_path):
    rows = [("x", "east", "toxic"), ("y", "north-east", "non-toxic"), ("z", "north", "toxic")]
    corpus = ListCorpus([CorpusDocument(id=i, text=text, label=label) for i, text, label in rows])
    table = {"east": [1, 0], "north-east": [0.6, 0.8], "north": [0, 1], "q": [1, 0]}
    index = FlatIndex(corpus, TableEmbedder(table))
    (found,) = index.retrieve(["q"], 2)
    assert found == [
        Document(id=i, text=text, label=label, score=score)
        for (i, text, label), score in zip(rows, (1.0, 0.6), strict=False)
    ]
    assert index.vectors(["z", "x", "z"]).tolist() == [[0, 1], [1, 0], [0, 1]]


def test_a_changed_corpus_embeds_what_is_new_and_finds_what_a_search_from_nothing_finds(tmp_path):
    store = SqliteResultStore(tmp_path / "store.sqlite")
    FlatIndex(ListCorpus(TEXTS), CachedEmbedder(HashEmbedder(), store)).retrieve(["q"], 4)
    documents = [*TEXTS[40:], "new", *TEXTS[:30], TEXTS[3]]
    inner = HashEmbedder()
    index = FlatIndex(ListCorpus(documents, "c2"), CachedEmbedder(inner, store))
    found = index.retrieve(["q"], 4)
    assert inner.embedded == ["new"]
    assert found == FlatIndex(ListCorpus(documents, "c2"), HashEmbedder()).retrieve(["q"], 4)
    other = HashEmbedder(fingerprint="other")
    FlatIndex(ListCorpus(TEXTS), CachedEmbedder(other, store)).retrieve(["q"], 4)
    assert set(other.embedded) == {"q", *TEXTS}
    store.close()


def test_vectors_of_some_documents_need_neither_faiss_nor_the_others(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    embedder = HashEmbedder()
    assert FlatIndex(ListCorpus(TEXTS), embedder).vectors(["d3"]).shape == (1, 16)
    assert embedder.embedded == [TEXTS[3]]


def test_progress_counts_documents_block_by_block(monkeypatch):
    steps = []

    class Notes(Progress):
        def start(self, stage, total, cached):
            steps.append((stage, total, cached))

        def advance(self, count):
            steps.append(count)

        def finish(self):
            steps.append("end")

    monkeypatch.setattr(flat_index, "_EMBED_AT_ONCE", 25)
    index = FlatIndex(ListCorpus(TEXTS), HashEmbedder(), progress=Notes())
    assert index.retrieve(["q"], 4) == FlatIndex(ListCorpus(TEXTS), HashEmbedder()).retrieve(
        ["q"], 4
    )
    assert steps == [("index", 60, 0), 25, 25, 10, "end"]


def test_more_than_the_corpus_has_and_an_unknown_document_are_named(tmp_path):
    index = FlatIndex(ListCorpus(TEXTS), HashEmbedder())
    for top_k in (0, 61):
        with pytest.raises(RetrievalError, match=f"top_k is {top_k}, the corpus holds 60 docu"):
            index.retrieve(["q"], top_k)
    with pytest.raises(RetrievalError, match="document 'd99' is not in the index"):
        index.vectors(["d1", "d99"])
    assert len(index.vectors([])) == 0


@pytest.mark.parametrize("vector", [[2.0, 0.0], [0.0, 0.0], [np.nan, 0.0]])
def test_vectors_that_are_not_of_length_one_are_refused(tmp_path, vector):
    index = FlatIndex(ListCorpus(["a"]), TableEmbedder({"a": vector}))
    with pytest.raises(RetrievalError, match="expected one vector of length 1"):
        index.retrieve(["a"], 1)


@pytest.mark.parametrize("vector", [[np.nan, 0.0], [1.0, 0.0, 0.0]])
def test_a_query_vector_that_does_not_fit_is_refused(tmp_path, vector):
    embedder = TableEmbedder({"a": [1, 0], "q": vector})
    index = FlatIndex(ListCorpus(["a"]), embedder)
    with pytest.raises(RetrievalError, match="expected finite vectors of 2 dimensions"):
        index.retrieve(["q"], 1)


@pytest.mark.parametrize("unit", [True, False])
def test_queries_have_an_embedder_of_their_own_where_the_model_prompts_them(unit):
    kind = partial(FlatIndex, unit=unit)
    corpus = ListCorpus(["east", "north"])
    documents = TableEmbedder({"east": [1, 0], "north": [0, 1], "q": [1, 0]})
    queries = TableEmbedder({"q": [0, 1]})
    queries.fingerprint = "prompted"
    plain, prompted = kind(corpus, documents), kind(corpus, documents, queries=queries)
    assert plain.retrieve(["q"], 1)[0][0].text == "east"
    assert prompted.retrieve(["q"], 1)[0][0].text == "north"
    assert plain.fingerprint != prompted.fingerprint
    assert kind(corpus, documents, queries=documents).fingerprint == plain.fingerprint


@pytest.mark.parametrize("error", [MemoryError("x"), RuntimeError("x"), ImportError("no map")])
def test_a_search_without_memory_is_told(tmp_path, monkeypatch, error):
    class Full:
        METRIC_INNER_PRODUCT = 0

        def knn(self, *_):
            raise error

    monkeypatch.setitem(sys.modules, "faiss", Full())
    index = FlatIndex(ListCorpus(TEXTS), HashEmbedder())
    with pytest.raises(RetrievalError, match=r"FAISS cannot search .*60 vectors.*ulimit -v"):
        index.retrieve(["q"], 4)
