"""How answers in sentences are split, masked, and looked through."""

import json
import time
from importlib import resources

import pytest

from fairgate.policy.definition_files import load_perturbation_set
from fairgate.relations.sentences.facts import Fact, facts
from fairgate.relations.sentences.masking import MASK, asker
from fairgate.relations.sentences.phrasings import KINDS, languages, says
from fairgate.relations.sentences.splitting import (
    is_open,
    sentences,
    split,
    words,
)

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


def test_sentences_end_in_every_form_that_answers_come_in():
    cases = {
        # References to sources, as retrieval-augmented systems write them.
        "It is free.[1] Call us.[2][3]": ["It is free.", "Call us."],
        "It is free [1]. Call us [2, 3].": ["It is free.", "Call us."],
        "It is free. [1] Call us. [2]": ["It is free.", "Call us."],
        "It is free.\u00b9 Call us.\u00b2": ["It is free.", "Call us."],
        "It is free\u30104:0\u2020a.md\u3011. Call us.": ["It is free.", "Call us."],
        "It is free.[^1] Call us.": ["It is free.", "Call us."],
        "See [1](https://a.org).": ["See [1](https://a.org)."],
        # HTML.
        "<p>Open it.</p><p class='x'>Call us.</p>": ["Open it.", "Call us."],
        "<ul><li>Open it</li><li>Call us</li></ul>": ["Open it", "Call us"],
        "Open <b>it.</b> Call <i>us</i>.<br/>Wait.": ["Open it.", "Call us.", "Wait."],
        'See <a href="https://a.org/x" target="_blank">this</a>. Call.': [
            "See https://a.org/x this.", "Call.",
        ],
        "If 3 < 5 and 5 > 3, go.": ["If 3 < 5 and 5 > 3, go."],
        # A number or a short word at the end.
        "The fee is 25. Call us.": ["The fee is 25.", "Call us."],
        "Is it open? No. Call us.": ["Is it open?", "No.", "Call us."],
        "The answer is no. Call us.": ["The answer is no.", "Call us."],
        "Take vitamin C. Then rest.": ["Take vitamin C.", "Then rest."],
        "It costs 5 a day etc. Call us.": ["It costs 5 a day etc.", "Call us."],
        "Use version 2.0. Then go.": ["Use version 2.0.", "Then go."],
        "It closes at 5 p.m. Call us.": ["It closes at 5 p.m.", "Call us."],
        # No end.
        "Am 3. Mai ist zu. Im 2. Schritt geht es.": ["Am 3. Mai ist zu.", "Im 2. Schritt geht es."],
        "14. März ist zu.": ["14. März ist zu."],
        "Room No. 5 is open, see art. 7.": ["Room No. 5 is open, see art. 7."],
        "It opens at 5 p.m. on Monday.": ["It opens at 5 p.m. on Monday."],
        "The U.S. government and J. R. Smith pay.": ["The U.S. government and J. R. Smith pay."],
        "마감은 2024. 3. 14. 입니다.": ["마감은 2024. 3. 14.", "입니다."],
        "See example.com, Node.js and ASP.NET.": ["See example.com, Node.js and ASP.NET."],
        "(212) 555-1234 is free.": ["(212) 555-1234 is free."],
        # Lists in one line, and steps.
        "Do this: \u2022 Open it \u2022 Call us": ["Do this:", "Open it", "Call us"],
        "Do this: 1. Open it 2. Call us 3. Wait": ["Do this:", "Open it", "Call us", "Wait"],
        "1) Open it 2) Call us 3) Wait": ["Open it", "Call us", "Wait"],
        "Step 1. Open it. Step 2. Call us.": ["Step 1. Open it.", "Step 2. Call us."],
        "The rooms (1 or 2) are open.": ["The rooms (1 or 2) are open."],
        # Without a blank, and by other marks.
        "Open it.Call us.Then wait.": ["Open it.", "Call us.", "Then wait."],
        "설정을 여세요.전화해 주세요.": ["설정을 여세요.", "전화해 주세요."],
        "開きます\uff0e待ちます\uff0e": ["開きます\uff0e", "待ちます\uff0e"],
        "Բացեք\u0589 Զանգեք\u0589": ["Բացեք\u0589", "Զանգեք\u0589"],
        "| Plan | Price |\n|---|---|\n| A | 5 |": ["| Plan | Price |", "| A | 5 |"],
        "Open it. \U0001f644\U0001f644": ["Open it.", "\U0001f644\U0001f644"],
        "C'est fini\u00a0! Appelez-nous.": ["C'est fini\u00a0!", "Appelez-nous."],
    }  # fmt: skip
    wrong = {text: sentences(text) for text, parts in cases.items() if sentences(text) != parts}
    assert not wrong


def test_hostile_answers_are_split_and_looked_through_in_linear_time():
    pumps = (
        "a.", "1.", "1. ", "1) ", "<a ", "<a href=", "<p>", "[1", "\u3010", "\u2022  ", "a@", "a-", "1 000",
        "(0)", "twenty ", '"a', "$1", "1\u6708", "T.", "\n ", "Wait.Then ",
    )  # fmt: skip
    for pump in pumps:
        text = pump * (8_000 // len(pump))
        began = time.process_time()
        sentences(text), is_open(text), facts(text)
        assert time.process_time() - began < 2, pump


def test_an_answer_is_open_without_a_closing_mark_of_any_script():
    closed = (
        "Go.", 'He said "Go."', "Go (now!).", "**Go!**", "Is it\u2026", "你好。", "「你好。」", "مرحبا؟",
        "नमस्ते।", "These help:", "Go.\n", "", "...", "`go`.", "Go! \U0001f64f\U0001f64f",
        "Go. \u2764\ufe0f", "Run:\n```\ngo\n```", "| 1 | go |", "Go.[1]", "Go.\u00b9", "<p>Go.</p>",
        "開きます\uff0e",
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
        "It is free [1]",
        "<p>Go to the</p>",
    )
    assert not [text for text in closed if is_open(text)]
    assert not [text for text in opened if not is_open(text)]


def test_a_script_without_spaces_has_a_word_for_each_character():
    assert words("Ask for it, don't wait") == ["ask", "for", "it", "don't", "wait"]
    assert len(words("你好吗")) == 3


def test_items_of_lists_are_counted_numbered_or_not():
    cases = {
        "1. Open it.\n2. Close it.": 2,
        "- one\n- two\n* three": 3,
        "Do this: \u2022 Open it \u2022 Call us": 2,
        "Do this: 1. Open it 2. Call us 3. Wait": 3,
        "<ol><li>1. Open it</li><li>2. Call us</li></ol>": 2,
        "# Title\nOpen it.": 0,
        "Am 3. Mai ist zu.": 0,
        "It costs 5. Go.": 0,
    }
    wrong = {text for text, count in cases.items() if split(text).items != count}
    assert not wrong


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


SHIPPED = [
    phrase
    for name in (
        "race",
        "gender",
        "orientation",
        "age",
        "religion",
        "disability",
        "neutral-phrases",
    )
    for term in load_perturbation_set(name).terms
    for phrase in term.phrases
]


@pytest.mark.parametrize("phrase", SHIPPED)
def test_every_shipped_phrase_leaves_what_a_neutral_one_leaves(phrase):
    """Else an answer would be strange for repeating its asker, in one arm alone."""
    text = f"{phrase} asks. As {phrase[0].lower()}{phrase[1:]}, you know."
    assert asker(phrase).mask(text) == f"{MASK} asks. As {MASK}, you know."


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
        ("phone", "(030) 123456", "030 123456"),
        ("phone", "+49 (0)30 123456", "+49 30 123456"),
        # Numbers in words.
        *(("number", left, right) for left, right in (
            ("30 days", "thirty days"), ("25 days", "twenty-five days"), ("25", "Twenty five"),
            ("21 Tage", "einundzwanzig Tage"), ("16 Tage", "sechzehn Tage"), ("30 jours", "trente jours"),
            ("92 jours", "quatre-vingt-douze jours"), ("35 días", "treinta y cinco días"),
            ("1.5 million users", "1,500,000 users"), ("5k users", "five thousand users"),
        )),
        # Amounts.
        *(("amount", left, right) for left, right in (
            ("$5", "five dollars"), ("$5", "US$5"), ("$5", "5 US dollars"), ("5 €", "fünf Euro"),
            ("1.000,50 €", "€1,000.50"), ("1 000,50 €", "€1,000.50"), ("$1.5 million", "$1,500,000"),
            ("5,000円です", "¥5,000"), ("5,000원입니다", "₩5,000"), ("약 5 유로", "5 euros"),
        )),
        # Every script's digits, and letters of scripts without spaces around them.
        *(("number", left, right) for left, right in (
            ("約14日かかります", "14"), ("約14天", "14 天"), ("최대14일", "14일"), ("１４日", "14日"),
            ("٣ أيام", "3"), ("३ दिन", "3"),
        )),
        # Dates and times.
        *(("date", left, right) for left, right in (
            ("2024年3月14日までに", "2024-03-14"), ("3월14일까지", "3월 14일"), ("2024. 3. 14.", "2024-03-14"),
            ("am 14.3.2024", "14. März 2024"), ("14/03/2024", "14/3/24"), ("le 1er mars", "1 March"),
            ("el 3 de marzo de 2024", "3 March 2024"), ("15 sept 2024", "15 September 2024"),
        )),
        *(("time", left, right) for left, right in (
            ("午後3時に", "3 pm"), ("오후 3시", "15:00"), ("下午3点", "15:00"), ("15h30", "15:30"),
            ("3.30 pm", "15:30"), ("at noon", "12:00"), ("um 15.30 Uhr", "15:30"),
        )),
        # Links beside other scripts, in markup and on other domains.
        *(("link", left, right) for left, right in (
            ("はwww.a.comで", "a.com"), ("www.a.com에서", "a.com"), ("https://a.com/xを", "a.com/x"),
            ("[here](https://a.com/x)", "a.com/x"), ("<https://a.com/x>", "a.com/x"),
            ("shop.a.co.jp", "https://shop.a.co.jp"), ("a.shop/x", "https://a.shop/x"),
        )),
    ]  # fmt: skip
    wrong = []
    for kind, left, right in same:
        ours, theirs = (
            {fact for fact in facts(text) if fact.kind == kind} for text in (left, right)
        )
        if not ours or ours != theirs:
            wrong.append((left, facts(left), right, facts(right)))
    assert not wrong


def test_what_is_no_fact_is_none():
    texts = ("3時間後", "3시간", "The art. of war", "sei so gut", "a/b", '"https://"')
    wrong = {text: facts(text) for text in texts if {f.kind for f in facts(text)} - {"number"}}
    assert not wrong
    (first,), (second,) = sentences("It is free.[1]"), sentences("It is free.[2]")
    assert facts(first) == facts(second) == frozenset()


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
        reported = [says(kind, row["answer"]) for row in rows]
        real = [kind in row["says"] for row in rows]
        hits = sum(a and b for a, b in zip(reported, real, strict=True))
        measured[kind] = (hits, sum(reported), sum(real))
    assert measured == FIGURES
    assert {row["language"] for row in rows} == {*languages()}
