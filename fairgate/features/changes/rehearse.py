"""`fairgate rehearse`: a pull request of two local commits, gated as the action would, offline.

A runner is given what GitHub would give it: a checkout of the merge, the event, folders and
variables. What then runs is `fairgate github run`'s own code, with the inputs of the workflow.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairgate.domain.errors import ExitCode, FairGateError, PolicyError, UsageError
from fairgate.domain.wording import quoted
from fairgate.features.changes import placed, shown_path
from fairgate.features.changes.code import refuse_own_code
from fairgate.io.git import Repository, repository_of, writable
from fairgate.io.regular import content_of
from fairgate.policy.yaml_text import decode_yaml, load_yaml
from fairgate.terminal.options import FOLDER, cache_option
from fairgate.terminal.output import progress_for, say

if TYPE_CHECKING:
    from fairgate.github.runner import Inputs

_NAME = "rehearsal/repository"
_OF_THE_RUNNER = {"device", "python", "github-token", "package-cache", "cache-dir", "report-dir"}
"""Inputs that say how a runner is set up."""
_LEFT_OUT = {
    "shard": "all questions are asked here",
    "answers-artifact": "no artifact is fetched",
    "pr-number": "the rehearsal is its own pull request",
}
_WORKFLOWS = Path(".github", "workflows")
_ACTION = re.compile(r"[\w.-]+/[\w./-]*fairgate[\w./-]*(?:@.+)?", re.ASCII)


@click.command(short_help="Run a pull request of two local commits as the action would.")
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--base", required=True, metavar="REF", help="Branch that it would be merged into.")
@click.option("--head", default="HEAD", show_default=True, metavar="REF", help="Its last commit.")
@click.option("--out", type=FOLDER, help="Folder for the files (default: .fairgate/rehearsal).")
@cache_option
def rehearse(policy: Path, base: str, head: str, out: Path | None, cache: Path | None) -> int:
    """Gate the merge of two commits of this clone as the action would on a pull request.

    Only what is committed counts. `report-only`, `baseline-change` and the like are those of the
    workflow that names POLICY. Nothing is sent to GitHub; exits as the check would end.
    """
    root, policy_name = placed(policy, Path())
    refuse_own_code(root)  # before any library is imported: it could be the change's
    from fairgate.features.changes.base import commit_named
    from fairgate.github.change import evaluated
    from fairgate.github.gate_step import gate_change, subject_of
    from fairgate.github.no_verdict import NO_VERDICT, leave_no_verdict
    from fairgate.github.runner import read_inputs

    repository = repository_of(root)
    if repository is None:
        raise UsageError("this folder is in no git checkout; a pull request is made of two commits")
    ends = commit_named(repository, base), commit_named(repository, head, decides=False)
    if repository.ask("status", "--porcelain", "--untracked-files=no"):
        say("fairgate: note: uncommitted changes are no part of the rehearsal")
    store = (cache or Path(os.environ.get("FAIRGATE_CACHE") or ".fairgate")).absolute()
    folder = (out or store / "rehearsal").absolute()
    for place, option in ((store, "--cache"), (folder, "--out"), (folder / "fairgate", "--out")):
        writable(place, option)
    with tempfile.TemporaryDirectory(prefix="fairgate-") as temporary:
        scratch = Path(temporary).resolve()
        workspace = scratch / "checkout"
        merge = _merged(repository, workspace, *ends)
        prefix = root.relative_to(repository.top.resolve()).as_posix()
        workflow, options = _inputs(workspace, prefix, policy_name)
        event = _event(scratch / "event.json", merge, base, ends)
        environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("GITHUB_")},
            **event,
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_WORKFLOW_REF": f"{_NAME}/{workflow}@refs/pull/1/merge",
            "GITHUB_WORKFLOW_SHA": merge,
            "RUNNER_TEMP": str(folder),
        }
        inputs = read_inputs({**options, "cache_dir": str(store)}, environment)
        shutil.rmtree(inputs.scratch, ignore_errors=True)
        evaluate = partial(evaluated, progress=progress_for(quiet=False))
        try:
            with contextlib.chdir(inputs.root):
                code = gate_change(inputs, subject_of(inputs, environment), evaluate)
        except FairGateError as error:
            leave_no_verdict(error, error.exit_code, inputs.scratch / NO_VERDICT)
            _tell(error.exit_code, inputs)
            raise
    _tell(code, inputs)
    return int(code)


def _tell(code: int, inputs: Inputs) -> None:
    """Say how the check would end, and what the pull request would be told."""
    from fairgate.gate.run_folder import COMMENT
    from fairgate.github.comments import read_comment

    colour = "green" if code == ExitCode.PASS else "red"
    why = ", whatever the verdict: the workflow sets report-only" if inputs.report_only else ""
    why = why if code == ExitCode.PASS else ""
    click.echo(f"Rehearsed: the check would be {colour} (exit code {int(code)}{why}).")
    file = next(inputs.scratch.rglob(COMMENT), None)
    if file is not None and read_comment(file.parent).create:
        click.echo(f"Its comment: fairgate comment {shlex.quote(str(shown_path(file.parent)))}")
    else:
        click.echo("It would get no new comment.")


def _event(file: Path, merge: str, base: str, ends: tuple[str, str]) -> dict[str, str]:
    """Write the event of a pull request; return the variables that go with it."""
    branch = base.removeprefix("origin/").removeprefix("refs/heads/")
    before, after = ends
    repository = {"full_name": _NAME, "default_branch": branch}
    pull = {
        "number": 1,
        "head": {"sha": after, "ref": "rehearsal", "repo": repository},
        "base": {"sha": before, "ref": branch, "repo": repository},
        "merge_commit_sha": merge,
    }
    payload = {"number": 1, "pull_request": pull, "repository": repository}
    file.write_text(json.dumps(payload), "utf-8")
    return {
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(file),
        "GITHUB_REPOSITORY": _NAME,
        "GITHUB_REF": "refs/pull/1/merge",
        "GITHUB_SHA": merge,
        "GITHUB_RUN_ID": "1",
    }


def _merged(source: Repository, workspace: Path, base: str, head: str) -> str:
    """Check out the merge of two commits in an empty folder, as GitHub makes it; return it.

    Raises UsageError where they cannot be merged: GitHub would start no workflow then.
    """
    workspace.mkdir(parents=True)
    here = Repository(workspace)
    objects = source.ask("rev-parse", "--path-format=absolute", "--git-path", "objects") or b""
    shallow = source.ask("rev-parse", "--path-format=absolute", "--git-path", "shallow") or b""
    here.ask("init", "--quiet", "--template=")
    if not (workspace / ".git" / "objects").is_dir() or not objects:
        raise UsageError("git cannot make a checkout for the rehearsal; put git 2.38 on the PATH")
    info = workspace / ".git" / "objects" / "info"
    info.mkdir(exist_ok=True)
    (info / "alternates").write_bytes(objects)
    cut = Path(os.fsdecode(shallow).strip())
    if shallow and cut.is_file():
        shutil.copyfile(cut, workspace / ".git" / "shallow")
    if here.ask("merge-base", "--is-ancestor", head, base) is not None:
        raise UsageError(
            f"{head[:12]} has nothing that {base[:12]} lacks, so there is no pull request of it; "
            "name its last commit with --head"
        )
    if here.ask("merge-base", "--is-ancestor", base, head) is not None:
        tree = here.ask("rev-parse", f"{head}^{{tree}}")
    else:
        tree = here.ask("merge-tree", "--write-tree", base, head)
    if tree is None:
        raise UsageError(
            f"{head[:12]} cannot be merged into {base[:12]} without conflicts, and GitHub starts "
            "no workflow then; rebase it (or, with a git before 2.38, build it on the base)"
        )
    who = ("-c", "user.name=FairGate", "-c", "user.email=fairgate@localhost")
    parents = ("-p", base, "-p", head)
    created = here.ask(*who, "commit-tree", tree.decode().strip(), *parents, "-m", "Merge") or b""
    merge = created.decode().strip()
    if not merge or here.ask("checkout", "--quiet", "--force", "--detach", merge) is None:
        raise UsageError(f"git cannot check out the merge of {head[:12]} into {base[:12]}")
    return merge


def _inputs(workspace: Path, prefix: str, policy: str) -> tuple[str, dict[str, str]]:
    """Return the workflow whose step names the policy, and the inputs of that step.

    Without one it is the action as nobody has set it. Expressions are not known here.
    """
    from fairgate.github.runner import DEFAULTS, policies_in

    options = {**DEFAULTS, "policy": policy, "root": prefix}
    wanted = os.path.normpath(Path(prefix, policy))
    for file, steps in _workflows(workspace):
        for step in steps:
            names = {os.path.normpath(Path(step.get("root", "."), path))
                     for path in policies_in(step.get("policy", ""))}  # fmt: skip
            if wanted not in names:
                continue
            click.echo(f"fairgate: inputs are those of {file}", err=True)
            for name, text in step.items():
                if name in _LEFT_OUT:
                    say(f"fairgate: note: {name} is left out: {_LEFT_OUT[name]}")
                elif "${{" in text and name not in _OF_THE_RUNNER:
                    say(f"fairgate: note: {name} is an expression, unknown here, and left out")
                elif name not in _OF_THE_RUNNER and name.replace("-", "_") in options:
                    options[name.replace("-", "_")] = text
            return file, options
    say(f"fairgate: note: no workflow names the policy {quoted(policy)}: default inputs are used")
    return f"{_WORKFLOWS.as_posix()}/fairness.yml", options


def _workflows(workspace: Path) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield each workflow with the inputs of its steps that use the action."""
    for path in sorted((workspace / _WORKFLOWS).glob("*.y*ml")):
        file = path.relative_to(workspace).as_posix()
        try:
            data: Any = load_yaml(decode_yaml(content_of(path), file), file).data
        except (OSError, PolicyError):
            continue
        jobs = data.get("jobs") if isinstance(data, dict) else None
        inputs = []
        for job in jobs.values() if isinstance(jobs, dict) else ():
            steps = job.get("steps") if isinstance(job, dict) else None
            for step in steps if isinstance(steps, list) else ():
                arguments = step.get("with") if isinstance(step, dict) else None
                uses = str(step.get("uses")) if isinstance(step, dict) else ""
                is_ours = bool(_ACTION.fullmatch(uses)) or uses.startswith(".")
                if is_ours and isinstance(arguments, dict) and "policy" in arguments:
                    inputs.append({str(key): str(text) for key, text in arguments.items()})
        yield file, inputs
