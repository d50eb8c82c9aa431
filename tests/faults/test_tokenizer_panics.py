"""A tokenizer file that makes the Rust library panic is a broken model, not a bug of ours."""

import json
import shutil
from pathlib import Path

import pytest

import fairgate
from fairgate.cli import main
from fairgate.domain.errors import ExitCode, ModelError
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import EmbedderChoice
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import _load

MODELS = Path(fairgate.__file__).parent / "data" / "models"
POLICY = """\
version: 1
name: p
system:
  retriever: {corpus: demo, embedder: broken, top_k: 1}
  generator: {model: demo-slm}
suites:
  - {id: s, task: sentiment, sources: demo-reviews, limit: 1, perturbations: [gender]}
gates:
  - {metric: asr/generation/controlled, max: 0.15}
"""


@pytest.fixture(params=["minilm", "demo-slm"])
def broken(request, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(MODELS / request.param, folder)
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text())
    content["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    file.write_text(json.dumps(content))
    return folder


def test_it_is_a_model_error(broken):
    with pytest.raises(ModelError, match="tokenizer"):
        OnnxEncoder(broken, choice=EmbedderChoice(pooling="mean")).embed(["x"])
    with pytest.raises(ModelError, match="tokenizer"):
        _load(ModelFolder.find(broken))


def test_a_run_ends_with_exit_code_4(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "broken"
    shutil.copytree(MODELS / "minilm", folder)
    content = json.loads((folder / "tokenizer.json").read_text())
    content["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    (tmp_path / "p.yaml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRGATE_CACHE", str(tmp_path / "cache"))
    assert main(["run", "p.yaml", "--out", "out"]) == ExitCode.EXECUTION
    said = capsys.readouterr().err
    assert "no readable tokenizer" in said
    assert "bug" not in said


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_stays_one(tmp_path, monkeypatch, error):
    class Tokenizer:
        @staticmethod
        def from_file(_):  # noqa: ANN205
            raise error

    monkeypatch.setattr("tokenizers.Tokenizer", Tokenizer)
    shutil.copytree(MODELS / "minilm", tmp_path / "encoder")
    with pytest.raises(error):
        OnnxEncoder(tmp_path / "encoder").embed(["x"])
