"""The small YAML files that policies name: embedded ones by name, a user's own by path."""

from __future__ import annotations

from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from fairgate.domain.errors import DataError
from fairgate.domain.wording import quoted, suggestion
from fairgate.policy.yaml_text import YamlDocument, load_yaml, read_yaml_file

_FILE_ENDINGS = (".yaml", ".yml", ".json")


def embedded_names(kind: str) -> tuple[str, ...]:
    """Return the names of the embedded files of a kind (`tasks`), in alphabetical order."""
    names = (file.name for file in _folder(kind).iterdir() if file.is_file())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


def named_document(kind: str, name: str, *, folder: Path, confined: bool) -> YamlDocument:
    """Return the embedded file `name` of a kind, else the user's file at that path.

    Relative paths start at `folder`; `confined` refuses whatever leaves it, links included. Raises
    DataError, with the nearest names, where there is nothing, PolicyError where it is unreadable.
    """
    known = embedded_names(kind)
    if name in known:
        return _embedded_document(kind, name)
    try:
        file = (folder / name).resolve()
        is_file = file.is_file()
    except (OSError, ValueError):  # ValueError: a NUL character in the name
        file, is_file = folder, False
    if confined and not file.is_relative_to(folder.resolve()):
        root = quoted(str(folder))
        raise DataError(f"{quoted(name)} leads out of {root}; expected a path inside it")
    if not is_file:
        looks_like_path = "/" in name or "\\" in name or name.endswith(_FILE_ENDINGS)
        what = "no such file" if looks_like_path else "neither an embedded name nor a file"
        hint = suggestion(name, known)
        # A confined root is a runner's: its absolute path tells the reader of a summary nothing.
        where = "below the root" if confined else f"in {quoted(str(folder.resolve()))}"
        raise DataError(f"{quoted(name)} is {what} {where}; {hint}")
    return load_yaml(read_yaml_file(file, name), name)


@cache  # a policy and the one that it is compared with name the same ones
def _embedded_document(kind: str, name: str) -> YamlDocument:
    text = _folder(kind).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return load_yaml(text, f"{kind}/{name}.yaml")


def _folder(kind: str) -> Traversable:
    return resources.files("fairgate").joinpath("data", kind)
