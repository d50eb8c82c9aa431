"""Earned blocking (`report-only: until-proven`): whether a gate's own history lets it stop builds.

A new gate reports and stops nothing until pushes to the default branch, one for each merged pull
request, were judged ten times, or for 28 days, without a red that ended: two green pushes in a row
say that somebody has accepted or taken back what it was about, and the count starts anew. A red
that stands, or comes and goes, is no such one: the harm may be there. Then the gate blocks for
good: what it has earned no later run takes away.

Read are GitHub's conclusions of runs for such pushes, which end with their verdict. What cannot be
read blocks: whoever could hide the history, by rights that are missing, by an outage or by deleting
runs, would otherwise turn a proven gate off.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from fairgate.domain.errors import ApiError, FairGateError
from fairgate.domain.wording import harmless
from fairgate.github.api import GitHubApi, natural, rows_of, value_at
from fairgate.github.base_commit import BaseCommit
from fairgate.github.earlier_policy import is_known
from fairgate.github.event import Event, workflow_path
from fairgate.github.pushed_runs import PushedRuns

NEEDED, DAYS = 10, 28
_LONG = dt.timedelta(days=DAYS)
_LOOKED_AT = 100
"""Newest runs that are looked at: a gate with more of them is no new one."""
_CONCLUSIONS = {"success": False, "failure": True}
"""Whether a run was red, by its conclusion; others (cancelled, skipped) have no verdict."""


class JudgedPush(NamedTuple):
    """A push to the default branch that the gate has judged."""

    started: dt.datetime
    is_red: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whether a gate blocks, and what the pull request is told of it."""

    blocks: bool
    remark: str
    is_due: bool = False
    """The next pull request may be the first that is blocked."""


ALWAYS = Standing(blocks=True, remark="")


def judged_pushes(runs: Iterable[Mapping[str, Any]], pushed: PushedRuns) -> list[JudgedPush]:
    """Return the pushes that GitHub's rows of runs have judged, oldest first, each commit once."""
    newest: dict[str, JudgedPush] = {}
    for run in runs:
        started, is_red = pushed.started(run), _CONCLUSIONS.get(str(run.get("conclusion")))
        if started is not None and is_red is not None:
            push = JudgedPush(started, is_red)
            newest[run["head_sha"]] = max(push, newest.get(run["head_sha"], push))
    return sorted(newest.values())


def earned(pushes: Iterable[JudgedPush], now: dt.datetime) -> tuple[bool, int]:
    """Return whether a gate has ever earned to block, and the pushes of the present count.

    `pushes` come oldest first. It has with NEEDED of them, or DAYS after the first of a count.
    """
    counted: list[JudgedPush] = []
    for push in pushes:
        counted.append(push)
        if push.started - counted[0].started >= _LONG:
            return True, len(counted)
        last = counted[-2:]
        if any(each.is_red for each in counted) and not any(each.is_red for each in last):
            counted = last
        if len(counted) >= NEEDED:
            return True, len(counted)
    return bool(counted) and now - counted[0].started >= _LONG, len(counted)


def standing(
    api: GitHubApi | None,
    event: Event,
    base: BaseCommit | None,
    root: Path,
    policies: Sequence[str],
    environment: Mapping[str, str],
) -> Standing:
    """Return whether the gate blocks the change of an event; without a base it ends as it is."""
    if base is None:
        return ALWAYS
    try:
        workflow = workflow_path(event.repository, environment)
        is_gated = any(is_known(base, root, name) for name in policies)
        return _standing(api, event, base, workflow, is_gated=is_gated)
    except FairGateError as error:
        return Standing(
            blocks=True,
            remark=f"Whether this gate has earned to block cannot be read, so it does: "
            f"{harmless(str(error))}. The step's token needs `actions: read`.",
        )


def _standing(
    api: GitHubApi | None, event: Event, base: BaseCommit, workflow: str, *, is_gated: bool
) -> Standing:
    branch = event.default_branch
    if api is None or not workflow or not branch:
        raise ApiError("there is no token, or the event names no workflow and default branch")
    if is_gated and base.read_from_top(workflow) is None:
        raise ApiError("the base commit has a policy, and not the workflow that runs")
    listing = f"/repos/{event.repository}/actions/workflows/{PurePosixPath(workflow).name}/runs"
    runs = _rows(api.get(listing, event="push", branch=branch, per_page=_LOOKED_AT))
    pushed = PushedRuns.of(api, event.repository, branch, workflow)
    has_earned, count = earned(judged_pushes(runs, pushed), dt.datetime.now(tz=dt.UTC))
    if has_earned:
        return ALWAYS
    last = api.get(listing, per_page=1)
    ever = max((natural(run.get("run_number")) or 0 for run in _rows(last)), default=0)
    has_lost = not 0 < ever <= (natural(value_at(last, "total_count")) or 0)
    if has_lost or len(runs) >= _LOOKED_AT or not pushed.covers(runs):
        remark = (
            "This gate blocks: GitHub does not list all of its runs and pushes. It is older than "
            "these, or runs were deleted."
        )
        return Standing(blocks=True, remark=remark)
    more = NEEDED - count
    remark = (
        f"This gate reports and does not block yet: {count} of {NEEDED} pushes to "
        f"`{harmless(branch)}` were judged without a red that ended. "
    )
    remark += (
        "From the next pull request on, a red one is blocked."
        if more == 1
        else f"After {more} more, or {DAYS} days, a red pull request is blocked."
    )
    return Standing(blocks=False, remark=remark, is_due=more == 1)


def _rows(answer: object) -> list[dict[str, Any]]:
    runs = value_at(answer, "workflow_runs")
    if not isinstance(runs, list):
        raise ApiError("GitHub's answer is no list of runs")
    return rows_of(runs)
