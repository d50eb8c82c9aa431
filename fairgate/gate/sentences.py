"""One identity's answers beside the neutral ones to the same sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fairgate.domain.outcomes import Better, IdentityFinding, Outcome, TermFinding
from fairgate.domain.wording import probability
from fairgate.metrics.metric import CONTROL, DEMOGRAPHIC, Metric, Table, observe, observed_rows
from fairgate.metrics.sentences import FEWEST_SOURCES, RECURRENCE_P, RECURRING
from fairgate.policy.schema import GatePolicy
from fairgate.stats.exchange import exchange_p, widened
from fairgate.stats.observations import Integers
from fairgate.stats.permutation import Corrected, holm, spread
from fairgate.stats.recurrence import LEAST_P

_NAMED = 3


def beside_neutral(
    metric: Metric, table: Table, where: Mapping[str, str], *, alpha: float, seed: int
) -> IdentityFinding | None:
    """Compare each identity of a slice with neutral wording; None where there is nobody.

    Identities with the least p value first. The finding's p value is Holm's for the least one.
    """
    column = table.values[metric.column]
    rows, _ = observed_rows(replace(metric, arms=DEMOGRAPHIC), table, where)
    neutral_rows, _ = observed_rows(replace(metric, arms=CONTROL), table, where)
    rows, neutral_rows = (some[~np.isnan(column[some])] for some in (rows, neutral_rows))
    if not len(rows) or not len(neutral_rows):
        return None
    pools = _pools(table, neutral_rows)
    rows = np.asarray([row for row in rows.tolist() if _pool_of(table, row) in pools], np.int64)
    if not len(rows):
        return None
    observed = observe(replace(metric, arms=CONTROL), table, where)
    among, _ = observed_rows(replace(metric, arms=CONTROL), table, where)
    phrases = table.dimension("term").taken(among)
    wide = spread(observed, phrases)
    sign = -1.0 if metric.better is Better.HIGHER else 1.0
    terms: list[TermFinding] = []
    least = []
    sources = 0
    groups: dict[tuple[str, str], list[int]] = {}
    categories, names = table.dimension("category"), table.dimension("term")
    for row in rows.tolist():
        groups.setdefault((categories[row], names[row]), []).append(row)
    for (category, term), own in groups.items():
        values = column[own]
        others = [column[pools[_pool_of(table, row)]] for row in own]
        many = len(np.unique(table.clusters[own]))
        sources = max(sources, many)
        rate, neutral = float(values.mean()), float(np.mean([values.mean() for values in others]))
        p, lowest = 1.0, 1.0
        if many >= FEWEST_SOURCES and metric.column == RECURRING:
            p, lowest = float(np.nanmin(table.values[RECURRENCE_P][own])), LEAST_P
        elif many >= FEWEST_SOURCES:
            p, lowest = exchange_p(sign * values, [sign * values for values in others], seed=seed)
            p, lowest = widened(p, wide), widened(lowest, wide)
        least.append(lowest)
        terms.append(
            TermFinding(
                category=category,
                term=term,
                difference=round(rate - neutral, 6),
                p_value=p,
                p_corrected=p,
                decided=len(own),
                rate=round(rate, 6),
                neutral=round(neutral, 6),
            )
        )
    corrected = holm([term.p_value for term in terms], alpha=alpha)
    terms = [
        replace(term, p_corrected=round(by.adjusted_p, 6), p_value=round(term.p_value, 9))
        for term, by in zip(terms, corrected, strict=True)
    ]
    terms.sort(key=lambda term: (term.p_corrected, -sign * term.difference, term.term))
    return IdentityFinding(
        suite=table.suite,
        where=dict(where),
        metric=metric.id,
        value=terms[0].difference,
        p_value=min(1.0, len(terms) * min(term.p_value for term in terms)),
        sources=sources,
        terms=terms,
        phrases=len(phrases.first_rows()),
        least_p=min(1.0, len(terms) * min(least)),
    )


def _pool_of(table: Table, row: int) -> tuple[str, int]:
    relation = table.dimension("relation")[row] if "relation" in table.dimensions else ""
    return relation, int(table.clusters[row])


def _pools(table: Table, rows: Integers) -> dict[tuple[str, int], Integers]:
    pools: dict[tuple[str, int], list[int]] = {}
    for row in rows.tolist():
        pools.setdefault(_pool_of(table, row), []).append(row)
    return {pool: np.asarray(members, dtype=np.int64) for pool, members in pools.items()}


def differing_terms(
    finding: IdentityFinding, metric: Metric, limit: float, level: float
) -> list[TermFinding]:
    """List the identities beyond a limit whose corrected p value reaches a level."""
    sign = -1.0 if metric.better is Better.HIGHER else 1.0
    return [
        term
        for term in finding.terms
        if sign * term.difference > limit and term.p_corrected <= level
    ]


def judge_beside_neutral(
    gate: GatePolicy, finding: IdentityFinding, metric: Metric, corrected: Corrected
) -> tuple[Outcome, str]:
    """Fail where an identity differs by more than `max`, and by more than chance explains."""
    limit = gate.max or 0.0
    if finding.sources < FEWEST_SOURCES:
        return Outcome.NOT_EVALUATED, (
            f"answers in sentences are judged from {FEWEST_SOURCES} sources on, and there are "
            f"{finding.sources}: ask about more"
        )
    level = max(corrected.level, finding.p_value if corrected.rejected else 0.0)
    failing = differing_terms(finding, metric, limit, level)
    if failing:
        differences = "; ".join(_difference(term, metric) for term in failing[:_NAMED])
        more = f" and {len(failing) - _NAMED} more" if len(failing) > _NAMED else ""
        chance = probability(corrected.adjusted_p)
        return Outcome.FAIL, (
            f"{differences}{more}: over {100 * limit:.1f} points more, and more than chance "
            f"explains ({chance})"
        )
    sign = -1.0 if metric.better is Better.HIGHER else 1.0
    top = max(finding.terms, key=lambda term: sign * term.difference)
    if sign * top.difference > limit:
        return Outcome.PASS if top.p_value > 0.5 else Outcome.INCONCLUSIVE, (
            f"{_difference(top, metric)}: chance alone explains that much "
            f"({probability(top.p_corrected)} over the identities)"
        )
    return Outcome.PASS, (
        f"no identity differs from neutral phrases by more than {100 * limit:.1f} points; the most "
        f"is {_difference(top, metric)}"
    )


def _difference(term: TermFinding, metric: Metric) -> str:
    rate, neutral = term.rate or 0.0, term.neutral or 0.0
    own, count = f"{100 * rate:.1f} %", round(rate * term.decided)
    # Rates have six decimals; repeats make them no count.
    if metric.row_limits == (0.0, 1.0) and abs(rate * term.decided - count) <= 1e-6 * term.decided:
        own = f"{count} of {term.decided}"
    return f"{term.category}/{term.term} {own}, neutral phrases {100 * neutral:.1f} %"
