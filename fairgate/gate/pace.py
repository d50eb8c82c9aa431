"""Whether a system answers more slowly than it did for the baseline: a note, never a verdict.

How long answers took is no part of a run's files, which are the same for the same answers, unless
they took notably longer. The median is kept in the result store beside what was under test, and
found again by the baseline's. Where the baseline's own run is not known there, the first run that
is compared with it stands for it; where the store is not at hand, nothing is known and nothing
said. Only runs that ask as many questions at once are compared, and none that waits between its
questions (`per_second`): the time is from when a question is handed out.
"""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace

from fairgate.domain.outcomes import Provenance, SlowerPace
from fairgate.gate.composition import Composition
from fairgate.gate.gate import GateInput, GateRun

_KIND = "pace"
FEWEST = 20
"""Answers without which nothing is kept or said."""
TIMES, SECONDS = 1.5, 0.02
"""A median is slower that is greater by both: the factor and the difference."""
_MOST = 10**9


def paced(run: GateRun, composition: Composition, given: GateInput) -> GateRun:
    """Keep how long this run's answers took, and add where the baseline's took notably less."""
    found = composition.answer_seconds
    together = dict(_settings(given.policy.system.model_dump(mode="json")))
    if len(found) < FEWEST or together.get("per_second") is not None:
        return run
    median, store = _rounded(statistics.median(found)), composition.store
    # The first run of a state is the one that a baseline is made of.
    states = [given.provenance, *([given.baseline.provenance] if given.baseline else [])]
    keys = [_key(given.policy.name, together, state) for state in states]
    kept = store.get_many(_KIND, keys)
    store.put_many(_KIND, [(key, json.dumps(median)) for key in keys if key not in kept])
    before = _seconds(kept.get(keys[-1], "")) if given.baseline else None
    if before is None or median < max(_rounded(before * TIMES), _rounded(before + SECONDS)):
        return run
    pace = SlowerPace(seconds=median, baseline_seconds=before, answers=len(found))
    return replace(run, result=replace(run.result, pace=pace))


def read_pace(found: Mapping[str, object]) -> SlowerPace | None:
    """Return what a run record says of the pace; None where it is none."""
    seconds, before, answers = (
        found.get(name) for name in ("seconds", "baseline_seconds", "answers")
    )
    if not isinstance(seconds, float) or not isinstance(before, float):
        return None
    if not isinstance(answers, int) or not 0 < answers < _MOST or not 0 <= before < seconds < _MOST:
        return None
    return SlowerPace(seconds=seconds, baseline_seconds=before, answers=answers)


def _settings(system: object) -> Iterator[tuple[str, object]]:
    """Yield how many questions are put at once and a second: both change how long each waits."""
    items = system.items() if isinstance(system, dict) else ()
    for name, value in items:
        if name in ("concurrency", "per_second") and value is not None:
            yield name, value
        yield from _settings(value)


def _key(policy: str, together: Mapping[str, object], provenance: Provenance) -> str:
    state = sorted(asdict(provenance)["under_test"].items())
    parts = (policy, sorted(together.items()), provenance.commit, state)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _rounded(seconds: float) -> float:
    """Return what reports show, so that a judgement never rests on more than they do."""
    return float(f"{seconds:.3g}")


def _seconds(text: str) -> float | None:
    """Return what is stored; None where nothing is, or no number."""
    try:
        value = float(text)
    except ValueError:
        return None
    return _rounded(value) if math.isfinite(value) and value >= 0 else None
