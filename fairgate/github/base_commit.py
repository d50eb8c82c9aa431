"""Files of the commit that a pull request starts from, which the pull request cannot change.

`git` reads them where the commit is in the clone or can be fetched (a shallow checkout); otherwise
GitHub's contents API does (private repositories whose credentials were not kept).
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path, PurePosixPath

from fairgate.domain.errors import ApiError, BaselineError
from fairgate.domain.wording import harmless, quoted
from fairgate.github.api import GitHubApi
from fairgate.io.git import repository_of

MAX_FILE_BYTES = 256 << 20
_BLOB_MODES = frozenset({"100644", "100755"})
_LINK, _SUBMODULE = "120000", "160000"
_DETOUR_MODES = frozenset({_LINK, _SUBMODULE})
_DETOUR_TYPES = frozenset({"symlink", "submodule"})
_MISSING = frozenset({404, 409, 422})


class NotInCloneError(BaselineError):
    """A commit's file or folder is damaged, or was left out of a partial clone."""


class Clone:
    """The checked-out repository, read by plumbing commands that run no hook and no filter."""

    def __init__(self, root: Path, workspace: Path | None = None) -> None:
        """Take the folder; it need not be a repository, and one around `workspace` does not count.

        A repository above the workspace is the machine's, and not what the job has checked out.
        """
        self._root = root.resolve()
        found = repository_of(root)
        is_ours = found is not None and (
            workspace is None or found.top.is_relative_to(workspace.resolve())
        )
        self._repository = found if is_ours else None
        self._prefix: str | None = None

    def prefix(self) -> str:
        """Return where the folder is in its repository: nothing, or `services/shop/`.

        Raises BaselineError where it is in none, or in a submodule: paths of the base commit
        would mean nothing.
        """
        if self._prefix is None:
            self._prefix = self._found_prefix()
        return self._prefix

    def _found_prefix(self) -> str:
        if self._repository is None or self._git("rev-parse", "--git-dir") is None:
            raise BaselineError(
                f"{quoted(str(self._root))} is no git checkout, so the base commit's policy and "
                "baseline cannot be found; check out with `actions/checkout` and git on the PATH"
            )
        top = self._repository.top
        if _is_submodule(top):
            raise BaselineError(
                f"the folder {quoted(self._root.name)} is a submodule or lies in one, "
                "whose history is not the base commit's; keep policy and baseline in the "
                "repository itself"
            )
        inner = self._root.relative_to(top).as_posix()
        return "" if inner == "." else f"{inner}/"

    def parents(self, commit: str) -> list[str]:
        """Return a commit's parents as it was written, also where a shallow clone cuts them."""
        raw = self._git("cat-file", "commit", commit) or b""
        header = raw.split(b"\n\n", 1)[0].decode("ascii", "replace")
        return re.findall(r"^parent ([0-9a-f]{40,64})$", header, re.MULTILINE)

    def head(self) -> str:
        """Return the commit that is checked out; empty where there is none."""
        return (self._git("rev-parse", "--verify", "HEAD^{commit}") or b"").decode().strip()

    def has(self, commit: str) -> bool:
        """Return whether the commit is in the clone."""
        return self._git("cat-file", "-e", f"{commit}^{{commit}}") is not None

    def fetch(self, commit: str) -> None:
        """Try to get a commit, without its history, from where the clone came from."""
        if self._repository is not None:
            self._repository.fetch(commit)

    def file(self, commit: str, path: str) -> bytes | None:
        """Return a file of a commit, None where it has none. Raises BaselineError."""
        listed = self._listed(commit, path)
        if not listed:
            for folder in _folders_of(path):
                if _DETOUR_MODES.intersection(self._listed(commit, folder)[:1]):
                    raise _detour(folder, commit)
            return None
        mode, _, blob, size = listed
        if mode not in _BLOB_MODES:
            raise BaselineError(f"{quoted(path)} in commit {commit[:12]} is a link or a folder")
        if size.isdigit() and int(size) > MAX_FILE_BYTES:
            raise BaselineError(f"{quoted(path)} in commit {commit[:12]} is larger than 256 MiB")
        # git says BAD for the size of what it has not got
        content = self._git("cat-file", "blob", blob) if size.isdigit() else None
        if content is None:
            raise NotInCloneError(f"{quoted(path)} in commit {commit[:12]} cannot be read")
        return content

    def tree(self, commit: str) -> dict[str, tuple[str, str]] | None:
        """Return every path of a commit to its mode and object; None where it is not here."""
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", commit)
        found = {}
        for entry in listed.split(b"\0")[:-1] if listed is not None else ():
            head, _, path = entry.partition(b"\t")
            mode, _, blob = head.decode().split()
            found[os.fsdecode(path)] = mode, blob
        return None if listed is None else found

    def blob(self, name: str) -> bytes | None:
        """Return the content of an object, None where it is not here."""
        return self._git("cat-file", "blob", name)

    def inner(self, path: str) -> Clone:
        """Return the clone of a submodule: what is asked of it by a commit's name is its own."""
        top = self._repository.top if self._repository is not None else self._root
        return Clone(top / path)

    def _listed(self, commit: str, path: str) -> list[str]:
        """Return mode, type, object and size of what a commit has at a path; empty for nothing."""
        listed = self._git("ls-tree", "-z", "-l", "--full-tree", commit, "--", f":(literal){path}")
        if listed is None:
            raise NotInCloneError(f"commit {commit[:12]} cannot be read; is the clone complete?")
        return listed.split(b"\t", 1)[0].decode().split() if listed else []

    def _git(self, *arguments: str) -> bytes | None:
        return self._repository.ask(*arguments) if self._repository is not None else None


def _is_submodule(top: Path) -> bool:
    """Return whether a repository around this one has it as a submodule."""
    outer = repository_of(top.parent)
    if outer is None:
        return False
    name = top.relative_to(outer.top).as_posix()
    listed = outer.ask("ls-files", "--stage", "-z", "--", f":(top,literal){name}")
    is_listed = listed is not None and listed.startswith(b"160000 ")
    return is_listed or _is_submodule(outer.top)


@dataclass(frozen=True, slots=True)
class BaseFile:
    """A file of a commit: the object's name, and how its content is had."""

    id: str
    content: Callable[[], bytes]


class BaseCommit:
    """The files of one commit, from the clone or from the API."""

    def __init__(
        self, clone: Clone, commit: str, *, api: GitHubApi | None, repository: str
    ) -> None:
        """Take the place to read from; nothing is read yet."""
        self.commit = commit
        self._clone = clone
        self._api = api
        self._repository = repository
        self._is_local: bool | None = None

    def of(self, commit: str) -> BaseCommit:
        """Return the files of another commit of the same repository."""
        return BaseCommit(self._clone, commit, api=self._api, repository=self._repository)

    @property
    def prefix(self) -> str:
        """Return where the folder is in its repository: nothing, or `services/shop/`."""
        return self._clone.prefix()

    def below(self, path: str, hops: int = 8) -> Iterator[tuple[str, BaseFile]]:
        """Yield every file at or below a path from the repository's root, by paths that start so.

        Links and submodules are followed, as a checkout would be read. Raises BaselineError where
        they lead out of the repository, in circles, or to what cannot be had.
        """
        if hops == 0:
            raise _detour(path, self.commit)
        for way in [*_folders_of(path), path]:
            mode, name = self._tree.get(way, ("", ""))
            if mode in _DETOUR_MODES:
                yield from self._behind(way, mode, name, path[len(way) :].strip("/"), hops - 1)
                return
        start = "" if path == "." else f"{path}/"
        for inner, (mode, name) in self._tree.items():
            if inner != path and not inner.startswith(start):
                continue
            if mode in _BLOB_MODES:
                yield inner, BaseFile(name, partial(self._blob, name))
            else:
                yield from self.below(inner, hops - 1)

    def _behind(
        self, way: str, mode: str, name: str, rest: str, hops: int
    ) -> Iterator[tuple[str, BaseFile]]:
        """Yield what a link or submodule leads to, by the path that leads there."""
        if mode == _SUBMODULE:
            top, target, inner = way, rest or ".", self._submodule(way, name)
        else:
            link = os.fsdecode(self._blob(name))
            target = posixpath.normpath(posixpath.join(posixpath.dirname(way), link, rest))
            top, inner = posixpath.join(way, rest), self
            if target.startswith(("/", "../")) or target == "..":
                raise _detour(way, self.commit)
        for file, found in inner.below(target, hops):
            shown = posixpath.join(way, file) if mode == _SUBMODULE else top + file[len(target) :]
            yield posixpath.normpath(shown), found

    def _submodule(self, path: str, commit: str) -> BaseCommit:
        found = BaseCommit(self._clone.inner(path), commit, api=None, repository="")
        found._is_local = True
        return found

    @cached_property
    def _tree(self) -> Mapping[str, tuple[str, str]]:
        """Return every path to its mode and object."""
        if self._is_local is None:
            self._is_local = self._reach()
        found = self._clone.tree(self.commit) if self._is_local else None
        if found is not None:
            return found
        self._reach_by_api("its files cannot be listed")
        assert self._api is not None  # noqa: S101 (`_reach_by_api` has raised)
        try:
            listed = self._api.get(
                f"/repos/{self._repository}/git/trees/{self.commit}", recursive=1
            )
        except ApiError as error:
            raise self._unread("the list of files", error) from error
        if not isinstance(listed, dict) or listed.get("truncated") is not False:
            raise self._unread("the list of files", "GitHub does not list them all")
        return {one["path"]: (one["mode"], one["sha"]) for one in listed["tree"]}

    def _blob(self, name: str) -> bytes:
        found = self._clone.blob(name)
        if found is not None or self._api is None:
            if found is None:
                raise self._unread(name, "it is not in this clone")
            return found
        try:
            return self._api.get_raw(f"/repos/{self._repository}/git/blobs/{name}")
        except ApiError as error:
            raise self._unread(name, error) from error

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes by its path from the folder, None where there is none."""
        return self.read_from_top(f"{self._clone.prefix()}{path}")

    def read_from_top(self, path: str) -> bytes | None:
        """Return a file's bytes by its path from the repository's root.

        None where the commit does not have it. Raises BaselineError, with what to do, where the
        commit can be had neither way.
        """
        if self._is_local is None:
            self._is_local = self._reach()
        if not self._is_local:
            return self._from_api(path)
        try:
            return self._clone.file(self.commit, path)
        except NotInCloneError as error:
            self._reach_by_api(str(error))
            return self._from_api(path)

    def _reach(self) -> bool:
        """Return whether the clone has the commit; where it has not, the API does."""
        if not self._clone.has(self.commit):
            self._clone.fetch(self.commit)
        if self._clone.has(self.commit):
            return True
        self._reach_by_api("it is not in this clone, cannot be fetched")
        return False

    def _reach_by_api(self, lacking: str) -> None:
        """Raise BaselineError unless the API knows the commit: of others it has no file either."""
        reason = "there is no token to ask the API with"
        if self._api is not None:
            try:
                self._api.get(f"/repos/{self._repository}/git/commits/{self.commit}")
            except ApiError as error:
                reason = harmless(str(error))
            else:
                return
        raise BaselineError(
            f"the base commit {self.commit[:12]} cannot be read, so it is unknown which policy and "
            f"baseline decide: {lacking}, and {reason}; check "
            "out with `fetch-depth: 2` (or 0), or give the token `contents: read`"
        )

    def _from_api(self, path: str) -> bytes | None:
        api = self._api
        if api is None:  # pragma: no cover  (`_reach` has raised)
            raise BaselineError("there is no token to ask the API with")
        contents = f"/repos/{self._repository}/contents"
        try:
            return api.get_raw(f"{contents}/{path}", ref=self.commit)
        except ApiError as error:
            if error.status not in _MISSING:
                raise self._unread(path, error) from error
        for folder in _folders_of(path):  # GitHub follows no link on the way to a file
            try:
                found = api.get(f"{contents}/{folder}", ref=self.commit)
            except ApiError as error:
                if error.status in _MISSING:
                    return None
                raise self._unread(path, error) from error
            if not isinstance(found, list):
                is_detour = isinstance(found, dict) and found.get("type") in _DETOUR_TYPES
                raise (
                    _detour(folder, self.commit)
                    if is_detour
                    else self._unread(path, f"GitHub does not list {quoted(folder)} as a folder")
                )
        return None

    def _unread(self, path: str, reason: object) -> BaselineError:
        return BaselineError(
            f"{quoted(path)} of the base commit {self.commit[:12]} cannot be read: {reason}; "
            "check out with `fetch-depth: 2` (or 0), or try again"
        )


def _folders_of(path: str) -> list[str]:
    """Return the folders on the way to a file, outermost first."""
    return [folder.as_posix() for folder in reversed(PurePosixPath(path).parents[:-1])]


def _detour(folder: str, commit: str) -> BaselineError:
    """Return the refusal to take a file behind a link for one that the commit does not have."""
    return BaselineError(
        f"{quoted(folder)} in commit {commit[:12]} is a link or a submodule, so the policy and "
        "baseline behind it cannot decide; make it a folder of the base branch"
    )
