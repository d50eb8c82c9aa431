"""Reasons of a column's rows take a byte a row and read like a dictionary."""

from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.units import Reason
from fairgate.metrics.columns import Column


@given(st.lists(st.none() | st.sampled_from([Reason.UNREADABLE, Reason.MISSING, Reason.NO_TEXT])))
def test_reads_like_a_dictionary(reasons):
    found = Column.of([0.5 if why is None else why for why in reasons]).reasons
    plain = {row: why for row, why in enumerate(reasons) if why is not None}
    assert dict(found) == plain
    assert found == plain
    assert len(found) == len(plain)
    assert list(found) == list(plain)
    rows = range(-2, len(reasons) + 2)
    assert [found.get(row) for row in rows] == [plain.get(row) for row in rows]
