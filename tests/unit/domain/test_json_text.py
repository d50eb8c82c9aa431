"""JSON texts of strangers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.json_text import MOST_LEVELS, JsonError, read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=60,
)  # fmt: skip


@given(VALUES, st.booleans())
def test_what_python_writes_is_read_as_it_was(value, escaped):
    assert read_json(json.dumps(value, ensure_ascii=escaped)) == value
    assert read_json(json.dumps(value, ensure_ascii=escaped).encode()) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "a": 1}', "the key 'a' occurs twice"),
        ('[{"b": {"\\u0061": 1, "a": 2}}]', "the key 'a' occurs twice"),
        ('{"\\u001b[2J": 1, "\\u001b[2J": 2}', r"the key '\\x1b\[2J' occurs twice"),
        ("NaN", "NaN is no number"),
        ("[-Infinity]", "-Infinity is no number"),
        ("1e999", "1e999 is beyond the range"),
        ("9" * 5000, "a number of 5000 digits"),
        ("9" * 301, "a number of 301 digits"),
        ("[" * 100_000, "nested deeper than 40"),
        ("[" * 200 + "]" * 200, "nested deeper than 40"),
        ('{"a":' * 60 + "1" + "}" * 60, "nested deeper than 40"),
        ('"\\ud800"', r"half a surrogate pair, which is not text, in '\\ud800'"),
        ('{"\\uDFFF": 1}', "half a surrogate pair"),
        ('["\ud800"]', "half a surrogate pair"),
        (b'"\xff"', "byte 1 is not UTF-8"),
        (b"\xff\xfe[\x00]\x00", "byte 0 is not UTF-8"),
        ("", "broken JSON"),
        ('{"a": 1}{"a": 1}', "broken JSON"),
    ],
)
def test_what_could_be_misread_is_refused(text, reason):
    with pytest.raises(JsonError, match=reason):
        read_json(text)


def test_a_pair_of_surrogates_is_a_character_and_depth_has_an_exact_limit():
    assert read_json('"\\ud83d\\ude00"') == "😀"
    assert read_json(b"\xef\xbb\xbf[]") == []
    assert read_json("[" * MOST_LEVELS + "]" * MOST_LEVELS)
    with pytest.raises(JsonError):
        read_json("[" * (MOST_LEVELS + 1) + "]" * (MOST_LEVELS + 1))


def test_numbers_that_are_none_are_read_where_the_caller_judges_them():
    read = read_json('[Infinity, 1e999, "\\ud800"]', strict=False)
    assert read == [float("inf"), float("inf"), "\ud800"]
