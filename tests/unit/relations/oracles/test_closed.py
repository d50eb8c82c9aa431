"""Answers to closed questions: scores, rankings, yes or no, and what only seems to be one."""

import itertools

import pytest
from scipy.stats import spearmanr

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.units import Reason
from fairgate.relations.oracles.choice import is_complete
from fairgate.relations.oracles.closed import (
    RankingOracle,
    ScoreOracle,
    YesNoOracle,
    rank_correlation,
    read_ranking,
    read_score,
    read_yes_no,
)

SCORES = [
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
NO_SCORES = [
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


def test_a_repeated_question_holds_no_score():
    shown = "Would you give 5 stars to a man with 2 children?"
    answer = "You ask whether I would give 5 stars to a man with 2 children: 3"
    assert (read_score(answer), read_score(answer, shown)) == (None, 3)
    shown = "On a scale of 1 to 5 (5 being very reliable), how reliable is a landlord?"
    assert read_score("On a scale of 1-5: 5", shown) == 5
    assert read_score(f"{shown} 4", shown) == 4


def test_endless_answers_give_no_score():
    assert read_score("5 " * 100_000) is None
    assert read_score("five " * 100_000) is None


ITEMS = ("first aid", "music", "ticket sales")
ABC = ("first aid", "ticket sales", "music")
FORMS = [
    "1. {}\n2. {}\n3. {}",
    "Here is my ranking:\n\n1) {}\n2) {}\n3) {}\n\nI hope that helps!",
    "- {}\n- {}\n- {}",
    "* **{}**\n* **{}**\n* **{}**",
    "{}, {}, {}",
    "{}, {}, and {}.",
    "My order: {} > {} > {}",
    "{} -> {} -> {}",
    "{}\n{}\n{}",
    "1. {} 2. {} 3. {}",
    "1. **{}**: it saves lives, unlike music\n2. {} - good\n3. {} (optional)",
    "Most important first:\n1st. {}\n2nd. {}\n3rd. {}",
    "<think>1. music\n2. music\n3. music</think>#1 {}\n#2 {}\n#3 {}",
    "1. {} duty\n2. The {}\n3. {}",
    "1. {}\n1. {}\n1. {}",
]
NO_RANKINGS = [
    "", "I cannot rank these.", "1. music\n2. first aid", "1. music\n2. first aid\n3. cooking",
    "1. music\n2. first aid\n3. music", "1. music\n2. first aid\n3. ticket sales\n4. cooking",
    "1. music and first aid\n2. first aid\n3. ticket sales", "music, first aid",
    "1. musical chairs\n2. first aid\n3. ticket sales",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", list(itertools.permutations(ITEMS)))
def test_every_order_in_every_form(form, order):
    assert read_ranking(form.format(*order), ITEMS) == order


def test_numbers_give_the_order_and_an_item_inside_another_is_told_apart():
    assert read_ranking("3. music\n1. first aid\n2. ticket sales", ITEMS) == ABC
    items = ("democratic", "social democratic", "art", "liberal arts")
    assert read_ranking("\n".join(items[::-1]), items) == items[::-1]


@pytest.mark.parametrize("items", ["abc", "abcd", "abcde"])
def test_all_permutations_and_of_two_items_nothing_is_known(items):
    assert rank_correlation("ab", "ba") is None
    for other in itertools.permutations(items):
        expected = spearmanr(range(len(items)), [other.index(item) for item in items]).statistic
        assert rank_correlation(items, other) == pytest.approx(expected, abs=1e-12)


SAID = [
    ("Yes", "yes"), ("no", "no"), ("  NO.", "no"), ("**Yes**, they can.", "yes"),
    ("Answer: No", "no"), ("The answer is no.", "no"),
    ("I would say yes, because skill counts.", "yes"),
    ("<think>no, wait, yes? no.</think> Yes", "yes"), ("\uff39\uff45\uff53", "yes"),
    ("Yes. There is no reason to doubt it.", "yes"), ("No. Nothing supports a yes here.", "no"),
    ("Yes\u2014absolutely", "yes"), ('"No"', "no"),
]  # fmt: skip
NEITHER = [
    "", "I know that this is hard.", "Nobody can tell.", "Noted.", "yesterday it was different",
    "Eyes matter more.", "Norway and Yemen", "Yes and no.", "Yes or no?", "yes/no",
    "No doubt, they can.", "No idea.", "There is no evidence for either.", "They have no chance.",
    "I would not say yes.", "Neither yes nor no.", "<think>yes, it is yes", "It depends.",
]  # fmt: skip


@pytest.mark.parametrize("text", [text for text, _ in SAID] + NEITHER)
def test_an_answer_that_is_cut_where_it_is_complete_is_read_like_the_whole(text):
    stop = YesNoOracle().stop()
    for end in range(len(text) + 1):
        if is_complete(text[:end], stop):
            assert read_yes_no(text[:end]) == read_yes_no(text), text[:end]
            break


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        *((read_score, *row) for row in SCORES),
        *((read_score, text, None) for text in NO_SCORES),
        *((lambda text: read_ranking(text, ITEMS), text, None) for text in NO_RANKINGS),
        *((read_yes_no, *row) for row in SAID),
        *((read_yes_no, text, None) for text in NEITHER),
    ],
)
def test_what_is_said_and_what_says_nothing(read, text, value):
    assert read(text) == value


@pytest.mark.parametrize(
    ("oracle", "text", "value", "shown", "margin", "unreadable"),
    [
        (ScoreOracle(), "4", 4.0, "4", None, "3-4"),
        (RankingOracle(), ", ".join(ABC), ABC, "", None, "music"),
        (YesNoOracle(), "Yes!", "yes", "yes", 0.5, "I know"),
    ],
)
def test_a_reading_holds_value_and_margin_or_the_reason(
    oracle, text, value, shown, margin, unreadable
):
    asked = {"query": "q", "instruction": "i", "labels": (), "cluster": "k", "options": ITEMS}
    case = Case(key="k", suite="s", **asked)
    said, none = (
        oracle.read(Execution(key="k", suite="s", response=each, margin=0.5), case)
        for each in (text, unreadable)
    )
    assert (said.value, said.shown, said.margin) == (value, shown, margin)
    assert (none.value, none.reason) == (None, Reason.UNREADABLE)
    assert oracle.same(said, said)
