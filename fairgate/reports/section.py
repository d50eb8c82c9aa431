"""A section of a report: blocks that answer one question of a reader's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from fairgate.reports import spans
from fairgate.reports.blocks import Block
from fairgate.reports.spans import Inline


class Chapter(StrEnum):
    """A part of the page, in the order in which they stand."""

    SUMMARY = "Summary"
    WHO = "Who"
    CASES = "Cases"
    RETRIEVAL = "Retrieval"
    SOCIAL_BIAS = "Social bias"
    RELATIONS = "Relations"
    METHOD = "Method"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Blocks that answer one question of a reader's."""

    id: str
    """Unique in a report, kebab-case."""
    title: Inline
    blocks: Sequence[Block]
    in_comment: bool = True
    in_console: bool = False
    in_page: bool = True
    chapter: Chapter = Chapter.METHOD
    count: int | None = None
    """How many of what its chapter is about it holds; None: nothing to count."""
    worth: int = 0
    """Sections of little worth are dropped first where a report has a limit."""


def numbered(sections: Sequence[Section], suites: Sequence[str]) -> list[Section]:
    """Return sections of one kind, distinguished by their suite where there are several."""
    if len(sections) < 2:
        return list(sections)
    return [
        replace(
            section,
            id=f"{section.id}-{place}",
            title=[*spans.spans(section.title), " (suite ", spans.name(suite), ")"],
        )
        for place, (section, suite) in enumerate(zip(sections, suites, strict=True), start=1)
    ]


def of_suites(
    kind: Section, suites: Sequence[str], blocks: Callable[[str, int], Iterable[Block]]
) -> list[Section]:
    """Return a section of one kind for each suite with anything to say.

    `blocks` takes a suite and its place, from 1, among those that have any.
    """
    found: list[str] = []
    sections: list[Section] = []
    for suite in suites:
        built = list(blocks(suite, len(found) + 1))
        if built:
            found.append(suite)
            sections.append(replace(kind, blocks=built))
    return numbered(sections, found)
