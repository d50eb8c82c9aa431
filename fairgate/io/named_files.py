"""Files that policies name: of the package, of the user, and data sets on the Hugging Face hub.

Of the hub only tables are fetched, from the local cache or the network, never loading scripts.
Nothing is fetched when HF_HUB_OFFLINE is set, and no error holds a token.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from importlib import resources
from itertools import islice
from pathlib import Path, PurePosixPath

from fairgate.domain.errors import DataError, FairGateError
from fairgate.domain.wording import concealed, listed, nearest, quoted, suggestion
from fairgate.io.regular import require_regular

_FILES = {
    "classifiers": {
        "minilm-sentiment": "classifiers/minilm-sentiment.json",
        "minilm-tone": "classifiers/minilm-tone.json",
    },
    "collections": {"demo-stances": "collections/demo-stances.jsonl"},
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
"""Bundled corpora that hold raw texts and are cleaned when they are used."""
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_PATTERNS = ["*.jsonl", "*.csv", "*.tsv", "*.parquet"]


def bundled_path(kind: str, name: str) -> Path | None:
    """Return where the bundled `name` of a kind (`corpora`, `sources`, `models`) is, if it is."""
    relative = _FILES[kind].get(name)
    if relative is None:
        return None
    folder = resources.files("fairgate").joinpath("data")
    if not isinstance(folder, Path):
        raise DataError(
            "FairGate is installed inside an archive, where its models cannot be opened; install "
            "it unpacked, for example with pip"
        )
    return folder / relative


def find(kind: str, name: str, root: Path, *, confined: bool = False) -> Path:
    """Return the path of a bundled name, else of a file or folder of the user's.

    Relative paths start at `root`; `confined` refuses whatever leaves it, links included, also
    those inside a folder. Raises DataError with the nearest bundled names where there is nothing.
    """
    bundled = bundled_path(kind, name)
    if bundled is not None:
        return bundled
    return existing(name, root, confined=confined, bundled=tuple(_FILES[kind]))


def existing(
    name: str, root: Path, *, confined: bool = False, bundled: tuple[str, ...] = ()
) -> Path:
    """Return the path of something of the user's that exists. Raises DataError."""
    try:
        path = Path(os.path.realpath(root / name))
        is_there = path.exists()
    except (OSError, ValueError):
        path, is_there = root, False
    if confined and not path.is_relative_to(root.resolve()):
        raise DataError(
            f"{quoted(name)} leads out of {quoted(str(root))}; expected a path inside it: put "
            "the file there"
        )
    if not is_there:
        similar = nearest(name, _beside(root, name))
        hint = f" or a bundled name ({suggestion(name, bundled)})" if bundled else ""
        hint = f"; did you mean {listed(similar)}?" if similar else f"; expected a path{hint}"
        # A confined root is a runner's: its absolute path tells the reader of a summary nothing.
        where = "below the root" if confined else f"in {quoted(str(root.resolve()))}"
        raise DataError(f"there is no file {quoted(name)} {where}{hint}")
    require_regular(path, name)
    if confined and path.is_dir():
        _refuse_links_out(name, path, root.resolve())
    return path


def _beside(root: Path, name: str) -> list[str]:
    """List the folder of a path that leads nowhere, in the form of that path."""
    folder = PurePosixPath(name).parent
    try:
        entries = islice((root / folder).iterdir(), _MOST_BESIDE)
        return sorted(str(folder / entry.name) for entry in entries)
    except (OSError, ValueError):
        return []


def _refuse_links_out(name: str, folder: Path, root: Path) -> None:
    """Raise DataError where a link below a folder leads out of the root, directly or by others.

    The files of a folder are opened by other code, which follows links.
    """
    seen = {folder}
    waiting = [folder]
    while waiting:
        inside = waiting.pop()
        try:
            entries = sorted(inside.iterdir())
        except OSError as error:
            raise DataError(f"{quoted(str(inside))} cannot be read: {error.strerror}") from error
        for entry in entries:
            try:
                inner = entry.resolve() if entry.is_symlink() else entry
            except (OSError, RuntimeError):
                inner = None  # links that form a cycle
            if inner is None or not inner.is_relative_to(root):
                link = entry.relative_to(root).as_posix()
                raise DataError(
                    f"{quoted(name)} holds the link {quoted(link)}, which leads out of "
                    f"{quoted(str(root))} or nowhere; put the file itself in its place"
                )
            if inner.is_dir() and inner not in seen:
                seen.add(inner)
                waiting.append(inner)


def hub_table(name: str) -> tuple[str, str] | None:
    """Split `organisation/data-set[/file]` into the id and the file; None for another form."""
    parts = name.split("/", 2)
    dataset, file = "/".join(parts[:2]), "".join(parts[2:])
    if _ID.fullmatch(dataset) is None or {"", ".", ".."} & set(file.split("/")) - {file}:
        return None
    return None if file in {".", ".."} else (dataset, file)


@contextlib.contextmanager
def asking_the_hub(failure: Callable[[str], FairGateError]) -> Iterator[None]:
    """Raise `failure` with the message, in one line, for any error in the block.

    A server can put the token that it was sent into its answer. The error itself is not passed on,
    since a traceback would show it.

    Which HTTP library the client uses, and so what it raises, differs by its version.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  # see above
        from huggingface_hub import get_token

        message = concealed(str(error), [get_token() or ""]).strip()
        raise failure(message.splitlines()[0] if message else type(error).__name__) from None


def fetch_dataset(name: str, file: str = "") -> Path:
    """Return a folder with the data set's tables, or with the one named. Raises DataError."""
    from huggingface_hub import snapshot_download

    def failure(reason: str) -> DataError:
        return DataError(
            f"the data set {quoted(name)} is not available from the hub ({quoted(reason)}); check "
            "the name and the network, or put the path of a downloaded file in its place"
        )

    wanted = [file] if file else _PATTERNS
    with asking_the_hub(failure):
        return Path(snapshot_download(name, repo_type="dataset", allow_patterns=wanted))


def fetch_table(name: str, file: str = "") -> Path:
    """Return a table of a data set: the one named, else the only one there is.

    Raises DataError that lists the tables where the choice is not clear.
    """
    folder = fetch_dataset(name, file)
    tables = sorted(path for pattern in _PATTERNS for path in folder.rglob(pattern))
    chosen = [path for path in tables if not file or path == folder / file]
    if len(chosen) == 1:
        return chosen[0]
    names = ", ".join(str(path.relative_to(folder)) for path in tables[:8]) or "none"
    raise DataError(
        f"the data set {quoted(name)} has {len(tables)} tables ({names}); name one of them as "
        f"{name}/FILE"
    )
