"""A small workspace with a recorded system, whose answers a test chooses."""

import contextlib
import io
import json
import shutil

import pytest
from fakes.following import following
from fakes.plans import planned, rows_of

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
    phrases: 1
{suite}
gates:
{gates}
"""
GATES = """\
  - {metric: asr/generation, max: 0.2, regression: 0.02}
  - {parity: unreadable, max: 0.02}
"""


class Workspace:
    def __init__(self, root, capsys=None):
        self.root, self._capsys = root, capsys
        self.out = ""
        self.err = ""

    @property
    def said(self):
        return " ".join((self.out + self.err).split())

    def write(self, name, rows):
        """Write a table of JSON objects."""
        (self.root / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def rows(self, name="out/rows.jsonl"):
        return [json.loads(line) for line in (self.root / name).read_text().splitlines()]

    def edit(self, old="", new="", name="policy.yaml", *, more=""):
        """Replace a part of a file, and write more at its end."""
        text = (self.root / name).read_text()
        assert old in text
        (self.root / name).write_text(text.replace(old, new) + more)

    def sources(self, count=20):
        rows = [{"id": f"s{i}", "text": f"Text number {i} is fine."} for i in range(count)]
        self.write("sources.jsonl", rows)

    def policy(self, gates=GATES, suite="", name="policy.yaml"):
        """Write a policy, with nine neutral nouns unless `suite` names its control prompts."""
        if "control" not in suite:
            suite = f"    control: paper\n{suite}"
        text = POLICY.format(gates=gates, suite=suite)
        (self.root / name).write_text(text)
        return text

    def plan(self):
        """Return the cases of the plan."""
        (self.root / "answers.jsonl").touch()
        return planned(self.root, self._plan)

    def _plan(self, policy="policy.yaml", *options, before=()):
        assert self.run(*before, "plan", policy, *options) == 0, self.err
        return self.out

    def answers(self, answer, documents=None):
        """Write an answer for every case, and for every second source its opposite.

        `answer` is the text for all of them, or a function of the key; None leaves the line out.
        """
        rows = []
        for key in (case["key"] for case in self.plan()):
            response = following(key, answer if isinstance(answer, str) else answer(key))
            if response is not None:
                found = {"documents": documents(key)} if documents else {}
                rows.append({"key": key, "response": response, **found})
        self.write("answers.jsonl", rows)

    def respond(self, answer, *after, policy="policy.yaml", before=()):
        """Answer each row of the plan, or of what is asked after a run, by text, fields or not at all; return the rows."""
        (self.root / "answers.jsonl").touch()
        if after or before:
            rows = rows_of(self._plan(policy, *after, before=before))
        else:
            rows = planned(self.root, lambda: self._plan(policy), policy)
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
    space.write("answers.jsonl", [])
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
