"""What git is asked and made to ignore; no file or setting of a checkout names a program.

git looks for a repository from the folder it starts in, and takes a folder with `HEAD`, `objects`
and `refs` for one: a pull request can commit these, with a `config` that runs any program. Here
the repository is the nearest `.git`, which no commit can contain, given to git explicitly. Programs
that this repository's own configuration could start are switched off as well.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairgate.domain.errors import UsageError
from fairgate.domain.wording import harmless, quoted
from fairgate.io.regular import opened

_SECONDS = 120
FULL_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""A commit by its whole hash, SHA-1 or SHA-256."""
_SHA1 = 40
"""Letters of a SHA-1."""
_MOVING = frozenset(
    f"GIT_{name}"
    for name in (
        "ALTERNATE_OBJECT_DIRECTORIES", "COMMON_DIR", "CONFIG", "CONFIG_PARAMETERS", "DIR",
        "EXTERNAL_DIFF", "GLOB_PATHSPECS", "GRAFT_FILE", "ICASE_PATHSPECS",
        "IMPLICIT_WORK_TREE", "INDEX_FILE", "INTERNAL_SUPER_PREFIX", "LITERAL_PATHSPECS",
        "NAMESPACE", "NOGLOB_PATHSPECS", "OBJECT_DIRECTORY", "PREFIX", "REPLACE_REF_BASE",
        "SHALLOW_FILE", "WORK_TREE",
    )
)  # fmt: skip
"""Variables that would lead git to other objects than the repository's own."""
_ENVIRONMENT = {
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_ASKPASS": "",  # also keeps `core.askPass` from being started
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_SETTINGS = {
    "safe.bareRepository": "explicit",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.sshCommand": "ssh",
    "core.gitProxy": "",
    "core.alternateRefsCommand": "true",
    "core.attributesFile": os.devnull,
    "core.pager": "cat",
    "credential.helper": "",  # an empty one forgets all that were named before
    "diff.external": "",
    "gc.auto": "0",
    "submodule.recurse": "false",
    "protocol.ext.allow": "never",
}
"""Settings that override the checkout's configuration, also for the processes that git starts."""
_NO_PROTOCOL, _PROTOCOLS = "", "https:ssh:http:file"
"""How git may reach other repositories: while it reads, not at all; ever, by no remote helper."""
CACHE = ".fairgate"
"""Default name of the folder of stored results, models and runs."""
_EVERYTHING = "# Made by FairGate: what is in here can be made again; do not commit it.\n*\n"


@dataclass(frozen=True, slots=True)
class Repository:
    """A checkout: the folder that has the `.git`."""

    top: Path

    def ask(self, *arguments: str) -> bytes | None:
        """Return the output of a git command that only reads; None where it fails."""
        return self._run(arguments, _NO_PROTOCOL)

    def blobs(self, names: Sequence[str]) -> list[bytes] | None:
        """Return the contents of objects, asked all at once; None where one cannot be had."""
        lines = "".join(f"{name}\n" for name in names).encode()
        output = self._run(("cat-file", "--batch"), _NO_PROTOCOL, lines)
        contents = []
        offset = 0
        if output is None:
            return None
        for name in names:
            end = output.find(b"\n", offset)
            head = output[offset:end].split()
            if end < 0 or head[:2] != [name.encode(), b"blob"]:
                return None
            size = int(head[2])
            contents.append(output[end + 1 : end + 1 + size])
            offset = end + size + 2
        return contents

    def fetch(self, commit: str) -> None:
        """Try to get a commit, without its history, from where the clone came from."""
        quiet = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
        alone = ("--no-recurse-submodules", "--upload-pack=git-upload-pack", "--depth=1")
        self._run(("fetch", *quiet, *alone, "origin", commit), _PROTOCOLS)

    def branch_of_origin(self, name: str) -> str:
        """Return the newest commit of a branch where the clone came from; empty: none is known."""
        ref = f"refs/heads/{name}"
        listing = self._run(
            ("ls-remote", "--quiet", "--upload-pack=git-upload-pack", "origin", ref), _PROTOCOLS
        )
        for line in (listing or b"").decode("utf-8", "replace").splitlines():
            commit, _, listed = line.partition("\t")
            if listed == ref:
                return commit
        return ""

    def _run(self, arguments: tuple[str, ...], protocols: str, stdin: bytes = b"") -> bytes | None:
        settings = (part for item in _SETTINGS.items() for part in ("-c", "=".join(item)))
        path = self._path()
        program = shutil.which("git", path=path) if path else None
        if program is None:
            return None
        command = [program, "--no-pager", *settings, *arguments]
        inherited = {name: value for name, value in os.environ.items() if name not in _MOVING}
        environment = {
            **inherited,
            **_ENVIRONMENT,
            "GIT_ALLOW_PROTOCOL": protocols,
            # Named explicitly, it is neither looked for nor held against its owner.
            "GIT_DIR": str(self.top / ".git"),
            "GIT_WORK_TREE": str(self.top),
            "PATH": path,
        }
        try:
            done = subprocess.run(  # noqa: S603  # our own arguments; commits and paths are checked
                command,
                input=stdin,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                env=environment,
                cwd=self.top,
            )
        except (OSError, subprocess.SubprocessError) as error:
            if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
                raise  # git is there
            return None
        return done.stdout if done.returncode == 0 else None

    def _path(self) -> str:
        """Return the folders of programs without those that the checkout can fill.

        An empty or relative entry is such a one, since git starts in the checkout.
        """
        entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
        absolute = (entry for entry in entries if Path(entry).is_absolute())
        outside = (e for e in absolute if not Path(os.path.realpath(e)).is_relative_to(self.top))
        return os.pathsep.join(outside)


def repository_of(folder: Path) -> Repository | None:
    """Return the checkout that a folder lies in, None where it lies in none.

    A `.git` that belongs neither to us nor to the folder's owner belongs to another user, as in
    `/tmp/.git`: None then too. In a container the checkout is another user's, as a whole.
    """
    try:
        here = Path(os.path.realpath(folder))
        checkout = next(
            (top for top in (here, *here.parents) if os.path.lexists(top / ".git")), None
        )
        if checkout is None:
            return None
        owners = {os.geteuid(), here.stat().st_uid}
        return Repository(checkout) if os.lstat(checkout / ".git").st_uid in owners else None
    except OSError:
        return None


def current_commit(folder: Path) -> str:
    """Return the commit that is checked out at a folder; empty where there is none."""
    repository = repository_of(folder)
    printed = repository.ask("rev-parse", "--verify", "HEAD^{commit}") if repository else None
    return (printed or b"").decode("ascii", "replace").strip()


def is_object(file: Path, name: str) -> bool:
    """Whether a file has the content of git's object of that name. Raises OSError."""
    kind = "sha1" if len(name) == _SHA1 else "sha256"
    digest = hashlib.new(kind, b"blob %d\0" % file.stat().st_size, usedforsecurity=False)
    with opened(file) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest() == name


def tracked_below(path: Path) -> list[str]:
    """List the files that git tracks at or below a path, by their names from the checkout's top.

    Letters' case does not count, as for file systems that ignore it. Raises UsageError where there
    is a checkout and git cannot be asked.
    """
    name = Path(os.path.normpath(path.absolute()))
    nearest = next((folder for folder in name.parents if folder.is_dir()), name)
    listed: bytes | None = b""
    if (repository := repository_of(nearest)) is not None:
        inside = os.path.relpath(
            Path(os.path.realpath(nearest)) / name.relative_to(nearest), repository.top
        )
        listed = repository.ask("ls-files", "-z", "--", f":(top,literal,icase){inside}")
    if listed == b"" and os.path.lexists(name / ".git"):  # the top of a checkout
        repository = repository_of(name)
        listed = b"" if repository is None else repository.ask("ls-files", "-z")
    if listed is None:
        assert repository is not None  # noqa: S101 (it was asked)
        raise UsageError(
            f"git cannot determine whether {quoted(str(path))} is part of the checkout in "
            f"{quoted(str(repository.top))}; put git on the PATH, or name a folder outside of it"
        )
    return [os.fsdecode(file) for file in listed.split(b"\0") if file]


def is_tracked(file: Path, here: Path) -> bool:
    """Whether git tracks a file, a resolved path, in the checkout that the folder `here` lies in.

    False where there is no checkout or git cannot be asked, and for a repository below it.
    """
    repository = repository_of(here)
    if repository is None or not file.is_relative_to(repository.top):
        return False
    inside = file.relative_to(repository.top).as_posix()
    return bool(repository.ask("ls-files", "-z", "--", f":(top,literal){inside}"))


def writable(folder: Path, option: str) -> Path:
    """Return a folder that is about to be written or emptied, or whose content is believed.

    Raises UsageError where a commit could have put it there, or lead elsewhere: where a link of a
    checkout is on the way, or git tracks the folder or a file in it. Both names count where a link
    outside of every checkout leads into one.
    """
    if link := link_on_the_way(folder):
        raise UsageError(
            f"{option} leads over {quoted(os.path.relpath(link))}, a link in the checkout, and "
            "nothing is written or believed through one; remove it, or name another folder"
        )
    for name in dict.fromkeys((folder.absolute(), Path(os.path.realpath(folder)))):
        if tracked := tracked_below(name):
            raise UsageError(
                f"{option} is {quoted(str(folder))}, which is part of the checkout: git tracks "
                f"{quoted(tracked[0])} ({len(tracked):,} in all), and files where a run "
                "writes are believed or shown, whoever put them there. Take it out of version "
                f"control (`git rm -r --cached -- {harmless(tracked[0])}`, and a line in "
                ".gitignore), or name another folder"
            )
    return folder


def link_on_the_way(path: Path) -> Path | None:
    """Return the first link of a checkout on the way to a path, itself included."""
    whole = Path(os.path.normpath(path.absolute()))
    is_inside = False
    for part in (*reversed(whole.parents), whole):
        if is_inside and part.is_symlink():
            return part
        is_inside = is_inside or os.path.lexists(part / ".git")
    return None


def keep_out_of_git(folder: Path) -> None:
    """Make the folder, and a `.gitignore` of everything in it where it is new or is our cache.

    Existing files are kept. Where nothing can be written, the next write reports it.
    """
    is_new = not folder.exists()
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if is_new or folder.name == CACHE:
            # Never through a link: a checkout could have one that leads out of it.
            with (folder / ".gitignore").open("x", encoding="utf-8") as file:
                file.write(_EVERYTHING)


def prepared(folder: Path, option: str) -> Path:
    """Return a folder that may be written, kept out of version control; see `writable`."""
    keep_output_out_of_git(writable(folder, option))
    return folder


def keep_output_out_of_git(output: Path) -> None:
    """Like `keep_out_of_git`, for the cache that an output lies in; elsewhere do nothing."""
    for folder in (output, *output.parents):
        if folder.name == CACHE:
            keep_out_of_git(folder)
            return
