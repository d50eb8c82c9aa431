"""Runs as files for other tools: valid by their schemas and validators, nothing lost, nothing claimed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from canonical_results import CANONICAL, baseline
from canonical_rules import view_of
from fakes.planted import Bench, Plant, policy_of
from node.programs import installed

from fairgate.domain.outcomes import Provenance
from fairgate.features.exports import render_every_eval_ever, render_sarif

PLANT = Plant(biased={"A man": 0.9}, neutral_retrieval=0.2)
RUNS = {
    **{name: lambda name=name: CANONICAL[name]().result for name in CANONICAL},
    "biased": lambda: Bench(policy=policy_of(), sources=20, sets=("gender",)).run(PLANT).result,
}
HOSTILE = "::error::x\u202e\n<script>@all"


@pytest.fixture(params=RUNS)
def result(request):
    return RUNS[request.param]()


@pytest.fixture
def biased():
    return RUNS["biased"]()


def measured(result):
    return [item for item in result.measurements if item.value is not None]


def closed(required="", **properties):
    return {
        "type": "object", "required": required.split(), "properties": properties,
        "additionalProperties": False,
    }  # fmt: skip


TEXT, NUMBER, WHOLE = {"type": "string", "minLength": 1}, {"type": "number"}, {"type": "integer"}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
SHARE = {"type": "number", "minimum": 0, "maximum": 1}
RESULT = closed(
    "evaluation_name source_data metric_config score_details",
    evaluation_name=TEXT,
    source_data=closed(
        "dataset_name source_type", dataset_name=TEXT, source_type={"const": "other"}
    ),
    metric_config=closed(
        "lower_is_better score_type min_score max_score", evaluation_description=TEXT,
        lower_is_better={"type": "boolean"}, score_type={"const": "continuous"}, min_score=NUMBER,
        max_score=NUMBER, additional_details=TEXTS,
    ),
    score_details=closed(
        "score", score=NUMBER, details=TEXTS,
        uncertainty=closed(
            num_samples=WHOLE,
            confidence_interval=closed(
                "lower upper", lower=NUMBER, upper=NUMBER, confidence_level=SHARE, method=TEXT
            ),
        ),
    ),
)  # fmt: skip
SUBSET = closed(
    "schema_version evaluation_id retrieved_timestamp source_metadata model_info eval_library "
    "evaluation_results",
    schema_version={"const": "0.2.1"}, evaluation_id=TEXT, retrieved_timestamp=TEXT,
    source_metadata=closed(
        "source_type source_organization_name evaluator_relationship", source_name=TEXT,
        source_type={"enum": ["documentation", "evaluation_run"]}, source_organization_name=TEXT,
        evaluator_relationship={"enum": ["first_party", "third_party", "collaborative", "other"]},
        additional_details=TEXTS,
    ),
    eval_library=closed("name version", name=TEXT, version=TEXT),
    model_info=closed("name id", name=TEXT, id=TEXT, additional_details=TEXTS),
    evaluation_results={"type": "array", "items": RESULT},
    detailed_evaluation_results=closed(
        format={"enum": ["jsonl", "json"]}, file_path=TEXT, total_rows=WHOLE
    ),
)  # fmt: skip
"""What FairGate uses of Every Eval Ever's schema 0.2.1, closed at every level.

The published schema is in no package that tests can install, so this stands in for it: each required
field of the published one is required here, each value is of its type, and nothing else is allowed.
"""


def test_an_evaluation_record_keeps_to_the_subset_of_every_eval_ever_that_we_write(result):
    text = render_every_eval_ever(result, 0.9)
    assert text == render_every_eval_ever(result, 0.9)
    record = json.loads(text)
    jsonschema.Draft7Validator(SUBSET).validate(record)
    for item, found in zip(measured(result), record["evaluation_results"], strict=True):
        assert found["score_details"]["score"] == item.value
        config = found["metric_config"]
        assert config["min_score"] - 1e-9 <= item.value <= config["max_score"] + 1e-9
        assert item.where.items() <= config["additional_details"].items()
        if item.interval is not None:
            interval = found["score_details"]["uncertainty"]["confidence_interval"]
            assert (interval["lower"], interval["upper"]) == item.interval
            assert interval["confidence_level"] == 0.9


def test_hostile_names_are_made_harmless(biased):
    policy = biased.gate_input.policy.model_copy(update={"name": HOSTILE})
    provenance = Provenance(
        under_test={"generator": HOSTILE}, environment={}, fairgate="1", policy_path="p"
    )
    hostile = replace(
        biased, gate_input=replace(biased.gate_input, policy=policy, provenance=provenance)
    )
    text = render_every_eval_ever(hostile, 0.95)
    json.loads(text)
    assert "::" not in text
    assert "\\u202e\\n" not in text


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


@validated
@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (lambda run: run["tool"]["driver"]["rules"][0].pop("fullDescription"), "GH2012"),
        (lambda run: run["results"][0].update(locations=[]), "GH1015"),
        (lambda run: run["results"][0].update(message={}), "JSON1017"),
    ],
)
def test_the_validator_sees_a_broken_file(spoil, rule, tmp_path):
    log = json.loads(_written("regression"))
    spoil(log["runs"][0])
    assert ("error", rule) in _complaints(json.dumps(log), tmp_path)
