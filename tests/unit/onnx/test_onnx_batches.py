from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairgate.onnx.batches import batches_by_width, padded_width

lengths = st.lists(st.integers(min_value=1, max_value=600), max_size=60)


@given(st.integers(min_value=1, max_value=5000))
def test_a_width_holds_its_row_and_wastes_little(length):
    width = padded_width(length)
    assert length <= width < length + max(8, length / 8)
    assert width % 8 == 0


def test_an_empty_row_has_no_width():
    assert padded_width(0) == 0


@given(lengths, st.integers(min_value=1, max_value=9), st.booleans())
def test_every_row_is_in_one_batch_whose_width_is_its_own(rows, size, exact):
    seen = []
    width_of = (lambda length: length) if exact else padded_width
    for width, places in batches_by_width(rows, size, width_of):
        assert 1 <= len(places) <= size
        for place in places:
            assert width == width_of(rows[place])
        seen += places
    assert sorted(seen) == list(range(len(rows)))


def test_narrow_rows_come_first_and_ties_keep_their_order():
    assert list(batches_by_width([20, 3, 17, 5], 2)) == [(8, [1, 3]), (24, [0, 2])]
