"""From a run to the presentation model that every report is rendered from."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import GateResult, Outcome
from fairgate.domain.verdicts import Reason
from fairgate.engine.baseline import Baseline
from fairgate.engine.gate import GateRun
from fairgate.reports import figures
from fairgate.reports.bias_view import BiasView
from fairgate.reports.cases import case_rows, changed_pairs, clearest
from fairgate.reports.causes import cause_views
from fairgate.reports.decided_once import DecidedOnce, decided_once, not_compared
from fairgate.reports.escaping import name, sentence
from fairgate.reports.headline import headline, is_first_run
from fairgate.reports.item_rows import answer_rows
from fairgate.reports.rule_rows import SYMBOLS, rule_rows
from fairgate.reports.slices import suite_views
from fairgate.reports.social_bias import bias_views
from fairgate.reports.trends import trend_groups
from fairgate.reports.view import (
    BaselineView,
    EvidenceView,
    RanView,
    ReportOptions,
    View,
)

_WORDS = {
    Outcome.PASS: "PASS",
    Outcome.FAIL: "FAIL",
    Outcome.INCONCLUSIVE: "NO VERDICT",
    Outcome.NOT_EVALUATED: "NO VERDICT",
}
_EXIT_MEANINGS = {
    ExitCode.PASS: "gate passed",
    ExitCode.GATE_FAILED: "gate failed",
    ExitCode.BASELINE: "baseline missing, incompatible or incomplete",
    ExitCode.NO_VERDICT: "no verdict",
}
_REASONS: Mapping[Reason, str] = {
    Reason.MISSING: "no answer",
    Reason.UNREADABLE: "no label in the answer",
    Reason.UNSTABLE: "unstable answer",
    Reason.NO_MAJORITY: "neutral answers have no majority",
    Reason.NO_CONTROLS: "no readable neutral answer",
    Reason.QUARANTINED: "quarantined by the policy",
}


def present(run: GateRun, options: ReportOptions, baseline: Baseline | None = None) -> View:
    """Return the presentation model of a run; `baseline` is what it was compared with."""
    result = run.result
    before = baseline.measurements if baseline else ()
    bias = bias_views(result, before)
    once = decided_once(run, baseline)
    policy_path = result.provenance.policy_path
    accept = f'fairgate baseline accept {shlex.quote(options.run_path)} --reason "…"'
    return View(
        policy=name(result.policy),
        outcome=result.outcome,
        symbol=SYMBOLS[result.outcome],
        word=_WORDS[result.outcome],
        exit_code=int(result.exit_code),
        exit_meaning=_EXIT_MEANINGS.get(result.exit_code, result.exit_code.name.lower()),
        report_only=options.report_only,
        is_first_run=is_first_run(result),
        confidence=f"{100 * options.confidence:g} %",
        headline=headline(result, before, once),
        rules=rule_rows(result.rules),
        suites=suite_views(run, before),
        causes=cause_views(result),
        cases=clearest(run, options, baseline),
        violated=changed_pairs(result.judged),
        rows=case_rows(result.judged),
        evidence=_evidence(result),
        baseline=_baseline(result, baseline, once),
        ran=_ran(result, baseline, bias),
        notices=tuple(map(sentence, result.notices)),
        run_command=options.run_command or f"fairgate run {shlex.quote(policy_path)}",
        accept_command=accept if options.run_path else "",
        files=options.files,
        bias=bias,
        answers=answer_rows(result.judged_items),
        trends=trend_groups(result, before),
    )


def _evidence(result: GateResult) -> EvidenceView:
    reasons = Counter(
        judged.generation for judged in result.judged if isinstance(judged.generation, Reason)
    ) + Counter(item.choice for item in result.judged_items if isinstance(item.choice, Reason))
    return EvidenceView(
        planned=result.evidence.planned,
        decided=result.evidence.decided,
        invalid=result.evidence.invalid,
        inconclusive=[
            (_REASONS.get(reason, str(reason)), number)
            for reason, number in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        ],
        missing=tuple(map(name, result.evidence.missing)),
        problems=tuple(map(sentence, result.evidence.problems)),
        unit="case" if result.judged_items else "pair",
    )


def _baseline(
    result: GateResult, baseline: Baseline | None, once: DecidedOnce
) -> BaselineView | None:
    if result.overlap is None:
        return None
    apart = len(frozenset().union(*once.values()))
    return BaselineView(
        path=name(result.baseline_path),
        reason=sentence(baseline.reason) if baseline else "",
        date=name(baseline.date) if baseline else "",
        commit=baseline.provenance.commit[:12] if baseline else "",
        compared=result.overlap.compared,
        new=tuple(map(name, result.overlap.new)),
        removed=tuple(map(name, result.overlap.removed)),
        incompatible=tuple(map(sentence, result.overlap.incompatible)),
        apart=not_compared(apart) if apart else "",
    )


def _ran(result: GateResult, baseline: Baseline | None, bias: Sequence[BiasView]) -> RanView:
    provenance = result.provenance
    now, then = provenance.under_test, baseline.provenance.under_test if baseline else None
    return RanView(
        suites=[
            *((name(suite), _size(result, suite)) for suite in result.plan.tasks),
            *((suite.suite, suite.size) for suite in bias),
        ],
        under_test=[
            (name(part), name(now.get(part, "nothing")), name(_since(part, now, then)))
            for part in dict.fromkeys((*now, *(then or ())))
        ],
        environment=[(name(key), name(value)) for key, value in provenance.environment.items()],
        fairgate=name(provenance.fairgate),
        commit=provenance.commit[:12],
        policy_path=name(provenance.policy_path),
    )


def _since(part: str, now: Mapping[str, str], then: Mapping[str, str] | None) -> str:
    if then is None:
        return ""
    if part not in then:
        return "new"
    return "unchanged" if now.get(part) == then[part] else f"changed, was {then[part]}"


def _size(result: GateResult, suite: str) -> str:
    pairs = [pair for pair in result.plan.pairs if pair.suite == suite]
    sources = len({pair.source for pair in pairs})
    terms, neutral = (
        len({pair.term for pair in pairs if pair.control is control}) for control in (False, True)
    )
    parts = [f"{figures.count(sources, 'source')} × {figures.count(terms, 'term')}"]
    if neutral:
        parts.append(f"{figures.count(neutral, 'neutral phrase')}")
    return f"{' + '.join(parts)}, {figures.count(len(pairs), 'pair')}"
