"""In which order an answer puts given items."""

import itertools

import pytest

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.relations.oracles.ranking import RankingOracle, read_ranking

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
UNREADABLE = [
    "",
    "I cannot rank these.",
    "1. music\n2. first aid",
    "1. music\n2. first aid\n3. cooking",
    "1. music\n2. first aid\n3. music",
    "1. music\n2. first aid\n3. ticket sales\n4. cooking",
    "1. music and first aid\n2. first aid\n3. ticket sales",
    "music, first aid",
    "1. musical chairs\n2. first aid\n3. ticket sales",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", list(itertools.permutations(ITEMS)))
def test_every_order_in_every_form(form, order):
    assert read_ranking(form.format(*order), ITEMS) == order


def test_numbers_give_the_order_where_they_are_all_there():
    assert read_ranking("3. music\n1. first aid\n2. ticket sales", ITEMS) == ABC


def test_an_item_inside_another_is_told_apart():
    items = ("democratic", "social democratic", "art", "liberal arts")
    assert read_ranking("\n".join(items[::-1]), items) == items[::-1]


@pytest.mark.parametrize("text", UNREADABLE)
def test_missing_repeated_and_invented_items(text):
    assert read_ranking(text, ITEMS) is None


def test_readings_hold_the_items_in_order():
    case = Case(
        key="k", suite="s", query="q", instruction="i", labels=(), cluster="k", options=ITEMS
    )  # fmt: skip
    oracle = RankingOracle()
    found = oracle.read(Execution(key="k", suite="s", response=", ".join(ABC)), case)
    assert found.value == ABC
    assert oracle.same(found, found)
    assert oracle.read(Execution(key="k", suite="s", response="music"), case).value is None
