"""Attribution: which pairs are crossed, and which path, retriever or generator, changed an answer.

`metrics/attribution.py` describes what the numbers mean and how noise affects them.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from fairgate.domain.cases import Case, crossed_key, repeat_key
from fairgate.domain.outcomes import AttributedPart, Attribution
from fairgate.domain.units import Assessed, Claim, Reason, Unit, Value
from fairgate.gate.measure import rounded
from fairgate.gate.waves import Answers
from fairgate.metrics.attribution import COLUMNS, GENERATOR, INTERACTION, RETRIEVAL
from fairgate.metrics.metric import Table, observe
from fairgate.stats.interval import Interval, contrast, ratio_interval
from fairgate.stats.observations import ClusterTotals, Floats, cluster_totals
from fairgate.suites.metamorphic.assess import document_key
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
    for item in assessed:
        unit = item.unit
        if unit.suite not in suites or isinstance(item.decision, Reason):
            yield Documents.UNDECIDED
            continue
        both = (executions.get((unit.suite, unit.asks[role])) for role in (SOURCE, FOLLOW_UP))
        left, right = (None if execution is None else execution.documents for execution in both)
        if left is None or right is None:
            yield Documents.UNKNOWN
        # Lists are shared: most pairs have one list.
        elif left is right or [*map(document_key, left)] == [*map(document_key, right)]:
            yield Documents.EQUAL
        else:
            yield Documents.DIFFERENT


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
    drawn = list(_drawn(zip(assessed, documents, strict=True), crossing, most, seed))
    if not drawn:
        return []
    wanted = {(item.unit.suite, key) for item in drawn for key in keys_of(item.unit)}
    planned = {
        name: case for case in answers.plan.cases if (name := (case.suite, case.key)) in wanted
    }
    cases: dict[tuple[str, str], Case] = {}
    for item in drawn:
        unit = item.unit
        again = suites[unit.suite].repeats + 1
        source, follow_up = (planned[unit.suite, key] for key in keys_of(unit))
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
    """Return how many questions crossing can add for at most so many of these pairs.

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
    pairs: Iterable[tuple[Assessed, Documents]],
    crossing: Mapping[str, str],
    most: Mapping[str, int | None],
    seed: int,
) -> Iterator[Assessed]:
    """Yield the pairs to cross: of each arm the violated ones and as many satisfied ones.

    Where `most` of a suite are fewer, each of its strata (arm and verdict) is a random sample; what
    a stratum found counts for all of it.
    """
    strata: dict[_Kind, list[Assessed]] = {}
    arms: dict[tuple[str, bool], list[Assessed]] = {}
    for item, documents in pairs:
        unit = item.unit
        if documents is Documents.DIFFERENT and unit.suite in crossing:
            arm = unit.suite, unit.is_control
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
    """A pair as attribution counts it."""

    unit: Unit
    decision: Claim
    documents: Documents
    stratum: Stratum | None
    """None where its documents do not differ."""
    is_crossed: bool
    parts: Contributions | None
    """None where nothing is known of it."""


def attribute(
    tables: Mapping[str, Table],
    answers: Answers,
    assessed: Sequence[Assessed],
    documents: Sequence[Documents],
    confidence: float,
) -> tuple[dict[str, Table], list[Attribution]]:
    """Return the tables with the attribution's columns, and their totals, suite by suite."""
    readers = {name: _Reader(answers, name) for name in tables}
    pairs: dict[str, list[_Pair]] = {name: [] for name in tables}
    for item, kind in zip(assessed, documents, strict=True):
        name = item.unit.suite
        if answers.suites[name].crossing is not None:
            pairs[name].append(readers[name].pair(item, kind))
    full: dict[str, Table] = {}
    findings = []
    for name, table in tables.items():
        suite = answers.suites[name]
        if suite.crossing is None:
            full[name] = table
            continue
        is_off = suite.crossing == "off"
        why_not = suite.why_uncrossed if is_off else _obstacle(pairs[name])
        if why_not:
            absent = dict.fromkeys(COLUMNS.values(), why_not)
            full[name] = replace(
                table,
                values={**table.values, **dict.fromkeys(absent, np.full(len(table.keys), np.nan))},
                not_evaluated={**table.not_evaluated, **absent},
            )
            continue
        full[name] = replace(table, values={**table.values, **_columns(pairs[name])})
        findings.append(_finding(full[name], pairs[name], readers[name], confidence))
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

    def pair(self, item: Assessed, documents: Documents) -> _Pair:
        """Return a pair with what its crossed answers say, or its equal documents."""
        unit, decision, parts = item.unit, item.decision, None
        is_violated = decision == 1.0
        is_different = documents is Documents.DIFFERENT
        is_crossed = is_different and crossed_key(*keys_of(unit)) in self.asked
        if documents is Documents.EQUAL:
            parts = _BY_GENERATOR if is_violated else _NO_PARTS
        elif is_crossed:
            parts = self._parts(unit)
        stratum = (unit.is_control, is_violated) if is_different else None
        return _Pair(unit, decision, documents, stratum, is_crossed, parts)

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

    def repeats(self, crossed: Sequence[Unit]) -> tuple[int, int]:
        """Return how many uncrossed answers were asked again, and how many of them changed.

        An answer changes where an oracle of the pairs that share it reads another value.
        """
        changed: dict[str, bool] = {}
        for unit in crossed:
            relation = unit.dimensions.get("relation", "")
            for key in keys_of(unit):
                again = repeat_key(key, self._again)
                if again not in self.asked or not self._readings.is_answered(again):
                    continue
                then, now = self.value(key, relation), self.value(again, relation)
                if then is not None and now is not None:
                    changed[key] = changed.get(key, False) or then != now
        return len(changed), sum(changed.values())


def _obstacle(pairs: Sequence[_Pair]) -> str:
    """Return why nothing can be attributed; empty where it can be."""
    if not any(pair.unit.is_control for pair in pairs):
        return "the suite asks no control prompts"
    decided = [pair for pair in pairs if pair.documents is not Documents.UNDECIDED]
    if len({pair.unit.is_control for pair in decided}) < 2:
        return "no pair of one of the arms is decided"
    if any(pair.documents is Documents.UNKNOWN for pair in pairs):
        return "the system does not report which documents it was shown"
    is_read: dict[Stratum, bool] = {}
    for pair in pairs:
        if pair.stratum is not None:
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


def _columns(pairs: Sequence[_Pair]) -> dict[str, Floats]:
    """Return the parts of each pair, times how many pairs of its stratum it represents."""
    size = Counter(pair.stratum for pair in pairs)
    read = Counter(pair.stratum for pair in pairs if pair.parts is not None)
    size[None] = read[None] = 1
    weights = {stratum: size[stratum] / max(1, read[stratum]) for stratum in size}
    rows = []
    for pair in pairs:
        weight, parts = weights[pair.stratum], pair.parts or _NO_PARTS
        if isinstance(pair.decision, Reason):
            weight = np.nan
        rows.append([weight * part for part in parts])
    values = np.round(np.asarray(rows, dtype=np.float64), _DECIMALS) + 0.0
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


def _finding(
    table: Table, pairs: Sequence[_Pair], reader: _Reader, confidence: float
) -> Attribution:
    totals = {name: cluster_totals(observe(metric, table, {})) for name, metric in _METRICS.items()}
    first = next(iter(totals.values()))
    whole = replace(first, sums=np.sum([part.sums for part in totals.values()], axis=0))
    crossed = [pair for pair in pairs if pair.is_crossed]
    read = sum(pair.parts is not None for pair in crossed)
    repeated, turned = reader.repeats([pair.unit for pair in crossed])
    return Attribution(
        suite=table.suite,
        total=rounded(contrast(whole)),
        parts=[_part(name, part, whole, confidence) for name, part in totals.items()],
        pairs=sum(not isinstance(pair.decision, Reason) for pair in pairs),
        equal_documents=sum(pair.documents is Documents.EQUAL for pair in pairs),
        crossed=read,
        undecided=len(crossed) - read,
        repeated=repeated,
        turned=turned,
    )


def _part(
    name: str, part: ClusterTotals, whole: ClusterTotals, confidence: float
) -> AttributedPart:
    interval = ratio_interval(part, whole, confidence=confidence)
    amount, share, ends = contrast(part), None, None
    if isinstance(interval, Interval):
        share = rounded(amount / contrast(whole))
        ends = rounded(interval.low), rounded(interval.high)
    return AttributedPart(name=name, amount=rounded(amount), share=share, share_interval=ends)
