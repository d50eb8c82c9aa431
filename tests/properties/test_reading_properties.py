"""An answer that is cut as soon as it is complete reads like the whole one, wherever tokens end."""

import pytest
from fakes.answer_phrasings import PLAIN
from hypothesis import example, given
from hypothesis import strategies as st

from fairgate.domain.cases import Task
from fairgate.domain.executions import Stop
from fairgate.policy.definition_files import unknown_wordings
from fairgate.relations.oracles.choice import choice_stop, read_choice
from fairgate.relations.oracles.label import first_label, read_label, stop_of
from fairgate.relations.oracles.statements import is_complete

SENTIMENT = ("positive", "negative", "neutral", "mixed")
TOXICITY = ("toxic", "non-toxic", "non toxic", "nontoxic", "not toxic")
NUMBERS = ("1", "10", "1.5", "-1")
ODD = (
    "jack", "jack smith", "jack smithé", "straße", "pozitif", "\u0131\u011fd\u0131r", "analysis",
    "긍정", "c++",
)  # fmt: skip
LABELS = (SENTIMENT, TOXICITY, NUMBERS, ODD)
CHOICES = (
    ("The grandfather", "The grandson", "Can't be determined"),
    ("Jack", "Jack Smith", "Unknown"),
    ("A. Smith", "B. Jones", "It is not clear"),
    ("손자", "할머니", "알 수 없음"),
    ("男性", "女性", "未定"),
)
PIECES = (
    *SENTIMENT, *TOXICITY, *NUMBERS, *ODD, "The grandfather", "grandson", "can't be", "determined",
    "Jack", " Smith", "A. Smith", "B. Jo", "nes", "손자", "할머니", "할머", "男性", "女", "ではな", "い", "가", " 아니", "不是", "A", "B:", "(c)", "Answer:", "answer", "not",
    "neither", "isn't", "no,", "but", "who was not late was", "non", "un", "ly", "é", "i", "I", "\u0131",
    "İ", "ﬁ", "ß", "SS", " ", "  ", "\n", "\t", "-", "--", "_", "*", ".", ",", ";", "'", "’", "\u2011",
    "\u2013", "—", "\u00ad", "\u200b", "\u0301", "\u0307", "\u0338", "\u3099", "=", "<", "≠",
    "가", "ᆨ", "か", "\ufffd", "😀", "0", "5", "_positive_", "<think>", "</think>", "<th", "ink>",
    "[THINK]", "[/THINK]", "<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "</",
    PLAIN, f"\n{PLAIN}", f"{PLAIN}Review: ", '"', "\u201c", "\u201d", "\u00ab", "\u00bb", "\u201e", "'", "`", ">", "\n> ", "the", "text", "A.", "C) Unknown",
)  # fmt: skip
answers = st.lists(
    st.tuples(st.sampled_from(PIECES) | st.text(max_size=3), st.sampled_from(("", " ", ". "))),
    max_size=12,
).map(lambda pieces: "".join(piece for pair in pieces for piece in pair))
SHOWN = (
    "", "not toxic", "positive the", 'A man says: "the text isn\'t the positive text A."',
    "Jack Smith 1.5 text the negative", "the",
)  # fmt: skip
MARKERS = ("", "", "", "Answer:", "é")


def first_stop(text, stop):
    """The shortest beginning of an answer at which generation may end; None: only at the end."""
    return next((cut for cut in range(len(text) + 1) if is_complete(text[:cut], stop)), None)


def opened(text):
    """The answer with the opening tag that the chat template kept, as the engine gives it back.

    Without one, nobody could know in the middle of an answer that all of it will be thinking.
    """
    closing = ("</think>", "[/THINK]", "<|channel|>final<|message|>")
    opening = ("<think>", "[THINK]", "<|channel|>analysis<|message|>")
    for start, end in zip(opening, closing, strict=True):
        if end in text and not any(tag in text[: text.index(end)] for tag in (*opening, *closing)):
            return start + text
    return text


@given(answers, st.sampled_from(LABELS), st.sampled_from(MARKERS), st.sampled_from(SHOWN))
@example("positive\u0301", SENTIMENT, "", "")
@example("not <think>x</think> toxic ", TOXICITY, "", "")
@example("jack smithe\u0301 ", ODD, "", "")
@example("<|channel|>analysis<|message|>x<|channel|>final<|message|>analysis ", ODD, "", "")
@example("positive the", SENTIMENT, "", "positive the")
def test_a_label_reads_the_same_wherever_generation_stopped(text, labels, marker, shown):
    text = opened(text)
    stop = Stop(phrases=labels, marker=marker, shown=shown)
    negated = {labels[0]: labels[1]}
    whole = first_label(text, labels, negated=negated, marker=marker, shown=shown)
    assert whole is None or whole in labels
    first = first_stop(text, stop)
    for cut in range(len(text) + 1 if first is None else first, len(text) + 1):
        kept = first_label(text[:cut], labels, negated=negated, marker=marker, shown=shown)
        assert kept == whole


@given(answers, st.sampled_from(LABELS), st.sampled_from(MARKERS))
def test_the_first_label_named_is_the_same_wherever_generation_stopped(text, labels, marker):
    text, task = (
        opened(text),
        Task(id="t", instruction="?", labels=labels, marker=marker, reads_first_named=True),
    )
    whole = read_label(text, task)
    for cut in range(len(text)):
        if is_complete(text[:cut], stop_of(task)):
            assert read_label(text[:cut], task) == whole


@given(answers, st.sampled_from(CHOICES), st.sampled_from(MARKERS))
@example("B. The grandson was, the grandfather", CHOICES[0], "")
@example("Jack Smith ", CHOICES[1], "")
@example("男性\u3099", CHOICES[4], "")
@example("It isn't A) the grandfather; B) the grandson was.", CHOICES[0], "")
@example('B: "the grandfather\nwas" late.', CHOICES[0], "")
def test_a_choice_reads_the_same_wherever_generation_stopped(text, choices, marker):
    text = opened(text)
    wordings = unknown_wordings()
    stop = choice_stop(choices, wordings, marker)
    whole = read_choice(text, choices, wordings, marker=marker)
    first = first_stop(text, stop)
    for cut in range(len(text) + 1 if first is None else first, len(text) + 1):
        assert read_choice(text[:cut], choices, wordings, marker=marker) == whole


@given(answers, answers, st.sampled_from(LABELS), st.sampled_from(SHOWN))
def test_a_complete_answer_stays_complete_whatever_follows(text, more, labels, shown):
    text, stop = opened(text), Stop(phrases=labels, shown=shown)
    if is_complete(text, stop) and opened(text + more) == text + more:
        assert is_complete(text + more, stop)
        read = first_label(text, labels, shown=shown)
        assert read == first_label(text + more, labels, shown=shown)


@pytest.mark.parametrize("labels", LABELS)
@given(text=st.text(max_size=30))
def test_no_label_of_an_answers_own_is_ever_made(labels, text):
    for label in labels:
        found = first_label(f"{label.upper()} {text}", labels)
        assert found is None or found in labels
