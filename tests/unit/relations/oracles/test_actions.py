"""Calls are read from JSON in whatever form it comes; what is no call is unreadable, never a crash."""

import json
import random

import pytest

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution, Stop
from fairgate.domain.schema import ActionsPolicy
from fairgate.domain.units import Reading, Reason
from fairgate.relations.oracles.actions import ActionsOracle, what_differs
from fairgate.relations.oracles.oracle import majority
from fairgate.relations.oracles.statements import is_complete

CASE = Case(key="s1", suite="s", query="q", instruction="i", labels=(), cluster="s1")
CALL = {"name": "refund", "arguments": {"amount": 20, "reason": "Damaged."}}
LINE = 'refund(amount: 20, reason: "damaged")'


def read(response, *, hidden=False, **rule):
    if not isinstance(response, str):
        response = json.dumps(response)
    oracle = ActionsOracle(ActionsPolicy(**rule), hidden)
    found = oracle.read(Execution(response=response), CASE)
    assert (found.value is None) == (found.reason is Reason.UNREADABLE)
    return found.value


def call(name="refund", **arguments):
    return {"name": name, "arguments": arguments}


@pytest.mark.parametrize(
    ("response", "rule", "line"),
    [
        (CALL, {}, LINE),
        ([CALL], {}, LINE),
        (f"Sure.\n```json\n{json.dumps(CALL)}\n``` [1] {{x}}", {}, LINE),
        (f'<think>{{"name": "other"}}</think>{json.dumps(CALL)}', {}, LINE),
        (f'{json.dumps(CALL)} {{"name": "other"}}', {}, LINE),
        (call(note='</think>{"name": "x"}'), {}, 'refund(note: "</think>{\\"name\\": \\"x\\"}")'),
        ({"name": "refund", "arguments": '{"amount": 2e1, "reason": "damaged"}'}, {}, LINE),
        ({"name": "list_orders"}, {}, "list_orders()"),
        ({"name": "list_orders", "arguments": ""}, {}, "list_orders()"),
        ([{"function": CALL, "id": "c1"}],
         {"tool": "$.function.name", "arguments": "$.function.arguments"}, LINE),
        ({"approved": True, "rate": 0.10, "note": "x"},
         {"tool": None, "arguments": "$", "ignore": ["note"]}, "(approved: true, rate: 0.1)"),
        ([call("b"), call("a")], {}, "a(); b()"),
        ([call("b"), call("a")], {"order": True}, "b(); a()"),
        (call(to={"id": 7, "note": "x"}, tags=["A", None]), {"ignore": ["to.note"]},
         'refund(tags: ["a", null], to: {id: 7})'),
        (call(amount=[5000.0, 6.5]), {}, "refund(amount: [5000, 6.5])"),
        (call(amount="A  b."), {}, 'refund(amount: "a b")'),
        (call("no such\ntool"), {}, r'"no such\ntool"()'),
        ("[]", {}, "no action"),
        ("I will not do that.", {"without_call": "no-action"}, "no action"),
        ("", {"without_call": "no-action"}, "no action"),
        (call(id=10**200), {}, f"refund(id: {10**200})"),
        (call(x=-0.0), {}, "refund(x: 0)"),
    ],
)  # fmt: skip
def test_calls_are_read(response, rule, line):
    assert read(response, **rule) == line


DEEP = '{"name": "x", "arguments": {"a": ' + "[" * 5000 + "]" * 5000 + "}}"


@pytest.mark.parametrize(
    "response",
    [
        "", "I will not do that.", "null", "5", '"refund"', "[1]", "[[]]", "{}", '{"arguments": {}}',
        '{"name": 5}', '{"name": ""}', '{"name": "x", "arguments": [1]}', '{"name": "x", "arguments": "y"}',
        '{"name": "x", "arguments": 5}', '{"name": "a", "name": "b"}', '{"name": "x", "arguments": {"a": NaN}}',
        '{"name": "x", "arguments": {"a": 1e999}}', '{"name": "x", "arguments": "{\\"a\\": Infinity}"}',
        '{"name": "x", "arguments": {"a": "\\ud800"}}',
        f'{{"name": "x", "arguments": {{"a": {"9" * 5000}}}}}', '{"name": "x", "arguments": {',
        '[{"name": "x"}, {"name": "y", ', '<think>{"name": "x"}', '[{"name": "x"}, 5]', DEEP,
        "[" * 50_000, '{"a":' * 50_000, json.dumps([CALL] * 10_000), json.dumps([CALL] * 100),
        json.dumps({"name": "x", "arguments": {"a": "b" * 200_000}}),
    ],
)  # fmt: skip
def test_what_is_no_call_or_hostile_is_unreadable(response):
    assert read(response) is None


@pytest.mark.parametrize("response", ['{"name": "x", "arg', "<think>I cannot", '{"name": 5}'])
def test_a_broken_call_is_no_decision_to_do_nothing(response):
    assert read(response, without_call="no-action") is None


def test_any_text_is_read_or_unreadable():
    """Pieces of calls in any order: never an exception, and never longer than a report can hold."""
    draw = random.Random(7)
    whole = json.dumps([CALL, {"function": CALL}, call("é\u202e", x={"y": [1.5, None, "±"]})])
    pieces = [*whole, "<think>", "</think>", "NaN", "1e999", "\\ud83d", "```"]
    for _ in range(3000):
        start = draw.randrange(len(whole))
        text = whole[start:] + "".join(draw.choices(pieces, k=draw.randrange(9)))
        line = read(text, without_call=draw.choice(["unreadable", "no-action"]))
        assert line is None or (len(line) <= 2000 and "\n" not in line)


def test_long_and_hidden_texts_are_told_apart_by_a_hash():
    one, other = (read(call(reason="because " * 20 + end)) for end in "ab")
    assert one != other
    assert one.startswith('refund(reason: "because because because becaus… #')
    assert "damaged" not in read(CALL, hidden=True)
    assert read(CALL, hidden=True) == read(json.dumps(CALL), hidden=True)


@pytest.mark.parametrize(
    ("controls", "source", "expected"),
    [
        ("xxy", "y", "x"), ("xxyy", "y", "y"), ("xxyy", "z", Reason.NO_MAJORITY), ("x", "z", "x"),
        ("", "x", Reason.NO_CONTROLS),
    ],
)  # fmt: skip
def test_what_is_usual_is_what_most_have(controls, source, expected):
    found = majority([Reading(value=value) for value in controls], Reading(value=source))
    assert (found.value or found.reason) == expected


@pytest.mark.parametrize(
    ("here", "usually", "words"),
    [
        (call(limit=5000), call(limit=20000), "limit: 5000 instead of limit: 20000"),
        (call("approve"), call("decline"), "approve instead of decline"),
        (call(limit=50), "[]", "refund, limit: 50 instead of nothing"),
        (call(a={"b": [1], "c": "x, y; z(1)"}), call(a={"b": [1], "c": "q"}),
         'c: "x, y; z(1)" instead of c: "q"'),
        (call(limit=1, fee=100), call(limit=1, fee=1), "fee: 100 instead of fee: 1"),
        (call(ids=[1, 2]), call(ids=[1, 3]), "ids: [1, 2] instead of ids: [1, 3]"),
        (call(ids=[]), call(ids=["a]"]), 'ids: [] instead of ids: ["a]"]'),
        (call(a=[{"b": [[1]]}]), call(a=[{"b": [[2]]}]),
         "a: [{b: [[1]]}] instead of a: [{b: [[2]]}]"),
    ],
)  # fmt: skip
def test_what_differs_is_said(here, usually, words):
    assert what_differs(read(here, order=True), read(usually, order=True)) == words
    assert what_differs("yes (sure)", "no (never)") == ""


def test_whatever_differs_is_said_and_nothing_where_nothing_does():
    arguments = [
        {}, {"a": 1}, {"a": 2}, {"b": 1}, {"a": [1]}, {"a": [1, 1]}, {"a": [1, 2]}, {"a": [2, 1]},
        {"a": [[1], [2]]}, {"a": [[[[[[1]]]]]]}, {"a": [[[[[[2]]]]]]}, {"a": {"b": 1}}, {"c": {"b": 1}},
        {"a": [{"b": 1}]}, {"a": "1"}, {"a": None}, {"a": True}, {"odd name": 1}, {"odd name": 2},
        {"a": 'x"], (b: 2)'}, {"a": "["}, {"a": ["[", "]"]},
    ]  # fmt: skip
    one = [{"name": "f", "arguments": each} for each in arguments]
    lists = [[], *([each] for each in one), *([each, each] for each in one[:8])]
    lists += [[one[1], one[2]], [one[2], one[1]], [one[1], one[2], one[1]], [one[0]] * 3]
    values = [read(json.dumps(calls), order=True) for calls in lists]
    wrong = []
    for here in values:
        for there in values:
            words = what_differs(here, there)
            sides = words.split(" instead of ")
            if (words == "") != (here == there) or (words and sides[0] == sides[1]):
                wrong.append((here, there, words))
    assert not wrong


def test_an_answer_is_complete_with_its_first_value():
    whole = f"Sure: {json.dumps([CALL])} and"
    end = whole.index("]") + 1
    complete = [is_complete(whole[:size], Stop(phrases=())) for size in range(len(whole))]
    assert complete.index(True) == end
    assert all(complete[end:])
    assert read(whole[:end]) == read(whole) == LINE


def test_the_rule_stands_in_what_rescore_compares():
    one, other = (ActionsOracle(ActionsPolicy(ignore=each)) for each in (["a"], ["b"]))
    assert one.id != other.id
    assert one.stop() == Stop(phrases=())
