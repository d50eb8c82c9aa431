"""Rule results by construction, and what the canonical runs ran on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import (
    Change,
    Evidence,
    Measurement,
    Outcome,
    Overlap,
    Provenance,
    RuleResult,
)
from fairgate.domain.parity import (
    Against,
    ColumnBand,
    IdentityEstimate,
    Level,
    NamedNode,
    ParityResult,
    rule_name,
)
from fairgate.domain.units import Assessed, Reason
from fairgate.gate.baseline import AcceptedRuns, Baseline
from fairgate.gate.changes import check_change
from fairgate.gate.gate import GateInput, GateResult, GateRun
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.parity import OUTCOMES
from fairgate.reports.blocks import Inline, ReportOptions, View, spans
from fairgate.reports.present import present

SUITE = "sentiment"
UNDER_TEST = {
    "corpus": "demo (5,000 documents, sha256:a1b2c3d4e5f6)",
    "embedder": "minilm (sha256:77aa00bb11cc)",
    "generator": "demo-slm (sha256:0f1e2d3c4b5a)",
    "prompt": "sha256:9988776655aa",
}
ENVIRONMENT = {"processor": "x86-64 avx512-vnni", "onnxruntime": "1.31.1"}
PROVENANCE = Provenance(
    under_test=UNDER_TEST, environment=ENVIRONMENT, fairgate="0.1.0",
    policy_path="policies/rag-sentiment.yaml", commit="0123456789abcdef0123456789abcdef01234567",
)  # fmt: skip


def change(base: float, now: float, **figures: object) -> Change:
    step = now - base
    defaults: dict[str, object] = {
        "base": base, "now": now, "change": round(step, 6), "lower": round(step - 0.03, 6),
        "upper": round(step + 0.03, 6), "p_value": 0.4, "p_corrected": 0.8, "significant": False,
        "sources": 10, "changed_sources": 2, "discordant": 3,
        "pairs": 80, "margin": 0.02,
        "method": "exact sign-flip test",
    }  # fmt: skip
    return Change(**{**defaults, **figures})  # type: ignore[arg-type]


def told(metric: str, moved: Change) -> str:
    """The reason that the gate itself gives, so that no report shows a text it would not write."""
    return check_change(moved, METRICS[metric], moved.pairs).reason


def rule(metric: str, position: int, outcome: Outcome, reason: str, **more: object) -> RuleResult:
    return RuleResult(
        metric=metric, position=position, outcome=outcome, reasons=[reason],
        **{"suite": SUITE, "where": {}, **more},  # type: ignore[arg-type]
    )  # fmt: skip


def node(level: Level, who: Sequence[tuple[str, str]], **more: object) -> NamedNode:
    """Somebody who is named, in the column `controlled` unless it says otherwise."""
    known = {"column": "controlled", "low": 0.05, "high": 0.61, "p": 0.004, "sources": 8, **more}
    return NamedNode(level=level, who=who, **known)  # type: ignore[arg-type]


def parity_rule(
    of: str,
    position: int,
    *named: NamedNode,
    against: Against = Against.CONTROL,
    failing: Sequence[NamedNode] = (),
    identities: Sequence[IdentityEstimate] = (),
    **more: object,
) -> RuleResult:
    """A question about an outcome; it fails where somebody is failing."""
    scan = ParityResult(
        suite=SUITE, outcome=of, against=against, p=named[0].p if named else 0.41,
        alpha=0.05 if against is Against.CONTROL else 0.01, named=named, identities=identities,
        bands=[ColumnBand(column="controlled", low=-0.08, high=0.08)],
        reach={"identity": 0.141, "category": 0.083, "everybody": 0.052},
        reach_column=next(iter(OUTCOMES[of].by_column)), sources=8, controls=9,
    )  # fmt: skip
    key = "regression" if against is Against.BASELINE else "max"
    known: dict[str, object] = {
        "outcome": Outcome.FAIL if failing else Outcome.PASS,
        "reasons": [f"{len(named)} named"], "suite": SUITE, "where": {},
        "bounds": {key: 0.02 if key == "regression" else OUTCOMES[of].max},
        "failed": (["regression" if key == "regression" else "parity"] if failing else []),
        "value": named[0].estimate if named else None, **more,
    }  # fmt: skip
    return RuleResult(
        metric=rule_name(of, against), position=position, parity=scan, failing=failing, **known,  # type: ignore[arg-type]
    )  # fmt: skip


def rule_on(
    measured: Measurement, position: int, outcome: Outcome, reason: str, **more: object
) -> RuleResult:
    known = {"suite": measured.suite, "where": measured.where, "interval": measured.interval}
    return rule(measured.metric, position, outcome, reason, **known, value=measured.value, **more)


@dataclass(frozen=True)
class CanonicalPart:
    """What reports read of a policy, or of a suite of it."""

    name: str = ""
    suites: Sequence[CanonicalPart] = ()
    reference: None = None
    confidence: float = 0.95
    regression_level: float = 0.01
    seed: int = 42
    id: str = ""
    kind: str = ""


def run_of(
    assessed: Sequence[Assessed],
    measurements: Sequence[Measurement],
    rules: Sequence[RuleResult],
    exit_code: ExitCode = ExitCode.PASS,
    *,
    kind: str,
    executions: object = (),
    tables: object = (),
    **more: object,
) -> GateRun:
    outcome = {
        ExitCode.PASS: Outcome.PASS,
        ExitCode.GATE_FAILED: Outcome.FAIL,
        ExitCode.NO_VERDICT: Outcome.INCONCLUSIVE,
    }
    decided = sum(not isinstance(one.decision, Reason) for one in assessed)
    evidence = {"invalid": 0, "missing": (), "problems": (), **more.pop("evidence", {})}
    (suite,) = {one.unit.suite for one in assessed}
    policy = f"rag-{suite.replace('bbq', 'social-bias')}"
    given = GateInput(
        policy=CanonicalPart(policy, [CanonicalPart(id=suite, kind=kind)]),  # type: ignore[arg-type]
        suites={},
        plan=more.pop("plan", TestPlan(cases=(), units=())),
        must_match={SUITE: {"task.labels": '["positive", "negative"]', "criterion": '"count"'}},
        provenance=PROVENANCE,
        accepted_runs=AcceptedRuns(
            baseline_path=more.pop("baseline_path", f"baselines/{policy}.json")
        ),
    )
    known: dict[str, object] = {
        "degradation": (),
        "overlap": Overlap(compared=len(assessed), new=(), removed=(), incompatible=()),
        **more,
    }
    result = GateResult(
        gate_input=given, outcome=outcome[exit_code], exit_code=exit_code, rules=rules,
        measurements=measurements, assessed=assessed,
        evidence=Evidence(planned=len(assessed), decided=decided, **evidence), **known,
    )  # fmt: skip
    return GateRun(
        result=result, executions=dict(executions), tables=dict(tables), readings={}, added=()
    )


def started(run: GateRun, **changes: object) -> GateRun:
    return replace(run, result=replace(run.result, gate_input=replace(run.gate_input, **changes)))


def beside(run: GateRun, before: Baseline | None, anchor: Baseline | None = None) -> GateRun:
    compared = replace(run.gate_input.accepted_runs, baseline=before, anchor=anchor)
    return started(run, accepted_runs=compared)


def view_of(
    run: GateRun, before: Baseline | None = None, anchor: Baseline | None = None, **options: object
) -> View:
    return present(beside(run, before, anchor), ReportOptions(**options))  # type: ignore[arg-type]


def having(run: GateRun, **changes: object) -> GateRun:
    return replace(run, result=replace(run.result, **changes))


def said(inline: Inline) -> str:
    """Return words of a report without their kinds."""
    return "".join(span.text for span in spans(inline))
