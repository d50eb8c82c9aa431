"""Whether the files of a model are there: what can be seen without loading or fetching."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fairgate.adapters.embedded_names import embedded_path, find
from fairgate.adapters.model_hub import exported_folder, is_hub_id
from fairgate.adapters.onnx_engine.folder import ModelFolder
from fairgate.domain.errors import DataError, ModelError, UsageError
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import quoted, suggestion
from fairgate.systems.embedders import EmbedderPolicy

TOKENIZER = "tokenizer.json"


def model_problem(
    name: str, revision: str | None, runtime: Runtime, splits: str = "splits texts into tokens"
) -> str:
    """Return what is wrong with a model's folder; empty where nothing is, or only the hub knows."""
    try:
        local = local_folder(name, runtime)
        if local is not None:
            refuse_revision(name, revision)
        if embedded_path("models", name) is None:
            folder = _folder_of(name, revision, runtime)
            if folder is not None:
                ModelFolder.find(folder).file(TOKENIZER, splits)
    except (DataError, ModelError, UsageError) as error:
        return str(error)
    return ""


def refuse_revision(name: str, revision: str | None) -> None:
    """Raise UsageError where a folder is given the revision that only the hub's models have."""
    if revision is not None:
        raise UsageError(
            f"`revision` {quoted(revision)} belongs to a model of the Hugging Face hub, but "
            f"{quoted(name)} is a folder: what is in it decides. Remove `revision`, or the folder"
        )


def embedder_problem(chosen: EmbedderPolicy, runtime: Runtime) -> str:
    """Return what is wrong with an embedder's folder and settings; empty as `model_problem`."""
    wrong = model_problem(chosen.model, chosen.revision, runtime)
    if wrong or embedded_path("models", chosen.model) is not None:
        return wrong
    folder = _folder_of(chosen.model, chosen.revision, runtime)
    if folder is None:
        return ""
    from fairgate.adapters.onnx_encoder import OnnxEncoder

    try:
        OnnxEncoder(folder, choice=chosen.choice)
    except ModelError as error:
        return str(error)
    return ""


def decoder_problem(name: str, revision: str | None, runtime: Runtime) -> str:
    """Return what is wrong with a generator's folder, or which package it needs; empty: nothing."""
    wrong = model_problem(name, revision, runtime, "splits prompts into tokens")
    if wrong or embedded_path("models", name) is not None:
        return wrong
    folder = _folder_of(name, revision, runtime)
    if folder is None or find_spec("transformers") is not None:
        return ""
    from fairgate.adapters.onnx_engine.attention_settings import unknown_here
    from fairgate.adapters.onnx_engine.tokenizer_errors import named_tokenizer
    from fairgate.adapters.onnx_engine.tokenizer_file import NeedsTransformersError, file_tokenizer

    try:
        found = ModelFolder.find(folder)
        with named_tokenizer(found):
            file_tokenizer(found)
        kind = unknown_here(found)
        why = f"its model_type is {quoted(kind)}" if kind else ""
    except NeedsTransformersError as more:
        why = str(more)
    except ModelError as error:
        return str(error)
    return why and (
        f"{quoted(name)} needs the package 'transformers', which is not installed: {why}; "
        "pip install 'fairgate[transformers]'"
    )


def _folder_of(name: str, revision: str | None, runtime: Runtime) -> Path | None:
    """Return the user's folder or the export of a model; None where it would be fetched."""
    folder = local_folder(name, runtime)
    exported = exported_folder(name, runtime.cache / "models", revision)
    return exported if folder is None and exported.is_dir() else folder


def local_folder(name: str, runtime: Runtime) -> Path | None:
    """Return the folder of a model, embedded or the user's; None for an id of the hub.

    Raises DataError where the name means a folder and there is none.
    """
    root = runtime.root
    if not is_hub_id(name) or (root / name).exists():
        return find("models", name, root, confined=runtime.confined)
    # `models/my-model` has the form of an id too: a folder that exists here makes it a path.
    parent = root / name.split("/", 1)[0]
    if parent.is_dir():
        inside = [f"{parent.name}/{one.name}" for one in parent.iterdir() if one.is_dir()]
        raise DataError(
            f"there is no folder {quoted(name)}; {suggestion(name, sorted(inside))}. Expected a "
            "folder with an ONNX graph and a tokenizer; make one with `fairgate export MODEL`"
        )
    return None
