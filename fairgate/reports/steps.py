"""The commands that a reader of a report can go on with."""

from __future__ import annotations

import shlex

from fairgate.domain.outcomes import Outcome
from fairgate.reports.material import Material
from fairgate.reports.spans import Inline, Words, command


def run_command(material: Material) -> str:
    """Return the command that makes this run again."""
    path = shlex.quote(material.result.provenance.policy_path)
    return material.options.run_command or f"fairgate run {path}"


def accept_command(material: Material) -> str:
    """Return the command that makes this run the baseline; empty where nobody should.

    A run without a verdict, or with too little evidence beside what failed, shows nothing to hold
    later runs to, and a first run that breaks a limit would make what is broken the reference. Nor
    is a part of the suite one.
    """
    result = material.result
    is_first = result.overlap is None
    fits = result.outcome is Outcome.PASS or (result.outcome is Outcome.FAIL and not is_first)
    fits = fits and not result.evidence.problems
    if not material.options.run_path or not fits or material.options.limit is not None:
        return ""
    return f'fairgate baseline accept {shlex.quote(material.options.run_path)} --reason "…"'


def next_step(material: Material, explain: str) -> Inline:
    """Return what a reader can do now; `explain` is the command for the clearest case, if any."""
    result, accept = material.result, accept_command(material)
    if result.outcome is Outcome.FAIL:
        look: Words = [" reproduce it with ", command(run_command(material)), ","]
        if explain:
            look = [" look at the example with ", command(explain), ","]
        return ["Next:", *look, " fix the cause", *_on_purpose(material, accept), "."]
    if material.options.limit is not None:
        return ["Next: run all of it with ", command(run_command(material)), "."]
    if result.overlap is None and accept:
        return ["Next: make this run the first baseline with ", command(accept), "."]
    return ""


def _on_purpose(material: Material, accept: str) -> Words:
    """Return what makes a wanted change pass; accepting a baseline leaves a budget as it is."""
    binding = [rule for rule in material.result.rules if not rule.advisory]
    if not accept:
        return []
    if not any("budget" in rule.failed for rule in binding):
        return [", or, if the change is wanted, accept it with ", command(accept)]
    pin = command(accept.replace("baseline accept", "baseline anchor", 1))
    words: Words = [
        ", or, if all that has changed since the anchor is wanted, pin another with ",
        pin,
    ]
    if any("regression" in rule.failed for rule in binding):
        words += [" and accept this change with ", command(accept)]
    return words


def cause_step(material: Material) -> Inline:
    """Return how to find where a recorded system's changes come from: it cannot be asked itself."""
    run, options = material.run, material.options
    crossed = (case for case in run.added if case.documents_of is not None)
    is_open = any((case.suite, case.key) not in run.executions for case in crossed)
    if not is_open or not options.has_explain or run.result.outcome is not Outcome.FAIL:
        return ""
    policy = shlex.quote(run.result.provenance.policy_path)
    asked = f"fairgate plan {policy} --after {shlex.quote(options.run_path)}"
    return [
        "To see whether it comes through retrieval or from the generator, put the questions of ",
        command(asked),
        " to your system, and add its answers to the recorded ones.",
    ]
