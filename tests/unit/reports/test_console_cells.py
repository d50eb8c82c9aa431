"""A cell that is cut keeps what stands behind a name, and the space before it."""

from fairgate.reports import blocks
from fairgate.reports.console import _cut


def test_only_the_name_of_a_cell_is_cut():
    row = blocks.Row(cells=[[blocks.Span("an elderly person of eighty"), " (all 4 phrases)"]])
    assert _cut(row, 0, 60) == "an elderly person of eighty (all 4 phrases)"
    assert _cut(row, 0, 32) == "an elderly pers… (all 4 phrases)"
