"""Which label an answer says: every phrasing, whole and cut where generation may stop."""

from dataclasses import replace

import pytest
from fakes.answer_phrasings import ALL, PLAIN, Figures, figures

from fairgate.domain.cases import Case, Task
from fairgate.domain.executions import Execution, Stop
from fairgate.relations.oracles.label import LabelOracle, first_label, label_place, read_label
from fairgate.relations.oracles.statements import is_complete

LABELS = ("positive", "negative", "neutral", "mixed")


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("unseen", Figures(answers=358, wrong=0, say=298, unread=4)),
        ("fresh", Figures(answers=505, wrong=0, say=356, unread=23)),
        ("deciding", Figures(answers=302, wrong=0, say=266, unread=40)),
        ("blind", Figures(answers=777, wrong=0, say=534, unread=59)),
        ("phrasings", Figures(answers=1662, wrong=1, say=1420, unread=260)),
        ("hands", Figures(answers=1520, wrong=14, say=1054, unread=227)),
    ],
)
def test_answers_are_read_as_a_person_does_or_not_at_all(name, read):
    assert figures(ALL[name]) == read
    assert read.wrong <= read.answers / 100


@pytest.mark.walk(1)
@pytest.mark.parametrize("name", ALL)
def test_an_answer_reads_alike_wherever_generation_may_stop(name):
    wrong = []
    for phrasing in ALL[name]:
        text, stop = phrasing.generated, phrasing.stop
        cuts = [] if stop is None else [n for n in range(len(text)) if is_complete(text[:n], stop)]
        whole = phrasing.reading(text)
        wrong += [text[:cut] for cut in cuts if phrasing.reading(text[:cut]) != whole]
    assert not wrong


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("eutral. The text says so.", "neutral"), ("egative", "negative"), ("posit", "positive"),
        ("The sentiment is negat", "negative"), ("It is not posit", None), ("tive", None),
        ("ne", None), ("ive.", None), ("The text has a mix", None),
    ],
)  # fmt: skip
def test_a_label_that_was_cut_is_read_where_only_one_can_be_meant(answer, expected):
    assert first_label(answer, LABELS) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The sentiment is neutral. It is more critical than positive. Therefore, the sentiment is neutral.", "neutral"),
        ("The sentiment of the text provided is positive. The overall sentiment is mixed, but the tone is positive.", "positive"),
        ("It is mixed, with a positive and negative tone.", "mixed"),
        ("The sentiment is mixed: positive about the food, negative about the wait.", "mixed"),
        ("~~negative~~ positive", "positive"),
        ('Negative. They say: "Sorry, it depends on the weather."', "negative"),
        ("The options are positive, negative and neutral. It is neutral.", "neutral"),
        ("Positive. Wait, no. Final answer: negative.", "negative"),
        ("There are positive words. The service is negative. Overall, it is mixed.", "mixed"),
        ("The food is praised. Overall, it is positive. Final answer: negative", "negative"),
        ("Two readings. The answer is positive. No, the answer is negative.", None),
        ("Answer: positive. Wait, it is negative.", None),
    ],
)  # fmt: skip
def test_what_is_said_counts_before_what_is_concluded_and_a_final_answer_before_both(
    answer, expected
):
    assert first_label(answer, LABELS) == expected


@pytest.mark.parametrize(
    "answer",
    [
        "The answer is positive. The answer is negative.", "Negative. Just kidding, positive.",
        "Positive. Hold on, the last sentence is sarcastic. Negative.", "Negative, no, positive.",
        "Positive. It loves the food. But overall, I'd say negative.",
        "It's positive, unless it is sarcasm.", "Positive, if you ask him.", "Is it positive?",
        "The author's mother would call this positive.", "My colleague says that it is positive.",
        "It is as positive as it is negative.", "The tone is positive, the rest is not.",
        "Positive: the food, negative: the service.", "positive with a hint of negative",
        '{"positive": true, "negative": true}', "It is not so positive.",
        "It's positive. Or is it?", "Negative Negative Positive", "Positive. I take that back.",
        "I'd call it positive, but my manager would say negative.", "Positive. It depends on the day.",
        "They decided on negative. I would say positive.", "Negative: Actually, the tone is positive.",
    ],
)  # fmt: skip
def test_what_is_taken_back_or_said_by_others_or_of_two_labels_is_unreadable(answer):
    assert first_label(answer, LABELS) is None


@pytest.mark.parametrize(
    ("behind", "is_final"),
    [
        (PLAIN, True), (PLAIN[:60], False), ("Wait, I misread it.", False),
        (f"But {PLAIN}", False), (f"The rest is negative. {PLAIN}", False),
        ("Text: They hate it.", True), (f"I am not sure. {PLAIN}", False),
    ],
)  # fmt: skip
def test_reading_ends_behind_plain_sentences_and_before_a_case_of_the_models_own(behind, is_final):
    answer = f"It is positive. {behind} "
    assert is_complete(answer, Stop(phrases=LABELS)) == is_final
    read = first_label(f"{answer}The answer is negative.", LABELS)
    assert read == ("positive" if is_final else "negative")


FIRST_NAMED = Task(id="t", instruction="?", labels=LABELS, equivalent=(("neutral", "mixed"),), reads_first_named=True)  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("It is not positive. It is negative.", "positive"), ("Mixed or negative?", "mixed"),
        ("positively negative", "negative"), ("eutral", None), ("<think>positive</think>neutral", "neutral"),
        ('"positive" is what he says; negative', "positive"),
    ],
)  # fmt: skip
def test_the_studies_rule_reads_the_first_label_that_is_named(answer, expected):
    assert read_label(answer, FIRST_NAMED) == expected
    stop = LabelOracle(FIRST_NAMED).stop()
    for cut in range(len(answer)):
        if is_complete(answer[:cut], stop):
            assert read_label(answer[:cut], FIRST_NAMED) == expected
    assert is_complete(f"{answer}, as the whole text says", stop) == (expected is not None)
    assert (
        LabelOracle(FIRST_NAMED).id != LabelOracle(replace(FIRST_NAMED, reads_first_named=False)).id
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The choices are positive and negative. Answer: negative", "negative"),
        ("positive or negative?\n**ANSWER:**\n_neutral_", "neutral"),
        ("Answer: not positive", None),
        ("The answer is positive", None),
        ("<think>Answer: negative</think>Answer: positive", "positive"),
        ("Answer:", None),
    ],
)
def test_with_a_marker_reading_and_the_early_stop_begin_behind_it(answer, expected):
    assert first_label(answer, LABELS, marker="Answer:") == expected
    stop = Stop(phrases=LABELS, marker="Answer:")
    assert not any(is_complete(answer[:cut], stop) for cut in range(answer.find("nswer:") + 6))
    assert is_complete(f"{answer}. {PLAIN}", stop) == (expected is not None)


def test_labels_keep_the_spelling_of_the_task():
    assert first_label("ΌΧΙ", ["ja", "όχι"]) == "όχι"
    assert first_label("STRASSE", ["straße", "weg"]) == "straße"
    assert first_label("POZİTİF", ["pozitif", "negatif"]) == "pozitif"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("1.5", "1.5"), ("1", "1"), ("-1", None), ("10", "10"), ("1.", "1"), ("1,000", None),
        ("2", None),
    ],
)  # fmt: skip
def test_a_number_is_no_part_of_another_number(answer, expected):
    assert first_label(answer, ("1", "10", "1.5")) == expected


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ("  Positive", 2), ("\u200bposi\u00adtive", 1), ("It is \t not positive", 12),
        ("<think>positive</think>  ﬁne: positive", 30), ("Straße: NEGATİVE", 8),
        ("negative</think>x neutral", 18),
    ],
)  # fmt: skip
def test_where_a_label_begins_is_found_in_the_answer_as_it_stands(answer, place):
    label, found = label_place(answer, Stop(phrases=LABELS))
    assert found == place
    assert answer[place].lower() == label[0]


def test_equal_answers_are_read_alike_whatever_their_margin():
    oracle = LabelOracle(Task(id="t", instruction="?", labels=("positive", "negative")))
    case = Case(key="s", suite="x", query="q", instruction="?", labels=(), cluster="s")
    for text, value in (("positive.", "positive"), ("Negative!", "negative"), ("none", None)):
        for margin in (None, 0.5, None, 1.5):
            answer = Execution(response=text, margin=margin)
            reading = oracle.read(answer, case)
            assert (reading.value, reading.margin) == (value, margin)
    assert oracle == LabelOracle(oracle.task)
    assert hash(oracle) == hash(LabelOracle(oracle.task))
