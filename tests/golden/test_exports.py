"""Runs as files for other tools: valid by their schemas and validators, nothing lost, nothing claimed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from canonical_results import CANONICAL, baseline
from canonical_rules import view_of
from node.programs import installed

from fairgate.features.exports import render_sarif

POLICY = "version: 1\ngates:\n  - {metric: a}\n  - {metric: b}\n"


def validated(test):
    only = pytest.mark.skipif(sys.platform != "linux", reason="the validator is built for Linux")
    return pytest.mark.node(only(test))


def _view(name):
    return view_of(CANONICAL[name](), baseline())


def _written(name):
    return render_sarif(_view(name), dict.fromkeys(range(9), 3), POLICY)


def results_of(*given):
    return json.loads(render_sarif(*given))["runs"][0]["results"]


def test_sarif_points_at_the_line_of_the_policy():
    text = "gates:\n  - {metric: a}\n  - {metric: b, max: 1}  \n"
    results = results_of(_view("regression"), {0: 2, 1: 3}, text)
    regions = [r["locations"][0]["physicalLocation"]["region"] for r in results]
    assert regions == [
        {"startLine": 2, "startColumn": 3, "endLine": 2, "endColumn": 16},
        {"startLine": 3, "startColumn": 3, "endLine": 3, "endColumn": 24},
    ]
    assert [r["level"] for r in results] == ["error", "error"]
    assert len({r["partialFingerprints"]["fairgateRule/v1"] for r in results}) == 2


@pytest.mark.parametrize("text", ["", "\n\n", "x"])
def test_sarif_regions_are_never_empty(text):
    for result in results_of(_view("regression"), {0: 99}, text):
        region = result["locations"][0]["physicalLocation"]["region"]
        assert region["startLine"] == 1
        assert region["endColumn"] > region["startColumn"]


def _complaints(text: str, folder: Path):
    """Return (level, rule) of each; the exit code is 0 even with errors."""
    validator = installed("@microsoft/sarif-multitool-linux/Sarif.Multitool")
    validator.chmod(0o755)  # its install script would do that, and none is run
    log, out = folder / "report.sarif", folder / "validated.sarif"
    log.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [
            validator, "validate", log, "--rule-kind", "Sarif;Ghas",
            "--level", "Error;Warning", "--output", out,
        ],
        env={**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "1 files scanned" in done.stdout, done.stdout + done.stderr
    (run,) = json.loads(out.read_text(encoding="utf-8"))["runs"]
    assert run["invocations"][0]["executionSuccessful"]
    return {(result.get("level", "warning"), result["ruleId"]) for result in run["results"]}


@validated
@pytest.mark.parametrize("name", CANONICAL)
def test_the_validator_finds_nothing(name, tmp_path):
    assert _complaints(_written(name), tmp_path) == set()
