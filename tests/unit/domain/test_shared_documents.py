"""Equal documents are held once, and nothing else about them changes."""

import pytest

from fairgate.domain import executions
from fairgate.domain.cases import Case
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Document, SharedDocuments
from fairgate.systems.recorded_answers import read_recorded


def documents(*names):
    return [Document(id=name, text=f"text of {name}", label="toxic", score=0.5) for name in names]


def test_equal_lists_are_one_object():
    shared = SharedDocuments()
    first, again = shared.held(documents("a", "b")), shared.held(documents("a", "b"))
    assert first == tuple(documents("a", "b"))
    assert again is first
    other = shared.held(documents("b", "a"))
    assert other == tuple(documents("b", "a"))
    assert other[0] is first[1]


def test_beyond_the_limit_lists_are_right_and_known_ones_still_shared(monkeypatch):
    monkeypatch.setattr(executions, "MOST_SHARED", 2)
    shared = SharedDocuments()
    first = shared.held(documents("a", "b"))
    assert shared.held(documents("c", "d")) == tuple(documents("c", "d"))
    assert shared.held(documents("e", "f", "a")) == tuple(documents("e", "f", "a"))
    assert shared.held(documents("a", "b")) is first


def line(key, document):
    return f'{{"key": "{key}", "response": "r", "documents": [{document}]}}\n'


def _case(key):
    return Case(key=key, suite="s", query="", instruction="", labels=(), cluster="c")


@pytest.mark.parametrize(
    ("valid", "broken", "said"),
    [
        ('{"id": "1", "score": 1.0}', '{"id": "1", "score": true}', "score is True"),
        ('{"id": 1}', '{"id": true}', "'id' holds True"),
        ('{"id": 1}', '{"id": 1.0}', "'id' holds 1.0"),
        ('{"id": "a"}', '{"id": ["a"]}', "'id' holds"),
        ('{"id": "a"}', '{"id": "a", "text": {"b": 1}}', "'text' holds"),
        ('{"id": "a"}', '{"id": "a", "url": null}', "unknown field 'url'"),
        ('{"id": "a"}', '"a"', "expected an object"),
    ],
)
def test_what_equals_a_valid_document_is_checked_by_itself(tmp_path, valid, broken, said):
    path = tmp_path / "answers.jsonl"
    path.write_text(line("k1", valid) + line("k2", broken))
    with pytest.raises(DataError, match=rf"answers.jsonl:2: documents\[0\].*{said}|{said}"):
        read_recorded(str(path))


def test_an_id_that_is_a_number_is_its_digits(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text(line("k1", '{"id": 7}') + line("k2", '{"id": "7"}'))
    answers = read_recorded(str(path))
    assert answers.answer(_case("k1")).documents == answers.answer(_case("k2")).documents
