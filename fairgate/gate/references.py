"""The two earlier runs that rules are compared with: the baseline and the pinned anchor (SPEC 8).

The margin counts from the baseline, anew after each that is accepted, so a series of small changes
passes one by one. The budget counts from the anchor, which stays until another one is pinned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fairgate.domain.findings import KeptKillScore
from fairgate.gate.baseline import Baseline
from fairgate.policy.gates import GatePolicy, RegressionPolicy


class Reference(StrEnum):
    """Which earlier run; its value is what messages call it."""

    BASELINE = "baseline"
    ANCHOR = "anchor"

    @property
    def check(self) -> str:
        """Return the name of the check among those that a rule failed."""
        return "regression" if self is Reference.BASELINE else "budget"

    @property
    def limit(self) -> str:
        """Return what the policy calls the largest change that is accepted."""
        return "margin" if self is Reference.BASELINE else "budget"

    @property
    def missing(self) -> str:
        """Return why nothing is compared where there is no such run."""
        if self is Reference.BASELINE:
            return "first run: there is no baseline to compare with yet"
        return (
            "the budget is not evaluated: there is no anchor yet; pin a reviewed run with "
            "`fairgate baseline anchor RUN --reason …`"
        )

    @property
    def remedy(self) -> str:
        """Return what to do where the run lacks what a rule needs."""
        command = "accept" if self is Reference.BASELINE else "anchor"
        return f"{command} a run that has it with `fairgate baseline {command}`"

    def asked(self, gate: GatePolicy) -> RegressionPolicy | None:
        """Return what a gate asks of the change since this run; None where it asks nothing."""
        if gate.regression is None or self is Reference.BASELINE:
            return gate.regression
        return gate.regression.since_anchor()


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """What a policy's runs are compared with, and where it is kept."""

    baseline: Baseline | None
    baseline_path: str
    anchor: Baseline | None = None
    anchor_path: str = ""
    """Empty where no rule has a budget."""
    kill_score: KeptKillScore | None = None
    """Of this version of the policy; nothing is compared with it."""
    notices: Sequence[str] = ()


NO_REFERENCES = References(baseline=None, baseline_path="none")
