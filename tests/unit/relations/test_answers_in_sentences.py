"""How answers in sentences are split, masked, and looked through."""

import json
from importlib import resources

import pytest

from fairgate.relations.sentences.facts import Fact, facts
from fairgate.relations.sentences.masking import MASK, asker
from fairgate.relations.sentences.overused import overused
from fairgate.relations.sentences.phrasings import KINDS, languages, says
from fairgate.relations.sentences.splitting import is_open, reading_difficulty, sentences, words

FIGURES = {"refused": (24, 24, 29), "handed-off": (23, 23, 27), "addressed": (17, 17, 19)}
"""Kind to hits, answers that the lists report, and answers that people labelled so."""


def test_sentences_end_at_the_marks_of_every_script_and_at_lines():
    cases = {
        "One. Two! Three?": ["One.", "Two!", "Three?"],
        'He said "Go." Then he went.': ['He said "Go."', "Then he went."],
        "First line\nsecond line\r\n\r\nthird": ["First line", "second line", "third"],
        "1. Open it. 2. Close it.": ["Open it.", "Close it."],
        "- one\n- two\n* three": ["one", "two", "three"],
        "Dr. Lee costs 3.50 a day, e.g. today.": ["Dr. Lee costs 3.50 a day, e.g. today."],
        "你好。再见\uff01": ["你好。", "再见\uff01"],
        "مرحبا؟ نعم.": ["مرحبا؟", "نعم."],
        "नमस्ते। हाँ।": ["नमस्ते।", "हाँ।"],
        "…": [],
        "": [],
        "No end": ["No end"],
    }
    wrong = {text: sentences(text) for text, parts in cases.items() if sentences(text) != parts}
    assert not wrong


def test_an_answer_is_open_without_a_closing_mark_of_any_script():
    closed = (
        "Go.", 'He said "Go."', "Go (now!).", "**Go!**", "Is it\u2026", "你好。", "「你好。」", "مرحبا؟",
        "नमस्ते।", "These help:", "Go.\n", "", "...", "`go`.", "Go! \U0001f64f\U0001f64f",
        "Go. \u2764\ufe0f", "Run:\n```\ngo\n```", "| 1 | go |",
    )  # fmt: skip
    opened = (
        "Go to the",
        "Go. Then",
        "It takes 3,",
        "你好",
        "- one\n- two",
        'He said "Go',
        "It \U0001f64f",
        "Run:\n```\ngo",
    )
    assert not [text for text in closed if is_open(text)]
    assert not [text for text in opened if not is_open(text)]


def test_a_script_without_spaces_has_a_word_for_each_character():
    assert words("Ask for it, don't wait") == ["ask", "for", "it", "don't", "wait"]
    assert len(words("你好吗")) == 3


def test_long_words_and_long_sentences_are_hard():
    easy = "The cat sat. The dog ran. We saw it."
    hard = (
        "Notwithstanding regulatory considerations, administrative procedures necessitate patience."
    )
    assert reading_difficulty(easy) < 10
    assert reading_difficulty(hard) > 50
    assert reading_difficulty("") == 0


MASKED = [
    ("An elderly person", "An elderly person may ask. Elderly people do. The elderly, too."),
    ("An elderly person", "Being elderly, they ask an elderly woman."),
    ("A gay person", "A gay man says so. He is gay."),
    ("A Black person", "Black people ask. A Black woman asks. For Blacks, too."),
    ("A Middle Eastern person", "In the Middle East a Middle-Eastern man asks."),
    ("An Indian person", "Indians ask in India. Indian customers do."),
    ("A shopper", "The shopper asks, shoppers do."),
    ("A woman", "A woman asks, women do."),
    ("A tall person", "Tall people ask, the tall person does."),
    ("Aisha Khan", "Aisha asks, Aisha Khan does, and so do the Khans? Khan does."),
    ("Eine ältere Person", "Die ältere Person fragt, ältere Personen fragen."),
]


@pytest.mark.parametrize(("phrase", "text"), MASKED)
def test_every_naming_of_an_asker_is_masked(phrase: str, text: str):
    left = asker(phrase).mask(text).replace(MASK, "")
    quality = [word for word in phrase.lower().split() if word not in ("a", "an", "person", "eine")]
    for word in quality:
        assert word not in left.lower().replace("khans", ""), left


def test_other_words_stay_as_they_are():
    cases = {
        "A white person": "Use white vinegar on a white shirt.",
        "A straight person": "Draw a straight line, straight ahead.",
        "A young person": "Water the young plant.",
        "A tall person": "The tower is tall and the tall tree falls.",
        "A man": "The manager commands.",
        "": "Nobody is named.",
    }
    for phrase, text in cases.items():
        assert asker(phrase).mask(text) == text


def test_anybody_is_the_same_in_every_arm():
    assert asker("A woman").mask("A person asks.") == asker("A guest").mask("A person asks.")


def test_facts_have_one_form():
    same = [
        ("time", "at 3 pm", "at 15:00"),
        ("date", "on 3 March 2024", "on March 3rd, 2024"),
        ("date", "am 3. März", "on 3rd of March"),
        ("amount", "€1,200.50", "1200,50 euros"),
        ("amount", "$5", "5 dollars"),
        ("share", "20 %", "20 percent"),
        ("number", "five eggs", "5 eggs"),
        ("number", "1,000 eggs", "1000 eggs"),
        ("link", "https://www.a.com/x/", "a.com/x."),
        ("phone", "call +44 20 7946 0958", "call +442079460958"),
    ]
    for kind, left, right in same:
        ours, theirs = (
            {fact for fact in facts(text) if fact.kind == kind} for text in (left, right)
        )
        assert ours
        assert ours == theirs, (left, facts(left), right, facts(right))


def test_every_kind_of_fact_is_found():
    text = (
        'In step 2, open "Account settings" by 3 May at 16:30, or mail a@b.org; see www.c.com, call '
        "555-123 456. It costs $20, 5 % less, for 3 days in Paris."
    )
    kinds = {fact.kind for fact in facts(text)}
    assert kinds == {
        "step", "name", "date", "time", "mail", "link", "phone", "amount", "share", "number",
    }  # fmt: skip
    assert Fact("name", "account settings") in facts(text)
    assert not facts("In Paris Ann calls Bob.")


def test_another_fact_is_another_fact():
    for left, right in [
        ("3 days", "4 days"),
        ("€4.90", "€49"),
        ("3 pm", "3 am"),
        ("5 May", "6 May"),
    ]:
        assert facts(left) != facts(right)


def test_lists_say_what_people_say_of_labelled_answers():
    raw = resources.files("fairgate").joinpath("data", "labelled", "sentences.jsonl")
    rows = [json.loads(line) for line in raw.read_text("utf-8").splitlines()]
    measured = {}
    for kind in KINDS:
        reported = [bool(says(kind, row["answer"])) for row in rows]
        real = [kind in row["says"] for row in rows]
        hits = sum(a and b for a, b in zip(reported, real, strict=True))
        measured[kind] = (hits, sum(reported), sum(real))
    assert measured == FIGURES
    assert {row["language"] for row in rows} == {*languages()}


def test_words_that_stand_out_share_no_word_and_cross_no_sentence():
    texts = {
        "Our hotline has people who know more about it.": {"hotline", "people", "know", "more"},
        "Have a nice day. Anything else is for Monday.": {"nice day", "monday"},
        "Please ask somebody younger in your family.": {"younger", "family"},
    }
    wrong = []
    for text, some in texts.items():
        usual = [f"Open page {number}. Then press the button." for number in range(12)]
        pools = [(f"Open page {n}. {text}", [*usual, text]) for n in range(4)]
        grams = [gram for gram, _ in overused(pools)]
        parts = [word for gram in grams for word in gram.split()]
        if len(parts) != len(set(parts)) or not some & {*grams, *parts} or "day anything" in grams:
            wrong.append((text, grams))
    assert not wrong
