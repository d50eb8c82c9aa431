"""Which label an answer says: every phrasing, whole and cut where generation may stop."""

import pytest
from fakes.answer_phrasings import PHRASINGS

from fairgate.domain.cases import Case, Task
from fairgate.domain.executions import Execution, Stop
from fairgate.relations.oracles.choice import is_complete
from fairgate.relations.oracles.label import LabelOracle, first_label, label_place

LABELS = ("positive", "negative", "neutral", "mixed")


def test_phrasings_are_read_as_written_down_whole_and_stopped():
    wrong = []
    for phrasing in PHRASINGS:
        text, stop = phrasing.generated, phrasing.stop
        cuts = [] if stop is None else [n for n in range(len(text)) if is_complete(text[:n], stop)]
        for part in (phrasing.text, text, *(text[:cut] for cut in cuts)):
            read = phrasing.reading(part)
            if read != phrasing.read:
                wrong.append((phrasing.task, part, phrasing.read, read))
    assert not wrong


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
    assert is_complete(f"{answer}. It is so", stop) == (expected is not None)


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
            answer = Execution(key="s", suite="x", response=text, margin=margin)
            reading = oracle.read(answer, case)
            assert (reading.value, reading.margin) == (value, margin)
    assert oracle == LabelOracle(oracle.task)
    assert hash(oracle) == hash(LabelOracle(oracle.task))
