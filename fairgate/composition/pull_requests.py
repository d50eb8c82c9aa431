"""From a workflow run's event to the pull request behind it: what may run, what base, what comment.

Nothing in here can change a verdict: where GitHub cannot be asked or refuses, a sentence says so.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from fairgate.adapters.github.api import GitHubApi
from fairgate.adapters.github.base_commit import BaseCommit, Clone, base_of
from fairgate.adapters.github.comments import Marker, Posted, StickyComment
from fairgate.adapters.github.event import Event, Roots, pull_request_commits
from fairgate.domain.errors import ApiError, BaselineError, UsageError

CommentMode = Literal["on-change", "always", "on-failure", "never"]
_BASED_EVENTS = frozenset(
    {"pull_request", "pull_request_target", "merge_group", "workflow_run", "issue_comment"}
)

_OWN_REF = frozenset({"pull_request", "merge_group"})
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
    """Return the event with what only the API knows of its pull request, as far as it answers."""
    if api is None or event.name not in {"workflow_run", "issue_comment"}:
        return event
    with contextlib.suppress(ApiError):
        if event.name == "issue_comment" and event.number:
            pull = api.get(f"/repos/{event.repository}/pulls/{event.number}")
            return replace(event, **pull_request_commits(pull))
        if event.number is None and event.head_owner and event.head_branch:
            return _looked_up(event, api)
    return event


def _looked_up(event: Event, api: GitHubApi) -> Event:
    """Find the pull request of a workflow run, which the payload leaves out for forks."""
    head = f"{event.head_owner}:{event.head_branch}"
    for pull in api.pages(f"/repos/{event.repository}/pulls", state="open", head=head):
        commits = pull_request_commits(pull)
        number = pull.get("number") if isinstance(pull, dict) else None
        if commits["head_sha"] == event.head_sha and isinstance(number, int):
            return replace(event, number=number, base_sha=commits["base_sha"])
    return event


def refuse_strangers(event: Event) -> None:
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


def base_commit(event: Event, root: Path, api: GitHubApi | None) -> BaseCommit | None:
    """Return the commit that decides; None where the checked-out commit decides for itself."""
    if event.name not in _BASED_EVENTS:
        return None
    clone = Clone(root)
    if event.name == "merge_group":
        commit = event.base_sha
    else:
        commit = base_of(clone, head_sha=event.head_sha, named=event.base_sha)
    if not commit and event.number is None:
        return None  # a workflow run of a push: no pull request, no base
    if not commit:
        raise UsageError(
            f"the event {event.name} names no base commit and GitHub could not be asked; give the "
            "step a token, or run under `pull_request`"
        )
    clone.prefix()  # where there is no checkout, or a submodule's, it says so itself
    _require_checkout(clone, event)
    return BaseCommit(clone, commit, api=api, repository=event.repository)


def _require_checkout(clone: Clone, event: Event) -> None:
    """Raise UsageError where the verdict would be about another commit than the event's."""
    head, wanted = clone.head(), event.head_sha
    parents = clone.parents("HEAD")
    if not wanted or head == wanted or (len(parents) > 1 and wanted in parents):
        return
    raise UsageError(
        f"commit {head[:12] or 'none'} is checked out, but the event `{event.name}` is about "
        f"{wanted[:12]}, and a verdict on the one would be shown for the other; check out that "
        "commit or its merge: `actions/checkout` with "
        + ("no `ref`" if event.name in _OWN_REF else f"`ref: {wanted}`, or where it comes from")
    )


def place_in_repository(root: Path, workspace: Path) -> str:
    """Return where the gate's root lies in its repository: nothing, or `services/shop/`."""
    try:
        return Clone(root).prefix()
    except BaselineError:  # no checkout; a verdict that needs one says so itself
        inner = root.resolve().relative_to(workspace.resolve()).as_posix()
        return "" if inner == "." else f"{inner}/"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentPlan:
    """Whether and where there is to be a comment."""

    mode: CommentMode
    key: str
    report_url: str


class Told(Protocol):
    """What a comment says of a run."""

    @property
    def exit_code(self) -> int:
        """Return how the gate ended."""
        ...

    @property
    def needs_attention(self) -> bool:
        """Return whether a reviewer should hear of it even if there is no comment yet."""
        ...

    def comment(self, report_url: str) -> str:
        """Return the comment without its marker."""
        ...


def comment(
    report: Told, event: Event, plan: CommentPlan, api: GitHubApi | None, roots: Roots
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
