"""Why nothing is read in an answer, and which of its words did it."""

from fairgate.domain.cases import Case, Task
from fairgate.domain.executions import Execution, Stop
from fairgate.policy.definition_files import unknown_wordings
from fairgate.relations.oracles.choice import choice_stop
from fairgate.relations.oracles.closed import RankingOracle, RatingOracle, YesNoOracle
from fairgate.relations.oracles.label import LabelOracle, why_unreadable
from fairgate.suites.readings import Readings

LABELS = Stop(phrases=("positive", "negative"))
MARKED = Stop(phrases=LABELS.phrases, marker="Answer:")
CHOICE = choice_stop(("The grandfather", "The grandson", "Unknown"), unknown_wordings())
CASE = Case(
    key="k", suite="s", query="q", instruction="i", labels=(), cluster="k", options=("tea", "milk", "water")
)  # fmt: skip


def test_the_reason_names_the_words_that_did_it():
    reasons = [
        (LABELS, "", "it is empty"),
        (LABELS, "I cannot judge that.", "it names no label"),
        (LABELS, "<think>positive", "its thinking has no end"),
        (LABELS, "It is not positive.", "'positive' is denied by 'not' before it"),
        (LABELS, "Positive is wrong.", "'positive' is denied by 'wrong' behind it"),
        (LABELS, "positive or negative", "'positive' is one of several"),
        (
            LABELS,
            "Positive things here, negative things there.",
            "'positive' is named, and nothing says it alone; 'negative' is named",
        ),
        (LABELS, "It is positive. Wait, I misread it.", "it says 'positive', and 'wait' as well"),
        (LABELS, "Positive. Or is it?", "it says 'positive', and 'or is it?' as well"),
        (LABELS, "Positive. It depends on the day.", "and 'it depends' as well"),
        (LABELS, "Positive, my manager would say negative.", "'positive', and 'negative' as well"),
        (LABELS, "Is it positive in your view?", "'positive' is inside a question"),
        (
            LABELS,
            "It matters whether it is positive",
            "'positive' is left open by 'whether' before it",
        ),
        (LABELS, 'They say "a positive view"', "it only quotes or repeats 'positive'"),
        (MARKED, "positive", "it does not hold the marker 'Answer:'"),
        (CHOICE, "B: the grandfather", "'b' is one of several"),
        (CHOICE, "Hello", "it names no option"),
        (CHOICE, "不是the grandson", "'the grandson' is denied by '不是' before it"),
    ]
    wrong = [
        (text, expected, said)
        for stop, text, expected in reasons
        if expected not in (said := why_unreadable(text, stop))
    ]
    assert not wrong


def test_every_oracle_says_why():
    task = Task(id="t", instruction="?", labels=("yes", "no"))
    said = {
        oracle.id: oracle.why(Execution(response=text), CASE)
        for oracle, text in (
            (LabelOracle(task), "maybe"), (YesNoOracle(), "not yes"), (RatingOracle(), "3 or 4"),
            (RankingOracle(), "tea, milk"),
        )
    }  # fmt: skip
    assert list(said.values()) == [
        "it names no label",
        "'yes' is denied by 'not' before it",
        "it is no single number",
        "not named exactly once: 'water'",
    ]


def test_a_suites_own_tags_of_thinking_are_read_by_every_oracle():
    own = (("[[notes]]", "[[/notes]]"),)
    answer = Execution(response="[[NOTES]]yes, 5[[/notes]] no")
    for oracle, value in ((YesNoOracle(), "no"),):
        readings = Readings("s", {"": oracle}, 0.0, {("s", "k"): answer}, own)
        readings.add(CASE)
        assert readings.one("k").value == value
