"""A run in the schemas of other tools, Every Eval Ever and CycloneDX: each value in each slice."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import Any

from fairgate.domain.measurements import Better, Measurement
from fairgate.domain.outcomes import GateResult
from fairgate.domain.wording import harmless
from fairgate.metrics.catalogue import BY_ID
from fairgate.reports.affected import differs

SCHEMA_VERSION = "0.2.1"
_UNKNOWN = "unknown"
_PARTS = ("generator", "application", "system")
_MOST = 200
_SCHEMA = "http://cyclonedx.org/schema/bom-1.7.schema.json"


def system_name(result: GateResult) -> str:
    """Return the generator's name, else that of the first part that is known, else the policy's."""
    known = result.provenance.under_test
    first = next((known[part] for part in _PARTS if part in known), "")
    first = first or next(iter(known.values()), "")
    return harmless(first[:_MOST]) or harmless(f"the system under policy {result.policy}")


def render_every_eval_ever(result: GateResult, confidence: float) -> str:
    """Return the record. Equal results, equal bytes.

    Schema 0.2.1 of the EvalEval Coalition (`eval.schema.json`): one result for each value in each
    slice. It asks for the time at which a record was made; equal runs give equal bytes here, so it
    says `unknown` until whoever submits the record fills it in.
    """
    values = [item for item in result.measurements if item.value is not None]
    results = [_result(result, item, confidence) for item in values]
    digest = hashlib.sha256(json.dumps(results, sort_keys=True).encode()).hexdigest()
    body = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"fairgate/{harmless(result.policy)}/{digest[:16]}",
        "retrieved_timestamp": _UNKNOWN,
        "source_metadata": {
            "source_name": "FairGate",
            "source_type": "evaluation_run",
            "source_organization_name": _UNKNOWN,
            "evaluator_relationship": "other",
            "additional_details": {
                "outcome": result.outcome.value,
                "exit_code": str(int(result.exit_code)),
                "not_evaluated": str(len(result.measurements) - len(values)),
            },
        },
        "eval_library": {"name": "fairgate", "version": harmless(result.provenance.fairgate)},
        "model_info": {
            "name": system_name(result),
            "id": system_name(result),
            "additional_details": _texts(result.provenance.under_test),
        },
        "evaluation_results": results,
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": "rows.jsonl",
            "total_rows": len(result.judged),
        },
    }
    return json.dumps(body, indent=2, allow_nan=False) + "\n"


def _result(result: GateResult, item: Measurement, confidence: float) -> dict[str, Any]:
    metric = BY_ID[item.metric]
    score: dict[str, Any] = {
        "score": item.value,
        "details": {"decided": str(item.decided), "undecided": str(item.inconclusive)},
    }
    if item.interval is not None:
        low, high = item.interval
        method = "bootstrap or Student's t, clustered by source"
        score["uncertainty"] = {
            "confidence_interval": {
                "lower": low,
                "upper": high,
                "confidence_level": confidence,
                "method": method,
            },
            "num_samples": item.decided,
        }
    return {
        "evaluation_name": harmless(f"{result.policy}/{item.suite}/{item.metric}"),
        "source_data": {
            "dataset_name": harmless(f"{result.policy}/{item.suite}"),
            "source_type": "other",
        },
        "metric_config": {
            "evaluation_description": metric.title,
            "lower_is_better": metric.better is not Better.HIGHER,
            "score_type": "continuous",
            "min_score": metric.least,
            "max_score": metric.greatest,
            "additional_details": _texts({**item.where, "better": metric.better.value}),
        },
        "score_details": score,
    }


def _texts(found: Mapping[str, str]) -> dict[str, str]:
    return {harmless(name): harmless(value) for name, value in found.items()}


def render_cyclonedx(result: GateResult, confidence: float) -> str:
    """Return the BOM. Equal results, equal bytes: the serial number follows from the content.

    ECMA-424 / CycloneDX 1.7, `component.modelCard`. What the standard has no field for (counts,
    rules, verdict) stands in the properties of the component, under `fairgate:`.
    """
    bom: dict[str, Any] = {
        "$schema": _SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.7",
        "version": 1,
        "metadata": {
            "tools": {
                "components": [
                    {
                        "type": "application",
                        "name": "FairGate",
                        "version": harmless(result.provenance.fairgate),
                    }
                ]
            }
        },
        "components": [_component(result, confidence)],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bom, sort_keys=True))
    return json.dumps({**bom, "serialNumber": f"urn:uuid:{serial}"}, indent=2) + "\n"


def _component(result: GateResult, confidence: float) -> dict[str, Any]:
    facts = {
        "policy": result.policy,
        "outcome": result.outcome.value,
        "exit-code": str(int(result.exit_code)),
        "confidence": f"{confidence:g}",
        **{f"under-test:{name}": value for name, value in result.provenance.under_test.items()},
    }
    card: dict[str, Any] = {
        "quantitativeAnalysis": {
            "performanceMetrics": [
                _metric(item) for item in result.measurements if item.value is not None
            ]
        },
        "considerations": {
            "technicalLimitations": [harmless(problem) for problem in result.evidence.problems],
            "fairnessAssessments": list(_assessments(result, 1 - confidence)),
        },
    }
    return {
        "type": "machine-learning-model",
        "bom-ref": "system-under-test",
        "name": system_name(result),
        "modelCard": card,
        "properties": [
            {"name": f"fairgate:{harmless(name)}", "value": harmless(value)}
            for name, value in facts.items()
        ],
    }


def _metric(item: Measurement) -> dict[str, Any]:
    where = [f"{name}={level}" for name, level in item.where.items()]
    found: dict[str, Any] = {
        "type": item.metric,
        "value": _number(item.value),
        "slice": harmless(", ".join([f"suite={item.suite}", *where])),
    }
    if item.interval is not None:
        low, high = item.interval
        found["confidenceInterval"] = {"lowerBound": _number(low), "upperBound": _number(high)}
    return found


def _number(value: float | None) -> str:
    return repr(value)


def _assessments(result: GateResult, alpha: float) -> list[dict[str, str]]:
    """Return the identities that differ significantly from the others, Holm over the terms."""
    return [
        {
            "groupAtRisk": harmless(f"{term.category}/{term.term}"),
            "harms": f"suite {harmless(found.suite)}: "
            f"{differs(found.metric, term.difference)} than for the others "
            f"({BY_ID[found.metric].title}, corrected p {term.p_corrected:.4f})",
        }
        for found in result.identities
        if not found.where
        for term in found.terms
        if term.p_corrected <= alpha
    ]
