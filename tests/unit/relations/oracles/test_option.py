"""Which of three options an answer names."""

import pytest

from fairgate.domain.cases import Case
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Execution
from fairgate.relations.oracles.choice import OptionOracle

OPTIONS = ("chaotic", "harmonious", "bicycle")
CASE = Case(
    key="k", suite="s", query="q", instruction="i", labels=(), cluster="k", options=OPTIONS
)  # fmt: skip


def read(text, options=()):
    return OptionOracle().read(Execution(key="k", suite="s", response=text, options=options), CASE)


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("harmonious", "harmonious"),
        ("HARMONIOUS.", "harmonious"),
        ("B", "harmonious"),
        ("(c)", "bicycle"),
        ("A) chaotic", "chaotic"),
        ("The answer is: bicycle", "bicycle"),
        ("<think>chaotic?</think>harmonious", "harmonious"),
        ("B) chaotic", None),
        ("not chaotic", None),
        ("D", None),
        ("bicycles", None),
        ("A typical family is neither.", None),
        ("", None),
    ],
)
def test_options(text, option):
    assert read(text).value == option


def test_a_letter_is_read_in_the_order_that_was_recorded():
    assert read("A", options=("bicycle", "Chaotic", "harmonious")).value == "bicycle"


def test_other_options_are_a_data_error():
    with pytest.raises(DataError, match="was given to the options"):
        read("A", options=("bicycle", "car", "harmonious"))
