"""How long answers took, beside those of the baseline's own run: a note, never a verdict."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from fairgate.domain.outcomes import Provenance, SlowerPace
from fairgate.domain.ports import ResultStore

if TYPE_CHECKING:
    from fairgate.gate.gate import GateInput

_KIND = "pace"
_FEWEST = 20
"""Answers without which no pace is kept or reported."""
_TIMES, _SECONDS = 1.5, 0.02
"""A median is slower that is greater by both: the factor and the difference."""
_MOST = 10**9


def slower_pace(
    gate_input: GateInput, seconds: Sequence[float], store: Callable[[], ResultStore]
) -> SlowerPace | None:
    """Keep how long a run's answers took; return the pace where the baseline's took notably less.

    `seconds` are those of each answer that was asked from outside; `store` opens the result store.
    How long answers took is no part of a run's files, which are the same for the same answers,
    unless they took notably longer. The median is kept in the store beside what was under test, and
    found again by the baseline's. Where the baseline's own run is not known there, the first run
    that is compared with it stands for it; without the store there is no note. Only runs that ask
    as many questions at once are compared, and none that waits between its questions
    (`per_second`): the time is from when a question is handed out.
    """
    policy, baseline = gate_input.policy, gate_input.references.baseline
    together = dict(_settings(policy.system.model_dump(mode="json")))
    if len(seconds) < _FEWEST or together.get("per_second") is not None:
        return None
    median, opened = _rounded(statistics.median(seconds)), store()
    # The first run of a state is the one that a baseline is made of.
    states = [gate_input.provenance, *([baseline.provenance] if baseline else [])]
    keys = [_key(policy.name, together, state) for state in states]
    stored = opened.get_many(_KIND, keys)
    opened.put_many(_KIND, [(key, json.dumps(median)) for key in keys if key not in stored])
    before = _seconds(stored.get(keys[-1], "")) if baseline else None
    if before is None or median < max(_rounded(before * _TIMES), _rounded(before + _SECONDS)):
        return None
    return SlowerPace(seconds=median, baseline_seconds=before, answers=len(seconds))


def read_pace(record: Mapping[str, object]) -> SlowerPace | None:
    """Read the pace in a run record; None where it has another form."""
    seconds, before, answers = (
        record.get(name) for name in ("seconds", "baseline_seconds", "answers")
    )
    if not isinstance(seconds, float) or not isinstance(before, float):
        return None
    if not isinstance(answers, int) or not 0 < answers < _MOST or not 0 <= before < seconds < _MOST:
        return None
    return SlowerPace(seconds=seconds, baseline_seconds=before, answers=answers)


def _settings(system: object) -> Iterator[tuple[str, object]]:
    """Yield how many questions are put at once and a second: both change how long each waits."""
    for name, value in system.items() if isinstance(system, dict) else ():
        if name in ("concurrency", "per_second") and value is not None:
            yield name, value
        yield from _settings(value)


def _key(policy: str, together: Mapping[str, object], provenance: Provenance) -> str:
    state = sorted(asdict(provenance)["under_test"].items())
    parts = (policy, sorted(together.items()), provenance.commit, state)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _rounded(seconds: float) -> float:
    """Round as in reports, so that a judgement never rests on more than they show."""
    return float(f"{seconds:.3g}")


def _seconds(text: str) -> float | None:
    """Read a stored number of seconds; None where there is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return _rounded(value) if math.isfinite(value) and value >= 0 else None
