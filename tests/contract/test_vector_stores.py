"""Vector stores as retrievers: whichever it is, it finds what the index here finds."""

import json
import sys

import pytest
from fakes.encoders import write_encoder
from fakes.vector_stores import Postgres, stores

from fairgate.domain.executions import Document
from fairgate.github.accesses import accesses
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.policy.parse import parse_policy
from fairgate.systems.catalogue import policy_parts
from fairgate.systems.vector_stores import in_one_order

NAMES = ["qdrant", "chroma", "pgvector"]
CODES = (0, 1, 5)
"""Of runs that came to an end: the fake model answers at random."""
DSN = "postgresql://reader:sesame123@db.example/rag"


DOCUMENTS = [
    {"id": f"d{number}", "text": f"Document of {words}", "label": ("toxic", "plain")[number % 2]}
    for number, words in enumerate(
        ["soup", "a b", "c", "d d soup", "A", "A : b", "query", "passage a", "b c d", ": soup c"]
    )
]
"""Of words that the tiny embedder knows."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def rows(tiny):
    vectors = OnnxEncoder(tiny).embed([document["text"] for document in DOCUMENTS])
    return [
        {**document, "number": number, "vector": vector.tolist()}
        for number, (document, vector) in enumerate(zip(DOCUMENTS, vectors, strict=True))
    ]


@pytest.fixture
def web(rows):
    with stores(list(rows)) as server:
        yield server


@pytest.fixture(autouse=True)
def postgres(rows, monkeypatch):
    module = Postgres(list(rows))
    monkeypatch.setitem(sys.modules, "psycopg", module)
    monkeypatch.setenv("RAG_DSN", DSN)
    monkeypatch.setenv("STORE_KEY", "sesame123")
    return module


@pytest.fixture
def named(place, tiny, web, postgres, chat):
    words = ["a", "b", "c", "soup d"]
    lines = [json.dumps({"id": w, "text": f"This is {w} and soup."}) + "\n" for w in words]
    (place.root / "sources.jsonl").write_text("".join(lines))
    parts = {
        "qdrant": {"url": f"{web.url}/", "collection": "docs", "id": "name"},
        "chroma": {"url": web.url, "collection": "docs"},
        "pgvector": {"dsn_env": "RAG_DSN", "table": "public.docs", "label": "label"},
    }

    def system(name, *, changes=None, **more):
        part = {k: v for k, v in {**parts[name], **(changes or {})}.items() if v is not None}
        endpoint = {"base_url": chat.url, "model": "small"}
        retriever = {name: part, "top_k": 3, "embedder": str(tiny), **more}
        return {"retriever": retriever, "generator": {"endpoint": endpoint}}

    return system


@pytest.fixture(autouse=True)
def few(place, monkeypatch):
    """Ask few questions: what is asked is what counts."""
    gate = place.gate
    monkeypatch.setattr(
        place, "gate", lambda *given: gate(*given, **{"[race, gender]": "[gender]"})
    )


def asked(name, web, postgres):
    sql = [one for one in postgres.seen if one != "closed"]
    return len(sql if name == "pgvector" else web.searches())


def documents(place, out="out"):
    found = ((row["key"], row["documents"]) for row in place.executions(out))
    return {key: [(d["id"], d["text"], d["label"]) for d in shown] for key, shown in found}


@pytest.mark.walk(1)
@pytest.mark.parametrize("name", NAMES)
def test_every_store_finds_what_the_index_here_finds(place, named, tiny, name):
    lines = [json.dumps(document) + "\n" for document in DOCUMENTS]
    (place.root / "docs.jsonl").write_text("".join(lines))
    retriever = {"corpus": "docs.jsonl", "top_k": 3, "embedder": str(tiny)}
    index = {**named(name), "retriever": retriever}
    codes = [place.gate(index, "index"), place.gate(named(name), "store")]
    assert codes[0] == codes[1], place.err
    assert documents(place, "store") == documents(place, "index")
    measured = {m["metric"]: m["value"] for m in place.record("store")["measurements"]}
    assert measured == {m["metric"]: m["value"] for m in place.record("index")["measurements"]}
    assert measured["rrs/mean"] is not None
    assert place.record("store")["provenance"]["under_test"]["embedder"].startswith(str(tiny))


@pytest.mark.walk(1)
@pytest.mark.parametrize("name", NAMES)
def test_what_was_found_is_kept_under_a_revision_only(place, named, web, postgres, name):
    counts = []
    for revision in (None, None, "r", "r"):
        before = asked(name, web, postgres)
        assert place.gate(named(name, changes={"revision": revision})) in CODES, place.err
        counts.append(asked(name, web, postgres) - before)
    assert counts[0] == counts[1] >= counts[2] == 52  # without one, also for later waves
    assert counts[3] == 0


@pytest.mark.parametrize("name", NAMES)
def test_vectors_of_another_model_are_told_with_what_to_name(
    place, named, rows, web, postgres, name
):
    for server in (web, postgres):
        server.rows[:] = [{**row, "vector": row["vector"][:5]} for row in rows]
    assert place.gate(named(name)) == 4
    assert "holds vectors of 5 numbers, and the policy's embedder gives 6" in place.err
    assert "`retriever.embedder`" in place.err


@pytest.mark.walk(4)
@pytest.mark.parametrize(
    ("name", "changes", "fault"),
    [
        ("qdrant", {"collection": "nope"}, (None, "HTTP 404")),
        ("chroma", {"collection": "nope"}, (None, "check `url` and `collection`")),
        ("qdrant", {}, ((401, {}), "give the key in `api_key_env`")),
        ("chroma", {"api_key_env": "STORE_KEY"}, ((403, b"key sesame123 refused"), "check what STORE_KEY holds")),
        ("qdrant", {}, ((500, b""), "HTTP 500")),
        ("qdrant", {}, ((200, b"<html>"), "the answer is no JSON")),
        ("chroma", {}, ((200, b"[]"), "no `id` of a collection")),
        ("chroma", {}, ((200, {"id": "0-1", "ids": [["a"]], "documents": [[]]}), "no lists of one length")),
        ("qdrant", {}, ((200, {"result": {}}), "no size of vectors")),
        ("qdrant", {}, ((200, {"result": {"config": {"params": {"vectors": {"size": 6}}}}}), "no list at `$.result.points`")),
        ("qdrant", {"text": "body"}, (None, "in a vector store `text`")),
        ("chroma", {"text": "body"}, (None, "in a vector store `text`")),
        ("qdrant", {"url": "http://127.0.0.1:9"}, (None, "cannot be reached")),
        ("pgvector", {"dsn_env": "NOT_SET"}, (None, "`dsn_env` names")),
    ],
)  # fmt: skip
def test_faults_are_never_green_and_always_explained(  # noqa: PLR0917 (fixtures, and a case)
    place, named, web, at_once, name, changes, fault
):
    always, words = fault
    web.always = always
    assert place.gate(named(name, changes=changes)) in (2, 4)
    assert words in place.err
    assert "sesame123" not in place.err + place.out


@pytest.mark.whole
def test_a_key_goes_into_its_header_and_nowhere_else(place, named, web):
    web.rows[:] = [{**row, "text": f"{row['text']} sesame123"} for row in web.rows]
    for name, header in (("qdrant", "api-key"), ("chroma", "x-chroma-token")):
        web.keys.clear()
        assert place.gate(named(name, changes={"api_key_env": "STORE_KEY"}), name) in CODES
        assert {keys[header] for keys in web.keys} == {"sesame123"}
        written = [path.read_bytes() for path in place.root.rglob("*") if path.is_file()]
        assert not any(b"sesame123" in content for content in written)
        assert "sesame123" not in place.err + place.out


@pytest.mark.parametrize("text", [DSN, "sesame123", f"connection to {DSN} failed"])
def test_a_connection_string_is_in_no_message(place, named, postgres, text):
    postgres.fails = f"server said {text}"
    assert place.gate(named("pgvector")) == 4
    assert "PostgreSQL at the address in RAG_DSN, table 'public.docs'" in place.err
    assert "sesame123" not in place.err
    assert postgres.seen[-1] == "closed"


@pytest.mark.parametrize(
    ("dsn", "module", "words"),
    [
        ("sesame123 at home", {}, "holds no connection string"),
        (DSN, {"psycopg": None}, "pip install 'fairgate[pgvector]'"),
    ],
)
def test_a_database_that_cannot_be_opened_is_said(place, named, monkeypatch, dsn, module, words):
    monkeypatch.setenv("RAG_DSN", dsn)
    for name in module:
        monkeypatch.setitem(sys.modules, name, None)
    assert place.gate(named("pgvector")) == 2
    assert words in place.err
    assert "sesame123" not in place.err


def test_a_table_is_asked_so_that_an_index_can_answer(place, named, postgres):
    changes = {"distance": "inner_product", "embedding": "vec", "id": "Key", "label": None}
    place.gate(named("pgvector", changes=changes))
    sql, values = postgres.seen[0]
    assert sql.split(" FROM ") == [
        'SELECT "Key" AS id, "text" AS text, -("vec" <#> %(embedding)s::vector) AS score',
        '"public"."docs" ORDER BY "vec" <#> %(embedding)s::vector LIMIT %(top_k)s',
    ]
    assert values["top_k"] == 3
    limits = postgres.connected[0][1]
    assert (limits["connect_timeout"], limits["tcp_user_timeout"]) == (30, 30000)


def test_a_query_of_ones_own_is_asked_as_it_is(place, named, postgres):
    query = "SELECT id, text, 1 AS label FROM search(%(embedding)s::vector, %(top_k)s)"
    changes = {"query": query, "table": None, "label": None}
    assert place.gate(named("pgvector", changes=changes)) in CODES, place.err
    assert postgres.seen[0][0] == query


def test_a_collection_with_named_vectors_needs_the_name(place, named, web):
    web.named = True
    assert place.gate(named("qdrant")) == 4
    assert "has the vectors `dense` and `other`, and none is called ''; name one in" in place.err
    assert place.gate(named("qdrant", changes={"vector": "dense"})) in CODES, place.err
    assert web.seen[-1][1]["using"] == "dense"


def test_names_lead_into_nested_payloads_and_metadata(place, named):
    assert place.gate(named("qdrant", changes={"label": "meta.label"})) in CODES, place.err
    labels = {label for found in documents(place).values() for _, _, label in found}
    assert labels == {"toxic", "plain"}
    assert place.gate(named("chroma", changes={"text": "text", "id": "name"})) in CODES, place.err


def test_a_document_without_its_text_is_never_shown(place, named, web):
    web.hidden = True
    assert place.gate(named("chroma")) == 4
    assert "has an id and no text" in place.err


@pytest.mark.walk(4)
@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("pgvector", {"query": "SELECT 1"}, "needs one of `table` and `query`"),
        ("pgvector", {"table": None}, "needs one of `table` and `query`"),
        ("pgvector", {"table": None, "query": "SELECT 1"}, "lacks `%(embedding)s`"),
        ("pgvector", {"table": 'docs"; DROP TABLE docs'}, "table"),
        ("pgvector", {"dsn_env": DSN}, "dsn_env"),
        ("qdrant", {"url": "http://store.example", "api_key_env": "STORE_KEY"}, "unencrypted"),
        ("qdrant", {"text": "a'b"}, "text"),
        ("chroma", {"collection": ""}, "collection"),
        ("chroma", {"vector": "dense"}, "unknown key `vector`"),
    ],
)
def test_policies_that_cannot_work_are_refused(place, named, name, changes, words):
    place.policy(named(name, changes=changes))
    assert place.call("check", "app.yaml") == 2
    assert words in place.err


def test_two_stores_are_one_too_many(place, named):
    system = named("qdrant")
    system["retriever"]["chroma"] = named("chroma")["retriever"]["chroma"]
    place.policy(system)
    assert place.call("check", "app.yaml") == 2
    words = "needs one of http, command, python, qdrant, chroma or pgvector; keep one"
    assert words in place.err.replace("`", "")


@pytest.mark.parametrize(
    ("name", "changes", "secret"),
    [
        ("qdrant", {"api_key_env": "STORE_KEY"}, "STORE_KEY"),
        ("chroma", {"api_key_env": "STORE_KEY"}, "STORE_KEY"),
        ("pgvector", {}, "RAG_DSN"),
    ],
)
def test_what_a_change_may_not_introduce_names_the_secret(place, named, name, changes, secret):
    """In a pull request this decides: what the base's policy does not reach is not reached."""

    def reached(more):
        place.policy(named(name, changes={**changes, **more}))
        text = (place.root / "app.yaml").read_text()
        return set(accesses(parse_policy(text, "app.yaml", policy_parts()).policy))

    (store,) = [one for one in reached({}) if one.secret is not None]
    assert store.secret == secret
    other = {"table": "secrets"} if name == "pgvector" else {"collection": "secrets"}
    assert store not in reached(other)
    assert store in reached({"timeout": 5.0})


def test_equally_near_documents_are_in_one_order():
    def found(*pairs):
        return [Document(id=id_, score=score) for id_, score in pairs]

    one = found(("a", 0.9), ("c", 0.5), ("b", 0.5), ("d", 0.1))
    other = found(("a", 0.9), ("b", 0.5), ("c", 0.5), ("d", 0.1))
    assert in_one_order(one) == in_one_order(other) == tuple(other)
    own_order = found(("b", 0.2), ("a", 0.7), ("d", None), ("c", None))
    assert list(in_one_order(own_order)) == own_order


def test_a_store_is_asked_while_the_budget_lasts(place, named, web):
    system = {**named("qdrant"), "budget": {"requests": 3}}
    assert place.gate(system) == 5, place.err
    assert len(web.searches()) == 3
    assert "the budget of 3 requests is spent" in place.err
