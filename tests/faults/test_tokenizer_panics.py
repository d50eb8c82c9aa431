"""A tokenizer file that makes the Rust library panic is a broken model, not a bug of ours."""

import json
import shutil
from pathlib import Path

import pytest

import fairgate
from fairgate.cli import main
from fairgate.domain.errors import ExitCode, ModelError
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS, EmbedderChoice
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import PromptTokenizer

MODELS = Path(fairgate.__file__).parent / "data" / "models"
POLICY = """\
version: 1
name: p
system:
  retriever: {corpus: demo, embedder: {model: broken, query_prompt: "", document_prompt: ""}, top_k: 1}
  generator: {model: demo-slm}
suites:
  - {id: s, task: sentiment, sources: demo-reviews, limit: 1, perturbations: [gender]}
gates:
  - {metric: asr/generation, max: 0.15}
"""


def broken(model, tmp_path):
    shutil.copytree(MODELS / model, tmp_path / "broken")
    file = tmp_path / "broken" / "tokenizer.json"
    normalizer = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    file.write_text(json.dumps({**json.loads(file.read_text()), "normalizer": normalizer}))
    return tmp_path / "broken"


@pytest.mark.parametrize("model", ["minilm", "demo-slm"])
def test_it_is_a_model_error(tmp_path, model):
    folder = broken(model, tmp_path)
    with pytest.raises(ModelError, match="tokenizer"):
        OnnxEncoder(
            folder, choice=EmbedderChoice(pooling="mean", query_prompt="", document_prompt="")
        ).embed(["x"])
    with pytest.raises(ModelError, match="tokenizer"):
        PromptTokenizer(ModelFolder.find(folder))


def test_a_run_ends_with_exit_code_4(tmp_path, monkeypatch, capsys):
    broken("minilm", tmp_path)
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
        OnnxEncoder(tmp_path / "encoder", choice=NO_PROMPTS).embed(["x"])
