"""Which cases a page shows where not all of them fit into it."""

import itertools

import pytest

from fairgate.reports.sections import cases


def fitted(fixed, shared, own, many=20_000):
    """Fit rows of `own` bytes each, beside `fixed` ones and 100 shared texts of one size."""

    def data_of(rows):
        texts = min(100, len(rows))
        return {"x": "x" * (fixed + shared * texts // 100 + own * len(rows))}

    rows, data = cases.fitting(range(many), data_of, 0)
    assert data == data_of(rows)
    return len(rows), len(data["x"]) + len('{"x":""}')


@pytest.mark.parametrize("fixed", [0, 100_000, 700_000, 790_000, 799_000])
@pytest.mark.parametrize("own", [41, 100, 500])
def test_a_page_has_not_far_fewer_rows_than_fit_beside_a_fixed_part(fixed, own):
    rows, size = fitted(fixed, 0, own)
    room = (cases.MOST_BYTES - fixed) // own
    assert size <= cases.MOST_BYTES
    assert 0.8 * room - 1 <= rows <= room


@pytest.mark.parametrize("shared", [500_000, 700_000, 790_000])
def test_nor_beside_texts_that_most_rows_share(shared):
    rows, size = fitted(0, shared, 20)
    assert size <= cases.MOST_BYTES
    assert rows >= 0.7 * (cases.MOST_BYTES - shared) // 20


def test_a_case_that_alone_is_too_large_is_shown_alone_and_what_fits_is_whole():
    assert fitted(900_000, 0, 10)[0] == 1
    assert fitted(0, 0, 30) == (20_000, 600_008)


def test_a_sample_has_the_clearest_and_is_spread_evenly():
    found = cases.sample(range(100_000), 1000, 100_000)
    assert len(set(found)) == 1000
    assert list(found) == sorted(found)
    assert list(found[:250]) == list(range(250))
    steps = {b - a for a, b in itertools.pairwise(found[250:])}
    assert steps <= {133, 134}
    assert cases.sample(range(10), 10, 5) == range(10)
    assert [len(cases.sample(range(10), n, 5)) for n in range(1, 10)] == list(range(1, 10))
    assert cases.sample(range(100), 20, 2)[:4] == [0, 1, 2, 7]
    assert cases.sample(range(100), 20, 0) == list(range(0, 100, 5))
