"""Read the answers and decide every unit, whatever its kind; pure, no model involved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fairgate.domain.cases import TestPlan
from fairgate.domain.ports import Executed, SystemUnderTest
from fairgate.domain.units import Judged, Unit
from fairgate.suites.readings import Readings
from fairgate.suites.suite import Executions, Suite, VectorsOf

ReadingsOf = Mapping[str, Readings]
"""Suite to its readings."""
JudgeUnits = Callable[[Suite, Sequence[Unit], Readings, Executions, VectorsOf], list[Judged]]


def readings_of(suites: Mapping[str, Suite], executions: Executed) -> ReadingsOf:
    """Return the readings of every suite; an answer is read when it is first needed."""
    return {
        name: Readings(name, suite.oracles, suite.unstable_margin, executions)
        for name, suite in suites.items()
    }


def judge_units(
    suite: Suite,
    units: Sequence[Unit],
    readings: Readings,
    executions: Executions,
    vectors: VectorsOf,
) -> list[Judged]:
    """Return a judged unit for every unit of one suite, as the suite decides it."""
    return suite.judge(units, readings, executions, vectors)


def judge(
    plan: TestPlan,
    suites: Mapping[str, Suite],
    readings: ReadingsOf,
    executions: Executed,
    sut: SystemUnderTest,
    judge_units: JudgeUnits = judge_units,
) -> list[Judged]:
    """Return a judged unit for every unit of the plan, suite by suite, in the order of the plan."""
    units = {name: plan.units_of(name) for name in suites}
    return [
        judged
        for name, suite in suites.items()
        for judged in judge_units(suite, units[name], readings[name], executions, sut.vectors)
    ]
