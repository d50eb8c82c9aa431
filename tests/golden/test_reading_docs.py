"""The page on how answers are read shows some phrasings of each group, every known limit, and their number."""

import unicodedata
from pathlib import Path

import pytest
from fakes.answer_phrasings import PHRASINGS, figures

from fairgate.relations.oracles.choice import CHOICE_RULE
from fairgate.relations.oracles.label import LABEL_RULE
from fairgate.relations.oracles.text import THINKING_TAGS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "reading-answers.md"
BEGIN, END = "<!-- generated: `make docs`; a test compares it with the code -->\n", "<!-- end -->\n"


def cell(text):
    """A table cell that shows a text exactly, in code, with what cannot be seen escaped."""
    shown = "".join(
        c if c.isprintable() and unicodedata.category(c) != "Mn" else ascii(c)[1:-1] for c in text
    )
    fence = "``" if "`" in shown else "`"
    pad = " " if "`" in shown or shown.startswith(" ") else ""
    return f"{fence}{pad}{shown}{pad}{fence}".replace("|", "\\|") if shown else "(empty)"


SHOWN = 6
"""Phrasings of a group on the page."""


def generated():
    pairs = ", ".join(f"`{opening}` … `{closing}`" for opening, closing in THINKING_TAGS)
    lines = [
        f"\nThis is rule `{LABEL_RULE}`, and `{CHOICE_RULE}` for options.\n\n",
        f"Tags of thinking: {pairs.replace('|', chr(92) + '|')}.\n\n",
        "| answers | number | readable | read wrongly, known |\n|:--|--:|--:|--:|\n",
    ]
    rows = figures()
    lines += [f"| {name} | {size} | {read} | {wrong} |\n" for name, size, read, wrong in rows]
    sums = [sum(row[column] for row in rows) for column in (1, 2, 3)]
    lines.append(f"| **all** | {sums[0]} | {sums[1]} | {sums[2]} |\n")
    for group in dict.fromkeys(one.group for one in PHRASINGS):
        lines.append(f"\n### {group[0].upper()}{group[1:]}\n\n")
        lines += map(line, shown([one for one in PHRASINGS if one.group == group]))
    return "".join(lines)


def shown(phrasings):
    """Every known limit; of other phrasings so many, from the whole of their group."""
    if phrasings[0].limit:
        return phrasings
    step = -(-len(phrasings) // SHOWN)
    return phrasings[::step]


def line(one):
    """An answer and what is read in it."""
    why = f" ({one.limit})" if one.limit else ""
    return f"- {cell(one.text)}: {one.read or 'unreadable'}{why}\n"


def test_the_page_shows_some_of_each_group(check_golden):
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    assert rest, f"{PAGE} lacks the line {BEGIN!r}"
    after = rest.partition(END)[2]
    expected = before + BEGIN + generated() + END + after
    check_golden(PAGE, expected)


@pytest.mark.parametrize("word", ["marker", "negated", "</think>"])
def test_the_page_explains_what_a_task_can_set(word):
    assert word in PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
