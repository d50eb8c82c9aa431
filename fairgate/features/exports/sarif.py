"""Rules that did not pass as SARIF 2.1.0, each anchored on its line of the policy.

GitHub shows only the first location of a result and wants a full region, so a result points at the
line where the policy states the rule. There is no security severity: these are no vulnerabilities.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from fairgate.domain.outcomes import Outcome
from fairgate.metrics.catalogue import BY_ID
from fairgate.reports.escaping import sarif_text
from fairgate.reports.rule_rows import RuleRow
from fairgate.reports.view import View

RESULT_LIMIT = 5000
"""GitHub keeps no more results of a run."""
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_PROJECT = "https://github.com/org/fairgate"
_TEXT_LIMIT = 1000
_LEVELS = {
    Outcome.FAIL: "error",
    Outcome.INCONCLUSIVE: "warning",
    Outcome.NOT_EVALUATED: "note",
}


def render_sarif(view: View, gate_lines: Mapping[int, int], policy_text: str) -> str:
    """Return the SARIF log; `gate_lines` gives the 1-based policy line of each rule's gate."""
    return json.dumps(sarif(view, gate_lines, policy_text), indent=2, allow_nan=False) + "\n"


def sarif(view: View, gate_lines: Mapping[int, int], policy_text: str) -> dict[str, object]:
    """Return the SARIF log as plain values."""
    judged = [*view.rules, *view.alerts]
    rows = [row for row in judged if row.outcome in _LEVELS and not row.is_reported]
    rows.sort(key=lambda row: list(_LEVELS).index(row.outcome))
    metrics = list(dict.fromkeys(row.metric for row in rows))
    lines = policy_text.splitlines()
    results = [
        _result(view, row, metrics.index(row.metric), _region(gate_lines.get(row.position), lines))
        for row in rows[:RESULT_LIMIT]
    ]
    driver = {
        "name": "FairGate",
        "version": view.fairgate,
        "informationUri": _PROJECT,
        "rules": [_descriptor(metric) for metric in metrics],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"fairgate/{sarif_text(view.policy)}/"},
        "columnKind": "utf16CodeUnits",
        "invocations": [{"executionSuccessful": view.exit_code in (0, 1)}],
        "results": results,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _descriptor(metric: str) -> dict[str, object]:
    known = BY_ID.get(metric)
    title = known.title if known else metric
    source = f" Defined in {known.reference}." if known else ""
    return {
        "id": metric,
        "name": "".join(part.capitalize() for part in metric.replace("/", "-").split("-")),
        "shortDescription": {"text": f"Fairness rule: {title}"},
        "fullDescription": {
            "text": f"The policy's rule on {title} ({metric}) did not pass.{source}"
        },
        "help": {
            "text": "Read the report for the terms and cases behind it. Reproduce with `fairgate "
            "run`; a change that is wanted is accepted with `fairgate baseline accept`."
        },
        "defaultConfiguration": {"level": "error"},
        "properties": {"precision": "high", "tags": ["fairness"]},
    }


def _result(view: View, row: RuleRow, index: int, region: Mapping[str, int]) -> dict[str, object]:
    level = _LEVELS[row.outcome]
    if row.is_advisory and level == "error":
        level = "warning"
    where = f" ({row.where})" if row.where else ""
    text = f"{row.title}{where}: {'; '.join(row.reasons) or row.word}"
    return {
        "ruleId": row.metric,
        "ruleIndex": index,
        "level": level,
        "message": {"text": sarif_text(text[:_TEXT_LIMIT])},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(view.policy_path)},
                    "region": dict(region),
                }
            }
        ],
        "partialFingerprints": {"fairgateRule/v1": _fingerprint(view, row)},
    }


def _region(line: int | None, lines: Sequence[str]) -> dict[str, int]:
    """Return the whole line without its indentation; the first line where none is known."""
    number = line if line is not None and 0 < line <= len(lines) else 1
    text = lines[number - 1] if lines else ""
    start = len(text) - len(text.lstrip()) + 1
    end = len(text.rstrip().encode("utf-16-le", "surrogatepass")) // 2 + 1
    return {
        "startLine": number,
        "startColumn": start,
        "endLine": number,
        "endColumn": max(end, start + 1),
    }


def _fingerprint(view: View, row: RuleRow) -> str:
    parts = (view.policy, row.metric, row.suite, row.where, str(row.position))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _uri(path: str) -> str:
    from urllib.parse import quote

    clean = path.replace("\\", "/").removeprefix("./").encode("utf-8", "replace")
    return quote(clean, safe="/.-_~").lstrip("/") or "policy"
