"""The second wave: which questions cross texts and documents, to separate the two paths."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import ClassVar

from fairgate.domain.cases import Case
from fairgate.domain.keys import crossed_key, repeat_key
from fairgate.domain.units import Judged, Reason, Unit
from fairgate.engine.ports import Executed
from fairgate.engine.wave import Answered
from fairgate.suites.metamorphic.documents import document_key
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE

FEWEST = 30
"""Satisfied pairs that are crossed in each arm even where fewer are violated."""
_WAVE = 2


class Crossing:
    """The wave that separates the effect of retrieval from that of the generator."""

    id: ClassVar[str] = "crossing"

    def next(self, answered: Answered, seed: int) -> Sequence[Case]:
        """Return the crossed cases; empty where none are needed.

        Deterministic: satisfied pairs are drawn by a hash of the policy's seed and their key, so
        most of a sample stays when other pairs change.
        """
        suites = answered.suites
        crossing = {
            name: suite.crossing
            for name, suite in suites.items()
            if suite.crossing is not None and suite.crossing != "off"
        }
        known = {(c.suite, c.key): c for c in answered.plan.cases if c.suite in crossing}
        cases: dict[tuple[str, str], Case] = {}
        judged = answered.judged if crossing else ()
        for item in _drawn(judged, answered.executions, crossing, seed):
            unit = item.unit
            again = suites[unit.suite].repeats + 1
            source, follow_up = (known[unit.suite, key] for key in keys_of(item))
            for case in (
                _again(source, again),
                _again(follow_up, again),
                _crossed(source, follow_up.key),
                _crossed(follow_up, source.key),
            ):
                cases.setdefault((case.suite, case.key), case)
        return list(cases.values())


def most_questions(units: Sequence[Unit], *, is_greedy: bool) -> int:
    """Return how many questions `cross` can add for these pairs.

    Two for each pair; sampled answers are also asked again, once for the pair and once for its
    source (a greedy one is known already).
    """
    again = 0 if is_greedy else len(units) + len({unit.asks[SOURCE] for unit in units})
    return 2 * len(units) + again


def _again(case: Case, number: int) -> Case:
    return replace(
        case, key=repeat_key(case.key, number), wave=_WAVE, repeat=number - 1, is_crossing=True
    )


def _crossed(case: Case, other: str) -> Case:
    return replace(
        case, key=crossed_key(case.key, other), wave=_WAVE, documents_of=other, is_crossing=True
    )


def _drawn(
    judged: Sequence[Judged], executions: Executed, crossing: Mapping[str, str], seed: int
) -> Iterator[Judged]:
    """Yield the pairs to cross, arm by arm: the violated ones and as many satisfied ones."""
    arms: dict[tuple[str, bool], list[Judged]] = {}
    for item in judged:
        unit = item.unit
        if unit.suite in crossing and documents_of_pair(item, executions) is Documents.DIFFERENT:
            arms.setdefault((unit.suite, unit.is_control), []).append(item)
    for (suite, _), items in arms.items():
        violated = [item for item in items if item.decision == 1.0]
        satisfied = [item for item in items if item.decision == 0.0]
        wanted = len(satisfied) if crossing[suite] == "all" else max(len(violated), FEWEST)
        chosen = sorted(satisfied, key=lambda item: _drawing_order(seed, item.unit))[:wanted]
        keys = {item.unit.key for item in (*violated, *chosen)}
        yield from (item for item in items if item.unit.key in keys)


def _drawing_order(seed: int, unit: Unit) -> str:
    name = f"{seed}\0{unit.suite}\0{unit.key}"
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


class Documents(StrEnum):
    """How the documents of a pair's two cases relate."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    UNDECIDED = "undecided"
    """The pair has no verdict, so its documents do not matter."""


def keys_of(item: Judged) -> tuple[str, str]:
    """Return the keys of a pair's cases: source and follow-up."""
    return item.unit.asks[SOURCE], item.unit.asks[FOLLOW_UP]


def documents_of_pair(item: Judged, executions: Executed) -> Documents:
    """Return how the documents of source and follow-up relate, rank by rank."""
    if isinstance(item.decision, Reason):
        return Documents.UNDECIDED
    lists = []
    for key in keys_of(item):
        execution = executions.get((item.unit.suite, key))
        if execution is None or execution.documents is None:
            return Documents.UNKNOWN
        lists.append([document_key(document) for document in execution.documents])
    return Documents.EQUAL if lists[0] == lists[1] else Documents.DIFFERENT
