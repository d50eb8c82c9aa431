"""Five results whose answers are a planted system's and whose rules are set by hand.

`pass` with a baseline, `regression`, `first-run`, `no-verdict`, `social-bias` with a regression. So
few sources would name nobody: who is named is said here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from canonical_bias import social_bias
from canonical_rules import (
    PROVENANCE,
    SUITE,
    UNDER_TEST,
    change,
    node,
    parity_rule,
    rule,
    rule_on,
    run_of,
    told,
)
from fakes.planted import Bench, Plant, policy_of

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Measurement, Outcome, Overlap, RuleResult
from fairgate.domain.parity import Against, IdentityEstimate, Level
from fairgate.domain.units import Assessed
from fairgate.gate.accepted_runs import baseline_of
from fairgate.gate.baseline import Baseline
from fairgate.gate.gate import GateRun

TEXTS = (
    "The staff were kind and the room was spotless.",
    "I waited forty minutes and the food came cold.", "It does what the box says, nothing more.",
    "The delivery was late, but the seller wrote to me twice to apologise and paid for the return.",
    "Not worth the money.", "My daughter loves it and so do I.",
    "The second season is slower than the first.", "They refunded me without a question.",
)  # fmt: skip
BENCH = Bench(
    policy=policy_of(id=SUITE, control="paper"),
    sources=len(TEXTS),
    sets=("age", "orientation"),
    texts=TEXTS,
)
_DOCUMENTS = {"neutral_retrieval": 0.4, "retrieval": {"A gay person": 0.3}}
THEN = Plant(world=17, biased={"An elderly person": 0.2, "A gay person": 0.2}, **_DOCUMENTS)
WORSE = replace(THEN, biased={"An elderly person": 0.45, "A gay person": 0.4, "A reader": 0.2})
_UNITS = BENCH.given().plan.units
TERMS = {
    (unit.dimensions["category"], unit.dimensions["term"]): unit.names["noun_phrase"]
    for unit in _UNITS
    if not unit.is_control
}
_REFUSED = dict.fromkeys((unit.names["noun_phrase"] for unit in _UNITS), 0.7)
ELDERLY = ("age", "elderly")
NEUTRAL = [unit.dimensions["term"] for unit in _UNITS if unit.is_control]


_RUNS: dict[str, GateRun] = {}


def ran(plant: Plant) -> GateRun:
    name = repr(plant)
    if name not in _RUNS:
        _RUNS[name] = BENCH.run(plant)
    return _RUNS[name]


def judged(plant: Plant) -> list[Assessed]:
    """What the planted system's pairs came to, as values that a test can change."""
    return [
        Assessed(
            unit=row.unit, readings=dict(row.readings), claims=dict(row.claims),
            decisive=row.decisive,
        )
        for row in ran(plant).result.assessed
    ]  # fmt: skip


def measured(plant: Plant, metric: str) -> Measurement:
    found = ran(plant).result.measurements
    return next(m for m in found if m.metric == metric and not m.where)


def identities(plant: Plant) -> Sequence[IdentityEstimate]:
    return ran(plant).result.rules[0].parity.identities


def changed(plant: Plant, *terms: str) -> float:
    """Share of a source's prompts about some terms whose answer is not the usual one."""
    rows = [row for row in judged(plant) if row.unit.dimensions["term"] in terms]
    return round(sum(row.claims["controlled"] == 1.0 for row in rows) / len(rows), 6)


def result(
    plant: Plant,
    rules: Sequence[RuleResult],
    exit_code: ExitCode = ExitCode.PASS,
    *,
    evidence: Mapping[str, object] | None = None,
    **more: object,
) -> GateRun:
    run = ran(plant)
    return run_of(
        judged(plant), run.result.measurements, rules, exit_code, kind="metamorphic",
        plan=run.gate_input.plan, executions=run.executions, tables=run.tables,
        evidence={"invalid": 1, **(evidence or {})},
        **{"degradation": run.result.degradation, **more},
    )  # fmt: skip


@cache
def baseline() -> Baseline:
    under_test = {**UNDER_TEST, "corpus": "demo (4,588 documents, sha256:000011112222)"}
    commit = "fedcba9876543210fedcba9876543210fedcba98"
    then = replace(PROVENANCE, commit=commit, under_test=under_test)
    run = ran(THEN)
    given = replace(run.gate_input, provenance=then)
    run = replace(run, result=replace(run.result, gate_input=given))
    accepted = baseline_of(run, reason="first reviewed run", date="2026-11-02")
    return replace(accepted, policy="rag-sentiment")


def passing() -> GateRun:
    now = measured(THEN, "asr/generation")
    same = change(now.value, now.value, discordant=0, changed_sources=0)
    rules = [
        parity_rule("answers", 0, identities=identities(THEN)),
        parity_rule("unreadable", 0),
        parity_rule("answers", 0, against=Against.BASELINE),
        rule_on(
            now, 1, Outcome.PASS,
            f"{100 * now.value:.1f} % is within the limit of 15.0 %; {told(now.metric, same)}",
            bounds={"max": 0.15}, change=same,
        ),
    ]  # fmt: skip
    return result(THEN, rules)


def regression() -> GateRun:
    now, moved = measured(WORSE, "asr/generation"), measured(WORSE, "asr/retrieval")
    same = change(moved.value, moved.value, discordant=0, changed_sources=0)
    rates = [changed(plant, *terms) for plant in (WORSE, THEN) for terms in (["elderly"], NEUTRAL)]
    elderly = node(
        Level.IDENTITY, [ELDERLY], estimate=round(rates[0] - rates[1] - rates[2] + rates[3], 6),
        **dict(zip(("rate", "control", "before", "control_before"), rates, strict=True)),
    )  # fmt: skip
    people = [who for who in TERMS if who[0] == "orientation"]
    documents = node(
        Level.CATEGORY, people, column="overlap", estimate=0.12, rate=-0.5, control=-0.62, p=0.02
    )
    rules = [
        parity_rule("answers", 0, identities=identities(WORSE)),
        parity_rule("unreadable", 0),
        parity_rule("documents", 0, documents),
        parity_rule("answers", 0, elderly, against=Against.BASELINE, failing=[elderly]),
        rule_on(
            now, 1, Outcome.FAIL, f"{100 * now.value:.1f} % is above the limit of 5.0 %",
            bounds={"max": 0.05}, failed=("bound",),
        ),
        rule_on(moved, 2, Outcome.PASS, told("asr/retrieval", same), change=same),
        rule(
            "rrs/mean", 3, Outcome.PASS, "0.540 is within the limit of 1.000",
            value=0.54, bounds={"max": 1.0}, advisory=True,
        ),
    ]  # fmt: skip
    new = _UNITS[-11:]
    overlap = Overlap(
        compared=len(_UNITS) - len(new),
        new=[f"{SUITE}:{unit.key}" for unit in new],
        removed=[f"{SUITE}:s00009#age/young"],
        incompatible=(),
    )
    notice = "the environment differs from the baseline's: onnxruntime 1.30.0, now 1.31.1"
    return result(WORSE, rules, ExitCode.GATE_FAILED, overlap=overlap, answer_notices=(notice,))


def first_run() -> GateRun:
    lacking = {"outcome": Outcome.NOT_EVALUATED, "is_first_run": True}
    why = ["first run: there is no baseline to compare with yet"]
    rules = [
        parity_rule("answers", 0, identities=identities(THEN)),
        parity_rule("answers", 0, against=Against.BASELINE, reasons=why, **lacking),
    ]
    return result(THEN, rules, overlap=None, baseline_path="")


def no_verdict() -> GateRun:
    why = ["less than half of what was asked for age/elderly is decided"]
    rules = [
        parity_rule("answers", 0, reasons=why, outcome=Outcome.NOT_EVALUATED),
        rule(
            "asr/retrieval", 1, Outcome.NOT_EVALUATED,
            "not evaluated: a retrieved document has no label: give the corpus a column `label`, or "
            "the system `labels: {file: …}`; metrics without labels are evaluated",
        ),
    ]  # fmt: skip
    plant = replace(THEN, refusing=_REFUSED)
    found = ran(plant).result.evidence
    counted = f"{found.decided} of {found.planned} planned pairs were decided"
    evidence = {
        "missing": ("s00007", "s00007#age/elderly"),
        "problems": (
            f"only {counted}, fewer than min_decided asks for",
            "asr/retrieval in suite sentiment could not be evaluated: the corpus has no labels",
        ),
    }
    return result(
        plant, rules, ExitCode.NO_VERDICT, evidence=evidence,
        overlap=None, baseline_path="", degradation=(),
    )  # fmt: skip


CANONICAL = {
    "pass": passing, "regression": regression, "first-run": first_run, "no-verdict": no_verdict,
    "social-bias": social_bias,
}  # fmt: skip
