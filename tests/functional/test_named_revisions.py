"""A revision that its author names saves asking again, but not where the author is a stranger."""

import json
import sys

import pytest
from fakes.chat_server import chat_server

from fairgate.cli import main

PROGRAM = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    bad = {bad} and "Asian" in asked["query"]
    positive = ("fine" in asked["query"]) != bad
    answer = "positive" if positive else "negative"
    document = {{"id": "bad" if bad else "good", "text": "x", "label": "toxic" if bad else "kind"}}
    told = {{"id": asked["id"], "answer": answer, "documents": [document]}}
    print(json.dumps(told), flush=True)
"""
POLICY = """\
version: 1
name: revised
system: {system}
suites:
  - {{id: sentiment, task: sentiment, sources: sources.jsonl, perturbations: [race]}}
gates:
  - {{metric: {metric}, max: 0.05}}
"""
PARTS = {
    "command": "asr/generation", "endpoint": "asr/generation", "retriever": "asr/retrieval",
}  # fmt: skip
"""What has a revision, and the metric that sees it change."""


def answer_of(prompt, *, bad):
    return "positive" if ("fine" in prompt) != (bad and "Asian" in prompt) else "negative"


@pytest.fixture
def chat():
    with chat_server() as server:
        server.answer = lambda prompt: answer_of(prompt, bad=False)
        yield server


@pytest.fixture(params=PARTS)
def project(request, tmp_path, monkeypatch, chat):
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": f"s{n}", "text": f"Text number {n} is {'fine' if n % 2 else 'poor'}."}
        for n in range(6)
    ]
    (tmp_path / "sources.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = {"run": [sys.executable, "ask.py"], "revision": "1"}
    endpoint = {"base_url": chat.url, "model": "small"}
    system = {
        "command": {"command": command},
        "endpoint": {"generator": {"endpoint": {**endpoint, "revision": "1"}}},
        "retriever": {"retriever": {"command": command, "top_k": 1}, "generator": {"endpoint": endpoint}},
    }[request.param]  # fmt: skip
    text = POLICY.format(system=json.dumps(system), metric=PARTS[request.param])
    (tmp_path / "policy.yaml").write_text(text)
    (tmp_path / "ask.py").write_text(PROGRAM.format(bad=False))

    def worsen():
        (tmp_path / "ask.py").write_text(PROGRAM.format(bad=True))
        if request.param == "endpoint":
            chat.answer = lambda prompt: answer_of(prompt, bad=True)

    return worsen


def run(*more):
    return main(["run", "policy.yaml", "--quiet", "--cache", "store", *more])


@pytest.mark.walk(2)
@pytest.mark.parametrize("confined", [("--root", "."), ()])
def test_the_user_s_own_word_counts_and_a_confined_run_asks_anew(project, confined):
    assert run(*confined) == 0
    project()
    assert run(*confined) == (1 if confined else 0)
