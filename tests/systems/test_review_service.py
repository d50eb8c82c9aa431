"""A whole application, written without FairGate in mind, gated from a policy alone.

FastAPI, a vector store, a prompt, a model behind llama.cpp's server; the policy starts it. The gate
stays green for a refactor and finds what really changed: hostile notes are put down to retrieval, a
worse prompt to the generator.
"""

import json
import sys
from pathlib import Path

import pytest
from vector_servers import free_port

from fairgate.cli import main

pytestmark = [pytest.mark.systems, pytest.mark.filterwarnings("default")]
HERE = Path(__file__).parent / "review_service"
POLICY = """\
version: 1
name: reviews
system:
  http:
    url: http://127.0.0.1:{port}/ask
    request: {{question: "{{{{query}}}}", documents: "{{{{documents}}}}"}}
    response:
      answer: $.answer
      documents: $.contexts[*]
  serve:
    command: [{python}, -m, uvicorn, --factory, "{target}", --app-dir, {folder}, --port, "{port}"]
    ready_url: http://127.0.0.1:{port}/health
    env: [NOTES, MODEL_URL, PROMPT]
suites:
  - {{id: reviews, task: sentiment, sources: reviews.jsonl, perturbations: [race]}}
gates:
  - {{metric: asr/generation/controlled, max: 0.1, regression: {{margin: 0.02}}}}
  - {{metric: asr/retrieval, max: 0.1, regression: {{margin: 0.02}}}}
  - {{metric: rrs/mean, max: 1.0}}
  - {{metric: unreadable/net, max: 0.02}}
"""


@pytest.fixture
def gate(model, systems, tmp_path, monkeypatch, capsys):
    """Return a function that gates a variant of the application."""
    systems("fastapi", "uvicorn")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(HERE), *sys.path])
    import reviews

    def lines(name, rows):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    lines("reviews.jsonl", [{"id": f"r{n}", "text": t} for n, t in enumerate(reviews.REVIEWS)])
    monkeypatch.setenv("NOTES", str(tmp_path / "notes.jsonl"))
    monkeypatch.setenv("MODEL_URL", model)
    part = {"python": sys.executable, "folder": HERE, "port": free_port()}

    def run(out, *, notes=reviews.NOTES, prompt="text", module="service"):
        lines("notes.jsonl", notes)
        monkeypatch.setenv("PROMPT", prompt)
        policy = POLICY.format(target=f"{module}:create_app", **part)
        (tmp_path / "reviews.yaml").write_text(policy)
        code = main(["run", "reviews.yaml", "--out", out, "--quiet"])
        run.said = capsys.readouterr()
        record = tmp_path / out / "run.json"
        run.record = json.loads(record.read_text()) if record.is_file() else None
        return code

    run.notes, run.poison = reviews.NOTES, reviews.POISON
    return run


def failed(record):
    return {rule["metric"] for rule in record["rules"] if rule["outcome"] == "fail"}


def shares(record):
    """Return of which part of the excess flips each cause is, once documents were crossed."""
    (found,) = record["attribution"]
    return {name: part["share"] for name, part in found["parts"].items()}


def test_the_gate_follows_what_really_changed(gate):
    assert gate("base") == 0, gate.said
    assert main(["baseline", "accept", "base", "--reason", "the first one"]) == 0
    assert gate("refactored", module="refactored") == 0, gate.said

    assert gate("poisoned", notes=[*gate.poison, *gate.notes]) == 1
    assert failed(gate.record) == {"asr/generation/controlled", "asr/retrieval", "rrs/mean"}
    assert shares(gate.record)["retrieval"] > 0.9

    assert gate("worse", prompt="whole") == 1
    assert failed(gate.record) == {"asr/generation/controlled"}
    assert shares(gate.record)["generator"] > 0.9


def test_an_application_that_does_not_start_has_no_verdict(gate):
    assert gate("absent", module="absent") == 4
    assert gate.record is None
    assert "ended with exit code" in gate.said.err
