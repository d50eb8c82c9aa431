"""What the store remembers, read back whoever edited it."""

import json
import math
import random

import pytest
from fakes.mutations import NO_JSON, STRANGE, mutated

from fairgate.domain.executions import Document, Execution
from fairgate.domain.ports import SILENT
from fairgate.systems.execute import (
    Stage,
    answer_from,
    answer_to,
    documents_from,
    documents_to,
    scores_from,
)

DOCUMENTS = (
    Document(id="d1", text="a\u2028b", label=None, score=0.5),
    Document(id=None, text=None, label="x", score=None),
)
ANSWERS = [
    Execution(response="positive", margin=0.25, tokens=3, stopped="label"),
    Execution(response="", documents=DOCUMENTS),
    Execution(response="x", documents=()),
]


class Edited(dict):
    def get_many(self, kind, keys):
        return self


def read_back(keys, stored, decode):
    made = lambda missing: (each for each in ())  # noqa: E731
    stage = Stage(name="", kind="", decode=decode, encode=json.dumps, make=made)
    return stage.results(keys, Edited(stored), SILENT)


def back(text, decode):
    return read_back({"key": "k"}, {"k": text}, lambda _, value: decode(value)).get("key")


def test_what_was_stored_comes_back():
    assert back(documents_to(DOCUMENTS), lambda v: documents_from(v, 2)) == DOCUMENTS
    assert back(documents_to(DOCUMENTS), lambda v: documents_from(v, 3)) == DOCUMENTS
    assert back(documents_to(DOCUMENTS), lambda v: documents_from(v, 1)) is None
    for answer in ANSWERS:
        assert back(answer_to(answer), answer_from) == answer
    assert back("[0.5, -3]", lambda v: scores_from(v, 2)) == [0.5, -3]
    assert read_back({"a": "1", "b": "2"}, {"2": "[1]"}, lambda _, v: v) == {"b": [1]}


def is_sound(value):
    match value:
        case Execution():
            texts, numbers = [value.response], [value.tokens, value.margin]
            is_text = all(isinstance(each, str) for each in texts)
            return is_text and are_finite(numbers) and is_sound(value.documents or ())
        case Document():
            texts = [value.text, value.id]
            return all(isinstance(each, str | None) for each in texts) and are_finite([value.score])
        case list() | tuple():
            return all(map(is_sound, value))
    return are_finite([value])


def are_finite(numbers):
    return all(number is None or math.isfinite(number) for number in numbers)


@pytest.mark.parametrize("seed", range(200))
def test_what_was_edited_is_sound_or_missing(seed):
    rng = random.Random(seed)
    for text, decode in (
        (documents_to(DOCUMENTS), lambda v: documents_from(v, 2)),
        *((answer_to(answer), answer_from) for answer in ANSWERS),
        ("[0.5, -3, 1]", lambda v: scores_from(v, 3)),
    ):
        assert is_sound(back(json.dumps(mutated(json.loads(text), rng)), decode))


@pytest.mark.parametrize("text", [*NO_JSON, *(json.dumps(v).encode() for v in STRANGE)])
def test_what_is_something_else_is_missing(text):
    text = text.decode("utf-8", "surrogateescape")
    # That nothing was found is a result too.
    assert back(text, lambda v: documents_from(v, 2)) in (None, ())
    assert back(text, answer_from) is None
    assert back(text, lambda v: scores_from(v, 2)) is None
