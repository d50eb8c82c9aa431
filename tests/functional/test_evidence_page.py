"""The page for auditors: its ratios, and no claim of compliance."""

import json
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "evidence.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = [
    ("gender", "woman", ["positive", "negative"]),
    ("gender", "man", ["positive", "positive", "negative", "positive", None]),
    ("race", "asian", ["negative", "negative"]),
]


def test_impact_ratios_are_those_of_a_computation_by_hand(tmp_path):
    (script,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    lines = [
        {"category": category, "term": term, "control": False, "follow_up_label": label}
        for category, term, labels in ROWS
        for label in labels
    ]
    lines.append(
        {"category": "neutral", "term": "reader", "control": True, "follow_up_label": "positive"}
    )
    folder = tmp_path / "runs" / "hiring"
    folder.mkdir(parents=True)
    (folder / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "gender woman 0.667",
        "gender man 1.0",
        "race asian nobody is selected",
    ]


def test_a_run_has_what_the_ratios_need(workspace):
    assert workspace.gate("positive") == 0, workspace.err
    for row in workspace.rows():
        assert {"control", "category", "term", "follow_up_label"} <= row.keys()


def test_the_page_claims_no_compliance():
    sentences = [each for each in re.split(r"(?<=\.)\s", TEXT) if "complian" in each.lower()]
    assert [" ".join(each.split()) for each in sentences] == ["FairGate claims no compliance."]
