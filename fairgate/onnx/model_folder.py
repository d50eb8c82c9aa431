"""Which files make up an ONNX model folder, and what identifies their content.

Nothing here loads a model or imports a runtime: a fully cached run needs the fingerprint only.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import quoted
from fairgate.onnx.graph_file import DamagedGraphError, external_locations

_GRAPH_FOLDERS = (".", "onnx")
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

    A graph may keep its weights in a file of any name, so what the graph names always counts. Of
    the other files all count but those that nothing here opens: notes, pictures, original weights,
    other graphs with their data, hidden folders.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
    """A local model folder: one ONNX graph, its external data, tokenizer and settings."""

    path: Path
    graph: Path

    @classmethod
    def find(cls, path: Path) -> ModelFolder:
        """Return the folder with its graph: `model.onnx`, or the only ONNX file there is.

        Looks in the folder itself and in its `onnx/` subfolder. Raises ModelError.
        """
        if not path.is_dir():
            raise ModelError(
                f"model folder {str(path)!r} does not exist. Expected a folder with an ONNX graph "
                "and a tokenizer; make one with `fairgate export MODEL`."
            )
        for folder in _GRAPH_FOLDERS:
            graphs = sorted((path / folder).glob("*.onnx"))
            named = [graph for graph in graphs if graph.name == "model.onnx"]
            if named or len(graphs) == 1:
                return cls(path=path, graph=(named or graphs)[0])
            if graphs:
                names = ", ".join(graph.name for graph in graphs[:8])
                raise ModelError(
                    f"model folder {str(path)!r} has several ONNX graphs ({names}) and none is "
                    "called model.onnx. Keep the one to use in a folder of its own."
                )
        raise ModelError(
            f"model folder {str(path)!r} has no *.onnx file, neither directly nor in onnx/. "
            "Make one with `fairgate export MODEL`, or fetch a repository that ships ONNX files."
        )

    def file(self, name: str, purpose: str) -> Path:
        """Return a file that must be there. Raises ModelError naming its purpose."""
        file = self.path / name
        if not file.is_file():
            raise ModelError(
                f"model folder {str(self.path)!r} has no {name} ({purpose}). Copy it from the "
                "original model, or export again with `fairgate export MODEL`."
            )
        return file

    def settings(self, name: str) -> Any:
        """Return a JSON file's content, or None where it does not exist. Raises ModelError."""
        file = self.path / name
        if not file.is_file():
            return None
        if file.stat().st_size > MAX_JSON_BYTES:
            raise ModelError(f"{str(file)!r} is larger than {MAX_JSON_BYTES} bytes; not read.")
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, OSError, RecursionError) as error:
            raise ModelError(
                f"{str(file)!r} is not readable JSON ({error}). Fetch or export the model again."
            ) from error

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a JSON file's object, empty where there is none. Raises ModelError."""
        found = self.settings(name)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise ModelError(
                f"{str(self.path / name)!r} holds a {type(found).__name__}, expected an object. "
                "Fetch or export the model again."
            )
        return found

    def number(self, name: str, *keys: str) -> int | None:
        """Return a whole number of a JSON file, by the keys on the way; None where none is there.

        Raises ModelError where something else is.
        """
        found: Any = self.mapping(name)
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return None if found is None else whole_number(found, self.path / name, ".".join(keys))

    def fingerprint(self, *facts: object) -> str:
        """Return 32 hex digits for the content of all files that matter plus `facts`.

        Covers the graph, the files it names as the place of its weights, tokenizer, templates and
        settings; not licences, notes, other graphs or the original weights, so adding a README
        changes nothing. Raises ModelError where a file outside the folder is named.
        """
        digest = hashlib.sha256()
        for file in content_files(self.path, self.graph):
            digest.update(file.relative_to(self.path).as_posix().encode(errors="surrogateescape"))
            digest.update(b"\0")
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        digest.update(json.dumps([str(fact) for fact in facts]).encode())
        return digest.hexdigest()[:32]


def whole_number(value: object, file: Path, key: str) -> int:
    """Return a setting as a whole number: 512, 512.0 or 1e30. Raises ModelError for all else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise ModelError(
        f"{str(file)!r} has {quoted(repr(value)[:80])} as {quoted(key)}, expected a whole number. "
        "Copy the file from the original model, or export again with `fairgate export MODEL`."
    )
