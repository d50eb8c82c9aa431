"""Stored answers of the default branch's runs: which are believed, fetched and kept.

`actions/cache` cannot tell who wrote an entry: a pull request's job writes into its own scope under
any key, and later jobs of the pull request are given that entry before the base branch's. An
artifact belongs to the run that made it, and GitHub says which commit, event and workflow that was.

Believed is an artifact of a run

- that a push to the default branch started (`github/pushed_runs.py`);
- whose commit lies on the first-parent line of the commit that decides. What a merge brought into
  the history beside it ran before anybody reviewed it;
- of the workflow file that runs now, which had the content that the deciding commit's has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from fairgate.domain.errors import ApiError, DataError, FairGateError
from fairgate.domain.wording import quoted
from fairgate.github.api import (
    GitHubApi,
    artifacts_of,
    commit_of,
    files_in,
    is_on_first_parent_line,
    natural,
    value_at,
)
from fairgate.github.base_commit import BaseCommit, Clone
from fairgate.github.event import Event, workflow_path
from fairgate.github.pushed_runs import PushedRuns
from fairgate.io.durable import write_bytes
from fairgate.systems.result_store import SqliteResultStore

STORE = "store.sqlite"
"""The store's file in a cache, and in the artifact."""
_MOST_STORED = 256 << 20
_LOOKED_AT = 10
"""Runs that are looked at, the newest first."""


class BaseRuns:
    """The runs of the gate's own workflow on the default branch, as far as a commit's line goes."""

    def __init__(
        self, api: GitHubApi, *, repository: str, branch: str, base: BaseCommit, workflow: str
    ) -> None:
        """Take the default branch, the commit that decides and the workflow's path."""
        self._api = api
        self._home = f"/repos/{repository}"
        self._repository, self._branch = repository, branch
        self._base, self._workflow = base, workflow

    def file(self, artifact: str, member: str) -> tuple[str, bytes] | None:
        """Return commit and content of the newest such file; None where no believed run has any.

        An artifact that is damaged, too large or gone is passed over. Raises ApiError, DataError or
        BaselineError where every one is, or GitHub does not answer.
        """
        failed: ApiError | DataError | None = None
        candidates = []
        for item in artifacts_of(self._api, f"{self._home}/actions", artifact):
            workflow_run, number = value_at(item, "workflow_run"), natural(item.get("id"))
            repository_id = natural(value_at(workflow_run, "repository_id"))
            head_id = natural(value_at(workflow_run, "head_repository_id"))
            is_own = repository_id is not None and repository_id == head_id
            if number is not None and item.get("expired") is False and is_own:
                candidates.append((number, workflow_run))
        for number, workflow_run in sorted(candidates, key=lambda row: -row[0])[:_LOOKED_AT]:
            run, head = (
                natural(value_at(workflow_run, "id")),
                commit_of(value_at(workflow_run, "head_sha")),
            )
            if run is None or not head or not self._is_believed(run, head):
                continue
            try:
                files = files_in(
                    self._api, self._repository, number, artifact, (member,), _MOST_STORED
                )
            except (ApiError, DataError) as error:
                failed = error
            else:
                return head, files[member]
        if failed is not None:
            raise failed
        return None

    def _is_believed(self, number: int, head: str) -> bool:
        run = self._api.get(f"{self._home}/actions/runs/{number}")
        repository, branch = self._repository, self._branch
        return (
            value_at(run, "id") == number
            and value_at(run, "head_sha") == head
            and is_on_first_parent_line(self._api, repository, head, self._base.commit)
            and PushedRuns.of(self._api, repository, branch, self._workflow).started(run)
            is not None
            and self._has_same_workflow(head)
        )

    def _has_same_workflow(self, head: str) -> bool:
        """Return whether a commit's workflow file has the content of the base's."""
        then = self._base.of(head).read_from_top(self._workflow)
        return then is not None and then == self._base.read_from_top(self._workflow)


class StoredAnswers:
    """The stored answers that a run takes from earlier runs and leaves for later ones."""

    def __init__(
        self, event: Event, *, artifact: str, cache: Path, environment: Mapping[str, str]
    ) -> None:
        """Take the event and the folder that results are stored in."""
        self._event = event
        self._artifact = artifact
        self._cache = cache
        self._workflow = workflow_path(event.repository, environment)
        ref = environment.get("GITHUB_REF", "")
        self._is_default_branch = bool(event.default_branch) and (
            ref == f"refs/heads/{event.default_branch}"
        )

    def fetch(self, api: GitHubApi | None, root: Path, workspace: Path) -> tuple[str, str]:
        """Put the answers of the newest believed run into an empty cache.

        Return the commit of that run, else nothing and why no stored answers are used. Whatever
        fails here costs time, never a verdict: every question is asked.
        """
        event, store = self._event, self._cache / STORE
        base = event.base_sha or (event.sha if self._is_default_branch else "")
        if api is None or not base:
            missing = "the step has no token" if api is None else "the event has no base commit"
            return "", f"no stored answers are used: {missing}"
        if store.exists():
            return "", "the runner has stored answers of its own; no others are fetched"
        try:
            commits = BaseCommit(Clone(root, workspace), base, api=api, repository=event.repository)
            runs = BaseRuns(
                api, repository=event.repository, branch=event.default_branch,
                base=commits, workflow=self._workflow,
            )  # fmt: skip
            file = runs.file(self._artifact, STORE)
            if file is None:
                return "", (
                    "no push run of this workflow, as the base branch has it, has left an "
                    f"artifact {quoted(self._artifact)}: every question is asked"
                )
            commit, content = file
            self._cache.mkdir(parents=True, exist_ok=True)
            write_bytes(store, content)
            with contextlib.closing(SqliteResultStore(store)):
                pass  # what cannot be opened here would end the run later
        except (FairGateError, OSError) as error:
            store.unlink(missing_ok=True)
            return "", (
                f"the base branch's answers cannot be had, every question is asked: {error}"
            )
        return commit, ""

    def keep(self, folder: Path) -> str:
        """Return the file that a run of the default branch leaves for later runs.

        Empty elsewhere, where nothing was asked, and where it cannot be written.
        """
        is_push = self._event.name == "push" and self._is_default_branch
        if not is_push or not (self._cache / STORE).is_file():
            return ""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(SqliteResultStore(self._cache / STORE)) as store:
                store.copy_to(folder / STORE)
        except (FairGateError, OSError):
            return ""
        return str(folder / STORE)
