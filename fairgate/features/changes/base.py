"""Which commit decides: the one that a user names on the command line.

A name is a branch before it is anything else, and never silently a tag: who may push a tag called
`main` must not choose the rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairgate.domain.errors import UsageError
from fairgate.domain.wording import listed, quoted
from fairgate.github.base_commit import BaseCommit, Clone, Difference
from fairgate.io.git import FULL_COMMIT, Repository, repository_of

_SHORT = re.compile(r"[0-9a-f]{7,64}")
_NAME = re.compile(r"(?!-)[^\x00-\x20\x7f~^:?*\[\\]{1,255}")
_SUFFIX = re.compile(r"(?:[~^][0-9]{0,4})*")
_REMOTE = "origin/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The commit that decides, and what a reader must know about it."""

    commit: BaseCommit
    remarks: Sequence[str] = ()
    edited: list[Difference] = field(default_factory=list)
    """Files of relations that the command line names and the change edits."""


def base_of(root: Path, ref: str) -> Base:
    """Return the commit that `ref` names in the repository around `root`.

    A commit's full name, a branch, a remote's branch (`origin/main`), a tag by its full name
    (`refs/tags/v1`), each with `~` and `^`; a branch that is not here is fetched from `origin`.
    Raises UsageError where it names none, or several.
    """
    repository = repository_of(root)
    if repository is None:
        raise UsageError(f"--base names a commit, and {quoted(str(root))} is in no git checkout")
    commit = commit_named(repository, ref)
    remark = (
        f"This change does not build on the base commit `{commit[:12]}`: what the base has changed "
        "since counts as edited here. Merge the base first, or rebase."
    )
    remarks = [] if _has_in_history(repository, commit) else [remark]
    # Everything is read from the clone: the commit is there by now.
    return Base(commit=BaseCommit(Clone(root), commit, api=None, repository=""), remarks=remarks)


def commit_named(repository: Repository, ref: str) -> str:
    """Return the full name of the commit that `ref` names; it is in the clone.

    A branch here is none that `origin` has otherwise: a clone that is used again keeps its branches
    as they were. Raises UsageError.
    """
    name = re.match(r"[^~^]*", ref)[0]  # type: ignore[index]
    suffix = ref[len(name) :]
    if not _SUFFIX.fullmatch(suffix) or not _NAME.fullmatch(name) or ".." in name:
        raise UsageError(
            f"--base is {quoted(ref)}; expected a branch, a commit, or one of them with `~1`"
        )
    commit = _root_of(repository, name)
    _refuse_stale(repository, name, commit)
    if suffix:
        before = _one(repository, f"{commit}{suffix}^{{commit}}")
        if not before:
            raise UsageError(
                f"--base is {quoted(ref)}, and {commit[:12]} has no such ancestor in this clone; "
                "fetch more of its history"
            )
        return before
    return commit


def _root_of(repository: Repository, name: str) -> str:
    if name in ("HEAD", "@"):
        return _one(repository, "HEAD^{commit}") or _none(name, repository)
    if FULL_COMMIT.fullmatch(name):
        return _fetched(repository, name) or _none(name, repository)
    full = [name] if name.startswith("refs/") else [f"refs/heads/{name}", f"refs/remotes/{name}"]
    tags = [] if name.startswith("refs/") else [f"refs/tags/{name}"]
    commits = {
        candidate: _one(repository, f"{candidate}^{{commit}}") for candidate in (*full, *tags)
    }
    existing = {candidate: commit for candidate, commit in commits.items() if commit}
    if len(set(existing.values())) > 1:
        raise UsageError(
            f"--base is {quoted(name)}, which names several commits: {listed(existing)}; write the "
            "one that you mean in full"
        )
    branches = [commit for candidate, commit in existing.items() if candidate not in tags]
    if branches:
        return branches[0]
    if existing:
        raise UsageError(
            f"--base is {quoted(name)}, which is a tag here and no branch; write "
            f"{listed(existing)} if you mean the tag, or `origin/{name}` for the branch"
        )
    # A branch `20261130` comes before a commit that begins so, which anybody can make.
    commit = repository.branch_of_origin(name.removeprefix(_REMOTE).removeprefix("refs/heads/"))
    if commit:
        return _fetched(repository, commit) or _none(name, repository)
    short = _one(repository, f"{name}^{{commit}}") if _SHORT.fullmatch(name) else ""
    return short or _none(name, repository)


def _refuse_stale(repository: Repository, name: str, commit: str) -> None:
    """Raise UsageError for a branch here, by its plain name, whose newest commit is not origin's.

    Where `origin` cannot be asked, it is held against what was fetched last.
    """
    if not _one(repository, f"refs/heads/{name}^{{commit}}"):
        return
    fetched = _one(repository, f"refs/remotes/{_REMOTE}{name}^{{commit}}")
    newest = repository.branch_of_origin(name) or fetched
    if newest and newest != commit:
        raise UsageError(
            f"--base is {quoted(name)}, and this clone's branch is another than origin's "
            f"({commit[:12]}, not {newest[:12]}): its rules may not be today's. Fetch and write "
            f"`{_REMOTE}{name}`, or `refs/heads/{name}` if you mean the one in this clone"
        )


def _fetched(repository: Repository, commit: str) -> str:
    """Return the commit once it is in the clone; empty where it cannot be had."""
    if not _one(repository, f"{commit}^{{commit}}"):
        repository.fetch(commit)
    return _one(repository, f"{commit}^{{commit}}")


def _one(repository: Repository, expression: str) -> str:
    printed = repository.ask("rev-parse", "--verify", "--quiet", "--end-of-options", expression)
    commit = (printed or b"").decode("ascii", "replace").strip()
    return commit if FULL_COMMIT.fullmatch(commit) else ""


def _none(name: str, repository: Repository) -> str:
    branch = name.removeprefix(_REMOTE)
    if not repository.ask("config", "--get", "remote.origin.url"):
        names = repository.ask("for-each-ref", "--format=%(refname:short)", "refs/heads") or b""
        branches = names.decode("utf-8", "replace").split()
        own_branches = f"its branches are {listed(branches)}" if branches else "it has no branch"
        raise UsageError(
            f"--base is {quoted(name)}, which is no commit of this clone; {own_branches}, and "
            "there is no remote `origin` to fetch one from"
        )
    raise UsageError(
        f"--base is {quoted(name)}, which is no commit of this clone and no branch that can be "
        f"fetched from `origin`; fetch it before (`git fetch origin {branch}:refs/remotes/origin/"
        f"{branch}`) and name `origin/{branch}`"
    )


def _has_in_history(repository: Repository, commit: str) -> bool:
    """Return whether the checkout builds on a commit; True where the clone is cut and may."""
    if repository.ask("merge-base", "--is-ancestor", commit, "HEAD") is not None:
        return True
    return (repository.ask("rev-parse", "--is-shallow-repository") or b"").strip() != b"false"
