"""Documents of one text: retrieval has no choice, and the report says so."""

import pytest

from fairgate.domain.executions import Document, Execution
from fairgate.gate.notices import same_text_notices, shown_documents


def execution(number, texts):
    shown = texts and tuple(Document(id=str(place), text=text) for place, text in enumerate(texts))
    return Execution(response="x", documents=shown)


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
    executions = {("s", str(n)): execution(n, texts) for n, texts in enumerate(lists)}
    notices = same_text_notices(shown_documents(executions))
    assert [("suite s: all documents" in notice) for notice in notices] == [True] * is_told
