"""Earned blocking (`report-only: until-proven`): whether a gate's own history lets it stop builds.

A new gate reports and stops nothing until pushes to the default branch, one for each merged pull
request, were judged ten times, or for 28 days, without a red that ended: two green pushes in a row
say that somebody has accepted or taken back what it was about, and the count starts anew. A red
that stands, or comes and goes, is no such one: the harm may be there. Then the gate blocks for
good: what it has earned no later run takes away.

Read are GitHub's conclusions of this workflow's runs for pushes to the default branch, which end
with their verdict. Never read are runs of pull requests, whose authors' code runs in them. A run
counts only where the branch itself was moved to its commit: GitHub calls a run of a tag `main` one
of `main`, too. What cannot be read blocks: whoever could hide the history, by rights that are
missing or by an outage, would otherwise turn a proven gate off.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from fairgate.domain.errors import ApiError, FairGateError
from fairgate.domain.wording import harmless
from fairgate.github.api import GitHubApi, commit_of, natural, rows_of, value_at
from fairgate.github.base_commit import BaseCommit
from fairgate.github.earlier_policy import is_known
from fairgate.github.event import Event, workflow_path
from fairgate.github.stored_answers import first_moves

NEEDED, DAYS = 10, 28
_LONG = dt.timedelta(days=DAYS)
_LOOKED_AT = 100
"""Newest runs that are looked at: a gate with more of them, or older ones, is no new one."""
_CONCLUSIONS = {"success": False, "failure": True}
"""Whether a run was red, by its conclusion; others (cancelled, skipped) have no verdict."""


class JudgedPush(NamedTuple):
    """A push to the default branch that the gate has judged."""

    at: dt.datetime
    is_red: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whether a gate blocks, and what the pull request is told of it."""

    blocks: bool
    remark: str
    is_due: bool = False
    """The next pull request may be the first that is blocked."""


ALWAYS = Standing(blocks=True, remark="")


def judged_pushes(
    runs: Sequence[Mapping[str, Any]], moved: Mapping[str, str], *, branch: str, workflow: str
) -> list[JudgedPush]:
    """Return the pushes that runs have judged, oldest first, each commit once.

    `runs` are GitHub's rows in any order, `moved` the first time that the branch was moved to a
    commit, as GitHub writes times. What is of another event, branch, repository or workflow is left
    out, and so is what ran before the branch had its commit.
    """
    newest: dict[str, tuple[int, JudgedPush]] = {}
    for run in runs:
        head, number = commit_of(run.get("head_sha")), natural(run.get("id"))
        is_red = _CONCLUSIONS.get(str(run.get("conclusion")))
        started = str(run.get("created_at"))
        here, there = (
            natural(value_at(run, name, "id")) for name in ("repository", "head_repository")
        )
        if (
            number is None
            or is_red is None
            or run.get("event") != "push"
            or run.get("head_branch") != branch
            or str(run.get("path")).partition("@")[0] != workflow
            or here is None
            or here != there
            or not moved.get(head, "~") <= started
        ):
            continue
        try:
            at = dt.datetime.fromisoformat(started)
        except ValueError:
            continue
        if at.tzinfo is not None and number > newest.get(head, (0, None))[0]:
            newest[head] = number, JudgedPush(at, is_red)
    return sorted(push for _, push in newest.values())


def earned(pushes: Iterable[JudgedPush], now: dt.datetime) -> tuple[bool, int]:
    """Return whether a gate has ever earned to block, and the pushes of the present count.

    `pushes` come oldest first. It has with NEEDED of them, or DAYS after the first of a count.
    """
    counted: list[JudgedPush] = []
    for push in pushes:
        if counted and push.at - counted[0].at >= _LONG:
            return True, len(counted)
        counted.append(push)
        last = counted[-2:]
        if any(each.is_red for each in counted) and not any(each.is_red for each in last):
            counted = last
        if len(counted) >= NEEDED:
            return True, len(counted)
    return bool(counted) and now - counted[0].at >= _LONG, len(counted)


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
    if api is None or not workflow or not event.default_branch:
        raise ApiError("there is no token, or the event names no workflow and default branch")
    if is_gated and base.read_from_top(workflow) is None:
        raise ApiError("the base commit has a policy, and not the workflow that runs")
    home, branch = f"/repos/{event.repository}", event.default_branch
    answer = api.get(
        f"{home}/actions/workflows/{PurePosixPath(workflow).name}/runs",
        event="push", branch=branch, per_page=_LOOKED_AT,
    )  # fmt: skip
    runs = value_at(answer, "workflow_runs")
    if not isinstance(runs, list):
        raise ApiError("GitHub's answer is no list of runs")
    moved = first_moves(api, event.repository, branch) if runs else {}
    pushes = judged_pushes(rows_of(runs), moved, branch=branch, workflow=workflow)
    has_earned, count = earned(pushes, dt.datetime.now(tz=dt.UTC))
    if has_earned:
        return ALWAYS
    oldest = min(moved.values(), default="")
    is_cut = any(str(run.get("created_at")) < oldest for run in rows_of(runs))
    if is_cut or len(runs) >= _LOOKED_AT:
        remark = "This gate blocks: it is older than the runs and pushes that GitHub lists of it."
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
