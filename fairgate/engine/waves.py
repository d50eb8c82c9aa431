"""Ask wave after wave: the plan, what embeds its responses, what crosses its documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.executions import Execution
from fairgate.engine.crossing import Crossing
from fairgate.engine.judge import judge, readings_of
from fairgate.engine.ports import Progress, Staged, SystemUnderTest
from fairgate.engine.wave import Answered, Wave
from fairgate.oracles.thinking import spoken
from fairgate.relations.inverted_consistency import RESPONSE
from fairgate.suites.suite import Suite

MOST_EMBEDDED = 8_000
"""Characters of a response that are embedded: a system may write without end."""


class Planned:
    """The first wave: everything that can be asked without knowing an answer."""

    id: ClassVar[str] = "planned"

    def next(self, answered: Answered, seed: int) -> Sequence[Case]:
        """Return the plan's cases that embed no response."""
        del seed
        return [case for case in answered.plan.cases if case.embeds is None]


class EmbeddedResponses:
    """Cases whose text holds the response to another case (Meta-Fair MR8-MR10)."""

    id: ClassVar[str] = "embedded-responses"

    def next(self, answered: Answered, seed: int) -> Sequence[Case]:
        """Return the plan's other cases; one whose response says nothing is not asked."""
        del seed
        found = []
        for case in answered.plan.cases:
            if case.embeds is None:
                continue
            execution = answered.executions.get((case.suite, case.embeds))
            spoken_part = spoken((execution.response if execution is not None else None) or "")
            if spoken_part:
                query = case.query.replace(RESPONSE, spoken_part[:MOST_EMBEDDED])
                found.append(replace(case, query=query))
        return found


WAVES: tuple[Wave, ...] = (Planned(), EmbeddedResponses(), Crossing())
"""In the order in which they are asked; units ask cases of the first two only."""
_PARTS = {Crossing.id: "attribution", EmbeddedResponses.id: "questions about answers"}
"""What progress calls the waves after the first."""


def answer_waves(
    plan: TestPlan,
    suites: Mapping[str, Suite],
    seed: int,
    sut: SystemUnderTest,
    progress: Progress,
) -> Answered:
    """Ask every wave, and return what is known then; units are judged from the planned cases."""
    executions: dict[tuple[str, str], Execution] = {}
    readings = readings_of(suites, executions)
    answered = Answered(
        plan=plan,
        suites=suites,
        readings=readings,
        executions=executions,
        judge=lambda: judge(plan, suites, readings, executions, sut),
    )
    for wave in WAVES:
        cases = wave.next(answered, seed)
        for case in cases:
            readings[case.suite].add(case)
        if cases:
            asked = TestPlan(cases=cases, units=())
            part = _PARTS.get(wave.id, wave.id)
            shown = progress if wave is WAVES[0] else Staged(progress, part)
            executions.update(sut.execute(asked, shown, executions))
        if wave is not WAVES[0]:
            answered.added.extend(cases)
    return answered
