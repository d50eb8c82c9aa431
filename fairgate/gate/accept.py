"""Turn a run into a baseline; a run that decided too little cannot become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairgate.domain.errors import BaselineError, ExitCode
from fairgate.gate.baseline import Baseline, BaselineSuite, KnownSd, unit_contents
from fairgate.gate.decide import diluted
from fairgate.gate.gate import GateInput, GateRun
from fairgate.gate.measure import quartiles
from fairgate.metrics.attribution import COLUMNS
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.table import Table


def baseline_of(
    given: GateInput, run: GateRun, *, reason: str, date: str, sds: Sequence[KnownSd] = ()
) -> Baseline:
    """Return the baseline that this run would be; `sds` is what a burn-in measured.

    Raises BaselineError where the run has no verdict for lack of evidence: a narrow or broken run
    must not become what later runs are compared with.
    """
    # That every rule waits for a baseline is one problem, and the one that accepting solves.
    only_first = (
        all(
            rule.is_first_run
            for rule in run.result.rules
            if not rule.by_default and not rule.is_reported
        )
        and len(run.result.evidence.problems) == 1
    )
    only_diluted = run.result.evidence.problems == diluted(run.result.rules)
    if run.result.exit_code is ExitCode.NO_VERDICT and not only_first and not only_diluted:
        problems = "; ".join(run.result.evidence.problems)
        raise BaselineError(f"this run cannot become a baseline, it has no verdict: {problems}")
    return Baseline(
        policy=given.policy.name,
        reason=reason,
        date=date,
        suites={
            name: BaselineSuite(
                must_match=given.must_match[name],
                contents=unit_contents(given.plan, name),
                table=_kept(table),
                quartiles=quartiles(table),
            )
            for name, table in run.tables.items()
        },
        measurements=[m for m in run.result.measurements if m.value is not None],
        metric_versions={metric.id: metric.version for metric in METRICS},
        provenance=given.provenance,
        sds=sds,
    )


def _kept(table: Table) -> Table:
    """Leave out what rests on a sample of the pairs, which another run would draw otherwise."""
    sampled = set(COLUMNS.values())
    return replace(
        table,
        values={name: column for name, column in table.values.items() if name not in sampled},
        not_evaluated={k: v for k, v in table.not_evaluated.items() if k not in sampled},
    )
