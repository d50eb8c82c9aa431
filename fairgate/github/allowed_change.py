"""Whether `baseline-change: allow` counts: only as the base branch's own workflow sets it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairgate.domain.errors import BaselineError, PolicyError
from fairgate.domain.wording import quoted
from fairgate.github.base_commit import BaseCommit
from fairgate.github.event import DEFAULT_BRANCH_EVENTS, Event, workflow_path
from fairgate.io.git import FULL_COMMIT
from fairgate.policy.yaml_text import decode_yaml, load_yaml

INPUT = "baseline-change"
"""The action's input that allows it."""
_LITERALS = ("allow", "refuse")


def objection_to_allow(event: Event, base: BaseCommit, environment: Mapping[str, str]) -> str:
    """Return why `baseline-change: allow` does not count; empty where it does.

    GITHUB_WORKFLOW_REF names the workflow that started the run, also inside a reusable one.

    It counts only as the base branch sets it: the workflow file that GitHub runs must be the base
    commit's, byte for byte, use nothing else that the change could edit, and contain the value
    literally rather than compute it.
    """
    commit = environment.get("GITHUB_WORKFLOW_SHA", "")
    path = workflow_path(event.repository, environment)
    if not path or not FULL_COMMIT.fullmatch(commit):
        return "GITHUB_WORKFLOW_REF and GITHUB_WORKFLOW_SHA do not name the workflow that runs"
    try:
        running = base.of(commit).read_from_top(path)
    except BaselineError as error:
        return f"the workflow that runs cannot be read: {error}"
    if running is None:
        return f"commit {commit[:12]} has no workflow {path}"
    if event.name not in DEFAULT_BRANCH_EVENTS:
        then = base.read_from_top(path)
        if then is None:
            return f"the base commit has no workflow {path}; merge it first"
        if running != then:
            return f"this change edits the workflow {path} itself"
    try:
        document = load_yaml(decode_yaml(running, path), path)
    except PolicyError as error:
        return f"the workflow cannot be read: {error}"
    if document.problems or not document.complete:
        return f"the workflow {path} cannot be read as YAML 1.2"
    return _unsaid(document.data, path)


def _unsaid(workflow: object, path: str) -> str:
    """Return an objection where a workflow does not say `allow` itself, in its own words.

    Nor where it calls an action or workflow of its own checkout.
    """
    fields = list(_visited(workflow))
    uses = [use for name, use in fields if name == "uses" and isinstance(use, str)]
    local = next((use for use in uses if use.startswith(".")), None)
    if local is not None:
        return (
            f"the workflow {path} calls {quoted(local)} from the checkout, which this change could "
            "edit; give the gate a workflow without such calls"
        )
    words = [word for name, word in fields if name == INPUT]
    jobs = workflow.get("jobs") if isinstance(workflow, dict) else None
    handed = [
        job.get("with")
        for job in (jobs.values() if isinstance(jobs, dict) else ())
        if isinstance(job, dict) and isinstance(job.get("uses"), str)
    ]
    if not words and handed:
        # A workflow of another repository says it, perhaps by what it is given.
        values = (value for _, value in _visited(handed) if not isinstance(value, dict | list))
        words = ["allow", *(value for value in values if "${{" in str(value))]
    computed = [word for word in words if word not in _LITERALS]
    if computed:
        return (
            f"the workflow {path} computes it ({quoted(str(computed[0]))}), perhaps from what this "
            f"change could set; write `{INPUT}: allow` as it is"
        )
    return "" if "allow" in words else f"the workflow {path} does not set `{INPUT}: allow`"


def _visited(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Yield all that a workflow holds, with its key; GitHub ignores the case of inputs."""
    yield name, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _visited(inner, str(key).casefold())
    for inner in value if isinstance(value, list) else ():
        yield from _visited(inner)
