"""A model that cannot be read without `transformers` is told by `check`, before anything is asked."""

import json
from importlib.machinery import ModuleSpec

import pytest
from fakes import tokenizers as fakes

from fairgate.cli import main
from fairgate.domain.runtime import Runtime
from fairgate.systems import model_files
from fairgate.systems.model_files import decoder_problem

QWEN = {"tokenizer_class": "Qwen2Tokenizer", "config": {"model_type": "qwen2"}}
POLICY = """\
version: 1
name: p
system:
  generator: {model: ./models/m}
suites:
  - {id: s, task: sentiment, sources: demo-reviews, limit: 2, perturbations: [gender]}
gates:
  - {metric: asr/generation/controlled, max: 0.5}
"""


@pytest.fixture
def without(monkeypatch):
    monkeypatch.setattr(model_files, "find_spec", lambda _: None)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, ""),
        (QWEN, "its tokenizer_class is 'Qwen2Tokenizer'"),
        ({"config": {"model_type": "gemma2"}}, "its model_type is 'gemma2'"),
        (
            {"config": {"model_type": "mistral", "sliding_window": None}},
            "its model_type is 'mistral'",
        ),
        ({"config": {"model_type": "qwen3", "use_sliding_window": False}}, ""),
    ],
)
def test_what_is_missing_is_said_with_its_reason(tmp_path, without, settings, said):
    fakes.write(tmp_path / "models" / "m", "llama-3", **settings)
    found = decoder_problem("./models/m", None, Runtime(root=tmp_path))
    assert said in found
    assert bool(found) == bool(said) == ("pip install 'fairgate[transformers]'" in found)


def test_nothing_is_missing_where_it_is_installed(tmp_path, monkeypatch):
    fakes.write(tmp_path / "models" / "m", "llama-3", **QWEN)
    monkeypatch.setattr(model_files, "find_spec", lambda name: ModuleSpec(name, None))
    assert decoder_problem("./models/m", None, Runtime(root=tmp_path)) == ""


def test_damaged_settings_are_told_as_such(tmp_path, without):
    folder = fakes.write(tmp_path / "models" / "m", "llama-3")
    (folder / "tokenizer_config.json").write_text("{")
    assert "is not readable JSON" in decoder_problem("./models/m", None, Runtime(root=tmp_path))


def test_a_control_token_that_is_not_in_the_file_needs_it(tmp_path, without):
    folder = fakes.write(tmp_path / "models" / "m", "llama-3")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings |= {"eos_token": "<not there>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    found = decoder_problem("./models/m", None, Runtime(root=tmp_path))
    assert "'eos_token', '<not there>', is no control token of its tokenizer.json" in found
    assert "pip install 'fairgate[transformers]'" in found


@pytest.mark.parametrize(("kind", "missing"), [("gemma2", True), ("llama", False)])
def test_a_builders_folder_names_its_type_elsewhere(tmp_path, without, kind, missing):
    folder = fakes.write(tmp_path / "models" / "m", "llama-3")
    (folder / "config.json").unlink(missing_ok=True)
    (folder / "genai_config.json").write_text(json.dumps({"model": {"type": kind}}))
    found = decoder_problem("./models/m", None, Runtime(root=tmp_path))
    assert (f"its model_type is {kind!r}" in found) == bool(found) == missing


def test_a_damaged_tokenizer_is_told_as_such(tmp_path, without):
    folder = fakes.write(tmp_path / "models" / "m", "llama-3")
    (folder / "tokenizer.json").write_text('{"model": 1}')
    assert "cannot be loaded" in decoder_problem("./models/m", None, Runtime(root=tmp_path))


def test_check_names_the_place_in_the_policy(tmp_path, monkeypatch, capsys, without):
    monkeypatch.chdir(tmp_path)
    fakes.write(tmp_path / "models" / "m", "llama-3", **QWEN)
    (tmp_path / "p.yaml").write_text(POLICY)
    assert main(["check", "p.yaml"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "p.yaml:4:15: './models/m' needs the package 'transformers'" in said
    assert "pip install 'fairgate[transformers]'" in said
