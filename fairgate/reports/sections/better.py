"""What is better than in the baseline, and whether anything changed at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fairgate.domain.outcomes import (
    IdentityFinding,
    Measurement,
    Outcome,
    RuleResult,
    Slice,
    TermFinding,
    slice_of,
)
from fairgate.gate.measure import identity_finding
from fairgate.metrics.identity import RETRIEVAL
from fairgate.metrics.retriever_robustness import OVERLAP
from fairgate.reports import figures
from fairgate.reports.blocks import Inline, Tone, Words, figure, joined, name
from fairgate.reports.figures import slice_in_words
from fairgate.reports.material import Material, pair_suites
from fairgate.reports.sections.affected import CERTAIN, main_metric, ranged, sources_of

_SAME = 2e-6
"""Columns of baselines are rounded to millionths."""


@dataclass(frozen=True, slots=True)
class Improvements:
    """What a run that passes says beside its verdict."""

    better: Sequence[Inline] = ()
    is_unchanged: bool = False
    improved: Sequence[Slice] = ()
    """What these are about, in their order."""


def improvements_of(material: Material) -> Improvements:
    """Return the improvements since the baseline, or that nothing changed."""
    if material.result.outcome is not Outcome.PASS:
        return Improvements()
    if is_unchanged(material):
        return Improvements(is_unchanged=True)
    better = better_values(material)
    return Improvements(list(better.values()), improved=list(better))


def is_unchanged(material: Material) -> bool:
    """Return whether all cases are the baseline's, and each has the result that it has there."""
    baseline, overlap = material.baseline, material.result.overlap
    if baseline is None or overlap is None or overlap.new or overlap.removed:
        return False
    if any(rule.change and rule.change.discordant for rule in material.result.rules):
        return False
    for suite, now in material.run.tables.items():
        then = baseline.suites[suite].table
        places = {key: row for row, key in enumerate(then.keys)}
        rows = [places.get(key, -1) for key in now.keys]
        if -1 in rows or len(rows) != len(places):
            return False
        for column in now.values.keys() & then.values.keys():
            pair = now.values[column], then.values[column][rows]
            if not np.allclose(*pair, rtol=0, atol=_SAME, equal_nan=True):
                return False
    return bool(material.run.tables)


def better_values(material: Material) -> dict[Slice, Words]:
    """Return the values that are better by more than chance, identities first, in words.

    By the gate's own evidence: the range of a rule's change or, of identities that no rule
    compares, likely ranges that lie apart on the same cases.
    """
    overlap, then = material.result.overlap, material.beside.values
    if overlap is None or overlap.incompatible or not material.beside.is_baseline:
        return {}
    moved: dict[Slice, tuple[RuleResult | Measurement, float, float]] = {
        slice_of(rule.metric, rule.suite, rule.where): (rule, change.base, change.now)
        for rule in material.result.rules
        if (change := rule.change) and change.upper < 0 and rule.outcome is Outcome.PASS
    }
    again: dict[Slice, Words] = {}
    for suite in pair_suites(material.result):
        metric, sources = main_metric(material, suite), sources_of(material, suite)
        terms = material.now.by(metric, suite, "term") if not overlap.new else ()
        for now in () if overlap.removed else terms:
            was, bounds = then.get(metric, suite, now.where), ranged(material, now, sources).bounds
            if was and was.interval and bounds and bounds[1] < was.interval[0]:
                ends = was.value or 0.0, now.value or 0.0
                moved.setdefault(slice_of(metric, suite, now.where), (now, *ends))
        for term in _alike_again(material, suite):
            place = slice_of(OVERLAP.id, suite, {"term": term})
            if moved.pop(place, None):
                who = name(material.person(suite, term), Tone.STRONG)
                again[place] = ["retrieval no longer differs for ", who]
    ranked = sorted(
        moved.items(),
        key=lambda entry: ("term" not in entry[1][0].where, entry[1][2] - entry[1][1]),
    )
    about = {place: _words(material, *entry) for place, entry in ranked}
    people = {place: words for place, words in about.items() if "term" in moved[place][0].where}
    return people | again | about


def _words(
    material: Material, measured: RuleResult | Measurement, base: float, now: float
) -> Words:
    where = slice_in_words(measured.where, partial(material.person, measured.suite))
    is_plain = measured.where.keys() == {"term"} and measured.metric == main_metric(
        material, measured.suite
    )
    head = [] if is_plain else [figures.title(measured.metric), ", " if where else ""]
    values = [figure(figures.value(end, measured.metric)) for end in (base, now)]
    return [*head, name(where, Tone.STRONG), " ", *joined(values, " → ")]


def _alike_again(material: Material, suite: str) -> Iterator[str]:
    """Yield whose documents differed from the others' in the baseline by the same test, not now."""
    policy = material.result.gate_input.policy
    suite_then = material.baseline.suites.get(suite) if material.baseline else None
    now = [
        finding
        for finding in material.result.identities
        if finding.suite == suite and not finding.where
    ]
    differ = {t.term for f in now if f.metric == RETRIEVAL.id for t in f.terms if _differs(f, t)}
    if suite_then is not None and RETRIEVAL.column in suite_then.table.values and now:
        alpha, seed = 1 - policy.confidence, policy.seed
        was = identity_finding(RETRIEVAL, suite_then.table, {}, alpha=alpha, seed=seed)
        terms = was.terms if was else ()
        yield from (t.term for t in terms if was and _differs(was, t) and t.term not in differ)


def _differs(finding: IdentityFinding, term: TermFinding) -> bool:
    return max(finding.p_value, term.p_corrected) <= CERTAIN
