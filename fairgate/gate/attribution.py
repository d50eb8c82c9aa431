"""Attribution: which pairs are crossed, and which path, retriever or generator, changed an answer.

`metrics/attribution.py` describes what the numbers mean and how noise affects them.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from fairgate.domain.cases import Case, crossed_key, repeat_key
from fairgate.domain.executions import Document
from fairgate.domain.outcomes import CONFIDENCE, AttributedPart, Attribution
from fairgate.domain.units import Assessed, Unit, Value
from fairgate.gate.measure import rounded
from fairgate.gate.waves import Answers
from fairgate.metrics.attribution import COLUMNS, GENERATOR, INTERACTION, RETRIEVAL
from fairgate.metrics.columns import AssessedSuite, AssessedUnits
from fairgate.metrics.metric import Table, observe
from fairgate.stats.interval import Interval, ratio_interval
from fairgate.stats.observations import ClusterTotals, Floats, cluster_totals, contrast
from fairgate.suites.metamorphic.assess import document_key, told_documents
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE
from fairgate.suites.suite import Suite

FEWEST = 30
"""Satisfied pairs that are crossed in each arm even where fewer are violated."""
FEWEST_PAIRS = 8
"""Pairs that are crossed even where they cost more questions than their suite asks."""
_PRICE = 4
"""Questions of a pair whose answers are sampled; a greedy system knows two of them."""
_DECIMALS = 6
_Kind = tuple[str, bool, bool]
"""Suite, and a stratum of it."""
_METRICS = {"retrieval": RETRIEVAL, "generator": GENERATOR, "interaction": INTERACTION}

Contributions = tuple[float, float, float]
"""What retrieval, generator and interaction have of one pair's total; each -2 to 1."""
_NO_PARTS, _BY_GENERATOR = (0.0, 0.0, 0.0), (0.0, 1.0, 0.0)
Stratum = tuple[bool, bool]
"""Whether a pair is of the control arm, and whether it is violated."""


class Documents(StrEnum):
    """How the documents of a pair's two cases relate."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    UNDECIDED = "undecided"
    """The pair has no verdict, so its documents do not matter."""


def keys_of(unit: Unit) -> tuple[str, str]:
    """Return the keys of a pair's cases: source and follow-up."""
    asks = unit.asks
    return asks[SOURCE], asks[FOLLOW_UP]


def _crossing(answers: Answers) -> dict[str, str]:
    """Return the suites that cross answers, with what they cross: `sampled` or `all`."""
    crossing = {name: suite.crossing for name, suite in answers.suites.items()}
    return {name: how for name, how in crossing.items() if how is not None and how != "off"}


def documents_of_pairs(assessed: Sequence[Assessed], answers: Answers) -> Iterator[Documents]:
    """Yield how the documents of each pair's source and follow-up relate, rank by rank.

    Units of suites that do not cross count as undecided.
    """
    suites, executions = _crossing(answers), answers.executions
    for suite in AssessedUnits.of(assessed).suites.values():
        # Most pairs have two lists that another pair has, too.
        known: dict[tuple[Sequence[Document] | None, ...], Documents] = {}
        for unit, reason in zip(suite.units, suite.decisions.reasons.codes.tolist(), strict=True):
            if reason or unit.suite not in suites:
                yield Documents.UNDECIDED
                continue
            both = (executions.get((unit.suite, key)) for key in keys_of(unit))
            left, right = map(told_documents, both)
            if (left, right) not in known:
                known[left, right] = _related(left, right)
            yield known[left, right]


def _related(left: Sequence[Document] | None, right: Sequence[Document] | None) -> Documents:
    if left is None or right is None:
        return Documents.UNKNOWN
    is_equal = [*map(document_key, left)] == [*map(document_key, right)]
    return Documents.EQUAL if is_equal else Documents.DIFFERENT


def crossed_cases(
    answers: Answers, assessed: Sequence[Assessed], documents: Sequence[Documents], seed: int
) -> list[Case]:
    """Return the cases that separate the effect of retrieval from that of the generator.

    Deterministic: satisfied pairs are drawn by a hash of the policy's seed and their key, so
    most of a sample stays when other pairs change.
    """
    suites, crossing = answers.suites, _crossing(answers)
    plan = answers.plan
    most = {name: most_pairs(suites[name], len(plan.cases_of(name))) for name in crossing}
    different = [assessed[row] for row, kind in enumerate(documents) if kind is Documents.DIFFERENT]
    cases: dict[tuple[str, str], Case] = {}
    for item in _drawn(different, crossing, most, seed):
        unit = item.unit
        again = suites[unit.suite].repeats + 1
        asked = (answers.readings[unit.suite].case(key) for key in keys_of(unit))
        source, follow_up = (case for case in asked if case is not None)
        for case in (
            _again(source, again),
            _again(follow_up, again),
            _crossed(source, follow_up.key),
            _crossed(follow_up, source.key),
        ):
            cases.setdefault((case.suite, case.key), case)
    return list(cases.values())


def crossing_price(cases: Sequence[Case]) -> str:
    """Return the purpose of the crossed cases, their number, and the way to have fewer."""
    pairs = sum(case.documents_of is not None for case in cases) // 2
    return (
        f"{len(cases):,} questions to separate retriever and generator in {pairs:,} pairs, less "
        "those in store; a suite's `attribution` sets how many pairs, `off` none"
    )


def crosses(suite: Suite) -> bool:
    """Whether a suite asks for attribution."""
    return suite.crossing in ("sampled", "all")


def most_pairs(suite: Suite, questions: int) -> int | None:
    """Most pairs that are crossed of a suite which asks so many questions; None: all.

    What the policy says; else attribution asks no more than the suite itself.
    """
    if suite.most_crossed is not None or suite.crossing == "all":
        return suite.most_crossed
    return max(FEWEST_PAIRS, questions // _PRICE)


def most_questions(units: Sequence[Unit], *, is_greedy: bool, pairs: int | None = None) -> int:
    """Return how many questions crossing can add for at most this many of these pairs.

    Two for each pair; sampled answers are also asked again, once for the pair and once for its
    source (a greedy one is known already).
    """
    crossed = len(units) if pairs is None else min(pairs, len(units))
    sources = min(crossed, len({unit.asks[SOURCE] for unit in units}))
    return 2 * crossed + (0 if is_greedy else crossed + sources)


def _again(case: Case, number: int) -> Case:
    return case._replace(key=repeat_key(case.key, number), repeat=number - 1, is_crossing=True)


def _crossed(case: Case, other: str) -> Case:
    return case._replace(key=crossed_key(case.key, other), documents_of=other, is_crossing=True)


def _drawn(
    pairs: Iterable[Assessed],
    crossing: Mapping[str, str],
    most: Mapping[str, int | None],
    seed: int,
) -> Iterator[Assessed]:
    """Yield those of the pairs to cross: of each arm the violated ones and as many satisfied ones.

    Where `most` of a suite are fewer, each of its strata (arm and verdict) is a random sample; what
    a stratum found counts for all of it.
    """
    strata: dict[_Kind, list[Assessed]] = {}
    arms: dict[tuple[str, bool], list[Assessed]] = {}
    for item in pairs:
        arm = item.unit.suite, item.unit.is_control
        arms.setdefault(arm, []).append(item)
        strata.setdefault((*arm, item.decision == 1.0), []).append(item)
    sizes: dict[str, dict[_Kind, int]] = {}
    for (suite, is_control, is_violated), items in strata.items():
        violated = len(strata.get((suite, is_control, True), ()))
        sampled = not is_violated and crossing[suite] != "all"
        wanted = max(violated, FEWEST) if sampled else len(items)
        of_suite = sizes.setdefault(suite, {})
        of_suite[suite, is_control, is_violated] = min(len(items), wanted)
    chosen = set()
    for suite, of_suite in sizes.items():
        for stratum, taken in _shared(of_suite, most[suite]).items():
            ranked = sorted(strata[stratum], key=lambda item: _drawing_order(seed, item.unit))
            chosen |= {(suite, item.unit.key) for item in ranked[:taken]}
    for items in arms.values():
        yield from (item for item in items if (item.unit.suite, item.unit.key) in chosen)


def _shared(sizes: Mapping[_Kind, int], most: int | None) -> dict[_Kind, int]:
    """Return how many of each stratum are taken: all, or equal parts of `most`, small ones whole.

    Equal parts, because a stratum of which nothing is read leaves no result at all.
    """
    shares: dict[_Kind, int] = {}
    left = sum(sizes.values()) if most is None else most
    for number, (stratum, size) in enumerate(sorted(sizes.items(), key=lambda one: one[1])):
        shares[stratum] = min(size, left // (len(sizes) - number))
        left -= shares[stratum]
    return shares


def _drawing_order(seed: int, unit: Unit) -> str:
    name = f"{seed}\0{unit.suite}\0{unit.key}"
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


class _Pair(NamedTuple):
    """A pair whose documents differ."""

    row: int
    unit: Unit
    stratum: Stratum
    is_crossed: bool
    parts: Contributions | None
    """None where nothing is known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pairs:
    """The pairs of a suite as attribution counts them."""

    assessed: AssessedSuite
    documents: Sequence[Documents]
    """Of each pair."""
    different: Sequence[_Pair]


def attribute(
    tables: Mapping[str, Table],
    answers: Answers,
    assessed: Sequence[Assessed],
    documents: Sequence[Documents],
) -> tuple[dict[str, Table], list[Attribution]]:
    """Return the tables with the attribution's columns, and their totals, suite by suite."""
    full: dict[str, Table] = dict(tables)
    findings = []
    start = 0
    for name, rows in AssessedUnits.of(assessed).suites.items():
        suite, table = answers.suites[name], tables[name]
        own = documents[start : start + len(rows)]
        start += len(rows)
        if suite.crossing is None:
            continue
        reader = _Reader(answers, name)
        different = [row for row, kind in enumerate(own) if kind is Documents.DIFFERENT]
        pairs = _Pairs(
            assessed=rows,
            documents=own,
            different=[reader.pair(row, rows[row]) for row in different],
        )
        is_off = suite.crossing == "off"
        why_not = suite.why_uncrossed if is_off else _obstacle(pairs, table)
        if why_not:
            absent = dict.fromkeys(COLUMNS.values(), why_not)
            full[name] = replace(
                table,
                values={**table.values, **dict.fromkeys(absent, np.full(len(table.keys), np.nan))},
                not_evaluated={**table.not_evaluated, **absent},
            )
            continue
        full[name] = replace(table, values={**table.values, **_columns(pairs)})
        findings.append(_finding(full[name], pairs))
    return full, findings


class _Reader:
    """Reads the crossed answers of one suite."""

    def __init__(self, answers: Answers, suite: str) -> None:
        self._readings = answers.readings[suite]
        own = [case for case in answers.added if case.suite == suite and case.is_crossing]
        self._again = max((case.repeat + 1 for case in own), default=0)
        self.asked = {case.key for case in own}

    def value(self, key: str, relation: str) -> Value | None:
        return self._readings.one(key, relation).value if key in self._readings else None

    def fresh(self, key: str, relation: str) -> Value | None:
        """Read the second answer to an uncrossed case, or the first where there is no second."""
        again = repeat_key(key, self._again)
        return self.value(again if self._readings.is_answered(again) else key, relation)

    def pair(self, row: int, item: Assessed) -> _Pair:
        """Return a pair whose documents differ, with what its crossed answers say."""
        unit = item.unit
        is_crossed = crossed_key(*keys_of(unit)) in self.asked
        parts = self._parts(unit) if is_crossed else None
        return _Pair(row, unit, (unit.is_control, item.decision == 1.0), is_crossed, parts)

    def _parts(self, unit: Unit) -> Contributions | None:
        """Return the parts of a crossed pair from fresh answers; None where one is undecided."""
        source, follow_up = keys_of(unit)
        relation = unit.dimensions.get("relation", "")
        none, both = self.fresh(source, relation), self.fresh(follow_up, relation)
        documents = self.value(crossed_key(source, follow_up), relation)
        text = self.value(crossed_key(follow_up, source), relation)
        if none is None or both is None or documents is None or text is None:
            return None
        total, retrieval, generator = (float(y != none) for y in (both, documents, text))
        return retrieval, generator, total - retrieval - generator


def _obstacle(pairs: _Pairs, table: Table) -> str:
    """Return why nothing can be attributed; empty where it can be."""
    if not table.control.any():
        return "the suite asks no control prompts"
    is_decided = np.asarray([kind is not Documents.UNDECIDED for kind in pairs.documents])
    if len(np.unique(table.control[is_decided])) < 2:
        return "no pair of one of the arms is decided"
    if Documents.UNKNOWN in pairs.documents:
        return "the system does not report which documents it was shown"
    is_read: dict[Stratum, bool] = {}
    for pair in pairs.different:
        is_read[pair.stratum] = is_read.get(pair.stratum, False) or pair.parts is not None
    if is_read and not any(is_read.values()):
        return (
            "documents differ, and no answer to one text beside the documents of the other is "
            "known (in a recording: keys with `@documents=`)"
        )
    # A stratum that nothing stands for would count as no effect at all.
    for (control, violated), read in is_read.items():
        if not read:
            those = f"{'control' if control else 'demographic'} arm whose answers"
            verdict = "differ" if violated else "are equal"
            return f"no pair of the {those} {verdict} has crossed answers that can be read"
    return ""


def _columns(pairs: _Pairs) -> dict[str, Floats]:
    """Return the parts of each pair, times how many pairs of its stratum it represents."""
    decisions = pairs.assessed.decisions.values
    is_violated = (decisions == 1.0)[:, None]
    values = np.where(is_violated, np.asarray(_BY_GENERATOR), np.asarray(_NO_PARTS))
    size = Counter(pair.stratum for pair in pairs.different)
    read = Counter(pair.stratum for pair in pairs.different if pair.parts is not None)
    for pair in pairs.different:
        weight = size[pair.stratum] / max(1, read[pair.stratum])
        values[pair.row] = [weight * part for part in pair.parts or _NO_PARTS]
    values[np.isnan(decisions)] = np.nan
    values = np.round(values, _DECIMALS) + 0.0
    return dict(zip(COLUMNS.values(), values.T, strict=True))


def parts_in(table: Table, where: Mapping[str, str]) -> dict[str, float]:
    """Parts of what the demographic pairs of a slice change beyond control prompts, by name.

    They add up to `asr/generation/net` there; empty where a part is not known.
    """
    amounts = {
        name: contrast(cluster_totals(observe(metric, table, where)))
        for name, metric in _METRICS.items()
        if metric.column in table.values
    }
    is_known = len(amounts) == len(_METRICS) and all(map(math.isfinite, amounts.values()))
    return {name: rounded(amount) for name, amount in amounts.items()} if is_known else {}


def _finding(table: Table, pairs: _Pairs) -> Attribution:
    totals = {name: cluster_totals(observe(metric, table, {})) for name, metric in _METRICS.items()}
    first = next(iter(totals.values()))
    whole = replace(first, sums=np.sum([part.sums for part in totals.values()], axis=0))
    crossed = [pair for pair in pairs.different if pair.is_crossed]
    read = sum(pair.parts is not None for pair in crossed)
    return Attribution(
        suite=table.suite,
        total=rounded(contrast(whole)),
        parts=[_part(name, part, whole) for name, part in totals.items()],
        pairs=len(pairs.assessed) - len(pairs.assessed.decisions.reasons),
        equal_documents=sum(kind is Documents.EQUAL for kind in pairs.documents),
        crossed=read,
        undecided=len(crossed) - read,
    )


def _part(name: str, part: ClusterTotals, whole: ClusterTotals) -> AttributedPart:
    interval = ratio_interval(part, whole, confidence=CONFIDENCE)
    amount, share, ends = contrast(part), None, None
    if isinstance(interval, Interval):
        share = rounded(amount / contrast(whole))
        ends = rounded(interval.low), rounded(interval.high)
    return AttributedPart(name=name, amount=rounded(amount), share=share, share_interval=ends)
