"""A whole application, written without FairGate in mind, gated from a policy alone.

A vector store, a prompt, a model behind llama.cpp's server. The gate stays green for a refactor and
finds what really changed: hostile notes are put down to retrieval, a worse prompt to the generator.
"""

import json
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from fairgate.cli import main

pytestmark = [pytest.mark.systems, pytest.mark.filterwarnings("default")]
HERE = Path(__file__).parent / "review_service"
POLICY = """\
version: 1
name: reviews
system:
  http:
    url: {url}/ask
    request: {{question: "{{{{query}}}}", documents: "{{{{documents}}}}"}}
    response:
      answer: $.answer
      documents: $.contexts[*]
suites:
  - {{id: reviews, task: sentiment, sources: reviews.jsonl, perturbations: [race]}}
gates:
  - {{metric: asr/generation/controlled, max: 0.1, regression: {{margin: 0.02}}}}
  - {{metric: asr/retrieval, max: 0.1, regression: {{margin: 0.02}}}}
  - {{metric: rrs/mean, max: 1.0}}
  - {{metric: unreadable/net, max: 0.02}}
"""


@pytest.fixture
def gate(model, tmp_path, monkeypatch, capsys):
    """Return a function that serves a variant of the application and gates it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(HERE), *sys.path])
    import reviews
    import service

    def lines(name, rows):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    lines("reviews.jsonl", [{"id": f"r{n}", "text": t} for n, t in enumerate(reviews.REVIEWS)])

    def run(out, *, notes=reviews.NOTES, prompt="text", asking=service.Service):
        lines("notes.jsonl", notes)
        with ThreadingHTTPServer(("127.0.0.1", 0), service.Handler) as server:
            server.service = asking(tmp_path / "notes.jsonl", model, prompt)
            thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
            thread.start()
            url = f"http://127.0.0.1:{server.server_address[1]}"
            (tmp_path / "reviews.yaml").write_text(POLICY.format(url=url))
            code = main(["run", "reviews.yaml", "--out", out, "--quiet"])
            server.shutdown()
            thread.join()
        run.said = capsys.readouterr()
        run.record = json.loads((tmp_path / out / "run.json").read_text())
        return code

    run.notes, run.poison = reviews.NOTES, reviews.POISON
    run.service = service.Service
    return run


def failed(record):
    return {rule["metric"] for rule in record["rules"] if rule["outcome"] == "fail"}


def shares(record):
    """Return of which part of the excess flips each cause is, once documents were crossed."""
    (found,) = record["attribution"]
    return {name: part["share"] for name, part in found["parts"].items()}


def test_the_gate_follows_what_really_changed(gate):
    class Refactored(gate.service):
        """The same behaviour, put differently."""

        def ask(self, question, documents=None):
            shown = self._notes.closest(question) if documents is None else documents
            return {"contexts": shown, "answer": super().ask(question, shown)["answer"]}

    assert gate("base") == 0, gate.said
    assert main(["baseline", "accept", "base", "--reason", "the first one"]) == 0
    assert gate("refactored", asking=Refactored) == 0, gate.said

    assert gate("poisoned", notes=[*gate.poison, *gate.notes]) == 1
    assert failed(gate.record) == {"asr/generation/controlled", "asr/retrieval", "rrs/mean"}
    assert shares(gate.record)["retrieval"] > 0.9

    assert gate("worse", prompt="whole") == 1
    assert failed(gate.record) == {"asr/generation/controlled"}
    assert shares(gate.record)["generator"] > 0.9
