"""A run in the formats of others: SARIF, JUnit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from fairgate import REPOSITORY
from fairgate.domain.outcomes import Outcome
from fairgate.metrics.catalogue import METRICS
from fairgate.reports.blocks import View
from fairgate.reports.escaping import plain, sarif_text
from fairgate.reports.figures import RuleRow
from fairgate.reports.formats import Format, Unjudged

# SARIF 2.1.0: rules that did not pass, each anchored on its line of the policy. GitHub shows only
# the first location of a result and wants a full region, so a result points at the line where the
# policy states the rule. There is no security severity: these are no vulnerabilities.

RESULT_LIMIT = 5000
"""GitHub keeps no more results of a run."""
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_TEXT_LIMIT = 1000
_LEVELS = {Outcome.FAIL: "error", Outcome.INCONCLUSIVE: "warning", Outcome.NOT_EVALUATED: "note"}


def render_sarif(view: View, gate_lines: Mapping[int, int], policy_text: str) -> str:
    """Return the SARIF log; `gate_lines` gives the 1-based policy line of each rule's gate."""
    from urllib.parse import quote

    rows = [row for row in view.rules if row.rule.outcome in _LEVELS and not row.rule.is_reported]
    rows.sort(key=lambda row: list(_LEVELS).index(row.rule.outcome))
    metrics = list(dict.fromkeys(row.rule.metric for row in rows))
    lines = policy_text.splitlines()
    results = []
    path = view.policy_path.replace("\\", "/").removeprefix("./").encode("utf-8", "replace")
    uri = quote(path, safe="/.-_~").lstrip("/") or "policy"
    for row in rows[:RESULT_LIMIT]:
        level = _LEVELS[row.rule.outcome]
        where = f" ({row.where})" if row.where else ""
        text = f"{row.title}{where}: {'; '.join(row.reasons) or row.word}"
        parts = (view.policy, row.rule.metric, row.suite, row.where, str(row.rule.position))
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        location = {
            "artifactLocation": {"uri": uri},
            "region": _region(gate_lines.get(row.rule.position), lines),
        }
        why = {"justification": sarif_text(str(row.rule.waiver))}
        suppressed = [{"kind": "external", "status": "accepted", **why}]
        results.append(
            {
                "ruleId": row.rule.metric,
                "ruleIndex": metrics.index(row.rule.metric),
                "level": "warning" if level == "error" and not row.rule.fails_gate else level,
                "message": {"text": sarif_text(text[:_TEXT_LIMIT])},
                "locations": [{"physicalLocation": location}],
                "partialFingerprints": {"fairgateRule/v1": digest[:32]},
                **({"suppressions": suppressed} if row.rule.waiver else {}),
            }
        )
    driver = {
        "name": "FairGate",
        "version": view.result.gate_input.provenance.fairgate,
        "informationUri": REPOSITORY,
        "rules": [_descriptor(metric) for metric in metrics],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"fairgate/{sarif_text(view.policy)}/"},
        "columnKind": "utf16CodeUnits",
        "invocations": [{"executionSuccessful": view.exit_code in (0, 1)}],
        "results": results,
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False) + "\n"


def _descriptor(metric: str) -> dict[str, object]:
    entry = METRICS.get(metric)
    title = entry.title if entry else metric
    source = f" Defined in {entry.defined_by}." if entry else ""
    return {
        "id": metric,
        "name": "".join(part.capitalize() for part in metric.replace("/", "-").split("-")),
        "shortDescription": {"text": f"Fairness rule: {title}"},
        "fullDescription": {
            "text": f"The policy's rule on {title} ({metric}) did not pass.{source}"
        },
        "help": {
            "text": "Read the report for its terms and cases. Reproduce with `fairgate "
            "run`; a change that is wanted is accepted with `fairgate baseline accept`."
        },
        "defaultConfiguration": {"level": "error"},
        "properties": {"precision": "high", "tags": ["fairness"]},
    }


def _region(line: int | None, lines: Sequence[str]) -> dict[str, int]:
    """Return the whole line without its indentation; the first line where none is known."""
    n = line if line is not None and 0 < line <= len(lines) else 1
    text = lines[n - 1] if lines else ""
    start = len(text) - len(text.lstrip()) + 1
    end = len(text.rstrip().encode("utf-16-le", "surrogatepass")) // 2 + 1
    return {"startLine": n, "startColumn": start, "endLine": n, "endColumn": max(end, start + 1)}


# JUnit test cases of the rules.


def render_junit(view: View) -> str:
    """Return `junit.xml`.

    A broken bound or a regression is a failure, a run without a verdict is an error, and what could
    not be judged for want of a baseline or of sources is skipped with the reason. There are no
    times.
    """
    # Few runs write it, and nothing else of a gate reads or writes XML.
    from xml.etree import ElementTree as ET

    root = ET.Element("testsuites", name="FairGate")
    suite = ET.SubElement(root, "testsuite", name=plain(view.policy))
    properties = ET.SubElement(suite, "properties")
    provenance = view.result.gate_input.provenance
    about = {
        "outcome": view.outcome.value,
        "exit-code": str(view.exit_code),
        "fairgate": provenance.fairgate,
        "commit": view.commit,
        "policy": view.policy_path,
        "baseline": view.baseline_path,
        **{f"under-test.{part}": now for part, now in provenance.under_test.items()},
    }
    for key, value in about.items():
        ET.SubElement(properties, "property", name=plain(key), value=plain(value))
    for row in view.rules:
        group = plain(f"{view.policy}.{row.suite}" if row.suite else view.policy)
        name = plain(f"{row.rule.metric}{f' [{row.where}]' if row.where else ''}")
        case = ET.SubElement(suite, "testcase", classname=group, name=name, time="0")
        if row.rule.outcome is not Outcome.PASS:
            ET.SubElement(case, *_not_passed(row))
    problems: Sequence[str] = ()
    if view.outcome is Outcome.INCONCLUSIVE:  # a failed gate has a verdict, whatever else was wrong
        lines = [*view.result.evidence.problems, *view.result.incompatible]
        problems = lines or [view.exit_meaning]
    for number, problem in enumerate(problems, start=1):
        name = f"verdict {number}"
        case = ET.SubElement(suite, "testcase", classname=plain(view.policy), name=name, time="0")
        ET.SubElement(case, "error", type=view.exit_meaning, message=plain(problem))
    for element in (suite, root):
        element.set("tests", str(len(suite.findall("testcase"))))
        for attribute in ("failures", "errors", "skipped"):
            kind = suite.findall(f"testcase/{attribute.removesuffix('s')}")
            element.set(attribute, str(len(kind)))
        element.set("time", "0")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _unjudged_junit(unjudged: Unjudged) -> str:
    """Return `junit.xml` without a rule: an error, or a case that is skipped."""
    from xml.etree import ElementTree as ET

    counts = {"tests": 1, "errors": int(unjudged.is_error), "skipped": int(not unjudged.is_error)}
    about = {"name": "FairGate", "failures": "0"} | {name: str(n) for name, n in counts.items()}
    root = ET.Element("testsuites", about)
    suite = ET.SubElement(root, "testsuite", about)
    case = ET.SubElement(suite, "testcase", classname="FairGate", name=plain(unjudged.title))
    text = plain(unjudged.text)
    ET.SubElement(case, "error" if unjudged.is_error else "skipped", message=text)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _not_passed(row: RuleRow) -> tuple[str, dict[str, str]]:
    """Return name and attributes of the element that says why a rule did not pass."""
    message = plain("; ".join(row.reasons) or row.word)
    if row.rule.fails_gate:
        return "failure", {"type": " and ".join(row.rule.failed) or "rule", "message": message}
    if row.rule.outcome is Outcome.INCONCLUSIVE and not row.rule.advisory:
        return "failure", {"type": "inconclusive", "message": message}
    advisory = "advisory, " if row.rule.advisory else ""
    return "skipped", {"message": f"{advisory}{row.word}: {message}"}


SARIF = Format(
    id="sarif", file="report.sarif", shown_as="SARIF", output="sarif-file",
    render=lambda view: render_sarif(view, view.options.gate_lines, view.options.policy_text),
)  # fmt: skip
JUNIT = Format(
    id="junit", file="junit.xml", shown_as="JUnit", output="junit-file",
    render=render_junit, unjudged=_unjudged_junit,
)  # fmt: skip
