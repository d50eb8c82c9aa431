"""What moved from the policy's reference: the first sentence, and who is affected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from fairgate.domain.cases import reference_key
from fairgate.domain.outcomes import IdentityFinding, RuleResult, Subject
from fairgate.domain.units import Reason
from fairgate.gate.gate import GateResult
from fairgate.metrics import shift
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import demographic_rows
from fairgate.policy.schema import BASE
from fairgate.reports import blocks, figures
from fairgate.reports.blocks import (
    Row,
    RowKind,
    Section,
    Span,
    Words,
    columns,
    figure,
    name,
    of_suites,
)
from fairgate.reports.material import Material, pair_suites
from fairgate.reports.sections import affected, cases
from fairgate.suites.metamorphic.plan import FOLLOW_UP

_SHOWN = 6
_ALIKE = 0.02
"""Difference of two rates up to which they count as equal."""
_MASKED = 0.05
"""Share of the changed answers that are other cases, from which equal rates hide something."""
_CERTAIN = 0.05
_CLAIMS = (
    (shift.ANSWER, "answers moved"),
    (shift.UNREADABLE, "unreadable, beyond neutral"),
    (shift.DIRECTION, "worse labels, beyond neutral"),
    (shift.DOCUMENTS, "documents not found"),
)
"""Metric, and head of its column in the table of identities."""


def masked(material: Material) -> Words:
    """Say where as many answers change as with the reference, but in other cases; else nothing."""
    for suite in pair_suites(material.result):
        counts = _changes(material, suite)
        if counts is None:
            continue
        changed, before, others, decided = counts
        is_alike = abs(changed - before) <= _ALIKE * decided
        if not changed or not is_alike or others < _MASKED * changed:
            continue
        now, then = (f"{100 * count / decided:.1f} %" for count in (changed, before))
        same: Words = ["The same ", figure(now), " of answers change as with the reference"]
        if now != then:
            same = [figure(now), " of answers change, ", figure(then), " with the reference"]
        share = figure(f"{100 * others / changed:.0f} %")
        return [*same, ", but ", share, " of these are other cases", *_whose(material, suite), ". "]
    return []


def _changes(material: Material, suite: str) -> tuple[int, int, int, int] | None:
    """Count changed answers, the reference's, those changed here alone, and decided cases."""
    table = material.run.tables.get(suite)
    if table is None or shift.CHANGES not in table.values or "generation" not in table.values:
        return None
    own, beside = table.values["generation"], table.values[shift.CHANGES]
    decided = demographic_rows(table) & ~np.isnan(own) & ~np.isnan(beside)
    if not decided.any():
        return None
    changed, other = own[decided], own[decided] - beside[decided]
    return int(changed.sum()), int(other.sum()), int((beside[decided] == 1).sum()), len(changed)


def _whose(material: Material, suite: str) -> Words:
    """Say whose answers move most, beside neutral ones, where that is no chance."""
    finding = significant(material.result, suite)
    if finding is None:
        return []
    term = finding.terms[0].term
    own = material.now.value(shift.ANSWER, suite, {"term": term})
    neutral = material.now.value(f"{shift.ANSWER}/control", suite)
    if own is None or neutral is None or own <= neutral:
        return []
    who = name(material.identity(suite, term), blocks.Tone.STRONG)
    often = f"{own / neutral:.1f} times as often as" if neutral else "and not"
    return ["; for ", who, f", answers move {often} neutral ones"]


def significant(result: GateResult, suite: str) -> IdentityFinding | None:
    """Return how identities differ in what moved, where chance does not explain it."""
    for finding in result.identities:
        is_asked = finding.metric == shift.MOST_MOVED.id and finding.suite == suite
        if is_asked and not finding.where and finding.p_value <= _CERTAIN and finding.excess > 0:
            return finding
    return None


def is_of_reference(metric: str) -> bool:
    """Return whether a metric compares with the policy's reference."""
    described = BY_ID.get(metric)
    return described is not None and described.needs_reference


def what_moved(metric: str, *, is_base: bool) -> str:
    """Return the words of a title where a rule about the reference fails: `answers moved`."""
    described = BY_ID.get(metric)
    documents = described is not None and described.about is Subject.DOCUMENTS
    whose = "base" if is_base else "reference"
    return f"{'documents' if documents else 'answers'} moved from the {whose}"


def compares_with_base(material: Material) -> bool:
    """Return whether the policy's reference is the base commit's system."""
    return material.result.gate_input.policy.reference == BASE


def since_base(material: Material) -> Words:
    """Return how much moved from the base commit: `8.7 % of answers moved`; else nothing."""
    if not compares_with_base(material):
        return []
    shares: list[Words] = []
    for column, what in ((shift.ANSWER, "answers"), (shift.DOCUMENTS, "documents")):
        values = [
            table.values[name][demographic_rows(table)]
            for table in material.run.tables.values()
            for name in (column, *([shift.OPTION] if column == shift.ANSWER else []))
            if name in table.values and name not in table.not_evaluated
        ]
        decided = [value for several in values for value in several[~np.isnan(several)].tolist()]
        if decided:
            shares.append([figure(f"{100 * sum(decided) / len(decided):.1f} %"), f" of {what}"])
    return [*blocks.joined(shares, ", "), " moved"] if shares else []


def whose_moved(material: Material) -> Words:
    """Return whose answers moved most from the base commit, beside neutral ones; else nothing."""
    words: list[Words] = []
    for suite in pair_suites(material.result) if since_base(material) else ():
        table, now = material.run.tables.get(suite), material.now
        for metric, what in ((shift.ANSWER, "answers"), (shift.DOCUMENTS, "documents not found")):
            if table is None or metric not in table.values or metric in table.not_evaluated:
                continue
            terms = table.levels("term", demographic_rows(table))
            rates = {term: now.value(metric, suite, {"term": term}) for term in terms}
            who = max(rates, key=lambda term: rates[term] or 0.0, default=None)
            if who is None or not rates[who]:
                continue
            values = (now.value(metric, suite), now.value(f"{metric}/control", suite), rates[who])
            everybody, neutral, most = (figures.value(value, metric) for value in values)
            words.append([
                f"{what} of ", name(suite), ": ", figure(everybody), ", with neutral wording ",
                figure(neutral), ", most for ", name(material.identity(suite, who)), " (",
                figure(most), ")",
            ])  # fmt: skip
    return [*blocks.joined(words, "; ")]


def example(material: Material, rule: RuleResult, quoted: Callable[[str], Span]) -> Words:
    """Return a pair that moved, of whom the rule names most: both answers, or what went and came.

    `quoted` makes a text fit for a sentence.
    """
    described = BY_ID.get(rule.metric)
    if described is None or described.column not in (shift.ANSWER, shift.DOCUMENTS):
        return []
    order = {term: rank for rank, (term, _) in enumerate(affected.failed_terms(material, rule))}
    rows = [
        row
        for row in material.named_pairs
        if row.suite == rule.suite and row.names_speaker
        if not isinstance(claim := row.assessed.claims.get(described.column), Reason) and claim
    ]
    if not rows:
        return []
    row = min(rows, key=lambda row: order.get(row.term, len(order)))
    text = quoted(material.case(row.suite, row.source).varied)
    beside = reference_key(row.key)
    start: Words = ["Said by ", name(row.speaker, blocks.Tone.STRONG), ", ", text]
    if described.column == shift.DOCUMENTS:
        gone, new = (documents[:1] for documents in cases.documents_of(material, row, beside))
        came: Words = [" finds ", *new[0]] if new else [" finds other documents"]
        went: Words = [" instead of ", *gone[0], ", which the reference finds"] if gone else []
        return [*start, *came, *went, "."]
    other = material.run.readings[row.suite].all_of(beside, row.relation)
    now, then = (cases.answer_of(reading, blocks.Tone.STRONG) for reading in (row.answer, other))
    if now == then:
        return []  # answers in sentences: `explain` shows both
    return [*start, " gets ", now, ", and from the reference ", then, "."]


def moved(material: Material) -> Iterator[Section]:
    """Yield what moved by identity, beside neutral wording, and what could not be compared."""
    is_base = compares_with_base(material)
    kind = Section(
        id="moved",
        title=f"What moved from the {'base commit' if is_base else 'reference'}",
        blocks=[],
        chapter=blocks.Chapter.WHO,
        worth=80,
    )
    if material.result.gate_input.policy.reference is not None:
        yield from of_suites(kind, pair_suites(material.result), partial(_of_suite, material))


def _of_suite(material: Material, suite: str, place: int) -> Iterator[blocks.Block]:
    del place
    table = material.run.tables.get(suite)
    if table is None:
        return
    there = [
        (metric, head)
        for metric, head in _CLAIMS
        if metric in table.values and metric not in table.not_evaluated
    ]
    terms = table.levels("term", demographic_rows(table)) if "term" in table.dimensions else []
    rows = [
        (term, [material.now.value(metric, suite, {"term": term}) for metric, _ in there])
        for term in terms
    ]
    if not there or not rows:
        return
    rows.sort(key=lambda row: -(row[1][0] or 0.0))
    neutral = [
        material.now.value(f"{metric}/control", suite) if f"{metric}/control" in BY_ID else None
        for metric, _ in there
    ]
    shown = [
        Row(cells=[name(material.identity(suite, term)), *_cells(values, there)])
        for term, values in rows
    ]
    shown.append(Row(cells=["neutral wording", *_cells(neutral, there)], kind=RowKind.REFERENCE))
    yield blocks.Table(
        label="What moved, by identity",
        columns=columns("identity", numbers=[head for _, head in there]),
        rows=shown,
        most=_SHOWN,
    )
    if left := list(_left_out(material, suite)):
        yield blocks.Text(lines=left, style=blocks.Style.NOTE)


def _cells(values: list[float | None], there: list[tuple[str, str]]) -> list[blocks.Inline]:
    return [
        figure("–" if value is None else figures.value(value, metric))
        for value, (metric, _) in zip(values, there, strict=True)
    ]


def _left_out(material: Material, suite: str) -> Iterator[str]:
    """Yield how many answers moved where nothing is shown by it: near ties, and own reruns."""
    table, readings = material.run.tables[suite], material.run.readings[suite]
    reasons = table.reasons.get(shift.ANSWER, {})
    unstable = [row for row in reasons if reasons[row] == Reason.UNSTABLE]
    if not unstable:
        return
    units = {unit.key: unit for unit in material.result.gate_input.plan.units_of(suite)}
    kinds: Counter[str] = Counter()
    for row in unstable:
        unit = units[table.keys[row]]
        relation, key = unit.dimensions.get("relation", ""), reference_key(unit.asks[FOLLOW_UP])
        is_rerun = readings.whatever_margin(key, relation).value is None
        kinds["rerun" if is_rerun else "tie"] += 1
    parts = []
    if kinds["tie"]:
        parts.append(f"{kinds['tie']:,} near ties of the reference (below `unstable_margin`)")
    if kinds["rerun"]:
        parts.append(f"{kinds['rerun']:,} answers that change when the reference is asked again")
    yield f"Not compared: {' and '.join(parts)}."
