"""From a workflow run's event to the pull request behind it: what may run, what base, what comment.

Nothing in here can change a verdict: where GitHub cannot be asked or refuses, a sentence says so.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from fairgate.domain.errors import ApiError, BaselineError, UsageError
from fairgate.domain.wording import listed, quoted
from fairgate.github.api import GitHubApi
from fairgate.github.base_commit import BaseCommit, Clone
from fairgate.github.comments import Marker, Posted, StickyComment
from fairgate.github.event import READ_ONLY_EVENTS, Event, Roots, pull_request_commits

CommentMode = Literal["on-change", "always", "on-failure", "never"]
_OWN_REF = frozenset({"merge_group", *READ_ONLY_EVENTS})
"""Events whose default checkout is the change itself."""


def github_api(roots: Roots, token: str) -> GitHubApi | None:
    """Return a client; None without a token or for an address that no token may be sent to."""
    if not token:
        return None
    try:
        return GitHubApi(roots.api, token)
    except ApiError:
        return None


def resolved(event: Event, api: GitHubApi | None) -> Event:
    """Return the event with the data of its pull request that only the API has, if it answers.

    Raises UsageError where the commit is that of several pull requests, or surely of none.
    """
    is_complete = event.name in _OWN_REF or event.name == "pull_request_target"
    if api is None or is_complete:
        return event
    with contextlib.suppress(ApiError):
        if event.number is not None:
            return _completed(event, api.get(f"/repos/{event.repository}/pulls/{event.number}"))
        pulls = pulls_of(event, api)
        if len({pull["base"]["ref"] for pull in pulls}) > 1:
            numbers = listed(str(pull["number"]) for pull in pulls)
            raise UsageError(
                f"commit {event.head_sha[:12]} is the head of the pull requests {numbers} with "
                "different bases; name one by `pr-number`, or run under `pull_request`"
            )
        if pulls:
            return _completed(replace(event, number=pulls[0]["number"]), pulls[0])
        if not event.own_commit and event.head_sha:
            raise UsageError(
                f"no open pull request has the commit {event.head_sha[:12]} of this "
                f"`{event.name}` as its head, so no base decides; run the gate under "
                "`pull_request` or `push`"
            )
    return event


def _completed(event: Event, pull: object) -> Event:
    """Return the event with its pull request's ends, unless the event is about an older head."""
    commits = pull_request_commits(pull)
    is_its_head = event.head_sha in {"", commits["head_sha"]}
    return replace(event, **commits) if is_its_head else event


def pulls_of(event: Event, api: GitHubApi) -> list[dict[str, Any]]:
    """Return the open pull requests whose head is the commit that the event is about.

    Of a workflow run the branch is known, by which a fork's are found; the payload leaves them out.
    """
    repository, sha = f"/repos/{event.repository}", event.head_sha
    if not sha:
        return []
    if event.name == "workflow_run":
        head = f"{event.head_owner}:{event.head_branch}"
        is_known = event.head_owner and event.head_branch
        found = api.pages(f"{repository}/pulls", state="open", head=head) if is_known else []
    else:
        found = api.pages(f"{repository}/commits/{sha}/pulls")
    return [pull for pull in found if _is_open_with(pull, sha)]


def _is_open_with(pull: object, head: str) -> bool:
    """Return whether an answer of the API is an open pull request with that head."""
    match pull:
        case {"number": int(), "state": "open", "base": {"ref": str()}}:
            return bool(pull_request_commits(pull)["head_sha"] == head)
        case _:
            return False


def refuse_untrusted(event: Event) -> None:
    """Raise UsageError where a fork's files would run with a token that can write.

    Policies, models and corpora are a program's input, and a checkout may hold more than those:
    with a writing token none of it is touched.
    """
    if event.is_privileged and event.is_fork:
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
    clone.prefix()  # where there is no checkout, or a submodule's, it says so itself
    head = clone.head()
    if event.own_commit:
        if head != event.own_commit:
            raise _another_commit(event, head, event.own_commit)
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
    """Return what tells a workflow run, and the change that it judges, from all others."""
    return {
        "repository": event.repository,
        "workflow run": str(event.run_id),
        "head commit": event.head_sha or event.own_commit,
        "base commit": base.commit if base else "",
    }


def objection_to_introduce(event: Event) -> str:
    """Return why a change may not introduce the gate; empty where it may.

    The author chooses the base: any old branch lacks the policy, and a green check stays with the
    commit when the pull request is moved to another base afterwards.
    """
    if event.base_branch and event.base_branch == event.default_branch:
        return ""
    return (
        f"its base is the branch {quoted(event.base_branch or 'unknown')}, not the default branch "
        f"{quoted(event.default_branch or 'unknown')}; bring the policy to that base first, or let "
        "the workflow run for pull requests to branches that have it (`branches:`)"
    )


def _another_commit(event: Event, head: str, wanted: str) -> UsageError:
    """Return the refusal of a verdict that would be about another commit than the event's."""
    if event.own_commit:
        advice = "the commit of the run, or name the pull request by `pr-number`"
    elif event.name in _OWN_REF:
        advice = "that commit or its merge: `actions/checkout` with no `ref`"
    else:
        advice = f"that commit: `actions/checkout` with `ref: {wanted}`, or where it comes from"
    return UsageError(
        f"commit {head[:12] or 'none'} is checked out, but the event `{event.name}` is about "
        f"{wanted[:12]}, and a verdict on the one would be shown for the other; check out {advice}"
    )


def place_in_repository(root: Path, workspace: Path) -> str:
    """Return where the gate's root lies in its repository: nothing, or `services/shop/`."""
    try:
        return Clone(root, workspace).prefix()
    except BaselineError:  # no checkout; a verdict that needs one says so itself
        inner = root.resolve().relative_to(workspace.resolve()).as_posix()
        return "" if inner == "." else f"{inner}/"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentPlan:
    """Whether and where there is to be a comment."""

    mode: CommentMode
    key: str
    report_url: str


class Reportable(Protocol):
    """The content of a comment on a run."""

    @property
    def exit_code(self) -> int:
        """Return how the gate ended."""
        ...

    @property
    def needs_attention(self) -> bool:
        """Return whether a reviewer should be informed even if there is no comment yet."""
        ...

    def comment(self, report_url: str) -> str:
        """Return the comment without its marker."""
        ...


def comment(
    report: Reportable, event: Event, plan: CommentPlan, api: GitHubApi | None, roots: Roots
) -> tuple[Posted | None, str]:
    """Put the report on the pull request; return what became of it and a warning, or none."""
    reason = no_comment(event, plan)
    if reason is not None:
        return None, reason
    if api is None:
        return None, "there is no comment: the step has no `github-token`"
    sticky = StickyComment(
        api, repository=event.repository, number=event.number or 0, graphql=roots.graphql
    )
    wanted = plan.mode == "always" or (
        report.exit_code != 0 if plan.mode == "on-failure" else report.needs_attention
    )
    marker = Marker(key=plan.key, head=event.head_sha, run=event.run)
    try:
        return sticky.put(marker, report.comment(plan.report_url), create=wanted), ""
    except ApiError as error:
        hint = ""
        if error.status == 403:
            hint = "; the job needs `permissions: pull-requests: write`"
        return None, f"the comment could not be written, the verdict stands: {error}{hint}"


def no_comment(event: Event, plan: CommentPlan) -> str | None:
    """Return why there is no comment (empty: nothing to warn of); None where there may be one."""
    if plan.mode == "never" or event.number is None or event.name == "merge_group":
        return ""
    if event.is_fork:
        return "there is no comment: a fork's token can only read; the report is in this summary"
    if event.by_dependabot:
        return "there is no comment: Dependabot's token can only read; see this summary"
    return None
