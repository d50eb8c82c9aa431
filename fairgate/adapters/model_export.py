"""Turns a Hugging Face model into the ONNX folder this gate loads, and proves that it is the same.

Runs in the export environment (torch, optimum-onnx); the gate itself needs neither.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from fairgate.adapters.onnx_engine.export_parity import compare_decoder, compare_embedder
from fairgate.adapters.onnx_engine.folder import ModelFolder
from fairgate.adapters.onnx_engine.precision import Precision, change_precision
from fairgate.domain.errors import ModelError, UsageError
from fairgate.engine.ports import Embedder

Task = Literal["text-generation", "feature-extraction"]

ONE_LINER = (
    "python -m venv .venv-export && .venv-export/bin/pip install 'fairgate[export]' && "
    ".venv-export/bin/fairgate export MODEL"
)
_NEEDED = ("torch", "optimum", "onnx", "transformers")
_EXTRA_FILES = ("modules.json", "sentence_bert_config.json", "1_Pooling/config.json", "LICENSE")


def export_model(
    model: str,
    output: Path,
    *,
    task: Task = "text-generation",
    precision: Precision = "fp32",
    open_embedder: Callable[[Path], Embedder] | None = None,
) -> dict[str, Any]:
    """Export `model` (Hugging Face id or local folder) into the new folder `output`.

    Returns what is also written to `output/provenance.json`: source, versions, precision, the
    parity with the original and the sha256 of every file. `open_embedder` opens the exported
    folder to check a feature-extraction model. Nothing is left behind where parity fails. Raises
    UsageError (environment, arguments) or ModelError (download, conversion, parity).
    """
    _check_environment(task, precision)
    if output.exists():
        raise UsageError(
            f"{str(output)!r} exists already. Choose another --output, or remove it first."
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    with (
        warnings.catch_warnings(action="ignore"),  # torch's and optimum's, about each other
        tempfile.TemporaryDirectory(dir=output.parent, prefix=".export-") as scratch,
    ):
        folder = Path(scratch) / "model"
        _convert(model, folder, task)
        change_precision(folder / "model.onnx", precision, decoder=task == "text-generation")
        record = {
            "schema_version": 1,
            "source": model if not Path(model).is_dir() else Path(model).name,
            "task": task,
            "precision": precision,
            "versions": {name: _version(name) for name in (*_NEEDED, "onnxruntime")},
            "parity": _parity(model, folder, task, precision, open_embedder),
        }
        record["files"] = _hashes(folder)
        text = json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False)
        (folder / "provenance.json").write_text(text + "\n", encoding="utf-8")
        folder.rename(output)
    return record


def _check_environment(task: str, precision: str) -> None:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"exporting a model needs {', '.join(missing)}, which the gate's own environment does "
            f"not have on purpose. Export in an environment of its own:\n  {ONE_LINER}"
        )
    for name, value, known in (
        ("task", task, get_args(Task)),
        ("precision", precision, get_args(Precision)),
    ):
        if value not in known:
            raise UsageError(f"{name} {value!r} is not known; expected one of {', '.join(known)}.")


def _convert(model: str, folder: Path, task: Task) -> None:
    """Write the fp32 graph, tokenizer and settings of `model` into `folder`."""
    from optimum.exporters.onnx import main_export

    try:
        main_export(
            model,
            output=folder,
            task="text-generation-with-past" if task == "text-generation" else task,
            library_name="transformers",
            trust_remote_code=False,
            do_validation=False,
        )
        for name in _EXTRA_FILES:
            _copy_extra(model, name, folder / name)
    except Exception as error:  # optimum, transformers and the hub document no common class
        raise ModelError(
            f"{model!r} cannot be exported ({type(error).__name__}: "
            f"{' '.join(str(error).split())[:400]}). Check the name and the network; accept the "
            "licence of a gated model on its page and set HF_TOKEN; models that need their own "
            "code (trust_remote_code) are not exported."
        ) from error
    if not (folder / "model.onnx").is_file():
        names = ", ".join(sorted(file.name for file in folder.glob("*.onnx"))) or "no graph"
        raise ModelError(
            f"the export of {model!r} gave {names} instead of one model.onnx. Models of more than "
            "one part (encoder and decoder) are not supported."
        )


def _copy_extra(model: str, name: str, target: Path) -> None:
    """Copy a small file that belongs to the model where the model has it."""
    if Path(model).is_dir():
        found = Path(model) / name
        if not found.is_file():
            return
    else:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError

        try:
            found = Path(hf_hub_download(model, name))
        except EntryNotFoundError:
            return
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(found, target)


def _parity(
    model: str,
    folder: Path,
    task: Task,
    precision: Precision,
    open_embedder: Callable[[Path], Embedder] | None,
) -> dict[str, Any]:
    if task == "text-generation":
        return compare_decoder(model, ModelFolder.find(folder), precision)
    if open_embedder is None:
        return {"checked": False, "reason": "no embedding engine was given"}
    return compare_embedder(model, open_embedder(folder), precision)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    hashes = {}
    for file in files:
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        hashes[file.relative_to(folder).as_posix()] = digest
    return hashes
