"""What started this workflow run, and which pull request and commits it is about.

Everything is read from the runner's environment and the event's payload; both are given, nothing
here reads the process environment. The payload's texts are untrusted: only numbers, commits and
repository names leave this module, each after its form was checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairgate.domain.errors import UsageError
from fairgate.domain.wording import listed, quoted

READ_ONLY_EVENTS = frozenset({"pull_request", "pull_request_review", "pull_request_review_comment"})
"""Events that run on GitHub's merge of a pull request; the token can only read for forks."""
DEFAULT_BRANCH_EVENTS = frozenset(
    {
        "pull_request_target", "workflow_run", "issue_comment", "check_run", "check_suite",
        "status", "repository_dispatch",
    }
)  # fmt: skip
"""Events for which GitHub takes the workflow of the default branch."""
OWN_EVENTS = frozenset({"push", "schedule", "workflow_dispatch", "repository_dispatch", "release"})
"""Events of a commit that is judged by its own files, unless a pull request is named."""
MAX_EVENT_BYTES = 32 << 20

_QUEUE = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-([0-9]{1,10})-[0-9a-f]{40}")
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
_BRANCH = re.compile(r"[^\x00-\x20\x7f~^:?*\[\\]{1,255}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """Where this GitHub is: github.com, or a GitHub Enterprise server."""

    api: str = "https://api.github.com"
    graphql: str = "https://api.github.com/graphql"
    server: str = "https://github.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A workflow run's cause. Fields that the payload lacks are empty or None."""

    name: str
    repository: str
    number: int | None = None
    """Pull request."""
    head_sha: str = ""
    head_repository: str = ""
    head_owner: str = ""
    head_branch: str = ""
    base_sha: str = ""
    """Commit whose policy and baseline decide; empty where it is unknown, or there is none."""
    sha: str = ""
    """Commit that GitHub started the run on (GITHUB_SHA)."""
    base_branch: str = ""
    default_branch: str = ""
    merge_sha: str = ""
    """GitHub's own merge of the pull request's two ends; nobody else can have made it."""
    run_id: int = 0
    run_attempt: int = 0
    by_dependabot: bool = False
    is_of_pulls: bool = False
    """The payload lists pull requests, perhaps several with one head."""
    cause: str = ""
    """Of a `workflow_run`: the event of the workflow that ran before."""
    cause_run: int = 0
    """Of a `workflow_run`: the run that ran before."""
    cause_attempt: int = 1

    @property
    def is_privileged(self) -> bool:
        """Return whether the token may write although an untrusted user may have caused the run."""
        return self.name not in READ_ONLY_EVENTS

    @property
    def is_of_default_branch(self) -> bool:
        """Return whether the workflow that runs is the default branch's, whatever is gated."""
        return self.name in DEFAULT_BRANCH_EVENTS

    @property
    def own_commit(self) -> str:
        """Return the commit that is judged by its own files; empty where a base must decide."""
        if self.number is not None or self.is_of_pulls:
            return ""
        if self.name == "workflow_run":
            return self.head_sha if self.cause in OWN_EVENTS else ""
        return self.sha if self.name in OWN_EVENTS else ""

    @property
    def is_fork(self) -> bool:
        """Return whether the pull request's head lies in another repository."""
        return self.head_repository.lower() != self.repository.lower()

    @property
    def run(self) -> tuple[int, int]:
        """Return the workflow run and its attempt, which order runs in time."""
        return self.run_id, self.run_attempt


def read_roots(environment: Mapping[str, str]) -> Roots:
    """Return the addresses that the runner names, else those of github.com."""
    known = Roots()
    return Roots(
        api=(environment.get("GITHUB_API_URL") or known.api).rstrip("/"),
        graphql=environment.get("GITHUB_GRAPHQL_URL") or known.graphql,
        server=(environment.get("GITHUB_SERVER_URL") or known.server).rstrip("/"),
    )


def value_at(value: object, *keys: str) -> Any:
    """Return what lies at a path of keys, None where the path ends before."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def natural(value: object) -> int | None:
    """Return a number from 1 on, also where it is written as text; None for all else."""
    text = str(value)
    is_number = re.fullmatch(r"[0-9]{1,18}", text, re.ASCII)
    return int(text) if is_number and int(text) > 0 and not isinstance(value, bool) else None


def commit_of(value: object) -> str:
    """Return a commit's full name, nothing for all else."""
    return value if isinstance(value, str) and _SHA.fullmatch(value) else ""


def repository_of(value: object) -> str:
    """Return `owner/name`, nothing for all else."""
    return value if isinstance(value, str) and _REPOSITORY.fullmatch(value) else ""


def branch_of(value: object) -> str:
    """Return the name of a branch, nothing for all else."""
    return value if isinstance(value, str) and _BRANCH.fullmatch(value) else ""


def read_event(environment: Mapping[str, str], number: int | None = None) -> Event:
    """Return the event of this run; `number` names a pull request where the event has none.

    Raises UsageError where the environment is not a runner's, the payload is no event, or the event
    is not one of those that are known: what such a run is about could only be guessed.
    """
    name = environment.get("GITHUB_EVENT_NAME", "")
    repository = environment.get("GITHUB_REPOSITORY", "")
    if not name or not repository_of(repository):
        raise UsageError(
            "this does not run inside GitHub Actions: GITHUB_EVENT_NAME is "
            f"{quoted(name)}, GITHUB_REPOSITORY is {quoted(repository)}; use `fairgate run` instead"
        )
    reader = _READERS.get(name)
    if reader is None:
        raise UsageError(
            f"the event is {quoted(name)}, and it is not known which commit's policy would decide "
            f"under it; expected {listed(_READERS)}"
        )
    payload = _payload(environment.get("GITHUB_EVENT_PATH", ""))
    found = reader(payload)
    sha = commit_of(environment.get("GITHUB_SHA"))
    if name in READ_ONLY_EVENTS:
        found["merge_sha"] = sha
    elif name in OWN_EVENTS:
        found["head_repository"] = repository
    return Event(
        **{"number": number, **{key: value for key, value in found.items() if value}},
        sha=sha,
        default_branch=branch_of(value_at(payload, "repository", "default_branch")),
        name=name,
        repository=repository,
        run_id=natural(environment.get("GITHUB_RUN_ID")) or 0,
        run_attempt=natural(environment.get("GITHUB_RUN_ATTEMPT")) or 1,
        by_dependabot=environment.get("GITHUB_ACTOR") == "dependabot[bot]",
    )


def _payload(path: str) -> Mapping[str, Any]:
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_EVENT_BYTES + 1)
        payload = json.loads(raw) if len(raw) <= MAX_EVENT_BYTES else None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            f"the event's payload {quoted(path)} cannot be read ({type(error).__name__}); expected "
            "the JSON file that the runner names in GITHUB_EVENT_PATH"
        ) from error
    if not isinstance(payload, dict) or not payload:
        raise UsageError(
            f"the event's payload {quoted(path)} is empty; expected the JSON object of a webhook"
        )
    return payload


def _of_pull_request(payload: Mapping[str, Any]) -> dict[str, Any]:
    found = {"number": natural(value_at(payload, "pull_request", "number"))}
    if found["number"] is None:
        raise UsageError(
            "the event's payload names no pull request; expected `pull_request.number`"
        )
    return {**found, **pull_request_commits(value_at(payload, "pull_request"))}


def pull_request_commits(pull: object) -> dict[str, Any]:
    """Return the two ends of a pull request (of a payload or an API answer)."""
    return {
        "head_sha": commit_of(value_at(pull, "head", "sha")),
        # The repository of the head is null once its fork is deleted: then it is unknown.
        "head_repository": repository_of(value_at(pull, "head", "repo", "full_name")),
        "head_branch": branch_of(value_at(pull, "head", "ref")),
        "base_sha": commit_of(value_at(pull, "base", "sha")),
        "base_branch": branch_of(value_at(pull, "base", "ref")),
        "merge_sha": commit_of(value_at(pull, "merge_commit_sha")),
    }


def _of_merge_group(payload: Mapping[str, Any]) -> dict[str, Any]:
    group = value_at(payload, "merge_group")
    queue = _QUEUE.fullmatch(str(value_at(group, "head_ref")))
    return {
        "number": int(queue[1]) if queue else None,
        "head_sha": commit_of(value_at(group, "head_sha")),
        "head_repository": repository_of(value_at(payload, "repository", "full_name")),
        "base_sha": commit_of(value_at(group, "base_sha")),
        "base_branch": branch_of(value_at(group, "base_ref")).removeprefix("refs/heads/"),
    }


def _of_workflow_run(payload: Mapping[str, Any]) -> dict[str, Any]:
    run = value_at(payload, "workflow_run")
    return {
        **_sole_pull(run, payload),
        "head_sha": commit_of(value_at(run, "head_sha")),
        "head_repository": repository_of(value_at(run, "head_repository", "full_name")),
        "head_owner": branch_of(value_at(run, "head_repository", "owner", "login")),
        "head_branch": branch_of(value_at(run, "head_branch")),
        "cause": str(value_at(run, "event"))[:40],
        "cause_run": natural(value_at(run, "id")),
        "cause_attempt": natural(value_at(run, "run_attempt")),
    }


def _sole_pull(run: object, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pull request that a run lists, where it lists one of this repository.

    One head can be that of several pull requests with different bases, also in other repositories.
    """
    here = value_at(payload, "repository", "id")
    listed_pulls = value_at(run, "pull_requests")
    pulls = [
        pull
        for pull in (listed_pulls if isinstance(listed_pulls, list) else [])
        if value_at(pull, "base", "repo", "id") == here
    ]
    sole = pulls[0] if len(pulls) == 1 else None
    return {
        "number": natural(value_at(sole, "number")),
        "base_sha": commit_of(value_at(sole, "base", "sha")),
        "base_branch": branch_of(value_at(sole, "base", "ref")),
        "is_of_pulls": bool(pulls),
    }


def _of_issue_comment(payload: Mapping[str, Any]) -> dict[str, Any]:
    issue = value_at(payload, "issue")
    if not isinstance(value_at(issue, "pull_request"), dict):
        raise UsageError("the comment belongs to an issue, not to a pull request; nothing to gate")
    return {"number": natural(value_at(issue, "number"))}


def _of_checks(payload: Mapping[str, Any]) -> dict[str, Any]:
    check = value_at(payload, "check_run") or value_at(payload, "check_suite")
    return {"head_sha": commit_of(value_at(check, "head_sha"))}


def _of_status(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"head_sha": commit_of(value_at(payload, "sha"))}


def _of_deployment(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"head_sha": commit_of(value_at(payload, "deployment", "sha"))}


def _of_repository_dispatch(payload: Mapping[str, Any]) -> dict[str, Any]:
    # The sender wrote this; all but the number is asked of GitHub.
    pull = value_at(payload, "client_payload", "pull_request")
    return {"number": natural(value_at(pull, "number") or pull)}


def _of_own(_: Mapping[str, Any]) -> dict[str, Any]:
    return {}


_READERS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    **dict.fromkeys(("pull_request", "pull_request_target"), _of_pull_request),
    **dict.fromkeys(("pull_request_review", "pull_request_review_comment"), _of_pull_request),
    "merge_group": _of_merge_group,
    **dict.fromkeys(sorted(OWN_EVENTS), _of_own),
    "repository_dispatch": _of_repository_dispatch,
    "workflow_run": _of_workflow_run,
    "issue_comment": _of_issue_comment,
    **dict.fromkeys(("check_run", "check_suite"), _of_checks),
    "status": _of_status,
    **dict.fromkeys(("deployment", "deployment_status"), _of_deployment),
}
