"""Two versions of a policy's files (folders, git revisions) as sides whose parts are exchanged."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path, PurePosixPath

from fairgate.domain.errors import DataError, StoreError, UsageError
from fairgate.domain.ports import Progress, Runtime
from fairgate.domain.wording import quoted
from fairgate.features.blame.sides import Factor, LocalSides, SideParts
from fairgate.gate.baseline import NO_ACCEPTED_RUNS
from fairgate.gate.composition import Composition
from fairgate.gate.gate import GateInput
from fairgate.gate.loaded_policy import load_policy_text
from fairgate.io.git import Repository, repository_of
from fairgate.policy.parse import parse_policy
from fairgate.policy.schema import Policy
from fairgate.policy.yaml_text import read_yaml_file
from fairgate.systems.catalogue import kind_of, policy_parts
from fairgate.systems.generator import GeneratorPolicy
from fairgate.systems.local import LocalPolicy, RetrieverPolicy
from fairgate.systems.resources import Resources

_FILES = frozenset({b"100644", b"100755"})
_AT_ONCE = 200
"""Files that are read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a repository's files."""

    name: str
    """As the user wrote it."""
    folder: Path
    """Where paths start at."""
    is_revision: bool

    def display_path(self, path: str) -> str:
        """Return a path of this version for messages: `main:policy.yaml` for a revision's."""
        return f"{self.name}:{path}" if self.is_revision else str(self.folder / path)


@contextmanager
def version_of(name: str, working_folder: Path, role: str) -> Iterator[Version]:
    """Yield a folder, or a git revision as a scratch folder.

    The revision is one of the repository around `working_folder`, where its paths start; nothing is
    checked out, and the user's tree stays as it is. `role` is what messages call it.
    Raises UsageError where it is neither, DataError where its files cannot be had.
    """
    if name.isprintable() and name and Path(name).is_dir():
        yield Version(name=name, folder=Path(name), is_revision=False)
        return
    repository = repository_of(working_folder)
    commit = ""
    if repository is not None and name.isprintable() and name and not name.startswith("-"):
        printed = repository.ask("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        commit = (printed or b"").decode("ascii", "replace").strip()
    if repository is None or not commit:
        raise UsageError(
            f"{role} {quoted(name)} is no folder, and no git revision of a checkout around the "
            "current folder (a shallow clone may lack it: fetch it); name a folder that holds the "
            "policy, or a commit, branch or tag"
        )
    inner = working_folder.resolve().relative_to(repository.top)
    with tempfile.TemporaryDirectory(prefix="fairgate-revision-") as scratch:
        top = Path(scratch).resolve()
        write_files(repository, commit, top)
        yield Version(name=name, folder=top / inner, is_revision=True)


def write_files(repository: Repository, commit: str, top: Path) -> None:
    """Write the files of a commit below an empty folder, from git's objects: no filter runs.

    Links and submodules are left out. Raises DataError for names that could lead elsewhere, and for
    files that the clone lacks.
    """
    listed = repository.ask("ls-tree", "-r", "-z", "--full-tree", commit)
    entries = (entry.partition(b"\t") for entry in (listed or b"").split(b"\0") if entry)
    files = [
        (_safe(path, commit), head.split()[2].decode())
        for head, _, path in entries
        if head.split()[0] in _FILES
    ]
    for start in range(0, len(files), _AT_ONCE):
        batch = files[start : start + _AT_ONCE]
        contents = repository.blobs([blob for _, blob in batch])
        if contents is None:
            raise DataError(
                f"files of commit {commit[:12]} cannot be read; is the clone complete? Name the "
                "folder of a checkout instead"
            )
        for (path, _), content in zip(batch, contents, strict=True):
            try:
                (top / path).parent.mkdir(parents=True, exist_ok=True)
                with (top / path).open("xb") as file:
                    file.write(content)
            except OSError as error:
                raise StoreError.of_os_error(error, path=top / path, option="TMPDIR") from error


def _safe(raw: bytes, commit: str) -> str:
    """Return a file's path. Raises DataError unless it is a plain one below the folder."""
    path = os.fsdecode(raw)
    is_hostile = any(
        part in ("", ".", "..") or part.casefold() == ".git" for part in path.split("/")
    )
    if is_hostile or not path.isprintable() or "\\" in path:
        raise DataError(
            f"commit {commit[:12]} holds a file called {quoted(raw.decode(errors='replace'))}, "
            "which is not written out; name the folder of a checkout instead"
        )
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two sides whose parts can be exchanged; nothing was asked yet."""

    sides: LocalSides
    gate_input: GateInput
    notes: list[str]

    @property
    def announcement(self) -> str:
        """Return the factors that differ and the greatest cost of explaining the verdict."""
        factors = self.sides.factors
        if not factors:
            return "nothing differs that could explain a verdict"
        runs = 2 + len(factors) + comb(len(factors), 2)
        cases = len(self.gate_input.plan.cases)
        search = ", then a search among changed documents" if Factor.CORPUS in factors else ""
        return (
            f"{', '.join(factors)} differ{'s' if len(factors) == 1 else ''}; at most {runs} runs "
            f"of up to {cases:,} questions{search}. Stored answers are not asked again"
        )


@contextmanager
def compared(
    base: str, head: str, policy: str, runtime: Runtime, progress: Progress
) -> Iterator[Comparison]:
    """Yield BASE and HEAD, folders or git revisions, as sides whose parts can be exchanged.

    `policy` is its path in both. Raises UsageError where a side has no such policy, or a system
    that cannot be rebuilt.
    """
    inner = PurePosixPath(policy)
    if inner.is_absolute() or ".." in inner.parts:
        raise UsageError(
            f"--policy {quoted(policy)} leads out of BASE and HEAD; name its path in both"
        )
    with ExitStack() as stack:
        versions = []
        for name, role in ((base, "BASE"), (head, "HEAD")):
            version = stack.enter_context(version_of(name, Path(), role))
            if not (version.folder / policy).is_file():
                raise UsageError(
                    f"{role} {quoted(name)} has no policy {quoted(policy)}: name one that has it"
                )
            versions.append(version)
        before, after = versions
        then, now = (replace(runtime, root=version.folder) for version in versions)
        texts = [read_yaml_file(version.folder / policy) for version in versions]
        loaded = load_policy_text(texts[1], after.display_path(policy), now)
        earlier = parse_policy(texts[0], before.display_path(policy), policy_parts()).policy
        if any(unit.verdicts for unit in loaded.plan.units):
            raise UsageError(
                "the policy has pairs that its judge decides, and blame asks no judge; name a "
                "policy whose relations need none"
            )
        old = _parts(earlier, "BASE", then, progress)
        new = _parts(loaded.policy, "HEAD", now, progress)
        if (old.retriever is None) != (new.retriever is None):
            raise UsageError(
                "one side has a retriever and the other has none: their parts cannot be exchanged"
            )
        yield Comparison(
            sides=LocalSides(old, new, loaded),
            gate_input=Composition(loaded, now, progress).gate_input(NO_ACCEPTED_RUNS),
            notes=list(_outside(earlier, loaded.policy)),
        )


def _parts(policy: Policy, role: str, runtime: Runtime, progress: Progress) -> SideParts:
    system = policy.system
    why = f"it is {kind_of(system).id}"
    if isinstance(system, LocalPolicy):
        retriever, generator = system.retriever, system.generator
        if isinstance(retriever, RetrieverPolicy | None) and isinstance(generator, GeneratorPolicy):
            resources = Resources(runtime, progress)
            return SideParts(retriever=retriever, generator=generator, resources=resources)
        outside_part = "generator" if isinstance(retriever, RetrieverPolicy | None) else "retriever"
        why = f"its {outside_part} is asked from outside"
    raise UsageError(
        f"the system of {role} cannot be rebuilt: {why}, and what that was at another commit is "
        "not known here; blame crosses systems with `retriever: {corpus: …}` and "
        "`generator: {model: …}`. Compare recorded answers with `fairgate rescore` instead"
    )


def _outside(before: Policy, after: Policy) -> Iterator[str]:
    """Yield which parts of the policy differ that no factor is about."""
    earlier, later = (policy.model_dump(exclude={"system"}) for policy in (before, after))
    names = [name for name in later if earlier.get(name) != later[name]]
    # Searches collections of the suites, too, where no retriever makes it a factor.
    embedders = [getattr(policy.system, "embedder", None) for policy in (before, after)]
    names += ["system.embedder"] if embedders[0] != embedders[1] else []
    if names:
        yield (
            f"outside of the factors, the policies differ in {', '.join(names)}: HEAD's hold for "
            "both sides"
        )
