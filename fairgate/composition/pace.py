"""Whether a system answers more slowly than it did for the baseline: a note, never a verdict.

How long answers took is no part of a run's files, which are the same for the same answers. The
median is kept in the result store beside what was under test, and found again by the baseline's.
"""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from dataclasses import asdict

from fairgate.composition.building import Composition
from fairgate.domain.outcomes import Provenance
from fairgate.engine.gate import GateInput

_KIND = "pace"
_FEWEST = 20
"""Answers without which nothing is kept or said."""
_TIMES, _SECONDS = 1.5, 0.02
"""A median is slower that is greater by both: the factor and the difference."""


def pace_notices(composition: Composition, given: GateInput) -> list[str]:
    """Keep how long this run's answers took, and say where the baseline's took notably less."""
    found = composition.answer_seconds
    if len(found) < _FEWEST:
        return []
    median, store = statistics.median(found), composition.store
    own = _key(given.policy.name, given.provenance)
    base = None if given.baseline is None else _key(given.policy.name, given.baseline.provenance)
    kept = store.get_many(_KIND, [own] if base is None else [own, base])
    if own not in kept:  # the first run of a state is the one that a baseline is made of
        store.put_many(_KIND, [(own, json.dumps(median))])
    before = None if base is None else _seconds(kept.get(base, ""))
    if before is None or median < before * _TIMES or median < before + _SECONDS:
        return []
    slower = (
        f"the system answers more slowly than for the baseline: {median:.3g} s for an answer (the "
        f"median of {len(found):,}), {before:.3g} s then; no verdict depends on that"
    )
    return [slower]


def _key(policy: str, provenance: Provenance) -> str:
    parts = (policy, provenance.commit, sorted(asdict(provenance)["under_test"].items()))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _seconds(text: str) -> float | None:
    """Return what is stored; None where nothing is, or no number."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
