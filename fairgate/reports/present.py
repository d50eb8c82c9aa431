"""From a run to the view that every report is rendered from, and to the texts of reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from fairgate.domain.errors import ExitCode
from fairgate.domain.feature import FEATURES
from fairgate.domain.outcomes import Outcome
from fairgate.gate.baseline import Baseline, changed_environment
from fairgate.gate.gate import GateInput, GateRun
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.policy.schema import Policy
from fairgate.reports import summary
from fairgate.reports.affected import affected_table, alerts
from fairgate.reports.blocks import Block, Form, Text
from fairgate.reports.formats import Finished, Format
from fairgate.reports.material import ALONE, Beside, Material
from fairgate.reports.rule_rows import rule_rows
from fairgate.reports.sections.cases import case_items, explain_command, unreadable_answers
from fairgate.reports.sections.catalogue import section_kinds
from fairgate.reports.sections.evidence import changed_parts
from fairgate.reports.spans import Inline, Tone, Words, code, command, joined, name, spans, strong
from fairgate.reports.steps import cause_step, next_step, run_command
from fairgate.reports.summary import why
from fairgate.reports.view import WORDS, ReportOptions, ShownBeside, View

_EXIT_MEANINGS = {
    ExitCode.PASS: "gate passed",
    ExitCode.GATE_FAILED: "gate failed",
    ExitCode.BASELINE: "baseline missing, incompatible or incomplete",
    ExitCode.NO_VERDICT: "no verdict",
}
_DIFFERENCES = 20
_EXAMPLES = 3
_ONLY_BOUNDS = "only bounds decide, regression rules are not evaluated."
_UNASKED = "none"
"""What `--baseline` names where nothing is to be compared with."""
_OWN, _REVISION = "system", "revision"
"""What lists a system of the user's own, whose code is not seen, and what tells it apart."""
_PLAIN = {"recorded": "recorded answers"}
"""Parts under test as sentences name them."""


def present(
    run: GateRun,
    options: ReportOptions,
    baseline: Baseline | None = None,
    anchor: Baseline | None = None,
) -> View:
    """Return the view of a run; `baseline` and `anchor` are what it was compared with."""
    material = Material(run=run, options=options, baseline=baseline, anchor=anchor)
    result = run.result
    provenance = result.provenance
    return View(
        policy=result.policy,
        outcome=result.outcome,
        exit_code=int(result.exit_code),
        exit_meaning=_exit_meaning(material),
        title=summary.title(material),
        lead=summary.lead(material),
        choices=[_shown_beside(material, choice) for choice in material.choices],
        reasons=list(_reasons(material)),
        next_step=next_step(material, explain_command(material)),
        warnings=list(_warnings(material)),
        remarks=list(_remarks(material)),
        standing=summary.standing(material),
        rules=material.rules,
        sections=[section for kind in section_kinds() for section in kind.sections(material)],
        examples=case_items(material, _EXAMPLES),
        alerts=rule_rows([alert.rule for alert in alerts(result)]),
        problems=result.evidence.problems,
        differences=result.incompatible,
        run_command=run_command(material),
        files=options.files,
        fairgate=provenance.fairgate,
        commit=provenance.commit[:12],
        policy_path=f"{options.place}{provenance.policy_path}",
        baseline_path=f"{options.place}{result.baseline_path}" if result.overlap else "",
        under_test=provenance.under_test,
    )


def _exit_meaning(material: Material) -> str:
    code = material.result.exit_code
    return _EXIT_MEANINGS.get(code, code.name.lower())


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


def _shown_beside(material: Material, choice: Beside) -> ShownBeside:
    """Return what is said first of the run beside something."""
    shown = material.shown_beside(choice)
    is_usual = choice is material.beside
    return ShownBeside(
        id=choice.id,
        label=choice.label,
        note="" if is_usual else _note(material, choice),
        lead=summary.lead(shown),
        since=list(_paragraphs(since_then(shown))),
        affected=list(affected_table(shown)),
    )


def _note(material: Material, choice: Beside) -> Inline:
    """Return what a reader who chose something else should know: the verdict is not about it."""
    usual = material.beside.word
    decided = f": it was decided against the {usual}" if usual else ""
    words: Words = [f"The verdict stays{decided}. "]
    if choice.id == ALONE:
        alone = (
            "The headline, Who and Cases show this run alone: no case is marked as new or fixed."
        )
        return [*words, alone]
    if choice.run is None:
        kept = "kept as its rules' values alone: no case is marked as new or fixed."
        shown: Words = ["The headline and Who are compared with the ", *spans(choice.label), ", "]
        return [*words, *shown, kept]
    shown = ["The headline, Who and Cases are compared with the ", *spans(choice.label)]
    return [*words, *shown, "; rules, Retrieval, Relations and Method are not."]


def _reasons(material: Material) -> Iterator[Block]:
    """Yield why, an example and what to do, where there is anything to say."""
    yield from _paragraphs(why(material), summary.example(material))
    yield from unreadable_answers(material)
    yield from _paragraphs(cause_step(material))


def _paragraphs(*lines: Inline) -> Iterator[Block]:
    yield from (Text(lines=[words]) for words in lines if words)


def _warnings(material: Material) -> Iterator[Block]:
    """Yield what must not be overlooked."""
    result = material.result
    if material.options.report_only and result.outcome is not Outcome.PASS:
        words: Words = [
            strong(f"This is a {WORDS[result.outcome]}."),
            " ",
            command("--report-only"),
            (
                " keeps the exit code at 0; without it this run ends with exit code "
                f"{int(result.exit_code)} ({_exit_meaning(material)})."
            ),
        ]
        yield Text(lines=[words], form=Form.WARNING)
    for place, alert in enumerate(alerts(result)):
        leads = not place and result.outcome is Outcome.PASS  # the first sentence says what it is
        words = [strong("Warning: "), *spans(alert.advice if leads else alert.words)]
        yield Text(lines=[words], form=Form.WARNING)
    if material.options.limit is not None:
        many = f"{material.options.limit:,} sources or items of each suite"
        words = [
            strong("This is a first look."),
            f" At most about {many} were asked about, and nothing was compared. Leave out ",
            command("--limit"),
            " for the gate's verdict.",
        ]
        yield Text(lines=[words], form=Form.WARNING)
    problems = list(summary.further_problems(result))
    if problems:
        yield Text(lines=problems, form=Form.LIST)


def _first_run(material: Material) -> Iterator[str]:
    """Yield why nothing is compared with; the warning of a first look says it already."""
    if not summary.is_first_run(material.result) or material.options.limit is not None:
        return
    if material.result.baseline_path == _UNASKED:
        yield f"Compared with no baseline, as asked: {_ONLY_BOUNDS}"
    else:
        yield f"There is no baseline yet at {material.result.baseline_path}: {_ONLY_BOUNDS}"


def _remarks(material: Material) -> Iterator[Block]:
    """Yield what a reader should know beside the verdict."""
    result = material.result
    first = list(_first_run(material))
    if first or result.remarks:
        yield Text(lines=[*first, *result.remarks], form=Form.NOTE)
    differences = result.incompatible
    if differences:
        more = len(differences) - _DIFFERENCES
        last = [f"and {more:,} more"] if more > 0 else []
        yield Text(lines=[f"What must match but differs from the {summary.unfit(result)}:"])
        yield Text(lines=[*differences[:_DIFFERENCES], *last], form=Form.LIST)


def view_of(
    run: GateRun,
    given: GateInput,
    out: Path,
    formats: Sequence[Format],
    *,
    report_only: bool,
    limit: int | None = None,
) -> View:
    """Return what reports show to whoever has the run's folder."""
    options = ReportOptions(
        redact=given.policy.redact,
        confidence=given.policy.confidence,
        report_only=report_only,
        limit=limit,
        run_path=str(out),
        has_explain=True,
        of_features=of_features(given.policy),
        files={one.shown_as: str(out / one.file) for one in formats if one.shown_as},
    )
    return present(run, options, given.baseline, given.anchor)


def of_features(policy: Policy) -> dict[str, object]:
    """Return what a policy says by the keys that features bring."""
    return {key: getattr(policy, key) for feature in FEATURES for key in feature.policy_keys}


def gate_lines(loaded: LoadedPolicy) -> dict[int, int]:
    """Return the 1-based line of each gate in the policy."""
    return {
        position: loaded.parsed.located(("gates", position))[0]
        for position in range(len(loaded.policy.gates))
    }


def report_texts(
    view: View, run: GateRun, given: GateInput, loaded: LoadedPolicy, formats: Sequence[Format]
) -> Mapping[str, Callable[[], str | Iterator[str]]]:
    """Return what each file of a run will hold, by the file's name."""
    done = Finished(
        result=run.result,
        must_match=given.must_match,
        policy_text=loaded.parsed.text,
        gate_lines=gate_lines(loaded),
        confidence=given.policy.confidence,
    )
    return {one.file: partial(one.render, view, done) for one in formats}
