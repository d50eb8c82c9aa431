"""Which files make up an ONNX model folder, where it comes from, and what identifies its content.

A Hugging Face id is the folder that `fairgate export` wrote, or is fetched: one graph, the files it
names, tokenizer and settings, nothing else; never code, and nothing when HF_HUB_OFFLINE is set.

Nothing here loads a model or imports a runtime: a fully cached run needs the fingerprint only.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import quoted, suggestion
from fairgate.io.named_files import asking_the_hub
from fairgate.io.regular import opened, text_of
from fairgate.io.stand_ins import BEGINNING, stand_in
from fairgate.io.tables import file_sha256
from fairgate.onnx.graph_file import DamagedGraphError, external_locations

_PLACES = (".", "onnx")
"""Where a model's graph may be, the first that has any first."""
MAX_JSON_BYTES = 64 * 1024 * 1024
_NEVER_OPENED = frozenset(
    {".md", ".png", ".jpg", ".pdf", ".safetensors", ".pt", ".pth", ".h5", ".msgpack", ".gguf"}
)
_NOTES = frozenset({"provenance.json", "LICENSE", "LICENCE", "NOTICE", ".gitattributes"})
_GRAPH_DATA = re.compile(r"_data(_\d+)?|\.data")


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
        required = {graph, *_external_data(graph)}
    except (DamagedGraphError, OSError):
        return sorted(files)
    others = [file for file in files if file.suffix == ".onnx" and file != graph]
    opened = {file for file in files if not _is_never_opened(file, others)}
    return sorted(opened | {file for file in required if file.is_file()})


def _walk(folder: Path) -> Iterator[Path]:
    """Yield all files below the folder, links followed once, hidden folders left out."""
    visited: set[str] = set()
    for current, names, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(current)
        if real in visited:
            names.clear()
            continue
        visited.add(real)
        names[:] = [name for name in names if not name.startswith(".")]
        yield from (file for name in files if (file := Path(current, name)).is_file())


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

        Looks in the folder itself and in its `onnx/` subfolder. Where `path` is a graph, its folder
        is returned with that graph: the folder above where it lies in `onnx/`. Raises ModelError.
        """
        if path.suffix == ".onnx" and not path.is_dir():
            return cls._of_graph(path)
        if not path.is_dir():
            raise ModelError(
                f"model folder {str(path)!r} does not exist. Expected a folder with an ONNX graph "
                "and a tokenizer; make one with `fairgate export MODEL`."
            )
        files = [
            f"{subfolder}/{file.name}"
            for subfolder in _PLACES
            for file in (path / subfolder).glob("*")
        ]
        graphs = _graphs(files)
        if not graphs:
            raise ModelError(
                f"model folder {str(path)!r} has no *.onnx file, neither directly nor in onnx/. "
                "Make one with `fairgate export MODEL`, or fetch a repository that ships ONNX "
                "files."
            )
        if len(graphs) > 1:
            names = ", ".join(PurePosixPath(graph).name for graph in graphs[:8])
            raise ModelError(
                f"model folder {str(path)!r} has several ONNX graphs ({names}) and none is "
                "called model.onnx. Choose one in the policy, for example "
                f"`file: {graphs[0]}`."
            )
        folder = cls(path=path, graph=path / graphs[0])
        folder._require_files_themselves()
        return folder

    def _require_files_themselves(self) -> None:
        """Raise ModelError where a file of the model is a pointer or a page in its place."""
        files = sorted({*self.path.glob("*"), *self.graph.parent.glob("*")})
        others = [file.name for file in files if file.suffix == ".onnx" and file != self.graph]
        for file in files:
            is_of_another = file.name.startswith(tuple(others))
            if is_of_another or file.suffix.lower() in _NEVER_OPENED or file.name in _NOTES:
                continue
            try:
                with opened(file) as stream:
                    beginning = stream.read(BEGINNING)
            except OSError:  # a folder, or told where it is needed
                continue
            # Weights may begin with any bytes, but with no text.
            if beginning.isascii() and (fault := stand_in(beginning)):
                raise ModelError(f"{str(file)!r} cannot be loaded: it {fault}.")

    @classmethod
    def _of_graph(cls, graph: Path) -> ModelFolder:
        folder = graph.parent
        if folder.name == "onnx" and not (folder / "tokenizer.json").exists():
            folder = folder.parent
        if graph.is_file():
            result = cls(path=folder, graph=graph)
            result._require_files_themselves()
            return result
        name = graph.relative_to(folder).as_posix()
        others = [
            file.relative_to(folder).as_posix()
            for subfolder in _PLACES
            for file in sorted((folder / subfolder).glob("*.onnx"))
        ]
        raise ModelError(
            f"model folder {str(folder)!r} has no graph {quoted(name)}; "
            f"{suggestion(name, others)}. Correct `file` of the model in the policy."
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
            return json.loads(text_of(file))
        except (ValueError, OSError, RecursionError) as error:
            raise ModelError(
                f"{str(file)!r} is not readable JSON ({error}). Fetch or export the model again."
            ) from error

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a JSON file's object, empty where there is none. Raises ModelError."""
        if (content := self.settings(name)) is None:
            return {}
        if not isinstance(content, dict):
            raise ModelError(
                f"{str(self.path / name)!r} holds a {type(content).__name__}, expected an object. "
                "Fetch or export the model again."
            )
        return content

    def number(self, name: str, *keys: str) -> int | None:
        """Return a whole number of a JSON file, by the keys on the way; None where none is there.

        Raises ModelError where something else is.
        """
        value = within(self.mapping(name), *keys)
        return None if value is None else whole_number(value, self.path / name, ".".join(keys))

    def fingerprint(self, *facts: object) -> str:
        """Return 32 hex digits for the content of all files that matter plus `facts`.

        Covers the graph, the files it names as files of its weights, tokenizer, templates and
        settings; not licences, notes, other graphs or the original weights, so adding a README
        changes nothing. Raises ModelError where a file outside the folder is named.
        """
        digest = hashlib.sha256()
        for file in content_files(self.path, self.graph):
            digest.update(file.relative_to(self.path).as_posix().encode(errors="surrogateescape"))
            digest.update(b"\0")
            digest.update(bytes.fromhex(file_sha256(str(file))))
        digest.update(json.dumps([str(fact) for fact in facts]).encode())
        return digest.hexdigest()[:32]


def within(settings: object, *keys: str) -> Any:
    """Return a setting within settings; None where any on the way is none."""
    for key in keys:
        settings = settings.get(key) if isinstance(settings, dict) else None
    return settings


def neutralised(text: str, controls: Iterable[str]) -> str:
    """Return a text in which each control token that it spells out is broken up by a space."""
    for control in controls:
        if control in text:
            text = text.replace(control, f"{control[0]} {control[1:]}")
    return text


def is_tokenizer_error(error: BaseException) -> bool:
    """Return whether a `tokenizer.json` is to blame for what `tokenizers` raises.

    A panic of Rust code arrives as a BaseException whose class no module exports, so that it is
    recognised by its name; an interrupt or an exit is none of ours.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


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


def fetch(name: str, *, revision: str | None, models: Path, file: str | None = None) -> Path:
    """Return a folder with the model's files, of its graphs `file` alone where it is given.

    Raises ModelError with how to get them.
    """
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
        from huggingface_hub import snapshot_download

        files = _listed(name, revision)
        if files is None:  # only the hub has the list of them
            cache_options = {"local_files_only": True, "allow_patterns": ["config.json"]}
            return Path(snapshot_download(name, revision=revision, **cache_options))
    graphs = _graphs(files)
    if file is not None:
        if file not in files:
            others = [entry for entry in files if entry.endswith(".onnx")]
            raise ModelError(
                f"the model {quoted(name)} has no graph {quoted(file)} on the hub; "
                f"{suggestion(file, others)}"
            )
        graphs = [file]
    if len(graphs) > 1:
        raise ModelError(
            f"the model {quoted(name)} has several graphs on the hub ({', '.join(graphs)[:300]}) "
            f"and none is called model.onnx. Choose one in the policy, for example "
            f"`file: {graphs[0]}`"
        )
    if not graphs:
        raise ModelError(
            f"the model {quoted(name)} has no ONNX graph on the hub; export it with `fairgate "
            f"export {name}`, or name a folder with its ONNX files"
        )
    with asking_the_hub(failure):
        return _downloaded(
            name, revision, graphs[0], [entry for entry in files if _is_setting(entry)]
        )


def _listed(name: str, revision: str | None) -> list[str] | None:
    """List the model's files; None where the hub is not to be asked or not reached."""
    from huggingface_hub import HfApi
    from huggingface_hub.constants import HF_HUB_OFFLINE
    from huggingface_hub.errors import HfHubHTTPError

    if HF_HUB_OFFLINE:
        return None
    try:
        information = HfApi().model_info(name, revision=revision)
    except HfHubHTTPError as error:
        if error.response.status_code < _SERVER_ERROR:
            raise
        return None
    except Exception:  # noqa: BLE001 no network; the hub's HTTP library differs by its version
        return None
    return [entry.rfilename for entry in information.siblings or []]


def _downloaded(name: str, revision: str | None, graph: str, settings: Sequence[str]) -> Path:
    """Return the folder with the graph, the files it names, and the settings."""
    from huggingface_hub import snapshot_download

    def get(wanted: Iterable[str], commit: str | None) -> Path:
        patterns = [glob.escape(path) for path in wanted]
        return Path(snapshot_download(name, revision=commit, allow_patterns=patterns))

    folder = get([graph], revision)  # by the name asked for, so that the cache knows it offline
    try:
        locations = external_locations(folder / graph)
    except DamagedGraphError:
        locations = frozenset()  # the session that opens it says what is wrong
    weights = [str(PurePosixPath(graph).parent / location) for location in sorted(locations)]
    return get([graph, *weights, *settings], folder.name)


def _graphs(files: Iterable[str]) -> list[str]:
    """Return the graph to use of a model's files; several where none of them is, none without."""
    for subfolder in _PLACES:
        graphs = [PurePosixPath(path) for path in files if path.endswith(".onnx")]
        if graphs := sorted(path for path in graphs if str(path.parent) == subfolder):
            return [str(path) for path in graphs if path.name == "model.onnx"] or [
                *map(str, graphs)
            ]
    return []


def _is_setting(file: str) -> bool:
    path = PurePosixPath(file)
    if len(path.parts) == 1:
        return path.suffix in _SETTINGS and path.name not in _NEVER_USED
    is_template = path.parts[0] == _TEMPLATES and path.suffix == ".jinja"
    return is_template or _MODULE_FILES.fullmatch(file) is not None
