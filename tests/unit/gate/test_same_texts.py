"""Documents of one text: retrieval has no choice, and the report says so."""

import pytest

from fairgate.domain.executions import Document, Execution
from fairgate.gate.notices import same_text_notices


def executions(*lists):
    return {
        ("s", str(n)): Execution(
            key=str(n),
            suite="s",
            response="x",
            documents=None
            if texts is None
            else tuple(Document(id=str(i), text=t) for i, t in enumerate(texts)),
        )
        for n, texts in enumerate(lists)
    }


@pytest.mark.parametrize(
    ("lists", "is_told"),
    [
        ([["a", "a"], ["a", "a"]], True),
        ([["a", "a"], ["a", "b"]], False),
        ([["a"], ["a"]], False),  # one document may be what fits all queries
        ([[None, None]], False),
        ([["a", None]], False),
        ([None, []], False),
        ([], False),
    ],
)
def test_notice(lists, is_told):
    notices = same_text_notices(executions(*lists))
    assert [("suite s: all documents" in notice) for notice in notices] == [True] * is_told
