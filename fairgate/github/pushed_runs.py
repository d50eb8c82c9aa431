"""Runs of the gate's workflow that a push to the default branch started: no others are believed.

A pull request's author decides what runs for it, and whoever may push a tag what runs for a tag
called `main`, which GitHub calls a run of `main`, too: so the branch's own activity must say that
it was moved to the run's commit, and before the run. All times are GitHub's, never a commit's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fairgate.github.api import GitHubApi, commit_of, rows_of, value_at

_MOVES = 100
"""Newest moves of the branch that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedRuns:
    """Tells runs for pushes to a branch from all others."""

    repository: str
    branch: str
    workflow: str
    """Path of its file, from the repository's root."""
    moved: Mapping[str, dt.datetime]
    """When the branch was first moved to each commit."""

    @classmethod
    def of(cls, api: GitHubApi, repository: str, branch: str, workflow: str) -> PushedRuns:
        """Read where a branch, and no tag of its name, was moved to. Raises ApiError."""
        ref, moved = f"refs/heads/{branch}", dict[str, dt.datetime]()
        for move in rows_of(api.get(f"/repos/{repository}/activity", ref=ref, per_page=_MOVES)):
            head, moved_at = commit_of(move.get("after")), _time(move.get("timestamp"))
            if move.get("ref") == ref and head and moved_at is not None:
                moved[head] = min(moved_at, moved.get(head, moved_at))
        return cls(repository=repository, branch=branch, workflow=workflow, moved=moved)

    def started(self, run: object) -> dt.datetime | None:
        """Return when a push to the branch started a run; None for every other run."""
        created_at = _time(value_at(run, "created_at"))
        moved = self.moved.get(commit_of(value_at(run, "head_sha")))
        is_own = (
            bool(self.branch and self.workflow)
            and value_at(run, "event") == "push"
            and value_at(run, "head_branch") == self.branch
            and str(value_at(run, "head_repository", "full_name")).lower()
            == self.repository.lower()
            and str(value_at(run, "path")).partition("@")[0] == self.workflow
        )
        return created_at if is_own and created_at and moved and moved <= created_at else None

    def covers(self, runs: Iterable[object]) -> bool:
        """Return whether the moves that GitHub lists go back to the oldest of some runs."""
        oldest = min(self.moved.values(), default=None)
        return all(
            oldest and oldest <= (_time(value_at(run, "created_at")) or oldest) for run in runs
        )


def _time(value: object) -> dt.datetime | None:
    try:
        return dt.datetime.strptime(str(value), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=dt.UTC)
    except ValueError:
        return None
