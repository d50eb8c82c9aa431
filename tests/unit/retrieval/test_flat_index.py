"""A corpus becomes an index, once."""

import sys
from functools import partial

import numpy as np
import pytest
from fakes.corpus import ListCorpus
from fakes.embedder import HashEmbedder, TableEmbedder

from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import CorpusDocument, Document
from fairgate.retrieval.exact_index import InnerProductIndex
from fairgate.retrieval.flat_index import FlatIndex

FILES = [
    "vectors.npy", "documents.jsonl", "offsets.npy", "rows.npy", "ids.npy", "manifest.json",
]  # fmt: skip
TEXTS = [f"text number {i} with ünïcode\nand lines" for i in range(60)]


def folder_of(tmp_path, index):
    return tmp_path / "indexes" / index.fingerprint


def test_documents_come_with_id_text_label_and_score(tmp_path):
    rows = [("x", "east", "toxic"), ("y", "north-east", "non-toxic"), ("z", "north", "toxic")]
    corpus = ListCorpus([CorpusDocument(id=i, text=text, label=label) for i, text, label in rows])
    table = {"east": [1, 0], "north-east": [0.6, 0.8], "north": [0, 1], "q": [1, 0]}
    index = FlatIndex(corpus, TableEmbedder(table), cache_dir=tmp_path)
    (found,) = index.retrieve(["q"], 2)
    assert found == [
        Document(id=i, text=text, label=label, score=score)
        for (i, text, label), score in zip(rows, (1.0, 0.6), strict=False)
    ]
    assert index.size == 3
    assert index.vectors(["z", "x", "z"]).tolist() == [[0, 1], [1, 0], [0, 1]]


def test_a_second_run_builds_nothing_and_needs_no_faiss_for_vectors(tmp_path, monkeypatch):
    first = FlatIndex(ListCorpus(TEXTS), HashEmbedder(), cache_dir=tmp_path)
    answers = first.retrieve(["q"], 4)
    corpus, embedder = ListCorpus(TEXTS), HashEmbedder()
    second = FlatIndex(corpus, embedder, cache_dir=tmp_path)
    assert second.retrieve(["q"], 4) == answers
    assert (corpus.read, embedder.embedded) == (0, ["q"])
    monkeypatch.setitem(sys.modules, "faiss", None)
    third = FlatIndex(corpus, embedder, cache_dir=tmp_path)
    assert third.vectors(["d3"]).shape == (1, 16)
    assert second.notices == third.notices == []


def test_more_than_the_corpus_has_and_an_unknown_document_are_named(tmp_path):
    index = FlatIndex(ListCorpus(TEXTS), HashEmbedder(), cache_dir=tmp_path)
    for top_k in (0, 61):
        with pytest.raises(RetrievalError, match=f"top_k is {top_k}, the corpus holds 60 docu"):
            index.retrieve(["q"], top_k)
    with pytest.raises(RetrievalError, match="document 'd99' is not in the index"):
        index.vectors(["d1", "d99"])
    assert index.vectors([]).shape == (0, 16)


@pytest.mark.parametrize("vector", [[2.0, 0.0], [0.0, 0.0], [np.nan, 0.0]])
def test_vectors_that_are_not_of_length_one_are_refused_and_nothing_stays(tmp_path, vector):
    index = FlatIndex(ListCorpus(["a"]), TableEmbedder({"a": vector}), cache_dir=tmp_path)
    with pytest.raises(RetrievalError, match="expected one vector of length 1"):
        index.retrieve(["a"], 1)
    assert list((tmp_path / "indexes").iterdir()) == []


@pytest.mark.parametrize("vector", [[np.nan, 0.0], [1.0, 0.0, 0.0]])
def test_a_query_vector_that_does_not_fit_is_refused(tmp_path, vector):
    embedder = TableEmbedder({"a": [1, 0], "q": vector})
    index = FlatIndex(ListCorpus(["a"]), embedder, cache_dir=tmp_path)
    with pytest.raises(RetrievalError, match="expected finite vectors of 2 dimensions"):
        index.retrieve(["q"], 1)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["cut", "flipped", "gone"])
def test_a_damaged_file_is_found_and_the_index_built_again(tmp_path, name, damage):
    answers = FlatIndex(ListCorpus(TEXTS), HashEmbedder(), cache_dir=tmp_path).retrieve(["q"], 4)
    index = FlatIndex(ListCorpus(TEXTS), HashEmbedder(), cache_dir=tmp_path)
    path = folder_of(tmp_path, index) / name
    raw = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(raw[: len(raw) // 2])
    else:
        middle = len(raw) // 2
        path.write_bytes(raw[:middle] + bytes([raw[middle] ^ 0x15]) + raw[middle + 1 :])
    assert index.retrieve(["q"], 4) == answers
    assert len(index.notices) == 1
    assert "the index was damaged" in index.notices[0]
    after = FlatIndex(ListCorpus(TEXTS), HashEmbedder(), cache_dir=tmp_path)
    assert after.retrieve(["q"], 4) == answers
    assert after.notices == []


def test_leftovers_of_a_killed_build_are_removed_but_not_those_of_a_live_one(tmp_path):
    import fcntl

    indexes = tmp_path / "indexes"
    for name in (".build-dead", ".build-alive"):
        (indexes / name).mkdir(parents=True)
    (indexes / ".build-dead.lock").touch()
    with (indexes / ".build-alive.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        index = FlatIndex(ListCorpus(TEXTS), HashEmbedder(), cache_dir=tmp_path)
        assert index.size == 60
        left = {path.name for path in indexes.iterdir()}
    assert left == {index.fingerprint, ".build-alive", ".build-alive.lock"}


@pytest.mark.parametrize("kind", [FlatIndex, InnerProductIndex])
def test_queries_have_an_embedder_of_their_own_where_the_model_prompts_them(tmp_path, kind):
    corpus = ListCorpus(["east", "north"])
    made = partial(kind, cache_dir=tmp_path) if kind is FlatIndex else kind
    documents = TableEmbedder({"east": [1, 0], "north": [0, 1], "q": [1, 0]})
    queries = TableEmbedder({"q": [0, 1]})
    queries.fingerprint = "prompted"
    plain, prompted = made(corpus, documents), made(corpus, documents, queries=queries)
    assert plain.retrieve(["q"], 1)[0][0].text == "east"
    assert prompted.retrieve(["q"], 1)[0][0].text == "north"
    assert plain.fingerprint != prompted.fingerprint
    assert made(corpus, documents, queries=documents).fingerprint == plain.fingerprint
    assert len(list(tmp_path.glob("indexes/*"))) == (kind is FlatIndex)


@pytest.mark.parametrize("error", [MemoryError("x"), RuntimeError("x"), ImportError("no map")])
def test_a_search_without_memory_is_told(tmp_path, monkeypatch, error):
    class Full:
        METRIC_INNER_PRODUCT = 0

        def knn(self, *_):
            raise error

    monkeypatch.setitem(sys.modules, "faiss", Full())
    index = FlatIndex(ListCorpus(TEXTS), HashEmbedder(), cache_dir=tmp_path)
    with pytest.raises(RetrievalError, match=r"FAISS cannot search .*60 vectors.*ulimit -v"):
        index.retrieve(["q"], 4)
