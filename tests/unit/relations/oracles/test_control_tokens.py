"""A control token of no known meaning leaves nothing to read, whatever tags of thinking are listed."""

import pytest

from fairgate.domain.executions import Stop
from fairgate.relations.oracles.closed import read_yes_no
from fairgate.relations.oracles.label import first_label, said_by, why_unreadable
from fairgate.relations.oracles.text import CONTROL_TOKENS, spoken

LABELS = ("positive", "negative")
STOP = Stop(phrases=LABELS)
FORMS = ("<|{}|>", "<|{}>", "<{}|>", "<|/{}|>", "</{}|>", "<\uff5c{}\uff5c>")
NAMES = ("channel", "plan", "x", "START_PLANNING", "tool\u2581calls", "vision_start", "think:off")
PLACES = (
    "{0}thought\nIt is negative.\n{1}positive",  # Gemma
    "It is negative, is it not?{1}positive",  # opened by the prompt
    "{0}It is negative.",  # cut off
    "negative{1}",
    "positive {0}",
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NAMES)
def test_beside_an_unknown_control_token_nothing_is_read(form, place, name):
    answer = place.format(form.format(name), FORMS[2].format(name))
    assert first_label(answer, LABELS) is None
    assert spoken(answer) == ""
    assert read_yes_no(answer.replace("negative", "no").replace("positive", "yes"), "") is None
    assert "control token '<" in why_unreadable(answer, STOP)


@pytest.mark.parametrize("name", sorted(CONTROL_TOKENS))
def test_what_only_begins_or_ends_an_answer_is_known(name):
    assert first_label(f"<|{name}|>positive<|{name.upper()}|>", LABELS) == "positive"


def test_tags_that_a_policy_names_are_known():
    answer = "<|channel>thought\nIt is negative.<channel|>positive"
    assert first_label(answer, LABELS) is None
    stop = Stop(phrases=LABELS, thinking=(("<|channel>thought", "<channel|>"),))
    assert LABELS[said_by(answer, stop).said.value] == "positive"


@pytest.mark.parametrize(
    "answer",
    [
        "f <| x |> positive",
        "<b>positive</b>",
        "a<b, c>d: positive",
        "x || y => positive",
        "<positive>",
    ],
)
def test_other_angles_and_strokes_are_no_control_tokens(answer):
    assert first_label(answer, LABELS) == "positive"
