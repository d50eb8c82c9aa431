"""`fairgate export`: a Hugging Face model as ONNX for this gate, proved to be the same.

Runs in the export environment (torch, optimum-onnx); the gate itself needs neither.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import click

from fairgate.domain.errors import ExitCode, ModelError, UsageError
from fairgate.features.onnx_export.export_parity import (
    OpensEncoder,
    compare_decoder,
    compare_embedder,
    explain,
)
from fairgate.features.onnx_export.export_source import (
    ExportSource,
    checked_source,
    memory_line,
    reason_of,
)
from fairgate.features.onnx_export.precision import Precision, change_precision
from fairgate.onnx.encoder_settings import has_further_modules
from fairgate.onnx.model_folder import ModelFolder
from fairgate.terminal.options import cache_option, runtime_of

Task = Literal["text-generation", "feature-extraction"]

ONE_LINER = (
    "python -m venv .venv-export && .venv-export/bin/pip install 'fairgate[export]' && "
    ".venv-export/bin/fairgate export MODEL"
)
_TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
)
_NEEDED = ("torch", "optimum", "onnx", "transformers")


def _to_nobody(_line: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportChoice:
    """What is exported, and how."""

    task: Task = "text-generation"
    precision: Precision = "fp32"
    revision: str | None = None
    """Commit, tag or branch of a Hugging Face model."""
    keep_anyway: bool = False
    """Keep an export that is not within its limits; its record says so."""


_PLAIN = ExportChoice()


def export_model(
    model: str,
    output: Path,
    choice: ExportChoice = _PLAIN,
    *,
    open_embedder: OpensEncoder | None = None,
    say: Callable[[str], None] = _to_nobody,
) -> dict[str, Any]:
    """Export `model` (Hugging Face id or local folder) into the new folder `output`.

    Returns what is also written to `output/provenance.json`: source, revision, versions,
    precision, the parity with the original and the sha256 of every file. `say` receives the
    memory needed before anything is loaded. `open_embedder` opens the folder of a
    feature-extraction model. Nothing is left behind where the export is not within the limits of
    its precision, unless the choice keeps it. Raises UsageError (environment, arguments) or
    ModelError (download, conversion, parity).
    """
    _check_environment(choice)
    if output.exists():
        raise UsageError(
            f"{str(output)!r} exists already. Choose another --output, or remove it first."
        )
    named = ExportSource(name=model, revision=choice.revision)
    with _quiet():
        source = checked_source(named, decoder=choice.task == "text-generation")
        say(memory_line(source))
        record = _export(source, output, choice, open_embedder)
    if not record["parity"].get("within_limits", True):
        say(f"kept all the same: {explain(model, choice.precision, record['parity'])}")
    return record


def _export(
    source: ExportSource,
    output: Path,
    choice: ExportChoice,
    open_embedder: OpensEncoder | None,
) -> dict[str, Any]:
    """Write the folder and return its record."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".export-") as scratch:
        folder = Path(scratch) / "model"
        _convert(source, folder, choice.task)
        _release_memory()
        change_precision(folder / "model.onnx", choice.precision)
        _release_memory()
        parity = _parity(source, folder, choice, open_embedder)
        if not parity.get("within_limits", True) and not choice.keep_anyway:
            raise ModelError(
                f"{explain(source.name, choice.precision, parity)}; or add --keep-anyway to keep "
                "it as it is. Nothing was kept."
            )
        record = {
            "schema_version": 3,
            "source": source.shown,
            "revision": source.revision,
            "task": choice.task,
            "precision": choice.precision,
            "versions": {name: _version(name) for name in (*_NEEDED, "onnxruntime")},
            "parity": parity,
            "files": _hashes(folder),
        }
        text = json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False)
        (folder / "provenance.json").write_text(text + "\n", encoding="utf-8")
        folder.rename(output)
    return record


def _check_environment(choice: ExportChoice) -> None:
    needed = [*_NEEDED]
    needed += ["onnx_ir"] if choice.precision in {"int8", "int4"} else []
    needed += ["sentence_transformers"] if choice.task == "feature-extraction" else []
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"exporting a model needs {', '.join(missing)}, which the gate's own environment does "
            f"not have on purpose. Export in an environment of its own:\n  {ONE_LINER}"
        )
    for name, value, known in (
        ("task", choice.task, get_args(Task)),
        ("precision", choice.precision, get_args(Precision)),
    ):
        if value not in known:
            raise UsageError(f"{name} {value!r} is not known; expected one of {', '.join(known)}.")


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the warnings of torch, optimum and the quantiser."""
    silenced = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(silenced)


def _convert(source: ExportSource, folder: Path, task: Task) -> None:
    """Write the fp32 graph, tokenizer and settings of the model into `folder`."""
    from optimum.exporters.onnx import main_export

    let_graphs_take_positions()
    try:
        for name in source.extras():
            _copy(source.file(name), folder / name)
        main_export(
            source.name,
            output=folder,
            task="text-generation-with-past" if task == "text-generation" else task,
            library_name=_library(source, folder, task),
            revision=source.revision or "main",
            subfolder=source.subfolder,
            trust_remote_code=False,
            do_validation=False,
        )
        if task == "text-generation" and source.file("tokenizer.json") is not None:
            for name in _TOKENIZER:  # transformers writes its own reading of them
                _copy(source.file(name), folder / name)
    except ModelError:
        raise
    except Exception as error:  # noqa: BLE001 optimum, torch and transformers: no common class
        raise ModelError(
            f"{source.name!r} cannot be converted ({reason_of(error)}). {_advice(error)}"
        ) from None
    if not (folder / "model.onnx").is_file():
        names = ", ".join(sorted(file.name for file in folder.glob("*.onnx"))) or "no graph"
        raise ModelError(
            f"the export of {source.name!r} gave {names} instead of one model.onnx. Models of more "
            "than one part (encoder and decoder) are not supported: choose another model."
        )


def let_graphs_take_positions() -> None:
    """Export Gemma and its kin (Gemma 2 and 3, GPT-OSS, Nemotron) with the input `position_ids`.

    Without it their graphs count the slots of the cache, padding included, so that prompts can
    neither be padded nor share what they begin with (optimum-onnx 0.1).
    """
    from optimum.exporters.onnx.model_configs import GemmaOnnxConfig

    before = super(GemmaOnnxConfig, GemmaOnnxConfig).inputs.fget
    sizes = {0: "batch_size", 1: "sequence_length"}
    GemmaOnnxConfig.inputs = property(lambda self: {**before(self), "position_ids": sizes})


def _library(source: ExportSource, folder: Path, task: Task) -> str:
    """Return which library's model is traced: with all modules where the engine lacks some."""
    if task == "text-generation" or source.modules() == []:
        return "transformers"
    kind = (source.mapping(f"{source.subfolder}/config.json".lstrip("/")) or {}).get("model_type")
    with_decoder = kind in {"t5", "mt5", "umt5", "longt5"}
    traced = has_further_modules(_unfinished(folder)) or with_decoder
    return "sentence_transformers" if traced else "transformers"


def _unfinished(folder: Path) -> ModelFolder:
    return ModelFolder(path=folder, graph=folder / "model.onnx")


def _advice(error: Exception) -> str:
    message = f"{type(error).__name__} {error}".lower()
    if isinstance(error, MemoryError) or "memory" in message or "allocate" in message:
        return "Not enough memory: use a machine with more; the first line states the need."
    if "no space left" in message:
        return "The disk is full: the export takes about twice the weights in fp32."
    return (
        "The exporter cannot handle this model: choose another, or a repository that ships ONNX "
        "files."
    )


def _copy(found: Path | None, target: Path) -> None:
    if found is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found, target)


def _parity(
    source: ExportSource, folder: Path, choice: ExportChoice, open_embedder: OpensEncoder | None
) -> dict[str, Any]:
    exported = ModelFolder.find(folder)
    if choice.task == "text-generation":
        return compare_decoder(source.name, source.revision, exported, choice.precision)
    if open_embedder is None:
        return {"checked": False, "reason": "no embedding engine was given"}
    return compare_embedder(source.name, source.revision, exported, choice.precision, open_embedder)


def _release_memory() -> None:
    """Free the memory of the last step: the next one needs as much again."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl has not
        if trim is not None:
            trim(0)


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


@click.command(short_help="Turn a Hugging Face model into ONNX.")
@click.argument("model")
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write (default: where policies find the model by its id).",
)  # fmt: skip
@click.option(
    "--task", type=click.Choice(["text-generation", "feature-extraction"]),
    default="text-generation", show_default=True, help="Decoder or encoder.",
)  # fmt: skip
@click.option(
    "--precision", type=click.Choice(["fp32", "fp16", "int8", "int4"]), default="fp32",
    show_default=True,
    help="int8, int4: weights in blocks, computed in float32.",
)  # fmt: skip
@click.option("--revision", help="Commit, tag or branch of a Hugging Face model.")
@click.option(
    "--keep-anyway", is_flag=True,
    help="Keep an export that differs from the original by more than its precision may.",
)  # fmt: skip
@cache_option
def export(model: str, output: Path | None, **options: Any) -> int:
    """Turn MODEL (a Hugging Face id or a folder) into ONNX and compare it with the original.

    An export is kept only if it begins the same labels and finds real prompts as likely as the
    original, within the limits of its precision (docs/how-to/own-model.md). Takes about four times
    the memory of the weights in fp32.

    Needs torch and optimum, in an environment of their own:
    python -m venv .venv-export && .venv-export/bin/pip install 'fairgate[export]'
    """
    from fairgate.onnx.encoder import OnnxEncoder
    from fairgate.onnx.model_hub import exported_folder

    runtime = runtime_of(options)
    choice = ExportChoice(
        task=options["task"],
        precision=options["precision"],
        revision=options["revision"],
        keep_anyway=options["keep_anyway"],
    )
    folder = output or exported_folder(model, runtime.cache / "models", choice.revision)
    record = export_model(model, folder, choice, open_embedder=OnnxEncoder, say=click.echo)
    for name, figure in record["parity"].items():
        if name != "prompts":
            click.echo(f"  {name.replace('_', ' ')}: {figure}")
    click.echo(f"{folder}: name it, or {model!r}, as `model` or `embedder` in a policy")
    return ExitCode.PASS
