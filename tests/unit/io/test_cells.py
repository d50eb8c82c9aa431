"""Cells of tables that hold lists are parsed or refused, never guessed."""

import json

import pytest

from fairgate.domain.errors import DataError
from fairgate.io.tables import list_in_cell

TEXTS = ["The café is open.", "It's 5 o'clock | maybe", 'She said "no".', "[1] a note", "a\nb", "x"]
WRITTEN = {
    "json": json.dumps,
    "json in letters": lambda texts: json.dumps(texts, ensure_ascii=False),
    "json of many lines": lambda texts: json.dumps(texts, indent=1),
    "python": repr,
}
GUESSED = [
    "['a' 'b']",  # numpy
    "['a'\n 'b']",
    '["a" "b"]',
    "array(['a', 'b'], dtype=object)",
    "np.array(['a'])",
    "[array(['a'], dtype=object)]",
    "('a', 'b')",
    "{'a', 'b'}",
    '{"a": "b"}',
    "['a', 'b',]",
    "[a, b]",
    "['a', 'b'",
    "['a', ...]",
    "['a'] ['b']",
    "Index(['a', 'b'], dtype='object')",
    "deque(['a'])",
    "[b'a']+[]",
    "[Document(page_content='a')]",
    "['a', 'b'] # two",
]
TABLE = "| name | age |\n| --- | --- |\n| Ada | 80 |"


@pytest.mark.parametrize("form", WRITTEN)
@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1], []])
@pytest.mark.parametrize("between", ["", "|"])
def test_what_json_or_python_wrote_comes_back(form, texts, between):
    cell = f" {WRITTEN[form](texts)} "
    assert list_in_cell(cell, "t.csv:2", "contexts", between=between) == texts


@pytest.mark.parametrize("cell", GUESSED)
@pytest.mark.parametrize("between", ["", "|"])
def test_what_begins_like_a_list_and_is_none_is_refused_with_its_place(cell, between):
    with pytest.raises(DataError, match=r"^t.csv:2: column 'contexts' holds .*; expected a list"):
        list_in_cell(cell, "t.csv:2", "contexts", between=between)


@pytest.mark.parametrize("cell", ["", " ", "None", "nan", "NaN", "null", "<NA>"])
def test_an_empty_cell_is_none(cell):
    assert list_in_cell(cell, "t.csv:2", "contexts") is None


def test_a_text_is_parted_for_the_tool_that_writes_so_alone():
    assert list_in_cell(TABLE, "t.csv:2", "contexts") == TABLE
    assert list_in_cell("a|b", "t.csv:2", "contexts", between="|") == ["a", "b"]
