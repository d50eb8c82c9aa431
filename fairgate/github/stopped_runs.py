"""The comment of a gate that ended without a verdict: it replaces an earlier verdict."""

from __future__ import annotations

import contextlib
import posixpath
from dataclasses import dataclass
from pathlib import Path

from fairgate.domain.errors import FairGateError
from fairgate.github.api import GitHubApi
from fairgate.github.event import Event, Roots
from fairgate.github.pull_requests import CommentPlan, base_commit, comment, no_comment
from fairgate.github.report import no_verdict_comment
from fairgate.github.sides import Checkout
from fairgate.policy.yaml_text import decode_yaml, load_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedRun:
    """An error, reported where a failed gate would be."""

    exit_code: int
    problem: str
    head: str
    needs_attention: bool = True

    def comment(self, report_url: str) -> str:
        """Return the comment without its marker."""
        return no_verdict_comment(
            self.problem, self.exit_code, head=self.head, report_url=report_url
        )


def comment_stopped_run(
    stopped: StoppedRun, event: Event, plan: CommentPlan, api: GitHubApi, roots: Roots
) -> tuple[str, str]:
    """Put it on the pull request, if there is one; return the comment's address and a warning."""
    if no_comment(event, plan) is not None:
        return "", ""
    if not plan.key:
        return "", "an earlier comment may be out of date: the policy's name is not known"
    posted, warning = comment(stopped, event, plan, api, roots)
    return posted.url if posted else "", warning


def policy_name(
    event: Event, workspace: Path, root: str, policy: str, api: GitHubApi | None
) -> str:
    """Return the name of the policy that would have decided, as far as it can be read.

    The base commit's first, as in a verdict: its comment is the one that is out of date.
    """
    path = posixpath.normpath(f"{root}/{policy}")
    for folder, inner in ((workspace / root, policy), (workspace, path)):
        with contextlib.suppress(FairGateError):
            base = base_commit(event, folder, workspace, api)
            if base is not None and (name := _name_in(base.read(posixpath.normpath(inner)))):
                return name
    with contextlib.suppress(FairGateError):
        return _name_in(Checkout(workspace).read(path))
    return ""


def _name_in(raw: bytes | None) -> str:
    if raw is None:
        return ""
    document = load_yaml(decode_yaml(raw, "policy"), "policy").data
    name = document.get("name") if isinstance(document, dict) else None
    return name if isinstance(name, str) else ""
