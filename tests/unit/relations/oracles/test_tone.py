"""The tone oracle reads what is said, all of it, and says when it cannot."""

import pytest
from fakes.classifiers import WordClassifier

from fairgate.domain.cases import Case, Task
from fairgate.domain.executions import Execution
from fairgate.domain.ports import Runtime
from fairgate.domain.units import Reason
from fairgate.relations.oracles.label import LabelOracle
from fairgate.relations.oracles.oracle import read_together
from fairgate.relations.oracles.text import spoken
from fairgate.relations.oracles.tone import ToneOracle, oracle_of
from fairgate.suites.metamorphic.policy import ClassifierPolicy
from fairgate.suites.readings import Readings
from fairgate.systems.classifiers import open_classifier

CASE = Case(key="s1", suite="s", query="q", instruction="i", labels=(), cluster="s1")
TONES = WordClassifier({"glad": "happy", "angry": "angry"}, margin=0.5)
FEELINGS = WordClassifier({"glad": "positive", "angry": "negative"}, margin=0.25, name="feelings")


def read(oracle, response):
    return oracle.read(Execution(response=response), CASE)


@pytest.mark.parametrize(
    ("classifiers", "response", "value", "margin"),
    [
        ((TONES,), "I am glad about it", "happy", 0.5),
        ((TONES, FEELINGS), "so angry", "angry, negative", 0.25),  # the thinner margin counts
        ((TONES,), "<think>angry angry</think>I am glad", "happy", 0.5),
    ],
)
def test_the_tone_of_what_is_said_has_its_margin_and_sentiment_beside_it(
    classifiers, response, value, margin
):
    found = read(ToneOracle(*classifiers), response)
    assert (found.value, found.margin, found.reason) == (value, margin, None)


@pytest.mark.parametrize(
    "response",
    [
        "", "  \n", "...", "?!", "\u2013 \u2026", "<think>I am glad", "<think>glad</think>",
        "\U0001f600",
    ],
)  # fmt: skip
def test_an_answer_without_a_word_is_unreadable(response):
    assert read(ToneOracle(TONES), response).reason is Reason.UNREADABLE


@pytest.mark.parametrize(
    ("response", "shown"),
    [("a</think>b", "a</think>b"), ("<think>a</think>b", "b"), ("a<think>b</think>", "a"),
     ("</think>", "</think>"), ("x</think>y<think>z</think>", "x</think>y")],
)  # fmt: skip
def test_a_closing_tag_alone_hides_nothing_from_a_judge(response, shown):
    assert spoken(response, whole=True) == shown
    assert spoken("<think>a</think>b") == "b"


def test_an_answer_that_would_be_cut_is_unreadable_and_says_why():
    oracle, long = ToneOracle(TONES), "glad " * 100 + "angry"
    assert read(oracle, long).reason is Reason.UNREADABLE
    assert "longer than what the classifier reads" in oracle.why(Execution(response=long), CASE)
    assert read(oracle, "glad " * 100).value == "happy"
    assert read(oracle, f"<think>{long}</think>glad").value == "happy"


def test_the_shipped_classifier_knows_what_it_would_cut():
    tone = open_classifier(Runtime(), ClassifierPolicy(model="minilm-tone"), None)
    happy, sad = "I am so happy today. " * 30, "I am so sad, and all is lost. " * 30
    assert [tone.cuts(text) for text in ("I am so happy.", happy, happy + sad)] == [
        False, False, True
    ]  # fmt: skip
    assert read(ToneOracle(tone), happy).value == "happy"
    assert read(ToneOracle(tone), happy + sad).reason is Reason.UNREADABLE


def test_a_thin_margin_is_unstable():
    oracle = ToneOracle(WordClassifier({}, margin=0.01))
    assert read_together([read(oracle, "well")], oracle, 0.02).reason is Reason.UNSTABLE
    assert read_together([read(oracle, "well")], oracle, 0.005).value == "neutral"


def test_another_classifier_is_another_oracle():
    ids = {ToneOracle(TONES).id, ToneOracle(FEELINGS).id, ToneOracle(TONES, FEELINGS).id}
    assert len(ids) == 3


def test_the_task_chooses_the_oracle():
    labelled = Task(id="t", instruction="i", labels=("a", "b"))
    free = Task(id="t", instruction="i", labels=(), tone=TONES, sentiment=FEELINGS)
    assert isinstance(oracle_of(labelled, with_sentiment=True), LabelOracle)
    assert oracle_of(free) == ToneOracle(TONES)
    assert oracle_of(free, with_sentiment=True) == ToneOracle(TONES, FEELINGS)


def test_all_answers_are_classified_together_and_once():
    classifier = WordClassifier({"glad": "happy"})
    executions = {("s", key): Execution(response=f"glad {key}") for key in ("a", "b", "c")}
    readings = Readings("s", {"": ToneOracle(classifier)}, 0.0, executions)
    for key in ("a", "b", "c"):
        readings.add(Case(key=key, suite="s", query=key, instruction="i", labels=(), cluster=key))
    assert readings.one("b").value == "happy"
    assert classifier.asked[0] == ["glad a", "glad b", "glad c"]
    assert all(len(asked) == 1 for asked in classifier.asked[1:])
