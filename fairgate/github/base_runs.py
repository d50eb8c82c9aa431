"""Files that the base branch's own runs have left, for later runs on a runner that keeps nothing.

`actions/cache` cannot tell who wrote an entry: a pull request's job writes into its own scope under
any key, and later jobs of the pull request are given that entry before the base branch's. An
artifact belongs to the run that made it, and GitHub says which commit and event that was. So what
is believed is an artifact of a run that a push to the default branch of this repository started,
and whose commit lies in the base's history. A push to another branch does not count, even if that
branch was merged later: what its workflow did at that commit nobody reviewed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fairgate.domain.errors import ApiError, DataError
from fairgate.github.api import GitHubApi
from fairgate.github.artifacts import member_of
from fairgate.github.payload_fields import commit_of, natural, value_at

MOST_BYTES = 256 << 20
_LOOKED_AT = 10
"""Runs that are looked at, the newest first."""
_IN_HISTORY = {"ahead", "identical"}
"""What GitHub says of a base compared with a commit of its history."""


def base_run_file(
    api: GitHubApi, repository: str, branch: str, base: str, artifact: str, member: str
) -> tuple[str, bytes] | None:
    """Return commit and content of the newest such file; None where no run of `branch` has any.

    An artifact that is damaged, too large or gone is passed over. Raises ApiError or DataError
    where every one is.
    """
    failed: ApiError | DataError | None = None
    for number, run, head in _candidates(api, repository, artifact):
        if not _is_push(api, repository, branch, run, head):
            continue
        if not _is_in_history(api, repository, base, head):
            continue
        try:
            raw = api.download(f"/repos/{repository}/actions/artifacts/{number}/zip", MOST_BYTES)
            return head, member_of(raw, artifact, member, MOST_BYTES)
        except (ApiError, DataError) as error:
            failed = error
    if failed is not None:
        raise failed
    return None


def _candidates(api: GitHubApi, repository: str, artifact: str) -> Iterator[tuple[int, int, str]]:
    """Yield artifact, run and commit, the newest first; those of forks' branches are left out."""
    found = api.get(f"/repos/{repository}/actions/artifacts", per_page=100, name=artifact)
    listed = found.get("artifacts") if isinstance(found, dict) else None
    known = [
        (number, item)
        for item in (listed if isinstance(listed, list) else [])
        if _is_own(item, artifact) and (number := natural(item.get("id"))) is not None
    ]
    for number, item in sorted(known, key=lambda one: -one[0])[:_LOOKED_AT]:
        run = natural(value_at(item, "workflow_run", "id"))
        head = commit_of(value_at(item, "workflow_run", "head_sha"))
        if run is not None and head:
            yield number, run, head


def _is_own(item: Any, artifact: str) -> bool:
    here, there = (
        natural(value_at(item, "workflow_run", name))
        for name in ("repository_id", "head_repository_id")
    )
    return (
        isinstance(item, Mapping)
        and item.get("name") == artifact
        and item.get("expired") is False
        and here is not None
        and here == there
    )


def _is_push(api: GitHubApi, repository: str, branch: str, run: int, head: str) -> bool:
    """Return whether GitHub says that a push of this commit to the branch started the run."""
    found = api.get(f"/repos/{repository}/actions/runs/{run}")
    return (
        value_at(found, "event") == "push"
        and bool(branch)
        and value_at(found, "head_branch") == branch
        and commit_of(value_at(found, "head_sha")) == head
        and str(value_at(found, "head_repository", "full_name")).lower() == repository.lower()
    )


def _is_in_history(api: GitHubApi, repository: str, base: str, head: str) -> bool:
    found = api.get(f"/repos/{repository}/compare/{head}...{base}", per_page=1)
    return value_at(found, "status") in _IN_HISTORY
