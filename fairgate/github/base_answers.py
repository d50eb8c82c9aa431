"""Stored answers of the base branch's runs, on runners that keep nothing between jobs.

Only answers of runs that GitHub itself ties to the base branch are believed (`base_run_file`);
within them each is found by its content, as in any store. Whatever fails here costs time, never a
verdict: every question is asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairgate.domain.errors import ApiError, DataError, FairGateError
from fairgate.domain.wording import quoted
from fairgate.github.api import GitHubApi, member_of
from fairgate.github.event import Event, commit_of, natural, value_at
from fairgate.io.durable import write_bytes
from fairgate.systems.result_store import SqliteResultStore

STORE = "store.sqlite"
"""The store's file in a cache, and in the artifact."""
MOST_BYTES = 256 << 20
_LOOKED_AT = 10
"""Runs that are looked at, the newest first."""
_IN_HISTORY = {"ahead", "identical"}
"""What GitHub says of a base compared with a commit of its history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseAnswers:
    """What was had of earlier runs."""

    commit: str = ""
    """Of the run whose answers are used; empty where none are."""
    notice: str = ""
    """Why none are."""


def base_run_file(
    api: GitHubApi, repository: str, branch: str, base: str, artifact: str, member: str
) -> tuple[str, bytes] | None:
    """Return commit and content of the newest such file; None where no run of `branch` has any.

    An artifact that is damaged, too large or gone is passed over. Raises ApiError or DataError
    where every one is.

    `actions/cache` cannot tell who wrote an entry: a pull request's job writes into its own scope
    under any key, and later jobs of the pull request are given that entry before the base branch's.
    An artifact belongs to the run that made it, and GitHub says which commit and event that was. So
    what is believed is an artifact of a run that a push to the default branch of this repository
    started, and whose commit lies in the base's history. A push to another branch does not count,
    even if that branch was merged later: what its workflow did at that commit nobody reviewed.
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


def fetch_answers(
    event: Event, api: GitHubApi | None, artifact: str, cache: Path, ref: str
) -> BaseAnswers:
    """Put the answers of the newest run of the base branch into an empty cache.

    `ref` is what GitHub started the run on, which counts for runs of the default branch itself.
    """
    base = event.base_sha or (event.sha if is_default_branch(event, ref) else "")
    if api is None or not base:
        missing = "the step has no token" if api is None else "the event has no base commit"
        return BaseAnswers(notice=f"no stored answers are used: {missing}")
    if (cache / STORE).exists():
        return BaseAnswers(notice="the runner has stored answers of its own; no others are fetched")
    try:
        found = base_run_file(api, event.repository, event.default_branch, base, artifact, STORE)
        if found is None:
            return BaseAnswers(
                notice=f"no push run of the base branch has left an artifact {quoted(artifact)}: "
                "every question is asked"
            )
        commit, content = found
        cache.mkdir(parents=True, exist_ok=True)
        write_bytes(cache / STORE, content)
        with contextlib.closing(SqliteResultStore(cache / STORE)):
            pass  # what cannot be opened here would end the run later
    except (FairGateError, OSError) as error:
        (cache / STORE).unlink(missing_ok=True)
        return BaseAnswers(
            notice=f"the base branch's answers cannot be had, every question is asked: {error}"
        )
    return BaseAnswers(commit=commit)


def keep_answers(event: Event, cache: Path, folder: Path, ref: str) -> str:
    """Return the file that a run of the default branch leaves for later runs.

    Empty elsewhere, where nothing was asked, and where it cannot be written.
    """
    if event.name != "push" or not is_default_branch(event, ref) or not (cache / STORE).is_file():
        return ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(SqliteResultStore(cache / STORE)) as store:
            store.copy_to(folder / STORE)
    except (FairGateError, OSError):
        return ""
    return str(folder / STORE)


def is_default_branch(event: Event, ref: str) -> bool:
    """Return whether the run is of the default branch itself, pushed to this repository."""
    return bool(event.default_branch) and ref == f"refs/heads/{event.default_branch}"
