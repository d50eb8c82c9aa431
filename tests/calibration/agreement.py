"""Whether executed systems and replayed variants of recorded runs agree within intervals."""

from dataclasses import dataclass, field

import numpy as np
from calibration.tables import clopper_pearson

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Measurements
from fairgate.domain.ports import SILENT
from fairgate.features.mutation.mutants import MutationKind, MutationReach
from fairgate.features.mutation.mutation_test import MutatedSystem
from fairgate.gate.gate import run_gate


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    kind: MutationKind
    reach: MutationReach
    gate: dict
    plant: dict
    metric: str
    slice: dict
    where: dict = field(default_factory=dict)
    """What the mutant is about."""


def gated_whole(test, replaced):
    """Gate a variant as any run: judged and measured whole."""
    system = MutatedSystem(test._executions, replaced, test._embed, test._rows)
    return run_gate(test._gate_input, system, SILENT)


def agree(case, runs) -> None:
    """Assert that both kinds of runs are stopped as often, and have the same mean value.

    `runs` are pairs: a run of a system that has the bias, and the variant of the same world's fair run.
    """
    rows = []
    for pair in runs:
        stopped = [run.result.exit_code is not ExitCode.PASS for run in pair]
        measured = [
            (run.result.measurements, run.result.gate_input.policy.suites[0].id) for run in pair
        ]
        values = [Measurements(each).value(case.metric, s, case.slice) for each, s in measured]
        rows.append((*stopped, *values))
    rows = np.asarray(rows, dtype=float)
    limits = [clopper_pearson(int(rows[:, n].sum()), len(rows), confidence=0.99) for n in (0, 1)]
    assert max(low for low, _ in limits) <= min(high for _, high in limits)
    values = rows[:, 2:]
    error = np.sqrt(values.var(axis=0, ddof=1).sum() / len(rows))
    assert abs(values[:, 0].mean() - values[:, 1].mean()) <= max(4 * error, 0.01)
    # The comparison would say nothing if none were ever caught.
    assert rows[:, :2].any() == (case.reach is not MutationReach.ALIKE)
