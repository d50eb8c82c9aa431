"""The files of one version of a repository as a folder: one that is there, or a git revision.

A revision's files are written into a scratch folder from git's objects: nothing is checked out, no
filter or hook runs, and the user's tree stays as it is. Links and submodules are left out, and a
name that could lead anywhere else is refused.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fairgate.domain.errors import DataError, StoreError, UsageError
from fairgate.domain.wording import quoted
from fairgate.io.git_calls import Repository, repository_of

_MOST_FILES = 50_000
_MOST_BYTES = 4 << 30
_AT_ONCE_BYTES = 64 << 20
_AT_ONCE_FILES = 1_000
_FILES = frozenset({"100644", "100755"})
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a repository's files."""

    named: str
    """As the user named it."""
    folder: Path
    """Where paths start at."""
    is_revision: bool
    notes: Sequence[str] = ()
    """What of the revision is not in the folder."""

    def shown(self, path: str) -> str:
        """Return a path of this version for messages: `main:policy.yaml` for a revision's."""
        return f"{self.named}:{path}" if self.is_revision else str(self.folder / path)


@contextmanager
def version_of(named: str, here: Path, role: str) -> Iterator[Version]:
    """Yield a folder, or a git revision of the repository around `here` as a scratch folder.

    In a revision paths start where `here` lies in the repository. `role` is what messages call it.
    Raises UsageError where it is neither, DataError where its files cannot be written as they are.
    """
    if named and not _CONTROL.search(named) and Path(named).is_dir():
        yield Version(named=named, folder=Path(named), is_revision=False)
        return
    with revision_of(named, here, role) as version:
        yield version


@contextmanager
def revision_of(named: str, here: Path, role: str) -> Iterator[Version]:
    """Yield a git revision, whatever folders there are."""
    repository = repository_of(here)
    commit = _commit(repository, named) if repository is not None else ""
    if repository is None or not commit:
        why = (
            "the current folder is no git checkout"
            if repository is None
            else "git does not know such a revision here (a shallow clone may lack it: fetch it)"
        )
        raise UsageError(
            f"{role} {quoted(named)} is no folder, and no git revision: {why}; name a folder that "
            "holds the policy, or a commit, branch or tag"
        )
    inner = here.resolve().relative_to(repository.top)
    with tempfile.TemporaryDirectory(prefix="fairgate-revision-") as scratch:
        top = Path(scratch).resolve()
        notes = [f"{role}: {note}" for note in write_tree(repository, commit, top)]
        folder = top / inner
        folder.mkdir(parents=True, exist_ok=True)
        yield Version(named=named, folder=folder, is_revision=True, notes=notes)


def _commit(repository: Repository, named: str) -> str:
    if not named or named.startswith("-") or _CONTROL.search(named):
        return ""
    found = repository.ask("rev-parse", "--verify", "--quiet", f"{named}^{{commit}}")
    return (found or b"").decode("ascii", "replace").strip()


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    blob: str
    size: int


def write_tree(repository: Repository, commit: str, top: Path) -> list[str]:
    """Write the files of a commit below an empty folder; return what is not among them.

    Raises DataError for hostile names, sizes beyond the limits, and what cannot be read.
    """
    files, left_out = _listed(repository, commit)
    if len(files) > _MOST_FILES or sum(file.size for file in files) > _MOST_BYTES:
        raise DataError(
            f"commit {commit[:12]} holds {len(files):,} files, "
            f"{sum(file.size for file in files) >> 20:,} MiB; at most {_MOST_FILES:,} files and "
            f"{_MOST_BYTES >> 20:,} MiB are written out: name the folder of a checkout instead"
        )
    pointers = 0
    for batch in _batches(files):
        contents = repository.blobs([file.blob for file in batch])
        if contents is None:
            raise DataError(
                f"files of commit {commit[:12]} cannot be read; is the clone complete? Name the "
                "folder of a checkout instead"
            )
        for file, content in zip(batch, contents, strict=True):
            if content.startswith(_LFS_POINTER):
                pointers += 1
            else:
                _write(top / file.path, content)
    return [
        f"{count:,} {what} of commit {commit[:12]} {'is' if count == 1 else 'are'} left out"
        for count, what in ((left_out, "links or submodules"), (pointers, "files in Git LFS"))
        if count
    ]


def _listed(repository: Repository, commit: str) -> tuple[list[_File], int]:
    listed = repository.ask("ls-tree", "-r", "-z", "-l", "--full-tree", commit)
    if listed is None:
        raise DataError(f"commit {commit[:12]} cannot be listed; is the clone complete?")
    files = []
    left_out = 0
    for entry in listed.split(b"\0"):
        if not entry:
            continue
        head, _, raw = entry.partition(b"\t")
        mode, _, blob, size = head.decode("ascii", "replace").split()
        if mode not in _FILES:
            left_out += 1
            continue
        if not size.isdigit():  # git says BAD for the size of what it has not got
            raise DataError(
                f"{quoted(raw.decode(errors='replace'))} of commit {commit[:12]} is not in this "
                "clone; fetch it, or name the folder of a checkout"
            )
        files.append(_File(_safe(raw, commit), blob, int(size)))
    return files, left_out


def _safe(raw: bytes, commit: str) -> str:
    """Return a file's path. Raises DataError unless it is a plain one below the folder."""
    try:
        path = raw.decode()
    except UnicodeDecodeError:
        path = ""
    parts = path.split("/")
    is_hostile = any(
        part in ("", ".", "..") or part.casefold() == ".git" or len(part.encode()) > 255
        for part in parts
    )
    if is_hostile or _CONTROL.search(path) or "\\" in path or len(raw) > 2000:
        raise DataError(
            f"commit {commit[:12]} holds a file called {quoted(raw.decode(errors='replace'))}, "
            "which is not written out; name the folder of a checkout instead"
        )
    return path


def _batches(files: Sequence[_File]) -> Iterator[list[_File]]:
    batch: list[_File] = []
    size = 0
    for file in files:
        if batch and (size + file.size > _AT_ONCE_BYTES or len(batch) >= _AT_ONCE_FILES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch


def _write(path: Path, content: bytes) -> None:
    """Write a new file; no folder on the way is a link, for none is ever written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(content)
    except (FileExistsError, NotADirectoryError) as error:
        raise DataError(
            f"the revision holds two files that have one name here ({quoted(path.name)}); name the "
            "folder of a checkout instead"
        ) from error
    except OSError as error:
        raise StoreError.of_os_error(error, path=path, option="TMPDIR") from error
