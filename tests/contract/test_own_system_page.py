"""The how-to for systems of one's own, word for word."""

import json
import re
import sys
from pathlib import Path

import pytest
from fakes.encoders import write_encoder
from fakes.rag_app import DOCUMENTS
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
    """The blocks of the page by language, in order."""
    found = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return {name: [text for kind, text in found if kind == name] for name in ("yaml", "python")}


def system_of(text):
    return YAML(typ="safe").load(text)["system"]


def test_over_http(place, start, blocks):
    app = start()
    system = system_of(blocks["yaml"][0])
    system["http"]["url"] = system["http"]["url"].replace("http://127.0.0.1:8000", app.url)
    assert place.gate(system) == 0, place.err
    assert json.loads(json.dumps(app.seen[0][1])).keys() == {"question"}


def test_started_for_the_run(place, blocks):
    place.policy(system_of(blocks["yaml"][1]))
    assert place.call("check", "app.yaml") == 0, place.err  # test_serve.py starts some


def test_a_program(place, blocks):
    (place.root / "ask.py").write_text(blocks["python"][0])
    system = system_of(blocks["yaml"][2])
    system["command"][0] = sys.executable
    assert place.gate(system) == 0, place.err


def test_a_function(place, blocks, monkeypatch):
    (place.root / "my_app.py").write_text(blocks["python"][1])
    monkeypatch.syspath_prepend(str(place.root))
    assert place.gate(system_of(blocks["yaml"][3])) == 0, place.err


def test_a_model_behind_an_endpoint(place, blocks, monkeypatch):
    monkeypatch.setenv("MODEL_KEY", "sesame")
    place.policy(system_of(blocks["yaml"][4]))
    assert place.call("check", "app.yaml") == 0, place.err  # test_chat_endpoint.py asks one


def test_a_retriever_of_your_own(place, blocks):
    place.policy(system_of(blocks["yaml"][5]))
    assert place.call("check", "app.yaml") == 0, place.err  # test_own_retrievers.py asks some


def test_a_vector_store(place, blocks):
    write_encoder(place.root / "models" / "e5-small")
    for block in blocks["yaml"][6:9]:
        place.policy(system_of(block))
        assert place.call("check", "app.yaml") == 0, place.err  # test_vector_stores.py asks some


@pytest.mark.whole
def test_labels_of_the_documents(place, start, blocks):
    app = start()
    lines = [json.dumps({"id": d["id"], "label": d["label"]}) + "\n" for d in DOCUMENTS]
    (place.root / "labels.jsonl").write_text("".join(lines))
    system = system_of(blocks["yaml"][9])
    system["http"]["url"] = system["http"]["url"].replace("http://127.0.0.1:8000", app.url)
    system["http"]["response"]["document"] = {"label": "$.nothing"}
    assert place.gate(system) == 0, place.err


@pytest.mark.whole
def test_a_budget(place, start, blocks):
    app = start()
    app.usage = {"prompt_tokens": 90, "completion_tokens": 10}
    system = system_of(blocks["yaml"][10])
    system["http"]["url"] = system["http"]["url"].replace("http://127.0.0.1:8000", app.url)
    rules = {"  - {metric: asr/retrieval, max: 0.1, regression: {margin: 0.02}}\n": ""}
    assert place.gate(system, **rules) == 0, place.err
    assert place.gate({**system, "budget": {"requests": 9}}, "out", "--cache", "new") == 5


def test_every_block_is_tried(blocks):
    assert (len(blocks["yaml"]), len(blocks["python"])) == (11, 2)
