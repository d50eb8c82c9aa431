"""Levels read like the list of texts that they were made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgate.stats.observations import Levels, joined

TEXTS = st.lists(st.sampled_from(["", "a", "b\0", "B", "ä", "a b"]), max_size=40)


@given(TEXTS)
def test_they_read_like_the_list(texts: list[str]) -> None:
    levels = Levels.of(texts)
    assert list(levels) == texts
    assert [levels[row] for row in range(len(levels))] == texts
    assert list(levels[1:-1]) == texts[1:-1]
    first = [(text, texts.index(text)) for text in dict.fromkeys(texts)]
    assert list(levels.first_rows().items()) == first
    assert levels.equal("a").tolist() == [text == "a" for text in texts]
    assert levels.where(str.isupper).tolist() == [text.isupper() for text in texts]


@given(TEXTS, st.randoms(use_true_random=False))
def test_chosen_rows_keep_their_texts(texts: list[str], random: object) -> None:
    rows = [row for row in range(len(texts)) if random.random() < 0.5]  # type: ignore[attr-defined]
    chosen = Levels.of(texts).taken(np.asarray(rows, dtype=np.int64))
    expected = [texts[row] for row in rows]
    assert list(chosen) == expected
    assert list(chosen.first_rows()) == list(dict.fromkeys(expected))
    ordered = chosen.in_order()
    assert list(ordered) == expected
    assert list(ordered.names) == sorted(set(expected))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=40))
def test_two_dimensions_are_joined_row_by_row(pairs: list[tuple[str, str]]) -> None:
    left, right = (Levels.of([pair[place] for pair in pairs]) for place in (0, 1))
    assert list(joined(left, right, "/")) == ["/".join(pair) for pair in pairs]


@pytest.mark.parametrize(("texts", "size"), [(256, 1), (257, 2), (70_000, 4)])
def test_a_row_costs_as_many_bytes_as_its_number_needs(texts: int, size: int) -> None:
    levels = Levels.of(map(str, range(texts)))
    assert levels.codes.itemsize == size
    assert levels[texts - 1] == str(texts - 1)
