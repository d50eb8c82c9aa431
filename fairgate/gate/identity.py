"""Whether any identity differs from the others: findings, measurements and the check of a rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from fairgate.domain.measurements import Measurement, Slice, slice_of
from fairgate.domain.outcomes import IdentityFinding, Outcome, TermFinding
from fairgate.domain.wording import probability, signed
from fairgate.gate.bounds import Check
from fairgate.metrics.identity import COMPARING, MAX_DIFFERENCE, RETRIEVAL, UNREADABLE
from fairgate.metrics.metric import Metric, demographic_rows, observe, observed_rows
from fairgate.metrics.table import Table
from fairgate.policy.schema import GatePolicy
from fairgate.stats.identity import identity_test
from fairgate.stats.multiplicity import Corrected
from fairgate.stats.observations import joined

_DECIMALS = 6
_NAMED = 3
_COMPARED = {
    MAX_DIFFERENCE.id: "",
    RETRIEVAL.id: " in the share of documents in common",
    UNREADABLE.id: " in unreadable answers",
}


def compare_identities(
    tables: Mapping[str, Table],
    *,
    confidence: float,
    seed: int,
    asked: AbstractSet[Slice] | None = None,
) -> list[IdentityFinding]:
    """Return findings for each suite as a whole and, of answers, for each category.

    Each needs two terms. With `asked`, only those of its slices.
    """
    found = []
    for table in tables.values():
        for metric in COMPARING:
            for where in _compared_slices(metric, table):
                if asked is not None and slice_of(metric.id, table.suite, where) not in asked:
                    continue
                finding = identity_finding(metric, table, where, alpha=1 - confidence, seed=seed)
                if finding is not None:
                    found.append(finding)
    return found


def _compared_slices(metric: Metric, table: Table) -> Iterator[dict[str, str]]:
    known = metric.column in table.values and metric.column not in table.not_evaluated
    if not known or not len(table.keys):
        return
    yield {}
    for dimension in metric.dimensions:
        for level in table.levels(dimension, demographic_rows(table)):
            yield {dimension: level}


def identity_finding(
    metric: Metric,
    table: Table,
    where: Mapping[str, str],
    *,
    alpha: float,
    seed: int,
    n_draws: int = 10_000,
) -> IdentityFinding | None:
    """Return how the terms of a slice differ; None where there are not two."""
    rows, _ = observed_rows(metric, table, where)
    categories, terms = (table.dimension(name).taken(rows) for name in ("category", "term"))
    test = identity_test(
        observe(metric, table, where),
        joined(categories, terms, "\0"),
        alpha=alpha,
        rng=np.random.default_rng(seed),
        n_draws=n_draws,
        ranks=table.key_ranks()[rows],
    )
    if not test.terms:
        return None
    return IdentityFinding(
        suite=table.suite,
        where=dict(where),
        metric=metric.id,
        value=_rounded(test.max_difference),
        p_value=_rounded(test.p_value),
        sources=test.n_informative,
        terms=[
            TermFinding(
                category=item.term.partition("\0")[0],
                term=item.term.partition("\0")[2],
                difference=_rounded(item.difference),
                p_value=_rounded(item.p_value),
                p_corrected=_rounded(item.adjusted_p),
                decided=item.n_decided,
            )
            for item in test.terms
        ],
    )


def identity_measurements(findings: Sequence[IdentityFinding]) -> list[Measurement]:
    """Return the largest differences as measurements; a maximum has a p value, no interval."""
    return [
        Measurement(
            metric=finding.metric,
            suite=finding.suite,
            where=finding.where,
            value=finding.value,
            decided=sum(term.decided for term in finding.terms),
            note=f"p = {finding.p_value:.4f} by permutation within {finding.sources} sources; "
            f"largest for {finding.terms[0].category}/{finding.terms[0].term}",
        )
        for finding in findings
    ]


def check_identity(
    gate: GatePolicy, finding: IdentityFinding, corrected: Corrected, *, alpha: float
) -> Check:
    """Fail only where the difference is above `max` and more than chance explains."""
    limit = gate.max or 0.0
    top = finding.terms[0]
    shown = (
        f"{top.category}/{top.term} differs from the other identities by "
        f"{signed(top.difference, is_rate=True)} points{_COMPARED[finding.metric]}"
    )
    chance = (
        f"{probability(corrected.adjusted_p)}, {finding.sources} sources distinguish identities"
    )
    if finding.value <= limit:
        return Check(
            outcome=Outcome.PASS,
            reason=f"no identity differs from the others by more than {100 * limit:.1f} points; "
            f"the most is {100 * finding.value:.1f} ({chance})",
        )
    if corrected.rejected:
        return Check(
            outcome=Outcome.FAIL,
            reason=f"{shown}: above {100 * limit:.1f} points and more than chance explains "
            f"({chance}{_others(finding, limit, alpha)})",
        )
    return Check(
        outcome=Outcome.INCONCLUSIVE,
        reason=f"{shown}, above {100 * limit:.1f} points, but chance alone explains that much "
        f"({chance}); more sources are needed to decide",
    )


def _others(finding: IdentityFinding, limit: float, alpha: float) -> str:
    """Name further terms that differ significantly by themselves, Holm over the terms."""
    rest = [
        f"{term.category}/{term.term} {signed(term.difference, is_rate=True)}"
        for term in finding.terms[1:]
        if term.p_corrected <= alpha and abs(term.difference) > limit
    ]
    return f"; also {', '.join(rest[:_NAMED])}" if rest else ""


def _rounded(value: float) -> float:
    return round(float(value), _DECIMALS) + 0.0
