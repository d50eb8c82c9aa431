"""How stable the answers are over repeats of the same questions, relation by relation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fairgate.domain.findings import Instability
from fairgate.domain.units import Unit, Value
from fairgate.engine.judge import ReadingsOf
from fairgate.stats.entropy import entropy, stability

_DECIMALS = 6
Answers = Mapping[tuple[str, str], Sequence[Value]]
"""(suite, key) to the readings of a case's repeats; cases with an unreadable one are left out."""


def instability(units: Sequence[Unit], readings: ReadingsOf) -> list[Instability]:
    """Return entropy and stability for each suite and relation; empty without repeats."""
    answers: dict[tuple[str, str], Sequence[Value]] = {}
    for suite, own in readings.items():
        for key, repeats in own.repeats().items():
            values = [reading.value for reading in repeats if reading.value is not None]
            if len(values) == len(repeats):
                answers[suite, key] = values
    if not answers:
        return []
    return steadiness(units, answers)


def steadiness(units: Sequence[Unit], answers: Answers) -> list[Instability]:
    """Return entropy and stability of the cases that each relation's pairs consist of."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for unit in units:
        if "relation" in unit.dimensions:
            keys = groups.setdefault((unit.suite, unit.dimensions["relation"]), {})
            keys |= dict.fromkeys(unit.asks.values())
    found = []
    for (suite, relation), keys in groups.items():
        known = [answers[suite, key] for key in keys if (suite, key) in answers]
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
