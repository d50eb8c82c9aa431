"""Judges variants of one run: only what a replaced execution can affect is judged anew."""

from __future__ import annotations

from collections.abc import Sequence

from fairgate.domain.keys import first_asked
from fairgate.domain.ports import Executed
from fairgate.domain.units import Judged, Unit
from fairgate.gate.judge import judge_units
from fairgate.suites.readings import Readings
from fairgate.suites.suite import Executions, Suite, VectorsOf


class RememberedJudging:
    """Remembers how the units of a recorded run are judged. Implements `engine.judge.JudgeUnits`.

    For suites whose units are judged cluster by cluster: the answers to one source (one template)
    have no part in what is decided of another. Both kinds that can be mutated are.
    """

    def __init__(self, recorded: Executed) -> None:
        """Take the executions of the run, of which variants are made."""
        self._recorded = recorded
        self._known: dict[str, list[Judged]] = {}
        self._clusters: dict[str, dict[str, str]] = {}

    def __call__(
        self,
        suite: Suite,
        units: Sequence[Unit],
        readings: Readings,
        executions: Executions,
        vectors: VectorsOf,
    ) -> list[Judged]:
        """Return a judged unit for each unit, in their order."""
        changed = {
            key
            for (name, key), found in executions.items()
            if name == suite.id and found is not self._recorded.get((name, key))
        }
        known = self._known.get(suite.id)
        clusters = self._affected(suite.id, changed)
        if known is None or clusters is None:
            judged = judge_units(suite, units, readings, executions, vectors)
            if not changed:
                self._known[suite.id] = judged
                self._clusters[suite.id] = _clusters_of(units)
            return judged
        anew = [unit for unit in units if unit.cluster in clusters]
        fresh = iter(judge_units(suite, anew, readings, executions, vectors) if anew else ())
        return [next(fresh) if was.unit.cluster in clusters else was for was in known]

    def _affected(self, suite: str, changed: set[str]) -> set[str] | None:
        """Return the clusters of the changed cases; None where one is not known."""
        clusters = self._clusters.get(suite, {})
        found = {clusters.get(key, clusters.get(first_asked(key))) for key in changed}
        return None if None in found else {name for name in found if name is not None}


def _clusters_of(units: Sequence[Unit]) -> dict[str, str]:
    """Return the key of every case that is asked about a unit, with the unit's cluster."""
    return {key: unit.cluster for unit in units for key in (*unit.asks.values(), *unit.verdicts)}
