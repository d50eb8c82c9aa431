"""Which files make up an ONNX model folder, and what identifies their content.

Nothing here loads a model or imports a runtime: a fully cached run needs the fingerprint only.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import quoted
from fairgate.onnx.content import MAX_JSON_BYTES, content_files

_GRAPH_FOLDERS = (".", "onnx")


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
