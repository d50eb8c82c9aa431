"""A run as a CycloneDX 1.7 model card: every value with its slice and its interval.

ECMA-424 / CycloneDX 1.7, `component.modelCard`. What the standard has no field for (counts, rules,
verdict) stands in the properties of the component, under `fairgate:`.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import GateResult
from fairgate.domain.wording import harmless
from fairgate.features.exports.system_name import system_name
from fairgate.metrics.catalogue import BY_ID
from fairgate.reports.alerts import differs

_SCHEMA = "http://cyclonedx.org/schema/bom-1.7.schema.json"


def render_cyclonedx(result: GateResult, confidence: float) -> str:
    """Return the BOM. Equal results, equal bytes: the serial number follows from the content."""
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
