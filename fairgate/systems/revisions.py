"""Which state of a system its answers are of: a name, or a hash of files that the policy names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, Tag

from fairgate.domain.errors import DataError
from fairgate.domain.ports import ResultStore, Runtime
from fairgate.domain.schema import ByShape, Names, Role, Strict, Text
from fairgate.domain.wording import quoted
from fairgate.io.durable import is_part
from fairgate.io.git import CACHE, repository_of
from fairgate.io.named_files import existing
from fairgate.io.regular import opened
from fairgate.io.tables import file_sha256

_NOT_CODE = frozenset({".git", "__pycache__", CACHE})
_BASELINE = b'{\n "schema_version": '
"""How the files of baselines begin."""
P = TypeVar("P", bound=BaseModel)


class RevisionFiles(Strict):
    """Files whose content names the state."""

    files: Annotated[
        list[Text],
        Field(min_length=1, max_length=64),
        Names(Role.CODE),
    ] = Field(description="Files and folders that the system is made of.")


RevisionField = Annotated[
    Annotated[Annotated[str, Tag("<scalar>")] | Annotated[RevisionFiles, Tag("<mapping>")], ByShape]
    | None,
    Field(
        description="Version of the system, whose replies are reused: `{files: [app, data]}`, or a "
        "name that you change.",
    ),
]


def revision_text(revision: str | RevisionFiles | None) -> str | None:
    """Return the name of a state; a part that is `resolved` has no other."""
    return revision if revision is None or isinstance(revision, str) else str(revision.files)


def is_code_known(part: object) -> bool:
    """Return whether the state follows from the system itself, and not from a name alone."""
    return isinstance(getattr(part, "revision", None), RevisionFiles)


def resolved(part: P, runtime: Runtime) -> P:
    """Return a part of a policy with its revision as a text. Raises DataError."""
    revision = getattr(part, "revision", None)
    if not isinstance(revision, RevisionFiles):
        return part
    return part.model_copy(update={"revision": f"files {content_hash(revision.files, runtime)}"})


def content_hash(names: Iterable[str], runtime: Runtime) -> str:
    """Hash all files at or below the named ones, by name and content, through links.

    Files of git, of compiled Python and of FairGate's cache and runs do not count. Raises
    DataError for what is not there, and for a folder without files.
    """
    digest = hashlib.sha256()
    for name in names:
        path = existing(name, runtime.root, confined=runtime.confined)
        files = [path] if path.is_file() else sorted(_below(path))
        if not files:
            raise DataError(f"{quoted(name)}, which `revision` names, holds no file; expected some")
        for file in files:
            inside = "" if file == path else file.relative_to(path).as_posix()
            _add(digest, f"{name}\0{inside}", file_sha256(str(file)))
    return digest.hexdigest()[:16]


def _add(digest: hashlib._Hash, name: str, content: str) -> None:
    # Names of files need be no text.
    digest.update(f"{name}\0{content}\n".encode("utf-8", "surrogateescape"))


def _below(folder: Path) -> Iterator[Path]:
    """Yield each file below a folder, also where a link leads; none again inside itself."""
    waiting = [(folder, frozenset({folder.resolve()}))]
    while waiting:
        above, around = waiting.pop()
        try:
            paths = [path for path in above.iterdir() if path.name not in _NOT_CODE]
        except OSError as error:
            raise DataError(f"{quoted(str(above))} cannot be read: {error.strerror}") from error
        for path in paths:
            if path.is_file() and not is_part(path):
                yield path
            elif path.is_dir() and (inner := path.resolve()) not in around:
                waiting.append((path, around | {inner}))


def checkout_state(folder: Path, but: Collection[Path] = ()) -> str:
    """Name the commit that is checked out at a folder, and what was changed since.

    Empty where there is no commit. `but` are files whose changes do not count, by resolved path;
    nor do baselines, what runs wrote and what git ignores.
    """
    repository = repository_of(folder)
    commit = repository.ask("rev-parse", "--verify", "HEAD^{commit}") if repository else None
    if repository is None or not commit:
        return ""
    status = repository.ask(
        *("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"),
        "--ignore-submodules=none",
    )
    listed = repository.ask("ls-files", "-z", "-v") or b""
    # Marked so that `status` passes them over: in lower case, or S.
    hidden = [
        entry[2:] for entry in listed.split(b"\0") if entry[:1].islower() or entry[:1] == b"S"
    ]
    changed = [entry[3:] for entry in (status or b"").split(b"\0") if entry]
    digest = hashlib.sha256(commit)
    for name in map(os.fsdecode, (*changed, *hidden)):
        file = repository.top / name
        is_other = CACHE in Path(name).parts or file in but or _is_baseline(file) or is_part(file)
        if file.is_dir():  # a repository of its own
            for inner in sorted(_below(file)):
                _add(digest, str(inner.relative_to(repository.top)), file_sha256(str(inner)))
        elif not is_other:
            _add(digest, name, file_sha256(str(file)) if file.is_file() else "none")
    return digest.hexdigest()[:16]


def _is_baseline(file: Path) -> bool:
    if file.parent.name != "baselines" or file.suffix != ".json":
        return False
    try:
        with opened(file) as stream:
            return stream.read(len(_BASELINE)) == _BASELINE
    except OSError:
        return False


class StoreOfState:
    """A result store whose results are of one state of the code, and are found for it alone."""

    def __init__(self, inner: ResultStore, state: str) -> None:
        """Take the store of all states."""
        self._inner = inner
        self._state = state

    def get_many(self, kind: str, keys: Sequence[str]) -> Mapping[str, str]:
        """Return the stored texts of those keys that are there."""
        names = {f"{self._state} {key}": key for key in keys}
        texts: Mapping[str, Any] = self._inner.get_many(kind, list(names))
        return {names[name]: text for name, text in texts.items()}

    def put_many(self, kind: str, items: Iterable[tuple[str, str]]) -> None:
        """Store texts, all or none."""
        self._inner.put_many(kind, [(f"{self._state} {key}", text) for key, text in items])


class NoStore:
    """A result store that keeps nothing: every question is asked again."""

    def get_many(self, kind: str, keys: Sequence[str]) -> Mapping[str, str]:
        """Return nothing."""
        del kind, keys
        return {}

    def put_many(self, kind: str, items: Iterable[tuple[str, str]]) -> None:
        """Discard the results."""
        del kind, items
