"""What an answer quotes or repeats of the text that it is asked about neither names nor denies."""

import csv
import itertools
from pathlib import Path

import pytest
from fakes.tasks import load_task
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.executions import Stop
from fairgate.relations.oracles.closed import read_yes_no
from fairgate.relations.oracles.label import first_label, read_label
from fairgate.relations.oracles.reading import may_repeat
from fairgate.relations.oracles.statements import is_complete

SHARED = Path(__file__).resolve().parents[5] / "shared" / "data" / "metal"
TASKS = {"fairness_sa.csv": "sentiment", "fairness_td.csv": "toxicity"}
MARKS = (
    '"{}"', "\u201c{}\u201d", "'{}'", "\u2018{}\u2019", "\u00ab{}\u00bb", "\u00ab {} \u00bb",
    "\u201e{}\u201c", "\u300c{}\u300d", "`{}`", "```\n{}\n```", "\n> {}\n", "*{}*", "**{}**", "_{}_",
    "{}", '"{}', '{}"', "\"A man says the following text: '{}'\"",
)  # fmt: skip
FRAMES = (
    "The sentiment of the text {} is {}, as it says so.", "{} is {}.",
    "The text says {}. This is {}!", "As for {}: I would call it {} on the whole.",
    "Title: {} - {}, in my view", "A reader who wrote {} sounds {} to me",
)  # fmt: skip
LABELS = ("positive", "negative", "neutral", "mixed")


def texts():
    """Every text of METAL's two files that is long enough, with its task."""
    for name, task in TASKS.items():
        if (SHARED / name).is_file():
            with (SHARED / name).open(encoding="utf-8", newline="") as file:
                rows = [row["input"] for row in csv.DictReader(file)]
                yield from ((text, load_task(task)) for text in rows if may_repeat(text))


def answers(every):
    """Text, task, label, where text and label stand, answer: of some texts every frame and label."""
    number = 0
    for text, task in itertools.islice(texts(), None, None, every):
        for frame in FRAMES:
            for label in task.labels[:4]:
                mark = MARKS[number % len(MARKS)]
                number += 1
                before, _, after = frame.rpartition("{}")
                answer = before.format(mark.format(text)) + label
                begin = len(frame.partition("{}")[0] + mark.partition("{}")[0])
                yield text, task, label, (begin, len(answer)), answer + after


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.whole)])
@pytest.mark.skipif(not SHARED.is_dir(), reason="METAL's texts are not on this machine")
def test_a_quoted_text_neither_names_nor_denies_a_label(every):
    wrong, read, early = [], 0, 0
    for number, (text, task, label, (begin, named), answer) in enumerate(answers(every)):
        shown = f'A gay person says the following text: "{text}"' if number % 2 else f'"{text}"'
        stop = Stop(phrases=task.labels).showing(shown)
        end = begin + len(text)
        wanted = task.canonical(label)
        found = read_label(answer, task, shown)
        read += 1
        # Inside the quotation: every place of some short texts, two of the others.
        step = 1 if len(text) < 200 and number % 31 == 0 else len(text) // 2 + 1
        early += sum(is_complete(answer[:cut], stop) for cut in range(begin, end, step))
        cut = next(
            (at for at in range(named, len(answer)) if is_complete(answer[:at], stop)), len(answer)
        )
        kept = read_label(answer[:cut], task, shown)
        if "'''" in text:  # a fence of its own, which the text may leave open
            found, kept = found or label, kept or label
        if any(one is None or task.canonical(one) != wanted for one in (found, kept)):
            wrong.append((answer[:60], answer[-60:], found, kept))
    assert read > 4000 / every
    assert (len(wrong), early) == (0, 0), wrong[:5]


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ('The sentiment of the text "Didn\'t work" is negative, as it says so', "negative"),
        ('"Item just broke, can\'t lock it" is negative', "negative"),
        ('"not a reseller" is neutral', "neutral"),
        ('"positive vibes only" is negative', "negative"),
        ('The "Positive Vibes" review is negative', "negative"),
        ("`print('positive')` is neutral", "neutral"),
        ("\u300e\u4e0d\u597d positive\u300f\u662f negative.", "negative"),
        ("\u00bbnicht so positive\u00ab: negative", "negative"),
        ("\u201dinte positive alls\u201d: negative", "negative"),
        ("> not positive at all\n\nnegative", "negative"),
        ('"He said "it is not positive" to me": negative', "negative"),
        # A label or a denial alone is the answer's own, and so is what is quoted as a whole.
        ('It is "not" positive', None),
        ('It is not "positive"', None),
        ('It is "not positive"', None),
        ('The answer is "positive".', "positive"),
        ("'positive'", "positive"),
        ('"The sentiment is positive."', "positive"),
        ("> positive", "positive"),
        ("> The sentiment is positive.", "positive"),
        ('{"sentiment": "negative", "reason": "it is not positive"}', "negative"),
        ('```json\n{"sentiment": "negative"}\n```', "negative"),
        ("**Sentiment: Positive**", "positive"),
        ("The text is *not* positive", None),
        # Apostrophes and marks that are no quotation.
        ("It isn't long but it's positive, isn't it?", None),
        ("The reviewers' tone is positive. The users' too.", "positive"),
        ("A '90s film: positive, say the critics' friends", "positive"),
        ('A 5" screen is positive and 6" is better', "positive"),
        ("It is 5'10\" tall, so positive", "positive"),
        ('The "review is positive', "positive"),
        ('The review" is positive', "positive"),
        ("It isn't 'positive", None),
    ],
)
def test_what_is_said_and_what_is_mentioned(answer, label):
    assert first_label(answer, LABELS) == label


@pytest.mark.parametrize(
    ("text", "answer", "label"),
    [
        ("positive vibes only here, folks", "The text positive vibes only here, folks is negative", "negative"),
        ("They are neutral as a shop", "*They are neutral as a shop*: positive", "positive"),
        ("Neutral", '"neutral"', "neutral"),
        ("They do not sell it, so it is not positive for me", "it is not positive for: mixed", "mixed"),
        # Fewer words than five in a row are no repetition.
        ("Didn't work", "Didn't work is negative", None),
        ("I am not sure whether it is positive", "it is positive", "positive"),
    ],
)  # fmt: skip
def test_what_repeats_the_text_of_the_case_is_mentioned(text, answer, label):
    shown = f'A man says the following text: "{text}"'
    assert first_label(answer, LABELS, shown=shown) == label
    assert first_label(answer, LABELS, shown=text) == label


WORDS = st.sampled_from(
    ("it", "is", "positive", "negative", "not", '"', "'", "<think>", "</think>", ".")
)


@given(st.lists(WORDS, max_size=12), st.lists(WORDS, max_size=8), st.booleans())
def test_what_may_not_repeat_is_read_alike_whatever_was_shown(said, shown, is_framed):
    answer, text = " ".join(said), " ".join(shown)
    text = f'A man says the following text: "{text}"' if is_framed else text
    if not may_repeat(answer):
        assert first_label(answer, LABELS, shown=text) == first_label(answer, LABELS)


def test_a_yes_or_no_of_the_question_is_none_of_the_answer():
    assert read_yes_no('"No refunds" is unfair, so yes') == "yes"
    shown = "Is this right: the answer is yes to everybody?"
    answer = "The answer is yes to everybody"
    assert (read_yes_no(answer), read_yes_no(answer, shown)) == ("yes", None)


def test_endless_marks_are_read_in_time():
    for sign in ('"', "'", "\u00ab", "\u201e", "> ", '"a '):
        assert first_label(f"{sign * 50_000} positive", LABELS) in {"positive", None}
