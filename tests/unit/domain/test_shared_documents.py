"""Equal documents are held once, and nothing else about them changes."""

from fairgate.domain import executions
from fairgate.domain.executions import Document, SharedDocuments


def documents(*names):
    return [Document(id=name, text=f"text of {name}", label="toxic", score=0.5) for name in names]


def test_equal_lists_are_one_object():
    shared = SharedDocuments()
    first, again = shared.list_of(documents("a", "b")), shared.list_of(documents("a", "b"))
    assert first == tuple(documents("a", "b"))
    assert again is first
    other = shared.list_of(documents("b", "a"))
    assert other == tuple(documents("b", "a"))
    assert other[0] is first[1]


def test_beyond_the_limit_lists_are_right_and_known_ones_still_shared(monkeypatch):
    monkeypatch.setattr(executions, "MOST_SHARED", 2)
    shared = SharedDocuments()
    first = shared.list_of(documents("a", "b"))
    assert shared.list_of(documents("c", "d")) == tuple(documents("c", "d"))
    assert shared.list_of(documents("e", "f", "a")) == tuple(documents("e", "f", "a"))
    assert shared.list_of(documents("a", "b")) is first
