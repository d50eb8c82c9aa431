"""From a run to the view that every report is rendered from: what stands first, and the sections.

What a busy reviewer reads: is anybody treated differently, worse than before, an example, what
could be detected, what to do; no statistics.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Outcome, RuleResult, Subject
from fairgate.domain.parity import Level
from fairgate.domain.registry import FEATURES, at
from fairgate.gate.baseline import changed_environment
from fairgate.gate.gate import GateResult, GateRun
from fairgate.gate.loaded_policy import NO_BASELINE, LoadedPolicy
from fairgate.metrics.catalogue import METRICS
from fairgate.reports import blocks, figures
from fairgate.reports.blocks import Inline, Tone, code, command, joined, name, spans, strong
from fairgate.reports.formats import Format
from fairgate.reports.material import Material
from fairgate.reports.sections import cases, failures, measured, parity, verdict

_MOST_WAIVED = 4
"""Failures for which the waiver is written out."""
_EXIT_MEANINGS = {
    ExitCode.PASS: "gate passed",
    ExitCode.GATE_FAILED: "gate failed",
    ExitCode.BASELINE: "baseline missing, incompatible or incomplete",
    ExitCode.NO_VERDICT: "no verdict",
}
_DIFFERENCES = 20
_PLAIN = {"recorded": "recorded answers"}
"""Parts under test as sentences name them."""
_WAIVED = 6


def present(run: GateRun, options: blocks.ReportOptions) -> blocks.View:
    """Return the view of a run."""
    material = Material(run=run, options=options)
    result = run.result
    provenance, path = result.gate_input.provenance, result.gate_input.accepted_runs.baseline_path
    of_features = (at(location) for feature in FEATURES for location in feature.sections.values())
    return blocks.View(
        options=options,
        result=result,
        policy=result.gate_input.policy.name,
        outcome=result.outcome,
        exit_code=int(result.exit_code),
        exit_meaning=_EXIT_MEANINGS[result.exit_code],
        title=title(material),
        lead=lead(material),
        outcome_table=list(parity.outcome_table(material)),
        example_and_cause=list(_example_and_cause(material)),
        detectable_effects=parity.detectable_effects(material),
        next_step=next_step(material, cases.explain_command(material)),
        warnings=list(_warnings(material)),
        notices=list(_notices(material)),
        counts_line=counts_line(material),
        rules=material.rules,
        sections=[section for build in (*SECTIONS, *of_features) for section in build(material)],
        run_command=verdict.run_command(material),
        commit=provenance.commit[:12],
        policy_path=f"{options.place}{provenance.policy_path}",
        baseline_path=f"{options.place}{path}" if result.overlap else "",
    )


def since_then(material: Material) -> Inline:
    """Return the changes since the baseline: the likely cause of a failure."""
    baseline, result = material.baseline, material.result
    if baseline is None or result.outcome is Outcome.PASS:
        return ""
    now, then = result.gate_input.provenance, baseline.provenance
    old, new = then.under_test, now.under_test
    absent = "nothing"
    differing = [
        (name(_PLAIN.get(part, part), Tone.STRONG), old.get(part, absent), new.get(part, absent))
        for part in verdict.changed_parts(material)
    ]
    for part, was, is_now in changed_environment(then.environment, now.environment, absent):
        differing.append((strong(part), was, is_now))
    if now.fairgate != then.fairgate:
        differing.append((strong("FairGate"), then.fairgate, now.fairgate))
    changed: list[Inline] = [[part, " (", code(a), " → ", code(b), ")"] for part, a, b in differing]
    if result.overlap and (result.overlap.new or result.overlap.removed):
        added, removed = len(result.overlap.new), len(result.overlap.removed)
        counts = f" ({added:,} new, {removed:,} removed; not compared)"
        changed.append([strong("the cases asked"), counts])
    if changed:
        return ["Changed since the baseline: ", *joined(changed, "; "), "."]
    if unknown := verdict.unknown_parts(now.under_test):
        parts = " or ".join(
            "your system" if part == "system" else f"the {part}" for part in unknown
        )
        sentence = f"Whether {parts} has changed since the baseline is not known: give it a "
        return [sentence, code("revision"), " in the policy."]
    return "Nothing that is under test has changed since the baseline, nor have the versions."


def _example_and_cause(material: Material) -> Iterator[blocks.Block]:
    """Yield an example, the cause and what to do, where there is anything to say."""
    yield from _paragraphs(*bounds_that_fail(material))
    if lines := examples(material):
        style = blocks.Style.LIST if len(lines) > 1 else blocks.Style.PARAGRAPH
        yield blocks.Text(lines=lines, style=style)
    yield from _paragraphs(since_then(material))
    yield from cases.unreadable_answers(material)
    yield from cases.verdictless_judgements(material)
    yield from _paragraphs(cause_step(material))


def _paragraphs(*lines: Inline) -> Iterator[blocks.Block]:
    yield from (blocks.Text(lines=[words]) for words in lines if words)


def bounds_that_fail(material: Material) -> Iterator[Inline]:
    """Yield why rules about metrics fail, a few of them."""
    failed = [row for row in material.rules if row.rule.parity is None and row.rule.fails_gate]
    named = failed[: verdict.MOST_BOUNDS]
    for row, words in zip(named, verdict.rule_names(named), strict=True):
        yield [*words, ": ", "; ".join(row.reasons), "."]
    if len(failed) > len(named):
        yield f"{len(failed) - len(named):,} more bounds are broken; see the rules."


def _warnings(material: Material) -> Iterator[blocks.Block]:
    """Yield what must not be overlooked."""
    result = material.result
    if material.options.report_only and result.outcome is not Outcome.PASS:
        status = f"{int(result.exit_code)} ({_EXIT_MEANINGS[result.exit_code]})"
        ends = f" keeps the build green; without it this run ends with exit code {status}."
        words: blocks.Words = [strong(f"This is a {blocks.WORDS[result.outcome]}."), " "]
        yield blocks.Text(
            lines=[[*words, command("report-only"), ends]], style=blocks.Style.WARNING
        )
    waived = [row for row in material.rules if row.rule.waiver][:_WAIVED]
    for row, rule_name in zip(waived, verdict.rule_names(waived), strict=True):
        people = [parity.who(material, row.rule.suite, node) for node in row.rule.failing]
        whom: blocks.Words = [" for ", *joined(people)] if people else []
        words = [strong("Fails, waived: "), *rule_name, *whom, f": {row.now}, {row.rule.waiver}"]
        yield blocks.Text(lines=[words], style=blocks.Style.WARNING)
    if material.options.limit is not None:
        many = f"{material.options.limit:,} sources or items of each suite"
        what = f" At most about {many} were asked about, and nothing was compared. Leave out "
        words = [strong("This is a first look."), what, command("--limit")]
        yield blocks.Text(lines=[[*words, " for the gate's verdict."]], style=blocks.Style.WARNING)
    is_said = result.outcome is Outcome.INCONCLUSIVE and not result.incompatible
    problems = result.evidence.problems[1 if is_said else 0 :]  # the first sentence says one
    if problems:
        yield blocks.Text(lines=problems, style=blocks.Style.LIST)


def _notices(material: Material) -> Iterator[blocks.Block]:
    """Yield what a reader should know beside the verdict."""
    result, lines = material.result, list(material.result.notices)
    # The warning of a first look says already that nothing is compared with.
    if result.overlap is None and material.options.limit is None:
        accepted_runs = result.gate_input.accepted_runs
        path = accepted_runs.baseline_path
        why_not = f"There is no baseline yet{f' at `{path}`' if path else ''}"
        why_not = "No baseline is named" if path == NO_BASELINE else why_not
        if accepted_runs.is_added:
            why_not = f"The base has no baseline, and this change adds `{path}`"
        lines.insert(0, f"{why_not}: nothing is compared with an earlier run.")
    if lines:
        yield blocks.Text(lines=lines, style=blocks.Style.NOTE)
    differences = result.incompatible
    if differences:
        more = len(differences) - _DIFFERENCES
        last = [f"and {more:,} more"] if more > 0 else []
        yield blocks.Text(lines=[f"What must match but differs from the {unfit(result)}:"])
        yield blocks.Text(lines=[*differences[:_DIFFERENCES], *last], style=blocks.Style.LIST)


def title(material: Material) -> Inline:
    """Return the title after "FairGate: " and before "in <policy>"; who gets no answer leads."""
    unanswered = failures.title(material)
    return [*unanswered, "; ", *spans(_title(material))] if unanswered else _title(material)


def _title(material: Material) -> Inline:
    result = material.result
    if result.outcome is Outcome.PASS:
        return _pass(material)
    if result.outcome is Outcome.FAIL:
        broken = [rule for rule in result.rules if rule.fails_gate and rule.parity is None]
        words = parity.title(material)
        if words:
            return [*words, *([" and a limit is broken"] if broken else []), ","]
        failed, many = {name for rule in broken for name in rule.failed}, len(broken)
        since = "anchor" if failed == {"budget"} else "baseline"
        limit = "beyond its limit" if many == 1 else "beyond their limits"
        kind = limit if "bound" in failed else f"worse than the {since}"
        of_all = "is" if many == 1 else "are"
        first = figures.title(broken[0].metric) if many == 1 else figures.count(many, "metric")
        return f"{first} {of_all} {kind},"
    if result.exit_code is ExitCode.BASELINE:
        if result.incompatible:
            return f"{unfit(result)} and run do not fit together"
        lacking = _lacking(result)
        in_anchor = lacking and all(
            rule.metric.endswith("/anchor") if rule.parity else rule.change or not result.overlap
            for rule in lacking
        )
        return f"the {'anchor' if in_anchor else 'baseline'} is incomplete"
    return "too little evidence for a verdict"


def _lacking(result: GateResult) -> list[RuleResult]:
    return [rule for rule in result.rules if rule.doubts.is_incomplete]


def unfit(result: GateResult) -> str:
    """Return which of baseline and anchor cannot be compared with, the baseline first."""
    fits = result.overlap is None or not result.overlap.incompatible
    return "anchor" if fits else "baseline"


def _pass(material: Material) -> Inline:
    """Say no more than was shown."""
    result = material.result
    waived = sum(rule.waiver is not None for rule in result.rules)
    is_first = result.overlap is None
    if waived:
        return f"passes with {figures.count(waived, 'waived failure')},"
    if not any(rule.is_binding for rule in result.rules):
        return "nothing can fail this gate,"
    if not any(rule.parity for rule in result.rules):
        return "all limits hold, first run," if is_first else "all limits hold,"
    if parity.findings(material):
        return "nobody is treated differently beyond the limits,"
    worse = "" if is_first else ", nor worse than before"
    if any(parity.leaves_identities(rule.parity) for rule in result.rules):
        return f"no category is treated differently{worse}; single identities are not judged,"
    return f"nobody is treated differently{worse},"


def lead(material: Material) -> Inline:
    """Return the first sentence: who is treated how, or why there is no verdict."""
    result = material.result
    if result.outcome is Outcome.INCONCLUSIVE:
        if result.incompatible:
            counted = figures.count(len(result.incompatible), "difference")
            what = unfit(result)
            how = "accept" if what == "baseline" else "pin"
            return f"{counted} in what must match: restore it, or {how} this run as the new {what}."
        lacking = [reason for rule in _lacking(result) for reason in rule.reasons[-1:]]
        problem = next(iter([*result.evidence.problems, *lacking]), "no rule could be evaluated")
        is_metric = problem.partition(" ")[0] in METRICS
        return f"{problem if is_metric else problem[:1].upper() + problem[1:]}."
    first = next(iter(parity.failing(material)), None)
    if first is not None:
        return [*parity.sentence(material, first), "."]
    if result.outcome is Outcome.PASS:
        return parity.detectable_effects(material)
    return ""


def examples(material: Material) -> list[Inline]:
    """Give one answer of somebody who is treated differently; of sentences, of each."""
    if material.result.outcome is not Outcome.FAIL or not parity.failing(material):
        return []
    if parity.subject(material) is Subject.DOCUMENTS:
        lines = [cases.documents_instead(material)]
    else:
        lines = cases.answers_instead(material)
    return [line for line in lines if line]


def counts_line(material: Material) -> Inline:
    """Return in one line how much was decided, and against what."""
    words: blocks.Words = [verdict.decided(material)]
    bounds = [row.rule for row in material.rules if row.rule.parity is None]
    if bounds:
        passed = sum(rule.outcome is Outcome.PASS for rule in bounds)
        words.append(f" · {passed} of {figures.count(len(bounds), 'bound')} kept")
        idle = sum(rule.outcome is Outcome.NOT_EVALUATED for rule in bounds)
        words += [f", {idle} not evaluated"] if idle else []
    if material.baseline is not None and material.baseline.date:
        words += [" · baseline of ", blocks.Span(material.baseline.date, blocks.Kind.DATE)]
    return words


def next_step(material: Material, explain: str) -> Inline:
    """Return the reader's next step; `explain` is the command for the clearest case, if any."""
    result, accept = material.result, verdict.accept_command(material)
    if material.options.of_table:
        table = shlex.quote(result.gate_input.provenance.policy_path)
        first = "fix the cause and compare" if result.outcome is Outcome.FAIL else "compare"
        return [
            f"Next: {first} a later table with this one, with ",
            code(f"--baseline {table}"),
            ".",
        ]
    if result.outcome is Outcome.FAIL:
        look = " look at the example with " if explain else " reproduce it with "
        with_ = command(explain or verdict.run_command(material))
        return ["Next:", look, with_, ", fix the cause", *_on_purpose(material, accept), "."]
    if material.options.limit is not None:
        return ["Next: run all of it with ", command(verdict.run_command(material)), "."]
    waived = [rule.waiver for rule in result.rules if rule.waiver is not None]
    if waived:
        what = "the waived failure" if len(waived) == 1 else "the waived failures"
        last = min(waiver.expires for waiver in waived)
        date = blocks.Span(last, blocks.Kind.DATE)
        return [f"Next: fix {what}; from the day after ", date, " on the build fails again."]
    if result.overlap is None and result.gate_input.accepted_runs.is_added:
        return ["Next: merge this change; those after it are compared with its baseline."]
    if result.overlap is None and accept:
        return ["Next: make this run the first baseline with ", command(accept), "."]
    return ""


def _on_purpose(material: Material, accept: str) -> blocks.Words:
    """Return the way to pass a wanted change; accepting it leaves limits and budgets."""
    binding = [rule for rule in material.result.rules if rule.fails_gate]
    policy = code(material.result.gate_input.provenance.policy_path)
    if material.result.evidence.problems:
        return []  # neither a waiver nor a baseline brings a verdict
    if verdict.breaks_only_limits(material.result) and material.options.limit is None:
        failures = "the failure" if len(binding) == 1 else "the failures"
        waive: blocks.Words = [f", or waive {failures} until a date with ", code("waivers")]
        named = [finding for finding in parity.failing(material) if finding.rule in binding]
        if named:
            written = [code(_waiver_of(finding)) for finding in named[:_MOST_WAIVED]]
            waive += [" (", *joined(written, "; "), ")"]
        return [*waive, " in ", policy]
    if not accept:
        return []
    if not any("budget" in rule.failed for rule in binding):
        also: blocks.Words = []
        if any(verdict.breaks_a_limit(rule) for rule in binding):
            also = [" and waive the broken limits with ", code("waivers"), " in ", policy]
        return [", or, if the change is wanted, accept it with ", command(accept), *also]
    pin = command(accept.replace("baseline accept", "baseline anchor", 1))
    words: blocks.Words = [
        ", or, if all that has changed since the anchor is wanted, pin another with "
    ]
    also_accept = any("regression" in rule.failed for rule in binding)
    more: blocks.Words = [" and accept this change with ", command(accept)] if also_accept else []
    return [*words, pin, *more]


def _waiver_of(finding: parity.NamedFinding) -> str:
    """Return how a waiver names a failure: `rule: parity/answers, who: race/black`."""
    node = finding.node
    whom = "/".join(node.who[0]) if node.level is Level.IDENTITY else node.name
    return f"rule: {finding.rule.metric}, who: {whom}"


def cause_step(material: Material) -> Inline:
    """Return how to find where a recorded system's changes come from: it cannot be asked itself."""
    run, options = material.run, material.options
    crossed = (case for case in run.added if case.documents_of is not None)
    is_open = any((case.suite, case.key) not in run.executions for case in crossed)
    asks_user = options.has_explain and "recorded" in run.result.gate_input.provenance.under_test
    if not asks_user or not is_open or run.result.outcome is not Outcome.FAIL:
        return ""
    policy = shlex.quote(run.result.gate_input.provenance.policy_path)
    plan_command = command(
        f"{options.called('plan')} {policy} --after {shlex.quote(options.run_path)}"
    )
    why = "To see whether it comes through retrieval or from the generator, put the questions of "
    return [why, plan_command, " to your system, and add its answers to the recorded ones."]


def view_of(run: GateRun, loaded: LoadedPolicy, **more: Any) -> blocks.View:
    """Return the view of a run for reports; `more` are further fields of `ReportOptions`."""
    policy, parsed = run.gate_input.policy, loaded.parsed
    gates = range(len(loaded.policy.gates))
    options = blocks.ReportOptions(
        redact=policy.redact,
        confidence=policy.confidence,
        policy_text=parsed.document.text,
        gate_lines={
            position: parsed.document.located(("gates", position))[0] for position in gates
        },
        of_features={
            key: getattr(policy, key) for feature in FEATURES for key in feature.policy_keys
        },
        **more,
    )
    return present(run, options)


def local_view(
    run: GateRun, loaded: LoadedPolicy, out: Path, formats: Iterable[Format], **more: Any
) -> blocks.View:
    """Return the view of a run for a reader who has its folder."""
    files = {form.shown_as: str(out / form.file) for form in formats if form.shown_as}
    has_policy = not more.get("of_table", False)
    return view_of(run, loaded, run_path=str(out), has_explain=has_policy, files=files, **more)


def texts_of(
    view: blocks.View, formats: Iterable[Format]
) -> dict[str, Callable[[], str | Iterator[str]]]:
    """Return the content of each of a run's files, by the file's name."""
    return {form.file: partial(form.render, view) for form in formats}


SECTIONS: Sequence[Callable[[Material], Iterable[blocks.Section]]] = (
    parity.section,
    verdict.rules,
    measured.social_bias,
    measured.causes,
    measured.retrieval,
    cases.cases,
    cases.answers,
    verdict.relations,
    verdict.evidence,
)
"""What answers the questions of reports, in their order; nothing where one does not arise."""
