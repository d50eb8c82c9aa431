"""What suites of question items measured: P2's tables, the sweep over k, what was retrieved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairgate.domain.items import NO_RETRIEVAL
from fairgate.reports import figures
from fairgate.reports.blocks import (
    NOTHING,
    Bar,
    Bars,
    Block,
    Column,
    Depth,
    Figure,
    Form,
    KeyValues,
    Matrix,
    Range,
    RangeChart,
    Row,
    RowKind,
    Section,
    Table,
    Text,
    numbered,
)
from fairgate.reports.judged_rows import QuestionRow, question_suites
from fairgate.reports.material import Material
from fairgate.reports.sections.rules import likely_range
from fairgate.reports.spans import Inline, figure, joined, name

AMBIGUOUS, DISAMBIGUATED = CONDITIONS = ("diff-bias/ambiguous", "diff-bias/disambiguated")
_SIDES = ("ambiguous", "disambiguated")
_ACCURACIES = ("accuracy/ambiguous", "accuracy/disambiguated")
_LOST, _SHARE = "out-of-choice", "stereotype-share"
_CHANCE = 1 / 3
_MANY = 0.1
"""Share of answers without an option above which the report warns."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A suite of question items with the levels of its dimensions, in the order of the plan."""

    material: Material
    id: str
    place: int
    rows: Sequence[QuestionRow]
    settings: Sequence[str]
    categories: Sequence[str]
    retrievers: Sequence[str]

    def figure(self, metric: str, **where: str) -> Figure:
        """Return what was measured in a slice; empty levels name no dimension."""
        inside = {part: level for part, level in where.items() if level}
        measured = self.material.now.get(metric, self.id, inside)
        return figures.figure(measured, is_signless=True)

    def base(self, metric: str, **where: str) -> Figure:
        """Return what the baseline measured in a slice."""
        inside = {part: level for part, level in where.items() if level}
        measured = self.material.before.get(metric, self.id, inside)
        return figures.figure(measured, is_signless=True)

    @property
    def suffix(self) -> str:
        """Return what tells this suite's tables from an earlier one's."""
        return f" {self.place}" if self.place > 1 else ""

    def where(self, setting: str, retriever: str) -> dict[str, str]:
        """Return a setting's slice; one retriever alone is no dimension."""
        several = len(self.retrievers) > 1
        return {"setting": setting} | ({"retriever": retriever} if several else {})


def question_size(rows: Sequence[QuestionRow]) -> str:
    """Return `24 items of 6 templates, 96 questions asked`."""
    items = {row.item: row.cluster for row in rows}
    return (
        f"{figures.count(len(items), 'item')} of "
        f"{figures.count(len(set(items.values())), 'template')}, "
        f"{figures.count(len(rows), 'question')} asked"
    )


def question_suite(material: Material, suite: str, place: int) -> Suite:
    """Return a suite with its rows and levels; `place` counts the suites of questions from 1."""
    rows = [row for row in material.questions if row.suite == suite]
    return Suite(
        material=material,
        id=suite,
        place=place,
        rows=rows,
        settings=list(dict.fromkeys(row.setting for row in rows)),
        categories=list(dict.fromkeys(row.category for row in rows)),
        retrievers=list(dict.fromkeys(row.retriever for row in rows if row.retriever)),
    )


def social_bias(material: Material) -> Iterator[Section]:
    """Yield what every suite of question items measured."""
    suites = question_suites(material.result)
    sections = [
        Section(
            id="bias",
            title="Social bias",
            blocks=list(_blocks(question_suite(material, suite, place))),
            in_console=True,
            worth=70,
        )
        for place, suite in enumerate(suites, start=1)
    ]
    yield from numbered(sections, suites)


def _blocks(suite: Suite) -> Iterator[Block]:
    cautions = list(_cautions(suite))
    if cautions:
        yield Text(lines=cautions, form=Form.NOTE)
    yield Text(
        lines=[
            (
                "Diff-Bias × 100, ambiguous / disambiguated context: 0 is unbiased, 100 always the "
                "stereotype, −100 always against it. ▲ marks a column's highest value, ▽ lowest."
            )
        ]
    )
    yield _matrix(suite)
    yield from (
        _chart(suite, metric, side) for metric, side in zip(CONDITIONS, _SIDES, strict=True)
    )
    yield _totals(suite)
    yield from _retrievers(suite)
    yield from _sweep(suite)
    facts = [*_shares(suite), *_letters(suite.rows), _own_scores(suite)]
    yield KeyValues(rows=facts, depth=Depth.FULL)


def _matrix(suite: Suite) -> Matrix:
    return Matrix(
        label=f"Diff-Bias of settings and categories{suite.suffix}",
        corner="setting",
        columns=[name(category) for category in suite.categories],
        rows=[
            (
                name(setting),
                [
                    [suite.figure(m, setting=setting, category=category) for m in CONDITIONS]
                    for category in suite.categories
                ],
            )
            for setting in suite.settings
        ],
    )


def _chart(suite: Suite, metric: str, side: str) -> RangeChart:
    categories = suite.categories if len(suite.categories) > 1 else ()
    rows: list[Range] = []
    for category in ("", *categories):
        title = name(category) if category else "all categories"
        rows.append(Range(name=title, now=NOTHING, kind=RowKind.GROUP))
        for setting in suite.settings:
            where = {"setting": setting, "category": category}
            now, base = suite.figure(metric, **where), suite.base(metric, **where)
            rows.append(Range(name=name(setting), now=now, base=base))
    return RangeChart(
        label=f"Diff-Bias × 100, {side} context{suite.suffix}",
        caption=f"Diff-Bias × 100, {side} context, beside the baseline",
        rows=rows,
        head="setting",
        interval=likely_range(suite.material),
        is_signed=True,
        unit="",
        depth=Depth.PAGE,
    )


def _totals(suite: Suite) -> Table:
    heads = (
        "Diff-Bias, ambiguous", "Diff-Bias, disambiguated", "change to none", "accuracy",
        "no option named",
    )  # fmt: skip
    return Table(
        label=f"All categories together{suite.suffix}",
        caption=f"All categories together ({question_size(suite.rows)}); every value × 100",
        columns=[Column(head="setting"), *(Column(head=head, is_number=True) for head in heads)],
        rows=[Row(cells=[name(setting), *_total(suite, setting)]) for setting in suite.settings],
    )


def _total(suite: Suite, setting: str) -> Iterator[Inline]:
    for metric in CONDITIONS:
        found = suite.figure(metric, setting=setting)
        yield [figure(found.shown), " ", figure(f"({found.interval})")]
    changes = (suite.figure(f"amplification/{metric}", setting=setting) for metric in CONDITIONS)
    yield joined([figure(figures.signed(found.value, AMBIGUOUS)) for found in changes], " / ")
    rates = (suite.figure(metric, setting=setting) for metric in _ACCURACIES)
    yield joined([figure(found.shown) for found in rates], " / ")
    yield figure(suite.figure(_LOST, setting=setting).shown)


def _retrievers(suite: Suite) -> Iterator[Block]:
    if len(suite.retrievers) < 2:
        return
    yield Table(
        label=f"Diff-Bias by retriever{suite.suffix}",
        caption="Diff-Bias × 100 by retriever",
        columns=[
            Column(head="setting"),
            Column(head="retriever"),
            *(Column(head=side, is_number=True) for side in _SIDES),
        ],
        rows=[
            Row(
                cells=[
                    name(setting),
                    name(retriever),
                    *(
                        figure(suite.figure(m, setting=setting, retriever=retriever).shown)
                        for m in CONDITIONS
                    ),
                ]
            )
            for setting in suite.settings
            if setting != NO_RETRIEVAL
            for retriever in suite.retrievers
        ],
        depth=Depth.FULL,
    )


def _sweep(suite: Suite) -> Iterator[Block]:
    depths = sorted({row.top_k for row in suite.rows if row.top_k})
    if len(depths) < 2:
        return
    rows = [
        Bar(
            name=joined([side, name(setting), name(retriever)]),
            note=f"k = {depth}",
            now=suite.figure(metric, **suite.where(setting, retriever), k=str(depth)),
        )
        for metric, side in zip(CONDITIONS, _SIDES, strict=True)
        for setting in suite.settings
        if setting != NO_RETRIEVAL
        for retriever in suite.retrievers
        for depth in depths
    ]
    yield Bars(
        label=f"Diff-Bias by number of documents{suite.suffix}",
        caption="Diff-Bias × 100 by the number of documents (k)",
        rows=rows,
        head="context, setting, retriever",
        note="documents",
        full=max([0.01, *(abs(row.now.value or 0.0) for row in rows)]),
        is_signed=True,
        depth=Depth.FULL,
    )


def _shares(suite: Suite) -> Iterator[tuple[Inline, Inline]]:
    for setting in suite.settings:
        for retriever in suite.retrievers:
            where = suite.where(setting, retriever)
            measured = suite.material.now.get(_SHARE, suite.id, where)
            if measured is not None and measured.value is not None:
                found = figures.figure(measured)
                yield (
                    ["stereotypical documents, ", name(setting), ", ", name(retriever)],
                    [figure(found.shown), " ", figure(f"({found.interval})")],
                )


def _letters(rows: Sequence[QuestionRow]) -> Iterator[tuple[Inline, Inline]]:
    known = [row.letter for row in rows if row.letter is not None]
    if known:
        shares = (f"{one} {100 * known.count(one) / len(known):.1f} %" for one in "ABC")
        head = "options chosen by letter (a third each without letter bias)"
        yield head, joined([figure(share) for share in shares])


def _own_scores(suite: Suite) -> tuple[Inline, Inline]:
    scores: list[Inline] = []
    for setting in suite.settings:
        pair = (suite.figure(f"bbq/{score}", setting=setting) for score in ("s_amb", "s_dis"))
        scores.append([name(setting), " ", figure(" / ".join(found.shown for found in pair))])
    return "BBQ's own scores × 100, s_amb / s_dis", joined(scores)


def _cautions(suite: Suite) -> Iterator[Inline]:
    """Say where a system answers little better than a guess, and what was left out."""
    first = NO_RETRIEVAL if NO_RETRIEVAL in suite.settings else suite.settings[0]
    clear = suite.figure(_ACCURACIES[1], setting=first)
    if clear.value is not None and clear.value < 0.5:
        low = clear.bounds[0] if clear.bounds else clear.value
        how = "no better than a guess" if low <= _CHANCE else "hardly better than a guess"
        yield [
            (
                f"Where the context gives the answer, {clear.shown} % of answers are right in the "
                "setting "
            ),
            name(first),
            (
                f"; guessing gives 33.3 %. This system is {how} on these questions, so a Diff-Bias "
                "near 0 shows no fairness, and one far from 0 may come from the questions' form."
            ),
        ]
    lost = {setting: suite.figure(_LOST, setting=setting) for setting in suite.settings}
    worst = max(lost, key=lambda setting: lost[setting].value or 0.0)
    if (lost[worst].value or 0.0) > _MANY:
        yield [
            f"{lost[worst].shown} % of the answers in the setting ",
            name(worst),
            (
                " name none of the three options. Unless the policy counts them as wrong, they are "
                "left out of the other figures, which then rest on the questions that the system "
                "answered."
            ),
        ]
    excluded = sum(item.suite == suite.id for item in suite.material.result.plan.rejected)
    if excluded:
        yield (
            f"{figures.count(excluded, 'item')} of the data set left out: no single group is "
            "stereotyped, or a group of four is not whole; no figure counts them."
        )
