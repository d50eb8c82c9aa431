"""From a workflow run's event to the pull request behind it: what may run, what base, what comment.

Nothing in here can change a verdict: where GitHub cannot be asked or refuses, a sentence says so.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from fairgate.domain.errors import ApiError, BaselineError, UsageError
from fairgate.domain.wording import listed, quoted
from fairgate.github.api import GitHubApi
from fairgate.github.base_commit import BaseCommit, Clone
from fairgate.github.event import READ_ONLY_EVENTS, Event, Roots, pull_request_commits

CommentMode = Literal["on-change", "always", "on-failure", "never"]
_OWN_REF = frozenset({"merge_group", *READ_ONLY_EVENTS})
"""Events whose default checkout is the change itself."""
GONE = frozenset({404, 410})
_SERVER_ERROR = 500
_ROUNDS = 4
_BOT = "github-actions[bot]"
_MARKER = re.compile(
    r'<!-- fairgate:report:v1 key="([^"<>]*)" head="([0-9a-f]*)" '
    r'run="([0-9]{1,18})\.([0-9]{1,18})" -->'
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """The hidden first line of a comment."""

    key: str
    head: str
    run: tuple[int, int]

    def __str__(self) -> str:
        """Return the HTML comment that GitHub does not show."""
        key = re.sub(r"[^A-Za-z0-9._/-]", "_", self.key).replace("--", "-_")
        run, attempt = self.run
        return f'<!-- fairgate:report:v1 key="{key}" head="{self.head}" run="{run}.{attempt}" -->'


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """What happened to the comment."""

    url: str
    action: str
    """`created`, `updated`, `unchanged`, `newer run has reported` or `not wanted`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    id: int
    url: str
    body: str
    run: tuple[int, int]


class StickyComment:
    """The comment of one policy on one pull request.

    It is found again and updated, never doubled. The first line of the comment is a marker that
    names the policy and the run. A comment counts as ours only if its author is the account we
    write as, so a copied marker has no effect.
    """

    def __init__(self, api: GitHubApi, *, repository: str, number: int, graphql: str) -> None:
        """Take the pull request; nothing is asked yet."""
        self._api = api
        self._issue = f"/repos/{repository}/issues/{number}/comments"
        self._comments = f"/repos/{repository}/issues/comments"
        self._graphql = graphql
        self._author: str | None = None

    def put(self, marker: Marker, text: str, *, create: bool) -> Posted:
        """Set the comment's text; where there is none yet, only if `create`.

        Raises ApiError. Of two runs that race the newer one's text stays, once.
        """
        body = f"{marker}\n{text}"
        own, failed = 0, None
        for _ in range(_ROUNDS):
            found = self._mine(marker)
            if not found:
                if not create:
                    return Posted(url="", action="not wanted")
                own, failed = self._create(body)
                continue  # look again: another run may have created one at the same time
            oldest = found[0]
            if max(comment.run for comment in found) > marker.run:
                self._delete([comment for comment in found[1:] if comment.id == own])
                return Posted(url=oldest.url, action="newer run has reported")
            changed = oldest.body != body
            if changed and not self._update(oldest.id, body):
                continue  # deleted in between
            self._delete(found[1:])
            action = "created" if own == oldest.id else "updated" if changed else "unchanged"
            return Posted(url=oldest.url, action=action)
        raise failed or ApiError(
            "the comment was modified concurrently several times; another job writes it"
        )

    def _mine(self, marker: Marker) -> list[_Found]:
        """Return our comments of this policy, oldest first."""
        prefix = str(marker).split(" head=", 1)[0] + " "
        found = []
        for comment in self._api.pages(self._issue):
            body = comment.get("body") if isinstance(comment, dict) else None
            if not isinstance(body, str) or not body.startswith(prefix) or not self._is_us(comment):
                continue
            stored = _MARKER.match(body)
            run = (int(stored[3]), int(stored[4])) if stored else (0, 0)
            found.append(
                _Found(
                    id=_id_of(comment),
                    url=_url_of(comment),
                    body=body.replace("\r\n", "\n"),
                    run=run,
                )
            )
        return sorted(found, key=lambda comment: comment.id)

    def _is_us(self, comment: dict[str, Any]) -> bool:
        if self._author is None:
            self._author = self._who_we_are()
        user = comment.get("user")
        return isinstance(user, dict) and user.get("login") == self._author

    def _who_we_are(self) -> str:
        # A workflow's own token may not ask REST who it is, but GraphQL answers.
        try:
            answer = self._api.query(self._graphql, "query { viewer { login } }")
            login = answer["data"]["viewer"]["login"]
        except (ApiError, LookupError, TypeError):
            return _BOT
        return login if isinstance(login, str) else _BOT

    def _create(self, body: str) -> tuple[int, ApiError | None]:
        """Return the new comment's number; 0 and the error where it is unknown if there is one."""
        try:
            answer = self._api.send("POST", self._issue, {"body": body})
        except ApiError as error:
            if error.status < _SERVER_ERROR and error.status != 0:
                raise
            return 0, error  # it may be there all the same: the next round looks
        return _id_of(answer), None

    def _update(self, comment: int, body: str) -> bool:
        try:
            self._api.send("PATCH", f"{self._comments}/{comment}", {"body": body})
        except ApiError as error:
            if error.status in GONE:
                return False
            raise
        return True

    def _delete(self, comments: list[_Found]) -> None:
        for comment in comments:
            try:
                self._api.send("DELETE", f"{self._comments}/{comment.id}")
            except ApiError as error:
                if error.status not in GONE:
                    raise


def _id_of(comment: object) -> int:
    found = comment.get("id") if isinstance(comment, dict) else None
    if not isinstance(found, int) or isinstance(found, bool):
        raise ApiError("GitHub's answer has a comment without its number")
    return found


def _url_of(comment: dict[str, Any]) -> str:
    found = comment.get("html_url")
    return found if isinstance(found, str) else ""


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
