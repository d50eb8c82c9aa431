"""What searches document collections: stances, BM25, inner products, endpoints."""

import http.server
import json

import numpy as np
import pytest
from fakes.corpus import ListCorpus
from fakes.embedder import TableEmbedder
from fakes.serving import Answering, served

from fairgate.domain.errors import DataError, ModelError, RetrievalError, UsageError
from fairgate.retrieval.bm25_index import Bm25Index, tokens
from fairgate.retrieval.embedding_endpoint import EndpointEmbedder
from fairgate.retrieval.flat_index import FlatIndex
from fairgate.suites.question_items.item_files import StanceCollection, stance_files
from fairgate.systems.budget import Meter


def collection(tmp_path, rows, name="c.jsonl"):
    (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(tmp_path / name)


ROWS = [
    {"id": "1", "text": "Old people are slow.", "stance": "stereo"},
    {"id": "2", "text": "Old people are quick.", "stance": "anti"},
    {"id": "3", "text": "It rains.", "stance": "neutral"},
]


@pytest.mark.parametrize(("setting", "ids"), [("full", "123"), ("stereo", "1"), ("anti", "2")])
def test_a_setting_searches_the_documents_of_its_stance(tmp_path, setting, ids):
    path = collection(tmp_path, ROWS)
    found = list(StanceCollection([path], setting).documents())
    assert [d.id for d in found] == [f"c/{i}" for i in ids]
    assert [d.label for d in found] == [ROWS[int(i) - 1]["stance"] for i in ids]


def test_settings_and_files_are_told_apart(tmp_path):
    one, two = collection(tmp_path, ROWS), collection(tmp_path, ROWS[:2], "d.jsonl")
    prints = {
        StanceCollection(paths, setting).fingerprint
        for paths in ([one], [two], [one, two])
        for setting in ("full", "stereo")
    }
    assert len(prints) == 6
    assert len(list(StanceCollection(stance_files([str(tmp_path)]), "full").documents())) == 5


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "1", "text": "x"}], "no column 'stance'"),
        ([*ROWS, {"id": "4", "text": "x", "stance": "pro"}], "c.jsonl:4: the stance is 'pro'"),
        ([*ROWS, {"id": "4", "text": "x"}], "c.jsonl:4: the stance is None"),
        ([*ROWS, {"id": "1", "text": "x", "stance": "anti"}], "is at"),
        ([{"id": "1", "text": " ", "stance": "anti"}], "no text"),
        (ROWS[1:], "no document has the stance 'stereo'"),
        ([{"id": "1", "stance": "stereo"}], "no column for the text"),
    ],
)
def test_a_collection_without_stance_or_text_is_an_error(tmp_path, rows, message):
    with pytest.raises(DataError, match=message):
        list(StanceCollection([collection(tmp_path, rows)], "stereo").documents())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The old Man's hat", ["the", "old", "man", "s", "hat"]),
        ("할머니가 했다", ["할머", "머니", "니가", "했다"]),
        ("女性だ", ["女性", "性だ"]),
        ("20岁的人", ["20", "岁的", "的人"]),
        ("人", ["人"]),
        ("GPT는 ok", ["gpt", "는", "ok"]),
        ("!?", []),
    ],
)
def test_words_and_character_pairs(text, expected):
    assert tokens(text) == expected


def test_bm25_scores_are_those_of_the_formula():
    texts = ["a b", "a a c", "d"]
    index = Bm25Index(ListCorpus(texts))
    terms = [text.split() for text in texts]
    mean = sum(map(len, terms)) / 3
    (found,) = index.retrieve(["a c"], 3)

    def score(row):
        total = 0.0
        for term in ("a", "c"):
            df = sum(term in one for one in terms)
            tf = terms[row].count(term)
            idf = np.log(1 + (3 - df + 0.5) / (df + 0.5))
            total += idf * tf / (tf + 1.5 * (1 - 0.75 + 0.75 * len(terms[row]) / mean))
        return total

    for document in found:
        assert document.score == pytest.approx(score(int(document.id[1:])), abs=1e-5)


@pytest.mark.parametrize("top_k", [1, 3, 20, 300])
def test_bm25_gives_the_first_of_all_documents_in_order(top_k):
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(list("abcdefgh"), rng.integers(1, 6))) for _ in range(300)]
    index = Bm25Index(ListCorpus(texts))
    queries = ["a", "b c c", "h a", "none", "f g h a b"]
    whole = index.retrieve(queries, 300)
    for some, every in zip(index.retrieve(queries, top_k), whole, strict=True):
        assert some == every[:top_k]
        assert every == sorted(every, key=lambda d: (-d.score, int(d.id[1:])))


@pytest.mark.parametrize(
    "index",
    [
        Bm25Index(ListCorpus(["x"])),
        FlatIndex(ListCorpus(["x"]), TableEmbedder({"x": [1.0], "q": [1.0]})),
    ],
)
def test_more_documents_than_there_are_is_an_error(index):
    with pytest.raises(RetrievalError, match="lower `top_k`"):
        index.retrieve(["q"], 2)


def test_inner_products_are_those_of_vectors_as_long_as_they_are():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 8)) * rng.uniform(0.1, 9, (300, 1))
    vectors = {f"t{i}": row for i, row in enumerate(rows.astype(np.float32))}
    vectors["t7"] = vectors["t3"]
    corpus = ListCorpus(list(vectors))
    queries = {f"q{i}": rng.standard_normal(8).astype(np.float32) for i in range(20)}
    index = FlatIndex(corpus, TableEmbedder(vectors | queries), unit=False)
    matrix = np.array(list(vectors.values()), dtype=np.float64)
    for query, found in zip(queries, index.retrieve(list(queries), 10), strict=True):
        scores = (matrix * queries[query].astype(np.float64)).sum(axis=1).round(6)
        best = np.argsort(-scores, kind="stable")[:10]
        assert [d.id for d in found] == [f"d{i}" for i in best]
        assert [d.score for d in found] == scores[best].tolist()
    few, more = index.retrieve(list(queries), 3), index.retrieve(list(queries), 10)
    assert few == [found[:3] for found in more]


class Endpoint(Answering):
    def do_POST(self):  # noqa: N802 its name
        server = self.server
        body = self.body()
        server.seen.append((self.path, body, self.headers.get("Authorization")))
        status, answer = server.answers.pop(0) if server.answers else (200, None)
        if len(body["input"]) > server.most:
            status, answer = server.refusal
        if answer is None:
            texts = enumerate(body["input"])
            rows = [{"index": i, "embedding": [len(text), 1.0]} for i, text in texts]
            answer = {"data": rows[::-1]}
        headers = {429: {"Retry-After": "7"}, 302: {"Location": "http://127.0.0.1:9/"}}
        self.send(status, answer, headers.get(status))


@pytest.fixture
def endpoint():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.answers, server.seen, server.most = [], [], 10_000
    with served(server):
        yield server


def client(server, pauses=None, **options):
    waited = pauses if pauses is not None else []
    address = f"http://127.0.0.1:{server.server_address[1]}/v1/"
    return EndpointEmbedder(address, "m", Meter(), pause=waited.append, timeout=600, **options)


def test_an_endpoint_gives_unit_vectors_in_order(endpoint, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sesame")
    found = client(endpoint, api_key_env="MY_KEY").embed(["a", "bbb"] * 50)
    assert found.shape == (100, 2)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-6)
    assert found[1] == pytest.approx(np.array([3, 1]) / np.sqrt(10), abs=1e-6)
    assert [len(body["input"]) for _, body, _ in endpoint.seen] == [64, 36]
    assert {(path, key) for path, _, key in endpoint.seen} == {("/v1/embeddings", "Bearer sesame")}
    assert "sesame" not in client(endpoint, api_key_env="MY_KEY").fingerprint


@pytest.mark.parametrize(
    ("most", "refusal", "sizes"),
    [
        (32, (413, {"message": "batch size 64 > maximum allowed batch size 32"}), [64, 32, 32, 32, 4]),
        (10, (400, {"error": {"message": "batch size is invalid, it should not be larger than 10."}}), [64, 32, 16] + [8] * 12 + [4]),
        (50, (422, {"detail": "too many inputs"}), [64, 32, 32, 32, 4]),
        (32, (413, b"<html>Request Entity Too Large</html>"), [64, 32, 32, 32, 4]),
    ],
)  # fmt: skip
def test_fewer_texts_are_sent_where_so_many_are_refused(endpoint, most, refusal, sizes):
    endpoint.most, endpoint.refusal = most, refusal
    embedder = client(endpoint)
    assert embedder.embed(["a", "bbb"] * 50).shape == (100, 2)
    assert [len(body["input"]) for _, body, _ in endpoint.seen] == sizes
    endpoint.seen.clear()
    embedder.embed(["a"] * 64)  # remembered
    assert len(endpoint.seen[0][1]["input"]) <= most
    endpoint.seen.clear()
    client(endpoint, at_once=7).embed(["a"] * 10)  # set
    assert [len(body["input"]) for _, body, _ in endpoint.seen] == [7, 3]


FOUND = {
    "null": ({"data": [{"index": 0, "embedding": None}]}, "`data[0].embedding` is nothing"),
    "nested": ({"data": [{"index": 0, "embedding": [[1.0, 2.0]]}]}, "`data[0].embedding` is a list of 1 entry of lists"),
    "base64": ({"data": [{"index": 0, "embedding": "AACAPw=="}]}, "`data[0].embedding` is 'AACAPw==' (text)"),
    "Ollama's own": ({"model": "m", "embeddings": [[1.0, 2.0]]}, "an object with `model`, `embeddings`"),
    "TEI's own": ([[1.0, 2.0]], "found a list of 1 entry"),
    "no row": ({"data": [[1.0, 2.0]]}, "`data[0].embedding` is nothing"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_what_is_no_embedding_is_named_with_its_place_and_the_key_to_set(endpoint, name):
    answer, found = FOUND[name]
    endpoint.answers = [(200, answer)] * 4
    with pytest.raises(ModelError) as caught:
        client(endpoint).embed(["a"])
    assert found in str(caught.value).replace("\\'", "'")
    assert "give `endpoint` the base" in str(caught.value)


def test_a_busy_endpoint_is_asked_again_after_a_pause(endpoint):
    endpoint.answers = [(429, {}), (503, {}), (200, None)]
    pauses = []
    assert client(endpoint, pauses).embed(["a"]).shape == (1, 2)
    assert pauses[0] == 7.0
    assert 1.5 <= pauses[1] <= 2.0


@pytest.mark.parametrize(
    ("answers", "message", "asked"),
    [
        ([(401, {})], "answered with HTTP 401 .*; give the key in `api_key_env`", 1),
        ([(404, {})], "check `endpoint`", 1),
        ([(302, {})], "answered with HTTP 302 .*; redirects are not followed", 1),
        ([(503, {})] * 4, "answered with HTTP 503 .*; tried 4 times", 4),
        ([(200, b"<html>")], "no list of embeddings", 1),
        ([(200, {"data": []})], "0 vectors for 1 texts", 1),
        ([(200, {"data": [{"index": 0, "embedding": ["x"]}]})], "no list of embeddings", 1),
        ([(200, {"data": [{"index": 0, "embedding": [0.0, 0.0]}]})], "zero or not finite", 1),
        ([(200, b'{"data": [{"index": 0, "embedding": [NaN, 1]}]}')], "zero or not finite", 1),
    ],
)
def test_what_an_endpoint_does_wrong_is_said(endpoint, answers, message, asked):
    endpoint.answers = answers
    with pytest.raises(ModelError, match=message):
        client(endpoint).embed(["a"])
    assert len(endpoint.seen) == asked


def test_a_missing_key_and_a_missing_endpoint_are_said(endpoint, monkeypatch):
    monkeypatch.delenv("NO_KEY", raising=False)
    with pytest.raises(UsageError, match="'NO_KEY', which `api_key_env` names, is not set"):
        client(endpoint, api_key_env="NO_KEY").embed(["a"])
    lost = EndpointEmbedder("http://127.0.0.1:9", "m", Meter(), pause=lambda _: None, timeout=600)
    with pytest.raises(ModelError, match="cannot be reached"):
        lost.embed(["a"])
