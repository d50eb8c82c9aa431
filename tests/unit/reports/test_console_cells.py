"""A cell that is cut keeps what stands behind a name; an outcome is said once."""

from fairgate.reports import blocks
from fairgate.reports.console import _cell, _cut


def test_only_the_name_of_a_cell_is_cut():
    row = blocks.Row(cells=[[blocks.Span("an elderly person of eighty"), " (all 4 phrases)"]])
    assert _cut(row, 0, 60) == "an elderly person of eighty (all 4 phrases)"
    assert _cut(row, 0, 32) == "an elderly pers… (all 4 phrases)"


def test_a_mark_is_drawn_where_no_word_says_the_outcome():
    mark = blocks.Span("fail", blocks.Kind.MARK)
    assert _cell([mark]) == "FAIL"
    assert _cell([mark, " ", "FAIL, waived"]) == "FAIL, waived"
