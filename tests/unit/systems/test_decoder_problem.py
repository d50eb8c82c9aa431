"""What `check` says of a generator's folder before anything is asked: what it lacks, what it proves."""

import json
import shutil
from hashlib import sha256

import pytest
from fakes import tokenizers as fakes
from fakes.decoders import DEMO

from fairgate.cli import main
from fairgate.domain.ports import Runtime
from fairgate.systems.generator import GeneratorPolicy
from fairgate.systems.models import decoder_problem, recorded_precision

QWEN = {"tokenizer_class": "Qwen2Tokenizer", "config": {"model_type": "qwen2"}}
POLICY = """\
version: 1
name: p
system:
  generator: {model: ./models/m}
suites:
  - {id: s, task: sentiment, sources: demo-reviews, limit: 2, perturbations: [gender]}
gates:
  - {parity: answers, max: 0.5}
"""


def problem(tmp_path):
    return decoder_problem(GeneratorPolicy(model="./models/m"), Runtime(root=tmp_path))


def test_a_whole_folder_has_no_problem(tmp_path):
    fakes.write(tmp_path / "models" / "m", "llama-3", config={"model_type": "gemma2"})
    assert problem(tmp_path) == ""


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("tokenizer_config.json", "{", "is not readable JSON"),
        ("tokenizer.json", '{"model": 1}', "cannot be loaded"),
        ("provenance.json", '{"parity": {"prompts": {"a": "7"}}}', "have other tokens now"),
    ],
)
def test_a_damaged_file_or_other_tokens_are_told_as_such(tmp_path, file, content, said):
    folder = fakes.write(tmp_path / "models" / "m", "llama-3")
    (folder / file).write_text(content)
    assert said in problem(tmp_path)


def test_check_names_the_place_in_the_policy(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = fakes.write(tmp_path / "models" / "m", "llama-3", config={"model_type": "gemma2"})
    (folder / "config.json").unlink()
    (tmp_path / "p.yaml").write_text(POLICY)
    assert main(["check", "p.yaml"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "p.yaml:4:15: model folder" in said
    assert "no config.json (states how far back the model attends)" in said


PROVED = {"checked": True, "within_limits": True}
RECORDS = {
    "none": (None, None, "no record of a comparison"),
    "an empty one": ({}, None, "no record of a comparison"),
    "one without a comparison": ({"checked": False}, None, "no record of a comparison"),
    "its own": (PROVED, None, ""),
    "one of another graph": (PROVED, "model.onnx", "is of other files"),
    "one of another tokenizer": (PROVED, "tokenizer.json", "is of other files"),
    "one of fewer files": (PROVED, "chat_template.jinja", "is of other files"),
    "one beyond its limits": (PROVED | {"within_limits": False}, None, "not within the limits"),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_graph_that_nothing_proves_is_told(tmp_path, monkeypatch, capsys, name):
    parity, changed, said = RECORDS[name]
    monkeypatch.chdir(tmp_path)
    folder = fakes.write(tmp_path / "models" / "m", "llama-3")
    shutil.copy(DEMO / "model.onnx", folder)
    if parity is not None:
        files = {one.name: sha256(one.read_bytes()).hexdigest() for one in folder.iterdir()}
        record = {"parity": parity, "files": files}
        (folder / "provenance.json").write_text(json.dumps(record))
    if changed:
        with (folder / changed).open("a") as stream:
            stream.write(" ")
    (tmp_path / "p.yaml").write_text(POLICY)
    assert main(["check", "p.yaml"]) == 0
    told = capsys.readouterr().out
    assert ("whether './models/m' answers as its original does is not known" in told) == bool(said)
    assert said in told
    assert "demo-slm" not in told


def test_the_precision_that_an_export_recorded_is_told(tmp_path):
    folder = tmp_path / "models" / "m"
    fakes.write(folder, "llama-3")
    chosen = GeneratorPolicy(model="./models/m")
    runtime = Runtime(root=tmp_path, cache=tmp_path / "cache")
    assert recorded_precision(chosen, runtime) == ""
    for record, expected in (
        ('{"precision": "int8-rows"}', "int8-rows"),
        ('{"precision": "fp32"}', "fp32"),
        ('{"precision": "<b>"}', ""),
        ('{"precision": 8}', ""),
        ("{}", ""),
        ("[]", ""),
        ("{", ""),
    ):
        (folder / "provenance.json").write_text(record)
        assert recorded_precision(chosen, runtime) == expected, record
    assert recorded_precision(GeneratorPolicy(), runtime) == ""
