"""`/fairgate accept REASON`: a reviewer's comment makes a pull request's run the baseline.

A workflow of the default branch calls this under `issue_comment`, on a checkout of that branch. Who
wrote what, the head and its run are what GitHub's API says; the run's files are untrusted data.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from fairgate.domain.errors import ApiError, DataError, ExitCode, FairGateError, UsageError
from fairgate.domain.wording import quoted
from fairgate.gate import accepted_runs
from fairgate.gate.baseline import Reference
from fairgate.gate.baseline_files import dump_baseline
from fairgate.gate.composition import FinishedRun
from fairgate.gate.manifest import may_be_path, named_by
from fairgate.gate.run_folder import (
    COMMENT,
    EXECUTIONS,
    RECORD,
    STOP_RULES,
    check_run,
    replay,
)
from fairgate.github.api import GitHubApi, artifact_files, commit_of, natural, value_at
from fairgate.github.base_commit import Clone
from fairgate.github.comments import Marker, StickyComment, judged_line, run_url
from fairgate.github.event import (
    Event,
    Roots,
    github_api,
    pull_request_commits,
    read_event,
    read_roots,
)
from fairgate.github.gate_step import prefix_of
from fairgate.github.no_verdict import accounted
from fairgate.github.runner import Inputs, input_options, read_inputs, write_outputs
from fairgate.io.durable import PARTS, write_bytes
from fairgate.io.tables import read_json_object
from fairgate.reports.escaping import markdown_block, markdown_code
from fairgate.reports.formats import formats, run_record

_DONE = "✅ **The baseline is accepted.**"
_COMMAND = re.compile(r"/fairgate accept (\S(?:.{0,298}\S)?)")
_NOT_OF_ANSWERS = (
    "attribution", "day", "instability", "kill_score", "labels", "notices", "provenance",
)  # fmt: skip
_BASES = """{ repository(owner: "%s", name: "%s") { pullRequest(number: %d) { of: timelineItems(
itemTypes: [BASE_REF_CHANGED_EVENT, AUTOMATIC_BASE_CHANGE_SUCCEEDED_EVENT], first: 1) { totalCount }
headRef { of: associatedPullRequests(first: 1) { totalCount } } } } }"""


class _Given(NamedTuple):
    api: GitHubApi
    event: Event  # with the ends of the pull request
    inputs: Inputs
    workflow: str
    artifact: str
    home: str  # the repository in the API
    roots: Roots
    gate: StickyComment  # of the gate itself, which shows a run
    key: str
    comment: Any = None
    pull: Any = None

    def now(self) -> _Given:
        names = f"issues/comments/{self.event.comment}", f"pulls/{self.event.number}"
        comment, pull = (self.api.get(f"{self.home}/{name}") for name in names)
        event = replace(self.event, **pull_request_commits(pull))
        return self._replace(comment=comment, pull=pull, event=event)

    def objection_to_shown(self, run: Any, created: str) -> str:
        """Return why the gate's comment does not show this run of the head; empty where it does."""
        number, attempt = (natural(value_at(run, name)) for name in ("id", "run_attempt"))
        comments = self.gate.of_gate(self.key)
        if len(comments) != 1:
            count = "no comment" if not comments else f"{len(comments)} comments"
            return (
                f"the gate has {count} here under {quoted(self.key)}, where one must show the run "
                "that is accepted; let it run again, with `comment: always` where it has no news"
            )
        (comment,) = comments
        head, event = self.event.head_sha, self.event
        line = judged_line(head, number or 0, run_url(event, self.roots, number))
        if (comment.head, comment.run) != (head, (number, attempt)) or comment.first_line != line:
            return (
                f"the gate's comment shows run {comment.run[0]} of commit "
                f"{comment.head[:12] or 'none'}, not the newest run {number} of the head "
                f"{head[:12]}, which nobody has read: wait for its comment, or run it again, then "
                "comment anew"
            )
        if not comment.updated or comment.updated > created:
            return "the gate's comment was written after yours: read it and comment anew"
        return ""


def by_comment(github: click.Group) -> click.Group:
    """Return `fairgate github` with `accept`."""
    group = copy.copy(github)
    group.commands = {**github.commands, "accept": accept}
    return group


@click.command()
@input_options
@click.option("--workflow", default="", envvar="FAIRGATE_WORKFLOW", help="The gate's workflow.")
@click.option("--artifact", default="", envvar="FAIRGATE_ARTIFACT", help="Has the run's folder.")
@click.option(
    "--comment-key", default="", envvar="FAIRGATE_COMMENT_KEY",
    help="As the step that comments has it (default: the artifact's name).",
)  # fmt: skip
def accept(workflow: str, artifact: str, comment_key: str, **options: str) -> int:
    """Accept the run of a pull request's head as a comment asks (event `issue_comment`).

    The comment is `/fairgate accept REASON`, by someone who may write and is not the author. It
    accepts exactly the run that the gate's comment shows. The run's answers are judged again; the
    baseline becomes a commit of the pull request's branch.
    """
    with accounted() as account:
        environment = account.environment
        roots, event = read_roots(environment), read_event(environment)
        api, home = github_api(roots, options["github_token"]), f"/repos/{event.repository}"
        if api is None or event.number is None or not event.comment:
            raise UsageError(f"expected a `github-token` and a comment; event {quoted(event.name)}")
        pull_request = {"repository": event.repository, "graphql": roots.graphql}
        own = StickyComment(api, number=event.number, **pull_request)
        marker = Marker(
            key=f"accept/{event.comment}", head="", run=(event.run_id, event.run_attempt)
        )
        address = f"{home}/issues/comments/{event.comment}"

        def answer(text: str, commit: str = "") -> None:
            output = environment.get("GITHUB_OUTPUT", "")
            write_outputs(output, {"commit": commit})
            write_outputs(output, {"comment-url": own.put(marker, text, create=True)})
            with contextlib.suppress(ApiError):
                api.send("POST", f"{address}/reactions", {"content": "+1" if commit else "-1"})

        try:
            is_command = str(value_at(api.get(address), "body")).startswith("/fairgate")
            if not is_command or own.text(marker).startswith(_DONE):
                click.echo("fairgate: the comment asks for nothing, or was followed before")
                return ExitCode.PASS
            inputs = read_inputs(options, environment)
            account.prefix = prefix_of(inputs)
            os.chdir(inputs.root)
            key = comment_key or artifact
            request = _Given(api, event, inputs, workflow, artifact, home, roots, own, key)
            commit, text = _accepted(request.now(), account.prefix)
        except Exception as error:
            why = str(error) if isinstance(error, FairGateError) else type(error).__name__
            with contextlib.suppress(FairGateError):  # the log has the reason
                answer(f"❌ **Nothing was accepted.**\n\n{markdown_block(why[:4000])}\n")
            raise
        answer(text, commit)
        return ExitCode.PASS


def _accepted(request: _Given, prefix: str) -> tuple[str, str]:
    """Return the commit that holds the baseline, and the answer. Nothing is written on an error."""
    reason, login, run = question = _asked(request)
    done = _judged(request, run)
    _refuse_edits(request, done, prefix)
    api, event, policy, name = *request[:2], request.inputs.policies[0], done.loaded.policy.name
    file = accepted_runs.path_in_repository(policy, name, Reference.BASELINE)
    baseline = accepted_runs.baseline_of(
        done.run, reason=reason, date=request.comment["created_at"][:10]
    )
    baseline, _ = accepted_runs.with_history(baseline, done.run.gate_input, Path(file))
    baseline = replace(baseline, provenance=replace(baseline.provenance, commit=event.head_sha))
    by = f"Accepted-by: {login}\nFairGate-Comment: {event.comment}\nFairGate-Run: {run}\n"
    message = f"chore: accept the baseline of {name}\n\n{reason}\n\n{by}"
    path, git, head = f"{prefix}{file}", f"{request.home}/git", event.head_sha
    blob = {"path": path, "mode": "100644", "type": "blob", "content": dump_baseline(baseline)}
    try:
        base = value_at(api.get(f"{git}/commits/{head}"), "tree", "sha")
        tree = api.send("POST", f"{git}/trees", {"base_tree": base, "tree": [blob]})
        body = {"message": message, "tree": value_at(tree, "sha"), "parents": [head]}
        commit = commit_of(value_at(api.send("POST", f"{git}/commits", body), "sha"))
        if (now := request.now()).event.head_sha != head or _asked(now) != question:
            raise UsageError("the head moved meanwhile: read the new report and comment anew")
        branch = f"heads/{event.head_branch}"
        try:  # the only request that anybody sees, and only where the head is the commit's parent
            api.send("PATCH", f"{git}/refs/{branch}", {"sha": commit, "force": False})
        except ApiError:  # perhaps only its reply was lost
            if value_at(api.get(f"{git}/ref/{branch}"), "object", "sha") != commit:
                raise
    except ApiError as error:
        fetch = f"gh run download {run} --name {request.artifact} --dir accepted"
        take = f"fairgate baseline accept accepted --policy {policy} --reason …"
        how = "without `contents: write`, accept it on the head's branch"
        raise ApiError(f"{error}; {how}:\n{fetch}\n{take}") from error
    values = ", ".join(f"{rule.metric} {rule.value}" for rule in done.run.result.rules)
    return commit, (
        f"{_DONE} Commit {commit} has it in {markdown_code(path)}: run {run} of {head[:12]}, "
        f"{markdown_code(values)}; revert it if you read others. Until that is merged, the base "
        "branch's baseline decides. It starts no workflow: close and reopen the pull request.\n"
    )


def _asked(request: _Given) -> tuple[str, str, int]:
    """Return the reason, who gives it, and the head's newest run. Raises UsageError."""
    api, event, inputs, workflow, _, home, roots, *_, comment, pull = request
    user, created = value_at(comment, "user"), str(value_at(comment, "created_at"))
    command, login = _COMMAND.fullmatch(comment["body"]), str(value_at(user, "login"))
    reason = command[1] if command and command[1].isprintable() else ""
    kind, app = value_at(user, "type"), value_at(comment, "performed_via_github_app")
    is_name = re.fullmatch(r"[A-Za-z0-9][\w-]{0,99}", login, re.ASCII) is not None
    is_person = is_name and kind == "User" and app is None
    rights = api.get(f"{home}/collaborators/{login}/permission") if is_person else None
    is_known = value_at(comment, "author_association") in ("OWNER", "MEMBER", "COLLABORATOR")
    may_write = is_known and value_at(rights, "permission") in ("admin", "write")
    author, writer = (natural(value_at(entry, "user", "id")) for entry in (pull, comment))
    runs = f"{home}/actions/workflows/{Path(workflow).name}/runs"
    wanted = {"event": "pull_request", "head_sha": event.head_sha}
    listed = value_at(api.get(runs, per_page=100, **wanted), "workflow_runs")
    run = max(listed or (), key=lambda entry: natural(value_at(entry, "id")) or 0, default=None)
    whose, path = value_at(run, "head_repository", "full_name"), str(value_at(run, "path"))
    wanted["head_branch"] = event.head_branch
    is_own = all(value_at(run, name) == value for name, value in wanted.items())
    is_own = is_own and (whose, path.partition("@")[0]) == (event.repository, workflow)
    number = natural(value_at(run, "id"))
    pushers = {str(value_at(entry, "actor", "login")).lower() for entry in listed or ()}
    bases = api.query(roots.graphql, _BASES % (*event.repository.split("/"), event.number))
    bases = value_at(bases, "data", "repository", "pullRequest")
    ways = value_at(bases, "of", "totalCount"), value_at(bases, "headRef", "of", "totalCount")
    verdict = value_at(run, "conclusion") if value_at(run, "status") == "completed" else None
    head, default = Clone(inputs.root, inputs.workspace).head(), event.default_branch
    objections = {
        "expected `/fairgate accept REASON` on one line, 1 to 300 printable characters": not reason,
        "the comment was edited: write a new one": created != value_at(comment, "updated_at"),
        "a bot or an app wrote the comment": not is_person,
        "only an owner, member or collaborator who may write can accept": not may_write,
        "the author cannot accept": None in (author, writer) or author == writer,
        "the pull request is closed": value_at(pull, "state") != "open",
        "the head lies in a fork": event.is_fork,
        "the base is not the default branch": not default or event.base_branch != default,
        "the checkout must be the default branch, without `ref`": not head or head != event.sha,
        "expected one policy": len(inputs.policies) != 1,
        "`workflow` is no file of the default branch": not (inputs.workspace / workflow).is_file(),
        "the gate's workflow has no run of the head": not is_own or number is None,
        "the head's newest run has no verdict (yet)": verdict not in ("success", "failure"),
        "the head's newest run ended after the comment: read its report and comment anew":
            str(value_at(run, "updated_at")) > created,
        "who pushed the head cannot accept it": bool(pushers & {"none", login.lower()}),
        "another base may have given the workflow: open it anew, on a new branch": ways != (0, 1),
    }  # fmt: skip
    if not (problems := [text for text, holds in objections.items() if holds]):
        problems = list(filter(None, [request.objection_to_shown(run, created)]))
    if problems or number is None:
        raise UsageError("; ".join(problems))
    return reason, login, number


def _judged(request: _Given, run: int) -> FinishedRun:
    """Return the run, judged again. Raises DataError where that is not what its record says."""
    api, event, inputs = request[:3]
    names = [PARTS, EXECUTIONS, STOP_RULES, COMMENT, *(form.file for form in formats())]
    head, run_artifact = event.head_sha, (event.repository, run, request.artifact)
    inputs.scratch.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="accept-", dir=inputs.scratch))
    for name, content in artifact_files(api, *run_artifact, *names, head=head).items():
        write_bytes(folder / name, content)
    check_run(folder)
    record = read_json_object(folder / RECORD)
    commit = commit_of(value_at(record, "provenance", "commit"))
    merged = (
        value_at(api.get(f"{request.home}/git/commits/{commit}"), "parents") if commit else None
    )
    if head not in (commit, *(value_at(parent, "sha") for parent in (merged or ())[1:])):
        raise DataError(f"the record is of commit {commit[:12] or 'none'}, not of the head")
    locate = partial(accepted_runs.locate_references, named=None)
    done = replay(folder, Path(inputs.policies[0]), inputs.runtime, locate)
    read = partial(json.loads, parse_float=lambda value: round(float(value), 4))  # machines differ
    then, now = (read(json.dumps(content)) for content in (record, run_record(done.run.result)))
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    if differing := [name for name in names if name not in _NOT_OF_ANSWERS]:
        raise DataError(
            "the run's answers do not give its verdict by the default branch's policy and baseline "
            f"({quoted(differing[0])} differs): let the gate run again, by the same FairGate"
        )
    return done


def _refuse_edits(request: _Given, done: FinishedRun, prefix: str) -> None:
    """Raise UsageError where the commits edit what decides, or one is the reviewer's."""
    api, home, head = request.api, request.home, request.event.head_sha
    change = api.get(f"{home}/compare/{request.event.sha}...{head}")
    commits, start = value_at(change, "commits") or (), value_at(change, "merge_base_commit", "sha")
    trees = [api.get(f"{home}/git/trees/{tree}", recursive=1) for tree in (start, head)]
    whole = value_at(change, "total_commits"), *(value_at(tree, "truncated") for tree in trees)
    if whole != (len(commits), False, False):
        raise UsageError("GitHub does not list all that the pull request edits")
    writers = (value_at(commit, by, "id") for commit in commits for by in ("author", "committer"))
    if value_at(request.comment, "user", "id") in writers:
        raise UsageError("who wrote a commit of the pull request cannot accept it")
    inputs, policy = request.inputs, done.loaded.policy
    anchor = accepted_runs.path_in_repository(inputs.policies[0], policy.name, Reference.ANCHOR)
    names = (file for file in named_by(policy, inputs.runtime) if not file.is_under_test)
    names_of_files = [
        inputs.policies[0],
        anchor,
        *(file.name for file in names if may_be_path(file)),
    ]
    here = inputs.workspace
    decides = {
        here / ".github",
        *(Path(os.path.normpath(here / prefix / name)) for name in names_of_files),
    }
    decides |= {file.resolve() for file in decides}  # where links lead
    then, now = ({(e["path"], e["mode"], e["sha"]) for e in tree["tree"]} for tree in trees)
    for file in sorted(entry[0] for entry in then ^ now):
        if decides & {here / file, *(here / file).parents}:
            raise UsageError(f"{quoted(file)} is edited here, and it decides: merge that first")
