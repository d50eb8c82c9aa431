"""What is not as it was in an earlier run: the likely cause of a change."""

from __future__ import annotations

from fairgate.domain.outcomes import Outcome
from fairgate.gate.environment import changed_environment
from fairgate.reports.material import Material
from fairgate.reports.sections.evidence import changed_parts
from fairgate.reports.spans import Inline, Tone, code, joined, name, strong

_OWN, _REVISION = "system", "revision"
"""What lists a system of the user's own, whose code is not seen, and what tells it apart."""
_PLAIN = {"recorded": "recorded answers"}
"""Parts under test as sentences name them."""


def since_then(material: Material) -> Inline:
    """Return what is not as it was in the run that is shown beside this one: the likely cause."""
    beside, result = material.beside, material.result
    if beside.run is None:
        return ""
    now, then = result.provenance, beside.run.provenance
    changed: list[Inline] = [
        [
            name(_PLAIN.get(part, part), Tone.STRONG),
            " (",
            code(then.under_test.get(part, "nothing")),
            " → ",
            code(now.under_test.get(part, "nothing")),
            ")",
        ]
        for part in changed_parts(material)
    ]
    changed += [
        [strong(part), " (", code(before), " → ", code(after), ")"]
        for part, before, after in changed_environment(then.environment, now.environment, "nothing")
    ]
    if now.fairgate != then.fairgate:
        changed.append(
            [strong("FairGate"), " (", code(then.fairgate), " → ", code(now.fairgate), ")"]
        )
    if beside.is_baseline and result.overlap and (result.overlap.new or result.overlap.removed):
        new, removed = len(result.overlap.new), len(result.overlap.removed)
        changed.append(
            [strong("the cases asked"), f" ({new:,} new, {removed:,} removed; not compared)"]
        )
    if changed:
        return [f"Changed since the {beside.word}: ", *joined(changed, "; "), "."]
    if result.outcome is Outcome.PASS:
        return ""
    if _OWN in now.under_test and _REVISION not in now.under_test:
        known = f"Whether your system has changed since the {beside.word} is not known: give it a "
        return [known, code(_REVISION), " in the policy."]
    return f"Nothing that is under test has changed since the {beside.word}, nor have the versions."
