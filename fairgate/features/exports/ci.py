"""The verdict in forms that other tools show: rules as JUnit test cases, and a badge."""

from __future__ import annotations

import json
from collections.abc import Iterator

from fairgate.domain.outcomes import Outcome
from fairgate.domain.wording import harmless
from fairgate.reports.escaping import plain
from fairgate.reports.figures import NONE
from fairgate.reports.rule_rows import RuleRow
from fairgate.reports.view import View

_COLOURS = {
    Outcome.PASS: "brightgreen",
    Outcome.FAIL: "red",
    Outcome.INCONCLUSIVE: "yellow",
    Outcome.NOT_EVALUATED: "lightgrey",
}


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
    for key, value in _properties(view).items():
        ET.SubElement(properties, "property", name=plain(key), value=plain(value))
    for row in (*view.rules, *view.alerts):
        case = ET.SubElement(suite, "testcase", _named(row, view.policy))
        for tag, attributes, text in _not_passed(row):
            ET.SubElement(case, tag, attributes).text = text
    for number, problem in enumerate(_problems(view), start=1):
        case = ET.SubElement(
            suite, "testcase", classname=plain(view.policy), name=f"verdict {number}", time="0"
        )
        ET.SubElement(case, "error", type=view.exit_meaning, message=plain(problem))
    for element in (suite, root):
        element.set("tests", str(len(suite.findall("testcase"))))
        for attribute, tag in (
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ):
            element.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
        element.set("time", "0")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _properties(view: View) -> dict[str, str]:
    return {
        "outcome": view.outcome.value,
        "exit-code": str(view.exit_code),
        "fairgate": view.fairgate,
        "commit": view.commit,
        "policy": view.policy_path,
        "baseline": view.baseline_path,
        **{f"under-test.{part}": now for part, now in view.under_test.items()},
    }


def _problems(view: View) -> list[str]:
    """Return why there is no verdict; a failed gate has one, whatever else was wrong."""
    if view.outcome is not Outcome.INCONCLUSIVE:
        return []
    return [*view.problems, *view.differences] or [view.exit_meaning]


def _named(row: RuleRow, policy: str) -> dict[str, str]:
    """Return the attributes of a rule's test case."""
    return {
        "classname": plain(f"{policy}.{row.suite}" if row.suite else policy),
        "name": plain(f"{row.metric}{f' [{row.where}]' if row.where else ''}"),
        "time": "0",
    }


def _not_passed(row: RuleRow) -> Iterator[tuple[str, dict[str, str], str | None]]:
    """Yield the element that says why a rule's test case did not pass: name, attributes, text."""
    message = plain("; ".join(row.reasons) or row.word)
    if row.outcome is Outcome.PASS:
        return
    if row.outcome is Outcome.FAIL and not row.is_advisory:
        kinds = " and ".join(row.failed) or "rule"
        figures = "\n".join(f"{plain(key)}: {plain(value)}" for key, value in _figures(row))
        yield "failure", {"type": kinds, "message": message}, figures
    elif row.outcome is Outcome.INCONCLUSIVE and not row.is_advisory and not row.warns:
        yield "failure", {"type": "inconclusive", "message": message}, None
    else:
        advisory = "advisory, " if row.is_advisory else ""
        yield "skipped", {"message": f"{advisory}{row.word}: {message}"}, None


def _figures(row: RuleRow) -> list[tuple[str, str]]:
    return [
        ("now", row.now),
        ("base", row.base),
        ("change", row.change),
        ("bounds of the change" if row.has_change else "interval", row.interval),
        *([] if row.since_anchor == NONE else [("change since the anchor", row.since_anchor)]),
        ("corrected p", row.p_value),
        ("sources", row.sources),
        ("smallest detectable change", row.detectable),
        ("limits", row.limits),
    ]


def render_badge(view: View) -> str:
    """Return `badge.json`: policy and verdict, nothing of texts or answers."""
    badge = {
        "schemaVersion": 1,
        "label": harmless(view.policy),
        "message": view.word.lower(),
        "color": _COLOURS[view.mark],
    }
    return json.dumps(badge) + "\n"
