"""The SARIF file as the SARIF project's own validator sees it, with GitHub's rules for uploads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from canonical_results import CANONICAL, baseline
from node.programs import installed

from fairgate.features.exports.sarif import render_sarif
from fairgate.reports.present import present
from fairgate.reports.view import ReportOptions

pytestmark = [
    pytest.mark.node,
    pytest.mark.skipif(sys.platform != "linux", reason="the validator is built for Linux"),
]
POLICY = "version: 1\ngates:\n  - {metric: a}\n  - {metric: b}\n"


def _written(name):
    view = present(CANONICAL[name](), ReportOptions(), baseline())
    return render_sarif(view, dict.fromkeys(range(9), 3), POLICY)


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


@pytest.mark.parametrize("name", CANONICAL)
def test_the_validator_finds_nothing(name, tmp_path):
    assert _complaints(_written(name), tmp_path) == set()


def _without_a_full_description(run):
    del run["tool"]["driver"]["rules"][0]["fullDescription"]


def _without_a_place(run):
    run["results"][0]["locations"] = []


def _with_an_empty_message(run):
    run["results"][0]["message"] = {}


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (_without_a_full_description, "GH2012"),
        (_without_a_place, "GH1015"),
        (_with_an_empty_message, "JSON1017"),
    ],
)
def test_the_validator_sees_a_broken_file(spoil, rule, tmp_path):
    log = json.loads(_written("regression"))
    spoil(log["runs"][0])
    assert ("error", rule) in _complaints(json.dumps(log), tmp_path)
