"""Whether the files of a model are there: what can be seen without loading or fetching."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from fairgate.domain.errors import DataError, ModelError, UsageError
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import quoted, suggestion
from fairgate.io.embedded_names import embedded_path, find
from fairgate.onnx.model_folder import ModelFolder, content_files
from fairgate.onnx.model_hub import exported_folder, is_hub_id
from fairgate.systems.embedders import EmbedderPolicy

TOKENIZER = "tokenizer.json"


def model_problem(
    name: str, revision: str | None, runtime: Runtime, splits: str = "splits texts into tokens"
) -> str:
    """Return what is wrong with a model's folder; empty where nothing is, or only the hub knows."""
    try:
        folder = _folder_of(name, revision, runtime)
        if folder is not None:
            ModelFolder.find(folder).file(TOKENIZER, splits)
    except (DataError, ModelError, UsageError) as error:
        return str(error)
    return ""


def embedder_problem(chosen: EmbedderPolicy, runtime: Runtime) -> str:
    """Return what is wrong with an embedder's folder and settings; empty as `model_problem`."""
    wrong = model_problem(chosen.model, chosen.revision, runtime)
    folder = None if wrong else _folder_of(chosen.model, chosen.revision, runtime)
    if folder is None:
        return wrong
    from fairgate.onnx.encoder import OnnxEncoder

    try:
        OnnxEncoder(folder, choice=chosen.choice)
    except ModelError as error:
        return str(error)
    return ""


def decoder_problem(name: str, revision: str | None, runtime: Runtime) -> str:
    """Return what is wrong with a generator's folder, or which package it needs; empty: nothing."""
    wrong = model_problem(name, revision, runtime, "splits prompts into tokens")
    folder = None if wrong else _folder_of(name, revision, runtime)
    if folder is None:
        return wrong
    from fairgate.onnx.attention_settings import unknown_here
    from fairgate.onnx.prompts import PromptTokenizer

    try:
        found = ModelFolder.find(folder)
        PromptTokenizer(found)
        kind = unknown_here(found) if find_spec("transformers") is None else ""
    except ModelError as error:
        return str(error)
    return kind and (
        f"{quoted(name)} needs the package 'transformers', which is not installed: its model_type "
        f"is {quoted(kind)}; pip install 'fairgate[transformers]'"
    )


def unproved(name: str, revision: str | None, runtime: Runtime) -> str:
    """Return a sentence where nothing shows that a model's graph is its original; else empty.

    What shows it is the record that `fairgate export` leaves, of these very files.
    """
    folder = _folder_of(name, revision, runtime)
    if folder is None:
        return ""
    found = ModelFolder.find(folder)
    record = found.mapping("provenance.json")
    parity, files = record.get("parity"), record.get("files")
    if not isinstance(parity, dict) or not parity.get("checked"):
        why = "no record of a comparison with its original stands beside it"
    elif not isinstance(files, dict) or any(
        files.get(file.relative_to(folder).as_posix()) != _hash(file)
        for file in content_files(folder, found.graph)
    ):
        why = "the record beside it is of other files"
    elif parity.get("within_limits") is not True:
        why = "its record says that it is not within the limits of its precision"
    else:
        return ""
    return (
        f"whether {quoted(name)} answers as its original does is not known: {why}. "
        "`fairgate export MODEL` compares them and leaves a record"
    )


def _hash(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _folder_of(name: str, revision: str | None, runtime: Runtime) -> Path | None:
    """Return the user's folder or the export of a model; None: embedded, or to be fetched."""
    folder = local_folder(name, revision, runtime)
    if embedded_path("models", name) is not None:
        return None
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
