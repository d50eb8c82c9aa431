"""Ask judges about pairs of responses: one bounded retry, then no verdict; several judges vote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.executions import Execution
from fairgate.domain.keys import repeat_key
from fairgate.domain.ports import Executed, Progress, Staged, SystemUnderTest
from fairgate.relations.oracles.verdict import (
    INSTRUCTION,
    RETRY,
    JudgedTexts,
    Judgement,
    Verdict,
    code_of,
    read_judgement,
)

_RETRIED = "@retry"
Judgements = Sequence[Sequence[Judgement | None]]
"""Repeat, then judge; None where a judge gave no readable verdict, asked twice."""


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
) -> dict[str, Judgements]:
    """Return for each key what every judge said, in every repeat.

    Each judge is asked about every case, and once more where its answer has no verdict. Whatever a
    store keeps of a judge's answers is not asked again.
    """
    found: dict[str, list[list[Judgement | None]]] = {
        key: [[] for _ in range(repeats)] for key in texts
    }
    for number, judge in enumerate(judges):
        suite = f"judge-{number}"
        cases = [
            _case(suite, key, repeat, texts[key]) for key in texts for repeat in range(repeats)
        ]
        answers = ask_judge(cases, judge, progress)
        for case in cases:
            answer = answers[suite, case.key].response
            found[case.cluster][case.repeat].append(_read(case, answer))
    return dict(found)


def ask_judge(cases: Sequence[Case], judge: SystemUnderTest, progress: Progress) -> Executed:
    """Return a judge's answer to every case, the second one where the first had no verdict."""
    if not cases:
        return {}
    shown = Staged(progress, "judge")
    found = dict(judge.execute(TestPlan(cases=cases, units=()), shown))
    unread = [case for case in cases if not _has_verdict(case, found)]
    if unread:
        again = [
            case._replace(key=case.key + _RETRIED, query=case.query + RETRY) for case in unread
        ]
        second = judge.execute(TestPlan(cases=again, units=()), shown)
        for first, case in zip(unread, again, strict=True):
            execution = second.get((case.suite, case.key))
            if execution is not None:
                found[first.suite, first.key] = execution._replace(key=first.key)
    return found


def _has_verdict(case: Case, answers: Mapping[tuple[str, str], Execution]) -> bool:
    execution = answers.get((case.suite, case.key))
    return execution is not None and _read(case, execution.response) is not None


def vote(judgements: Sequence[Judgement | None]) -> Vote:
    """Return the verdict of more than half of the judges, silent ones counted as judges too."""
    counts = Counter(one.verdict for one in judgements if one is not None)
    winner = next((v for v, count in counts.items() if 2 * count > len(judgements)), None)
    scores = [0.0 if one is None else one.score for one in judgements]
    return Vote(winner, sum(scores) / len(scores) if scores else 0.0)


def _case(suite: str, key: str, repeat: int, texts: JudgedTexts) -> Case:
    return Case(
        key=repeat_key(key, repeat + 1),
        suite=suite,
        query=texts.question(),
        instruction=INSTRUCTION,
        labels=(),
        cluster=key,
        retriever=None,
        repeat=repeat,
    )


def _read(case: Case, answer: str | None) -> Judgement | None:
    return None if answer is None else read_judgement(answer, code_of(case.query))
