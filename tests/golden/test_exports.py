"""Runs as files for other tools: valid by their schemas, nothing lost, nothing claimed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
from canonical_results import CANONICAL
from fakes.planted import Bench, Plant, policy_of

from fairgate.domain.outcomes import Provenance
from fairgate.features.exports.control_map import render_control_map
from fairgate.features.exports.every_eval_ever import render_cyclonedx, render_every_eval_ever

RUNS = {
    **{name: lambda name=name: CANONICAL[name]().result for name in CANONICAL},
    "biased": lambda: (
        Bench(policy=policy_of(), sources=20, sets=("gender",))
        .run(Plant(biased={"A man": 0.9}, neutral_retrieval=0.2))
        .result
    ),
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


def cyclonedx_validator():
    """Return what checks a BOM by the published schema of CycloneDX 1.7."""
    pytest.importorskip("cyclonedx", reason="cyclonedx-python-lib, with the schema, is not there")
    from referencing import Registry, Resource

    folder = resources.files("cyclonedx.schema").joinpath("_res")
    names = ("bom-1.7", "spdx", "jsf-0.82", "cryptography-defs")
    schemas = [json.loads((folder / f"{n}.SNAPSHOT.schema.json").read_text()) for n in names]
    registry = Registry().with_resources(
        [(schema["$id"], Resource.from_contents(schema)) for schema in schemas]
    )
    return jsonschema.Draft7Validator(schemas[0], registry=registry)


def test_a_model_card_is_valid_by_the_schema_of_cyclonedx_1_7(result):
    check = cyclonedx_validator()
    bom = json.loads(render_cyclonedx(result, 0.95))
    check.validate(bom)
    for broken in ({**bom, "bomFormat": "SPDX"}, {**bom, "more": 1}, {**bom, "components": [{}]}):
        assert not check.is_valid(broken)
    card = bom["components"][0]["modelCard"]
    metrics = card["quantitativeAnalysis"]["performanceMetrics"]
    assert len(metrics) == len(measured(result))
    card["quantitativeAnalysis"]["performanceMetrics"][0]["value"] = 0.5
    assert not check.is_valid(bom)


def test_a_model_card_has_every_value_with_slice_and_interval(result):
    bom = json.loads(render_cyclonedx(result, 0.95))
    assert render_cyclonedx(result, 0.95) == render_cyclonedx(result, 0.95)
    metrics = bom["components"][0]["modelCard"]["quantitativeAnalysis"]["performanceMetrics"]
    for item, metric in zip(measured(result), metrics, strict=True):
        assert (metric["type"], float(metric["value"])) == (item.metric, item.value)
        assert metric["slice"].startswith(f"suite={item.suite}")
        assert all(f"{name}={level}" in metric["slice"] for name, level in item.where.items())
        found = metric.get("confidenceInterval")
        ends = found and (float(found["lowerBound"]), float(found["upperBound"]))
        assert ends == item.interval


def test_identities_that_differ_stand_in_the_fairness_assessment(biased):
    bom = json.loads(render_cyclonedx(biased, 0.95))
    found = bom["components"][0]["modelCard"]["considerations"]["fairnessAssessments"]
    at_risk = {one["groupAtRisk"] for one in found}
    assert "gender/man" in at_risk
    (own,) = [one for one in found if one["groupAtRisk"] == "gender/man"]
    assert " points more often than for the others" in own["harms"]
    fair = Bench(policy=policy_of(), sources=20, sets=("gender",)).run(Plant()).result
    other = json.loads(render_cyclonedx(fair, 0.95))["components"][0]["modelCard"]
    assert other["considerations"]["fairnessAssessments"] == []


def closed(required, **properties):
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


TEXT, NUMBER = {"type": "string", "minLength": 1}, {"type": "number"}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
RESULT = closed(
    ["evaluation_name", "source_data", "metric_config", "score_details"],
    evaluation_name=TEXT,
    source_data=closed(
        ["dataset_name", "source_type"], dataset_name=TEXT, source_type={"const": "other"}
    ),
    metric_config=closed(
        ["lower_is_better", "score_type", "min_score", "max_score"],
        evaluation_description=TEXT,
        lower_is_better={"type": "boolean"},
        score_type={"const": "continuous"},
        min_score=NUMBER,
        max_score=NUMBER,
        additional_details=TEXTS,
    ),
    score_details=closed(
        ["score"],
        score=NUMBER,
        details=TEXTS,
        uncertainty=closed(
            [],
            confidence_interval=closed(
                ["lower", "upper"],
                lower=NUMBER,
                upper=NUMBER,
                confidence_level={"type": "number", "minimum": 0, "maximum": 1},
                method=TEXT,
            ),
            num_samples={"type": "integer"},
        ),
    ),
)
SUBSET = closed(
    [
        *("schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata"),
        *("model_info", "eval_library", "evaluation_results"),
    ],
    schema_version={"const": "0.2.1"},
    evaluation_id=TEXT,
    retrieved_timestamp=TEXT,
    source_metadata=closed(
        ["source_type", "source_organization_name", "evaluator_relationship"],
        source_name=TEXT,
        source_type={"enum": ["documentation", "evaluation_run"]},
        source_organization_name=TEXT,
        evaluator_relationship={"enum": ["first_party", "third_party", "collaborative", "other"]},
        additional_details=TEXTS,
    ),
    eval_library=closed(["name", "version"], name=TEXT, version=TEXT),
    model_info=closed(["name", "id"], name=TEXT, id=TEXT, additional_details=TEXTS),
    evaluation_results={"type": "array", "items": RESULT},
    detailed_evaluation_results=closed(
        [],
        format={"enum": ["jsonl", "json"]},
        file_path=TEXT,
        total_rows={"type": "integer"},
    ),
)
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


def test_the_control_map_names_what_the_run_has_and_what_it_has_not(biased):
    found = json.loads(render_control_map(biased))
    frameworks = {
        (clause["framework"], clause["clause"].split("(")[0]) for clause in found["clauses"]
    }
    assert {("AI Act", f"Article {n}") for n in (9, 10, 15)} <= frameworks
    assert ("NIST AI RMF", "MEASURE 2.11") in frameworks
    assert any(framework == "ISO/IEC 42001" for framework, _ in frameworks)
    for clause in found["clauses"]:
        assert clause["gaps"], clause
    (measure,) = [clause for clause in found["clauses"] if clause["clause"] == "MEASURE 2.11"]
    shown = {one["id"]: one["found"] for one in measure["evidence"]}
    assert shown["identities"] == "3 identities compared with the others"
    (testing,) = [c for c in found["clauses"] if c["clause"] == "Article 9(6) and 9(8)"]
    assert "the run was compared with no baseline" in testing["gaps"]
    assert "the policy itself was not tested (`fairgate mutate --save`)" in testing["gaps"]
    assert "baseline" not in {one["id"] for one in testing["evidence"]}


def test_a_run_with_nothing_is_evidence_of_nothing(biased):
    empty = replace(
        biased,
        rules=[],
        measurements=[],
        identities=[],
        attribution=[],
        plan=replace(biased.plan, units=[]),
        evidence=replace(biased.evidence, planned=0, decided=0),
    )
    found = json.loads(render_control_map(empty))
    assert all(clause["evidence"] == [] for clause in found["clauses"])


def test_nothing_claims_that_a_clause_is_met(result):
    text = render_control_map(result) + render_cyclonedx(result, 0.95)
    assert not re.search(r"complian|conform|certif|satisfies", text, re.IGNORECASE)
    folder = Path(__file__).parents[2] / "fairgate" / "data" / "controls"
    for path in folder.iterdir():
        assert "complian" not in path.read_text().lower()


def test_hostile_names_are_made_harmless(biased):
    hostile = replace(
        biased,
        policy=HOSTILE,
        provenance=Provenance(
            under_test={"generator": HOSTILE}, environment={}, fairgate="1", policy_path="p"
        ),
    )
    for text in (
        render_cyclonedx(hostile, 0.95),
        render_every_eval_ever(hostile, 0.95),
        render_control_map(hostile),
    ):
        json.loads(text)
        assert "::" not in text
        assert "\\u202e\\n" not in text
