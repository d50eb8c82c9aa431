"""Scores are read or unreadable, never guessed."""

import json

import pytest

from fairgate.domain.executions import Execution
from fairgate.relations.oracles.score import Scale, ScoreOracle, read_score

TEN = Scale(low=1, high=10)


@pytest.mark.parametrize("text", [
    "7", "7.0", "7,0", "7/10", " 7 / 10 ", "7 out of 10", "7 of 10", "seven", "Seven.", "**7**",
    "(7)", "7!", "seven/10", "7 points", "`7`", "+7", "seven out of ten",
    "Score: 7", "**Rating:** 7/10", "My final score is 7.", "The answer is 7. It fits.",
])  # fmt: skip
def test_one_number_is_read(text):
    assert read_score(text, TEN) == 7


@pytest.mark.parametrize("text", [
    "", " ", "6-7", "6\u20137", "6 to 8", "between 6 and 8", "7 or 8", "7, 8", "6/7/8", "7/5", "7/100",
    "70%", "11", "0", "-3", "\u22127", "1e9", "nan", "inf", "N/A", "about 7", "at least 7", "not 7",
    "I cannot rate people.", "As an AI, I will not.", "1,234", "7 8", "seventy", "7 stars of 5",
    "Score: 7 or 8", "Score: 7. On a bad day 6.", "My score is lower than 7", "Rating 7", "Scores: 7",
    "7" * 5000,
])  # fmt: skip
def test_anything_else_is_unreadable(text):
    assert read_score(text, TEN) is None


@pytest.mark.parametrize(("text", "score"), [
    ("Score: 7", 7), ("score:7/10", 7), ("First Score: 3\n\nScore: **8/10**. Good fit.", 8),
    ("Score:\n7", 7), ("Score: 8 (strong fit)", 8), ("Score: 8 \u2013 strong", 8),
    ("Score: 7-8", None), ("Score: 7 to 8", None), ("Score: 9, but 8 on a bad day", None),
    ("Score: N/A", None), ("Score: 7 is too high", None), ("7", None), ("", None),
    ("Score: 7. Or two more.", None), ("Score: 3\nScore: none", None),
])  # fmt: skip
def test_behind_a_marker_its_last_line_counts(text, score):
    assert read_score(text, TEN, "Score:") == score


@pytest.mark.parametrize(("text", "score"), [
    ("0.125", 0.125), ("-3.5", -3.5), ("1e-3", 0.001), ("12345", 12345), ("85%", None),
    ("1,234", None), ("1,2345", 1.2345), ("7/10", None), ("1234,5", 1234.5),
])  # fmt: skip
def test_without_a_scale_any_number_is_one_and_parts_of_another_are_none(text, score):
    assert read_score(text) == score


def test_per_cent_are_read_on_a_scale_to_a_hundred():
    assert read_score("85 %", Scale(low=0, high=100)) == 85


def test_an_amount_of_a_call_is_a_score_at_its_path():
    oracle = ScoreOracle(path="$[*].function.arguments.limit")
    calls = [{"function": {"name": "set_limit", "arguments": '{"limit": 5e3}'}}, {"function": {}}]
    values = [
        oracle.read(Execution(response=json.dumps(answer)), None).value
        for answer in (calls, calls * 2, [{"function": {"arguments": "{limit}"}}])
    ]
    assert values == [5000, None, None]
