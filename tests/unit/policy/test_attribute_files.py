"""Files of sensitive attributes: the bundled ones, and what is wrong with others."""

import pytest

from fairgate.domain.errors import DataError, PolicyError
from fairgate.policy.definition_files import bundled_dimensions, load_dimension, load_dimensions

TABLE_ONE = {
    "religion": 5, "occupation": 5, "language": 5, "ethnicity": 5, "political-views": 4,
    "social-status": 3, "marital-status": 4, "economic-conditions": 4,
}  # fmt: skip
GOOD = "id: size\nvalues:\n  - {value: tall, adjective: tall}\n  - {value: low, adjective: low}\n"


def test_the_embedded_attributes_are_those_of_the_paper_and_four_more():
    found = bundled_dimensions()
    assert {name: len(found[name].values) for name in TABLE_ONE} == TABLE_ONE
    assert set(found) - set(TABLE_ONE) == {"age", "gender", "experience", "family-status"}
    assert all(dimension.source for dimension in found.values())
    assert {name for name, each in found.items() if each.ordered} >= {"age", "experience"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id: size\nvalues:\n  - {value: tall, adjective: tall}\n", r"size.yaml:2:\d+: .*values"),
        (GOOD + "  - {value: tall, adjective: big}\n", r"size.yaml:5:\d+: 'tall' is listed twice"),
        (GOOD + "  - {value: odd}\n", r"size.yaml:5:\d+: 'odd' has no `adjective`"),
        (GOOD + "  - {value: x, clause: is x, opposite: y}\n", r":5:\d+: no value is called 'y'"),
        (GOOD + "  - {value: x, clause: is x, opposite: x}\n", r":5:\d+: 'x' is its own opposite"),
        (GOOD + "  - {value: x, clause: is x, pronoun: it}\n", r":5:\d+: pronoun: found 'it'"),
        (GOOD + "more: 1\n", r"size.yaml:5:\d+: .*more"),
        ("", "the file is empty"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_place(tmp_path, text, message):
    (tmp_path / "size.yaml").write_text(text)
    with pytest.raises(PolicyError, match=message):
        load_dimension("size.yaml", folder=tmp_path)


def test_files_of_ones_own_are_read_and_two_attributes_with_one_id_clash(tmp_path):
    (tmp_path / "size.yaml").write_text(GOOD)
    assert [v.id for v in load_dimension("size.yaml", folder=tmp_path).values] == ["tall", "low"]
    (tmp_path / "own.yaml").write_text(GOOD.replace("size", "age"))
    with pytest.raises(DataError, match="two attributes have the id 'age'"):
        load_dimensions(["age", "own.yaml"], folder=tmp_path)
