"""The trusted half for forks: comment on a pull request what its own, untrusted run has reported.

The pull request and the commit that ran come from GitHub alone; the artifact supplies only
numbers and texts, which are checked and escaped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairgate.domain.errors import DataError, ExitCode, UsageError
from fairgate.domain.outcomes import Outcome
from fairgate.github.api import GitHubApi, artifact_member
from fairgate.github.event import Event, Roots, pull_request_commits
from fairgate.github.pull_requests import Marker, Posted, StickyComment, pulls_of
from fairgate.metrics.catalogue import BY_ID
from fairgate.reports import figures
from fairgate.reports.blocks import Column, Row, Table, Text
from fairgate.reports.escaping import markdown, short_name, short_sentence
from fairgate.reports.markdown import render_blocks
from fairgate.reports.rule_rows import REPORTED, WORDS
from fairgate.reports.spans import Kind, Span, Tone, Words, code, figure

_MEMBER = "run.json"
_ROWS = 40
_TITLES = {
    Outcome.PASS: "the gate passed",
    Outcome.FAIL: "the gate failed",
    Outcome.INCONCLUSIVE: "no verdict",
}
_DISCLAIMER = (
    "Nobody has verified these numbers: they are what a run of a fork's files says about itself."
)
Foreign = Annotated[str, Field(max_length=4000)]
_Check = Literal["bound", "regression", "budget", "identity", "unreadable"]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e6, le=1e6)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignComment:
    """The result: a comment, or why there is none."""

    posted: Posted | None
    reason: str = ""


class _Checked(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Change(_Checked):
    base: Number | None = None


class _Rule(_Checked):
    metric: Annotated[str, Field(max_length=100)]
    suite: Foreign
    where: Annotated[dict[Foreign, Foreign], Field(max_length=16)] = {}
    outcome: Outcome
    failed: Annotated[list[_Check], Field(max_length=8)] = []
    value: Number | None = None
    interval: tuple[Number | None, Number | None] | None = None
    change: _Change | None = None
    advisory: bool = False
    reported: bool = False
    warns: bool = False

    @property
    def has_outcome(self) -> bool:
        """Return whether the rule was judged, or had the value that it only prints."""
        is_printed = self.reported and self.value is not None
        return is_printed or self.outcome is not Outcome.NOT_EVALUATED


class _Evidence(_Checked):
    planned: Annotated[int, Field(ge=0, le=10**9)]
    decided: Annotated[int, Field(ge=0, le=10**9)]
    problems: Annotated[list[Foreign], Field(max_length=1000)] = []


class ForeignRecord(_Checked):
    """What is believed of a record's form; nothing of its content is.

    The record is hostile: its form is checked, everything that is not needed is ignored, none of
    its sentences is repeated, names stand as code, and the outcome is the one that its rules amount
    to. The reader sees first that the numbers are not verified.
    """

    policy: Annotated[str, Field(min_length=1, max_length=200)]
    outcome: Outcome
    exit_code: ExitCode
    rules: Annotated[list[_Rule], Field(max_length=5000)]
    evidence: _Evidence
    warnings: Annotated[list[Foreign], Field(max_length=1000)] = []


def read_foreign_record(raw: bytes) -> ForeignRecord:
    """Return the record. Raises DataError where it is not one."""
    try:
        record = ForeignRecord.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise DataError(
            f"run.json is not a run record ({short_sentence(place)[:99]}: {first['type']}); it may "
            "come from another version of FairGate: use the same one in both workflows"
        ) from error
    unknown = next((rule.metric for rule in record.rules if rule.metric not in BY_ID), None)
    if unknown is not None:
        raise DataError(
            "run.json names a metric that this FairGate does not have: "
            f"{markdown(short_name(unknown))}"
        )
    if (record.outcome, record.exit_code) not in _possible(record):
        raise DataError(
            f"run.json contradicts itself: outcome {record.outcome.value} and exit code "
            f"{int(record.exit_code)} do not follow from its rules; run the gate again"
        )
    return record


def _possible(record: ForeignRecord) -> set[tuple[Outcome, ExitCode]]:
    """Return what a gate may say by these rules; a failed binding rule leaves no choice."""
    binding = [rule for rule in record.rules if not rule.advisory]
    if any(rule.outcome is Outcome.FAIL for rule in binding):
        return {(Outcome.FAIL, ExitCode.GATE_FAILED)}
    possible = {(Outcome.INCONCLUSIVE, code) for code in (ExitCode.BASELINE, ExitCode.NO_VERDICT)}
    evidence = record.evidence
    is_thin = evidence.problems or not 0 < evidence.decided <= evidence.planned
    if is_thin or not any(rule.has_outcome for rule in record.rules):
        return possible
    if any(rule.outcome is Outcome.INCONCLUSIVE and not rule.warns for rule in binding):
        return {*possible, (Outcome.FAIL, ExitCode.GATE_FAILED)}
    return {*possible, (Outcome.PASS, ExitCode.PASS)}


def render_foreign_record(record: ForeignRecord, *, head: str, report_url: str) -> str:
    """Return the comment: whose word it is, then the verdict and the rules."""
    decided, planned = record.evidence.decided, record.evidence.planned
    policy = render_blocks([Text(lines=[code(record.policy)])])
    ranked = sorted(record.rules, key=_rank)
    heads = ("rule", "now", "base", "likely range (95 %)")
    table = Table(
        label="Table of rules",
        columns=[
            Column(head="outcome"),
            *(Column(head=each, is_number=place > 0) for place, each in enumerate(heads)),
        ],
        rows=[_row(rule) for rule in ranked[:_ROWS]],
        left_out=max(0, len(ranked) - _ROWS),
    )
    commit = f"{decided} of {planned} cases decided at commit `{head[:12]}` · [run]({report_url})"
    title = _TITLES[record.outcome]
    if record.outcome is Outcome.PASS and all(r.advisory or r.reported for r in record.rules):
        title = "nothing can fail this gate, so it passed"
    if record.outcome is Outcome.PASS and record.warnings:
        title += " and warns that identities are not treated alike,"
    heading = f"### A fork reports: {title} in {policy}"
    return f"{heading}\n{_DISCLAIMER}\n\n{commit}\n\n{render_blocks([table])}\n"


def _rank(rule: _Rule) -> tuple[bool, int]:
    order = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1, Outcome.NOT_EVALUATED: 2, Outcome.PASS: 3}
    return rule.advisory, order[rule.outcome]


def _row(rule: _Rule) -> Row:
    where = ", ".join(rule.where.values())
    slice_: Words = [" ", code(where)] if where else []
    low, high = rule.interval or (None, None)
    bounds = None if low is None or high is None else (low, high)
    checks = ", ".join(dict.fromkeys(rule.failed))
    word = REPORTED if rule.reported else WORDS[rule.outcome]
    text = f"{word}{f': {checks}' if checks else ''}"
    advisory = " (advisory)" if rule.advisory else ""
    passed = rule.outcome is Outcome.PASS
    outcome = Span(f" {text}", tone=Tone.NORMAL if passed else Tone.STRONG)
    title = f"{figures.title(rule.metric)} "
    return Row(
        cells=[
            [Span(rule.outcome.value, Kind.MARK), outcome, advisory],
            [title, code(rule.metric), *slice_, " in ", code(rule.suite)],
            figure(figures.value(rule.value, rule.metric)),
            figure(figures.value(rule.change.base if rule.change else None, rule.metric)),
            figure(figures.interval(bounds, rule.metric)),
        ]
    )


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
