"""How stable the answers are over repeats of the same questions, relation by relation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fairgate.domain.findings import Instability
from fairgate.domain.units import Unit, Value
from fairgate.gate.judge import ReadingsOf
from fairgate.stats.entropy import entropy, stability

_DECIMALS = 6
Answers = Mapping[tuple[str, str, str], Sequence[Value]]
"""Suite, relation and key to how the relation's oracle reads a case's repeats; cases with an
unreadable one are left out."""


def instability(units: Sequence[Unit], readings: ReadingsOf) -> list[Instability]:
    """Return entropy and stability for each suite and relation; empty without repeats."""
    answers: dict[tuple[str, str, str], Sequence[Value]] = {}
    for unit in units:
        relation = unit.dimensions.get("relation")
        if relation is None or not readings[unit.suite].has_repeats:
            continue
        for key in unit.asks.values():
            name = unit.suite, relation, key
            repeats = () if name in answers else readings[unit.suite].repeats_of(key, relation)
            values = [reading.value for reading in repeats if reading.value is not None]
            if values and len(values) == len(repeats):
                answers[name] = values
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
        names = [(suite, relation, key) for key in keys]
        known = [answers[name] for name in names if name in answers]
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
