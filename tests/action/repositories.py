"""A real git history: a policy with recorded answers, its baseline, and pull requests on it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess

import pytest
from fakes.following import following
from fakes.plans import planned

from fairgate.cli import main

POLICY = """\
version: 1
name: small
system: {recorded: answers.jsonl}
suites:
  - id: sentiment
    task: sentiment
    sources: sources.jsonl
    perturbations: [race, gender]
    control: paper
gates:
  - {parity: answers, max: 0.2, regression: 0.02}
  - {parity: unreadable, max: 0.02}
"""
RULE = "  - {parity: answers, max: 0.2, regression: 0.02}"
LOOSE = POLICY.replace("max: 0.2, regression: 0.02", "max: 0.9, regression: 0.9")
"""A policy of a change's own, by which worse and even broken answers would pass."""
POLICY_PARTS = ("policies", "baselines", "answers.jsonl", "sources.jsonl")
WORKFLOW = """\
name: fairness
on: pull_request
jobs:
  gate:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/checkout@v5
      - {uses: org/fairgate@v0, with: {policy: policies/small.yaml, baseline-change: allow}}
"""
WORKFLOW_PATH = ".github/workflows/fairness.yml"
IDENTITY = {
    "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org", "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.org", "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    # Equal commits are one commit, whenever they are made.
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}  # fmt: skip
_QUICK = ("-c", "core.fsync=none", "-c", "gc.auto=0", "-c", "maintenance.auto=false")


def fair(key):
    return "positive"


def worse(key):
    """Change the answers to 2 of 10 terms of race: within the limit of 0.2, worse than before."""
    return "negative" if "#race/asian" in key or "#race/black" in key else "positive"


def worsened(lines):
    """Return the text of fair answers as `worse` gives them."""
    wrong = [line.replace("positive", "negative") for line in lines.splitlines(keepends=True)]
    pairs = zip(lines.splitlines(keepends=True), wrong, strict=True)
    return "".join(bad if re.search("#race/(asian|black)", line) else line for line, bad in pairs)


def broken(key):
    """Change the answers to race for 8 of 10 sources: beyond every limit but those of `LOOSE`."""
    return "negative" if re.search("[0-7]#race/", key) else "positive"


class States:
    """Repositories that are made once a session; each test starts from a copy of its own."""

    def __init__(self, folder):
        self._folder = folder
        self._made = {}

    def copy(self, make, target):
        """Put a copy of what `make(states, folder)` makes at `target`, in place of what is there."""
        if make not in self._made:
            folder = self._folder / make.__name__
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("FAIRGATE_CACHE", str(folder / "cache"))
                self._made[make] = make(self, folder / "shop").root
        target.mkdir(parents=True, exist_ok=True)
        for path in target.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        shutil.copytree(self._made[make], target, symlinks=True, dirs_exist_ok=True)
        return History(target)


def introduced(states, folder):
    """Make a repository whose main branch has a policy, fair answers and a baseline."""
    space = History.started(folder)
    with contextlib.chdir(folder):
        space.write("policies/small.yaml", POLICY)
        space.answers(fair)
        space.accept()
    space.commit("introduce the gate")
    return space


def regressed(states, folder):
    space = states.copy(introduced, folder)
    space.branch()
    with contextlib.chdir(folder):
        space.answers(worse)
    space.commit()
    return space


class History:
    """A clone with a branch `main`, in which a test makes commits."""

    def __init__(self, root):
        self.root = root

    @classmethod
    def started(cls, root) -> History:
        """Make a repository with sources and a workflow, but without a gate."""
        self = cls(root)
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", "--template=")
        self.write(".gitignore", ".fairgate/\nout/\n")
        self.write(WORKFLOW_PATH, WORKFLOW)
        self.sources(10)
        return self

    def git(self, *arguments):
        done = subprocess.run(
            ["git", *_QUICK, "-C", str(self.root), *arguments],
            capture_output=True, text=True, check=True, env={**os.environ, **IDENTITY},
        )  # fmt: skip
        return done.stdout.strip()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def read(self, name):
        return (self.root / name).read_text()

    def sources(self, count):
        rows = [{"id": f"s{i}", "text": f"Text number {i} is fine."} for i in range(count)]
        self.write("sources.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

    def answers(self, answer):
        """Write an answer for every case of the policy; for every second source its opposite."""
        (self.root / "answers.jsonl").touch()

        def plan():
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                assert main(["plan", "policies/small.yaml"]) == 0
            return printed.getvalue()

        lines = [
            json.dumps({"key": case["key"], "response": response})
            for case in planned(self.root, plan)
            if (response := following(case["key"], answer(case["key"]))) is not None
        ]
        self.write("answers.jsonl", "\n".join(lines) + "\n")

    def accept(self, reason="start", policy="policies/small.yaml"):
        """Make the checked-out state the baseline; the gate's own code is of no interest."""
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main(["run", policy, "--out", "out", "--quiet"])
            code = main(["baseline", "accept", "out", "--reason", reason, "--date", "2026-01-01"])
        assert code == 0

    def commit(self, message="change"):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def move(self, folder):
        """Put everything of the gate into a folder of main, and check out a branch."""
        (self.root / folder).mkdir(parents=True, exist_ok=True)
        for part in POLICY_PARTS:
            self.git("mv", part, f"{folder}/{part}")
        self.commit("one folder a service")
        self.branch()

    def branch(self, name="topic"):
        self.git("checkout", "--quiet", "-B", name, "main")

    def proposes(self, answer=None, files=()):
        """Commit a change on a branch: other answers, if any, and files by name; return its head."""
        self.branch()
        if answer is not None:
            self.answers(answer)
        for name, text in dict(files).items():
            self.write(name, text)
        return self.commit()

    def merge(self):
        """Check out what GitHub checks out for a pull request: the merge of both."""
        head = self.git("rev-parse", "HEAD")
        self.git("checkout", "--quiet", "--detach", "main")
        self.git("merge", "--quiet", "--no-ff", "-m", "merge", head)
        return head

    def land(self):
        self.git("branch", "--force", "main", "HEAD")
        self.git("checkout", "--quiet", "main")
