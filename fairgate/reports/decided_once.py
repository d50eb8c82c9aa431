"""Cases that no change is about, because only one of the two runs decided them (SPEC 8)."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from fairgate.domain.outcomes import RuleResult
from fairgate.engine.baseline import Baseline, comparable_rows, pair_contents
from fairgate.engine.gate import GateRun
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import observe
from fairgate.metrics.table import Table
from fairgate.reports import figures

DecidedOnce = Mapping[int, AbstractSet[tuple[str, str]]]
"""Position in the result's rules to the suites and keys of its cases that were decided once."""


def decided_once(run: GateRun, baseline: Baseline | None) -> DecidedOnce:
    """Return for every rule with a change the cases in both runs that only one run decided."""
    bases: dict[str, Table] = {}
    found: dict[int, AbstractSet[tuple[str, str]]] = {}
    for number, rule in enumerate(run.result.rules):
        suite = baseline.suites.get(rule.suite) if baseline else None
        if rule.change is None or suite is None:
            continue
        if rule.suite not in bases:
            contents = pair_contents(run.result.plan, rule.suite)
            bases[rule.suite] = comparable_rows(run.tables[rule.suite], suite, contents)
        now, base = _decided(rule, run.tables[rule.suite]), _decided(rule, bases[rule.suite])
        found[number] = {
            (rule.suite, key) for key in now.keys() & base.keys() if now[key] != base[key]
        }
    return found


def _decided(rule: RuleResult, table: Table) -> dict[str, bool]:
    observed = observe(BY_ID[rule.metric], table, rule.where)
    return dict(zip(observed.keys, observed.decided.tolist(), strict=True))


def not_compared(cases: int) -> str:
    """Return `19 cases decided in only one of the runs are not compared`."""
    verb = "is" if cases == 1 else "are"
    return f"{figures.count(cases, 'case')} decided in only one of the runs {verb} not compared"
