"""Calls are read from JSON in whatever form it comes; what is no call is unreadable, never a crash."""

import json
import random

import pytest

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution, Stop
from fairgate.domain.schema import ActionsPolicy
from fairgate.domain.units import Reading, Reason
from fairgate.relations.oracles.actions import ActionsOracle, what_differs
from fairgate.relations.oracles.choice import is_complete
from fairgate.relations.oracles.oracle import agree, majority

CASE = Case(key="s1", suite="s", query="q", instruction="i", labels=(), cluster="s1")
CALL = {"name": "refund", "arguments": {"amount": 20, "reason": "Damaged."}}
LINE = 'refund(amount: 20, reason: "damaged")'


def read(response, *, hidden=False, **rule):
    if not isinstance(response, str):
        response = json.dumps(response)
    oracle = ActionsOracle(ActionsPolicy(**rule), hidden)
    found = oracle.read(Execution(key="s1", suite="s", response=response), CASE)
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
        (call(amount=[5, 6.5]), {"tolerance_percent": {"amount": 5}},
         "refund(amount: [5±5%, 6.5±5%])"),
        (call(amount=5000.0), {"tolerance": {"amount": 0.5}}, "refund(amount: 5000±0.5)"),
        (call(reason="5±9"), {"tolerance": {"amount": 9}}, r'refund(reason: "5\u00b19")'),
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
        '{"name": "x", "arguments": {"a": "\\ud800"}}', '{"name": "x", "arguments": {"amount": "20"}}',
        f'{{"name": "x", "arguments": {{"a": {"9" * 5000}}}}}', '{"name": "x", "arguments": {',
        '[{"name": "x"}, {"name": "y", ', '<think>{"name": "x"}', '[{"name": "x"}, 5]', DEEP,
        "[" * 50_000, '{"a":' * 50_000, json.dumps([CALL] * 10_000), json.dumps([CALL] * 100),
        json.dumps({"name": "x", "arguments": {"a": "b" * 200_000}}),
    ],
)  # fmt: skip
def test_what_is_no_call_or_hostile_is_unreadable(response):
    assert read(response, tolerance={"amount": 5}) is None


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
    ("left", "right", "rule", "same"),
    [
        (5000, 5250, {"tolerance_percent": {"limit": 5}}, True),
        (5000, 5264, {"tolerance_percent": {"limit": 5}}, False),
        (-5000, -4750, {"tolerance_percent": {"limit": 5}}, True),
        (0, 0.01, {"tolerance_percent": {"limit": 5}}, False),
        (1.1, 1.0, {"tolerance": {"limit": 0.1}}, True),
        (10**200, 10**200 + 1, {"tolerance": {"limit": 1}}, True),
        (5000, 5000.0, {}, True),
        (5000, "5000", {}, False),
        (True, 1, {}, False),
        (5, None, {"tolerance": {"limit": 500}}, False),
        ("A  b.", "a B", {}, True),
    ],
)
def test_numbers_agree_within_the_tolerance_and_all_else_exactly(left, right, rule, same):
    one, other = (read(call(limit=value), **rule) for value in (left, right))
    assert one
    assert other
    assert (agree(one, other), agree(other, one)) == (same, same)


def test_a_missing_number_and_another_tool_are_never_within_a_tolerance():
    rule = {"tolerance": {"limit": 1000}}
    lines = [read(each, **rule) for each in (call(limit=1), call(), call("x", limit=1), "[]")]
    assert [agree(lines[0], each) for each in lines] == [True, False, False, False]


def test_calls_of_one_tool_are_compared_by_their_numbers_in_any_order():
    rule = {"tolerance": {"limit": 2}}
    one, other = (read([call(limit=a), call(limit=b)], **rule) for a, b in ((10, 50), (51, 9)))
    assert agree(one, other)


def numbers(*given):
    return [Reading(value=read(call(limit=n), tolerance={"limit": 10})) for n in given]


@pytest.mark.parametrize(
    ("controls", "source", "expected"),
    [
        ((100, 104, 108, 200), 200, 104),  # three agree; the one in the middle
        ((108, 200, 104, 100), 200, 104),  # whatever their order
        ((100, 112, 109), 0, 109),  # 109 agrees with both others
        ((100, 100, 200, 200), 205, 200),  # as many: what the source agrees with
        ((100, 100, 200, 200), 0, None),
        ((7,), 0, 7),
    ],
)
def test_what_is_usual_is_the_middle_of_what_most_agree_with(controls, source, expected):
    found = majority(numbers(*controls), numbers(source)[0])
    if expected is None:
        assert (found.value, found.reason) == (None, Reason.NO_MAJORITY)
    else:
        assert found == numbers(expected)[0]


def test_labels_are_compared_as_before():
    labels = [Reading(value=each) for each in ("10±2", "10±2", "9±2")]
    assert majority(labels, labels[2]).value == "10±2"
    assert not agree("10±2", "9±2")
    assert agree(1.0, 1.0)
    assert not agree(None, "x")
    assert what_differs("yes (sure)", "no (never)") == ""


@pytest.mark.parametrize(
    ("here", "usually", "words"),
    [
        (call(limit=5000), call(limit=20000), "limit: 5000 instead of limit: 20000"),
        (call("approve"), call("decline"), "approve instead of decline"),
        (call(limit=50), "[]", "refund, limit: 50 instead of nothing"),
        (call(a={"b": [1], "c": "x, y; z(1)"}), call(a={"b": [1], "c": "q"}),
         'c: "x, y; z(1)" instead of c: "q"'),
        (call(limit=1, fee=100), call(limit=2, fee=1), "fee: 100 instead of fee: 1"),
        (call(ids=[1, 2]), call(ids=[1, 3]), "ids: [1, 2] instead of ids: [1, 3]"),
        (call(ids=[]), call(ids=["a]"]), 'ids: [] instead of ids: ["a]"]'),
        (call(a=[{"b": [[1]]}]), call(a=[{"b": [[2]]}]),
         "a: [{b: [[1]]}] instead of a: [{b: [[2]]}]"),
    ],
)  # fmt: skip
def test_what_differs_is_said(here, usually, words):
    rule = {"tolerance": {"fee": 10, "limit": 1}, "order": True}
    assert what_differs(read(here, **rule), read(usually, **rule)) == words


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


@pytest.mark.parametrize(
    "text", ["(1..2±3)", "(1e+-5±.)", "(±)", "(-±1%)", "(2±e)", "(1±1e)", "(٣±٤)"]
)
def test_words_that_look_like_a_tolerance_are_compared_and_end_nothing(text):
    assert agree(text, text)
    assert not agree(text, f"other {text}")
