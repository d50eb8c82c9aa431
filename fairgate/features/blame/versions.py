"""Two versions of a policy's files as sides that can be crossed.

Folders, git revisions, or the base commit and the checkout of a pull request.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import DataError, ExitCode, FairGateError, StoreError, UsageError
from fairgate.domain.ports import Progress, Runtime
from fairgate.domain.wording import harmless, quoted
from fairgate.features.blame import blame_line, blame_record
from fairgate.features.blame.factors import Blame, blame, design
from fairgate.features.blame.sides import Factor, LocalSides, QuestionLimit, SideParts
from fairgate.gate.baseline import NO_REFERENCES
from fairgate.gate.composition import Composition
from fairgate.gate.gate import GateInput
from fairgate.gate.loaded_policy import load_policy_text
from fairgate.io.durable import write_text
from fairgate.io.git import Repository, repository_of
from fairgate.policy.parse import parse_policy
from fairgate.policy.schema import Policy
from fairgate.policy.yaml_text import decode_yaml, read_yaml_file
from fairgate.systems.catalogue import kind_of, policy_parts
from fairgate.systems.generator import GeneratorPolicy
from fairgate.systems.local import LocalPolicy, RetrieverPolicy
from fairgate.systems.resources import Resources

if TYPE_CHECKING:
    from fairgate.gate.composition import FinishedRun
    from fairgate.github.base_commit import BaseCommit
    from fairgate.github.change import GatedChange

_MOST_FILES = 50_000
_MOST_BYTES = 4 << 30
_AT_ONCE_BYTES = 64 << 20
_LEAST_BYTES = 1 << 16
"""What a small file counts as one of those that are read at once."""
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
    """Sentences about files of the revision that are not in the folder."""

    def display_path(self, path: str) -> str:
        """Return a path of this version for messages: `main:policy.yaml` for a revision's."""
        return f"{self.named}:{path}" if self.is_revision else str(self.folder / path)


@contextmanager
def version_of(version_name: str, working_folder: Path, role: str) -> Iterator[Version]:
    """Yield a folder, or a git revision as a scratch folder.

    The revision is one of the repository around `working_folder`, where its paths start. `role` is
    what messages call it.
    Raises UsageError where it is neither, DataError where its files cannot be written as they are.
    """
    if version_name and not _CONTROL.search(version_name) and Path(version_name).is_dir():
        yield Version(named=version_name, folder=Path(version_name), is_revision=False)
        return
    with revision_of(version_name, working_folder, role) as version:
        yield version


@contextmanager
def revision_of(revision: str, working_folder: Path, role: str) -> Iterator[Version]:
    """Yield a git revision, whatever folders there are.

    A revision's files are written into a scratch folder from git's objects: nothing is checked out,
    no filter or hook runs, and the user's tree stays as it is. Links and submodules are left out,
    and a name that could lead anywhere else is refused.
    """
    repository = repository_of(working_folder)
    commit = ""
    is_plain = revision and not revision.startswith("-") and not _CONTROL.search(revision)
    if repository is not None and is_plain:
        printed = repository.ask("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        commit = (printed or b"").decode("ascii", "replace").strip()
    if repository is None or not commit:
        raise UsageError(
            f"{role} {quoted(revision)} is no folder, and no git revision of a checkout around the "
            "current folder (a shallow clone may lack it: fetch it); name a folder that holds the "
            "policy, or a commit, branch or tag"
        )
    inner = working_folder.resolve().relative_to(repository.top)
    with tempfile.TemporaryDirectory(prefix="fairgate-revision-") as scratch:
        top = Path(scratch).resolve()
        notes = [f"{role}: {note}" for note in write_tree(repository, commit, top)]
        folder = top / inner
        folder.mkdir(parents=True, exist_ok=True)
        yield Version(named=revision, folder=folder, is_revision=True, notes=notes)


class _File(NamedTuple):
    path: str
    blob: str
    size: int


def write_tree(repository: Repository, commit: str, top: Path) -> list[str]:
    """Write the files of a commit below an empty folder; return sentences about those left out.

    Raises DataError for hostile names, sizes beyond the limits, and what cannot be read.
    """
    files, left_out = _listed(repository, commit)
    size = sum(file.size for file in files)
    if len(files) > _MOST_FILES or size > _MOST_BYTES:
        raise DataError(
            f"commit {commit[:12]} holds {len(files):,} files, {size >> 20:,} MiB; at most "
            f"{_MOST_FILES:,} files and {_MOST_BYTES >> 20:,} MiB are written out: name a checkout"
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
        f"{count:,} {noun} of commit {commit[:12]} {'is' if count == 1 else 'are'} left out"
        for count, noun in ((left_out, "links or submodules"), (pointers, "files in Git LFS"))
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
        if batch and size + file.size > _AT_ONCE_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += max(file.size, _LEAST_BYTES)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Blaming:
    """Two sides, ready to be crossed; nothing was asked yet."""

    sides: LocalSides
    gate_input: GateInput
    notes: Sequence[str]
    named: tuple[str, str]

    @property
    def announcement(self) -> str:
        """Return the factors that differ and the greatest cost of explaining the verdict."""
        factors = self.sides.factors
        if not factors:
            return "nothing differs that could explain a verdict"
        runs = len(design(factors))
        cases = sum(case.judge is None for case in self.gate_input.plan.cases)
        price = f"{runs} combinations of up to {cases:,} questions: at most {runs * cases:,}"
        if Factor.CORPUS in factors:
            price += f"; then a search among {len(self.sides.union.changed):,} changed documents"
        return (
            f"{', '.join(factors)} differ{'s' if len(factors) == 1 else ''}; {price}. Stored "
            f"answers are not asked again; budget: {self.sides.limit.most:,} questions"
        )

    def result(self, progress: Progress) -> Blame:
        """Explain the verdict."""
        blamed = blame(self.gate_input, self.sides, progress)
        labels = dict(zip(("base", "head"), self.named, strict=True))
        return replace(blamed, notes=[*self.notes, *blamed.notes], labels=labels)


@contextmanager
def blaming(
    base: str, head: str, policy: str, runtime: Runtime, budget: int, progress: Progress
) -> Iterator[Blaming]:
    """Yield BASE and HEAD, folders or git revisions, as sides that can be crossed.

    `policy` is its path in both. Raises UsageError where a side has no such policy, or a system
    that cannot be rebuilt.
    """
    inner = PurePosixPath(policy)
    if inner.is_absolute() or ".." in inner.parts:
        raise UsageError(
            f"--policy {quoted(policy)} leads out of BASE and HEAD; name its path in both"
        )
    with ExitStack() as stack:
        sides = []
        for side, role in ((base, "BASE"), (head, "HEAD")):
            version = stack.enter_context(version_of(side, Path(), role))
            path = version.folder / policy
            if not path.is_file():
                raise UsageError(
                    f"{role} {quoted(side)} has no policy {quoted(policy)}: name one that has it"
                )
            sides.append((version, read_yaml_file(path)))
        yield crossed(sides[0], sides[1], policy, runtime, budget, progress)


def write_blame(run: Path, blamed: Blame) -> None:
    """Write blame.json into the folder of HEAD's run, which `check_run` has seen to be one."""
    text = json.dumps(blame_record(blamed), indent=1, allow_nan=False)
    write_text(run / "blame.json", f"{text}\n", option="--run")


def crossed(
    base: tuple[Version, str],
    head: tuple[Version, str],
    policy: str,
    runtime: Runtime,
    budget: int,
    progress: Progress,
) -> Blaming:
    """Return two versions and the texts of their policies as sides, ready to be crossed.

    Raises UsageError where they cannot be.
    """
    (before, text_before), (after, text_after) = base, head
    then, now = (replace(runtime, root=version.folder) for version in (before, after))
    loaded = load_policy_text(text_after, after.display_path(policy), now)
    earlier = parse_policy(text_before, before.display_path(policy), policy_parts()).policy
    if any(unit.verdicts for unit in loaded.plan.units):
        raise UsageError(
            "the policy has pairs that its judge decides, whose questions no budget of blame "
            "limits; name a policy whose relations need no judge"
        )
    parts = [_parts(earlier, "BASE", then, progress), _parts(loaded.policy, "HEAD", now, progress)]
    if (parts[0].retriever is None) != (parts[1].retriever is None):
        raise UsageError(
            "one side has a retriever and the other has none: their parts cannot be exchanged"
        )
    return Blaming(
        sides=LocalSides(parts[0], parts[1], loaded, QuestionLimit(budget)),
        gate_input=Composition(loaded, now, progress).gate_input(NO_REFERENCES),
        notes=[
            *before.notes,
            *after.notes,
            *_outside(earlier, loaded.policy),
            *_other_cases(text_before, before.display_path(policy), then, loaded.plan),
        ],
        named=(before.named, after.named),
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


def _other_cases(text: str, path: str, runtime: Runtime, plan: TestPlan) -> Iterator[str]:
    """Yield how many questions of the two sides differ, whatever file makes them differ."""
    try:
        then = load_policy_text(text, path, runtime).plan
    except FairGateError as error:
        why = harmless(str(error).splitlines()[0][:200])
        yield f"BASE's suites cannot be loaded ({why}): both sides are asked HEAD's questions"
        return
    old, new = (
        {(case.suite, case.key): case._replace(top_k=0) for case in plan_of_side.cases}
        for plan_of_side in (then, plan)
    )
    differing = sum(old.get(name) != new.get(name) for name in {*old, *new})
    if differing:
        yield f"{differing:,} questions differ: both sides are asked HEAD's"


@dataclass(slots=True)
class BlamedChange:
    """Finds what explains the red verdict of a pull request; nothing here changes a verdict.

    HEAD is the checkout with the policy that decided, BASE the base commit's files as git has them.
    The explanation is kept for the run's folder.
    """

    policy: str
    """Its path."""
    runtime: Runtime
    budget: int
    """The most questions; 0 asks for nothing."""
    progress: Progress
    blame: Blame | None = None

    def remarks(self, judged: GatedChange[FinishedRun], base: BaseCommit, commit: str) -> list[str]:
        """Return the sentence for the comment; none where nothing is asked for, or it is green."""
        if not self.budget or judged.decides.run.result.exit_code is not ExitCode.GATE_FAILED:
            return []
        root = self.runtime.root
        head = Version(named="HEAD", folder=root, is_revision=False)
        try:
            raw = base.read(self.policy)
            if raw is None:  # the change introduces the gate
                return []
            with revision_of(commit, root, "the base commit") as before:
                sides = crossed(
                    (before, decode_yaml(raw, harmless(self.policy))),
                    (head, judged.decides.loaded.parsed.document.text),
                    self.policy,
                    self.runtime,
                    self.budget,
                    self.progress,
                )
                self.progress.note(f"blame: {sides.announcement}")
                self.blame = sides.result(self.progress)
        except FairGateError as error:
            why = harmless(str(error).splitlines()[0][:300])
            return [f"Which part of the change explains it is not known: {why}"]
        line = blame_line(self.blame)
        return [line] if line else []

    def write(self, folder: Path) -> None:
        """Write blame.json into the run's folder, if there is an explanation."""
        if self.blame is not None:
            write_blame(folder, self.blame)
