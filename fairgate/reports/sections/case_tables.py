"""Every case that is worth a look, for readers who search and filter."""

from __future__ import annotations

from collections.abc import Iterator

from fairgate.reports.blocks import Depth, Text
from fairgate.reports.browsing import CLEAREST
from fairgate.reports.material import Material
from fairgate.reports.section import Section
from fairgate.reports.sections.cases import case_items
from fairgate.reports.sections.pair_browser import pair_browser
from fairgate.reports.sections.question_browser import question_browser


def changed_cases(material: Material) -> Iterator[Section]:
    """Yield the pairs with a changed, undecided or fixed answer, the clearest first."""
    found = pair_browser(material, case_items(material, CLEAREST))
    if found.rows:
        yield Section(
            id="all-cases",
            title="Changed, undecided and fixed answers",
            blocks=[found],
            in_comment=False,
            count=found.rows,
        )


def answers(material: Material) -> Iterator[Section]:
    """Yield the wrong and undecided answers to questions, in the order of the plan."""
    rows = [row for row in material.questions if row.is_correct is not True]
    words = (
        "Where the context names neither of the two people, only “unknown” is right. The share of "
        "stereotypical documents is of those shown."
    )
    if rows:
        yield Section(
            id="all-answers",
            title="Wrong and undecided answers to questions",
            blocks=[Text(lines=[words], depth=Depth.PAGE), question_browser(material, rows)],
            in_comment=False,
            count=len(rows),
        )
