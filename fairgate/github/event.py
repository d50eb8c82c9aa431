"""What started this workflow run: its pull request, what of it may run, which base commit decides.

Everything is read from the runner's environment, the event's payload and GitHub's API; nothing here
reads the process environment. The payload's texts are untrusted: only numbers, commits and names of
repositories and branches leave this module, each after its form was checked.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairgate.domain.errors import ApiError, UsageError
from fairgate.domain.wording import listed, quoted
from fairgate.github.api import (
    GitHubApi,
    branch_of,
    commit_of,
    is_on_first_parent_line,
    natural,
    repository_of,
    value_at,
)
from fairgate.github.base_commit import BaseCommit, Clone
from fairgate.io.regular import opened

READ_ONLY_EVENTS = frozenset({"pull_request", "pull_request_review", "pull_request_review_comment"})
"""Events that run on GitHub's merge of a pull request; the token can only read for forks."""
PULL_REQUEST_EVENTS = READ_ONLY_EVENTS | {"pull_request_target"}
"""Events whose runs GitHub ties to the branch of a pull request."""
DEFAULT_BRANCH_EVENTS = frozenset(
    {"pull_request_target", "workflow_run", "issue_comment", "repository_dispatch"}
)
"""Events for which GitHub takes the workflow of the default branch."""
OWN_EVENTS = frozenset({"push", "schedule", "workflow_dispatch", "repository_dispatch", "release"})
"""Events of a commit that is judged by its own files where it is on the default branch."""
_OWN_REF = frozenset({"merge_group", *READ_ONLY_EVENTS})
"""Events whose default checkout is the change itself."""
MAX_EVENT_BYTES = 32 << 20

_QUEUE = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-([0-9]{1,10})-[0-9a-f]{40}")


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
    ref: str = ""
    """What GitHub started the run on: `refs/heads/main`, `refs/tags/v1`."""
    base_branch: str = ""
    default_branch: str = ""
    is_merged: bool = False
    """GitHub has said that the default branch has the commit on its first-parent line."""
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
    def is_on_default_branch(self) -> bool:
        """Return whether the run was started on the default branch, and no tag of its name."""
        return bool(self.default_branch) and self.ref == f"refs/heads/{self.default_branch}"

    @property
    def decides_itself(self) -> bool:
        """Return whether no base is left to decide on the event's own commit.

        Its check stands at the commit, and so at the head of every pull request that has it.
        """
        is_own = self.name in OWN_EVENTS and self.is_on_default_branch
        return bool(self.own_commit) and (is_own or self.is_merged)

    @property
    def own_commit(self) -> str:
        """Return the commit of an event that names no change; empty where a base must decide."""
        if self.number is not None or self.is_of_pulls or self.base_sha:
            return ""
        if self.name == "workflow_run":
            return self.head_sha if self.cause in OWN_EVENTS else ""
        return self.sha if self.name in OWN_EVENTS else ""

    @property
    def is_fork(self) -> bool:
        """Return whether the pull request's head lies in another repository."""
        return self.head_repository.lower() != self.repository.lower()


def read_roots(environment: Mapping[str, str]) -> Roots:
    """Return the addresses that the runner names, else those of github.com."""
    default = Roots()
    return Roots(
        api=(environment.get("GITHUB_API_URL") or default.api).rstrip("/"),
        graphql=environment.get("GITHUB_GRAPHQL_URL") or default.graphql,
        server=(environment.get("GITHUB_SERVER_URL") or default.server).rstrip("/"),
    )


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
    path = environment.get("GITHUB_EVENT_PATH", "")
    try:
        with opened(path) as file:
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
    fields = reader(payload)
    sha = commit_of(environment.get("GITHUB_SHA"))
    if name in READ_ONLY_EVENTS:
        fields["merge_sha"] = sha
    elif name in OWN_EVENTS:
        fields["head_repository"] = repository
    return Event(
        **{"number": number, **{key: value for key, value in fields.items() if value}},
        sha=sha,
        ref=environment.get("GITHUB_REF") or branch_of(value_at(payload, "ref")),
        default_branch=branch_of(value_at(payload, "repository", "default_branch")),
        name=name,
        repository=repository,
        run_id=natural(environment.get("GITHUB_RUN_ID")) or 0,
        run_attempt=natural(environment.get("GITHUB_RUN_ATTEMPT")) or 1,
        by_dependabot=environment.get("GITHUB_ACTOR") == "dependabot[bot]",
    )


def workflow_path(repository: str, environment: Mapping[str, str]) -> str:
    """Return the path of the workflow that started the run, also inside a reusable one.

    Empty where the runner names none of this repository.
    """
    prefix = f"{repository}/"
    path = environment.get("GITHUB_WORKFLOW_REF", "").split("@", 1)[0]
    is_of_repository = path.lower().startswith(prefix.lower()) and ".." not in path
    return path[len(prefix) :] if is_of_repository else ""


def _of_pull_request(payload: Mapping[str, Any]) -> dict[str, Any]:
    pull = value_at(payload, "pull_request")
    number = natural(value_at(pull, "number"))
    if number is None:
        raise UsageError(
            "the event's payload names no pull request; expected `pull_request.number`"
        )
    return {"number": number, **pull_request_commits(pull)}


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
    run, repository_id = value_at(payload, "workflow_run"), value_at(payload, "repository", "id")
    listed_pulls = value_at(run, "pull_requests")
    pulls = [
        pull
        for pull in (listed_pulls if isinstance(listed_pulls, list) else [])
        if value_at(pull, "base", "repo", "id") == repository_id
    ]
    # One head can be that of several pull requests with different bases, also in other
    # repositories: the one of this repository counts, where the run lists just one.
    sole = pulls[0] if len(pulls) == 1 else None
    return {
        "number": natural(value_at(sole, "number")),
        "base_sha": commit_of(value_at(sole, "base", "sha")),
        "base_branch": branch_of(value_at(sole, "base", "ref")),
        "is_of_pulls": bool(pulls),
        "head_sha": commit_of(value_at(run, "head_sha")),
        "head_repository": repository_of(value_at(run, "head_repository", "full_name")),
        "head_owner": branch_of(value_at(run, "head_repository", "owner", "login")),
        "head_branch": branch_of(value_at(run, "head_branch")),
        "cause": str(value_at(run, "event"))[:40],
        "cause_run": natural(value_at(run, "id")),
        "cause_attempt": natural(value_at(run, "run_attempt")),
    }


def _of_issue_comment(payload: Mapping[str, Any]) -> dict[str, Any]:
    issue = value_at(payload, "issue")
    if not isinstance(value_at(issue, "pull_request"), dict):
        raise UsageError("the comment belongs to an issue, not to a pull request; nothing to gate")
    return {"number": natural(value_at(issue, "number"))}


def _of_repository_dispatch(payload: Mapping[str, Any]) -> dict[str, Any]:
    # The sender wrote this; all but the number is asked of GitHub.
    pull = value_at(payload, "client_payload", "pull_request")
    return {"number": natural(value_at(pull, "number") or pull)}


_READERS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    **dict.fromkeys(("pull_request", "pull_request_target"), _of_pull_request),
    **dict.fromkeys(("pull_request_review", "pull_request_review_comment"), _of_pull_request),
    "merge_group": _of_merge_group,
    **dict.fromkeys(sorted(OWN_EVENTS), lambda _: {}),
    "repository_dispatch": _of_repository_dispatch,
    "workflow_run": _of_workflow_run,
    "issue_comment": _of_issue_comment,
}


def github_api(roots: Roots, token: str) -> GitHubApi | None:
    """Return a client; None without a token or for an address that no token may be sent to."""
    with contextlib.suppress(ApiError):
        return GitHubApi(roots.api, token) if token else None
    return None


def resolved(event: Event, api: GitHubApi | None) -> Event:
    """Return the event with the data of its pull request that only the API has, if it answers.

    Of a commit that no open pull request has, the default branch decides, unless it is on the
    first-parent line of that. Raises UsageError where the commit is that of several pull requests,
    surely of none, or where the verdict on one pull request would stand at the head of another.
    """
    is_complete = event.name in _OWN_REF or event.name == "pull_request_target"
    if api is None or is_complete or event.decides_itself:
        return event
    with contextlib.suppress(ApiError):
        if event.number is not None:
            pull = api.get(f"/repos/{event.repository}/pulls/{event.number}")
            return _at_its_head(_completed(event, pull))
        pulls = pulls_of(event, api)
        if len({pull["base"]["ref"] for pull in pulls}) > 1:
            numbers = listed(str(pull["number"]) for pull in pulls)
            raise UsageError(
                f"commit {_commit_of(event)[:12]} is the head of the pull requests {numbers} with "
                "different bases; name one by `pr-number`, or run under `pull_request`"
            )
        if pulls:
            return _completed(replace(event, number=pulls[0]["number"]), pulls[0])
        if event.own_commit:
            return _of_default_branch(event, api)
        if event.head_sha:
            raise UsageError(
                f"no open pull request has the commit {event.head_sha[:12]} of this "
                f"`{event.name}` as its head, so no base decides; run the gate under "
                "`pull_request` or `push`"
            )
    return event


def _of_default_branch(event: Event, api: GitHubApi) -> Event:
    """Return the event of a commit that no open pull request has. Raises ApiError.

    A pull request may be opened for it later, and the check stands there already: so it is judged
    as a change of the default branch.
    """
    repository, commit = f"/repos/{event.repository}", event.own_commit
    branch = event.default_branch or branch_of(value_at(api.get(repository), "default_branch"))
    tip = commit_of(value_at(api.get(f"{repository}/git/ref/heads/{branch}"), "object", "sha"))
    if not branch or not tip:
        raise ApiError("GitHub does not say what the default branch is")
    if is_on_first_parent_line(api, event.repository, commit, tip):
        return replace(event, default_branch=branch, is_merged=True)
    on_branch = replace(event, default_branch=branch, base_branch=branch)
    return replace(on_branch, head_sha=commit, base_sha=tip)


def _at_its_head(event: Event) -> Event:
    """Return the event. Raises UsageError where its check would stand at another head."""
    is_known = event.name not in OWN_EVENTS or event.is_on_default_branch
    if is_known or event.sha == event.head_sha:
        return event
    raise UsageError(
        f"this run was started on commit {event.sha[:12] or 'unknown'}, where its check appears, "
        f"and `pr-number` names pull request {event.number} with the head {event.head_sha[:12]}; "
        "start it on that, or on the default branch"
    )


def _completed(event: Event, pull: object) -> Event:
    """Return the event with its pull request's ends, unless the event is about an older head."""
    commits = pull_request_commits(pull)
    is_its_head = event.head_sha in {"", commits["head_sha"]}
    return replace(event, **commits) if is_its_head else event


def pulls_of(event: Event, api: GitHubApi) -> list[dict[str, Any]]:
    """Return the open pull requests whose head is the commit that the event is about.

    Of a pull request's workflow run the branch is known, by which a fork's are found; the payload
    leaves them out.
    """
    repository, sha = f"/repos/{event.repository}", _commit_of(event)
    if not sha:
        return []
    if event.name == "workflow_run" and not event.own_commit:
        head = f"{event.head_owner}:{event.head_branch}"
        is_known = event.head_owner and event.head_branch
        pulls = api.pages(f"{repository}/pulls", state="open", head=head) if is_known else []
    else:
        pulls = api.pages(f"{repository}/commits/{sha}/pulls")
    return [
        pull
        for pull in pulls
        if isinstance(value_at(pull, "number"), int)
        and value_at(pull, "state") == "open"
        and isinstance(value_at(pull, "base", "ref"), str)
        and pull_request_commits(pull)["head_sha"] == sha
    ]


def _commit_of(event: Event) -> str:
    return event.own_commit or event.head_sha


def refuse_untrusted(event: Event) -> None:
    """Raise UsageError where a fork's files would run with a token that can write.

    Policies, models and corpora are a program's input, and a checkout may hold more than those:
    with a writing token none of it is touched.
    """
    if event.name not in READ_ONLY_EVENTS and event.is_fork:
        whose = event.head_repository or "a repository that the event does not name"
        raise UsageError(
            f"refusing to run: `{event.name}` gives the token rights that must not meet the files "
            f"of {whose}; run the gate under `pull_request`, where a fork's token can only read"
        )


def base_commit(
    event: Event, root: Path, workspace: Path, api: GitHubApi | None
) -> BaseCommit | None:
    """Return the commit that decides; None where the checked-out commit decides for itself.

    Raises UsageError where what is checked out is not what the event is about, or no base is known.
    """
    clone = Clone(root, workspace)
    _ = clone.prefix  # where there is no checkout, or a submodule's, it says so itself
    head = clone.head()
    if event.own_commit:
        if head != event.own_commit:
            raise _another_commit(event, head, event.own_commit)
        if not event.decides_itself:
            raise UsageError(
                f"this `{event.name}` is not known to be on the default branch, and GitHub could "
                f"not be asked which pull requests have the commit {head[:12]}, so it is unknown "
                "which base decides; give the step a token, run under `pull_request`, or only on "
                "the default branch (`branches:`)"
            )
        return None
    commit = event.base_sha
    if event.head_sha and head != event.head_sha:
        # Anybody can make a merge commit, with any parents: only GitHub's own has the base's.
        parents = clone.parents(head) if head and head == event.merge_sha else []
        if len(parents) != 2 or parents[1] != event.head_sha:
            raise _another_commit(event, head, event.head_sha)
        commit = parents[0]
    if not commit or not event.head_sha:
        raise UsageError(
            f"no base commit is known under the event `{event.name}`, and GitHub could not be "
            "asked for the pull request's; give the step a token and its `pr-number`, or run under "
            "`pull_request`"
        )
    return BaseCommit(clone, commit, api=api, repository=event.repository)


def identity(event: Event, base: BaseCommit | None) -> dict[str, str]:
    """Return the facts that tell a workflow run, and the change that it judges, from all others."""
    return {
        "repository": event.repository,
        "workflow run": str(event.run_id),
        "head commit": event.head_sha or event.own_commit,
        "base commit": base.commit if base else "",
    }


def other_base(event: Event) -> tuple[str, str] | None:
    """Return the base's branch and the default one where a change is not against that."""
    if event.own_commit or (event.base_branch and event.base_branch == event.default_branch):
        return None
    return event.base_branch or "unknown", event.default_branch or "unknown"


def objection_to_introduce(event: Event) -> str:
    """Return why a change may not introduce the gate; empty where it may.

    The author chooses the base: any old branch lacks the policy, and a green check stays with the
    commit when the pull request is moved to another base afterwards.
    """
    branches = other_base(event)
    if branches is None:
        return ""
    base, default = branches
    return (
        f"its base is the branch {quoted(base)}, not the default branch {quoted(default)}; bring "
        "the policy to that base first, or let the workflow run for pull requests to branches "
        "that have it (`branches:`)"
    )


def _another_commit(event: Event, head: str, wanted: str) -> UsageError:
    """Return the refusal of a verdict that would be about another commit than the event's."""
    return UsageError(
        f"commit {head[:12] or 'none'} is checked out, but the event `{event.name}` is about "
        f"{wanted[:12]}, and a verdict on the one would be shown for the other: use "
        f"`actions/checkout` with `ref: {wanted}`, under `pull_request` with no `ref`"
    )
