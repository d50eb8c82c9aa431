"""Series of accepted changes under a margin and a budget: small ones add up, none are false alarms.

PYTHONPATH=tests:tools python -m calibration.budget --histories 1000

Every change is accepted: its run becomes the baseline of the next one, which is the hardest case,
because each baseline brings noise of its own. The anchor stays the first run.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from calibration.tables import clopper_pearson, markdown
from calibration.worlds import TERMS, Noise, Verdicts, one_run, propensities, stable_verdicts
from fakes.planted import policy_of

from fairgate.domain.outcomes import Measurement, Provenance, RuleResult
from fairgate.gate.baseline import Baseline, BaselineSuite, Reference
from fairgate.gate.changes import Comparison
from fairgate.gate.compare import rule_results
from fairgate.gate.rules import Rule
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import Table

METRIC, SUITE = "asr/generation/controlled", "s"
MARGIN, BUDGET = 0.02, 0.04
POLICY = policy_of([{"metric": METRIC, "regression": {"margin": MARGIN, "budget": BUDGET}}])
CHANGES = 50
NOISES = (
    Noise(name="few answers turn", pair=0.02),
    Noise(name="some answers turn", pair=0.1),
    Noise(name="sampling noise", pair=0.3),
    Noise(name="source answers turn", pair=0.1, source=0.05),
)


def accepted(verdicts: Verdicts) -> Baseline:
    """A baseline (or anchor) of these verdicts, [S, T]."""
    table = _table(verdicts)
    suite = BaselineSuite(
        must_match={}, contents=dict.fromkeys(table.keys, "0"), table=table, quartiles=None
    )
    return Baseline(
        policy=POLICY.name,
        reason="simulated",
        date="",
        suites={SUITE: suite},
        measurements=[],
        metric_versions={},
        provenance=Provenance(under_test={}, environment={}, fairgate="0", policy_path="p"),
    )


def _table(verdicts: Verdicts) -> Table:
    sources, terms = verdicts.shape
    return Table(
        suite=SUITE,
        keys=[f"s{s}#t{t}" for s in range(sources) for t in range(terms)],
        clusters=np.repeat(np.arange(sources), terms),
        cluster_names=[f"s{s}" for s in range(sources)],
        control=np.zeros(sources * terms, dtype=bool),
        dimensions={},
        values={BY_ID[METRIC].column: verdicts.reshape(-1)},
    )


def gate(now: Verdicts, base: Baseline, anchor: Baseline) -> RuleResult:
    """What the engine says of a run under the policy's margin and budget."""
    table = _table(now)
    rule = Rule(gate=POLICY.gates[0], position=0, metric=BY_ID[METRIC], suite=SUITE, where={})
    measured = Measurement(
        metric=METRIC, suite=SUITE, value=float(now.mean()), decided=now.size, violated=0
    )
    against = Comparison(
        runs={Reference.BASELINE: base, Reference.ANCHOR: anchor},
        contents={SUITE: dict.fromkeys(table.keys, "0")},
    )
    return rule_results([rule], {SUITE: table}, [measured], (), against, POLICY)[0]


def rising(seed: int, changes: int = 20, sources: int = 100) -> Iterator[RuleResult]:
    """Results of accepted changes of one point each, from a system that violates 10 % of pairs."""
    rng = np.random.default_rng(seed)
    verdicts = (rng.random((sources, TERMS)) < 0.1).astype(np.float64)
    anchor = base = accepted(verdicts)
    for _ in range(changes):
        kept = np.flatnonzero(verdicts.reshape(-1) == 0)
        verdicts = verdicts.copy()
        verdicts.reshape(-1)[rng.choice(kept, round(0.01 * verdicts.size), replace=False)] = 1
        yield gate(verdicts, base, anchor)
        base = accepted(verdicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """How often a history of unchanged changes failed."""

    margin: int
    budget: int
    sd: float
    """Of the per-source change between two runs."""

    @property
    def is_green(self) -> bool:
        return not self.margin and not self.budget


def unchanged(noise: Noise, seed: int, changes: int = CHANGES, *, whole: bool = False) -> History:
    """Gate an unchanged noisy system again and again, and accept every run.

    A rule fails only where the change is larger than its limit, so the engine is asked about those
    runs alone; `whole` asks it about every run.
    """
    rng = np.random.default_rng([seed, NOISES.index(noise)])
    rate = np.clip(propensities(rng), 1e-6, 1 - 1e-6)
    stable = stable_verdicts(rng, rate)
    first = base = one_run(rng, rate, stable, noise)
    margin = budget = 0
    spreads = []
    for _ in range(changes):
        now = one_run(rng, rate, stable, noise)
        spreads.append(float((now - base).mean(axis=1).std(ddof=1)))
        since, moved = float(now.mean() - first.mean()), float(now.mean() - base.mean())
        if whole or moved > MARGIN or since > BUDGET:
            failed = gate(now, accepted(base), accepted(first)).failed
            margin += "regression" in failed
            budget += "budget" in failed
        base = now
    return History(margin=margin, budget=budget, sd=float(np.mean(spreads)))


def alarm_table(histories: int) -> str:
    """Histories that stay green, and runs that fail by margin and by budget, with exact limits."""
    rows = []
    for noise in NOISES:
        # The last one is larger than the margin in every fifth run, and each of them is tested.
        asked = histories if noise is not NOISES[-1] else max(1, histories // 10)
        found = [unchanged(noise, seed) for seed in range(asked)]
        runs = asked * CHANGES
        rows.append(
            (
                noise.name,
                asked,
                f"{np.mean([one.sd for one in found]):.2f}",
                _rate(sum(one.is_green for one in found), asked),
                _rate(sum(not one.budget for one in found), asked),
                _rate(sum(one.margin for one in found), runs, digits=2),
                _rate(sum(one.budget for one in found), runs, digits=2),
            )
        )
    return markdown(
        ["unchanged system", "histories", "SD of change", "all 50 green", "no budget fails",
         "runs failing by the margin", "runs failing by the budget"],
        rows,
    )  # fmt: skip


def _rate(count: int, total: int, digits: int = 1) -> str:
    low, high = clopper_pearson(count, total)
    return f"{count / total:.{digits}%} [{low:.{digits}%}, {high:.{digits}%}]"


def rising_table(worlds: int) -> str:
    """At which of 20 changes of +1 point the budget fails, and how often the margin does."""
    first: list[int] = []
    by_margin = 0
    for seed in range(worlds):
        results = list(rising(seed))
        first.append(next(n for n, one in enumerate(results, 1) if "budget" in one.failed))
        by_margin += sum("regression" in one.failed for one in results)
    spread = f"{min(first)} … {max(first)}"
    return markdown(
        ["series", "first change that fails by the budget", "changes that fail by the margin"],
        [(f"{worlds} of 20 changes of +1 point", spread, f"{by_margin} of {20 * worlds}")],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--series", type=int, default=20)
    options = parser.parse_args()
    print(rising_table(options.series), flush=True)
    print("\n" + alarm_table(options.histories))


if __name__ == "__main__":
    main()
