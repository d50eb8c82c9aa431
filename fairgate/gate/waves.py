"""Ask a plan wave after wave, and assess its units from the answers.

A later wave asks what follows from the answers to the earlier ones. Deterministic: equal answers,
equal cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairgate.domain.cases import Case, TestPlan, reference_key
from fairgate.domain.executions import Execution
from fairgate.domain.ports import Progress, Staged, SystemUnderTest
from fairgate.metrics.columns import AssessedSuite, AssessedUnits
from fairgate.relations.oracles.judge import JudgedTexts
from fairgate.relations.oracles.text import spoken
from fairgate.relations.relation import RESPONSE
from fairgate.suites.readings import Readings
from fairgate.suites.suite import Suite

MOST_EMBEDDED = 8_000
"""Characters of a response that are embedded: a system may write without end."""
ReadingsOf = Mapping[str, Readings]
"""Suite to its readings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The cases of all waves so far, with what was answered."""

    plan: TestPlan
    suites: Mapping[str, Suite]
    readings: ReadingsOf
    executions: dict[tuple[str, str], Execution]
    added: list[Case] = field(default_factory=list)
    """The cases of the waves after the first, also where a recording lacks them."""

    def ask(self, cases: Sequence[Case], sut: SystemUnderTest, progress: Progress) -> None:
        """Ask a wave."""
        for case in cases:
            self.readings[case.suite].add(case)
        if cases:
            self.executions.update(sut.execute(cases, progress, self.executions))
        self.added.extend(case for case in cases if case.wave > 1)

    def response_of(self, suite: str, key: str, *, whole: bool = False) -> str:
        """Return the response to a case without thinking; empty where there is none.

        With `whole`, text before a closing tag that nothing opened is a part of it.
        """
        execution = self.executions.get((suite, key))
        response = (execution.response if execution is not None else None) or ""
        return spoken(response, self.suites[suite].thinking, whole=whole)


def ask(
    plan: TestPlan, suites: Mapping[str, Suite], sut: SystemUnderTest, progress: Progress
) -> Answers:
    """Ask the plan, then what embeds its responses, judges about them, and a reference the same."""
    executions: dict[tuple[str, str], Execution] = {}
    readings = {
        name: Readings(
            name, suite.oracles, suite.unstable_margin, executions, suite.thinking, suite.why_unread
        )
        for name, suite in suites.items()
    }
    answers = Answers(plan=plan, suites=suites, readings=readings, executions=executions)
    for case in plan.cases:
        readings[case.suite].expect(case)
    answers.ask([case for case in plan.cases if not case.waits], sut, progress)
    embedding = list(embedded_responses(answers))
    answers.ask(embedding, sut, Staged(progress, "questions about answers"))
    answers.ask(list(judgements(answers)), sut, Staged(progress, "judgements"))
    answers.ask(list(reference_cases(plan, suites)), sut, progress)
    return answers


def assess(answers: Answers, sut: SystemUnderTest) -> AssessedUnits:
    """Return every unit of the plan assessed, suite by suite."""
    suites = {}
    for name, suite in answers.suites.items():
        units, readings = answers.plan.units_of(name), answers.readings[name]
        rows = suite.assess(units, readings, answers.executions, sut.vectors)
        suites[name] = AssessedSuite.of(rows)
    return AssessedUnits(suites)


def reference_cases(plan: TestPlan, suites: Mapping[str, Suite]) -> Iterator[Case]:
    """Yield what the policy's reference is asked: each case of the plan, under a key of its own.

    What embeds or judges a response is not asked: it would be another question.
    """
    for case in plan.cases:
        if suites[case.suite].setup.has_reference and not case.waits:
            yield case._replace(key=reference_key(case.key), of_reference=True)


def embedded_responses(answers: Answers) -> Iterator[Case]:
    """Yield the cases whose text holds the response to another one (Meta-Fair MR8-MR10).

    One whose response says nothing, or more than is embedded, is not asked.
    """
    for case in answers.plan.cases:
        stated = "" if case.embeds is None else answers.response_of(case.suite, case.embeds)
        if 0 < len(stated) <= MOST_EMBEDDED:
            yield case._replace(query=case.query.replace(RESPONSE, stated))


def judgements(answers: Answers) -> Iterator[Case]:
    """Yield what judges are asked about a pair of prompts and responses, or a follow-up.

    A pair without a response, or too long, is not judged (Meta-Fair).
    """
    for case in answers.plan.cases:
        if case.judge is None:
            continue
        texts = judged_texts(case, answers)
        if texts is not None:
            yield case._replace(query=texts.question())


def judged_texts(case: Case, answers: Answers) -> JudgedTexts | None:
    """Return what a judge's case is about; None where nothing is asked.

    What is not shown could be the biased part: a pair of which something is cut has no verdict.
    """
    responses = [answers.response_of(case.suite, key, whole=True) for key in case.judged]
    if not all(responses):
        return None
    cases = [answers.readings[case.suite].case(key) for key in case.judged]
    prompts = ["" if case_judged is None else case_judged.conversation for case_judged in cases]
    alone = len(prompts) == 1
    texts = JudgedTexts(
        source_prompt=None if alone else prompts[0],
        follow_up_prompt=prompts[-1],
        source_response=None if alone else responses[0],
        follow_up_response=responses[-1],
    )
    return None if texts.is_cut else texts
