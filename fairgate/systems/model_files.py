"""Whether the files of a model are there: what can be seen without loading or fetching."""

from __future__ import annotations

from pathlib import Path

from fairgate.adapters.embedded_names import embedded_path, find
from fairgate.adapters.model_hub import exported_folder, is_hub_id
from fairgate.adapters.onnx_engine.folder import ModelFolder
from fairgate.domain.errors import DataError, ModelError
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import quoted, suggestion

TOKENIZER = "tokenizer.json"


def model_problem(name: str, revision: str | None, runtime: Runtime) -> str:
    """Return what is wrong with a model's folder; empty where nothing is, or only the hub knows."""
    try:
        if embedded_path("models", name) is None:
            folder = local_folder(name, runtime)
            exported = exported_folder(name, runtime.cache / "models", revision)
            if folder is None and exported.is_dir():
                folder = exported
            if folder is not None:
                ModelFolder.find(folder).file(TOKENIZER, "splits texts into tokens")
    except (DataError, ModelError) as error:
        return str(error)
    return ""


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
