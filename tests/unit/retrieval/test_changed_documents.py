"""A search with one document changed finds what an index over the changed corpus finds."""

from dataclasses import replace

import pytest
from fakes.corpus import ListCorpus
from fakes.embedder import HashEmbedder, TableEmbedder
from hypothesis import given, settings
from hypothesis import strategies as st

from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import CorpusDocument
from fairgate.retrieval.flat_index import FlatIndex

TEXTS = [f"document {number}" for number in range(40)]
DOCUMENTS = [
    CorpusDocument(id=f"d{number}", text=text, label="odd" if number % 2 else "even")
    for number, text in enumerate(TEXTS)
]


def rebuilt(changed, query, top_k):
    """The slow truth: the index of a corpus in which the text was replaced."""
    documents = [replace(d, text=changed.text) if d.id == changed.id else d for d in DOCUMENTS]
    corpus = ListCorpus(documents, fingerprint=repr(changed))
    return FlatIndex(corpus, HashEmbedder()).retrieve([query], top_k)[0]


@settings(max_examples=25, deadline=None)
@given(
    place=st.integers(0, 39),
    text=st.sampled_from([*TEXTS[:6], "another text", "a woman sells it", "q"]),
    query=st.sampled_from(["q", "document 3", "who sells it?"]),
    top_k=st.sampled_from([1, 4, 39, 40]),
)
def test_it_is_the_search_of_a_rebuilt_index(place, text, query, top_k):
    changed = CorpusDocument(id=f"d{place}", text=text)
    index = FlatIndex(ListCorpus(DOCUMENTS), HashEmbedder())
    (found,) = index.retrieve([query], top_k, [changed])
    assert found == rebuilt(changed, query, top_k)


def test_documents_of_equal_score_stand_in_the_order_of_the_corpus():
    table = {"a": [1, 0], "b": [0.6, 0.8], "c": [0, 1], "q": [1, 0]}
    index = FlatIndex(ListCorpus(["a", "b", "c"]), TableEmbedder(table))
    changed = [CorpusDocument(id="d2", text="a"), CorpusDocument(id="d0", text="c"), None]
    ids = [[d.id for d in found] for found in index.retrieve(["q"] * 3, 2, changed)]
    assert ids == [["d0", "d2"], ["d1", "d0"], ["d0", "d1"]]


def test_changed_texts_are_embedded_once_and_the_corpus_never_again():
    embedder = HashEmbedder()
    index = FlatIndex(ListCorpus(TEXTS), embedder)
    index.retrieve(["q"], 3)
    embedder.embedded.clear()
    changed = [CorpusDocument(id=name, text="new") for name in ("d1", "d2")]
    index.retrieve(["q", "q"], 3, changed)
    assert sorted(embedder.embedded) == ["new", "q", "q"]


def test_a_document_that_the_corpus_lacks_is_named():
    index = FlatIndex(ListCorpus(TEXTS), HashEmbedder())
    with pytest.raises(RetrievalError, match=r"document 'd99' is not in the index.*document_id"):
        index.retrieve(["q"], 3, [CorpusDocument(id="d99", text="new")])
