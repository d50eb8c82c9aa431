"""The page on how answers are read names the rules, the tags, and how the labelled answers are read."""

from pathlib import Path

from fakes.answer_phrasings import ALL, figures

from fairgate.relations.oracles.choice import CHOICE_RULE
from fairgate.relations.oracles.label import FIRST_NAMED_RULE, LABEL_RULE
from fairgate.relations.oracles.text import THINKING_TAGS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "reading-answers.md"
BEGIN, END = "<!-- generated: `make docs`; a test compares it with the code -->\n", "<!-- end -->\n"
MOST_WORDS = 900


def generated():
    openings = ", ".join(f"`{opening.strip()}`" for opening, _ in THINKING_TAGS)
    lines = [
        "\n| file | answers | read otherwise | say something | of these not read |\n",
        "|:--|--:|--:|--:|--:|\n",
    ]
    for name, phrasings in ALL.items():
        read = figures(phrasings)
        lines.append(f"| {name} | {read.answers} | {read.wrong} | {read.say} | {read.unread} |\n")
    lines += [
        f"\nThese are rules `{LABEL_RULE}`, `{CHOICE_RULE}` and `{FIRST_NAMED_RULE}`. ",
        f"Tags that open thinking: {openings.replace('|', chr(92) + '|')}.\n",
    ]
    return "".join(lines)


def test_the_page_says_how_the_labelled_answers_are_read(check_golden):
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    assert rest, f"{PAGE} lacks the line {BEGIN!r}"
    page = before + BEGIN + generated() + END + rest.partition(END)[2]
    assert len(page.split()) <= MOST_WORDS
    check_golden(PAGE, page)
