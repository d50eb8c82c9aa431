"""A run in the schema of Every Eval Ever, 0.2.1: one result for each value in each slice.

EvalEval Coalition, `eval.schema.json`. The schema asks for the time at which a record was made;
equal runs give equal bytes here, so it says `unknown` until whoever submits the record fills it in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from fairgate.domain.measurements import Better, Measurement
from fairgate.domain.outcomes import GateResult
from fairgate.domain.wording import harmless
from fairgate.features.exports.system_name import system_name
from fairgate.metrics.catalogue import BY_ID

SCHEMA_VERSION = "0.2.1"
_UNKNOWN = "unknown"


def render_every_eval_ever(result: GateResult, confidence: float) -> str:
    """Return the record. Equal results, equal bytes."""
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
