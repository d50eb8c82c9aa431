"""The trusted half for forks: comment on a pull request what its own, untrusted run has reported.

The pull request and the commit that ran come from GitHub alone; the artifact supplies only
numbers and texts, which are checked and escaped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairgate.domain.errors import UsageError
from fairgate.github.api import GitHubApi
from fairgate.github.artifacts import artifact_member
from fairgate.github.comments import Marker, Posted, StickyComment
from fairgate.github.event import Event, Roots, pull_request_commits
from fairgate.github.foreign_record import read_foreign_record, render_foreign_record
from fairgate.github.pull_requests import pulls_of

_MEMBER = "run.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignComment:
    """The result: a comment, or why there is none."""

    posted: Posted | None
    reason: str = ""


def comment_foreign_report(
    event: Event, api: GitHubApi, roots: Roots, artifact: str, key: str
) -> ForeignComment:
    """Put a finished run's report on its pull request.

    Raises UsageError under any other event, DataError where the artifact is none, and ApiError.
    """
    if event.name != "workflow_run" or event.cause != "pull_request" or not event.cause_run:
        raise UsageError(
            "this comments on the finished run of a `pull_request` workflow, under the event "
            f"`workflow_run`; the event is `{event.name}`, caused by `{event.cause or 'nothing'}`"
        )
    found = _verified(event, api)
    if found is None:
        reason = "no open pull request has the commit that ran; it may have moved on"
        return ForeignComment(posted=None, reason=reason)
    raw = artifact_member(
        api, event.repository, event.cause_run, artifact, _MEMBER, head=event.head_sha
    )
    record = read_foreign_record(raw)
    url = f"{roots.server}/{event.repository}/actions/runs/{event.cause_run}"
    text = render_foreign_record(record, head=event.head_sha, report_url=url)
    marker = Marker(
        key=f"fork/{key or artifact}",  # nothing that the fork could choose
        head=event.head_sha,
        run=(event.cause_run, event.cause_attempt),
    )
    sticky = StickyComment(
        api, repository=event.repository, number=found.number or 0, graphql=roots.graphql
    )
    return ForeignComment(posted=sticky.put(marker, text, create=True))


def _verified(event: Event, api: GitHubApi) -> Event | None:
    """Return the event with the pull request whose head is what ran; None where there is none."""
    for listed in pulls_of(event, api):
        pull = api.get(f"/repos/{event.repository}/pulls/{listed['number']}")
        if pull_request_commits(pull)["head_sha"] == event.head_sha:
            return replace(event, number=listed["number"])
    return None
