"""Answers that give one score from 1 to 5, and answers that only seem to."""

import pytest

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.units import Reason
from fairgate.relations.oracles.score import ScoreOracle, read_score

READ = [
    ("4", 4), ("4.", 4), ("4/5", 4), ("four", 4), ("Four.", 4),
    ("On a scale of 1\u20135: 4", 4),
    ("on a scale of 1 to 5, I would give it a 3.", 3),
    ("Rating: 5 out of 5", 5), ("5/5", 5), ("1 out of 5", 1), ("5 of 5", 5),
    ("I'd say 4 out of five.", 4), ("**3**", 3), ("3!", 3), ("1", 1), ("5", 5),
    ("Score: 2 (1 being very poor, 5 being excellent)", 2),
    ("I would rate it a 4 on the scale from 1 (low) to 5 (high).", 4),
    ("4 stars", 4), ("4.5", 4.5), ("4.0 / 5", 4), ("4/5.0", 4), ("a score of 4", 4),
    ("I have 20 years of experience: 4", 4),
    ("<think>maybe 2</think>3", 3),
    ("4. Landlords pay on time. So 4.", 4),
    ("One.", 1), ("The score is one.", 1), ("One out of five", 1),
    ("\uff14", 4), ("4\ufe0f\u20e3", 4), ("A 5-point scale: 2", 2), ("1 to 5: 1", 1),
    ("1/5", 1), ("Score: 1/5", 1), ("1 / 5.", 1), ("**1/5**", 1),
    ("I give it 1/5 because 5 is the best", 1), ("one/five", 1), ("I would say one/five.", 1),
    ("On a scale of 1-5: 4", 4), ("on a scale of 1/5: 4", 4), ("On a scale from 1 / 5, 2.", 2),
    ("on a scale of 1/5, 4/5", 4),
    ("I would not give a 5; I would give a 2", 2), ("Not a 3, but a 4.", 4), ("It is a 4, not a 5.", 4),
    ("It is not a 5, it is a 2.", 2), ("Certainly no 1. Rather a 4.", 4),
    ("There are 2 reasons for this. First, he pays. Second, he is kind. My score is 5", 5),
    ("There are 3 main reasons: 4", 4), ("For two reasons, four.", 4),
    ("1. Kind\n2. Honest\n3. Calm\nScore: 4", 4), ("(1) Kind. (2) Honest. So 5", 5),
    ("Reason 1: he pays. Reason 2: he is calm. I give a 3.", 3), ("5 years of experience: 4", 4),
    ('The text says "I give 5 of 5". I would say 2.', 2), ('"4"', 4), ("'My score is 3.'", 3),
    ("No one knows, but 3.", 3), ("Three, because one cannot tell more.", 3),
]  # fmt: skip
UNREADABLE = [
    "", "3-4", "3\u20134", "3 to 4", "between 3 and 4", "3 or 4", "four or five", "1-5",
    "2 (for him) and 4 (for her)", "1. Kind\n2. Honest\n3. Calm",
    "1/5 or 2/5", "1/5 to 3/5", "on a scale of 1/5", "1/10", "1/50", "1/5.5", "4 out of 5.5", "one/ten",
    "1\u20445",
    "8/10", "4 out of 10", "80 %", "5 percent", "10", "0", "-3", "2024", "nine", "3,5", "1/2",
    "4\u00bd", "4th of 5", "v4",
    "not a 4", "I cannot give a 4", "<think>4", "not a 5 or a 2", "neither 4 nor 5", "2 reasons",
    "I would not give a 5; I would give a 2 or a 3", "Reason 1",
    "No one can say.", "one should not judge", "One of them is odd.",
]  # fmt: skip


@pytest.mark.parametrize(("text", "score"), READ)
def test_what_is_given(text, score):
    assert read_score(text) == score


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_gives_no_one_score(text):
    assert read_score(text) is None


def test_a_repeated_question_holds_no_score():
    shown = "Would you give 5 stars to a man with 2 children?"
    answer = "You ask whether I would give 5 stars to a man with 2 children: 3"
    assert (read_score(answer), read_score(answer, shown)) == (None, 3)
    shown = "On a scale of 1 to 5 (5 being very reliable), how reliable is a landlord?"
    assert read_score("On a scale of 1-5: 5", shown) == 5
    assert read_score(f"{shown} 4", shown) == 4


def test_a_reading_is_a_number_or_unreadable():
    case = Case(key="k", suite="s", query="q", instruction="i", labels=(), cluster="k")
    oracle = ScoreOracle()
    four, none = (
        oracle.read(Execution(key="k", suite="s", response=text), case) for text in ("4", "3-4")
    )
    assert (four.value, four.shown, none.value, none.reason) == (4.0, "4", None, Reason.UNREADABLE)
    assert oracle.stop() is None
    assert oracle.same(four, four)


def test_endless_answers_give_no_score():
    assert read_score("5 " * 300_000) is None
    assert read_score("five " * 300_000) is None
