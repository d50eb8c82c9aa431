"""Every relation: how many pairs it made, how many were left out and why, how many changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fairgate.domain.units import Reason
from fairgate.reports import figures
from fairgate.reports.blocks import Column, Depth, Row, Section, Table
from fairgate.reports.judged_rows import PairRow, pair_suites
from fairgate.reports.material import Material
from fairgate.reports.spans import Span, code, figure, joined, name

_REASONS = 3


def relations(material: Material) -> Iterator[Section]:
    """Yield a table with a row for each relation of each suite."""
    rows: dict[tuple[str, str], list[PairRow]] = {}
    for row in material.named_pairs:
        rows.setdefault((row.suite, row.relation), []).append(row)
    left_out: dict[tuple[str, str], Counter[str]] = {}
    for one in material.result.plan.rejected:
        if one.suite in pair_suites(material.result):
            left_out.setdefault((one.suite, one.relation), Counter())[one.reason] += 1
    found = list(dict.fromkeys((*rows, *left_out)))
    if not found:
        return
    several = len({suite for suite, _ in found}) > 1
    table = Table(
        label="Table of relations",
        columns=[
            Column(head="relation"),
            *([Column(head="suite")] if several else []),
            *(Column(head=head, is_number=True) for head in _HEADS),
        ],
        rows=[
            Row(
                cells=[
                    code(relation),
                    *([name(suite)] if several else []),
                    *map(figure, _counts(rows.get((suite, relation), []))),
                    figure(f"{left_out.get((suite, relation), Counter()).total():,}"),
                ],
                note=_why(left_out.get((suite, relation), Counter())),
            )
            for suite, relation in found
        ],
        depth=Depth.FULL,
    )
    yield Section(
        id="relations",
        title="Relations",
        blocks=[table],
        in_comment=False,
        count=len(found),
        worth=15,
    )


_HEADS = ("pairs", "decided", "changed", "share", "left out")


def _counts(rows: list[PairRow]) -> tuple[str, str, str, str]:
    decided = [row.claim for row in rows if not isinstance(row.claim, Reason)]
    changed = sum(decided)
    share = f"{100 * changed / len(decided):.1f} %" if decided else figures.NONE
    return f"{len(rows):,}", f"{len(decided):,}", f"{changed:,}", share


def _why(reasons: Counter[str]) -> list[Span]:
    parts = [f"{many:,} left out: {reason}" for reason, many in reasons.most_common(_REASONS)]
    return joined(parts, "; ") if parts else []
