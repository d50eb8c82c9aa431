"""A repository, a GitHub and a runner for the tests of the action."""

import json

import pytest
from action import payloads
from action.fake_github import REPOSITORY, TOKEN, FakeGitHub
from action.repositories import POLICY, WORKFLOW_PATH, History, fair

from fairgate.cli import main


@pytest.fixture
def hub():
    """Return a GitHub with pull request 7."""
    server = FakeGitHub()
    server.pulls[7] = payloads.pull_request(7, "a" * 40, "b" * 40)
    yield server
    server.stop()


@pytest.fixture
def history(tmp_path, monkeypatch, capsys):
    """Return a repository whose main branch has a policy, fair answers and a baseline."""
    space = History(tmp_path / "work" / "shop")
    monkeypatch.chdir(space.root)
    monkeypatch.setenv("FAIRGATE_CACHE", str(tmp_path / "cache"))
    space.write("policies/small.yaml", POLICY)
    space.answers(fair, capsys)
    space.accept()
    space.commit("introduce the gate")
    capsys.readouterr()
    return space


class Job:
    """Runs `fairgate github run` as a job would: environment, event file, runner's files."""

    def __init__(self, folder, workspace, hub, monkeypatch, capsys):
        self.folder, self.workspace, self.hub = folder, workspace, hub
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self.out = self.err = self.summary = ""
        self.outputs = {}

    def environment(self, name, payload, **more):
        self.folder.mkdir(exist_ok=True)
        event = self.folder / "event.json"
        event.write_text(payload if isinstance(payload, str) else json.dumps(payload))
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_API_URL": self.hub.url,
            "GITHUB_GRAPHQL_URL": f"{self.hub.url}/graphql",
            "GITHUB_SERVER_URL": self.hub.url,
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_RUN_ID": "500",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_ACTOR": "monalisa",
            "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/{WORKFLOW_PATH}@refs/pull/7/merge",
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            "RUNNER_TEMP": str(self.folder),
            "FAIRGATE_POLICY": "policies/small.yaml",
            "FAIRGATE_GITHUB_TOKEN": TOKEN,
            **more,
        }

    def run(self, name, payload, **more):
        """Run the gate."""
        return self.command("run", name, payload, **more)

    def command(self, command, name, payload, **more):
        """Return the exit code; `out`, `err`, `outputs` and `summary` hold the rest."""
        for file in ("output", "summary"):
            (self.folder / file).unlink(missing_ok=True)
        self._capsys.readouterr()
        with self._monkeypatch.context() as patch:
            for key, value in self.environment(name, payload, **more).items():
                patch.setenv(key, value)
            patch.chdir(self.workspace)
            code = main(["github", command])
        captured = self._capsys.readouterr()
        self.out, self.err = captured.out, captured.err
        self.outputs = parse_outputs((self.folder / "output").read_text())
        summary = self.folder / "summary"
        self.summary = summary.read_text() if summary.exists() else ""
        assert TOKEN not in self.out + self.err + self.summary
        return int(code)

    def pull_again(self, history, number=7, **more):
        """Gate the merge that is checked out once more."""
        base, head = history.git("rev-parse", "HEAD^1", "HEAD^2").split()
        return self.run("pull_request", payloads.on_pull_request(number, head, base), **more)

    def pull(self, history, number=7, **more):
        """Gate the branch that is checked out as pull request `number`."""
        base = history.git("rev-parse", "main")
        head = history.merge()
        inputs = {key: more.pop(key) for key in list(more) if key.isupper()}
        return self.run(
            "pull_request", payloads.on_pull_request(number, head, base, **more), **inputs
        )


def parse_outputs(text):
    """Read the runner's file as the runner does."""
    found, lines = {}, iter(text.splitlines())
    for line in lines:
        name, delimiter = line.split("<<", 1)
        value = []
        for part in lines:
            if part == delimiter:
                break
            value.append(part)
        found[name] = "\n".join(value)
    return found


@pytest.fixture
def job(tmp_path, history, hub, monkeypatch, capsys):
    """Return a job on the repository."""
    monkeypatch.setattr("fairgate.adapters.github.api.time.sleep", lambda _: None)
    return Job(tmp_path / "runner", history.root, hub, monkeypatch, capsys)
