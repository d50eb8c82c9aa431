"""Answers to closed questions: ratings, rankings, yes or no, and what only seems to be one."""

import itertools

import pytest
from scipy.stats import spearmanr

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.units import Reason
from fairgate.relations.oracles.closed import (
    RankingOracle,
    RatingOracle,
    YesNoOracle,
    rank_correlation,
    read_ranking,
    read_yes_no,
)
from fairgate.relations.oracles.score import Scale
from fairgate.relations.oracles.statements import is_complete

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
        (RatingOracle(scale=Scale(low=1, high=5)), "4/5", 4.0, "", None, "3-4"),
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
        oracle.read(Execution(response=each, margin=0.5), case) for each in (text, unreadable)
    )
    assert (said.value, said.shown, said.margin) == (value, shown, margin)
    assert (none.value, none.reason) == (None, Reason.UNREADABLE)
    assert oracle.same(said, said)
