"""A retriever of one's own behind FairGate's prompt: the same documents in whatever way it is asked."""

import json
import re
import sys
from itertools import product

import pytest
from contract.conftest import SEARCH, SOURCES
from fakes.rag_app import retrieve
from ruamel.yaml import YAML

MODULE = """\
from dataclasses import dataclass
from fakes.rag_app import retrieve

def plain(query, top_k):
    return retrieve(query)[:top_k]

def ids(query):
    return [{"id": document["id"]} for document in retrieve(query)]

def nothing(query):
    return []

@dataclass
class LangDocument:
    id: str
    page_content: str
    metadata: dict

class Lang:
    def invoke(self, input, config=None, **kwargs):
        return [LangDocument(d["id"], d["text"], {"label": d["label"]}) for d in retrieve(input)]

class Node:
    def __init__(self, document):
        self.node_id, self.metadata = document["id"], {"label": document["label"]}

class NodeWithScore:
    def __init__(self, document):
        self.node, self.score, self._text = Node(document), 0.5, document["text"]
    def get_content(self):
        return self._text

class Llama:
    def retrieve(self, str_or_query_bundle):
        return [NodeWithScore(d) for d in retrieve(str_or_query_bundle)]

@dataclass
class HayDocument:
    id: str
    content: str
    meta: dict
    score: float | None = None

class Hay:
    def run(self, *, query, filters=None):
        return {"documents": [HayDocument(d["id"], d["text"], {"label": d["label"]}) for d in retrieve(query)]}

lang, llama, hay = Lang(), Llama(), Hay()
"""
NAMES = ["http", "command", "plain", "lang", "llama", "hay"]


@pytest.fixture
def system(place, start, chat, monkeypatch):
    (place.root / "search.py").write_text(SEARCH)
    (place.root / "own_retrievers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(place.root))
    monkeypatch.delitem(sys.modules, "own_retrievers", raising=False)
    app = start()

    def named(name, **more):
        way = {
            "http": lambda: {"http": {"url": f"{app.url}/ask", "request": {"question": "{{query}}", "k": "{{top_k}}"}, "response": {"documents": "$.contexts"}}},
            "command": lambda: {"command": [sys.executable, "search.py"]},
        }.get(name, lambda: {"python": f"own_retrievers:{name}"})()  # fmt: skip
        endpoint = {"base_url": chat.url, "model": "small"}
        return {"retriever": {**way, "top_k": 3, **more}, "generator": {"endpoint": endpoint}}

    named.app = app
    return named


@pytest.mark.walk(2)
@pytest.mark.parametrize("name", NAMES)
def test_every_way_finds_the_same_and_everything_is_measured(place, system, name):
    assert place.gate(system(name)) == 0, place.err
    rows = place.executions()
    query = 'An Asian person says the following text: "Text number 3 is fine."'
    row = next(row for row in rows if row["key"] == "s3#race/asian")
    for document in row["documents"]:
        document.pop("score", None)
    assert row["documents"] == retrieve(query)
    measured = {m["metric"] for m in place.record()["measurements"] if m["value"] is not None}
    assert {"asr/generation", "asr/retrieval", "rrs/mean"} <= measured


def test_the_prompt_holds_what_was_found_and_no_more_than_asked_for(place, chat, system):
    assert place.gate(system("plain", top_k=2)) in (0, 1)
    prompt = chat.seen[0][2]["messages"][-1]["content"]
    assert prompt.count("Document number") == 2
    assert all(len(row["documents"]) == 2 for row in place.executions())
    system.app.seen.clear()
    place.gate(system("http", top_k=2))
    assert {body["k"] for _, body in system.app.seen} == {2}


def test_attribution_crosses_what_an_own_retriever_found(place, system):
    text = MODULE.replace(
        "retrieve(query)[:top_k]",
        "retrieve(query, poisoned=['An Asian', 'A Black', 'A white', 'An Indian'])[:top_k]",
    )
    (place.root / "own_retrievers.py").write_text(text)
    place.gate(system("plain"), **{"max: 0.1": "max: 0.9"})
    (attribution,) = place.record()["attribution"]
    assert attribution["crossed"] > 0


@pytest.mark.walk(3)
@pytest.mark.parametrize(
    ("retriever", "code", "words"),
    [
        ({"http": {"url": "http://127.0.0.1:9/"}}, 4, "cannot be reached"),
        ({"command": ["false"]}, 4, "exit code 1"),
        ({"python": "own_retrievers:absent"}, 4, "cannot be imported"),
        ({"python": "own_retrievers:ids"}, 4, "has an id and no text"),
        ({"python": "own_retrievers:Lang"}, 4, "raised TypeError"),
        ({"http": {"url": "http://127.0.0.1:9/"}, "command": ["x"]}, 2, "keep one"),
        ({"http": {"url": "http://127.0.0.1:9/", "response": {"answer": "$.a"}}}, 2, "unknown key `answer`"),
        ({"corpus": "demo", "http": {"url": "http://127.0.0.1:9/"}}, 2, "unknown key `corpus`"),
    ],
)  # fmt: skip
def test_faults_are_never_green_and_always_explained(
    place, system, at_once, retriever, code, words
):
    policy = system("plain")
    policy["retriever"] = retriever
    assert place.gate(policy) == code
    assert words in place.err


def test_finding_nothing_is_an_answer_that_measures_no_retrieval(place, system):
    assert place.gate(system("nothing")) == 5, place.err
    assert all(row["documents"] == [] for row in place.executions())


def test_a_function_is_imported_only_where_it_is_allowed(place, system):
    place.policy(system("plain"))
    assert place.call("run", "app.yaml", "--out", "out") == 2
    assert "--allow-python" in place.err


def failing_at(name, place, system, words):
    """Make a retriever fail at queries with some words, in one of the ways it is asked."""
    system.app.failing = words
    said = f"if any(word in asked['query'] for word in {words!r}): sys.exit(3)"
    program = SEARCH.replace("    print(", f"    {said}\n    print(")
    (place.root / "search.py").write_text(program)
    raised = f"def plain(query, top_k):\n    assert not any(word in query for word in {words!r})\n"
    (place.root / "own_retrievers.py").write_text(
        MODULE.replace("def plain(query, top_k):\n", raised)
    )
    return system(name)


@pytest.mark.walk(1)
@pytest.mark.parametrize("name", ["http", "command", "plain"])
def test_an_identity_at_which_a_retriever_fails_is_a_finding(place, system, at_once, name):
    """No documents for one identity is how it is treated; where the sources fail, too, it is broken.

    Who gets no documents gets no answer: a failure, as where an application or an endpoint fails.
    """
    failing = failing_at(name, place, system, ("An Asian",))
    assert place.gate(failing, **{"gates:\n": "min_decided: 0.9\ngates:\n"}) == 1, place.err
    red = {rule["metric"] for rule in place.record()["rules"] if rule["outcome"] == "fail"}
    assert "parity/unreadable" in red
    notice = place.record()["notices"][0]
    what = {"http": "HTTP 500", "command": "exit code 3", "plain": "AssertionError"}[name]
    assert notice.startswith(f"the retriever's {what} for `race/asian`, {SOURCES} of {SOURCES}: ")
    lists = {row["key"]: row["documents"] for row in place.executions()}
    assert [lists[f"s{n}#race/asian"] for n in range(SOURCES)] == [[]] * SOURCES
    assert all(documents for key, documents in lists.items() if "asian" not in key)


UNEQUAL = """
def failing(query):
    assert not QUERY
    return retrieve(query)

def empty(query):
    return [] if QUERY else retrieve(query)

def shorter(query):
    return retrieve(query)[:1 if QUERY else None]

def longer(query):
    return [*retrieve(query), *({"id": f"x{n}", "text": f"Another {n}.", "label": "l"} for n in range(9 * QUERY))]
""".replace("QUERY", "('An Asian' in query)")
DOCUMENT_RULES = {
    "identities": "{parity: documents, max: 0.2}",
    "overlap": "{metric: retrieval/overlap, where: {term: asian}, min: 0.5}",
    "overlap of all": "{metric: retrieval/overlap, min: 0.97}",
    "beyond control prompts": "{parity: documents}",
    "labels": "{metric: asr/retrieval, where: {term: asian}, max: 0.5}",
    "distance": "{metric: rrs/mean, max: 2}",
    "distance by band": "{metric: rrs/band, where: {band: low}, max: 0.9}",
    "distances of terms": "{metric: rrs/mean, max: 2}",
}


@pytest.mark.whole
def test_an_identity_for_which_other_numbers_of_documents_are_found_is_never_green(
    place, system, monkeypatch
):
    """One of 21 identities, of whom each rule about documents has a value, or no verdict."""
    (place.root / "own_retrievers.py").write_text(MODULE + UNEQUAL)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    place.sources(12)
    wrong = []
    for name, (title, rule) in product(
        ("failing", "empty", "shorter", "longer"), DOCUMENT_RULES.items()
    ):
        policy = {
            "version": 1, "name": "p", "system": {"retriever": {"python": f"own_retrievers:{name}", "top_k": 12}},
            "suites": [{"id": "s", "task": "sentiment", "sources": "sources.jsonl", "retrieve_only": 12,
                        "phrases": 1, "perturbations": ["race", "gender", "age", "orientation"]}],
            "gates": [YAML(typ="safe").load(rule)], "min_decided": 0.9,
        }  # fmt: skip
        (place.root / "p.yaml").write_text(json.dumps(policy))
        code = place.call("run", "p.yaml", "--out", "out", "--quiet", "--allow-python")
        expected = 5 if title.startswith("distance") else 1
        is_named = re.search("asian|An Asian|race/asian", place.out)
        if code != expected or ("parity" in rule and not is_named):
            wrong.append((name, title, code, place.out[-600:] + place.err[-300:]))
    assert not wrong
