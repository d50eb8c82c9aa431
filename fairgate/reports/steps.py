"""The commands that a reader of a report can go on with."""

from __future__ import annotations

import shlex

from fairgate.domain.outcomes import GateResult, Outcome, RuleResult
from fairgate.reports.affected import differs, standing_out, who_of
from fairgate.reports.material import Material
from fairgate.reports.spans import Inline, Words, code, command, joined, name

_LIMITS = frozenset({"bound", "identity"})
"""Checks that compare with no baseline."""


def breaks_a_limit(rule: RuleResult) -> bool:
    """Return whether a rule that decides fails by what no baseline changes."""
    return not rule.advisory and not _LIMITS.isdisjoint(rule.failed)


def _breaks_only_limits(result: GateResult) -> bool:
    failed = {check for rule in result.rules if not rule.advisory for check in rule.failed}
    return bool(failed) and failed <= _LIMITS


def run_command(material: Material) -> str:
    """Return the command that makes this run again."""
    path = shlex.quote(material.result.provenance.policy_path)
    return material.options.run_command or f"fairgate run {path}"


def accept_command(material: Material) -> str:
    """Return the command that makes this run the baseline; empty where nobody should.

    A run without a verdict, or with too little evidence beside what failed, shows nothing to hold
    later runs to, a first run that breaks a limit would make what is broken the reference, and
    where only limits are broken the next run would be as red. Nor is a part of the suite one.
    """
    result = material.result
    is_first = result.overlap is None
    fits = result.outcome is Outcome.PASS or (result.outcome is Outcome.FAIL and not is_first)
    fits = fits and not result.evidence.problems and not _breaks_only_limits(result)
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
        first: Words = ["make this run the first baseline with ", command(accept), "."]
        found = _standing_out(result)
        unclear = any(
            rule.outcome is Outcome.INCONCLUSIVE and not rule.advisory for rule in result.rules
        )
        if unclear and not found:
            power = command(f"fairgate power {shlex.quote(result.provenance.policy_path)}")
            more: Words = ["ask about more sources, so that every rule is decided (", power]
            return ["Next: ", *more, " says how many). If that is not possible, ", *first]
        if not found:
            return ["Next: ", *first]
        return [
            "Next: look at what differs between identities: ",
            *found,
            ". If it is right, ",
            *first,
        ]
    return ""


def _standing_out(result: GateResult) -> Words:
    """Return which identities a first baseline would keep as they are, though they differ."""
    found: list[Inline] = [
        ["for ", name(who_of(result, one)), f", {differs(one.metric, one.terms[0].difference)}"]
        for one in standing_out(result)
    ]
    return [*joined(found, "; "), " than for the other identities"] if found else []


def _on_purpose(material: Material, accept: str) -> Words:
    """Return what makes a wanted change pass; accepting one leaves limits and budgets."""
    binding = [rule for rule in material.result.rules if not rule.advisory]
    if material.result.overlap is not None and _breaks_only_limits(material.result):
        policy = code(material.result.provenance.policy_path)
        return [", or, if it is wanted, change the limit in ", policy]
    if not accept:
        return []
    if not any("budget" in rule.failed for rule in binding):
        broken = any(breaks_a_limit(rule) for rule in binding)
        also = " and change the limits that are broken" if broken else ""
        return [", or, if the change is wanted, accept it with ", command(accept), also]
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
    asks_user = options.has_explain and "recorded" in run.result.provenance.under_test
    if not asks_user or not is_open or run.result.outcome is not Outcome.FAIL:
        return ""
    policy = shlex.quote(run.result.provenance.policy_path)
    asked = f"fairgate plan {policy} --after {shlex.quote(options.run_path)}"
    return [
        "To see whether it comes through retrieval or from the generator, put the questions of ",
        command(asked),
        " to your system, and add its answers to the recorded ones.",
    ]
