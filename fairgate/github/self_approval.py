"""Whether a workflow may let a change's own policy and baseline decide, or would approve itself.

`baseline-change: allow` counts only as the base branch sets it: the workflow file that GitHub runs
must be the base commit's, byte for byte, use nothing else that the change could edit, and contain
the value literally rather than compute it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from fairgate.domain.errors import BaselineError, PolicyError
from fairgate.domain.wording import quoted
from fairgate.github.base_commit import BaseCommit
from fairgate.github.event import Event
from fairgate.policy.yaml_text import decode_yaml, load_yaml

_INPUT = "baseline-change"
_LITERALS = ("allow", "refuse")
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
    if not event.is_of_default_branch:
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
    called = (use for use in _values(document.data, "uses") if isinstance(use, str))
    local = next((use for use in called if use.startswith(".")), None)
    if local is not None:
        return (
            f"the workflow {path} calls {quoted(local)} from the checkout, which this change could "
            "edit; give the gate a workflow without such calls"
        )
    return _unsaid(document.data, path)


def _unsaid(workflow: object, path: str) -> str:
    """Return an objection where a workflow computes `allow`, or takes it from elsewhere."""
    words = list(_values(workflow, _INPUT))
    handed = list(_handed_over(workflow))
    if not words and handed:
        # A workflow of another repository says it, perhaps by what it is given.
        words = ["allow", *(text for text in _leaves(handed) if "${{" in str(text))]
    computed = [word for word in words if word not in _LITERALS]
    if computed:
        return (
            f"the workflow {path} computes it ({quoted(str(computed[0]))}), perhaps from what this "
            f"change could set; write `{_INPUT}: allow` as it is"
        )
    return "" if "allow" in words else f"the workflow {path} does not set `{_INPUT}: allow`"


def _handed_over(workflow: object) -> Iterator[object]:
    """Yield what each job that is another repository's workflow gives to it."""
    jobs = workflow.get("jobs") if isinstance(workflow, dict) else None
    for job in jobs.values() if isinstance(jobs, dict) else ():
        if isinstance(job, dict) and isinstance(job.get("uses"), str):
            yield job.get("with")


def _values(value: object, key: str) -> Iterator[object]:
    """Yield what any mapping in a workflow has for a key; GitHub ignores the case of inputs."""
    for name, inner in _pairs(value):
        if str(name).casefold() == key:
            yield inner
        yield from _values(inner, key)


def _leaves(value: object) -> Iterator[object]:
    if not isinstance(value, dict | list):
        yield value
    for _, inner in _pairs(value):
        yield from _leaves(inner)


def _pairs(value: object) -> Iterable[tuple[object, object]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()
