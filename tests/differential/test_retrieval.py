"""Retrieval against a brute-force search in float64, ties included."""

import faiss
import numpy as np
import pytest
from fakes.corpus import ListCorpus
from fakes.embedder import TableEmbedder

from fairgate.retrieval import flat_index
from fairgate.retrieval.flat_index import FlatIndex


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def brute_force(vectors, query, top_k):
    """All scores in float64, rounded, by (-score, document order): the definition itself."""
    scores = [
        round(sum(float(a) * float(b) for a, b in zip(row, query, strict=True)), 6)
        for row in vectors
    ]
    order = sorted(range(len(vectors)), key=lambda i: (-scores[i], i))[:top_k]
    return [(f"d{i}", scores[i]) for i in order]


def index_of(vectors, queries):
    table = {f"t{i}": row for i, row in enumerate(vectors)}
    table |= {f"q{i}": row for i, row in enumerate(queries)}
    corpus = ListCorpus([f"t{i}" for i in range(len(vectors))])
    return FlatIndex(corpus, TableEmbedder(table))


def asked(index, queries, top_k):
    return [
        [(document.id, document.score) for document in documents]
        for documents in index.retrieve(queries, top_k)
    ]


def random_case(rng, documents=400, dimensions=24):
    return unit(rng.standard_normal((documents, dimensions)))


def tied_case(rng):
    """Few directions, each many times: nearly every place in the ranking is a tie."""
    return unit(rng.standard_normal((5, 24)))[rng.integers(0, 5, 400)]


def almost_tied_case(rng):
    """Scores that differ in the last bits of float32 and round to the same six decimals."""
    return unit(
        unit(rng.standard_normal((4, 24)))[rng.integers(0, 4, 400)]
        + 1e-7 * rng.standard_normal((400, 24))
    )


def coarse_case(rng):
    """Coordinates 0 and 1 only: scores of unrelated documents are equal."""
    rows = rng.integers(0, 2, (400, 12))
    rows[:, 0] = 1
    return unit(rows)


@pytest.mark.parametrize("case", [random_case, tied_case, almost_tied_case, coarse_case])
@pytest.mark.parametrize("top_k", [1, 4, 50])
def test_ids_and_scores_are_those_of_brute_force(case, top_k):
    rng = np.random.default_rng(7)
    vectors = case(rng)
    queries = np.concatenate([case(rng)[:6], vectors[:6]])
    index = index_of(vectors, queries)
    names = [f"q{i}" for i in range(len(queries))]
    expected = [brute_force(vectors, query, top_k) for query in queries]
    assert asked(index, names, top_k) == expected


def test_batches_threads_and_the_order_of_queries_change_nothing():
    rng = np.random.default_rng(8)
    vectors = np.concatenate([random_case(rng, 3000, 64), tied_case(rng).repeat(3, axis=1)[:, :64]])
    vectors = unit(vectors)
    queries = random_case(rng, 100, 64)
    index = index_of(vectors, queries)
    names = [f"q{i}" for i in range(100)]
    expected = asked(index, names, 4)
    threads = faiss.omp_get_max_threads()
    try:
        for count in (1, 2):
            faiss.omp_set_num_threads(count)
            for size in (1, 7, 32):
                batches = [names[start : start + size] for start in range(0, 100, size)]
                assert [row for batch in batches for row in asked(index, batch, 4)] == expected
            assert asked(index, names[::-1], 4) == expected[::-1]
    finally:
        faiss.omp_set_num_threads(threads)


@pytest.mark.walk(3)
@pytest.mark.parametrize("case", [random_case, tied_case, almost_tied_case])
@pytest.mark.parametrize("most_bytes", [1, 30_000, 64 << 20])
def test_memory_bounds_change_nothing(monkeypatch, case, most_bytes):
    rng = np.random.default_rng(9)
    vectors = case(rng)
    queries = np.concatenate([case(rng)[:20], vectors[:20]])
    names = [f"q{i}" for i in range(len(queries))]
    monkeypatch.setattr(flat_index, "_SEARCH_BYTES", most_bytes)
    index = index_of(vectors, queries)
    monkeypatch.setattr(FlatIndex, "at_once", 9)
    assert asked(index, names, 4) == [brute_force(vectors, query, 4) for query in queries]


@pytest.mark.parametrize("case", [random_case, tied_case, almost_tied_case])
def test_inner_products_are_the_same_in_every_batch(monkeypatch, case):
    rng = np.random.default_rng(10)
    vectors, queries = 3 * case(rng), 2 * case(rng)[:40]
    table = {f"t{i}": row for i, row in enumerate(vectors)}
    table |= {f"q{i}": row for i, row in enumerate(queries)}
    corpus, names = ListCorpus([f"t{i}" for i in range(len(vectors))]), [*table][len(vectors) :]
    index = FlatIndex(corpus, TableEmbedder(table), unit=False)
    found = []
    for most_bytes in (1, 30_000, 64 << 20):
        monkeypatch.setattr(flat_index, "_SEARCH_BYTES", most_bytes)
        found.append(asked(index, names, 4))
    assert found[0] == [asked(index, [name], 4)[0] for name in names]
    assert found[0] == found[1] == found[2]
