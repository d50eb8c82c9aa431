"""Files of the commit that a pull request starts from, which the pull request cannot change.

Its author writes every file of the head. So what decides is read from a folder that holds the base
commit's version of what the base's policy names, and nothing else; of the head only what is under
test is read.

`git` reads them where the commit is in the clone or can be fetched (a shallow checkout); otherwise
GitHub's API does (private repositories whose credentials were not kept).
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath

from pydantic import BaseModel

from fairgate.domain.errors import (
    ApiError,
    BaselineError,
    FairGateError,
    PolicyError,
    StoreError,
    UsageError,
)
from fairgate.domain.ports import Runtime
from fairgate.domain.schema import Role
from fairgate.domain.wording import harmless, quoted
from fairgate.gate.manifest import files_below, may_be_path, named_by
from fairgate.github.api import GitHubApi
from fairgate.io.git import is_object, repository_of
from fairgate.io.named_files import hub_table
from fairgate.io.regular import content_of
from fairgate.io.tables import file_sha256

MAX_FILE_BYTES = 256 << 20
_LFS_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\n"
)
_BLOB_MODES = frozenset({"100644", "100755"})
_LINK, _SUBMODULE, _FOLDER = "120000", "160000", "040000"
_DETOUR_MODES = frozenset({_LINK, _SUBMODULE})


class Clone:
    """The checked-out repository, read by plumbing commands that run no hook and no filter."""

    def __init__(self, root: Path, workspace: Path | None = None) -> None:
        """Take the folder; it need not be a repository, and one around `workspace` does not count.

        A repository above the workspace is the machine's, and not what the job has checked out.
        """
        self._root = root.resolve()
        repository = repository_of(root)
        if repository and workspace and not repository.top.is_relative_to(workspace.resolve()):
            repository = None
        self._repository = repository

    @property
    def top(self) -> Path:
        """Return the folder that has the `.git`; where there is none, the folder itself."""
        return self._root if self._repository is None else self._repository.top

    @cached_property
    def prefix(self) -> str:
        """Return where the folder is in its repository: nothing, or `services/shop/`.

        Raises BaselineError where it is in none, or in a submodule: paths of the base commit
        would mean nothing.
        """
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

    def fetch(self, commit: str) -> None:
        """Try to get a commit, without its history, from where the clone came from."""
        if self._repository is not None:
            self._repository.fetch(commit)

    def tree(self, commit: str) -> dict[str, tuple[str, str]] | None:
        """Return every path of a commit to its mode and object; None where it is not here."""
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", commit)
        objects = {}
        for entry in listed.split(b"\0")[:-1] if listed is not None else ():
            head, _, path = entry.partition(b"\t")
            mode, _, blob = head.decode().split()
            objects[os.fsdecode(path)] = mode, blob
        return None if listed is None else objects

    def blob(self, name: str) -> bytes | None:
        """Return the content of an object, None where it is not here."""
        return self._git("cat-file", "blob", name)

    def blobs(self, names: Sequence[str]) -> list[bytes] | None:
        """Return the contents of objects, None where one of them is not here."""
        return self._repository.blobs(names) if self._repository is not None else None

    def renamed(self, before: str, after: str) -> dict[str, str]:
        """Return the new path of every file that git takes for renamed to its old one."""
        options = ("-r", "-M", "-l5000", "--diff-filter=R", "--name-status", "-z")
        listed = self._git("diff-tree", *options, before, after) or b""
        fields = [os.fsdecode(field) for field in listed.split(b"\0")[:-1]]
        return dict(zip(fields[2::3], fields[1::3], strict=True))

    def inner(self, path: str) -> Clone:
        """Return the clone of a submodule: what is asked of it by a commit's name is its own."""
        return Clone(self.top / path)

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
        """Take the clone and commit to read from; a submodule has no `repository`."""
        self.commit = commit
        self._clone = clone
        self._api = api
        self._repository = repository

    def of(self, commit: str) -> BaseCommit:
        """Return the files of another commit of the same repository."""
        return BaseCommit(self._clone, commit, api=self._api, repository=self._repository)

    @property
    def prefix(self) -> str:
        """Return where the folder is in its repository: nothing, or `services/shop/`."""
        return self._clone.prefix

    @property
    def top(self) -> Path:
        """Return the folder of the checkout."""
        return self._clone.top

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes by its path from the folder, None where there is none."""
        return self.read_from_top(f"{self.prefix}{path}")

    def read_from_top(self, path: str) -> bytes | None:
        """Return a file's bytes by its path from the repository's root.

        None where the commit does not have it. Raises BaselineError, with what to do, where the
        commit can be had neither way.
        """
        path = posixpath.normpath(path)
        for folder in _folders_of(path):
            if self._tree.get(folder, ("", ""))[0] in _DETOUR_MODES:
                raise _detour(folder, self.commit)
        mode, name = self._tree.get(path, ("", ""))
        file = f"{quoted(path)} in commit {self.commit[:12]}"
        if mode not in _BLOB_MODES:
            if mode or any(inner_path.startswith(f"{path}/") for inner_path in self._tree):
                raise BaselineError(f"{file} is a link or a folder")
            return None
        content = self._blob(path, name)
        if len(content) > MAX_FILE_BYTES:
            raise BaselineError(f"{file} is larger than 256 MiB")
        return content

    def contents(self, is_wanted: Callable[[str, str], bool]) -> Iterator[tuple[str, bytes]]:
        """Yield path, from the repository's root, and content of every file that is wanted.

        `is_wanted` takes the path and the name of git's object. Raises BaselineError where one
        cannot be had.
        """
        wanted = [
            (path, name)
            for path, (mode, name) in self._tree.items()
            if mode in _BLOB_MODES and is_wanted(path, name)
        ]
        file_contents = self._clone.blobs([name for _, name in wanted])
        if file_contents is None:
            file_contents = [self._blob(path, name) for path, name in wanted]
        yield from zip((path for path, _ in wanted), file_contents, strict=True)

    def renamed_to(self, path: str) -> str:
        """Return the path of the file that git takes for renamed to this one; empty: for none."""
        return self._clone.renamed(self.commit, self._clone.head()).get(path, "")

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
                yield inner, BaseFile(name, partial(self._blob, inner, name))
            else:
                yield from self.below(inner, hops - 1)

    def _behind(
        self, way: str, mode: str, name: str, path_below: str, hops: int
    ) -> Iterator[tuple[str, BaseFile]]:
        """Yield what a link or submodule leads to, by the path that leads there."""
        if mode == _SUBMODULE:
            top, target = way, path_below or "."
            inner = BaseCommit(self._clone.inner(way), name, api=None, repository="")
        else:
            link = os.fsdecode(self._blob(way, name))
            target = posixpath.normpath(posixpath.join(posixpath.dirname(way), link, path_below))
            top, inner = posixpath.join(way, path_below), self
            if target.startswith(("/", "../")) or target == "..":
                raise _detour(way, self.commit)
        for file, base_file in inner.below(target, hops):
            outer = posixpath.join(way, file) if mode == _SUBMODULE else top + file[len(target) :]
            yield posixpath.normpath(outer), base_file

    @cached_property
    def _tree(self) -> Mapping[str, tuple[str, str]]:
        """Return every path to its mode and object. Raises BaselineError."""
        tree = self._clone.tree(self.commit)
        if tree is None and self._repository:
            self._clone.fetch(self.commit)
            tree = self._clone.tree(self.commit)
        if tree is not None:
            return tree
        reason = "there is no token to ask the API with"
        if self._api is not None:
            trees = f"/repos/{self._repository}/git/trees/{self.commit}"
            try:
                listed = self._api.get(trees, recursive=1)
                if listed["truncated"] is False:
                    rows = (entry for entry in listed["tree"] if entry["mode"] != _FOLDER)
                    return {entry["path"]: (entry["mode"], entry["sha"]) for entry in rows}
                reason = "GitHub does not list all of its files"
            except ApiError as error:
                reason = harmless(str(error))
            except (LookupError, TypeError):
                reason = "GitHub's answer is no list of files"
        raise BaselineError(
            f"the base commit {self.commit[:12]} cannot be read, so it is unknown which policy and "
            f"baseline decide: it is not in this clone, cannot be fetched, and {reason}; check "
            "out with `fetch-depth: 2` (or 0), or give the token `contents: read`"
        )

    def _blob(self, path: str, name: str) -> bytes:
        content, reason = self._clone.blob(name), "it is not in this clone"
        if content is None and self._api is not None:
            try:
                content = self._api.get_raw(f"/repos/{self._repository}/git/blobs/{name}")
            except ApiError as error:
                reason = str(error)
        if content is None:
            raise BaselineError(
                f"{quoted(path)} of the base commit {self.commit[:12]} cannot be read: {reason}; "
                "check out with `fetch-depth: 2` (or 0), or try again"
            )
        return content


def _folders_of(path: str) -> list[str]:
    """Return the folders on the way to a file, outermost first."""
    return [folder.as_posix() for folder in reversed(PurePosixPath(path).parents[:-1])]


def _detour(folder: str, commit: str) -> BaselineError:
    """Return the refusal to take a file behind a link for one that the commit does not have."""
    return BaselineError(
        f"{quoted(folder)} in commit {commit[:12]} is a link or a submodule, so the policy and "
        "baseline that it leads to cannot decide; make it a folder of the base branch"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A file that differs between head and base, with its role in the base's policy."""

    role: Role
    file: str
    """Path from the root."""
    decides: bool = False
    """Whether it decides although its role is that of something under test."""

    @property
    def is_under_test(self) -> bool:
        """Whether the file is part of what the gate tests."""
        return self.role.is_under_test and not self.decides


class BaseVersion:
    """The base commit's version of what decides, brought into an empty folder by name."""

    def __init__(self, base: BaseCommit, head: Runtime, scratch: Path) -> None:
        """Take the commit, how to read the head, and where a folder may be made."""
        self._base = base
        self._repository = base.top
        scratch.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"base-{base.commit[:12]}-", dir=scratch)).resolve()
        self._top = folder
        self.runtime = replace(head, root=folder / base.prefix, tested=head.root)
        self.runtime.root.mkdir(parents=True, exist_ok=True)

    def bring(self, policy: BaseModel, *, whole: bool = False) -> list[Difference]:
        """Write the base's version of what decides; return the files that differ in the head.

        `policy` may be a part of one; `whole`: what is under test is written, too.
        What neither version of the repository has is the runner's, put there by a step before: it
        counts as it is. Raises BaselineError where the base's content cannot be had.
        """
        differences: dict[Difference, None] = {}
        for file_named in named_by(policy, self.runtime):
            path = posixpath.normpath(f"{self._base.prefix}{file_named.name}")
            leads_out = file_named.name.startswith("/") or path.split("/", 1)[0] == ".."
            if leads_out or not may_be_path(file_named):  # what leads out, its reader refuses
                continue
            try:
                now = dict(self._of_head(path))
            except OSError as error:
                raise UsageError(
                    f"{quoted(file_named.name)}, which the base commit's policy names, cannot be "
                    f"read: {error.strerror}; make it a file or folder that the runner may read"
                ) from error
            try:
                then = dict(self._base.below(path))
            except BaselineError:
                if whole or not file_named.is_under_test:
                    raise
                then = {}  # what cannot be compared is told as changed
            changed = [
                file
                for file in sorted({*then, *now})
                if not self._is_same(then.get(file), now.get(file))
                and (file in then or not self._is_runners(file, now[file]))
            ]
            if whole or not file_named.is_under_test:
                self._write(then, {file: now[file] for file in now.keys() - then.keys()}, changed)
            elif changed and not then and hub_table(file_named.name) is not None:
                raise UsageError(
                    f"this change adds {quoted(changed[0])}, which would take the place of "
                    f"{quoted(file_named.name)} on the Hugging Face hub; give it another name"
                )
            for file in changed:
                relative = posixpath.relpath(file, self._base.prefix or ".")
                differences[
                    Difference(role=file_named.role, file=relative, decides=file_named.decides)
                ] = None
        return list(differences)

    @contextlib.contextmanager
    def reported(self, policy: str = "") -> Iterator[None]:
        """Let errors call the base's files as the user knows them, not where they are read.

        With the path of the policy, while that and what it names is loaded from the base: so are
        the baseline, and the files that are named in another way.
        """
        try:
            yield
        except PolicyError as error:
            problems = [
                replace(
                    problem,
                    path=self._relative(problem.path),
                    message=self._in_base(
                        problem.message, is_there=policy not in ("", problem.path)
                    ),
                )
                for problem in error.problems
            ]
            raise PolicyError(problems) from error
        except FairGateError as error:
            read_there = bool(policy) and isinstance(error, BaselineError)
            error.args = tuple(
                self._in_base(text, is_there=read_there) if isinstance(text, str) else text
                for text in error.args
            )
            raise

    def _in_base(self, text: str, *, is_there: bool) -> str:
        """Return a text that says so where it is about a file of the base."""
        relative = self._relative(text)
        is_there = is_there or relative != text
        return f"in the base commit {self._base.commit[:12]}: {relative}" if is_there else text

    def _relative(self, text: str) -> str:
        above = posixpath.relpath(self._top, self.runtime.root)
        return text.replace(f"{self.runtime.root}/", "").replace(str(self._top), above)

    def _of_head(self, path: str) -> Iterator[tuple[str, Path]]:
        """Yield the head's files at or below a path from the repository's top."""
        target = self._repository / path
        if target.is_file():
            yield path, target
        for file in files_below(target, self._repository) if target.is_dir() else ():
            yield posixpath.normpath(f"{path}/{file.relative_to(target).as_posix()}"), file

    @cached_property
    def _tracked(self) -> frozenset[str]:
        """Return the files of the head's commits, folded: case and composition do not count."""
        checkout = repository_of(self._repository)
        listed = checkout.ask("ls-files", "-z") if checkout is not None else None
        if listed is None:
            raise BaselineError("git cannot list the files of the checkout; put it on the PATH")
        return frozenset(_folded(os.fsdecode(name)) for name in listed.split(b"\0"))

    def _is_runners(self, path: str, file: Path) -> bool:
        """Return whether no commit has put the file there, nor a link or submodule on the way."""
        target = file.resolve()
        if not target.is_relative_to(self._repository):
            return False
        names = (path, target.relative_to(self._repository).as_posix())
        ways = (PurePosixPath(_folded(name)) for name in names)
        return not any(str(part) in self._tracked for way in ways for part in (way, *way.parents))

    def _is_same(self, then: BaseFile | None, now: Path | None) -> bool:
        if then is None or now is None:
            return False
        try:
            if is_object(now, then.id):
                return True
        except OSError:
            return False
        pointer = _LFS_POINTER.match(then.content())  # the checkout has the content
        return pointer is not None and file_sha256(str(now)) == pointer[1].decode()

    def _write(
        self, then: Mapping[str, BaseFile], new: Mapping[str, Path], changed: Sequence[str]
    ) -> None:
        """Write the base's files, and those that are the runner's."""
        content: bytes | Path
        for path, file in then.items():
            content = file.content()
            pointer = _LFS_POINTER.match(content)
            if pointer is not None:
                content = self._behind_pointer(path, pointer[1].decode(), content)
            self._put(path, content)
        for path, own in new.items():
            if path not in changed and own.is_file():
                self._put(path, own)

    def _put(self, path: str, content: bytes | Path) -> None:
        target = self._top / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                shutil.copyfile(content, target)
            else:
                target.write_bytes(content)
        except OSError as error:
            raise StoreError.of_os_error(error, path=target, option="RUNNER_TEMP") from error

    def _behind_pointer(self, path: str, digest: str, pointer: bytes) -> bytes | Path:
        """Return the content that a pointer of Git LFS names, from the checkout or LFS's store."""
        checked_out = self._repository / path
        stored = self._repository / ".git" / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
        for file in (checked_out, stored):
            if file.is_file() and file_sha256(str(file)) == digest:
                return file
        # The checkout left LFS out, as the base's does.
        if checked_out.is_file() and content_of(checked_out) == pointer:
            return pointer
        raise BaselineError(
            f"{quoted(path)} of the base commit {self._base.commit[:12]} is in Git LFS, and its "
            "content is not here: this change replaces it. Get it before the gate runs (`git lfs "
            f"fetch origin {self._base.commit[:12]}`)"
        )


def _folded(name: str) -> str:
    """Return a name without case, composition and ignorable characters, as some disks see it."""
    plain = "".join(character for character in name if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", plain).casefold())
