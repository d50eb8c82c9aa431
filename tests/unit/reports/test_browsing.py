"""Which cases a page shows where not all of them fit into it."""

import itertools

import pytest

from fairgate.reports import browsing


def fitted(fixed, shared, own, many=20_000):
    """Fit rows of `own` bytes each, beside `fixed` ones and 100 shared texts of one size."""
    calls = []

    def data_of(rows):
        calls.append(len(rows))
        texts = min(100, len(rows))
        return {"x": "x" * (fixed + shared * texts // 100 + own * len(rows))}

    rows, data = browsing.fitting(range(many), data_of, 0)
    assert len(data["x"]) == len(data_of(rows)["x"])
    return len(rows), len(data["x"]) + len('{"x":""}'), calls[:-1]


class TestFitting:
    """How many rows a page has room for: found with few attempts, and not far below what fits."""

    @pytest.mark.parametrize("fixed", [0, 100_000, 700_000, 790_000, 799_000])
    @pytest.mark.parametrize("own", [41, 100, 500])
    def test_rows_that_differ_beside_a_fixed_part_take_three_attempts(self, fixed, own):
        rows, size, calls = fitted(fixed, 0, own)
        room = (browsing.MOST_BYTES - fixed) // own
        assert size <= browsing.MOST_BYTES
        assert len(calls) <= 3
        assert 0.8 * room - 1 <= rows <= room

    @pytest.mark.parametrize("shared", [500_000, 700_000, 790_000])
    def test_texts_that_most_rows_share_take_one_attempt_more(self, shared):
        rows, size, calls = fitted(0, shared, 20)
        assert size <= browsing.MOST_BYTES
        assert len(calls) <= 4
        assert rows >= 0.7 * (browsing.MOST_BYTES - shared) // 20

    def test_shared_texts_that_do_not_fit_end_after_few_attempts(self):
        rows, size, calls = fitted(0, 2_000_000, 20)
        assert 1 < rows <= 40
        assert size <= browsing.MOST_BYTES
        assert len(calls) <= 9

    def test_a_case_that_alone_is_too_large_is_shown_alone(self):
        assert fitted(900_000, 0, 10)[0] == 1
        assert len(fitted(900_000, 0, 10)[2]) == 2

    def test_what_fits_is_made_once(self):
        assert fitted(0, 0, 30) == (20_000, 600_008, [20_000])


def test_a_sample_has_the_clearest_and_is_spread_evenly():
    found = browsing.sample(range(100_000), 1000, 100_000)
    assert len(set(found)) == 1000
    assert list(found) == sorted(found)
    assert list(found[:250]) == list(range(250))
    steps = {b - a for a, b in itertools.pairwise(found[250:])}
    assert steps <= {133, 134}
    assert browsing.sample(range(10), 10, 5) == range(10)
    assert [len(browsing.sample(range(10), n, 5)) for n in range(1, 10)] == list(range(1, 10))
    assert browsing.sample(range(100), 20, 2)[:4] == [0, 1, 2, 7]
    assert browsing.sample(range(100), 20, 0) == list(range(0, 100, 5))
