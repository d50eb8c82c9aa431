"""Whether a workflow may let a change's own policy and baseline decide, or would approve itself.

`baseline-change: allow` counts only as the base branch says it: the workflow file that GitHub runs
must be the base commit's, byte for byte, and be made of nothing else that the change could edit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fairgate.adapters.github.base_commit import BaseCommit
from fairgate.adapters.github.event import Event
from fairgate.domain.errors import BaselineError, PolicyError
from fairgate.domain.wording import quoted
from fairgate.policy.yaml_text import decode_yaml, load_yaml

_OF_DEFAULT_BRANCH = frozenset({"pull_request_target", "workflow_run", "issue_comment"})
"""Events for which GitHub takes the workflow from the default branch, not from the change."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def objection_to_allow(event: Event, base: BaseCommit, environment: Mapping[str, str]) -> str:
    """Return why `baseline-change: allow` does not count; empty where it does.

    GITHUB_WORKFLOW_REF names the workflow that started the run, also inside a reusable one.
    """
    prefix = f"{event.repository}/"
    named = environment.get("GITHUB_WORKFLOW_REF", "").split("@", 1)[0]
    commit = environment.get("GITHUB_WORKFLOW_SHA", "")
    path = named[len(prefix) :]
    is_named = named.lower().startswith(prefix.lower()) and path and ".." not in path
    if not is_named or not _COMMIT.fullmatch(commit):
        return "GITHUB_WORKFLOW_REF and GITHUB_WORKFLOW_SHA do not name the workflow that runs"
    try:
        running = base.of(commit).read_from_top(path)
    except BaselineError as error:
        return f"the workflow that runs cannot be read: {error}"
    if running is None:
        return f"commit {commit[:12]} has no workflow {path}"
    if event.name not in _OF_DEFAULT_BRANCH:
        then = base.read_from_top(path)
        if then is None:
            return f"the base commit has no workflow {path}; merge it first"
        if running != then:
            return f"this change edits the workflow {path} itself"
    return _editable_part(running, path)


def _editable_part(workflow: bytes, path: str) -> str:
    """Return an objection where a workflow calls an action or workflow of its own checkout."""
    try:
        document = load_yaml(decode_yaml(workflow, path), path)
    except PolicyError as error:
        return f"the workflow cannot be read: {error}"
    if document.problems or not document.complete:
        return f"the workflow {path} cannot be read as YAML 1.2"
    local = next((called for called in _called(document.data) if called.startswith(".")), None)
    if local is None:
        return ""
    return (
        f"the workflow {path} calls {quoted(local)} from the checkout, which this change could "
        "edit; give the gate a workflow without such calls"
    )


def _called(value: object) -> Iterator[str]:
    """Yield what the workflow's jobs and steps use."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "uses" and isinstance(inner, str):
                yield inner
            else:
                yield from _called(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _called(inner)
