"""The paths of the models and data that policies call by an embedded name."""

from __future__ import annotations

from importlib import resources
from itertools import islice
from pathlib import Path, PurePosixPath

from fairgate.domain.errors import DataError
from fairgate.domain.wording import listed, nearest, quoted, suggestion

_FILES = {
    "classifiers": {
        "minilm-sentiment": "classifiers/minilm-sentiment.json",
        "minilm-tone": "classifiers/minilm-tone.json",
    },
    "collections": {"demo-stances": "collections/demo-stances.jsonl"},
    "labelled": {"answers": "labelled/answers.jsonl"},
    "items": {"demo-bbq": "items/demo-bbq.jsonl"},
    "corpora": {"demo": "corpora/demo/documents.csv"},
    "sources": {
        "demo-comments": "sources/demo-comments.jsonl",
        "demo-people": "sources/demo-people.jsonl",
        "demo-questions": "sources/demo-questions.jsonl",
        "demo-reviews": "sources/demo-reviews.jsonl",
        "meta-fair": "sources/meta-fair",
    },
    "models": {"demo-slm": "models/demo-slm", "minilm": "models/minilm"},
}
_MOST_BESIDE = 3000
PREPARED_ON_USE = frozenset({"demo"})
"""Embedded corpora that hold raw texts and are cleaned when they are used."""


def embedded_path(kind: str, name: str) -> Path | None:
    """Return where the embedded `name` of a kind (`corpora`, `sources`, `models`) is, if it is."""
    relative = _FILES[kind].get(name)
    return None if relative is None else _data_folder() / relative


def find(kind: str, name: str, root: Path, *, confined: bool = False) -> Path:
    """Return the path of an embedded name, else of a file or folder of the user's.

    Relative paths start at `root`; `confined` refuses whatever leaves it, links included, also
    those inside a folder. Raises DataError with the nearest embedded names where there is nothing.
    """
    embedded = embedded_path(kind, name)
    if embedded is not None:
        return embedded
    return existing(name, root, confined=confined, known=tuple(_FILES[kind]))


def existing(name: str, root: Path, *, confined: bool = False, known: tuple[str, ...] = ()) -> Path:
    """Return the path of something of the user's that exists. Raises DataError."""
    try:
        path = (root / name).resolve()
        is_there = path.exists()
    except (OSError, ValueError):
        path, is_there = root, False
    if confined and not path.is_relative_to(root.resolve()):
        raise DataError(
            f"{quoted(name)} leads out of {quoted(str(root))}; expected a path inside it"
        )
    if not is_there:
        beside = nearest(name, _beside(root, name))
        hint = f" or an embedded name ({suggestion(name, known)})" if known else ""
        hint = f"; did you mean {listed(beside)}?" if beside else f"; expected a path{hint}"
        # A confined root is a runner's: its absolute path tells the reader of a summary nothing.
        where = "below the root" if confined else f"in {quoted(str(root.resolve()))}"
        raise DataError(f"there is no file {quoted(name)} {where}{hint}")
    if confined and path.is_dir():
        _refuse_links_out(name, path, root.resolve())
    return path


def _beside(root: Path, name: str) -> list[str]:
    """Return what there is in the folder of a path that leads nowhere, named in the same way."""
    folder = PurePosixPath(name).parent
    try:
        found = islice((root / folder).iterdir(), _MOST_BESIDE)
        return sorted(str(folder / one.name) for one in found)
    except (OSError, ValueError):
        return []


def _refuse_links_out(name: str, folder: Path, root: Path) -> None:
    """Raise DataError where a link below a folder leads out of the root, directly or by others.

    The files of a folder are opened by other code, which follows links.
    """
    seen = {folder}
    waiting = [folder]
    while waiting:
        for entry in _entries(waiting.pop()):
            inner = _followed(entry) if entry.is_symlink() else entry
            if inner is None or not inner.is_relative_to(root):
                link = entry.relative_to(root).as_posix()
                raise DataError(
                    f"{quoted(name)} holds the link {quoted(link)}, which leads out of "
                    f"{quoted(str(root))} or nowhere; put the file itself in its place"
                )
            if inner.is_dir() and inner not in seen:
                seen.add(inner)
                waiting.append(inner)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise DataError(f"{quoted(str(folder))} cannot be read: {error.strerror}") from error


def _followed(link: Path) -> Path | None:
    """Return the target of a link, None where the links form a cycle."""
    try:
        return link.resolve()
    except (OSError, RuntimeError):
        return None


def _data_folder() -> Path:
    folder = resources.files("fairgate").joinpath("data")
    if not isinstance(folder, Path):
        raise DataError(
            "FairGate is installed inside an archive, where its models cannot be opened; install "
            "it unpacked, for example with pip"
        )
    return folder
