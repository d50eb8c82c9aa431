"""A small workspace with a recorded system, whose answers a test chooses."""

import contextlib
import io
import json
import shutil

import pytest
from fakes.following import following
from fakes.plans import planned

from fairgate.cli import main

POLICY = """\
version: 1
name: small
system: {{recorded: answers.jsonl}}
suites:
  - id: sentiment
    task: sentiment
    sources: sources.jsonl
    perturbations: [race, gender]
{suite}
gates:
{gates}
"""
GATES = """\
  - {metric: asr/generation/controlled, max: 0.2, regression: {margin: 0.02}}
  - {metric: unreadable/net, max: 0.02}
"""


class Workspace:
    def __init__(self, root, capsys=None):
        self.root, self._capsys = root, capsys
        self.out = ""
        self.err = ""

    def sources(self, count=20):
        rows = [{"id": f"s{i}", "text": f"Text number {i} is fine."} for i in range(count)]
        (self.root / "sources.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))

    def policy(self, gates=GATES, suite="", name="policy.yaml"):
        text = POLICY.format(gates=gates, suite=suite)
        (self.root / name).write_text(text)
        return text

    def plan(self):
        """Return the cases of the plan; needs an answers file to exist."""
        (self.root / "answers.jsonl").touch()
        return planned(self.root, self._plan)

    def _plan(self):
        assert self.run("plan", "policy.yaml") == 0
        return self.out

    def answers(self, answer, documents=None):
        """Write an answer for every case: `answer(key)`, and for every second source its opposite.

        None leaves the line out.
        """
        lines = []
        for case in self.plan():
            response = following(case["key"], answer(case["key"]))
            if response is None:
                continue
            row = {"key": case["key"], "response": response}
            if documents is not None:
                row["documents"] = documents(case["key"])
            lines.append(json.dumps(row))
        (self.root / "answers.jsonl").write_text("\n".join(lines) + "\n")

    def respond(self, answer, *after, policy="policy.yaml", before=()):
        """Answer each row of the plan, or of what is asked after a run, by text, fields or not at all; return the rows."""
        (self.root / "answers.jsonl").touch()
        assert self.run(*before, "plan", policy, *after) == 0, self.err
        rows = [json.loads(line) for line in self.out.split("\n") if line]
        with (self.root / "answers.jsonl").open("a" if after else "w") as file:
            for row in rows:
                said = answer(row)
                if said is None:
                    continue
                said = said if isinstance(said, dict) else {"response": said}
                file.write(json.dumps({"key": row["key"], "suite": row["suite"], **said}) + "\n")
        return rows

    def run(self, *arguments):
        if self._capsys:
            code = main([*arguments])
            self.out, self.err = self._capsys.readouterr()
        else:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                code = main([*arguments])
            self.out = printed.getvalue()
        return int(code)

    def gate(self, answer=None, documents=None, *, sources=None, out="out", options=(), **policy):
        """Write what is given of policy, sources and answers, and run the policy."""
        if policy:
            self.policy(**policy)
        if sources:
            self.sources(sources)
        if answer:
            self.answers(answer, documents)
        return self.run("run", "policy.yaml", "--out", out, *options)

    def accept(self, folder="out", *options):
        command = ("baseline", "accept", folder, "--reason", "first", *options)
        assert self.run(*command) == 0, self.err

    def record(self, folder="out"):
        return json.loads((self.root / folder / "run.json").read_text())


@pytest.fixture
def workspace(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRGATE_CACHE", str(tmp_path / "cache"))
    space = Workspace(tmp_path, capsys)
    space.sources()
    space.policy()
    return space


@pytest.fixture(scope="session")
def kept_files(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def once(workspace, kept_files):
    """Return a function: `make` writes into the workspace once for a name; then its files are copied."""

    def made(name, make):
        known = kept_files / name
        if not known.exists():
            make(workspace)
            shutil.copytree(workspace.root, known)
        shutil.copytree(known, workspace.root, dirs_exist_ok=True)
        return workspace

    return made
