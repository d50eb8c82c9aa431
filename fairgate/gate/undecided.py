"""Whether more cases are undecided than in the baseline: what a comparison alone cannot detect.

A regression rule compares the cases that both runs decided. A system that stops answering drops out
of that comparison instead of failing it, so the share of undecided cases is compared too, with the
same test, and a worsening is gated as `unreadable` (SPEC 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairgate.domain.outcomes import Outcome
from fairgate.domain.units import Reason, counted
from fairgate.domain.wording import probability, signed
from fairgate.gate.bounds import Check
from fairgate.gate.references import Reference
from fairgate.metrics.table import Table
from fairgate.stats.evidence import RegressionEvidence, RegressionSettings
from fairgate.stats.multiplicity import Corrected
from fairgate.stats.observations import Observations, pair_by_key
from fairgate.stats.regression import prepare_regression

MARGIN = 0.02
"""Growth of the undecided share that is accepted, as a regression's default margin."""
ACCEPTED = {Reference.BASELINE: MARGIN, Reference.ANCHOR: 2 * MARGIN}
"""Growth that is accepted since each of the runs that are compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndecidedChange:
    """How the share of undecided cases of one column moved, both arms, on the common cases."""

    evidence: RegressionEvidence
    newly: Mapping[Reason, int]
    """Cases that the baseline decided and the run does not, by reason."""
    has_controls: bool = False
    """Whether neutral wording is among the cases."""

    @property
    def p_value(self) -> float:
        """Return the one-sided p value of "no more cases are undecided"."""
        return self.evidence.p_value


def as_often_as_neutral(own: Sequence[bool], neutral: Sequence[bool]) -> float:
    """Return how many of the cases flagged in `own` neutral wording has as often.

    They are unstable answers, which a real model gives to everybody: so many leave the cases of
    which `min_decided` is asked, and what is more counts against it. None without neutral cases.
    """
    return min(float(sum(own)), sum(neutral) / len(neutral) * len(own)) if len(neutral) else 0.0


def undecided_change(now: Table, base: Table, column: str, seed: int) -> UndecidedChange | None:
    """Return the change; None where no case became decided or undecided, so nothing is tested.

    Left out are quarantined cases (the policy says so itself, and the report counts them) and cases
    that nobody asked or recorded: those are missing evidence, which ends with exit code 5.
    """
    left_out = {
        now.keys[row]
        for row, why in now.reasons.get(column, {}).items()
        if why in (Reason.QUARANTINED, Reason.MISSING)
    }
    pairs = pair_by_key(
        _without(_flags(now, column), left_out), _without(_flags(base, column), left_out)
    )
    if not pairs.n_discordant:
        return None
    prepared = prepare_regression(
        pairs, RegressionSettings(margin=MARGIN), np.random.default_rng(seed)
    )
    if not prepared.evidence.evaluated:
        return None
    rows = {key: row for row, key in enumerate(now.keys)}
    gone = np.flatnonzero(pairs.now.values > pairs.base.values).tolist()
    why = now.reasons.get(column, {})
    newly = Counter(Reason(why[rows[pairs.now.keys[place]]]) for place in gone)
    controls = bool(now.control.any())
    return UndecidedChange(evidence=prepared.evidence, newly=newly, has_controls=controls)


def _flags(table: Table, column: str) -> Observations:
    return Observations(
        keys=list(table.keys),
        clusters=table.clusters,
        arms=np.zeros(len(table.keys), dtype=np.int8),
        values=np.isnan(table.values[column]).astype(np.float64),
        weights=(1.0,),
        n_clusters=len(table.cluster_names),
    )


def _without(observed: Observations, keys: set[str]) -> Observations:
    if not keys:
        return observed
    rows = np.asarray([key not in keys for key in observed.keys], dtype=bool)
    return replace(
        observed,
        keys=[key for key in observed.keys if key not in keys],
        clusters=observed.clusters[rows],
        arms=observed.arms[rows],
        values=observed.values[rows],
    )


def check_undecided(
    change: UndecidedChange, corrected: Corrected, reference: Reference = Reference.BASELINE
) -> Check | None:
    """Fail where significantly more cases are undecided, by more than is accepted; else None."""
    grown = change.evidence.worsening
    if not corrected.rejected or grown <= ACCEPTED[reference]:
        return None
    both = ", neutral wording included" if change.has_controls else ""
    return Check(
        outcome=Outcome.FAIL,
        reason=f"{signed(grown, is_rate=True)} points of the cases are no longer decided: "
        f"{sum(change.newly.values())} that the {reference} decided{both} "
        f"({counted(change.newly)}; {probability(corrected.adjusted_p)}); "
        "a comparison of the rest would hide them",
    )
