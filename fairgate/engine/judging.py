"""Ask judges about pairs of responses: one bounded retry, then no verdict; several judges vote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.keys import repeat_key
from fairgate.engine.ports import Progress, SystemUnderTest
from fairgate.oracles.verdict import (
    INSTRUCTION,
    RETRY,
    JudgedTexts,
    Judgement,
    Verdict,
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
        wanted = [(key, repeat) for key in texts for repeat in range(repeats)]
        answers = _asked(texts, wanted, suite, judge, progress, retry=False)
        unread = [one for one in wanted if answers[one] is None]
        answers |= _asked(texts, unread, suite, judge, progress, retry=True)
        for key, repeat in wanted:
            found[key][repeat].append(answers[key, repeat])
    return dict(found)


def vote(judgements: Sequence[Judgement | None]) -> Vote:
    """Return the verdict of more than half of the judges, silent ones counted as judges too."""
    counts = Counter(one.verdict for one in judgements if one is not None)
    winner = next((v for v, count in counts.items() if 2 * count > len(judgements)), None)
    scores = [0.0 if one is None else one.score for one in judgements]
    return Vote(winner, sum(scores) / len(scores) if scores else 0.0)


def _asked(
    texts: Mapping[str, JudgedTexts],
    wanted: Sequence[tuple[str, int]],
    suite: str,
    judge: SystemUnderTest,
    progress: Progress,
    *,
    retry: bool,
) -> dict[tuple[str, int], Judgement | None]:
    if not wanted:
        return {}
    cases = [
        Case(
            key=repeat_key(key + (_RETRIED if retry else ""), repeat + 1),
            suite=suite,
            query=texts[key].question() + (RETRY if retry else ""),
            instruction=INSTRUCTION,
            labels=(),
            cluster=key,
            retriever=None,
            repeat=repeat,
        )
        for key, repeat in wanted
    ]
    executions = judge.execute(TestPlan(cases=cases, units=()), progress)
    return {
        (key, repeat): _read(texts[key], executions[suite, case.key].response)
        for (key, repeat), case in zip(wanted, cases, strict=True)
    }


def _read(texts: JudgedTexts, answer: str | None) -> Judgement | None:
    return None if answer is None else read_judgement(answer, texts.code)
