"""Comments on pull requests: the gate's own, and what a fork's run has reported of itself.

This is the trusted half: the pull request, the commit and the run come from GitHub alone. Of the
gate's own run the artifact supplies a text that can do nothing on the page; of a fork's, no more
than the outcome. Nothing in here can change a verdict.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairgate.domain.errors import ApiError, DataError, ExitCode, UsageError
from fairgate.domain.outcomes import Outcome
from fairgate.gate.run_folder import COMMENT
from fairgate.github.api import GitHubApi, artifact_file, natural, value_at
from fairgate.github.event import (
    PULL_REQUEST_EVENTS,
    Event,
    Roots,
    pull_request_commits,
    pulls_of,
)
from fairgate.github.report import no_verdict_comment
from fairgate.io.durable import add_part, is_part
from fairgate.io.git import writable
from fairgate.io.regular import opened
from fairgate.reports import figures
from fairgate.reports.escaping import disarmed_markdown, short_sentence
from fairgate.reports.markdown import length

_GONE = frozenset({404, 410})
_SERVER_ERROR = 500
_ROUNDS = 4
_BOT = "github-actions[bot]"
_MARKER = re.compile(
    r'<!-- fairgate:report:v1 key="([^"<>]*)" head="([0-9a-f]*)" '
    r'run="([0-9]{1,18})\.([0-9]{1,18})" -->'
)
_SAME_PULL_REQUEST = ("workflow_id",), ("head_branch",), ("head_repository", "id")
"""Fields of GitHub's runs that two runs of one workflow for one pull request have in common."""
_MEMBER = "run.json"
MOST_CHARACTERS = 65_000
"""GitHub refuses comments above 65,536 characters; the rest is for the marker."""
_MOST_BYTES = 1 << 20
_TITLES = {
    Outcome.PASS: "the gate passed",
    Outcome.FAIL: "the gate failed",
    Outcome.INCONCLUSIVE: "no verdict",
}
_EXIT_CODES = {
    Outcome.PASS: (ExitCode.PASS,),
    Outcome.FAIL: (ExitCode.GATE_FAILED,),
    Outcome.INCONCLUSIVE: (ExitCode.BASELINE, ExitCode.NO_VERDICT),
}
_DISCLAIMER = "Nobody has verified this: it is what a run of a fork's files says about itself."


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


class GateComment(BaseModel):
    """What a gate's job leaves for the job that comments; untrusted when it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    version: Literal[1]
    create: bool
    """Whether a comment is due even where there is none yet."""
    text: Annotated[str, Field(pattern=r"\w", max_length=100_000)]


class PostedComment(NamedTuple):
    """A comment of ours on a pull request, with what its marker names."""

    id: int
    url: str
    body: str
    head: str
    run: tuple[int, int]


class StickyComment:
    """The comment of one policy on one pull request.

    It is found again and updated, never doubled. The first line of the comment is a marker that
    names the policy and the run. A comment counts as ours only if its author is the account we
    write as, so a copied marker has no effect. Other workflows write as that account, too: so a
    marker keeps its comment from an update only if GitHub knows its run as a newer one of the same
    workflow for this pull request.
    """

    def __init__(self, api: GitHubApi, *, repository: str, number: int, graphql: str) -> None:
        """Take the pull request; nothing is asked yet."""
        self._api = api
        self._number = number
        self._runs = f"/repos/{repository}/actions/runs"
        self._issue = f"/repos/{repository}/issues/{number}/comments"
        self._comments = f"/repos/{repository}/issues/comments"
        self._graphql = graphql

    def put(self, marker: Marker, text: str, *, create: bool, link: str = "") -> str:
        """Set the comment's text; where there is none yet, only if `create`. Return its address.

        Whoever wrote the text, nothing in it acts but links to `link`. Raises ApiError. Of two runs
        that race the newer one's text stays, once.
        """
        body = f"{marker}\n{disarmed_markdown(text, link)}"
        own = 0
        failed: ApiError | None = None
        for _ in range(_ROUNDS):
            comments = self._mine(marker)
            if not comments:
                if not create:
                    return ""
                try:
                    answer = self._api.send("POST", self._issue, {"body": body})
                except ApiError as error:
                    if error.status < _SERVER_ERROR and error.status != 0:
                        raise
                    own, failed = 0, error  # it may be there all the same: the next round looks
                else:
                    own, failed = _id_of(answer), None
                continue  # look again: another run may have created one at the same time
            oldest, *others = comments
            if any(self._is_newer(comment, marker) for comment in comments):
                others = [comment for comment in others if comment.id == own]
            elif oldest.body != body and not self._sent("PATCH", oldest, {"body": body}):
                continue  # deleted in between
            for comment in others:
                self._sent("DELETE", comment)
            return oldest.url
        raise failed or ApiError(
            "the comment was modified concurrently several times; another job writes it"
        )

    def _is_newer(self, comment: PostedComment, marker: Marker) -> bool:
        """Return whether GitHub knows the comment's run as a newer one for this pull request.

        It is one of the workflow that the marker's run is of, for the same branch. What GitHub does
        not say, it does not know.
        """
        if comment.run <= marker.run:
            return False
        number, attempt = comment.run
        try:
            theirs, ours = (self._api.get(f"{self._runs}/{run}") for run in (number, marker.run[0]))
        except ApiError:
            return False
        pulls = value_at(theirs, "pull_requests")
        numbers = [value_at(pull, "number") for pull in pulls] if isinstance(pulls, list) else []
        return (
            all(value_at(run, "event") in PULL_REQUEST_EVENTS for run in (theirs, ours))
            and all(
                value_at(theirs, *field) == value_at(ours, *field) is not None
                for field in _SAME_PULL_REQUEST
            )
            and (not numbers or self._number in numbers)  # a fork's are not listed
            and value_at(theirs, "id") == number
            and value_at(theirs, "head_sha") == comment.head
            and 1 <= attempt <= (natural(value_at(theirs, "run_attempt")) or 0)
        )

    def _mine(self, marker: Marker) -> list[PostedComment]:
        """Return our comments of this gate, oldest first."""
        prefix = str(marker).split(" head=", 1)[0] + " "
        comments = []
        for comment in self._api.pages(self._issue):
            body, author = value_at(comment, "body"), value_at(comment, "user", "login")
            if isinstance(body, str) and body.startswith(prefix) and author == self._author:
                stored = _MARKER.match(body)
                head, run = (
                    (stored[2], (int(stored[3]), int(stored[4]))) if stored else ("", (0, 0))
                )
                url = value_at(comment, "html_url")
                address = url if isinstance(url, str) else ""
                body = body.replace("\r\n", "\n")
                comments.append(PostedComment(_id_of(comment), address, body, head, run))
        return sorted(comments)

    @cached_property
    def _author(self) -> str:
        # A workflow's own token may not ask REST who it is, but GraphQL answers.
        try:
            answer = self._api.query(self._graphql, "query { viewer { login } }")
        except ApiError:
            return _BOT
        login = value_at(answer, "data", "viewer", "login")
        return login if isinstance(login, str) else _BOT

    def _sent(
        self, method: str, comment: PostedComment, body: Mapping[str, str] | None = None
    ) -> bool:
        """Change or delete a comment; return whether it was still there."""
        try:
            self._api.send(method, f"{self._comments}/{comment.id}", body)
        except ApiError as error:
            if error.status not in _GONE:
                raise
            return False
        return True


def _id_of(comment: object) -> int:
    number = value_at(comment, "id")
    if not isinstance(number, int) or isinstance(number, bool):
        raise ApiError("GitHub's answer has a comment without its number")
    return number


def write_comment(folder: Path, text: str, *, create: bool) -> str:
    """Write the comment, without its marker, for the job that posts it; return its SHA-256."""
    report = GateComment(version=1, create=create, text=text).model_dump_json()
    add_part(folder, COMMENT, report, option="report-dir")
    return hashlib.sha256(report.encode()).hexdigest()


def read_comment(folder: Path) -> GateComment:
    """Read the comment in the folder of a run.

    Raises DataError where it is no comment, or not the one that the run wrote, and UsageError
    where a commit could have put it there.
    """
    writable(folder, "RUN")
    if not is_part(folder / COMMENT):
        raise DataError(f"{folder / COMMENT}: is not what the run wrote; run the gate again")
    try:
        with opened(folder / COMMENT) as file:
            return GateComment.model_validate_json(file.read(_MOST_BYTES))
    except (OSError, ValidationError) as error:
        raise DataError(f"{folder / COMMENT}: holds no comment; run the gate again") from error


def comment_own_report(
    event: Event, api: GitHubApi, roots: Roots, artifact: str, key: str, sha256: str = ""
) -> tuple[str, str]:
    """Put what this run's gate has left on the pull request; return its address, or why not.

    `sha256` is what the gate's step says of the file that it wrote: no other is posted. Where the
    gate left nothing that can be read, the comment says that there is no verdict: an earlier one
    must not stand as if it were this run's. Raises ApiError, UsageError.
    """
    reason = no_comment(event)
    if reason or event.number is None:
        return "", reason
    url = run_url(event, roots)
    report, why = None, ""
    try:
        content = artifact_file(api, event.repository, event.run_id, artifact, COMMENT)
        report = GateComment.model_validate_json(content)
        if hashlib.sha256(content).hexdigest() != sha256:
            why = f"{COMMENT} is not the one that its step names as `comment-digest`"
    except (DataError, ValidationError) as error:
        why = str(error) if isinstance(error, DataError) else f"{COMMENT} is no comment"
    if report is None or why:
        problem = f"the gate's job has left no comment that can be read: {why}"
        report = GateComment(version=1, create=True, text=no_verdict_comment(problem, 4))
    text = report.text
    judged = judged_line(event.head_sha, event.run_id, url)
    if length(disarmed_markdown(text, url)) + length(judged) > MOST_CHARACTERS:
        text = no_verdict_comment("the comment that the gate's job has left is too long", 4)
    marker = Marker(key=key or artifact, head=event.head_sha, run=(event.run_id, event.run_attempt))
    sticky = StickyComment(
        api, repository=event.repository, number=event.number, graphql=roots.graphql
    )
    text = f"{judged}\n\n{text.strip()}\n"
    return sticky.put(marker, text, create=report.create, link=url), ""


def judged_line(head: str, run: int, url: str) -> str:
    """Return the first line that a comment shows, below its marker: the commit and its run."""
    return f"<sub>Commit `{head[:12]}`, judged by [run {run}]({url})</sub>"


def no_comment(event: Event) -> str:
    """Return why there can be no comment; empty where there can be one."""
    if event.number is None or event.name == "merge_group":
        return "this run is about no pull request"
    if event.is_fork:
        return "a fork's token can only read; the report is in the summary of the gate's job"
    if event.by_dependabot:
        return "Dependabot's token can only read; the report is in the summary of the gate's job"
    return ""


def run_url(event: Event, roots: Roots, run: int | None = None) -> str:
    """Return the address of a workflow run's page; by default of this one."""
    return f"{roots.server}/{event.repository}/actions/runs/{run or event.run_id}"


class _Rule(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    waived: dict[str, object] | None = None


class ForeignRecord(BaseModel):
    """What is read of the record of a fork's run.

    The record is hostile: its form is checked, and only its outcome and how many failures are
    waived are repeated, so that no text of a stranger's reaches the comment.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    outcome: Outcome
    exit_code: ExitCode
    rules: Annotated[list[_Rule], Field(max_length=5000)]


def read_foreign_record(raw: bytes) -> ForeignRecord:
    """Return the record. Raises DataError where it is not one."""
    try:
        record = ForeignRecord.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise DataError(
            f"run.json is not a run record ({short_sentence(field)[:99]}: {first['type']}); it may "
            "come from another version of FairGate: use the same one in both workflows"
        ) from error
    if record.exit_code not in _EXIT_CODES.get(record.outcome, ()):
        raise DataError(
            f"run.json contradicts itself: outcome {record.outcome.value} and exit code "
            f"{int(record.exit_code)} do not go together; run the gate again"
        )
    return record


def render_foreign_record(record: ForeignRecord, *, head: str, report_url: str) -> str:
    """Return the comment: whose word it is, the verdict, and where its report stands."""
    title = _TITLES[record.outcome]
    if waived := sum(rule.waived is not None for rule in record.rules):
        title += f" with {figures.count(waived, 'waived failure')}"
    where = f"Commit `{head[:12]}` · [its run]({report_url}), whose summary has the report"
    return f"### A fork reports: {title}\n{_DISCLAIMER}\n\n{where}\n"


def comment_foreign_report(
    event: Event, api: GitHubApi, roots: Roots, artifact: str, key: str
) -> tuple[str, str]:
    """Put a finished run's report on its pull request; return its address, or why there is none.

    Raises UsageError under any other event, DataError where the artifact is none, and ApiError.
    """
    run = event.cause_run
    if event.name != "workflow_run" or event.cause != "pull_request" or not run:
        raise UsageError(
            "this comments on the finished run of a `pull_request` workflow, under the event "
            f"`workflow_run`; the event is `{event.name}`, caused by `{event.cause or 'nothing'}`"
        )
    for pull in pulls_of(event, api):
        number = pull["number"]
        now = api.get(f"/repos/{event.repository}/pulls/{number}")
        if pull_request_commits(now)["head_sha"] == event.head_sha:  # as GitHub says it now
            break
    else:
        return "", "no open pull request has the commit that ran; it may have moved on"
    head = event.head_sha
    record = artifact_file(api, event.repository, run, artifact, _MEMBER, head=head)
    url = run_url(event, roots, run)
    text = render_foreign_record(read_foreign_record(record), head=head, report_url=url)
    marker = Marker(
        key=f"fork/{key or artifact}",  # nothing that the fork could choose
        head=event.head_sha,
        run=(run, event.cause_attempt),
    )
    sticky = StickyComment(api, repository=event.repository, number=number, graphql=roots.graphql)
    return sticky.put(marker, text, create=True, link=url), ""
