"""From a run to the view that every report is rendered from: what stands first, and the sections.

What a busy reviewer reads: how bad it is, why, an example, what to do; no statistics.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from fairgate.domain.catalogue import FEATURES, at
from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Outcome, RuleResult, Subject
from fairgate.domain.wording import within_sentence
from fairgate.gate.baseline import changed_environment
from fairgate.gate.gate import GateResult, GateRun
from fairgate.gate.loaded_policy import NO_BASELINE, LoadedPolicy
from fairgate.metrics.catalogue import BY_ID
from fairgate.relations.oracles.oracle import agree
from fairgate.reports import blocks, figures
from fairgate.reports.blocks import Inline, Tone, code, command, figure, joined, name, spans, strong
from fairgate.reports.escaping import excerpt, redacted
from fairgate.reports.figures import rule_rows
from fairgate.reports.formats import Format
from fairgate.reports.material import ALONE, ComparedRun, Material, in_words
from fairgate.reports.sections import (
    affected,
    answers_to_identity,
    better,
    case_browser,
    cases,
    measured,
    moved,
    neutral_band,
    verdict,
)
from fairgate.reports.sections.better import Improvements
from fairgate.reports.sections.headline import headline
from fairgate.reports.sections.overview import overview

_EXIT_MEANINGS = {
    ExitCode.PASS: "gate passed",
    ExitCode.GATE_FAILED: "gate failed",
    ExitCode.BASELINE: "baseline missing, incompatible or incomplete",
    ExitCode.NO_VERDICT: "no verdict",
}
_DIFFERENCES = 20
_PLAIN = {"recorded": "recorded answers"}
"""Parts under test as sentences name them."""
_FAILED = 6
"""Identities that a title names, and waived failures."""
_BETTER = 3
_ALSO = 3
"""Further failures that the first sentences name."""
_COUNTED = {
    Outcome.FAIL: "failed",
    Outcome.INCONCLUSIVE: "inconclusive",
    Outcome.NOT_EVALUATED: "not evaluated",
}


def present(run: GateRun, options: blocks.ReportOptions) -> blocks.View:
    """Return the view of a run."""
    material = Material(run=run, options=options)
    result, improvements = run.result, better.improvements_of(material)
    provenance, path = result.gate_input.provenance, result.gate_input.references.baseline_path
    of_features = (at(location) for feature in FEATURES for location in feature.sections.values())
    return blocks.View(
        options=options,
        result=result,
        policy=result.gate_input.policy.name,
        outcome=result.outcome,
        exit_code=int(result.exit_code),
        exit_meaning=_EXIT_MEANINGS[result.exit_code],
        title=title(material, improvements),
        moved=moved.since_base(material),
        whose_moved=moved.whose_moved(material),
        lead=lead(material, improvements),
        is_better=bool(improvements.better),
        choices=[_shown_beside(material, choice, improvements) for choice in material.choices],
        reasons=list(_reasons(material)),
        next_step=next_step(material, cases.explain_command(material), improvements),
        warnings=list(_warnings(material)),
        remarks=list(_remarks(material)),
        standing=standing(material),
        rules=material.rules,
        sections=[section for build in (*SECTIONS, *of_features) for section in build(material)],
        overview=overview(material, improvements.improved),
        examples=cases.case_items(material, 3),
        examples_title=cases.title_of_cases(material),
        alerts=rule_rows([alert.rule for alert in affected.alerts(result)]),
        run_command=verdict.run_command(material),
        commit=provenance.commit[:12],
        policy_path=f"{options.place}{provenance.policy_path}",
        baseline_path=f"{options.place}{path}" if result.overlap else "",
    )


def since_then(material: Material) -> Inline:
    """Return the changes since the run that is shown beside this one: the likely cause."""
    beside, result = material.beside, material.result
    if beside.run is None or result.outcome is Outcome.PASS:
        return ""
    now, then = result.gate_input.provenance, beside.run.provenance
    old, new = then.under_test, now.under_test
    absent = "nothing"
    moved = [
        (name(_PLAIN.get(part, part), Tone.STRONG), old.get(part, absent), new.get(part, absent))
        for part in verdict.changed_parts(material)
    ]
    for part, was, is_now in changed_environment(then.environment, now.environment, absent):
        moved.append((strong(part), was, is_now))
    if now.fairgate != then.fairgate:
        moved.append((strong("FairGate"), then.fairgate, now.fairgate))
    changed: list[Inline] = [[part, " (", code(a), " → ", code(b), ")"] for part, a, b in moved]
    if beside.is_baseline and result.overlap and (result.overlap.new or result.overlap.removed):
        added, removed = len(result.overlap.new), len(result.overlap.removed)
        counts = f" ({added:,} new, {removed:,} removed; not compared)"
        changed.append([strong("the cases asked"), counts])
    if changed:
        return [f"Changed since the {beside.word}: ", *joined(changed, "; "), "."]
    if verdict.OWN in now.under_test and verdict.REVISION not in now.under_test:
        sentence = (
            f"Whether your system has changed since the {beside.word} is not known: give it a "
        )
        return [sentence, code(verdict.REVISION), " in the policy."]
    return f"Nothing that is under test has changed since the {beside.word}, nor have the versions."


def _shown_beside(
    material: Material, choice: ComparedRun, improvements: Improvements
) -> blocks.ShownComparison:
    """Return the beginning of the report, beside another run."""
    material_beside, usual = material.shown_beside(choice), material.beside.word
    # What a reader who chose something else should know: the verdict is not about it.
    decided = f": it was decided against the {usual}" if usual else ""
    what = "headline, Who and Cases" if choice.run or choice.id == ALONE else "headline and Who"
    unmarked = "" if choice.run else "; no case is marked as new or fixed"
    with_it = [" alone"] if choice.id == ALONE else [" beside the ", *spans(choice.label)]
    note = [f"The verdict stays{decided}. Its {what} show this run", *with_it, f"{unmarked}."]
    return blocks.ShownComparison(
        id=choice.id,
        label=choice.label,
        note=[] if choice is material.beside else note,
        lead=lead(material_beside, improvements if choice is material.beside else Improvements()),
        since=list(_paragraphs(since_then(material_beside))),
        affected=list(affected.affected_table(material_beside)),
    )


def _reasons(material: Material) -> Iterator[blocks.Block]:
    """Yield why, an example and what to do, where there is anything to say."""
    yield from _paragraphs(why(material), example(material))
    yield from cases.unreadable_answers(material)
    yield from cases.verdictless_judgements(material)
    yield from _paragraphs(cause_step(material))


def _paragraphs(*lines: Inline) -> Iterator[blocks.Block]:
    yield from (blocks.Text(lines=[words]) for words in lines if words)


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
    waived = [row for row in material.rules if row.rule.waiver][:_FAILED]
    for row, rule_name in zip(waived, verdict.rule_names(waived), strict=True):
        words = [strong("Fails, waived: "), *rule_name, f": {row.now}, {row.rule.waiver}"]
        yield blocks.Text(lines=[words], style=blocks.Style.WARNING)
    for index, alert in enumerate(affected.alerts(result)):
        leads = not index and result.outcome is Outcome.PASS  # the first sentence says what it is
        words = [strong("Warning: "), *spans(alert.advice if leads else alert.words)]
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


def _remarks(material: Material) -> Iterator[blocks.Block]:
    """Yield what a reader should know beside the verdict."""
    result, lines = material.result, list(material.result.remarks)
    # The warning of a first look says already that nothing is compared with.
    if result.overlap is None and material.options.limit is None:
        path = result.gate_input.references.baseline_path
        why_not = "Compared with no baseline, as asked"
        if path != NO_BASELINE:
            why_not = f"There is no baseline yet{f' at `{path}`' if path else ''}"
        lines.insert(0, f"{why_not}: only bounds decide, regression rules are not evaluated.")
    differences_known = list(affected.known_differences(material))
    if lines or differences_known:
        yield blocks.Text(lines=[*differences_known, *lines], style=blocks.Style.NOTE)
    differences = result.incompatible
    if differences:
        more = len(differences) - _DIFFERENCES
        last = [f"and {more:,} more"] if more > 0 else []
        yield blocks.Text(lines=[f"What must match but differs from the {unfit(result)}:"])
        yield blocks.Text(lines=[*differences[:_DIFFERENCES], *last], style=blocks.Style.LIST)


def title(material: Material, improvements: Improvements) -> Inline:
    """Return the title after "FairGate: " and before "in <policy>"."""
    result = material.result
    if result.outcome is Outcome.PASS:
        return _pass(result, improvements)
    if result.outcome is Outcome.FAIL:
        return _failure(material)
    if result.exit_code is ExitCode.BASELINE:
        if result.incompatible:
            return f"{unfit(result)} and run do not fit together"
        lacking = [rule for rule in result.rules if rule.is_not_in_baseline]
        in_baseline = result.overlap is None or all(rule.change is not None for rule in lacking)
        return f"the {'anchor' if lacking and in_baseline else 'baseline'} is incomplete"
    return "too little evidence for a verdict"


def unfit(result: GateResult) -> str:
    """Return which of baseline and anchor cannot be compared with, the baseline first."""
    fits = result.overlap is None or not result.overlap.incompatible
    return "anchor" if fits else "baseline"


def _pass(result: GateResult, improvements: Improvements) -> Inline:
    """Say no more than was shown: a rule that could not tell holds nothing."""
    affected_names = list(dict.fromkeys(alert.who for alert in affected.alerts(result)))
    open_rules = sum(r.outcome is Outcome.INCONCLUSIVE and not r.advisory for r in result.rules)
    is_first = result.overlap is None
    waived = sum(rule.waiver is not None for rule in result.rules)
    if waived:
        beginning = f"passes with {figures.count(waived, 'waived failure')},"
    elif all(rule.advisory or rule.is_reported for rule in result.rules):
        beginning = "nothing can fail this gate,"
    elif improvements.is_unchanged:
        beginning = "nothing changed,"
    elif improvements.better and not affected_names:
        return ["fairness improved: ", *spans(improvements.better[0]), ","]
    elif improvements.better:
        beginning = "fairness improved,"
    elif open_rules:
        rules = f"{figures.count(open_rules, 'rule')} inconclusive"
        shows = "no limit broken" if is_first or affected_names else "no regression shown"
        beginning = f"{shows}, {rules},"
    elif affected_names:
        beginning = "passes its limits,"
    else:
        beginning = "fairness limits hold, first run," if is_first else "no fairness regression"
    if not affected_names:
        return beginning
    words: blocks.Words = [beginning.removesuffix(","), ", but ", name(affected_names[0])]
    if len(affected_names) == 1:
        return [*words, " is not treated like the others,"]
    more = figures.count(len(affected_names) - 1, "other identity", "other identities")
    return [*words, f" and {more} are not treated like the rest,"]


def why(material: Material) -> Inline:
    """Return the reasons of the failure, in the words of the rule that leads."""
    rule = affected.leading(material.result)
    if rule is None or rule.outcome is not Outcome.FAIL:
        return ""
    what = "the rule" if rule.waiver else "it"
    reasons = f"Why {what} fails: {'; '.join(figures.readable(rule.reasons))}."
    if is_for_everybody(material, rule):
        return f"{reasons} Neutral wording fares no better: the change is for everybody."
    return reasons


def is_for_everybody(material: Material, rule: RuleResult) -> bool:
    """Return whether neutral wording fares no better by what failed: nobody is singled out then."""
    metric = BY_ID.get(rule.metric)
    neutral = material.now.value(metric.neutral, rule.suite) if metric and metric.neutral else None
    moved = {"bound", "regression", "budget"}.intersection(rule.failed)
    if metric is None or neutral is None or rule.value is None or rule.where or not moved:
        return False
    worse = rule.value - neutral if metric.better == "lower" else neutral - rule.value
    return worse <= 0


def _failure(material: Material) -> Inline:
    binding = [rule for rule in material.result.rules if rule.fails_gate]
    failed = {check for rule in binding for check in rule.failed}
    if not binding:
        return "too little evidence for a pass"
    first = affected.leading(material.result)
    if first is not None and affected.is_undecided(first):
        return "fewer answers can be judged than in the baseline,"
    if first is not None and (
        told_changes := [t for rule, t in answers_to_identity.failing(material) if rule is first]
    ):
        identity = name(material.identity(first.suite, told_changes[0].term))
        also = (
            f" and {figures.count(len(told_changes) - 1, 'other')}" if len(told_changes) > 1 else ""
        )
        get = " get" if also else " gets"
        event = spans(answers_to_identity.event(material, first, told_changes[0]))
        return [identity, f"{also}{get} other answers: ", *event, ","]
    words = "the fairness gate failed"
    if failed & {"regression", "budget"}:
        words = "fairness regressed"
    elif "bound" in failed or "identity" in failed:
        words = "a fairness limit is broken"
    if first is not None and moved.is_of_reference(first.metric):
        is_base = moved.compares_with_base(material)
        words = moved.what_moved(first.metric, is_base=is_base)
    if first is not None and is_for_everybody(material, first):
        return f"{words}, whoever is named,"
    by_subject = affected.failed_identities(material)
    if by_subject:
        return [
            words,
            " for ",
            *joined([_named(*entry, by_subject) for entry in by_subject.items()], "; "),
            ",",
        ]
    by_subject = affected.failed_identities(material, is_favoured=True)
    if by_subject:
        who = joined([_named(*entry, by_subject) for entry in by_subject.items()], "; ")
        return [words, " in favour of ", *who, ","]
    if first is not None and "identity" in first.failed:
        return f"{words} for all identities but one,"
    worst = affected.affected(material)[:1]
    if first is None or not worst or not affected.differs_from_others(material, first, worst[0]):
        return words
    most = within_sentence(affected.name_of(material, worst[0]).text)
    return [words, ", most for ", name(most), ","]


def _named(
    about: Subject, who: Sequence[str], by_subject: Mapping[Subject, Sequence[str]]
) -> Inline:
    more = [f"{len(who) - _FAILED} more"] if len(who) > _FAILED else []
    words = joined([*map(name, who[:_FAILED]), *more])
    is_plain = about is Subject.ANSWERS and len(by_subject) == 1
    return words if is_plain else [*words, f" ({about.value})"]


def lead(material: Material, improvements: Improvements) -> Inline:
    """Return the first sentence: what happens how often, beside neutral wording."""
    result = material.result
    if result.outcome is Outcome.INCONCLUSIVE:
        if result.incompatible:
            counted = figures.count(len(result.incompatible), "difference")
            what = unfit(result)
            how = "accept" if what == "baseline" else "pin"
            return f"{counted} in what must match: restore it, or {how} this run as the new {what}."
        problem = next(iter(result.evidence.problems), "no rule could be evaluated")
        is_metric = problem.partition(" ")[0] in BY_ID
        return f"{problem if is_metric else problem[:1].upper() + problem[1:]}."
    rule = affected.leading(result)
    if rule is None:
        return "No rule has a value."
    words = [*_better(improvements), *moved.masked(material), *headline(material, rule)]
    if rule.outcome is Outcome.INCONCLUSIVE:
        words += ["; this is ", strong("inconclusive")]
    words += [".", *_failed_too(material)]
    if improvements.is_unchanged:
        cases_ = figures.count(result.evidence.planned, "case")
        words += [f" Each of {cases_} has the result that it has in the baseline."]
    return words


def _better(improvements: Improvements) -> blocks.Words:
    """Return the first words of a better run."""
    if not improvements.better:
        return []
    first_named, more = improvements.better[:_BETTER], len(improvements.better) - _BETTER
    also = [f"{more} more"] if more > 0 else []
    return ["Better than the baseline: ", *joined([*first_named, *also], "; "), ". "]


def _failed_too(material: Material) -> blocks.Words:
    """Return which further rules failed, and for whom: a few, those of one metric together."""
    entries: dict[tuple[str, str, str, str], None] = {}
    for rule in affected.failed_rules(material.result)[1:]:
        value = figures.value(rule.value, rule.metric)
        value = "fewer cases decided" if affected.is_undecided(rule) else value
        inside = [f"{part} {level}" for part, level in rule.where.items() if part != "term"]
        terms = affected.failed_terms(material, rule) if affected.names_identities(rule) else []
        people = [([material.person(rule.suite, term)], amount) for term, amount in terms]
        entries |= {
            (rule.metric, rule.suite, ", ".join([*who, *inside]), amount): None
            for who, amount in people or [([], value)]
        }
    parts: list[Inline] = []
    for (metric, _), rows in groupby(islice(entries, _ALSO), key=lambda entry: entry[:2]):
        first = next(rows)
        amounts: list[Inline] = []
        for _, _, who, amount in (first, *rows):
            of_whom: blocks.Words = [name(who, Tone.STRONG), " "] if who else []
            amounts.append([*of_whom, "(", figure(amount), ")"])
        between = ": " if first[2] else " "
        parts.append([figures.title(metric), between, *joined(amounts)])
    more = len(entries) - _ALSO
    rest = [f", and {more} more"] if more > 0 else []
    return [" Also failed: ", *joined(parts, "; "), *rest, "."] if parts else []


def example(material: Material) -> Inline:
    """Give one changed answer, the clearest one of the most affected identity, in a sentence."""
    about, is_red = affected.subject(material), material.result.outcome is Outcome.FAIL
    rule = affected.leading(material.result)
    if is_red and rule is not None and moved.is_of_reference(rule.metric):
        return moved.example(material, rule, partial(_quoted, material))
    if is_red and answers_to_identity.clearest(material, 1):
        return answers_to_identity.example(material)
    if is_red and about is Subject.DOCUMENTS:
        return _documents_instead(material)
    row = next(iter(cases.clearest_cases(material)), None)
    if row is None or not is_red or about is not Subject.ANSWERS:
        return ""
    titled = affected.titled(material)
    if titled and (row.suite, row.term) not in titled:
        return ""
    source = _quoted(material, material.case(row.suite, row.source).varied)
    if not row.names_speaker:  # the relation changes the text itself
        follow_up = _quoted(material, material.case(row.suite, row.key).varied)
        first, second = (cases.answer_of(a, Tone.STRONG) for a in (row.source_answer, row.answer))
        words: blocks.Words = ["For example, ", source, " is answered ", first, " and ", follow_up]
        return [*words, " is answered ", second, "."]
    before: blocks.Words = [
        cases.answer_of(row.source_answer, Tone.STRONG),
        " without a speaker and ",
    ]
    answer = row.answer.value
    if answer is None or agree(row.source_answer.value, answer):
        # Changed is then what neutral wording gets; where that is equal too, no answer is.
        if answer is None or not row.majority or row.majority == in_words(answer):
            return ""
        before = [name(row.majority, Tone.STRONG), " with neutral wording and "]
    after: blocks.Words = [cases.answer_of(row.answer, Tone.STRONG), " if it is said by "]
    return ["For example, ", source, " is ", *before, *after, name(row.speaker, Tone.STRONG), "."]


def _documents_instead(material: Material) -> Inline:
    """Return one text that finds other documents, and the first that went and that came."""
    row = next(iter(cases.moved_pairs(material)), None)
    if row is None or not row.names_speaker:
        return ""
    text = _quoted(material, material.case(row.suite, row.source).varied)
    who = name(row.speaker, Tone.STRONG)
    said_by: blocks.Words = ["Said by ", who, ", ", text, " finds other documents"]
    gone, new = (documents[:1] for documents in cases.documents_of(material, row))
    came: blocks.Words = [": ", *new[0]] if new else []
    went: blocks.Words = [" instead of ", *gone[0]] if new and gone else []
    return [*said_by, *came, *went, "."]


def _quoted(material: Material, text: str) -> blocks.Span:
    return blocks.Span(excerpt(redacted(text, material.options.redact)), blocks.Kind.QUOTE)


def standing(material: Material) -> Inline:
    """Return in one line how many rules passed, on how much, against what."""
    rules = material.rules
    groups = Counter(
        verdict.group_of(row)
        or _COUNTED[row.rule.outcome]
        + " (advisory)" * row.rule.advisory
        + " (waived)" * bool(row.rule.waiver)
        for row in rules
    )
    passed = groups.pop("passed", 0)
    words: blocks.Words = [f"{passed} of {figures.count(len(rules), 'rule')} passed"]
    words += [f", {many:,} {group}" for group, many in groups.items()]
    words.append(f" · {verdict.decided(material)}")
    if material.baseline is not None and material.baseline.date:
        words += [" · baseline of ", blocks.Span(material.baseline.date, blocks.Kind.DATE)]
    return words


def next_step(material: Material, explain: str, improvements: Improvements) -> Inline:
    """Return the reader's next step; `explain` is the command for the clearest case, if any."""
    result, accept = material.result, verdict.accept_command(material)
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
    if improvements.better and accept:
        return ["Next: hold later runs to the better values with ", command(accept), "."]
    if result.overlap is None and accept:
        first: blocks.Words = ["make this run the first baseline with ", command(accept), "."]
        if any(rule.outcome is Outcome.INCONCLUSIVE and not rule.advisory for rule in result.rules):
            power = command(
                f"fairgate power {shlex.quote(result.gate_input.provenance.policy_path)}"
            )
            more: blocks.Words = ["ask about more sources, so that every rule is decided (", power]
            return ["Next: ", *more, " says how many). If that is not possible, ", *first]
        return ["Next: ", *first]
    return ""


def _on_purpose(material: Material, accept: str) -> blocks.Words:
    """Return the way to pass a wanted change; accepting one leaves limits and budgets."""
    binding = [rule for rule in material.result.rules if rule.fails_gate]
    policy = code(material.result.gate_input.provenance.policy_path)
    if verdict.breaks_only_limits(material.result) and material.options.limit is None:
        failures = "the failure" if len(binding) == 1 else "the failures"
        return [f", or waive {failures} until a date with ", code("waivers"), " in ", policy]
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


def cause_step(material: Material) -> Inline:
    """Return how to find where a recorded system's changes come from: it cannot be asked itself."""
    run, options = material.run, material.options
    crossed = (case for case in run.added if case.documents_of is not None)
    is_open = any((case.suite, case.key) not in run.executions for case in crossed)
    asks_user = options.has_explain and "recorded" in run.result.gate_input.provenance.under_test
    if not asks_user or not is_open or run.result.outcome is not Outcome.FAIL:
        return ""
    policy = shlex.quote(run.result.gate_input.provenance.policy_path)
    plan_command = command(f"fairgate plan {policy} --after {shlex.quote(options.run_path)}")
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
    return view_of(run, loaded, run_path=str(out), has_explain=True, files=files, **more)


def texts_of(
    view: blocks.View, formats: Iterable[Format]
) -> dict[str, Callable[[], str | Iterator[str]]]:
    """Return the content of each of a run's files, by the file's name."""
    return {form.file: partial(form.render, view) for form in formats}


SECTIONS: Sequence[Callable[[Material], Iterable[blocks.Section]]] = (
    verdict.rules,
    verdict.trend,
    answers_to_identity.told,
    affected.terms,
    moved.moved,
    neutral_band.beside_neutral,
    measured.social_bias,
    measured.causes,
    measured.retrieval,
    cases.cases,
    case_browser.changed_cases,
    case_browser.answers,
    verdict.relations,
    verdict.evidence,
    verdict.reproduce,
)
"""What answers the questions of reports, in their order; nothing where one does not arise."""
