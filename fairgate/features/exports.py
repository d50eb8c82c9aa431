"""A run as JUnit test cases, one for each rule."""

from __future__ import annotations

from collections.abc import Sequence

from fairgate.domain.outcomes import Outcome
from fairgate.reports.blocks import View
from fairgate.reports.escaping import plain
from fairgate.reports.figures import RuleRow
from fairgate.reports.formats import Format, Unjudged


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


JUNIT = Format(
    id="junit", file="junit.xml", shown_as="JUnit", output="junit-file",
    render=render_junit, unjudged=_unjudged_junit,
)  # fmt: skip
