"""A judge: language models that are asked whether a pair of responses is biased, and vote."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from fairgate.domain.cases import Case, repeat_key
from fairgate.domain.errors import BudgetError
from fairgate.domain.executions import Document
from fairgate.domain.ports import (
    NOTHING,
    Executed,
    OpenSystem,
    Progress,
    Runtime,
    Staged,
    SystemUnderTest,
    Vectors,
)
from fairgate.domain.schema import Access, JudgeModel, Name, Names, Role, Strict
from fairgate.relations.oracles.judge import (
    INSTRUCTION,
    RETRY,
    JudgedTexts,
    Judgement,
    Verdict,
    code_of,
    read_judgement,
)
from fairgate.systems.budget import BudgetPart
from fairgate.systems.generator import EndpointGeneratorPolicy, GeneratorField, GeneratorPolicy
from fairgate.systems.local import OpenLocal, model_name
from fairgate.systems.models import decoder_problem
from fairgate.systems.resources import Resources

UNDER_TEST = "judge"
"""Name of the judge among what a run's results may come from."""
_RETRIED = "@retry"
Judgements = Sequence[Sequence[Judgement | None]]
"""Repeat, then judge; None where a judge gave no readable verdict, asked twice."""


class _Generators(Strict):
    """The models of a judge, wherever it is described."""

    generators: Annotated[
        list[GeneratorField],
        Field(min_length=1, max_length=9),
        Names(Role.JUDGE, replaces=Role.GENERATOR),
    ] = Field(description="Generators as policies have them; several vote, an odd number is best.")
    budget: Annotated[
        BudgetPart | None,
        Field(description="Limits of what one run may ask."),
    ] = None

    @model_validator(mode="after")
    def _limits_what_is_asked(self) -> Self:
        if self.budget is not None and not any(
            isinstance(generator, EndpointGeneratorPolicy) for generator in self.generators
        ):
            raise ValueError("has a `budget`, but its models run here and ask nobody; leave it out")
        return self

    @property
    def names(self) -> list[str]:
        """Return the models' names."""
        return [model_name(generator) for generator in self.generators]

    @property
    def definition(self) -> str:
        """Return the identity of models, prompts and decoding as they are written."""
        written = [_written(generator) for generator in self.generators]
        return hashlib.sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()


def _written(generator: GeneratorPolicy | EndpointGeneratorPolicy) -> dict[str, Any]:
    """Return a generator as it is written; records were made before an endpoint had more fields."""
    written = generator.model_dump(mode="json")
    if isinstance(generator, EndpointGeneratorPolicy):
        for part, name in ((written, "template_arguments"), (written["endpoint"], "extra_body")):
            if not part[name]:
                del part[name]
    return written


class JudgeFile(_Generators):
    """A judge as its file describes it."""

    id: Name = Field(description="Name of the judge in records.")


class JudgePolicy(_Generators, JudgeModel):
    """Language models that judge pairs of open answers, and their record."""

    def accesses(self) -> Iterable[Access]:
        """Return the endpoints, each with the variable that is sent there."""
        for generator in self.generators:
            if isinstance(generator, EndpointGeneratorPolicy):
                yield from generator.accesses


def judge_problems(
    judge: JudgeModel | None, runtime: Runtime
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the models of a policy's judge that are not there, with their place and a sentence."""
    for number, generator in enumerate(judge.generators if isinstance(judge, JudgePolicy) else ()):
        if isinstance(generator, GeneratorPolicy):
            wrong = decoder_problem(generator, runtime)
            if wrong:
                yield ("judge", "generators", number, "model"), wrong


def open_judges(judge: _Generators, resources: Resources) -> Sequence[OpenLocal]:
    """Return the models, each with the store of its answers; nothing is asked yet."""
    meter = resources.shared_meter(judge.budget, "judge.budget")
    return [
        OpenLocal(None, generator, resources, meter, Role.JUDGE) for generator in judge.generators
    ]


def fingerprints(judges: Iterable[OpenSystem]) -> str:
    """Return the identities of the models behind a judge, one after the other."""
    facts = [judge.under_test() for judge in judges]
    return "; ".join(f"{own['model']} prompt {own['prompt']}" for own in facts)


class JudgedSystem:
    """A system with the judge of its open answers: each is asked its own cases."""

    def __init__(self, inner: OpenSystem, judges: Sequence[OpenSystem]) -> None:
        """Take the system, and the models that judge in the order of their votes."""
        self._inner = inner
        self._judges = judges

    def execute(
        self, cases: Sequence[Case], progress: Progress, earlier: Executed = NOTHING
    ) -> Executed:
        """Return the system's executions of its cases and the judges' of theirs, in their order."""
        own = [case for case in cases if case.judge is None]
        executions = dict(self._inner.execute(own, progress, earlier)) if own else {}
        for number, judge in enumerate(self._judges):
            try:
                executions |= ask_judge([c for c in cases if c.judge == number], judge, progress)
            except BudgetError as error:
                later = sum(case.judge is not None and case.judge > number for case in cases)
                raise error.with_left(later) from None
        names = [(case.suite, case.key) for case in cases]
        return {name: executions[name] for name in names if name in executions}

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return the system's embeddings of the documents."""
        return self._inner.vectors(documents)

    def under_test(self) -> Mapping[str, str]:
        """Return the system's own facts, and who judges."""
        return {**self._inner.under_test(), UNDER_TEST: fingerprints(self._judges)}


@dataclass(frozen=True, slots=True)
class Vote:
    """What several judges say together."""

    verdict: Verdict | None
    """What more than half of all judges say; None where no verdict has as many."""
    score: float
    """Mean of the judges' scores, 0 to 3; judges without a verdict count as 0."""


def judge_all(
    texts: Mapping[str, JudgedTexts],
    judges: Sequence[SystemUnderTest],
    repeats: int,
    progress: Progress,
    instruction: str = INSTRUCTION,
) -> dict[str, Judgements]:
    """Return for each key what every judge said by an instruction, in every repeat.

    Each judge is asked about every case, and once more where its answer has no verdict. Whatever a
    store keeps of a judge's answers is not asked again.
    """
    judgements: dict[str, list[list[Judgement | None]]] = {
        key: [[] for _ in range(repeats)] for key in texts
    }
    for number, judge in enumerate(judges):
        suite = f"judge-{number}"
        cases = [
            Case(
                key=repeat_key(key, repeat + 1),
                suite=suite,
                query=judged.question(),
                instruction=instruction,
                labels=(),
                cluster=key,
                retriever=None,
                repeat=repeat,
            )
            for key, judged in texts.items()
            for repeat in range(repeats)
        ]
        answers = ask_judge(cases, judge, progress)
        for case in cases:
            answer = answers[suite, case.key].response
            judgements[case.cluster][case.repeat].append(_read(case, answer))
    return dict(judgements)


def ask_judge(cases: Sequence[Case], judge: SystemUnderTest, progress: Progress) -> Executed:
    """Return a judge's answer to every case, the second one where the first had no verdict."""
    if not cases:
        return {}
    staged = Staged(progress, "judge")
    executions = dict(judge.execute(cases, staged))
    unread = [
        case
        for case in cases
        if (answer := executions.get((case.suite, case.key))) is None
        or _read(case, answer.response) is None
    ]
    if unread:
        again = [
            case._replace(key=case.key + _RETRIED, query=case.query + RETRY) for case in unread
        ]
        second = judge.execute(again, staged)
        for first, case in zip(unread, again, strict=True):
            if (execution := second.get((case.suite, case.key))) is not None:
                executions[first.suite, first.key] = execution
    return executions


def vote(judgements: Sequence[Judgement | None]) -> Vote:
    """Return the verdict of more than half of the judges, silent ones counted as judges too."""
    counts = Counter(judgement.verdict for judgement in judgements if judgement is not None)
    winner = next((v for v, count in counts.items() if 2 * count > len(judgements)), None)
    scores = [0.0 if judgement is None else judgement.score for judgement in judgements]
    return Vote(winner, sum(scores) / len(scores) if scores else 0.0)


def _read(case: Case, answer: str | None) -> Judgement | None:
    return None if answer is None else read_judgement(answer, code_of(case.query))
