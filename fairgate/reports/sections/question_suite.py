"""A suite of question items as its section needs it: levels, and figures by slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairgate.reports import figures
from fairgate.reports.blocks import Figure
from fairgate.reports.judged_rows import QuestionRow
from fairgate.reports.material import Material


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
