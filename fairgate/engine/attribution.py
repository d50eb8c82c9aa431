"""What the crossed answers say: which path, retriever or generator, changed an answer.

What the numbers mean, and what noise does to them, stands in `metrics/attribution.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairgate.domain.cases import TestPlan
from fairgate.domain.executions import Execution
from fairgate.domain.findings import AttributedPart, Attribution
from fairgate.domain.verdicts import JudgedPair
from fairgate.engine.crossing import documents_of_pair
from fairgate.engine.judge import JudgeOptions, read_answers
from fairgate.engine.ports import Executed
from fairgate.metrics.attribution import COLUMNS, GENERATOR, INTERACTION, RETRIEVAL
from fairgate.metrics.metric import observe
from fairgate.metrics.table import Column, Table
from fairgate.policy.schema import Policy
from fairgate.stats.interval import Interval
from fairgate.stats.observations import ClusterTotals, cluster_totals
from fairgate.stats.ratio import ratio_interval
from fairgate.stats.t_interval import contrast

_DECIMALS = 6
_METRICS = {"retrieval": RETRIEVAL, "generator": GENERATOR, "interaction": INTERACTION}

_OFF = "attribution is switched off (`attribution: off`)"
_NO_DOCUMENTS = "the system does not say which documents it was shown"
_NO_CONTROLS = "the suite has no control arm (`control: none`)"
_NOTHING_DECIDED = "no pair of one of the arms is decided"
_STRATUM_UNREAD = (
    "no pair of the {arm} arm whose answers {verdict} has crossed answers that can be read"
)
_NOTHING_CROSSED = "no crossed answer is known (keys with `@documents=`) and documents differ"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What one pair's total is made of; each -2 to 1."""

    retrieval: float
    generator: float
    interaction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Everything that attribution works on, after the second wave."""

    plan: TestPlan
    """The crossed cases."""
    executions: Executed
    """Of both waves."""
    options: Mapping[str, JudgeOptions]
    policy: Policy


def attribute(
    tables: Mapping[str, Table], judged: Sequence[JudgedPair], given: Crossing
) -> tuple[dict[str, Table], list[Attribution]]:
    """Return the tables with the attribution's columns, and what they add up to, suite by suite."""
    modes = {suite.id: getattr(suite, "attribution", "off") for suite in given.policy.suites}
    rows: dict[str, list[JudgedPair]] = {name: [] for name in tables}
    for item in judged:
        rows[item.pair.suite].append(item)
    full: dict[str, Table] = {}
    findings = []
    for name, table in tables.items():
        reader = _Reader(given, name)
        why_not = _OFF if modes[name] == "off" else _obstacle(rows[name], reader)
        if why_not is not None:
            full[name] = _without(table, why_not)
            continue
        full[name] = _with_columns(table, rows[name], reader)
        findings.append(_finding(full[name], rows[name], reader, given.policy.confidence))
    return full, findings


class _Reader:
    """Reads the crossed answers of one suite."""

    def __init__(self, given: Crossing, suite: str) -> None:
        self._suite = suite
        self.executions = given.executions
        self._task = given.plan.tasks[suite]
        self._margin = given.options[suite].unstable_margin
        numbers = {case.repeat + 1 for case in given.plan.cases if case.suite == suite}
        self._again = max(numbers, default=0)
        self.asked = {case.key for case in given.plan.cases if case.suite == suite}

    def label(self, key: str) -> str | None:
        return read_answers([self._find(key)], self._task, self._margin).label

    def fresh(self, key: str) -> str | None:
        """Read the second answer to an uncrossed case, or the first where there is no second."""
        again = f"{key}@repeat={self._again}"
        return self.label(again if self._find(again) is not None else key)

    def _find(self, key: str) -> Execution | None:
        return self.executions.get((self._suite, key))

    def was_crossed(self, item: JudgedPair) -> bool:
        return f"{item.pair.source}@documents={item.pair.key}" in self.asked

    def parts(self, item: JudgedPair) -> _Parts | None:
        """Return the parts of a crossed pair from fresh answers; None where one is undecided."""
        source, key = item.pair.source, item.pair.key
        none, both = self.fresh(source), self.fresh(key)
        documents = self.label(f"{source}@documents={key}")
        text = self.label(f"{key}@documents={source}")
        if none is None or both is None or documents is None or text is None:
            return None
        total, retrieval, generator = (float(y != none) for y in (both, documents, text))
        return _Parts(
            retrieval=retrieval, generator=generator, interaction=total - retrieval - generator
        )

    def repeats(self) -> tuple[int, int]:
        """Return how many uncrossed answers were asked again, and how many of them turned."""
        pairs = [
            (self.label(key.partition("@repeat=")[0]), self.label(key))
            for key in sorted(self.asked)
            if "@repeat=" in key and self._find(key) is not None
        ]
        known = [
            (first, again) for first, again in pairs if first is not None and again is not None
        ]
        return len(known), sum(first != again for first, again in known)


def _obstacle(rows: Sequence[JudgedPair], reader: _Reader) -> str | None:
    kinds = [documents_of_pair(item, reader.executions) for item in rows]
    if not any(item.pair.control for item in rows):
        return _NO_CONTROLS
    arms = {i.pair.control for i, kind in zip(rows, kinds, strict=True) if kind != "undecided"}
    if len(arms) < 2:
        return _NOTHING_DECIDED
    if "unknown" in kinds:
        return _NO_DOCUMENTS
    strata: dict[tuple[bool, bool], bool] = {}
    for item, kind in zip(rows, kinds, strict=True):
        if kind == "different":
            stratum = (item.pair.control, item.generation is True)
            strata[stratum] = strata.get(stratum, False) or (
                reader.was_crossed(item) and reader.parts(item) is not None
            )
    if strata and not any(strata.values()):
        return _NOTHING_CROSSED
    # A stratum that nothing stands for would count as no effect at all.
    for (control, violated), read in strata.items():
        if not read:
            verdict = "differ" if violated else "are equal"
            arm = "control" if control else "demographic"
            return _STRATUM_UNREAD.format(verdict=verdict, arm=arm)
    return None


def _without(table: Table, reason: str) -> Table:
    absent = dict.fromkeys(COLUMNS.values(), reason)
    empty = np.full(len(table.keys), np.nan)
    return replace(
        table,
        values={**table.values, **dict.fromkeys(absent, empty)},
        not_evaluated={**table.not_evaluated, **absent},
    )


def _with_columns(table: Table, rows: Sequence[JudgedPair], reader: _Reader) -> Table:
    parts: list[_Parts | None] = []
    strata: list[tuple[bool, bool] | None] = []
    for item in rows:
        kind = documents_of_pair(item, reader.executions)
        is_different = kind == "different"
        strata.append((item.pair.control, item.generation is True) if is_different else None)
        if kind == "equal":
            direct = float(item.generation is True)
            parts.append(_Parts(retrieval=0.0, generator=direct, interaction=0.0))
        else:
            parts.append(reader.parts(item) if reader.was_crossed(item) else None)
    weights = _weights(strata, parts)
    columns: dict[str, Column] = {}
    for name, column in COLUMNS.items():
        values = [
            np.nan
            if not isinstance(item.generation, bool)
            else weight * (getattr(part, name) if part is not None else 0.0)
            for item, part, weight in zip(rows, parts, weights, strict=True)
        ]
        columns[column] = np.asarray(np.round(values, _DECIMALS) + 0.0, dtype=np.float64)
    return replace(table, values={**table.values, **columns})


def _weights(
    strata: Sequence[tuple[bool, bool] | None], parts: Sequence[_Parts | None]
) -> list[float]:
    """Return for each pair how many pairs of its stratum it stands for."""
    size: dict[tuple[bool, bool], int] = {}
    read: dict[tuple[bool, bool], int] = {}
    for stratum, part in zip(strata, parts, strict=True):
        if stratum is not None:
            size[stratum] = size.get(stratum, 0) + 1
            read[stratum] = read.get(stratum, 0) + (part is not None)
    return [1.0 if stratum is None else size[stratum] / max(1, read[stratum]) for stratum in strata]


def _finding(
    table: Table, rows: Sequence[JudgedPair], reader: _Reader, confidence: float
) -> Attribution:
    totals = {name: cluster_totals(observe(metric, table, {})) for name, metric in _METRICS.items()}
    first = next(iter(totals.values()))
    whole = replace(first, sums=np.sum([part.sums for part in totals.values()], axis=0))
    crossed = [item for item in rows if reader.was_crossed(item)]
    read = sum(reader.parts(item) is not None for item in crossed)
    repeated, turned = reader.repeats()
    return Attribution(
        suite=table.suite,
        total=_rounded(contrast(whole)),
        parts=[_part(name, part, whole, confidence) for name, part in totals.items()],
        pairs=sum(isinstance(item.generation, bool) for item in rows),
        equal_documents=sum(documents_of_pair(item, reader.executions) == "equal" for item in rows),
        crossed=read,
        undecided=len(crossed) - read,
        repeated=repeated,
        turned=turned,
    )


def _part(
    name: str, part: ClusterTotals, whole: ClusterTotals, confidence: float
) -> AttributedPart:
    interval = ratio_interval(part, whole, confidence=confidence)
    amount = contrast(part)
    found = isinstance(interval, Interval)
    return AttributedPart(
        name=name,
        amount=_rounded(amount),
        share=_rounded(amount / contrast(whole)) if found else None,
        share_interval=(_rounded(interval.low), _rounded(interval.high))
        if isinstance(interval, Interval)
        else None,
    )


def _rounded(value: float) -> float:
    return round(float(value), _DECIMALS) + 0.0
