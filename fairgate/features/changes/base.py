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
from fairgate.domain.wording import quoted
from fairgate.github.base_commit import BaseCommit, Clone, Difference
from fairgate.io.git import FULL_COMMIT, Repository, repository_of

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

    A branch by its plain name, which is `origin`'s newest of that name, or where it has none this
    clone's; a remote's branch as it was fetched (`origin/main`); a commit's full name; a ref in
    full (`refs/tags/v1`); each with `~` and `^`. Raises UsageError where it names none.
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
    """Return the full name of the commit that `ref` names; it is in the clone. Raises UsageError.

    A clone that is used again keeps its branches as they were, so `origin` is asked first.
    """
    name = re.match(r"[^~^]*", ref)[0]  # type: ignore[index]
    suffix = ref[len(name) :]
    if not _SUFFIX.fullmatch(suffix) or not _NAME.fullmatch(name) or ".." in name:
        raise UsageError(
            f"--base is {quoted(ref)}; expected a branch, a commit, or one of them with `~1`"
        )
    commit = _commit(repository, name)
    if not commit:
        branch = name.removeprefix(_REMOTE)
        raise UsageError(
            f"--base is {quoted(name)}, which is no branch of this clone or of its `origin`, and "
            "no commit by its full name; write a tag as `refs/tags/…`, or fetch the branch before "
            f"(`git fetch origin {branch}:refs/remotes/origin/{branch}`)"
        )
    if not suffix:
        return commit
    before = _one(repository, f"{commit}{suffix}^{{commit}}")
    if not before:
        raise UsageError(
            f"--base is {quoted(ref)}, and {commit[:12]} has no such ancestor in this clone; "
            "fetch more of its history"
        )
    return before


def _commit(repository: Repository, name: str) -> str:
    """Return the commit of a name without `~` and `^`; empty where it cannot be had."""
    if name in ("HEAD", "@") or name.startswith("refs/"):
        return _one(repository, f"{'HEAD' if name == '@' else name}^{{commit}}")
    if FULL_COMMIT.fullmatch(name):
        return _fetched(repository, name)
    branch = name.removeprefix(_REMOTE)
    fetched = _one(repository, f"refs/remotes/{_REMOTE}{branch}^{{commit}}")
    if fetched and branch != name:
        return fetched
    newest = repository.branch_of_origin(branch)
    if newest:
        return _fetched(repository, newest)
    own = "" if branch != name else _one(repository, f"refs/heads/{name}^{{commit}}")
    return fetched or own


def _fetched(repository: Repository, commit: str) -> str:
    """Return the commit once it is in the clone; empty where it cannot be had."""
    if not _one(repository, f"{commit}^{{commit}}"):
        repository.fetch(commit)
    return _one(repository, f"{commit}^{{commit}}")


def _one(repository: Repository, expression: str) -> str:
    printed = repository.ask("rev-parse", "--verify", "--quiet", "--end-of-options", expression)
    commit = (printed or b"").decode("ascii", "replace").strip()
    return commit if FULL_COMMIT.fullmatch(commit) else ""


def _has_in_history(repository: Repository, commit: str) -> bool:
    """Return whether the checkout builds on a commit; True where the clone is cut and may."""
    if repository.ask("merge-base", "--is-ancestor", commit, "HEAD") is not None:
        return True
    return (repository.ask("rev-parse", "--is-shallow-repository") or b"").strip() != b"false"
