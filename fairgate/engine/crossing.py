"""The second wave: which questions cross texts and documents, so that paths can be told apart."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fairgate.domain.cases import Case, Pair, TestPlan
from fairgate.domain.verdicts import JudgedPair
from fairgate.engine.judge import document_key
from fairgate.engine.ports import Executed
from fairgate.policy.schema import Policy

FEWEST = 30
"""Satisfied pairs that are crossed in each arm even where fewer are violated."""
_WAVE = 2


def cross(
    plan: TestPlan, judged: Sequence[JudgedPair], executions: Executed, policy: Policy
) -> TestPlan:
    """Return the cases that tell retrieval from generator; empty where nothing is to be asked.

    Deterministic: satisfied pairs are drawn by a hash of the policy's seed and their key, so most
    of a sample stays when other pairs change.
    """
    modes = {suite.id: getattr(suite, "attribution", "off") for suite in policy.suites}
    known = {(case.suite, case.key): case for case in plan.cases}
    repeats = {suite.id: getattr(suite, "repeats", 1) for suite in policy.suites}
    cases: dict[tuple[str, str], Case] = {}
    for item in _drawn(judged, executions, modes, policy.seed):
        pair = item.pair
        again = repeats[pair.suite] + 1
        source, follow_up = known[pair.suite, pair.source], known[pair.suite, pair.key]
        for case in (
            _again(source, again),
            _again(follow_up, again),
            _crossed(source, pair.key),
            _crossed(follow_up, pair.source),
        ):
            cases.setdefault((case.suite, case.key), case)
    return TestPlan(cases=list(cases.values()), pairs=(), tasks=plan.tasks)


def most_questions(pairs: Sequence[Pair], *, is_greedy: bool) -> int:
    """Return how many questions `cross` can add for these pairs.

    Two for each pair; sampled answers are also asked again, once for the pair and once for its
    source (a greedy one is known already).
    """
    again = 0 if is_greedy else len(pairs) + len({pair.source for pair in pairs})
    return 2 * len(pairs) + again


def _again(case: Case, number: int) -> Case:
    return replace(case, key=f"{case.key}@repeat={number}", wave=_WAVE, repeat=number - 1)


def _crossed(case: Case, other: str) -> Case:
    return replace(case, key=f"{case.key}@documents={other}", wave=_WAVE, documents_of=other)


def _drawn(
    judged: Sequence[JudgedPair], executions: Executed, modes: Mapping[str, str], seed: int
) -> Iterator[JudgedPair]:
    """Yield the pairs to cross, arm by arm: the violated ones and as many satisfied ones."""
    arms: dict[tuple[str, bool], list[JudgedPair]] = {}
    for item in judged:
        if modes[item.pair.suite] != "off" and documents_of_pair(item, executions) == "different":
            arms.setdefault((item.pair.suite, item.pair.control), []).append(item)
    for (suite, _), items in arms.items():
        violated = [item for item in items if item.generation is True]
        satisfied = [item for item in items if item.generation is False]
        wanted = len(satisfied) if modes[suite] == "all" else max(len(violated), FEWEST)
        chosen = sorted(satisfied, key=lambda item: _lot(seed, item))[:wanted]
        keys = {item.pair.key for item in (*violated, *chosen)}
        yield from (item for item in items if item.pair.key in keys)


def _lot(seed: int, item: JudgedPair) -> str:
    name = f"{seed}\0{item.pair.suite}\0{item.pair.key}"
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def documents_of_pair(item: JudgedPair, executions: Executed) -> str:
    """Return `different` or `equal` documents, `unknown` ones, or `undecided` for the pair."""
    if not isinstance(item.generation, bool):
        return "undecided"
    lists = []
    for key in (item.pair.source, item.pair.key):
        execution = executions.get((item.pair.suite, key))
        if execution is None or execution.documents is None:
            return "unknown"
        lists.append([document_key(document) for document in execution.documents])
    return "equal" if lists[0] == lists[1] else "different"
