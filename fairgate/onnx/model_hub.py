"""Models by Hugging Face id: exported here before, in the local hub cache, or on the hub.

Only data files are fetched, never code, and of those only what is used: one graph, the files that
it names as the place of its weights, tokenizer and settings. Nothing is fetched when
HF_HUB_OFFLINE is set.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import quoted
from fairgate.io.hub import asking_the_hub
from fairgate.onnx.graph_file import DamagedGraphError, external_locations

_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_SETTINGS = frozenset({".json", ".txt", ".model", ".jinja", ".tiktoken", ".spm", ".codes"})
_MODULE_FILES = re.compile(r"[\w.-]+/(config|sentence_[\w-]+_config)\.json")
_TEMPLATES = "additional_chat_templates"
_SERVER_ERROR = 500
_NEVER_USED = ("model.safetensors.index.json", "pytorch_model.bin.index.json")


def is_hub_id(name: str) -> bool:
    """Return whether `name` has the form `organisation/model`, and is no JSON file."""
    return _ID.fullmatch(name) is not None and not name.endswith(".json")


def exported_folder(name: str, models: Path, revision: str | None = None) -> Path:
    """Return where `fairgate export` puts the model `name`, a pinned revision apart."""
    pinned = f"@{revision.replace('/', '--')}" if revision else ""
    return models / f"{name.replace('/', '--')}{pinned}"


def fetch(name: str, *, revision: str | None, models: Path) -> Path:
    """Return a folder with the model's files. Raises ModelError with how to get them."""
    local = exported_folder(name, models, revision)
    if local.is_dir():
        return local
    pin = f" --revision {revision}" if revision else ""

    def failure(reason: str) -> ModelError:
        return ModelError(
            f"the model {quoted(name)} is neither in {quoted(str(models))} nor available from the "
            f"hub ({quoted(reason)}); export it with `fairgate export {name}{pin}`, or name a "
            "folder with its ONNX files"
        )

    with asking_the_hub(failure):
        files = _listed(name, revision)
        if files is None:
            return _cached(name, revision)
    graph = _graph(name, files)
    with asking_the_hub(failure):
        return _downloaded(name, revision, graph, [one for one in files if _is_setting(one)])


def _listed(name: str, revision: str | None) -> list[str] | None:
    """Return what files the model has; None where the hub is not to be asked or not reached."""
    from huggingface_hub import HfApi
    from huggingface_hub.constants import HF_HUB_OFFLINE
    from huggingface_hub.errors import HfHubHTTPError

    if HF_HUB_OFFLINE:
        return None
    try:
        found = HfApi().model_info(name, revision=revision)
    except HfHubHTTPError as error:
        if error.response.status_code < _SERVER_ERROR:
            raise
        return None
    except Exception:  # noqa: BLE001 no network; the hub's HTTP library differs by its version
        return None
    return [one.rfilename for one in found.siblings or []]


def _cached(name: str, revision: str | None) -> Path:
    """Return the folder in the local cache; only the hub has the list of its files."""
    from huggingface_hub import snapshot_download

    return Path(
        snapshot_download(
            name, revision=revision, local_files_only=True, allow_patterns=["config.json"]
        )
    )


def _downloaded(name: str, revision: str | None, graph: str, settings: Sequence[str]) -> Path:
    """Return the folder with the graph, the files it names, and the settings."""
    from huggingface_hub import snapshot_download

    def get(wanted: Iterable[str], commit: str | None) -> Path:
        patterns = [glob.escape(one) for one in wanted]
        return Path(snapshot_download(name, revision=commit, allow_patterns=patterns))

    folder = get([graph], revision)  # by the name asked for, so that the cache knows it offline
    try:
        named = external_locations(folder / graph)
    except DamagedGraphError:
        named = frozenset()  # the session that opens it says what is wrong
    weights = [str(PurePosixPath(graph).parent / one) for one in sorted(named)]
    return get([graph, *weights, *settings], folder.name)


def _graph(name: str, files: Sequence[str]) -> str:
    """Return the one graph that will be used, as `ModelFolder.find` chooses it."""
    for folder in ("", "onnx"):
        graphs = [
            one
            for one in files
            if one.endswith(".onnx") and str(PurePosixPath(one).parent) == (folder or ".")
        ]
        plain = f"{folder}/model.onnx".lstrip("/")
        if plain in graphs or len(graphs) == 1:
            return plain if plain in graphs else graphs[0]
        if graphs:
            raise ModelError(
                f"the model {quoted(name)} has several graphs on the hub ({', '.join(graphs)[:300]}"
                ") and none is called model.onnx. Keep the one to use in a folder of its own, with "
                "tokenizer and settings, and name that folder"
            )
    raise ModelError(
        f"the model {quoted(name)} has no ONNX graph on the hub; export it with `fairgate export "
        f"{name}`, or name a folder with its ONNX files"
    )


def _is_setting(file: str) -> bool:
    path = PurePosixPath(file)
    if path.name in _NEVER_USED:
        return False
    if len(path.parts) == 1:
        return path.suffix in _SETTINGS
    return bool(_MODULE_FILES.fullmatch(file)) or (
        path.parts[0] == _TEMPLATES and path.suffix == ".jinja"
    )
