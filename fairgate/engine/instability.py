"""How steady the answers are over repeats of the same questions, relation by relation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fairgate.domain.cases import TestPlan
from fairgate.domain.findings import Instability
from fairgate.engine.ports import Executed
from fairgate.oracles.label import read_label
from fairgate.stats.entropy import entropy, stability

_DECIMALS = 6
Labels = Mapping[tuple[str, str], Sequence[str]]
"""(suite, key) to the labels of a case's repeats; cases with an unreadable repeat are left out."""


def instability(plan: TestPlan, executions: Executed) -> list[Instability]:
    """Return entropy and stability for each suite and relation; empty without repeats."""
    asked: dict[tuple[str, str], list[str]] = {}
    for case in plan.cases:
        if case.suite not in plan.tasks:
            continue
        asked.setdefault((case.suite, case.key.partition("@repeat=")[0]), []).append(case.key)
    repeated = {where: keys for where, keys in asked.items() if len(keys) > 1}
    labels = {}
    for (suite, key), keys in repeated.items():
        task = plan.tasks[suite]
        found = []
        for name in keys:
            execution = executions.get((suite, name))
            text = execution.response if execution is not None else None
            label = None if text is None else read_label(text, task)
            if label is not None:
                found.append(task.canonical(label))
        if len(found) == len(keys):
            labels[suite, key] = found
    return steadiness(plan, labels)


def steadiness(plan: TestPlan, labels: Labels) -> list[Instability]:
    """Return entropy and stability of the cases that each relation's pairs consist of."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for pair in plan.pairs:
        keys = groups.setdefault((pair.suite, pair.relation), {})
        keys |= dict.fromkeys((pair.source, pair.key))
    found = []
    for (suite, relation), keys in groups.items():
        known = [labels[suite, key] for key in keys if (suite, key) in labels]
        if known:
            mean = math.fsum(entropy(case) for case in known) / len(known)
            found.append(
                Instability(
                    suite=suite,
                    relation=relation,
                    repeats=max(len(case) for case in known),
                    cases=len(known),
                    stability=round(stability(known), _DECIMALS),
                    entropy=round(mean, _DECIMALS) + 0.0,
                )
            )
    return found
