"""What suites measured beside answers: retrieval and causes of pairs, P2's tables of items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from fairgate.domain.cases import NO_RETRIEVAL
from fairgate.domain.outcomes import AttributedPart, Attribution, Subject
from fairgate.domain.parity import Level
from fairgate.domain.wording import MINUS
from fairgate.gate.attribution import parts_in
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.retriever_robustness import BANDS, PAPER_BANDS
from fairgate.reports import blocks, figures
from fairgate.reports.blocks import (
    Section,
    Tone,
    code,
    columns,
    figure,
    joined,
    muted,
    name,
    of_suites,
)
from fairgate.reports.figures import Bounds, Figure
from fairgate.reports.material import Material, QuestionRow, pair_suites, question_suites
from fairgate.reports.sections import BIAS, CAUSES, RETRIEVAL, parity

_BAND = "rrs/band"
_PARTS = {
    "retrieval": "through the retrieved documents",
    "generator": "directly in the generator",
    "interaction": "both together",
}
_MOSTLY = {
    "retrieval": "mostly through the retrieved documents",
    "generator": "mostly from the generator itself",
    "interaction": "mostly from documents and wording together",
}
_IN_PART = {path: how.replace("mostly", "in part", 1) for path, how in _MOSTLY.items()}
"""Of the largest part where it is no more than half."""
_METRIC = "attribution/retrieval"
AMBIGUOUS, DISAMBIGUATED = CONDITIONS = ("diff-bias/ambiguous", "diff-bias/disambiguated")
_ACCURACIES = ("accuracy/ambiguous", "accuracy/disambiguated")
_LOST = "out-of-choice"
_CHANCE = 1 / 3
_MANY = 0.1
"""Share of answers without an option above which the report warns."""


def retrieval(material: Material) -> Iterator[Section]:
    """Yield what is known of every suite's retrieval, and what cannot be known and why."""
    yield from of_suites(RETRIEVAL, pair_suites(material.result), partial(_retrieval, material))


def _retrieval(material: Material, suite: str, number: int) -> Iterator[blocks.Block]:
    table = material.run.tables.get(suite)
    high, moderate = (f"{limit:g}" for limit in (table.bands if table else PAPER_BANDS))
    reach = ("0", f"up to {high}", f"up to {moderate}", f"over {moderate}")
    rows = []
    for band, limit in zip(BANDS, reach, strict=True):
        both = (material.now, material.before)
        value, base = (measurements.value(_BAND, suite, {"band": band}) for measurements in both)
        figures_of_row = (figure(figures.value(share, _BAND)) for share in (value, base))
        if value is not None:
            rows.append(blocks.Row(cells=[band.replace("-", " "), limit, *figures_of_row]))
    if len(rows) == len(BANDS):
        yield blocks.Table(
            label=f"Bands of the retriever robustness score{f' {number}' if number > 1 else ''}",
            caption="Share of the pairs by retriever robustness (RRS; 0: the same documents)",
            columns=columns("band", "RRS", numbers=["now", "base"]),
            rows=rows,
            depth=blocks.Depth.FULL,
        )
    facts = [*_facts(material, suite), *_degradation(material, suite)]
    if facts:
        yield blocks.KeyValues(rows=facts)


def _degradation(material: Material, suite: str) -> Iterator[blocks.KeyValue]:
    """Yield P1's RQ1-2: above which RRS answers change, and how well RRS predicts that."""
    for degraded in material.result.degradation:
        if degraded.suite != suite or degraded.auc is None or degraded.threshold is None:
            continue
        sentence = (
            f"three quarters of the {degraded.stable_pairs:,} pairs with the same answer have an "
            f"RRS of at most {degraded.threshold:.3f}; it ranks a changed answer above an "
            f"unchanged one with probability {degraded.auc:.2f} (AUC; .50 is chance)"
        )
        yield "RRS and answers", sentence


def _facts(material: Material, suite: str) -> Iterator[blocks.KeyValue]:
    """Yield the key figures, then what was not measured and why."""
    for metric in METRICS:
        measured = material.now.get(metric.id, suite) if metric.is_key_figure else None
        if measured is not None and measured.value is not None:
            value = figures.figure(measured)
            interval = muted([" ", figure(f"({value.interval})")]) if value.bounds else []
            yield _named(metric.id), [figure(value.shown), *interval]
    metrics: dict[str, list[str]] = {}
    for measurement in material.now:
        if measurement.suite == suite and not measurement.where and measurement.value is None:
            why = figures.readable([measurement.note])[0]
            metrics.setdefault(why, []).append(measurement.metric)
    for why, names in metrics.items():
        yield _named(names[0]) if len(names) == 1 else _listed(names), why


def _listed(metrics: Sequence[str]) -> blocks.Inline:
    """Name metrics that one sentence is about by their ids."""
    separated = [part for metric in metrics for part in (", ", code(metric))]
    return ["not measured: ", *separated[1:]]


def _named(metric: str) -> blocks.Inline:
    return [figures.title(metric), *muted([" ", code(metric)])]


def causes(material: Material) -> Iterator[Section]:
    """Yield for each suite what is known of its causes; nothing for suites without any."""
    yield from of_suites(CAUSES, pair_suites(material.result), partial(_causes, material))


def _causes(material: Material, suite: str, position: int) -> Iterator[blocks.Block]:
    result = material.result
    attribution = next((f for f in result.attribution if f.suite == suite), None)
    sentences: list[blocks.Words | str] = [*_cause_of_the_failure(material, suite, attribution)]
    if attribution is not None and not attribution.crossed:
        attribution = None
    if attribution:
        whole, by_path = _attribution(attribution)
        sentences += [by_path] if sentences else [whole, by_path]
    if sentences:
        yield blocks.Text(lines=sentences, style=blocks.Style.LIST)
    if attribution:
        yield blocks.RangeChart(
            label=f"Changed answers by path{f' {position}' if position > 1 else ''}",
            caption="Changed answers beyond control prompts, by path, in points",
            rows=[_part(material, suite, part) for part in attribution.parts],
            head="path",
            interval=material.confidence_interval,
            facts=columns(numbers=["share"]),
            depth=blocks.Depth.FULL,
        )


def _cause_of_the_failure(
    material: Material, suite: str, attribution: Attribution | None
) -> Iterator[blocks.Words]:
    """Yield through which path the failure comes that is shown first, of its identity alone."""
    first_named = next(
        (
            finding
            for finding in parity.failing(material)
            if finding.rule.suite == suite and finding.outcome.about is Subject.ANSWERS
        ),
        None,
    )
    if attribution is None or first_named is None:
        return
    node, where, who = first_named.node, {}, "identities"
    if node.level is Level.IDENTITY:
        term = node.who[0][1]
        where, who = {"term": term}, material.person(suite, term)
    elif node.level is Level.CATEGORY:
        where, who = {"category": node.category}, node.category
    amounts = parts_in(material.run.tables[suite], where)
    total = sum(amounts.values())
    if not amounts or total <= 0:
        return
    first = max(amounts, key=lambda part: amounts[part])
    figures_ = [figures.signed(value, _METRIC) for value in (total, amounts[first])]
    how = _MOSTLY[first] if 2 * amounts[first] > total else _IN_PART[first]
    yield [
        "What changes for ", name(who, Tone.STRONG),
        f" beyond control prompts ({figures_[0]} points) comes {how} ({figures_[1]} points).",
    ]  # fmt: skip
    if not attribution.crossed and attribution.equal_documents == attribution.pairs:
        same = (
            f"All {attribution.pairs:,} pairs retrieve the same documents as the question without"
        )
        yield [f"{same} a speaker: no retrieval is at fault."]


def _attribution(attribution: Attribution) -> list[str]:
    total = figures.signed(attribution.total, _METRIC)
    largest = max(attribution.parts, key=lambda part: part.share or 0.0)
    amount = figures.signed(largest.amount, _METRIC)
    what = (
        f"identities change {total} points beyond what control prompts change; {amount} of them "
        f"come about {_PARTS[largest.name]}."
    )
    if any(part.share is None for part in attribution.parts):
        what = (
            f"what identities change beyond control prompts ({total} points) cannot be "
            "distinguished from 0, so it has no shares by path."
        )
    by_path = (
        f"By path: {figures.count(attribution.crossed, 'pair')} asked with each other's documents, "
        f"{attribution.equal_documents:,} of {attribution.pairs:,} pairs retrieve the same."
    )
    return [f"Compared with the answer without a speaker, {what}", by_path]


def _part(material: Material, suite: str, part: AttributedPart) -> blocks.Range:
    measured = material.now.get(f"attribution/{part.name}", suite)
    bounds: Bounds | None = measured.interval if measured else None
    share = figures.NONE
    if part.share is not None:
        share = f"{round(100 * part.share) + 0} %".replace("-", MINUS)
    return blocks.Range(
        name=_PARTS[part.name],
        now=Figure(
            shown=figures.signed(part.amount, _METRIC),
            interval=figures.signed_interval(bounds, _METRIC),
            value=part.amount,
            bounds=bounds,
        ),
        facts=[figure(share)],
    )


@dataclass(frozen=True, kw_only=True)
class BiasSuite:
    """A suite of question items with the levels of its dimensions, in the order of the plan."""

    material: Material
    id: str
    suffix: str
    """What tells this suite's tables from an earlier one's."""
    rows: Sequence[QuestionRow]
    settings: Sequence[str]
    categories: Sequence[str]

    def figure(self, metric: str, **where: str) -> Figure:
        """Return the figure of a metric in a slice."""
        return figures.figure(self.material.now.get(metric, self.id, where), is_signless=True)

    def pair(self, metrics: Sequence[str], **where: str) -> blocks.Inline:
        """Return two metrics of a slice: `ambiguous / disambiguated`."""
        return joined([figure(self.figure(metric, **where).shown) for metric in metrics], " / ")


def question_size(rows: Sequence[QuestionRow]) -> str:
    """Return `24 items of 6 templates, 96 questions asked`."""
    items = {row.assessed.unit.names["item"]: row.assessed.unit.cluster for row in rows}
    return (
        f"{figures.count(len(items), 'item')} of "
        f"{figures.count(len(set(items.values())), 'template')}, "
        f"{figures.count(len(rows), 'question')} asked"
    )


def social_bias(material: Material) -> Iterator[Section]:
    """Yield what every suite of question items measured."""
    yield from of_suites(BIAS, question_suites(material.result), partial(_bias, material))


def _bias(material: Material, id_: str, position: int) -> Iterator[blocks.Block]:
    rows = [row for row in material.questions if row.suite == id_]
    suite = BiasSuite(
        material=material,
        id=id_,
        suffix=f" {position}" if position > 1 else "",
        rows=rows,
        settings=list(dict.fromkeys(row.level("setting") for row in rows)),
        categories=list(dict.fromkeys(row.level("category") for row in rows)),
    )
    cautions = list(_cautions(suite))
    if cautions:
        yield blocks.Text(lines=cautions, style=blocks.Style.NOTE)
    scale = (
        "Diff-Bias × 100, ambiguous / disambiguated context: 0 is unbiased, 100 always the "
        "stereotype, −100 always against it."
    )
    yield blocks.Text(lines=[scale])
    yield blocks.Table(
        label=f"Diff-Bias of settings and categories{suite.suffix}",
        columns=columns("setting", numbers=map(name, suite.categories)),
        rows=[
            blocks.Row(
                cells=[
                    name(setting),
                    *(
                        suite.pair(CONDITIONS, setting=setting, category=category)
                        for category in suite.categories
                    ),
                ]
            )
            for setting in suite.settings
        ],
    )
    yield _totals(suite)


def _totals(suite: BiasSuite) -> blocks.Table:
    heads = (
        "Diff-Bias, ambiguous", "Diff-Bias, disambiguated", "change to none", "accuracy",
        "no option named",
    )  # fmt: skip
    rows = []
    for setting in suite.settings:
        biases = [suite.figure(metric, setting=setting) for metric in CONDITIONS]
        moves = [suite.figure(f"amplification/{metric}", setting=setting) for metric in CONDITIONS]
        cells: list[blocks.Inline] = [name(setting)]
        cells += [[figure(bias.shown), " ", figure(f"({bias.interval})")] for bias in biases]
        cells.append(joined([figure(figures.signed(m.value, AMBIGUOUS)) for m in moves], " / "))
        cells.append(suite.pair(_ACCURACIES, setting=setting))
        cells.append(figure(suite.figure(_LOST, setting=setting).shown))
        rows.append(blocks.Row(cells=cells))
    return blocks.Table(
        label=f"All categories together{suite.suffix}",
        caption=f"All categories together ({question_size(suite.rows)}); every value × 100",
        columns=columns("setting", numbers=heads),
        rows=rows,
    )


def _cautions(suite: BiasSuite) -> Iterator[blocks.Inline]:
    """Say where a system answers little better than a guess, and what was excluded."""
    first = NO_RETRIEVAL if NO_RETRIEVAL in suite.settings else suite.settings[0]
    clear = suite.figure(_ACCURACIES[1], setting=first)
    if clear.value is not None and clear.value < 0.5:
        low = clear.bounds[0] if clear.bounds else clear.value
        how = "no better than a guess" if low <= _CHANCE else "hardly better than a guess"
        right = f"Where the context gives the answer, {clear.shown} % of answers are right in the "
        shows = (
            f"; guessing gives 33.3 %. This system is {how} on these questions, so a Diff-Bias "
            "near 0 shows no fairness, and one far from 0 may come from the questions' form."
        )
        yield [f"{right}setting ", name(first), shows]
    lost = {setting: suite.figure(_LOST, setting=setting) for setting in suite.settings}
    worst = max(lost, key=lambda setting: lost[setting].value or 0.0)
    if (lost[worst].value or 0.0) > _MANY:
        left_out = (
            " name none of the three options. Unless the policy counts them as wrong, they are "
            "excluded from the other figures, which then rest on the questions that the system "
            "answered."
        )
        yield [f"{lost[worst].shown} % of the answers in the setting ", name(worst), left_out]
    excluded = sum(
        item.suite == suite.id for item in suite.material.result.gate_input.plan.rejected
    )
    if excluded:
        yield (
            f"{figures.count(excluded, 'item')} of the data set excluded: no single group is "
            "stereotyped, or a group of four is not whole; no figure counts them."
        )
