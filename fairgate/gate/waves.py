"""Ask wave after wave: the plan, what embeds responses, what judges are asked, what crosses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.executions import Execution
from fairgate.domain.ports import Progress, Staged, SystemUnderTest
from fairgate.gate.crossing import Crossing, crossing_price
from fairgate.gate.judge import JudgeUnits, judge, judge_units, readings_of
from fairgate.gate.wave import Answered, Wave
from fairgate.relations.inverted_consistency import RESPONSE
from fairgate.relations.oracles.thinking import spoken
from fairgate.relations.oracles.verdict import JudgedTexts
from fairgate.suites.suite import Suite

MOST_EMBEDDED = 8_000
"""Characters of a response that are embedded: a system may write without end."""


class Planned:
    """The first wave: everything that can be asked without knowing an answer."""

    id: ClassVar[str] = "planned"

    def next(self, answered: Answered, seed: int) -> Sequence[Case]:
        """Return the plan's cases that wait for no response."""
        del seed
        return [case for case in answered.plan.cases if not case.waits]


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
            spoken_part = said_in(answered, case.suite, case.embeds)
            if spoken_part:
                query = case.query.replace(RESPONSE, spoken_part[:MOST_EMBEDDED])
                found.append(case._replace(query=query))
        return found


class Judgements:
    """Questions to judges about a pair of prompts and responses, or a follow-up (Meta-Fair)."""

    id: ClassVar[str] = "judgements"

    def next(self, answered: Answered, seed: int) -> Sequence[Case]:
        """Return what judges are asked; a pair without a response, or too long, is not judged."""
        del seed
        asked = [case for case in answered.plan.cases if case.judge is not None]
        found = []
        for case in asked:
            responses = [said_in(answered, case.suite, key, whole=True) for key in case.judged]
            if all(responses):
                asks = [answered.readings[case.suite].case(key) for key in case.judged]
                prompts = ["" if each is None else each.query for each in asks]
                alone = len(prompts) == 1
                texts = JudgedTexts(
                    source_prompt=None if alone else prompts[0],
                    follow_up_prompt=prompts[-1],
                    source_response=None if alone else responses[0],
                    follow_up_response=responses[-1],
                )
                # What is not shown could be the biased part: such a pair has no verdict.
                found += [] if texts.is_cut else [case._replace(query=texts.question())]
        return found


def said_in(answered: Answered, suite: str, key: str, *, whole: bool = False) -> str:
    """Return what the response to a case says beside thinking; empty where there is none.

    With `whole`, text before a closing tag that nothing opened is a part of it.
    """
    execution = answered.executions.get((suite, key))
    return spoken((execution.response if execution is not None else None) or "", whole=whole)


WAVES: tuple[Wave, ...] = (Planned(), EmbeddedResponses(), Judgements(), Crossing())
"""In the order in which they are asked; units ask cases of all but the last."""
_PARTS = {
    Crossing.id: "attribution",
    EmbeddedResponses.id: "questions about answers",
    Judgements.id: "judgements",
}
"""What progress calls the waves after the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Which waves are asked, and what decides the units."""

    waves: Sequence[Wave] = WAVES
    judge_units: JudgeUnits = judge_units


WHOLE = Asking()
"""Every wave; suites decide their units."""


def answer_waves(
    plan: TestPlan,
    suites: Mapping[str, Suite],
    seed: int,
    sut: SystemUnderTest,
    progress: Progress,
    asking: Asking = WHOLE,
) -> Answered:
    """Ask every wave, and return what is known then; units are judged from the planned cases."""
    executions: dict[tuple[str, str], Execution] = {}
    readings = readings_of(suites, executions)
    answered = Answered(
        plan=plan,
        suites=suites,
        readings=readings,
        executions=executions,
        judge=lambda: judge(plan, suites, readings, executions, sut, asking.judge_units),
    )
    for case in plan.cases:
        readings[case.suite].expect(case)
    for wave in asking.waves:
        cases = wave.next(answered, seed)
        for case in cases:
            readings[case.suite].add(case)
        if cases:
            asked = TestPlan(cases=cases, units=())
            part = _PARTS.get(wave.id, wave.id)
            price = crossing_price(cases) if wave.id == Crossing.id else ""
            shown = progress if wave is asking.waves[0] else Staged(progress, part, price)
            executions.update(sut.execute(asked, shown, executions))
        if wave is not asking.waves[0]:
            answered.added.extend(cases)
    return answered
