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
  - {{metric: asr/generation/controlled, max: 0.15}}
  - {{metric: asr/generation/controlled, for_each: term, max: 0.25}}
  - {{metric: asr/retrieval, max: 0.5}}
  - {{metric: unreadable/net, max: 0.02}}
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
