"""Turn a run into a baseline; a run that decided too little cannot become one."""

from __future__ import annotations

from fairgate.domain.errors import BaselineError, ExitCode
from fairgate.engine.baseline import Baseline, BaselineSuite, pair_contents
from fairgate.engine.gate import GateInput, GateRun
from fairgate.engine.measure import quartiles
from fairgate.metrics.catalogue import METRICS


def baseline_of(given: GateInput, run: GateRun, *, reason: str, date: str) -> Baseline:
    """Return the baseline that this run would be.

    Raises BaselineError where the run has no verdict for lack of evidence: a narrow or broken run
    must not become what later runs are compared with.
    """
    only_first = all(rule.is_first_run for rule in run.result.rules)
    if run.result.exit_code is ExitCode.NO_VERDICT and not only_first:
        problems = "; ".join(run.result.evidence.problems)
        raise BaselineError(f"this run cannot become a baseline, it has no verdict: {problems}")
    return Baseline(
        policy=given.policy.name,
        reason=reason,
        date=date,
        suites={
            name: BaselineSuite(
                must_match=given.must_match[name],
                contents=pair_contents(given.plan, name),
                table=table,
                quartiles=quartiles(table),
            )
            for name, table in run.tables.items()
        },
        measurements=[m for m in run.result.measurements if m.value is not None],
        metric_versions={metric.id: metric.version for metric in METRICS},
        provenance=given.provenance,
    )
