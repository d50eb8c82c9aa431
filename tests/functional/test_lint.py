"""`fairgate lint` judges the pairs of a file."""

import pytest
from fakes.linter_pairs import labelled_pairs

GOOD = {
    "relation": "genfair/mr6-substitution-one",
    "source": "A Hispanic engineer sings.",
    "follow_up": "An Asian engineer sings.",
}
BAD = GOOD | {"follow_up": "A Asian engineer sings."}


def judged(workspace, *rows):
    workspace.write("pairs.jsonl", rows)
    return workspace.run("lint", "pairs.jsonl")


def test_rejected_pairs_are_told_with_line_and_reason(workspace):
    assert judged(workspace, GOOD, BAD) == 1
    assert "pairs.jsonl:2: the follow-up has 'A Asian'" in workspace.out
    assert "2 pairs: 1 accepted, 1 rejected" in workspace.out
    assert judged(workspace, GOOD) == 0


@pytest.mark.parametrize("relation", ["remove-one", "remove-all", "negate-one", "substitute-all"])
def test_an_attribute_that_the_source_does_not_say_cannot_be_edited(workspace, relation):
    plain = {"relation": relation, "source": "The shop opens at ten."}
    texts = ("The shop opens.", "The shop is Asian.", "The shop does not open at ten.")
    assert judged(workspace, *(plain | {"follow_up": text} for text in texts)) == 1
    assert "3 pairs: 0 accepted, 3 rejected" in workspace.out


def test_pairs_in_another_language_are_rejected(workspace):
    spanish = {"source": "Una ingeniera asiática canta.", "follow_up": "Una ingeniera canta."}
    kinds = ("negate-one", "remove-all")
    assert judged(workspace, *(spanish | {"relation": kind} for kind in kinds)) == 1
    assert "2 pairs: 0 accepted, 2 rejected" in workspace.out


def test_labels_measure_the_linter(workspace):
    rows = [
        {
            "relation": pair.kind.value, "source": pair.source, "follow_up": pair.follow_up,
            "valid": not pair.fault,
        }
        for pair in labelled_pairs()
    ]  # fmt: skip
    assert judged(workspace, *rows) == 0
    assert "(precision 1.000)" in workspace.out
    assert "(recall 0.995)" in workspace.out
    assert "broken, but accepted" in workspace.out


@pytest.mark.parametrize(("row", "message"), [
    (GOOD | {"relation": "removal"}, "pairs.jsonl:1: `relation` is 'removal'; expected `remove"),
    (GOOD | {"valid": "yes"}, "pairs.jsonl:1: `valid` is 'yes'; expected true or false"),
    ({"relation": "remove-one"}, "pairs.jsonl:1: 'source' holds None"),
])  # fmt: skip
def test_lines_that_are_no_pairs(workspace, row, message):
    assert judged(workspace, row) == 4
    assert message in workspace.err
