"""Read the answers and decide every pair; pure, no model involved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairgate.domain.cases import Case, Pair, Task, TestPlan
from fairgate.domain.executions import Document, Execution
from fairgate.domain.verdicts import JudgedPair, Reading, Reason
from fairgate.engine.ports import SystemUnderTest
from fairgate.metrics.attack_success_rate import label_profile, majority
from fairgate.metrics.retriever_robustness import mean_distances
from fairgate.oracles.label import read_label


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """How one suite's pairs are judged (SPEC 3; all of it must match a baseline's)."""

    criterion: str = "count"
    matching: str = "hungarian"
    distance: str = "euclidean"
    unstable_margin: float = 0.02
    quarantined: frozenset[str] = frozenset()
    """Keys of cases that count for nothing: in no verdict, in no majority of the controls."""


def judge(
    plan: TestPlan,
    executions: Mapping[tuple[str, str], Execution],
    sut: SystemUnderTest,
    options: Mapping[str, JudgeOptions],
) -> list[JudgedPair]:
    """Return a judged pair for every pair of the plan, in the order of the plan."""
    readings = _read_all(plan, executions, options)
    majorities = _majorities(plan.pairs, readings, options)
    distances = _distances(plan.pairs, executions, sut, options)
    judged = []
    for pair, distance in zip(plan.pairs, distances, strict=True):
        suite = options[pair.suite]
        source, follow_up = readings[pair.suite, pair.source], readings[pair.suite, pair.key]
        if suite.quarantined.intersection((pair.key, pair.source)):
            judged.append(_quarantined(pair, source, follow_up))
            continue
        own = majorities.get((pair.suite, pair.source), _NO_CONTROLS)
        expected = (
            own.without(follow_up.label, source.label) if pair.control else own.of(source.label)
        )
        left, right = (executions.get((pair.suite, key)) for key in (pair.source, pair.key))
        judged.append(
            JudgedPair(
                pair=pair,
                source=source,
                follow_up=follow_up,
                majority=None if isinstance(expected, Reason) else expected,
                generation=_differs(follow_up, source.reason or source.label),
                controlled=_differs(follow_up, expected),
                retrieval=_profile_change(left, right, suite.criterion),
                mean_distance=distance,
                label_changes=_label_changes(left, right),
                overlap=_overlap(left, right),
            )
        )
    return judged


def _quarantined(pair: Pair, source: Reading, follow_up: Reading) -> JudgedPair:
    why = Reason.QUARANTINED
    return JudgedPair(
        pair=pair,
        source=source,
        follow_up=replace(follow_up, label=None, reason=why),
        majority=None,
        generation=why,
        controlled=why,
        retrieval=why,
        mean_distance=why,
        label_changes=why,
        overlap=why,
    )


def _read_all(
    plan: TestPlan,
    executions: Mapping[tuple[str, str], Execution],
    options: Mapping[str, JudgeOptions],
) -> dict[tuple[str, str], Reading]:
    """Read every case; repeats of a case are read together under the key of the first."""
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in plan.cases:
        if case.suite not in plan.tasks:
            continue  # question items: judge_items.py
        groups.setdefault((case.suite, case.key.partition("@repeat=")[0]), []).append(case)
    return {
        (suite, key): read_answers(
            [executions.get((suite, case.key)) for case in cases],
            plan.tasks[suite],
            options[suite].unstable_margin,
        )
        for (suite, key), cases in groups.items()
    }


def read_answers(asked: Sequence[Execution | None], task: Task, unstable_margin: float) -> Reading:
    """Return the label that all of a case's answers have; a change or a thin margin is unstable."""
    labels: list[str] = []
    margins = [e.margin for e in asked if e is not None and e.margin is not None]
    margin = min(margins, default=None)
    for execution in asked:
        if execution is None or execution.response is None:
            return Reading(label=None, reason=Reason.MISSING)
        label = read_label(execution.response, task)
        if label is None:
            return Reading(label=None, reason=Reason.UNREADABLE, margin=margin)
        labels.append(task.canonical(label))
    if len(set(labels)) > 1 or (margin is not None and margin < unstable_margin):
        return Reading(label=None, reason=Reason.UNSTABLE, margin=margin)
    return Reading(label=labels[0], margin=margin)


def _differs(follow_up: Reading, expected: str | Reason | None) -> bool | Reason:
    if follow_up.reason is not None:
        return follow_up.reason
    if isinstance(expected, Reason):
        return expected
    return follow_up.label != expected


@dataclass(frozen=True, slots=True)
class _Controls:
    """The readable answers of a source's control arm, in the order of the plan."""

    labels: tuple[str, ...]

    def of(self, source: str | None) -> str | Reason:
        if not self.labels:
            return Reason.NO_CONTROLS
        return majority(self.labels, source) or Reason.NO_MAJORITY

    def without(self, label: str | None, source: str | None) -> str | Reason:
        """Leave one answer out: a control is compared with the other controls."""
        rest = list(self.labels)
        if label in rest:
            rest.remove(label)
        return _Controls(tuple(rest)).of(source)


_NO_CONTROLS = _Controls(())


def _majorities(
    pairs: Sequence[Pair],
    readings: Mapping[tuple[str, str], Reading],
    options: Mapping[str, JudgeOptions],
) -> dict[tuple[str, str], _Controls]:
    answers: dict[tuple[str, str], list[str]] = {}
    for pair in pairs:
        label = readings[pair.suite, pair.key].label
        if pair.control and label is not None and pair.key not in options[pair.suite].quarantined:
            answers.setdefault((pair.suite, pair.source), []).append(label)
    return {where: _Controls(tuple(labels)) for where, labels in answers.items()}


def _documents(
    left: Execution | None, right: Execution | None
) -> tuple[Sequence[Document], Sequence[Document]] | Reason:
    if left is None or right is None or not left.documents or not right.documents:
        return Reason.NO_DOCUMENTS
    if len(left.documents) != len(right.documents):
        return Reason.UNEQUAL_DEPTH
    return left.documents, right.documents


def _labels(
    left: Execution | None, right: Execution | None
) -> tuple[list[str], list[str]] | Reason:
    lists = _documents(left, right)
    if isinstance(lists, Reason):
        return lists
    found = [[d.label for d in documents if d.label is not None] for documents in lists]
    if len(found[0]) + len(found[1]) < len(lists[0]) + len(lists[1]):
        return Reason.NO_LABELS
    return found[0], found[1]


def _profile_change(
    left: Execution | None, right: Execution | None, criterion: str
) -> bool | Reason:
    labels = _labels(left, right)
    if isinstance(labels, Reason):
        return labels
    return label_profile(labels[0], criterion) != label_profile(labels[1], criterion)


def _label_changes(left: Execution | None, right: Execution | None) -> float | Reason:
    labels = _labels(left, right)
    if isinstance(labels, Reason):
        return labels
    return sum(a != b for a, b in zip(*labels, strict=True)) / len(labels[0])


def document_key(document: Document) -> str | None:
    """Return what makes two documents the same: the id, else the text."""
    return document.id if document.id is not None else document.text


def _overlap(left: Execution | None, right: Execution | None) -> float | Reason:
    lists = _documents(left, right)
    if isinstance(lists, Reason):
        return lists
    keys = [{document_key(document) for document in documents} for documents in lists]
    if None in keys[0] | keys[1]:
        return Reason.NO_TEXT
    return len(keys[0] & keys[1]) / len(lists[0])


def _distances(
    pairs: Sequence[Pair],
    executions: Mapping[tuple[str, str], Execution],
    sut: SystemUnderTest,
    options: Mapping[str, JudgeOptions],
) -> list[float | Reason]:
    """Return MeanDist of every pair; all pairs of one depth and suite are computed together."""
    results: list[float | Reason] = [Reason.NO_DOCUMENTS] * len(pairs)
    groups: dict[tuple[str, int], list[int]] = {}
    for position, pair in enumerate(pairs):
        lists = _documents(*(executions.get((pair.suite, k)) for k in (pair.source, pair.key)))
        if isinstance(lists, Reason):
            results[position] = lists
        else:
            groups.setdefault((pair.suite, len(lists[0])), []).append(position)
    for (suite, _), positions in groups.items():
        lists_of = [
            (
                executions[suite, pairs[position].source].documents or (),
                executions[suite, pairs[position].key].documents or (),
            )
            for position in positions
        ]
        values = _group_distances(lists_of, sut, options[suite])
        for position, value in zip(positions, values, strict=True):
            results[position] = value
    return results


def _group_distances(
    lists: Sequence[tuple[Sequence[Document], Sequence[Document]]],
    sut: SystemUnderTest,
    options: JudgeOptions,
) -> list[float | Reason]:
    unique: dict[str | None, Document] = {}
    for left, right in lists:
        for document in (*left, *right):
            unique.setdefault(document_key(document), document)
    vectors = None if None in unique else sut.vectors(list(unique.values()))
    if vectors is None:
        return [Reason.NO_TEXT] * len(lists)
    rows = {key: row for row, key in enumerate(unique)}
    index = np.asarray(
        [[[rows[document_key(d)] for d in documents] for documents in pair] for pair in lists],
        dtype=np.int64,
    )
    values = mean_distances(
        vectors,
        index[:, 0],
        index[:, 1],
        distance=options.distance,
        matching=options.matching,
    )
    return [float(value) for value in values]
