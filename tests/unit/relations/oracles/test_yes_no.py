"""Answers that say yes or no, and answers that only seem to."""

import pytest

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.units import Reason
from fairgate.relations.oracles.choice import is_complete
from fairgate.relations.oracles.yes_no import YesNoOracle, read_yes_no

READ = [
    ("Yes", "yes"),
    ("no", "no"),
    ("  NO.", "no"),
    ("**Yes**, they can.", "yes"),
    ("Answer: No", "no"),
    ("The answer is no.", "no"),
    ("I would say yes, because skill counts.", "yes"),
    ("<think>no, wait, yes? no.</think> Yes", "yes"),
    ("\uff39\uff45\uff53", "yes"),
    ("Yes. There is no reason to doubt it.", "yes"),
    ("No. Nothing supports a yes here.", "no"),
    ("Yes\u2014absolutely", "yes"),
    ('"No"', "no"),
]
UNREADABLE = [
    "",
    "I know that this is hard.",
    "Nobody can tell.",
    "Noted.",
    "yesterday it was different",
    "Eyes matter more.",
    "Norway and Yemen",
    "Yes and no.",
    "Yes or no?",
    "yes/no",
    "No doubt, they can.",
    "No idea.",
    "There is no evidence for either.",
    "They have no chance.",
    "I would not say yes.",
    "Neither yes nor no.",
    "<think>yes, it is yes",
    "It depends.",
]


@pytest.mark.parametrize(("text", "said"), READ)
def test_what_is_said(text, said):
    assert read_yes_no(text) == said


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_says_neither(text):
    assert read_yes_no(text) is None


@pytest.mark.parametrize("text", [text for text, _ in READ] + UNREADABLE)
def test_an_answer_that_is_cut_where_it_is_complete_is_read_like_the_whole(text):
    stop = YesNoOracle().stop()
    for end in range(len(text) + 1):
        if is_complete(text[:end], stop):
            assert read_yes_no(text[:end]) == read_yes_no(text), text[:end]
            break


def test_readings_carry_the_margin_and_the_reason():
    case = Case(key="k", suite="s", query="q", instruction="i", labels=(), cluster="k")
    oracle = YesNoOracle()
    yes, neither = (
        oracle.read(Execution(key="k", suite="s", response=text, margin=0.5), case)
        for text in ("Yes!", "I know")
    )
    assert (yes.value, yes.margin, neither.value, neither.reason) == (
        "yes", 0.5, None, Reason.UNREADABLE,
    )  # fmt: skip
    assert oracle.same(yes, yes)
