"""Words within sentences: as numbers for comparing, and as both sides of a difference."""

import numpy as np
import pytest

from fairgate.relations.sentences.differing import Differing, bare, changed, differing, pairs
from fairgate.relations.sentences.splitting import words
from fairgate.relations.sentences.tokens import tokens


def denied(text):
    return tokens([words(text)]).denied.tolist()


def stated(text):
    return set(tokens([words(text)]).held.tolist())


@pytest.mark.parametrize(
    ("denying", "plain"),
    [
        ("You are not eligible.", "You are eligible."),
        ("You aren't eligible.", "You are eligible."),
        ("You can\u2019t go.", "You can go."),
        ("You cannot go.", "You can go."),
        ("You do not go.", "You go."),
        ("No puede cambiarla.", "Puede cambiarla."),
        ("Sie haben keinen Anspruch.", "Sie haben einen Anspruch."),
        ("Das ist nicht möglich.", "Das ist möglich."),
    ],
)
def test_a_denial_stands_between_words_that_others_say_without_it(denying, plain):
    assert set(denied(denying)) & stated(plain)
    assert not denied(plain)


def test_numbers_in_words_are_numbers_and_an_answer_without_words_holds_nothing():
    assert stated("It takes three days.") == stated("It takes 3 days.")
    assert not len(tokens([]).held)
    assert not len(tokens([[]]).held)
    assert np.array_equal(tokens([["a"], ["b", "c"]]).sentences, [1, 2, 2, 1, 2, 2])


def test_the_words_that_differ_are_shown_with_their_neighbours_on_both_sides():
    usual = ["Open it.", "It takes 46 minutes in all."]
    known = {each for s in usual for each in (*bare(s), *pairs(bare(s)))}

    def new(text):
        return {*bare(text), *pairs(bare(text))} - known

    number = "It takes 45 minutes in all."
    assert differing([number], usual, new(number)) == Differing(
        "takes 45 minutes", "takes 46 minutes", number
    )
    clause = "It takes 46 minutes in all, if you can pay."
    found = differing([clause], usual, new(clause))
    assert found is not None
    assert (found.own, found.other) == ("if you can pay.", "")
    assert differing(usual, usual, new(usual[0])) is None
    parts = list(changed(number, usual[1]))
    assert parts == [("It takes", False), ("45", True), ("minutes in all.", False)]
