"""Attribution from the crossed answers: which path, retriever or generator, changed an answer.

`metrics/attribution.py` describes what the numbers mean and how noise affects them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairgate.domain.cases import crossed_key, repeat_key
from fairgate.domain.outcomes import AttributedPart, Attribution
from fairgate.domain.units import Judged, Reason, Value
from fairgate.gate.waves import Answered, Documents, keys_of
from fairgate.metrics.attribution import COLUMNS, GENERATOR, INTERACTION, RETRIEVAL
from fairgate.metrics.metric import observe
from fairgate.metrics.table import Column, Table
from fairgate.stats.interval import Interval, contrast, ratio_interval
from fairgate.stats.observations import ClusterTotals, cluster_totals

_DECIMALS = 6
_METRICS = {"retrieval": RETRIEVAL, "generator": GENERATOR, "interaction": INTERACTION}

_OFF = "attribution is off: the policy says so (`attribution: off`), or the pairs are written"
_NO_DOCUMENTS = "the system does not report which documents it was shown"
_NO_CONTROLS = "the suite asks no neutral wording, so there is no control arm"
_NOTHING_DECIDED = "no pair of one of the arms is decided"
_STRATUM_UNREAD = (
    "no pair of the {arm} arm whose answers {verdict} has crossed answers that can be read"
)
_NOTHING_CROSSED = "no crossed answer is known (keys with `@documents=`) and documents differ"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """The parts of one pair's total; each -2 to 1."""

    retrieval: float
    generator: float
    interaction: float


def attribute(
    tables: Mapping[str, Table], answered: Answered, confidence: float
) -> tuple[dict[str, Table], list[Attribution]]:
    """Return the tables with the attribution's columns, and their totals, suite by suite."""
    rows: dict[str, list[Judged]] = {name: [] for name in tables}
    kinds: dict[str, list[Documents]] = {name: [] for name in tables}
    for item, kind in zip(answered.judged, answered.documents, strict=True):
        rows[item.unit.suite].append(item)
        kinds[item.unit.suite].append(kind)
    full: dict[str, Table] = {}
    findings = []
    for name, table in tables.items():
        crossing = answered.suites[name].crossing
        if crossing is None:
            full[name] = table
            continue
        reader = _Reader(answered, name)
        why_not = _OFF if crossing == "off" else _obstacle(rows[name], kinds[name], reader)
        if why_not is not None:
            full[name] = _without(table, why_not)
            continue
        full[name] = _with_columns(table, rows[name], kinds[name], reader)
        findings.append(_finding(full[name], rows[name], kinds[name], reader, confidence))
    return full, findings


class _Reader:
    """Reads the crossed answers of one suite."""

    def __init__(self, answered: Answered, suite: str) -> None:
        self._readings = answered.readings[suite]
        own = [case for case in answered.added if case.suite == suite and case.is_crossing]
        self._again = max((case.repeat + 1 for case in own), default=0)
        self.asked = {case.key for case in own}

    def value(self, key: str, relation: str) -> Value | None:
        return self._readings.one(key, relation).value if key in self._readings else None

    def fresh(self, key: str, relation: str) -> Value | None:
        """Read the second answer to an uncrossed case, or the first where there is no second."""
        again = repeat_key(key, self._again)
        return self.value(again if self._readings.is_answered(again) else key, relation)

    def was_crossed(self, item: Judged) -> bool:
        source, follow_up = keys_of(item)
        return crossed_key(source, follow_up) in self.asked

    def parts(self, item: Judged) -> _Parts | None:
        """Return the parts of a crossed pair from fresh answers; None where one is undecided."""
        source, follow_up = keys_of(item)
        relation = item.unit.dimensions.get("relation", "")
        none, both = self.fresh(source, relation), self.fresh(follow_up, relation)
        documents = self.value(crossed_key(source, follow_up), relation)
        text = self.value(crossed_key(follow_up, source), relation)
        if none is None or both is None or documents is None or text is None:
            return None
        total, retrieval, generator = (float(y != none) for y in (both, documents, text))
        return _Parts(
            retrieval=retrieval, generator=generator, interaction=total - retrieval - generator
        )

    def repeats(self, crossed: Sequence[Judged]) -> tuple[int, int]:
        """Return how many uncrossed answers were asked again, and how many of them changed.

        An answer changes where an oracle of the pairs that share it reads another value.
        """
        changed: dict[str, bool] = {}
        for item in crossed:
            relation = item.unit.dimensions.get("relation", "")
            for key in keys_of(item):
                again = repeat_key(key, self._again)
                if again not in self.asked or not self._readings.is_answered(again):
                    continue
                then, now = self.value(key, relation), self.value(again, relation)
                if then is not None and now is not None:
                    changed[key] = changed.get(key, False) or then != now
        return len(changed), sum(changed.values())


def _obstacle(rows: Sequence[Judged], kinds: Sequence[Documents], reader: _Reader) -> str | None:
    if not any(item.unit.is_control for item in rows):
        return _NO_CONTROLS
    arms = {
        i.unit.is_control
        for i, kind in zip(rows, kinds, strict=True)
        if kind is not Documents.UNDECIDED
    }
    if len(arms) < 2:
        return _NOTHING_DECIDED
    if Documents.UNKNOWN in kinds:
        return _NO_DOCUMENTS
    strata: dict[tuple[bool, bool], bool] = {}
    for item, kind in zip(rows, kinds, strict=True):
        if kind is Documents.DIFFERENT:
            stratum = (item.unit.is_control, item.decision == 1.0)
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


def _with_columns(
    table: Table, rows: Sequence[Judged], kinds: Sequence[Documents], reader: _Reader
) -> Table:
    parts: list[_Parts | None] = []
    strata: list[tuple[bool, bool] | None] = []
    for item, kind in zip(rows, kinds, strict=True):
        is_different = kind is Documents.DIFFERENT
        strata.append((item.unit.is_control, item.decision == 1.0) if is_different else None)
        if kind is Documents.EQUAL:
            direct = float(item.decision == 1.0)
            parts.append(_Parts(retrieval=0.0, generator=direct, interaction=0.0))
        else:
            parts.append(reader.parts(item) if reader.was_crossed(item) else None)
    weights = _weights(strata, parts)
    columns: dict[str, Column] = {}
    for name, column in COLUMNS.items():
        values = [
            np.nan
            if isinstance(item.decision, Reason)
            else weight * (getattr(part, name) if part is not None else 0.0)
            for item, part, weight in zip(rows, parts, weights, strict=True)
        ]
        columns[column] = np.asarray(np.round(values, _DECIMALS) + 0.0, dtype=np.float64)
    return replace(table, values={**table.values, **columns})


def _weights(
    strata: Sequence[tuple[bool, bool] | None], parts: Sequence[_Parts | None]
) -> list[float]:
    """Return for each pair how many pairs of its stratum it represents."""
    size: dict[tuple[bool, bool], int] = {}
    read: dict[tuple[bool, bool], int] = {}
    for stratum, part in zip(strata, parts, strict=True):
        if stratum is not None:
            size[stratum] = size.get(stratum, 0) + 1
            read[stratum] = read.get(stratum, 0) + (part is not None)
    return [1.0 if stratum is None else size[stratum] / max(1, read[stratum]) for stratum in strata]


def _finding(
    table: Table,
    rows: Sequence[Judged],
    kinds: Sequence[Documents],
    reader: _Reader,
    confidence: float,
) -> Attribution:
    totals = {name: cluster_totals(observe(metric, table, {})) for name, metric in _METRICS.items()}
    first = next(iter(totals.values()))
    whole = replace(first, sums=np.sum([part.sums for part in totals.values()], axis=0))
    crossed = [item for item in rows if reader.was_crossed(item)]
    read = sum(reader.parts(item) is not None for item in crossed)
    repeated, turned = reader.repeats(crossed)
    return Attribution(
        suite=table.suite,
        total=_rounded(contrast(whole)),
        parts=[_part(name, part, whole, confidence) for name, part in totals.items()],
        pairs=sum(not isinstance(item.decision, Reason) for item in rows),
        equal_documents=kinds.count(Documents.EQUAL),
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
