"""Values of named variables, said back in every way there is: in no file, message or traceback."""

import json
import os
import sys
from urllib.parse import quote

import pytest
from contract.conftest import NO_RETRIEVAL

SECRET = "swordfish/08+15"  # noqa: S105  # of nothing
PARTS = ("swordfish", "08+15", "08%2B15")
SAID = {
    "in an error": (500, {}, f"bad token {SECRET}".encode()),
    "in an error inside": (200, {}, json.dumps({"error": {"message": SECRET, "code": 401}}).encode()),
    "in a page": (200, {}, f"<html>{SECRET}</html>".encode()),
    "in half of JSON": (200, {}, json.dumps({"answer": SECRET}).encode()[:-1]),
    "in a redirect": (302, {"Location": f"http://127.0.0.1:9/{quote(SECRET, safe='')}"}, b""),
    "as an answer": (200, {}, json.dumps({"answer": f"positive {SECRET}"}).encode()),
    "as a name": (200, {}, json.dumps({SECRET: "positive"}).encode()),
    "as a kind": (200, {}, json.dumps({"answer": {SECRET: SECRET}}).encode()),
    "as documents": (200, {}, json.dumps({"answer": f"positive {SECRET}", "contexts": [{"id": SECRET, "text": f"x {SECRET}", "label": f"of {SECRET}"}]}).encode()),
    "as scores": (200, {}, json.dumps({"answer": "positive", "contexts": [SECRET, {"id": SECRET, "label": SECRET, "score": SECRET}]}).encode()),
    "as usage": (200, {}, json.dumps({"answer": "positive", "usage": {"total_tokens": SECRET}}).encode()),
}  # fmt: skip
PROGRAMS = {
    "on stderr": "sys.exit(secret)",
    "on stdout": "print(secret, flush=True)",
    "as an answer": "told(answer=secret)",
    "as a name": "told(**{secret: secret})",
    "as documents": "told(answer='positive ' + secret, documents=[dict(id=secret, text=secret, label=secret)])",
    "as scores": "told(answer='positive', documents=[secret, {'id': secret, 'label': secret, 'score': secret}])",
    "in a traceback": "raise ValueError(secret)",
}
PROGRAM = """\
import json, os, sys
secret = os.environ["PLANTED"]
for line in sys.stdin:
    asked = json.loads(line)
    def told(**more):
        print(json.dumps({{"id": asked["id"], **more}}), flush=True)
    {what}
"""


@pytest.fixture(autouse=True)
def planted(monkeypatch, at_once):
    monkeypatch.setenv("PLANTED", SECRET)


@pytest.fixture
def is_kept(place):
    """Return a function that gates loudly and returns where a part of the secret is."""

    def gate(system):
        place.sources(3)
        place.policy(system, **NO_RETRIEVAL)
        place.call("--debug", "run", "app.yaml", "--out", "out", "--cache", "store")
        said = place.out + place.err
        return [*(part for part in PARTS if part in said), *place.holds(*PARTS)]

    return gate


@pytest.mark.walk(5)
@pytest.mark.parametrize("way", SAID)
def test_over_http(start, http_system, is_kept, way):
    app = start()
    app.faults = [SAID[way]] * 1000
    documents = {"documents": "$.contexts"} if way in ("as documents", "as scores") else {}
    system = http_system(
        app, headers_env={"Authorization": "PLANTED"}, response=documents, revision="r"
    )
    assert is_kept({**system, "budget": {"tokens": 9}} if way == "as usage" else system) == []
    assert app.seen[0][0]["Authorization"] == SECRET


@pytest.mark.walk(4)
@pytest.mark.parametrize("way", PROGRAMS)
def test_by_a_program(place, is_kept, way):
    (place.root / "said.py").write_text(PROGRAM.format(what=PROGRAMS[way]))
    run = {"run": [sys.executable, "said.py"], "env": ["PLANTED"], "revision": "r"}
    assert is_kept({"command": run}) == []


@pytest.mark.parametrize("way", [*[*SAID][:4], "as an answer"])
def test_by_an_endpoint(is_kept, chat, way):
    status, _, body = SAID[way]
    if way == "as an answer":
        body = json.dumps({"choices": [{"message": {"content": f"positive {SECRET}"}}]}).encode()
    chat.faults = [(status, body)] * 1000
    endpoint = {"base_url": chat.url, "model": "m", "api_key_env": "PLANTED", "revision": "r"}
    assert is_kept({"generator": {"endpoint": endpoint}}) == []
    assert chat.seen[0][1] == f"Bearer {SECRET}"


def test_by_a_server_that_is_started(place, is_kept):
    (place.root / "serve.py").write_text("import os; raise SystemExit(os.environ['PLANTED'])")
    serve = {"command": [sys.executable, "serve.py"], "env": ["PLANTED"]}
    http = {"url": "http://127.0.0.1:9/ask"}
    assert is_kept({"http": http, "serve": {**serve, "ready_url": "http://127.0.0.1:9/"}}) == []
    assert os.environ["PLANTED"] == SECRET
