"""Everybody at a glance: bars of answers and documents, with neutral wording and the baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from fairgate.domain.outcomes import Measurement, RuleResult, Slice, Subject
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.retriever_robustness import OVERLAP
from fairgate.reports import figures
from fairgate.reports.blocks import Bar, Block, Depth, Overview, OverviewRow, Panel, name
from fairgate.reports.material import Material, PairRow, YesOrNo, pair_suites, question_suites
from fairgate.reports.sections import affected, answers_to_identity
from fairgate.reports.sections.measured import CONDITIONS

_SUITES = 2
"""Suites that are drawn, the one of the rule that leads first."""
_ROWS = 24
_LEAST_PHRASES = 2
_HEADS = {CONDITIONS[0]: "ambiguous", CONDITIONS[1]: "disambiguated"}
_Where = Mapping[str, str]
_Slice = frozenset[tuple[str, str]]


def overview(material: Material, improved: Sequence[Slice] = ()) -> list[Block]:
    """Return a picture of each suite that the page has room for.

    `improved`: what a run that passes says is better than in the baseline.
    """
    leads = affected.leading(material.result)
    pairs, questions = pair_suites(material.result), question_suites(material.result)
    pictures = [
        *(_of_pairs(material, suite, several=len(pairs) > 1) for suite in pairs),
        *(_of_questions(material, suite, several=len(questions) > 1) for suite in questions),
    ]
    drawn = [picture for picture in pictures if picture is not None]
    drawn.sort(key=lambda picture: leads is None or picture.suite != leads.suite)
    return [picture.drawn(improved) for picture in islice(drawn, _SUITES)]


@dataclass(frozen=True, kw_only=True)
class _Picture:
    """What is drawn of a suite: a row for each slice, a bar for each metric."""

    material: Material
    suite: str
    label: str
    head: str
    slices: Sequence[_Where]
    panels: Mapping[str, Panel]
    """By the metric that it shows; slices are ordered by the first one."""

    def drawn(self, improved: Sequence[Slice]) -> Overview:
        """Return the block: slices that failed a rule or improved, then those that fare worst."""
        material, suite = self.material, self.suite
        failures = self._failed()
        failed = {where: number for number, where in enumerate(failures)}
        improvements = [where for _, about, where in improved if about == suite]
        first, *_ = self.panels

        def rank(where: _Where) -> tuple[int, int, float]:
            levels = frozenset(where.items())
            measured = material.now.get(first, suite, where)
            is_measured = measured is not None and measured.value is not None
            bad = affected.badness(measured) if is_measured and measured else -1.0
            place = improvements.index(levels) if levels in improvements else len(improvements)
            return failed.get(levels, len(failed)), place, -bad

        slices = sorted(self.slices, key=rank)
        return Overview(
            depth=Depth.PAGE,
            label=self.label,
            head=self.head,
            panels=[*self.panels.values()],
            rows=[
                OverviewRow(
                    name=name(self._called(where)),
                    bars=[self._bar(metric, where, failures) for metric in self.panels],
                    is_failed=frozenset(where.items()) in failed,
                )
                for where in slices[:_ROWS]
            ],
            left_out=max(0, len(slices) - _ROWS),
            usual=material.beside.id if len(material.choices) > 1 else "",
            others=[(other.id, other.word) for other in material.choices[1:] if other.word],
        )

    def _failed(self) -> Mapping[_Slice, set[str]]:
        """Return for which slices a rule failed that stops the build, and in which panels.

        Who leads stands first.
        """
        panels_of_slices: dict[_Slice, set[str]] = {}
        for rule in affected.failed_rules(self.material.result):
            if rule.suite == self.suite:
                for where in self._slices_of(rule):
                    panels_of_slices.setdefault(where, set()).update(self._panels_of(rule))
        return panels_of_slices

    def _panels_of(self, rule: RuleResult) -> Sequence[str]:
        """Return the metrics that show what a rule is about."""
        if rule.metric in self.panels:
            return [rule.metric]
        about = affected.subject_of(rule)
        is_shown = {
            Subject.DOCUMENTS: OVERLAP.id,
            Subject.ANSWERS: affected.main_metric(self.material, self.suite),
        }
        return [is_shown[about]] if is_shown.get(about) in self.panels else []

    def _slices_of(self, rule: RuleResult) -> Iterator[_Slice]:
        """Yield the slices that a rule is about; of a mean, who is most affected and differs."""
        material, levels = self.material, rule.where.items()
        for term, _ in affected.failed_terms(material, rule):
            where = {"term": term}
            worst = material.now.get(rule.metric, self.suite, where)
            is_shown = worst and affected.differs_from_others(material, rule, worst)
            if affected.names_identities(rule) or is_shown:
                yield frozenset(where.items())
        inside = [where for where in self.slices if levels and levels <= where.items()]
        measured = [material.now.get(rule.metric, self.suite, where) for where in inside]
        affected_slices = [
            measurement
            for measurement in measured
            if measurement is not None and affected.badness(measurement) > 0
        ]
        if affected_slices:
            yield frozenset(max(affected_slices, key=affected.badness).where.items())

    def _called(self, where: _Where) -> str:
        term = where.get("term")
        return self.material.identity(self.suite, term) if term else ", ".join(where.values())

    def _bar(self, metric: str, where: _Where, failed: Mapping[_Slice, set[str]]) -> Bar:
        def figure(measured: Measurement | None) -> figures.Figure:
            return figures.figure(measured, is_signless=self.panels[metric].is_signed)

        material, suite = self.material, self.suite
        if metric in BY_ID and BY_ID[metric].compares_terms_with_neutral:
            rate = answers_to_identity.rates(material, metric, suite).get(where.get("term", ""))
            return Bar(
                is_failed=metric in failed.get(frozenset(where.items()), ()),
                now=figures.of_share(rate),
            )
        return Bar(
            is_failed=metric in failed.get(frozenset(where.items()), ()),
            now=figure(material.now.get(metric, suite, where)),
            base=figure(material.beside.values.get(metric, suite, where)),
            others=[
                figure(other.values.get(metric, suite, where))
                for other in material.choices[1:]
                if other.word
            ],
        )


def _of_pairs(material: Material, suite: str, *, several: bool) -> _Picture | None:
    if metric := _reading(material, suite):
        return _of_readings(material, suite, metric, several=several)
    main = affected.main_metric(material, suite)
    claims: dict[str, tuple[str, Callable[[PairRow], YesOrNo | float | None]]] = {
        main: ("changed answers", lambda row: row.claim),
        OVERLAP.id: ("same documents", lambda row: row.score("overlap")),
    }
    panels = {
        metric: _panel(head, _phrases(material, suite, claim), is_whole=metric == OVERLAP.id)
        for metric, (head, claim) in claims.items()
        if any(m.value is not None for m in material.now.by(metric, suite, "term"))
    }
    if affected.subject(material) is Subject.DOCUMENTS:
        panels = dict(reversed(panels.items()))
    if not panels:
        return None
    terms = (
        term for term, identity in material.identities(suite).items() if not identity.is_control
    )
    return _Picture(
        material=material,
        suite=suite,
        label=_labelled("Everybody at a glance", suite, several=several),
        head="who",
        slices=[{"term": term} for term in terms],
        panels=panels,
    )


def _reading(material: Material, suite: str) -> str:
    """Give the reading of answers in sentences that a suite is drawn by; empty without one."""
    leads = affected.leading(material.result)
    rules = [rule for rule in material.result.rules if rule.suite == suite]
    first = [leads] if leads is not None and leads.suite == suite else []
    metrics = (BY_ID.get(rule.metric) for rule in (*first, *rules))
    return next((m.id for m in metrics if m is not None and m.compares_terms_with_neutral), "")


def _of_readings(material: Material, suite: str, metric: str, *, several: bool) -> _Picture | None:
    rates = answers_to_identity.rates(material, metric, suite)
    if not rates:
        return None
    panels = {
        metric: _panel(
            metric.rpartition("/")[2].replace("-", " "),
            answers_to_identity.of_phrases(material, metric, suite),
        )
    }
    if any(m.value is not None for m in material.now.by(OVERLAP.id, suite, "term")):
        phrases = _phrases(material, suite, lambda row: row.score("overlap"))
        panels[OVERLAP.id] = _panel("same documents", phrases, is_whole=True)
    return _Picture(
        material=material,
        suite=suite,
        label=_labelled("Everybody at a glance", suite, several=several),
        head="who",
        slices=[{"term": term} for term in sorted(rates, key=lambda term: (-rates[term], term))],
        panels=panels,
    )


def _of_questions(material: Material, suite: str, *, several: bool) -> _Picture | None:
    by = "setting", "category"
    panels = {
        metric: Panel(head=head, is_signed=True)
        for metric, head in _HEADS.items()
        if material.now.by(metric, suite, *by)
    }
    slices = [m.where for m in material.now.by(CONDITIONS[0], suite, *by)]
    if not panels or not slices:
        return None
    return _Picture(
        material=material,
        suite=suite,
        label=_labelled("Diff-Bias at a glance", suite, several=several),
        head="Diff-Bias × 100",
        slices=slices,
        panels=panels,
    )


def _labelled(label: str, suite: str, *, several: bool) -> str:
    return f"{label}, suite {suite}" if several else label


def _phrases(
    material: Material, suite: str, claim: Callable[[PairRow], YesOrNo | float | None]
) -> list[float]:
    """Return the rate of each neutral phrase of a suite."""
    claims_of_terms: dict[str, list[float]] = {}
    for row in material.pairs:
        value = claim(row) if row.suite == suite and row.is_control else None
        if isinstance(value, bool | float):
            claims_of_terms.setdefault(row.term, []).append(float(value))
    return [sum(values) / len(values) for values in claims_of_terms.values()]


def _panel(head: str, phrases: Sequence[float], *, is_whole: bool = False) -> Panel:
    if len(phrases) < _LEAST_PHRASES:
        return Panel(head=head, is_whole=is_whole)
    return Panel(head=head, low=min(phrases), high=max(phrases), is_whole=is_whole)
