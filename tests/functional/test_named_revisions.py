"""A revision that its author names saves asking again, but not where the author is a stranger."""

import json
import sys

import pytest

from fairgate.cli import main

PROGRAM = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    bad = {bad} and "Asian" in asked["query"]
    positive = ("fine" in asked["query"]) != bad
    answer = "positive" if positive else "negative"
    print(json.dumps({{"id": asked["id"], "answer": answer}}), flush=True)
"""
POLICY = """\
version: 1
name: revised
system: {{command: {{run: [{python}, ask.py], revision: "1"}}}}
suites:
  - {{id: sentiment, task: sentiment, sources: sources.jsonl, perturbations: [race]}}
gates:
  - {{metric: asr/generation, max: 0.05}}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a folder with a program under test that answers well."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": f"s{n}", "text": f"Text number {n} is {'fine' if n % 2 else 'poor'}."}
        for n in range(6)
    ]
    (tmp_path / "sources.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "policy.yaml").write_text(POLICY.format(python=json.dumps(sys.executable)))
    (tmp_path / "ask.py").write_text(PROGRAM.format(bad=False))
    return tmp_path


def run(*more):
    return main(["run", "policy.yaml", "--quiet", "--cache", "store", *more])


def test_a_confined_run_asks_anew(project):
    assert run("--root", ".") == 0
    (project / "ask.py").write_text(PROGRAM.format(bad=True))
    assert run("--root", ".") == 1


def test_the_user_s_own_word_counts(project):
    assert run() == 0
    (project / "ask.py").write_text(PROGRAM.format(bad=True))
    assert run() == 0
