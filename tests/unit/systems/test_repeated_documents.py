"""Reading lines without the documents that they repeat gives what reading them whole gives."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.errors import DataError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.io.tables import json_object
from fairgate.systems.recorded_answers import (
    RepeatedDocuments,
    RepeatedLines,
    SeenDocuments,
    line_from,
    read_recorded,
)

LISTS = (
    '[{"id": "d1"}]',
    '[{"id": "d1"}, {"id": "d2"}]',
    "[]",
    '[{"text": "\\"documents\\": [1]"}]',
    "[NaN]",
)
MEMBERS = (
    *(f'"documents": {documents}' for documents in LISTS),
    '"documents": null', '"documents":[{"id": "d1"}]', '"docum\\u0065nts": null',
    '"response": "\\"documents\\": [{\\"id\\": \\"d1\\"}]"', '"response": "x"',
    '"wave": {"documents": [{"id": "d1"}]}', '"wave": [{"documents": []}]', '"key": "s1"',
    '"documents": [{"id": "d1"}] x', '"documents": [{"id": "d1"}', '"a": 1,',
)  # fmt: skip


def whole(text):
    try:
        return read_json(text, strict=False)
    except JsonError as error:
        return str(error), error.line, error.column


def repeated(reader, text):
    try:
        return reader(text)
    except JsonError as error:
        return str(error), error.line, error.column


@given(st.lists(st.lists(st.sampled_from(MEMBERS), max_size=4), min_size=1, max_size=30))
def test_every_line_is_what_it_is_alone(lines):
    reader = RepeatedDocuments()
    for members in lines:
        text = "{" + ", ".join(members) + "}"
        assert repr(repeated(reader, text)) == repr(whole(text))


@pytest.mark.parametrize("text", ["", "[]", '"documents": [', '["documents": [1]]', "x" * 99])
def test_what_is_no_object_is_read_as_ever(text):
    reader = RepeatedDocuments()
    reader('{"documents": [1]}')
    assert repeated(reader, text) == whole(text)


def test_lists_near_each_other_are_one_object():
    reader = RepeatedDocuments()
    found = [reader(json.dumps({"key": str(n), "documents": [n % 3]})) for n in range(9)]
    assert [one["key"] for one in found] == [str(n) for n in range(9)]
    assert len({id(one["documents"]) for one in found}) == 3


def test_a_recording_of_repeated_and_other_documents_is_read_whole(tmp_path):
    rng, path, rows = random.Random(3), tmp_path / "a.jsonl", []
    for n in range(500):
        ids = [f"d{rng.randrange(3)}" for _ in range(rng.randrange(4))]
        rows.append({"key": f"s{n}", "response": "r", "documents": [{"id": one} for one in ids]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = read_recorded(str(path))
    for row in rows:
        found = answers.lookup("", row["key"]).documents
        assert [{"id": document.id} for document in found] == row["documents"]


def test_a_fault_of_a_line_is_named_in_its_own_column(tmp_path):
    path = tmp_path / "a.jsonl"
    good = '{"key": "s1", "documents": [{"id": "d1"}], "response": "x"}\n'
    path.write_text(good + good.replace("s1", "s2").replace('"x"', "x"))
    column = good.index('"x"') + 1
    with pytest.raises(DataError, match=f":2:{column}: broken JSON"):
        read_recorded(str(path))
    path.write_text(good + good.replace("s1", "s2").replace('"response"', '"unheard"'))
    with pytest.raises(DataError, match=":2: unknown field 'unheard'"):
        read_recorded(str(path))


BEGINNINGS = (
    '{"key": "s1"', '{"key": "s2#é/a b"', '{"key": ""', '{"key": "a\\"b"', '{"key": "a\tb"',
    '{"suite": "a", "key": "s1"', '{"suite": "", "key": "s1"', '{"suite": "a", "key": "s2"',
    '{"suite": "a", "suite": "a", "key": "s1"', '{"suite": null, "key": "s3"', '{"key":"s4"',
    '{"key": 5', '{"key": "s6" "key": "s1"', ' {"key": "s7"', '["key": "s1"',
)  # fmt: skip
REMAINDERS = (
    ', "response": "x"}', ', "response": "x", "documents": [{"id": "d1"}]}\n', "}", "", ": 1}",
    ', "response": "x", "suite": "b"}', ', "response": "y", "key": "s1"}', ', "response": null}',
    ', "response": "x", "margin": 1}', ', "response": "x", "margin": true}', ', "response": 1}',
    ', "response": "x"} {"key": "s1"}', ', "response": "\\ud800"}', ', "response": ""}\r\n',
)  # fmt: skip


@given(
    st.lists(
        st.tuples(st.sampled_from(BEGINNINGS), st.sampled_from(REMAINDERS)), min_size=1, max_size=40
    )
)
def test_every_line_says_what_it_says_without_those_before(lines):
    known = RepeatedLines()
    for text in map("".join, lines):
        try:
            alone = line_from(json_object(text, "p", 1), "p:1", SeenDocuments())
        except DataError:
            alone = None
        found = known.line(text)
        assert found is None or found == alone
        if alone is not None:
            known.add(text, alone)
            begins_plainly = text.startswith(('{"key": "s', '{"suite": "'))
            assert not begins_plainly or known.line(text) == alone


def test_what_is_known_is_forgotten_before_it_takes_much_room(monkeypatch):
    monkeypatch.setattr("fairgate.systems.recorded_answers._MOST_CHARACTERS", 100)
    known, seen = RepeatedLines(), SeenDocuments()
    lines = [json.dumps({"key": f"s{n}", "response": f"answer {n}"}) for n in range(50)]
    for text in lines:
        known.add(text, line_from(json.loads(text), "p", seen))
    held = sum(known.line(text) is not None for text in lines)
    assert 0 < held < 10
