"""The how-to for systems of one's own, word for word."""

import json
import re
import sys
from pathlib import Path

import pytest
from contract.conftest import NO_RETRIEVAL
from fakes.rag_app import DOCUMENTS
from fakes.talker import talker
from ruamel.yaml import YAML

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "own-system.md"


@pytest.fixture(autouse=True)
def reviews(place):
    """Sources on which the page's examples do not always say the same."""
    words = ("fine", "terrible")
    rows = [{"id": f"s{n}", "text": f"Review {n} is {words[n % 2]}."} for n in range(16)]
    lines = [json.dumps(row) + "\n" for row in rows]
    (place.root / "sources.jsonl").write_text("".join(lines))


@pytest.fixture
def blocks():
    found = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return {name: [text for kind, text in found if kind == name] for name in ("yaml", "python")}


def system_of(text):
    return YAML(typ="safe").load(text)["system"]


@pytest.fixture
def asked(start, blocks):
    app = start()

    def system(number):
        found = system_of(blocks["yaml"][number])
        found["http"]["url"] = found["http"]["url"].replace("http://127.0.0.1:8000", app.url)
        return found

    return app, system


def test_over_http(place, asked):
    app, system = asked
    assert place.gate(system(0)) == 0, place.err
    assert app.seen[0][1].keys() == {"question"}


def test_a_program(place, blocks):
    (place.root / "ask.py").write_text(blocks["python"][0])
    system = system_of(blocks["yaml"][2])
    system["command"][0] = sys.executable
    assert place.gate(system) == 0, place.err


def test_a_function(place, blocks, monkeypatch):
    (place.root / "my_app.py").write_text(blocks["python"][1])
    monkeypatch.syspath_prepend(str(place.root))
    assert place.gate(system_of(blocks["yaml"][3])) == 0, place.err


def test_a_function_that_searches_a_store(place, blocks, monkeypatch):
    store = """
class store:
    def search(vector, limit):
        return [type("Hit", (), {"id": str(n), "text": f"Note {n}."}) for n in range(9)][:limit]


def embed(query):
    return query
"""
    (place.root / "my_store.py").write_text(store)
    (place.root / "my_search.py").write_text(blocks["python"][2])
    monkeypatch.syspath_prepend(str(place.root))
    policy = f"""\
version: 1
name: store
system: {{retriever: {json.dumps(system_of(blocks["yaml"][5])["retriever"])}}}
suites: [{{id: s, sources: sources.jsonl, perturbations: [gender]}}]
gates: [{{metric: retrieval/overlap, min: 0.9}}]
"""
    (place.root / "store.yaml").write_text(policy)
    assert place.call("run", "store.yaml", "--allow-python", "--quiet") == 0, place.err


def test_what_others_start_or_ask_is_checked(place, blocks, monkeypatch):
    """A server of the run, an endpoint and a retriever of one's own."""
    monkeypatch.setenv("MODEL_KEY", "sesame")
    for number in (1, 4, 5):
        place.policy(system_of(blocks["yaml"][number]))
        assert place.call("check", "app.yaml") == 0, place.err


def test_what_an_agent_does(place, blocks):
    """The policy is valid; `test_actions_every_way.py` runs it."""
    (text,) = [each for each in blocks["yaml"] if "actions:" in each]
    gates = "gates:\n  - {metric: asr/generation, max: 0.1}\n"
    (place.root / "agent.yaml").write_text(f"version: 1\nname: agent\n{text}{gates}")
    (place.root / "requests.jsonl").write_text((place.root / "sources.jsonl").read_text())
    assert place.call("check", "agent.yaml") == 0, place.err


@pytest.mark.whole
def test_labels_of_the_documents(place, asked):
    lines = [json.dumps({"id": d["id"], "label": d["label"]}) + "\n" for d in DOCUMENTS]
    (place.root / "labels.jsonl").write_text("".join(lines))
    system = asked[1](6)
    system["http"]["response"]["document"] = {"label": "$.nothing"}
    assert place.gate(system) == 0, place.err


@pytest.mark.whole
def test_a_budget(place, asked):
    app, system = asked
    app.usage = {"prompt_tokens": 90, "completion_tokens": 10}
    assert place.gate(system(7), **NO_RETRIEVAL) == 0, place.err
    spent = {**system(7), "budget": {"requests": 9}}
    assert place.gate(spent, "out", "--cache", "new") == 5


@pytest.mark.whole
def test_conversations(place, blocks):
    (place.root / "talk.yaml").write_text(f"version: 1\nname: talk\n{blocks['yaml'][8]}")
    with talker() as app:
        text = (place.root / "talk.yaml").read_text().replace("http://127.0.0.1:8000", app.url)
        (place.root / "talk.yaml").write_text(text)
        assert place.call("run", "talk.yaml", "--out", "out", "--quiet") == 0, place.err
    turns = {len(said) for said in app.known.values()}
    assert turns == {1, 3}


def test_every_block_is_tried(blocks):
    """Those of recorded answers, the last three, by `test_evaluation_rows.py`."""
    assert (len(blocks["yaml"]), len(blocks["python"])) == (13, 3)
