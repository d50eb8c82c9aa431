"""What a session is tried out with says something about every token it is made of."""

from __future__ import annotations

from fairgate.onnx import trials
from fairgate.onnx.trials import trial_row

ROWS = [trials._PIECES_ROW, *trials._OTHERS, trials._ROW]


def test_rows_of_the_trials_have_all_tokens_and_no_period():
    for row in ROWS:
        assert len(row) == 75
        assert set(row) == set(range(11))
        for period in range(1, 60):
            assert row[period:] != row[:-period], period


def test_rows_of_a_batch_are_unlike():
    beside = [trials._PIECES_ROW, *trials._OTHERS]
    for place, row in enumerate(beside):
        for other in beside[:place]:
            assert sum(one == two for one, two in zip(row, other, strict=True)) < 20


def test_a_row_is_the_same_in_every_run():
    assert trial_row(1, 12) == [1, 9, 8, 2, 5, 4, 7, 8, 1, 0, 9, 4]
    assert trial_row(1, 75)[:12] == trial_row(1, 12)
