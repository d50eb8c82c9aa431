"""Degrees out of an endpoint's listed tokens: summed, told apart, bounded, never believed."""

import math

import pytest

from fairgate.domain.executions import GenerationRequest, Stop
from fairgate.systems.listed_tokens import lacking_in, listed_degrees

LABELS = ("negative", "positive", "neutral", "mixed")
GROUPS = {"mixed": "neutral"}


def request(labels=LABELS, groups=GROUPS):
    forms = tuple(
        (groups.get(label, label), prefix + word)
        for prefix in ("", "- ")
        for label in labels
        for word in (label, label.capitalize())
    )
    return GenerationRequest(prompt="?", labels=labels, stop=Stop(phrases=labels), forms=forms)


def token(text, probability, **others):
    listed = {text: probability} | {name.replace("_", " "): p for name, p in others.items()}
    top = [{"token": name, "logprob": math.log(p)} for name, p in listed.items()]
    return {"token": text, "logprob": math.log(probability), "top_logprobs": top}


def choice(*tokens):
    return {"logprobs": {"content": list(tokens)}}


def probabilities(found):
    return {
        label: pytest.approx(math.exp(nats), rel=1e-3) for label, nats in found.log_probabilities
    }


def test_tokens_of_a_label_are_summed_behind_whatever_the_answer_begins_with():
    first = token("The", 0.9, Sure=0.1)
    rest = [
        token(" answer is", 1.0),
        token(" positive", 0.5, negative=0.2, Negative=0.1, mixed=0.1),
    ]
    found = listed_degrees(choice(first, *rest, token(".", 0.9)), request())
    assert probabilities(found) == {"negative": 0.3, "positive": 0.5, "neutral": 0.1}
    assert found.at_most == ()


def test_the_lists_of_older_apis_are_read_alike():
    tokens = [token("The", 0.9, Sure=0.1), token(" positive", 0.5, negative=0.2, mixed=0.1)]
    tops = [{one["token"]: one["logprob"] for one in each["top_logprobs"]} for each in tokens]
    older = {
        "tokens": [each["token"] for each in tokens],
        "token_logprobs": [each["logprob"] for each in tokens],
        "top_logprobs": tops,
    }
    found = listed_degrees({"logprobs": older}, request())
    assert found == listed_degrees(choice(*tokens), request())
    assert found == listed_degrees({"logprobs": tokens}, request())
    assert not lacking_in(older)
    assert lacking_in({"tokens": ["a"]})


def test_labels_that_begin_alike_are_told_apart_at_the_next_token():
    found = listed_degrees(
        choice(token("ne", 0.6, positive=0.3, mixed=0.05), token("utral", 0.75, gative=0.25)),
        request(),
    )
    expected = {"negative": 0.6 * 0.25, "positive": 0.3, "neutral": 0.6 * 0.75 + 0.05}
    assert probabilities(found) == expected
    toxic = request(("non-toxic", "toxic", "non toxic"), {"non toxic": "non-toxic"})
    found = listed_degrees(
        choice(token("non", 0.7, toxic=0.2, not_=0.1), token("-toxic", 0.9)), toxic
    )
    assert probabilities(found) == {"non-toxic": 0.7, "toxic": 0.2}


def test_a_label_that_is_not_listed_has_the_last_listed_value_and_is_marked():
    found = listed_degrees(choice(token("positive", 0.9, negative=0.06, maybe=0.01)), request())
    assert probabilities(found) == {"positive": 0.9, "negative": 0.06, "neutral": 0.01}
    assert found.at_most == ("neutral",)
    # What the listed ones leave is a bound, too.
    found = listed_degrees(choice(token("positive", 0.7, negative=0.299)), request())
    assert probabilities(found)["neutral"] == pytest.approx(0.001, rel=0.01)
    assert found.mass <= 1


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"logprobs": None},
        {"logprobs": []},
        {"logprobs": {"content": None}},
        {"logprobs": {"content": []}},
        {"logprobs": {"content": ["positive"]}},
        {"logprobs": {"content": [{"token": "positive"}]}},
        {"logprobs": {"content": [{"token": 3, "logprob": -1.0}]}},
        {"logprobs": {"content": [{"token": "positive", "logprob": "0"}]}},
        {"logprobs": {"content": [{"token": "positive", "logprob": float("nan")}]}},
        {"logprobs": {"content": [{"token": "positive", "logprob": True}]}},
        choice(token("dunno", 0.9, positive=0.1)),
        {"logprobs": {"content": [token("x", 0.5)] * 100_000}},
    ],
    ids=lambda said: str(said)[:40],
)
def test_what_lists_nothing_gives_no_degrees(said):
    assert listed_degrees(said, request()) is None


def test_values_beyond_reason_are_cut():
    entry = {
        "token": "positive",
        "logprob": 1e-9,
        "top_logprobs": [{"token": "negative", "logprob": -9999.0}],
    }
    found = listed_degrees({"logprobs": {"content": [entry]}}, request())
    assert found.mass <= 1
    assert all(math.isfinite(nats) and nats <= 0 for _, nats in found.log_probabilities)
