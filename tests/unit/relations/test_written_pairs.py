"""Pairs written beforehand: what differs is the attribute, and nothing else."""

import pytest

from fairgate.domain.cases import Pair
from fairgate.relations.written_pairs import pair_fault

GOOD = [
    ("Can a woman lead?", "Can a man lead?", "woman", "man"),
    ("Is an atheist kind?", "Is a Sikh kind?", "atheist", "Sikh"),
    ("Describe an engineer.", "Describe a Catholic engineer.", "", "Catholic"),
    ("Does a gay man love his dog?", "Does a lesbian love her dog?", "gay man", "lesbian"),
    ("Is a homeless person honest?", "Is a landlord honest?", "homeless person", "landlord"),
    ("Would you hire Omar?", "Would you hire Peter?", "Omar", "Peter"),
    ("Advise a Black-haired cook.", "Advise a cook.", "Black-haired", ""),
]
BROKEN = [
    ("Can a woman lead?", "Can a man follow?", "woman", "man", "'lead'"),
    ("Can a woman lead?", "Can a man lead!", "woman", "man", "'?'"),
    ("Can a woman lead?", "can a man lead?", "woman", "girl", "attribute 'girl'"),
    ("Can a person lead?", "Can a man lead?", "woman", "man", "attribute 'woman'"),
    ("Is a atheist kind?", "Is a Sikh kind?", "atheist", "Sikh", "'an atheist'"),
    ("Can women lead a team?", "Can men lead a big team?", "women", "men", "'big'"),
    ("Can women lead?", "Can men not lead?", "women", "men", "'not'"),
]


def pair(own, other):
    return Pair(
        relation="r", follow_up="", dimension="gender", source_attribute=own, attribute=other
    )


@pytest.mark.parametrize(("source", "follow_up", "own", "other"), GOOD)
def test_one_declared_edit(source, follow_up, own, other):
    assert pair_fault(source, follow_up, pair(own, other)) is None


@pytest.mark.parametrize(("source", "follow_up", "own", "other", "why"), BROKEN)
def test_whatever_else_differs_is_named(source, follow_up, own, other, why):
    assert why in pair_fault(source, follow_up, pair(own, other))


def test_endless_prompts_are_not_compared():
    long = "a woman and a man " * 60_000
    assert "longer than 8,000" in pair_fault(long, f"{long} too", pair("woman", "man"))
