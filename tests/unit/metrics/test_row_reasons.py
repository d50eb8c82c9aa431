"""Reasons of a column's rows take a byte a row and read like a dictionary."""

from hypothesis import given
from hypothesis import strategies as st

from fairgate.metrics.metric import RowReasons


@given(st.lists(st.none() | st.sampled_from(["unreadable", "missing", "no-text"])))
def test_reads_like_a_dictionary(reasons):
    found = RowReasons(reasons)
    plain = {row: why for row, why in enumerate(reasons) if why is not None}
    assert dict(found) == plain
    assert found == plain
    assert len(found) == len(plain)
    assert list(found) == list(plain)
    rows = range(-2, len(reasons) + 2)
    assert [found.get(row) for row in rows] == [plain.get(row) for row in rows]
