"""`--format` writes exactly the reports that it names, and never leaves another run's behind."""

import json
from xml.etree import ElementTree as ET

import pytest

NEEDED = {"run.json", "rows.jsonl", "executions.jsonl", "stop-rule.json", "parts.json"}


def written(workspace):
    return {path.name for path in (workspace.root / "out").iterdir()}


@pytest.fixture
def run(once):
    def make(workspace):
        gates = "  - {metric: asr/generation, max: 0.1}\n"
        answer = lambda key: "negative" if "#race/" in key else "positive"  # noqa: E731
        assert workspace.gate(answer, gates=gates) == 1
        assert written(workspace) == {"report.md", "report.html"} | NEEDED

    workspace = once("formats", make)
    return lambda *options: workspace.gate(options=options)


def test_the_named_reports_are_written_and_older_ones_removed(run, workspace):
    """The default is what a person reads."""
    for formats, files in (
        ("html,sarif,junit,json,md", {"report.md", "report.html", "report.sarif", "junit.xml"}),
        ("sarif", {"report.sarif"}),
        ("junit", {"junit.xml"}),
        ("json", set()),
    ):
        assert run("--format", formats) == 1
        assert written(workspace) == files | NEEDED
        if "json" in formats:
            assert json.loads(workspace.out)["result"] == {"outcome": "fail", "run": "out"}
            continue
        for name in files:
            assert name in workspace.out.replace("\n", " ")


def test_sarif_and_junit_of_the_plain_command_point_at_the_policy(run, workspace):
    assert run("--format", "sarif,junit") == 1
    log = json.loads((workspace.root / "out" / "report.sarif").read_text())
    found = next(r for r in log["runs"][0]["results"] if "locations" in r and r["level"] == "error")
    place = found["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "policy.yaml"
    lines = (workspace.root / "policy.yaml").read_text().splitlines()
    assert "asr/generation" in lines[place["region"]["startLine"] - 1]
    root = ET.parse(workspace.root / "out" / "junit.xml").getroot()  # noqa: S314 (made by us)
    assert root.get("failures") == "1"


def test_an_unknown_format_is_told_before_anything_runs_and_rescore_writes_formats(run, workspace):
    assert run("--format", "html,jnuit") == 2
    assert "no format is called 'jnuit'; did you mean `junit`?" in workspace.err
    assert written(workspace) == {"report.md", "report.html"} | NEEDED
    assert workspace.run("rescore", "out", "--format", "junit") == 1
    assert (workspace.root / "out" / "rescored" / "junit.xml").exists()
    assert not (workspace.root / "out" / "rescored" / "report.md").exists()
