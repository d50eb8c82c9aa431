"""Cells of tables that hold lists are parsed or refused, never guessed; damaged text is told."""

import json

import pytest

from fairgate.domain.errors import DataError
from fairgate.io.tables import damage_in, list_in_cell

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


DAMAGED = {
    "UTF-8 that was encoded twice": [
        "cafÃ©",
        "donâ€™t",
        "FranÃ§ois",
        "Ã\xa9t\xe9",
        "æ—¥æœ¬",
        "\u00f0\u0178\u2122\u201a",
    ],
    "replaced characters (U+FFFD)": ["caf\ufffd"],
    "HTML entities": ["Tom &amp; Ada", "don&#39;t", "a&nbsp;b", "&#x27;"],
    "escapes of a spreadsheet (`_x000D_`)": ["one_x000D_\ntwo"],
    "no text (`nan`)": ["nan", "NaN", "None", " null ", "#N/A"],
}
SOUND = [
    "café", "François Ångström", "naïve “quotes” – dash…", "日本語", "Ünlü", "ÄÖÜ", "¿Qué?", "«été»",
    "AT&T; R&D", "a & b;", "x_x0_", "nano", "nobody", "emoji 🙂🙂", "Ελληνικά", "Привет", "½ °C",
]  # fmt: skip


@pytest.mark.parametrize("how", DAMAGED)
def test_damaged_texts_are_told(how):
    assert [damage_in(text) for text in DAMAGED[how]] == [how] * len(DAMAGED[how])


@pytest.mark.parametrize("text", SOUND)
def test_other_texts_are_not(text):
    assert damage_in(text) == ""
