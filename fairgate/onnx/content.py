"""Which files of a model folder can change an answer, whatever they are called.

A graph may keep its weights in a file of any name, so what the graph names always counts. Of the
other files all count but those that nothing here opens: notes, pictures, original weights, other
graphs with their data, hidden folders.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import quoted
from fairgate.onnx.external_data import external_locations
from fairgate.onnx.graph_fields import DamagedGraphError

MAX_JSON_BYTES = 64 * 1024 * 1024
_NEVER_OPENED = frozenset(
    {".md", ".png", ".jpg", ".pdf", ".safetensors", ".pt", ".pth", ".h5", ".msgpack", ".gguf"}
)
_NOTES = frozenset({"provenance.json", "LICENSE", "LICENCE", "NOTICE", ".gitattributes"})
_GRAPH_DATA = re.compile(r"_data(_\d+)?|\.data")
_HARMLESS_FILE_KEYS = frozenset({"special_tokens_map_file", "added_tokens_file"})


def content_files(folder: Path, graph: Path) -> list[Path]:
    """Return every file that can change an answer, in a fixed order.

    Raises ModelError where a file outside the folder is named. A graph that cannot be read makes
    every file count: the session that opens it reports the error.
    """
    files = set(_walk(folder))
    try:
        named = {graph, *_external_data(graph)}
    except (DamagedGraphError, OSError):
        return sorted(files)
    named |= set(_tokenizer_files(folder))
    others = [file for file in files if file.suffix == ".onnx" and file != graph]
    kept = {file for file in files if not _is_never_opened(file, others)}
    return sorted(kept | {file for file in named if file.is_file()})


def _walk(folder: Path) -> Iterator[Path]:
    """Yield all files below the folder, links followed once, hidden folders left out."""
    seen: set[str] = set()
    for place, names, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:
            names.clear()
            continue
        seen.add(real)
        names[:] = [name for name in names if not name.startswith(".")]
        yield from (file for name in files if (file := Path(place, name)).is_file())


def _external_data(graph: Path) -> Iterator[Path]:
    for location in external_locations(graph):
        inside = os.path.normpath(location)
        if PurePosixPath(inside).is_absolute() or inside.startswith(".."):
            raise ModelError(
                f"the graph {str(graph)!r} names {quoted(location)} as the place of its weights; "
                "expected a file in the graph's own folder. Nothing outside is read: fetch the "
                "model again, or export it again with `fairgate export MODEL`."
            )
        yield graph.parent / inside


def _tokenizer_files(folder: Path) -> Iterator[Path]:
    """Yield the files that `tokenizer_config.json` names: some transformers open them."""
    settings = folder / "tokenizer_config.json"
    for key, value in _mapping(settings).items():
        is_file_key = key.endswith("_file") or key in {"source_spm", "target_spm"}
        if not is_file_key or key in _HARMLESS_FILE_KEYS or not isinstance(value, str):
            continue
        named = Path(value)
        try:
            is_there = named.is_file()
        except (OSError, ValueError):
            continue
        if not is_there:
            continue
        if not named.resolve().is_relative_to(folder.resolve()):
            raise ModelError(
                f"{str(settings)!r} names {quoted(value)} as its {key}, a file outside the model "
                "folder. Copy the file into the folder and remove the key."
            )
        yield folder / named.resolve().relative_to(folder.resolve())


def _mapping(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > MAX_JSON_BYTES:
            return {}
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_never_opened(file: Path, others: list[Path]) -> bool:
    if file.suffix.lower() in _NEVER_OPENED or file.name in _NOTES or file in others:
        return True
    return any(
        file.parent == other.parent
        and file.name.startswith(other.name)
        and _GRAPH_DATA.fullmatch(file.name.removeprefix(other.name))
        for other in others
    )
