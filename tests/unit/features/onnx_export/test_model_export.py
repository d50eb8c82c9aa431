import importlib.util

import pytest

from fairgate.domain.errors import UsageError
from fairgate.features.onnx_export import command
from fairgate.features.onnx_export.command import ExportChoice, export_model


@pytest.fixture
def complete(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)


def test_without_the_export_environment_the_one_liner_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else name)
    with pytest.raises(UsageError, match=r"needs torch.*environment of its own") as refused:
        export_model("any/model", tmp_path / "out")
    assert command.one_liner() in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_exists_is_never_overwritten(tmp_path, complete):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious.txt").write_text("x")
    with pytest.raises(UsageError, match="exists already"):
        export_model("any/model", tmp_path / "out")
    assert (tmp_path / "out" / "precious.txt").read_text() == "x"


@pytest.mark.parametrize(
    ("option", "package"),
    [({"precision": "int4"}, "onnx_ir"), ({"task": "feature-extraction"}, "sentence_transformers")],
)
def test_what_later_steps_need_is_missed_before_the_first(tmp_path, monkeypatch, option, package):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else name)
    with pytest.raises(UsageError, match=f"needs {package}"):
        export_model("any/model", tmp_path / "out", ExportChoice(**option))
