"""The manifest: every file, folder and model that a policy names, and which version of it counts.

A pull request's author writes every file of the head. So what decides is read from a folder that
holds the base commit's version of what the base's policy names, and nothing else; of the head only
what is under test is read (SPEC 9). A name that is missing here is a file that is not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Protocol

from fairgate.domain.errors import (
    BaselineError,
    DataError,
    FairGateError,
    PolicyError,
    Problem,
    StoreError,
    UsageError,
)
from fairgate.domain.runtime import Runtime
from fairgate.domain.schema import Named, Role, named_in
from fairgate.domain.wording import quoted
from fairgate.io.embedded_names import embedded_path, existing
from fairgate.io.git import repository_of
from fairgate.io.hub import hub_table
from fairgate.io.text_files import file_sha256
from fairgate.onnx.model_hub import is_hub_id
from fairgate.policy.named_files import embedded_names, read_task
from fairgate.policy.schema import Policy

_EMBEDDED = {
    Role.ATTRIBUTES: "attributes",
    Role.CLASSIFIER: "classifiers",
    Role.COLLECTION: "collections",
    Role.CORPUS: "corpora",
    Role.ITEMS: "items",
    Role.PERTURBATIONS: "perturbations",
    Role.SOURCES: "sources",
    Role.TASK: "tasks",
    **dict.fromkeys((Role.EMBEDDER, Role.GENERATOR, Role.JUDGE, Role.RETRIEVER), "models"),
}
"""Which embedded data a name may mean instead, by what it is."""
_LFS_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\n"
)
_YAML = ("attributes", "perturbations", "tasks")


def named_by(policy: Policy, runtime: Runtime) -> Iterator[Named]:
    """Yield everything that a policy names and that FairGate does not bring itself.

    What a task file names follows the file, which is read only then.
    """
    for named in dict.fromkeys(named_in(policy)):
        if _is_embedded(named):
            continue
        yield named
        if named.role is Role.TASK:
            try:
                task = read_task(named.name, folder=runtime.root, confined=runtime.confined)
            except (DataError, PolicyError):  # told, with its place, where the policy is loaded
                continue
            yield from (inner for inner in named_in(task) if not _is_embedded(inner))


def _is_embedded(named: Named) -> bool:
    kind = _EMBEDDED.get(named.role)
    if kind is None:
        return named == Named(Role.TOKENIZER, "bundled")
    if kind in _YAML:
        return named.name in ("none", *embedded_names(kind))
    return embedded_path(kind, named.name) is not None


def _may_be_path(named: Named) -> bool:
    """Return whether a name can mean a file or folder; that of a model on the hub cannot."""
    return named.revision is None and not (named.role.is_model and is_hub_id(named.name))


def contents(policy: Policy, runtime: Runtime, *roles: Role) -> dict[str, str]:
    """Return role and name of everything that a policy names to a hash of its content.

    Of these roles alone, where there are some. A folder's hash covers every file in it; of what is
    on the hub the revision is known.
    """
    found = {}
    for named in named_by(policy, runtime):
        if roles and named.role not in roles:
            continue
        place = runtime.under_test if named.role.is_under_test else runtime
        try:
            path = existing(named.name, place.root, confined=place.confined)
            digest = _digest(path) if _may_be_path(named) else named.revision or "hub"
        except DataError:  # on the hub, or told where it is read
            digest = named.revision or "hub"
        found[f"{named.role} {named.name}"] = digest
    return found


def _digest(path: Path) -> str:
    if path.is_file():
        return file_sha256(str(path))
    files = sorted(
        (file.relative_to(path).as_posix(), file_sha256(str(file)))
        for file in _below(path)
        if file.is_file()
    )
    return hashlib.sha256(repr(files).encode("utf-8", "surrogatepass")).hexdigest()


def _below(
    folder: Path, within: Path = Path("/"), above: frozenset[Path] = frozenset()
) -> Iterator[Path]:
    """Yield every file below a folder, behind links too: models are read through them.

    A link that leads back up, or out of `within`, is yielded itself.
    """
    passed = above | {folder.resolve()}
    for entry in folder.iterdir():
        if entry.name == ".git":
            continue
        if not entry.is_dir():
            yield from (entry,) if entry.is_file() else ()
        elif (real := entry.resolve()) in passed or not real.is_relative_to(within):
            yield entry
        else:
            yield from _below(entry, within, passed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What the head has in another version than the base, by what it is in the base's policy."""

    role: Role
    file: str
    """Path from the root."""


class BaseFile(Protocol):
    """A file of the base commit."""

    @property
    def id(self) -> str:
        """Return the name of its object."""
        ...

    @property
    def content(self) -> Callable[[], bytes]:
        """Return what reads it."""
        ...


class BaseCommit(Protocol):
    """The files of the base commit."""

    @property
    def commit(self) -> str:
        """Return its name."""
        ...

    @property
    def prefix(self) -> str:
        """Return where the root is in its repository: nothing, or `services/shop/`."""
        ...

    def below(self, path: str) -> Iterator[tuple[str, BaseFile]]:
        """Yield every file at or below a path from the repository's top. Raises BaselineError."""
        ...


class BaseVersion:
    """The base commit's version of what decides, brought into an empty folder by name."""

    def __init__(self, base: BaseCommit, head: Runtime, scratch: Path) -> None:
        """Take the commit, how to read the head, and where a folder may be made."""
        self._base = base
        self._head = head.root.resolve()
        scratch.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"base-{base.commit[:12]}-", dir=scratch)).resolve()
        self._top = folder
        self.runtime = replace(head, root=folder / base.prefix, tested=head.root)
        self.runtime.root.mkdir(parents=True, exist_ok=True)

    def bring(self, policy: Policy) -> list[Difference]:
        """Write what decides, so that it can be read; return what the head has otherwise.

        What neither version of the repository has is the runner's, put there by a step before: it
        counts as it is. Raises BaselineError where the base's content cannot be had.
        """
        found: dict[Difference, None] = {}
        for named in named_by(policy, self.runtime):
            path = posixpath.normpath(f"{self._base.prefix}{named.name}")
            leads_out = named.name.startswith("/") or path.split("/", 1)[0] == ".."
            if leads_out or not _may_be_path(named):  # what leads out, its reader refuses
                continue
            now = dict(self._of_head(path))
            try:
                then = dict(self._base.below(path))
            except BaselineError:
                if not named.role.is_under_test:
                    raise
                then = {}  # what cannot be compared is told as changed
            changed = [
                file
                for file in sorted({*then, *now})
                if not self._is_same(then.get(file), now.get(file))
                and (file in then or not self._is_runners(file, now[file]))
            ]
            if not named.role.is_under_test:
                self._write(then, {file: now[file] for file in now.keys() - then.keys()}, changed)
            elif changed and not then and hub_table(named.name) is not None:
                raise UsageError(
                    f"this change adds {quoted(changed[0])}, which would take the place of "
                    f"{quoted(named.name)} on the Hugging Face hub; give it another name"
                )
            for file in changed:
                shown = posixpath.relpath(file, self._base.prefix or ".")
                found[Difference(role=named.role, file=shown)] = None
        return list(found)

    @contextlib.contextmanager
    def reported(self, policy: str = "") -> Iterator[None]:
        """Let errors call the base's files as the user knows them, not where they are read.

        With the path of the policy, while that and what it names is loaded from the base: so are
        the baseline, and the files that are named in another way.
        """
        try:
            yield
        except PolicyError as error:
            raise PolicyError([self._known(each, policy) for each in error.problems]) from error
        except FairGateError as error:
            read_there = bool(policy) and isinstance(error, BaselineError)
            error.args = tuple(
                self._in_base(text, is_there=read_there) if isinstance(text, str) else text
                for text in error.args
            )
            raise

    def _known(self, problem: Problem, policy: str) -> Problem:
        message = self._in_base(problem.message, is_there=policy not in ("", problem.path))
        return replace(problem, path=self._relative(problem.path), message=message)

    def _in_base(self, text: str, *, is_there: bool) -> str:
        """Return a text that says so where it is about a file of the base."""
        known = self._relative(text)
        is_there = is_there or known != text
        return f"in the base commit {self._base.commit[:12]}: {known}" if is_there else text

    def _relative(self, text: str) -> str:
        above = posixpath.relpath(self._top, self.runtime.root)
        return text.replace(f"{self.runtime.root}/", "").replace(str(self._top), above)

    def _of_head(self, path: str) -> Iterator[tuple[str, Path]]:
        """Yield the head's files at or below a path from the repository's top."""
        place = self._repository / path
        if place.is_file():
            yield path, place
        for file in _below(place, self._repository) if place.is_dir() else ():
            yield posixpath.normpath(f"{path}/{file.relative_to(place).as_posix()}"), file

    @cached_property
    def _repository(self) -> Path:
        """Return the top of the checkout."""
        inner = PurePosixPath(self._base.prefix).parts
        return self._head.parents[len(inner) - 1] if inner else self._head

    @cached_property
    def _tracked(self) -> frozenset[str]:
        """Return what the head's commits put there; letters' case does not count."""
        checkout = repository_of(self._repository)
        found = checkout.ask("ls-files", "-z") if checkout is not None else None
        if found is None:
            raise BaselineError("git cannot list the files of the checkout; put it on the PATH")
        return frozenset(os.fsdecode(name).casefold() for name in found.split(b"\0"))

    def _is_runners(self, path: str, file: Path) -> bool:
        """Return whether no commit has put the file there, nor a link or submodule on the way."""
        target = file.resolve()
        if not target.is_relative_to(self._repository):
            return False
        names = (path, target.relative_to(self._repository).as_posix())
        ways = (PurePosixPath(name.casefold()) for name in names)
        return not any(str(part) in self._tracked for way in ways for part in (way, *way.parents))

    def _is_same(self, then: BaseFile | None, now: Path | None) -> bool:
        if then is None or now is None:
            return False
        size = now.stat().st_size
        digest = hashlib.new("sha1" if len(then.id) == 40 else "sha256", b"blob %d\0" % size)
        with now.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        if digest.hexdigest() == then.id:
            return True
        content = then.content()
        pointer = _LFS_POINTER.match(content)
        if pointer is not None:  # the checkout has the content
            return file_sha256(str(now)) == pointer[1].decode()
        # A checkout may bring CRLF.
        return size <= 2 * len(content) and _plain(now.read_bytes()) == _plain(content)

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
        here = self._repository / path
        stored = self._repository / ".git" / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
        for file in (here, stored):
            if file.is_file() and file_sha256(str(file)) == digest:
                return file
        if here.is_file() and here.read_bytes() == pointer:  # the checkout left LFS out, as base's
            return pointer
        raise BaselineError(
            f"{quoted(path)} of the base commit {self._base.commit[:12]} is in Git LFS, and its "
            "content is not here: this change replaces it. Get it before the gate runs (`git lfs "
            f"fetch origin {self._base.commit[:12]}`)"
        )


def _plain(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n")
