"""The how-to of generated cases, word for word."""

import json
import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "generate-cases.md"
POLICY = """\
version: 1
name: page
system: {recorded: answers.jsonl}
suites:
  - {id: people, sources: SOURCES, task: sentiment, relations: [genfair/*]ATTRIBUTES}
gates:
  - {metric: asr/generation, max: 0.5}
"""


@pytest.fixture
def blocks():
    found = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return {name: [text for kind, text in found if kind == name] for name in ("sh", "yaml", "json")}


def run_all(workspace, script):
    for line in script.splitlines():
        assert workspace.run(*shlex.split(line)[1:]) == 0, workspace.err


def plan(workspace, sources, attributes=""):
    text = POLICY.replace("SOURCES", sources).replace("ATTRIBUTES", attributes)
    (workspace.root / "policy.yaml").write_text(text)
    return workspace.run("plan", "policy.yaml")


def test_the_commands_and_the_suite(workspace, blocks):
    run_all(workspace, blocks["sh"][0])
    assert "valid file of 200 generated cases" in workspace.out
    suite = blocks["yaml"][0]
    assert "sources: cases.jsonl" in suite
    assert "relations: [genfair/*]" in suite
    assert plan(workspace, "cases.jsonl", ", limit: 40") == 0, workspace.err
    keys = [json.loads(line)["key"] for line in workspace.out.splitlines()]
    assert sum("#genfair/mr3-selective-negation/" in key for key in keys) > 40


def test_the_line_of_a_case_is_one(workspace, blocks):
    header = {"fairgate-cases": 1, "generator": "own", "t": 2, "templates": "genfair"}
    workspace.write("own.jsonl", [header, json.loads(blocks["json"][0])])
    assert workspace.run("check", "own.jsonl") == 0, workspace.err


def test_templates_and_attributes_of_ones_own(workspace, blocks):
    (workspace.root / "own.yaml").write_text(blocks["yaml"][1])
    (workspace.root / "height.yaml").write_text(blocks["yaml"][2])
    run_all(workspace, blocks["sh"][1])
    assert plan(workspace, "own.jsonl", ", attributes: [height.yaml]") == 0, workspace.err
    assert "who is not short" in workspace.out or "who is not tall" in workspace.out
    assert plan(workspace, "own.jsonl") == 2
    assert "no attribute is called 'height'" in workspace.err
    assert plan(workspace, "own.jsonl", ", attributes: [depth.yaml]") == 2
    assert "there is no file 'depth.yaml'" in workspace.err
