"""Answers that were produced elsewhere."""

import contextlib
import json
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairgate.domain.cases import Case
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Document, Execution
from fairgate.gate.run_folder import document_to, execution_lines
from fairgate.systems import recorded_answers
from fairgate.systems.recorded_answers import read_recorded


def case(suite, key):
    return Case(key=key, suite=suite, query="", instruction="", labels=(), cluster="")


def recorded(tmp_path, *records):
    path = tmp_path / "answers.jsonl"
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
    return read_recorded(str(path))


def test_an_answer_is_found_by_its_key_with_blanks_kept(tmp_path):
    row = {
        "key": "fsa3#race/middle eastern", "response": " Positive ", "options": ["a", "b"],
        "documents": [{"id": 4, "label": "toxic", "score": 1}, {"text": "t"}, {}],
    }  # fmt: skip
    answers = recorded(tmp_path, row)
    found = answers.answer(case("sentiment", "fsa3#race/middle eastern"))
    assert (found.response, found.options) == (" Positive ", ("a", "b"))
    expected = Document(id="4", label="toxic", score=1.0), Document(text="t"), Document()
    assert found.documents == expected
    assert answers.answer(case("sentiment", "fsa3#race/middle  eastern")) is None


def test_a_line_may_be_for_one_suite_or_for_all(tmp_path):
    answers = recorded(
        tmp_path,
        {"key": "s1", "response": "any"},
        {"key": "s1", "suite": "b", "response": "any"},
        {"key": "s2", "suite": "a", "response": "only a"},
        {"key": "s2", "suite": "b", "response": "only b"},
    )
    assert answers.answer(case("a", "s1")).response == "any"
    assert answers.answer(case("b", "s2")).response == "only b"
    assert answers.answer(case("c", "s2")) is None
    assert answers.keys() == [("", "s1"), ("b", "s1"), ("a", "s2"), ("b", "s2")]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "other",
    [
        {"response": "negative"},
        {"response": None},
        {"response": "positive", "margin": 0.5},
        {"response": "positive", "documents": []},
        {"response": "positive", "options": ["a"]},
    ],
)
def test_a_line_of_one_suite_does_not_shadow_another_answer(tmp_path, other, turned):
    lines = [{"key": "s1", "response": "positive"}, {"key": "s1", "suite": "b", **other}]
    lines = [X, *lines[:: -1 if turned else 1]]
    said = r":3: key 's1' is answered differently at .*:2: .*suite 'b'"
    with pytest.raises(DataError, match=said):
        recorded(tmp_path, *lines)


def test_null_is_a_missing_answer_and_empty_text_is_an_answer(tmp_path):
    answers = recorded(tmp_path, {"key": "a", "response": None}, {"key": "b", "response": ""})
    assert answers.answer(case("s", "a")).response is None
    assert answers.answer(case("s", "a")).documents is None
    assert answers.answer(case("s", "b")).response == ""


def test_a_plan_line_with_a_response_is_a_recorded_line_and_twice_it_is_one(tmp_path):
    line = {"key": "a", "wave": 1, "query": "q", "prompt": "p", "options": [], "response": "r"}
    answers = recorded(tmp_path, line, {"response": "r", "key": "a"})
    assert answers.answer(case("s", "a")).response == "r"
    assert len(answers.keys()) == 1


X = {"key": "a", "response": "x"}


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "answers.jsonl: is empty"),
        ([X, X | {"key": "b"}, X | {"response": "y"}], r":3: key 'a' was answered differently at .*answers.jsonl:1;"),
        ([{"key": "a", "respnse": "x"}], r":1: unknown field 'respnse'; did you mean `response`"),
        ([{"response": "x"}], r":1: no `key`"),
        ([X | {"key": ""}], r":1: no `key`"),
        ([{"key": "a"}], r":1: no `response`"),
        ([X | {"key": 1}], r":1: 'key' holds 1 \(int\)"),
        ([X | {"response": ["x"]}], r":1: 'response' holds \['x'\]"),
        ([X | {"documents": "d"}], r":1: documents is 'd'"),
        ([X | {"documents": ["d"]}], r":1: documents\[0\] is 'd'"),
        ([X | {"documents": [{}, {"txt": "d"}]}], r":1: documents\[1\]: unknown field 'txt'; did you mean `text`"),
        ([X | {"documents": [{"score": "1"}]}], r"score is '1'"),
        ([X | {"documents": [{"score": float("nan")}]}], "score is nan"),
        ([X | {"documents": [{"label": True}]}], "'label' holds True"),
        ([X | {"options": [1]}], r"'options\[0\]' holds 1"),
        (['{"key": '], r":1:9: broken JSON"),
        (['{"key": "a", "response": "y", "response": "n"}'], r":1: the key 'response' occurs twice in one object"),
        (['{"key": "a", "response": "x", "documents": [{"label": "t", "label": "f"}]}'], r":1: the key 'label' occurs twice in one object"),
        (['{"key": "a", "response": "x", "margin": 1' + "0" * 400 + "}"], ":1: a number of 401"),
        (['{"key": "\\ud800", "response": "x"}'], ":1: 'key' holds half a surrogate pair"),
        (['{"key": "a", "response": ' + "[" * 900 + "]" * 900 + "}"], ":1: nested deeper"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(tmp_path, records, message):
    with pytest.raises(DataError, match=message):
        recorded(tmp_path, *records)


@pytest.mark.parametrize(
    ("valid", "broken", "said"),
    [
        ({"id": "1", "score": 1.0}, {"id": "1", "score": True}, "score is True"),
        ({"id": 1}, {"id": True}, "'id' holds True"),
        ({"id": 1}, {"id": 1.0}, "'id' holds 1.0"),
        ({"id": "a"}, {"id": ["a"]}, "'id' holds"),
        ({"id": "a"}, {"id": "a", "text": {"b": 1}}, "'text' holds"),
        ({"id": "a"}, {"id": "a", "url": None}, "unknown field 'url'"),
        ({"id": "a"}, "a", "expected an object"),
    ],
)
def test_what_equals_a_valid_document_is_checked_by_itself(tmp_path, valid, broken, said):
    with pytest.raises(DataError, match=rf"answers.jsonl:2: documents\[0\].*{said}|{said}"):
        recorded(tmp_path, X | {"documents": [valid]}, X | {"key": "b", "documents": [broken]})


def test_an_id_that_is_a_number_is_its_digits(tmp_path):
    rows = X | {"documents": [{"id": 7}]}, X | {"key": "b", "documents": [{"id": "7"}]}
    answers = recorded(tmp_path, *rows)
    assert answers.answer(case("s", "a")).documents == answers.answer(case("s", "b")).documents


def test_a_line_is_the_execution_whether_or_not_its_documents_were_written_before():
    shared = (Document(id="1", text='a "é" \u2028', score=0.1 + 0.2), Document())
    equal = (Document(id="1", text='a "é" \u2028', score=0.1 + 0.2), Document())
    lists = [shared, equal, shared, (), None, (Document(label="x"),), shared, [], ()]
    executions = [
        Execution(
            documents=documents, response=[None, "", "a, b"][n % 3], margin=[None, 0.5, 1e-07][n % 3],
            options=[(), ("A", "B")][n % 2],
        )
        for n, documents in enumerate(lists)
    ]  # fmt: skip
    expected = []
    named = [(("ü" * (n % 2), f"s1#é/{n}"), one) for n, one in enumerate(executions)]
    for (suite, key), one in named:
        documents = None if one.documents is None else [*map(document_to, one.documents)]
        row = {"suite": suite, "key": key, "response": one.response}
        more = {"margin": one.margin, "documents": documents, "options": list(one.options) or None}
        row |= {name: value for name, value in more.items() if value is not None}
        expected.append(json.dumps(row, ensure_ascii=False))
    assert list(execution_lines(named)) == expected
    # Made as they are asked for: the next list may lie where the one before did.
    many = ((("", ""), Execution(documents=(Document(id=str(n)),))) for n in range(5000))
    for n, line in enumerate(execution_lines(many)):
        assert json.loads(line)["documents"] == [{"id": str(n)}]


def test_reading_and_writing_take_little_more_memory_than_the_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(recorded_answers, "_MOST_KNOWN", 30)
    documents = [{"id": f"d{n}", "label": "toxic", "score": 0.5} for n in range(4)]
    rows = (
        {"key": f"s{n // 30}#{n % 30}", "response": f"Positive {n}.", "documents": documents}
        for n in range(3000)
    )
    recorded(tmp_path, *rows)
    tracemalloc.start()
    answers = read_recorded(str(tmp_path / "answers.jsonl"))
    live, peak = tracemalloc.get_traced_memory()
    assert peak < 1.25 * live
    tracemalloc.reset_peak()
    held = [(name, answers.answer(case(*name))) for name in list(answers.keys())]
    before = tracemalloc.get_traced_memory()[0]
    for _ in execution_lines(held):
        pass
    assert tracemalloc.get_traced_memory()[1] - before < 0.25 * live
    tracemalloc.stop()


BEGINNINGS = (
    '{"key": "s1"', '{"key": "s2#é/a b"', '{"key": ""', '{"key": "a\\"b"', '{"key": "a\tb"',
    '{"suite": "a", "key": "s1"', '{"suite": "", "key": "s1"', '{"suite": "a", "key": "s2"',
    '{"suite": "a", "suite": "a", "key": "s1"', '{"suite": null, "key": "s3"', '{"key":"s4"',
    '{"key": 5', '{"key": "s6" "key": "s1"', ' {"key": "s7"', '["key": "s1"',
)  # fmt: skip
REMAINDERS = (
    ', "response": "x"}', ', "response": "x", "documents": [{"id": "d1"}]}', "}", "", ": 1}",
    ', "response": "x", "suite": "b"}', ', "response": "y", "key": "s1"}', ', "response": null}',
    ', "response": "x", "margin": 1}', ', "response": "x", "query": "q"}', ', "response": 1}',
    ', "response": "x"} {"key": "s1"}', ', "response": "\\ud800"}', ', "response": "", "plan": "p"}',
)  # fmt: skip
LINES = st.tuples(st.sampled_from(BEGINNINGS), st.sampled_from(REMAINDERS)).map("".join)


def read_lines(path, *lines):
    """Return what each line says, up to the first that cannot be read."""
    path.write_text("".join(f"{line}\n" for line in ("", "", *lines)))
    read = []
    with contextlib.suppress(DataError):
        read += ((row.name, row.answer, row.plan) for row in recorded_answers._by_key(str(path)))
    return read


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, min_size=2, max_size=20))
def test_every_line_says_what_it_says_without_those_before(tmp_path, lines):
    path = tmp_path / "lines.jsonl"
    alone = [read_lines(path, line) for line in lines]
    valid = [line for line, read in zip(lines, alone, strict=True) if read]
    assert read_lines(path, *valid) == [row for read in alone for row in read]
    broken = next((line for line, read in zip(lines, alone, strict=True) if not read), None)
    if broken is not None:
        with pytest.raises(DataError):
            recorded(tmp_path, *valid, broken)
