"""Reading and ending take time in proportion to an answer's length, whatever it is made of."""

import time

import pytest

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution, Stop
from fairgate.domain.schema import ActionsPolicy
from fairgate.policy.definition_files import unknown_wordings
from fairgate.relations.oracles.actions import ActionsOracle
from fairgate.relations.oracles.choice import choice_stop, read_choice
from fairgate.relations.oracles.closed import read_ranking, read_yes_no
from fairgate.relations.oracles.judge import read_judgement
from fairgate.relations.oracles.label import first_label, why_unreadable
from fairgate.relations.oracles.score import read_score
from fairgate.relations.oracles.statements import is_complete

LABELS = ("positive", "negative", "neutral", "mixed")
CHOICES = ("The grandfather", "The grandson", "Can't be determined")
ENDS = Stop(phrases=LABELS)
CHOOSES = choice_stop(CHOICES, unknown_wordings())
ACTIONS = ActionsOracle(ActionsPolicy())
CASE = Case(key="k", suite="s", query="q", instruction="i", labels=(), cluster="k")
READERS = {
    "label": lambda text: first_label(text, LABELS),
    "label that repeats": lambda text: first_label(text, LABELS, shown=f"He says: {text}"),
    "marker": lambda text: first_label(text, LABELS, marker="Answer:"),
    "end of a label": lambda text: is_complete(text, ENDS),
    "why": lambda text: why_unreadable(text, ENDS),
    "choice": lambda text: read_choice(text, CHOICES, unknown_wordings()),
    "end of a choice": lambda text: is_complete(text, CHOOSES),
    "yes or no": read_yes_no,
    "score": read_score,
    "marked score": lambda text: read_score(f"Score: {text}", marker="Score:"),
    "ranking": lambda text: read_ranking(text, ("first aid", "music", "ticket sales")),
    "judgement": lambda text: read_judgement(text, "abc"),
    "actions": lambda text: ACTIONS.read(Execution(response=text), CASE),
}
SHAPES = (
    '"a ', "no, positive, ", "not positive ", "no, x, ", "\\boxed{", '{"a":', '[["a",', "<think>",
    "<a ", "*", "_ a", " ", "\n", "a b c ", "the answer is ", " :", "if ", "the grandfather or ",
    "the grandfather does not say ", "neither ", "1", "1. a ", "5 ", "손자인지 ", "> a\n", ".", "?",
    "word ", "therefore ", "so, ", "$", "\\", "'", "positive", "-", "1 (a ", "4 (", "yes no ",
    "option option ", "lacks the ", "a,", "->", "sentiment:", "the my overall ", "final correct ",
    '{"answer": "', "«", "»", "«»", "「", '."', "a. ", "answer\n", "<|", "'''", "assistantfinal",
    "[", "```\n", ">\n> ", '«"“', "if, is ", "not, is ", "but ", "<b>", "positive: ", "not so: ",
)  # fmt: skip
SIZE = 2_000


def seconds(reader, text):
    """The processor's time for one reading."""
    begin = time.process_time()
    reader(text)
    return time.process_time() - begin


def nested(size, within="positive"):
    return "«" * (size // 2) + within + "»" * (size // 2)


@pytest.mark.parametrize(
    "repeated",
    [(*SHAPES[::10], "?"), pytest.param(SHAPES, marks=pytest.mark.whole)],
    ids=["some", "all"],
)
def test_eight_times_the_length_takes_no_square_of_the_time(repeated):
    shapes = {shape: lambda size, shape=shape: shape * (size // len(shape)) for shape in repeated}
    shapes["nested guillemets"] = nested
    shapes["nested guillemets around a score"] = lambda size: nested(size, "4")
    slow = []
    for shape, of_size in shapes.items():
        for name, reader in READERS.items():
            # A square takes 64 times as long; a little time is none that could be compared.
            short = max(0.02, seconds(reader, of_size(SIZE)))
            # Garbage collection or a busy machine makes one reading slow, a square all three.
            if all(seconds(reader, of_size(8 * SIZE) + " ") > 24 * short for _ in range(3)):
                slow.append((shape, name))
    assert not slow
