"""A repository, a GitHub and a runner for the tests of the action."""

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest import mock

import pytest
from action import payloads
from action.fake_github import REPOSITORY, TOKEN, FakeGitHub, known_run
from action.repositories import WORKFLOW_PATH, States, introduced, regressed
from action.step_runner import StepRunner, by_shell, in_process, parse_outputs
from fakes.serving import served

from fairgate.cli import main
from fairgate.gate.run_folder import COMMENT as COMMENT_FILE
from fairgate.github import api

ARTIFACT = {"FAIRGATE_ARTIFACT": "fairgate-small"}
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def hub():
    """Return a GitHub with pull request 7."""
    with served(FakeGitHub()) as server:
        server.pulls[7] = payloads.pull_request(7, "a" * 40, "b" * 40)
        yield server


@pytest.fixture(scope="session")
def states(tmp_path_factory):
    """Return the repositories that are made once, each at its first use."""
    return States(tmp_path_factory.mktemp("states"))


@pytest.fixture
def history(states, tmp_path, monkeypatch):
    """Return a repository whose main branch has a policy, fair answers and a baseline."""
    space = states.copy(introduced, tmp_path / "work" / "shop")
    monkeypatch.chdir(space.root)
    monkeypatch.setenv("FAIRGATE_CACHE", str(tmp_path / "cache"))
    return space


@pytest.fixture(scope="session")
def finished(states, tmp_path_factory):
    """Return what gates a change of the answers, once for all tests that only read what came of it."""

    @cache
    def gated(answer, **inputs):
        folder = tmp_path_factory.mktemp("finished")
        history = states.copy(introduced, folder / "work" / "shop")
        with pytest.MonkeyPatch.context() as patch, served(FakeGitHub()) as hub:
            patch.setenv("FAIRGATE_CACHE", str(folder / "cache"))
            patch.chdir(history.root)
            hub.pulls[7] = payloads.pull_request(7, "a" * 40, "b" * 40)
            history.proposes(answer)
            job = Job(folder / "runner", history.root, hub)
            job.code = job.pull(history, **inputs)
        return job

    return gated


@pytest.fixture
def red(states, history):
    return states.copy(regressed, history.root)


class Job:
    """Runs `fairgate github run` as a job would: environment, event file, runner's files."""

    def __init__(self, folder, workspace, hub):
        self.folder, self.workspace, self.hub = folder, workspace, hub
        self.out = self.err = self.summary = ""
        self.outputs = {}
        self.commented, self.comment_out = 0, ""

    def environment(self, name, payload, **more):
        self.folder.mkdir(exist_ok=True)
        event = self.folder / "event.json"
        text = payload if isinstance(payload, str) else json.dumps(payload)
        if not event.exists() or event.read_text() != text:  # another run may be reading it
            event.write_text(text)
        if main := self.commit("main"):
            self.hub.tips["main"] = main
        return {
            "GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_API_URL": self.hub.url,
            "GITHUB_GRAPHQL_URL": f"{self.hub.url}/graphql", "GITHUB_SERVER_URL": self.hub.url,
            "GITHUB_WORKSPACE": str(self.workspace), "GITHUB_SHA": self.checked_out(),
            "GITHUB_RUN_ID": "500", "GITHUB_RUN_ATTEMPT": "1", "GITHUB_ACTOR": "monalisa",
            "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/{WORKFLOW_PATH}@refs/pull/7/merge",
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"), "RUNNER_TEMP": str(self.folder),
            "FAIRGATE_POLICY": "policies/small.yaml", "FAIRGATE_GITHUB_TOKEN": TOKEN, **more,
        }  # fmt: skip

    def checked_out(self):
        """Return the commit in the workspace, which is what GitHub started the run on."""
        return self.commit("HEAD")

    def commit(self, named):
        command = ["git", "-C", str(self.workspace), "rev-parse", "--verify", "-q", named]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    def run(self, name, payload, **more):
        """Return the exit code of the gate's job; `commented` is that of the job that comments."""
        code = self.command("run", name, payload, **more)
        said, outputs = (self.out, self.err, self.summary), self.outputs
        self.upload(outputs, name, payload, **more)
        told = {**ARTIFACT, "FAIRGATE_COMMENT_DIGEST": outputs.get("comment-digest", "")}
        self.commented = self.command("comment", name, payload, **{**more, **told})
        self.outputs = {**outputs, "comment-url": self.outputs.get("comment-url", "")}
        self.comment_out = self.out + self.err
        self.out, self.err, self.summary = said
        return code

    def upload(self, outputs, name, payload, **more):
        """Keep the gate's comment as the artifact that a shown workflow makes of the run folder."""
        file = Path(outputs.get("run-folder") or "/nowhere") / COMMENT_FILE
        run = int(more.get("GITHUB_RUN_ID", "500"))
        proposed = payload.get("pull_request") if isinstance(payload, dict) else None
        head = proposed["head"]["sha"] if isinstance(proposed, dict) else ""
        self.hub.runs.setdefault(run, known_run(head_sha=head))
        self.hub.artifacts.pop(run, None)
        if file.is_file():
            content = file.read_bytes()
            self.hub.upload(run, head, content, name="fairgate-small", member=COMMENT_FILE)

    def command(self, command, name, payload, **more):
        """Return the exit code; `out`, `err`, `outputs` and `summary` hold the rest."""
        for file in ("output", "summary"):
            (self.folder / file).unlink(missing_ok=True)
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, self.environment(name, payload, **more)),
            contextlib.chdir(self.workspace),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = main(["github", command])
        self.out, self.err = out.getvalue(), err.getvalue()
        output, summary = self.folder / "output", self.folder / "summary"
        self.outputs = parse_outputs(output.read_text()) if output.exists() else {}
        self.summary = summary.read_text() if summary.exists() else ""
        assert TOKEN not in self.out + self.err + self.summary
        return int(code)

    def push(self, history, **inputs):
        commit = history.git("rev-parse", "HEAD")
        return self.run("push", payloads.on_push("0" * 40, commit), **inputs)

    def pull_again(self, history, number=7, **more):
        base, head = history.git("rev-parse", "HEAD^1", "HEAD^2").split()
        inputs = {"GITHUB_WORKFLOW_SHA": history.git("rev-parse", "HEAD"), **more}
        return self.run("pull_request", payloads.on_pull_request(number, head, base), **inputs)

    def pull(self, history, number=7, **more):
        """Gate the branch that is checked out as pull request `number`."""
        base = history.git("rev-parse", "main")
        head = history.merge()
        inputs = {"GITHUB_WORKFLOW_SHA": history.git("rev-parse", "HEAD")}
        inputs |= {key: more.pop(key) for key in list(more) if key.isupper()}
        return self.run(
            "pull_request", payloads.on_pull_request(number, head, base, **more), **inputs
        )


@pytest.fixture
def job(tmp_path, history, hub, monkeypatch):
    async def at_once(_seconds):
        pass

    monkeypatch.setattr("fairgate.io.http_client._sleep", at_once)
    patient = replace(api.LIMITS, seconds=3600.0, idle_seconds=3600.0)
    monkeypatch.setattr(api, "LIMITS", patient)
    return Job(tmp_path / "runner", history.root, hub)


class Steps:
    """The real action.yml on the repository's checkout, with this interpreter's packages."""

    def __init__(self, job, history, temp, execute):
        self.job, self.history = job, history
        self.gate = StepRunner(ROOT, history.root, temp / "gate", execute)
        self.merge = StepRunner(ROOT / "merge", history.root, temp / "merge", execute)
        self.comment = StepRunner(ROOT / "comment", temp / "empty", temp / "comment", execute)
        self.comment.workspace.mkdir(parents=True)
        self.gate.token = self.merge.token = self.comment.token = TOKEN

    def on(self, name, payload, *, runner=None, code=None, inputs=None, **environment):
        """Run an action on an event, the gate's if no other; it exits with `code`."""
        chosen = {"policy": "policies/small.yaml", "python": sys.executable, "device": "cpu"}
        given = {**chosen, **(inputs or {})}
        return self._run(runner or self.gate, name, payload, given, environment, code)

    def pull(self, *, code=None, inputs=None, environment=None, **more):
        """Run the gate's action on the branch that is checked out, as pull request 7."""
        return self.again(self.merged(**more), code=code, inputs=inputs, environment=environment)

    def merged(self, **more):
        """Check out the merge of the branch that is checked out; return the event's payload."""
        base = self.history.git("rev-parse", "main")
        return payloads.on_pull_request(7, self.history.merge(), base, **more)

    def again(self, payload, runner=None, *, code=None, inputs=None, environment=None):
        """Run an action on a pull request whose merge is checked out."""
        merge = {"GITHUB_WORKFLOW_SHA": self.history.git("rev-parse", "HEAD")}
        given = {"runner": runner, "code": code, "inputs": inputs, **merge, **(environment or {})}
        return self.on("pull_request", payload, **given)

    def told(self, payload, code=0):
        """Run the comment's action on a `workflow_run`; nothing is checked out."""
        return self._one(self.comment, "workflow_run", payload, {}, {}, code)

    def _run(self, runner, name, payload, inputs, environment, code):
        """Run the gate's job and the one that comments, as the workflow of `init` does."""
        done = self._one(runner, name, payload, inputs, environment, code)
        done.outputs["comment-url"] = ""
        if "shard" not in inputs:
            self.job.upload(done.outputs, name, payload, **environment)
            sha256 = done.outputs.get("comment-digest", "")
            given = {"artifact": "fairgate-small", "comment-digest": sha256}
            said = self._one(self.comment, name, payload, given, environment)
            done.outputs["comment-url"] = said.outputs["comment-url"]
            done.commented = said
        return done

    def _one(self, runner, name, payload, inputs, environment, code=None):
        given = {**self.job.environment(name, payload), **environment}
        plain = {key: value for key, value in given.items() if not key.startswith("FAIRGATE_")}
        done = runner.run({"python": sys.executable, **inputs}, plain)
        assert code in (None, done.code), done.log
        return done


@pytest.fixture
def steps(job, history, tmp_path):
    """Return both actions, step by step in this process: inputs, environment, outputs, exit codes.

    For what a shell, a start of Python or two runs at once may change there is `real_steps`.
    """
    return Steps(job, history, tmp_path / "steps", in_process)


@pytest.fixture
def real_steps(job, history, tmp_path):
    """Return the actions, the gate's and merge's steps by a shell and an interpreter of their own."""
    steps = Steps(job, history, tmp_path / "steps", by_shell)
    steps.comment.execute = in_process
    return steps
