"""A judge: the language models that say together whether a pair of responses is biased."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Self

from pydantic import Field, model_validator

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import BudgetError
from fairgate.domain.executions import Document, Execution
from fairgate.domain.fields import Access, JudgeModel, Name, Names, Role, Strict
from fairgate.domain.ports import NOTHING, Executed, Progress, SystemUnderTest, Vectors
from fairgate.domain.runtime import Runtime
from fairgate.systems.budget import BudgetPart, meter_of_judges
from fairgate.systems.chat_generator import EndpointGeneratorPolicy
from fairgate.systems.generators import GeneratorField
from fairgate.systems.judge_votes import ask_judge
from fairgate.systems.model_files import decoder_problem
from fairgate.systems.onnx_generator import GeneratorPolicy
from fairgate.systems.open_local import OpenLocal, model_name
from fairgate.systems.resources import Resources
from fairgate.systems.system_kind import OpenSystem

UNDER_TEST = "judge"
"""Name of the judge among what a run's results may come from."""


class _Generators(Strict):
    """The models of a judge, wherever it is described."""

    generators: Annotated[
        list[GeneratorField],
        Field(min_length=1, max_length=9),
        Names(Role.JUDGE, replaces=Role.GENERATOR),
    ] = Field(description="Generators as policies have them; several vote, an odd number is best.")
    budget: Annotated[
        BudgetPart | None,
        Field(
            description="The most that one run may ask of the endpoints among them, together and "
            "apart from `system.budget`. It stops with exit code 5 where it needs more; with a "
            "`revision` the next run goes on from there."
        ),
    ] = None

    @model_validator(mode="after")
    def _limits_what_is_asked(self) -> Self:
        if self.budget is not None and not any(
            isinstance(one, EndpointGeneratorPolicy) for one in self.generators
        ):
            raise ValueError("has a `budget`, but its models run here and ask nobody; leave it out")
        return self

    @property
    def names(self) -> list[str]:
        """Return what the models are called."""
        return [model_name(one) for one in self.generators]

    @property
    def definition(self) -> str:
        """Return what identifies models, prompts and decoding as they are written."""
        written = [one.model_dump(mode="json") for one in self.generators]
        return hashlib.sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()


class JudgeFile(_Generators):
    """A judge as its file describes it."""

    id: Name = Field(description="Name of the judge in records.")


class JudgePolicy(_Generators, JudgeModel):
    """Language models that judge pairs of open answers, and their record."""

    def accesses(self) -> Iterable[Access]:
        """Return the endpoints, each with the variable that is sent there."""
        for one in self.generators:
            if isinstance(one, EndpointGeneratorPolicy):
                yield from one.accesses


def judge_problems(
    judge: JudgeModel | None, runtime: Runtime
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the models of a policy's judge that are not there, with their place and a sentence."""
    for number, one in enumerate(judge.generators if isinstance(judge, JudgePolicy) else ()):
        if isinstance(one, GeneratorPolicy):
            wrong = decoder_problem(one.model, one.revision, runtime)
            if wrong:
                yield ("judge", "generators", number, "model"), wrong


def open_judges(judge: _Generators, resources: Resources) -> Sequence[OpenLocal]:
    """Return the models, each with the store of its answers; nothing is asked yet."""
    meter = meter_of_judges(judge.budget, resources)
    return [OpenLocal(None, one, resources, meter, Role.JUDGE) for one in judge.generators]


def fingerprints(judges: Iterable[OpenLocal]) -> str:
    """Return what identifies the models behind a judge, one after the other."""
    found = [judge.under_test() for judge in judges]
    return "; ".join(f"{each['model']} prompt {each['prompt']}" for each in found)


class _Judged:
    """A system with the judge of its open answers: each is asked its own cases."""

    def __init__(self, inner: SystemUnderTest, judges: Sequence[OpenLocal]) -> None:
        """Take the system, and the models that judge in the order of their votes."""
        self._inner = inner
        self._judges = judges

    def execute(
        self, plan: TestPlan, progress: Progress, earlier: Executed = NOTHING
    ) -> Mapping[tuple[str, str], Execution]:
        """Return the system's executions of its cases and the judges' of theirs, as planned."""
        return _executed(plan, progress, earlier, self._inner, self._judges)

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return the system's embeddings of the documents."""
        return self._inner.vectors(documents)


class JudgedSystem(_Judged):
    """A system under test that is judged, and whose replicas are judged by the same models."""

    _inner: OpenSystem

    def under_test(self) -> Mapping[str, str]:
        """Return what the system says of itself, and who judges."""
        return {**self._inner.under_test(), UNDER_TEST: fingerprints(self._judges)}

    def replica(self, number: int) -> tuple[Sequence[str], SystemUnderTest]:
        """Return the system with neutral changes, judged as before."""
        changes, inner = self._inner.replica(number)
        return changes, _Judged(inner, self._judges)


def _executed(
    plan: TestPlan,
    progress: Progress,
    earlier: Executed,
    inner: SystemUnderTest,
    judges: Sequence[SystemUnderTest],
) -> Mapping[tuple[str, str], Execution]:
    own = [case for case in plan.cases if case.judge is None]
    found: dict[tuple[str, str], Execution] = {}
    if own:
        found |= inner.execute(TestPlan(cases=own, units=plan.units), progress, earlier)
    for number, judge in enumerate(judges):
        cases = [case for case in plan.cases if case.judge == number]
        try:
            found |= ask_judge(cases, judge, progress)
        except BudgetError as error:
            later = sum(case.judge is not None and case.judge > number for case in plan.cases)
            raise error.with_left(later) from None
    names = [(case.suite, case.key) for case in plan.cases]
    return {name: found[name] for name in names if name in found}
