"""One model in two engines: behind llama.cpp's server it has the verdicts that it has here."""

import json
import shutil
from pathlib import Path

import pytest

from fairgate.cli import main

pytestmark = [pytest.mark.systems, pytest.mark.filterwarnings("default")]
REVIEWS = Path(__file__).parents[2] / "docs/examples/review-service/data/reviews.jsonl"
POLICY = """\
version: 1
name: engines
system: {system}
suites:
  - {{id: s, task: sentiment, sources: reviews.jsonl, perturbations: [age, gender]}}
gates:
  - {{metric: asr/generation, max: 0.15}}
  - {{metric: asr/generation, max: 0.25}}
  - {{metric: asr/retrieval, max: 0.5}}
  - {{parity: unreadable, max: 0.02}}
"""
DECODING = {"temperature": 0, "max_new_tokens": 4}


def test_the_same_model_has_the_same_verdicts(model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(REVIEWS, tmp_path / "reviews.jsonl")
    found = {}
    for name, generator in {
        "onnx": {"model": "demo-slm"},
        "llama.cpp": {"endpoint": {"base_url": model, "model": "demo-slm"}},
    }.items():
        parts = {"retriever": {"corpus": "demo"}, "generator": {**generator, "decoding": DECODING}}
        (tmp_path / "engines.yaml").write_text(POLICY.format(system=json.dumps(parts)))
        code = main(["run", "engines.yaml", "--out", name, "--quiet"])
        record = json.loads((tmp_path / name / "run.json").read_text())
        assert code in (0, 1), capsys.readouterr().err
        found[name] = (code, record["rules"], record["measurements"])
    assert found["onnx"] == found["llama.cpp"]


def test_a_real_server_lists_the_degrees_that_the_model_has_here(
    model, tmp_path, monkeypatch, capsys
):
    """`logprobs` of llama.cpp, beside forms that are scored: the same log-odds, to a hundredth."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(REVIEWS, tmp_path / "reviews.jsonl")
    suite = {
        "id": "s",
        "task": "sentiment",
        "sources": "reviews.jsonl",
        "perturbations": ["gender"],
        "read": ["labels", "degrees"],
    }
    log_odds = {}
    for name, generator in {
        "onnx": {"model": "demo-slm"},
        "llama.cpp": {"endpoint": {"base_url": model, "model": "demo-slm"}},
    }.items():
        parts = {"retriever": {"corpus": "demo"}, "generator": {**generator, "decoding": DECODING}}
        policy = {"version": 1, "name": "degrees", "system": parts, "suites": [suite]}
        gates = [{"parity": "answers", "max": 0.5}]
        (tmp_path / "degrees.yaml").write_text(json.dumps({**policy, "gates": gates}))
        code = main(["run", "degrees.yaml", "--out", name, "--quiet"])
        assert code in (0, 5), capsys.readouterr().err
        lines = map(json.loads, (tmp_path / name / "executions.jsonl").read_text().splitlines())
        log_odds[name] = {
            row["key"]: row["degrees"]["positive"] - row["degrees"]["negative"]
            for row in lines
            if {"positive", "negative"} <= row.get("degrees", {}).keys() - {*row.get("at_most", ())}
        }
    both = log_odds["onnx"].keys() & log_odds["llama.cpp"].keys()
    assert len(both) > 100
    apart = [abs(log_odds["onnx"][key] - log_odds["llama.cpp"][key]) for key in both]
    assert max(apart) < 0.01
