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

TOKENIZER = "tokenizer.json"


def model_problem(name: str, revision: str | None, runtime: Runtime) -> str:
    """Return what is wrong with a model's folder; empty where nothing is, or only the hub knows."""
    try:
        if embedded_path("models", name) is None:
            folder = _folder_of(name, revision, runtime)
            if folder is not None:
                ModelFolder.find(folder).file(TOKENIZER, "splits texts into tokens")
    except (DataError, ModelError, UsageError) as error:
        return str(error)
    return ""


def decoder_problem(name: str, revision: str | None, runtime: Runtime) -> str:
    """Return what is wrong with a generator's folder, or which package it needs; empty: nothing."""
    wrong = model_problem(name, revision, runtime)
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
    folder = local_folder(name, revision, runtime)
    exported = exported_folder(name, runtime.cache / "models", revision)
    return exported if folder is None and exported.is_dir() else folder


def local_folder(name: str, revision: str | None, runtime: Runtime) -> Path | None:
    """Return the folder of a model, embedded or the user's; None for an id of the hub.

    Raises DataError where the name means a folder and there is none, or could mean both: nobody
    who puts a folder into a checkout decides which model is taken.
    """
    root = runtime.root
    if embedded_path("models", name) is None and is_hub_id(name):
        if revision is not None:
            return None
        if (root / name).exists() or (root / name).is_symlink():
            raise DataError(
                f"{quoted(name)} is a folder here and could be a model of the Hugging Face hub "
                f"too; write {quoted(f'./{name}')} for the folder, or give the `revision` of the "
                "model"
            )
        # `models/my-model` has the form of an id too: a folder beside it makes it a slip.
        parent = root / name.split("/", 1)[0]
        if parent.is_dir():
            inside = [f"./{parent.name}/{one.name}" for one in parent.iterdir() if one.is_dir()]
            raise DataError(
                f"there is no folder {quoted(name)}; {suggestion(name, sorted(inside))}. Expected "
                "a folder with an ONNX graph and a tokenizer; make one with `fairgate export MODEL`"
            )
        return None
    if revision is not None:
        raise UsageError(
            f"`revision` {quoted(revision)} belongs to a model of the Hugging Face hub, but "
            f"{quoted(name)} is a folder: what is in it decides. Remove `revision`"
        )
    return find("models", name, root, confined=runtime.confined)
