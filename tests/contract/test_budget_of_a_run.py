"""A budget stops a run before it asks more, and the next run goes on from the store."""

import sys

import pytest
from contract.conftest import ASKED, NO_RETRIEVAL, SEARCH, Slow, questions
from fakes import rag_app

from fairgate.domain.errors import BudgetError
from fairgate.domain.executions import Usage, usage_of
from fairgate.systems.budget import BudgetPart, Meter

REPORTED = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}


@pytest.fixture
def chat(chat):
    chat.usage = REPORTED
    return chat


@pytest.fixture
def app(start):
    found = start()
    found.usage = REPORTED
    return found


@pytest.fixture
def systems(place, app, chat):
    (place.root / "search.py").write_text(SEARCH)
    own = {"revision": "r1"}
    endpoint = {"generator": {"endpoint": {"base_url": chat.url, "model": "small", **own}}}
    documents = {"request": {"question": "{{query}}"}, "response": {"documents": "$.contexts[*]"}}
    search = {"run": [sys.executable, "search.py"], **own}
    return {
        "http": {"http": {"url": f"{app.url}/ask", **documents, **own}},
        "command": {"command": {"run": [sys.executable, rag_app.__file__], "processes": 3, **own}},
        "python": {"python": {"call": "fakes.rag_app:ask", **own}},
        "endpoint": {**endpoint, "retriever": {"http": {"url": f"{app.url}/ask", **documents, **own}}},
        "retriever": {**endpoint, "retriever": {"command": search}},
    }  # fmt: skip


@pytest.fixture
def asked(app, chat):
    return lambda: [*app.seen, *chat.seen]


@pytest.mark.walk(1)
@pytest.mark.parametrize("name", ["http", "command", "python", "endpoint", "retriever"])
def test_a_run_in_parts_ends_with_the_files_of_one_in_one(place, systems, app, chat, name):
    system = systems[name]
    assert place.gate({**system, "budget": {"requests": 10_000}}) == 0, place.err
    whole, needed = place.files(), len(app.seen) + len(chat.seen)
    app.seen.clear()
    chat.seen.clear()
    (place.root / "out").rename(place.root / "whole")
    told = []
    for _ in range(9):
        code = place.gate({**system, "budget": {"requests": 60}}, "out", "--cache", "parts")
        if code == 0:
            break
        assert code == 5, place.err
        assert not (place.root / "out").exists()
        told.append(place.err)
    assert code == 0
    assert place.files() == whole
    assert len(told) == (-(-2 * ASKED // 60) if "generator" in system else -(-ASKED // 60)) - 1
    assert all("the budget of 60 requests is spent. Asked in this run: 60 q" in t for t in told)
    assert f"left: {ASKED - 60} questions, and those" in told[0]
    assert "the answers are stored: run again to go on from there" in told[0]
    assert len(app.seen) + len(chat.seen) == needed  # nothing was asked twice


def test_a_budget_that_is_just_enough_is_enough(place, systems):
    assert place.gate({**systems["http"], "budget": {"requests": ASKED}}) == 0, place.err
    assert place.gate({**systems["http"], "budget": {"requests": 1}}) == 0  # all of it is stored


def test_questions_of_attribution_count(place, start, systems):
    system = systems["http"]
    request = {"question": "{{query}}", "documents": "{{documents}}"}
    url = f"{start(biased=['A Black'], poisoned=['An Asian']).url}/ask"
    system["http"] |= {"request": request, "url": url}
    assert place.gate({**system, "budget": {"requests": ASKED}}) == 5
    assert f"Asked in this run: {ASKED} questions; left: " in place.err
    assert place.gate({**system, "budget": {"requests": ASKED}}) in (0, 1), place.err
    (attribution,) = place.record()["attribution"]
    assert attribution["crossed"] > 0


def parts_of(place):
    for number in (1, 2):
        part = ("--shard", f"{number}/2", "--out", f"parts/{number}", "--cache", "parts.c")
        yield place.call("run", "app.yaml", *part, "--quiet", "--allow-python")


def test_a_part_whose_budget_is_spent_is_missing_until_it_is_asked_again(place, systems):
    place.policy({**systems["http"], "budget": {"requests": 40}})
    codes = list(parts_of(place))
    assert codes == [5, 5]
    assert "no verdict: the budget of 40 requests is spent" in place.err
    assert not list((place.root / "parts").glob("*/shard.json"))
    while 5 in codes:
        codes = list(parts_of(place))
    assert codes == [0, 0]
    merge = place.call("merge", "app.yaml", "parts", "--out", "out", "--cache", "parts.c")
    assert merge == 0, place.err


@pytest.mark.walk(1)
@pytest.mark.parametrize("name", ["http", "endpoint"])
def test_tokens_are_what_answers_report(place, systems, asked, name):
    system = {key: part for key, part in systems[name].items() if key != "retriever"}
    code, total = 5, 0
    while code == 5:
        code = place.gate({**system, "budget": {"tokens": 5000}}, **NO_RETRIEVAL)
        fresh = len(asked()) - total
        total += fresh
        if code == 5:
            assert 50 <= fresh <= 50 + 4  # what was under way is finished, and counted
            assert "the budget of 5,000 tokens is spent. Asked in this run: 5" in place.err
            assert f"{fresh} questions, 5,{fresh - 50}00 tokens; " in place.err
    assert code == 0, place.err
    assert total == ASKED


@pytest.mark.parametrize("name", ["http", "command", "python", "endpoint"])
def test_a_limit_that_cannot_be_kept_is_no_verdict(place, systems, app, chat, name):
    system = {key: part for key, part in systems[name].items() if key != "retriever"}
    app.usage = chat.usage = {"total_tokens": -1}
    assert place.gate({**system, "budget": {"tokens": 5}}) == 2
    assert "the budget limits `tokens`, but an answer reports no" in place.err
    assert "limit `requests` or `seconds` instead" in place.err


NONE = [0, -1, True, "9", []]


@pytest.mark.walk(5)
@pytest.mark.parametrize(
    "budget",
    [
        *({name: value} for name in ("requests", "tokens", "seconds") for value in NONE),
        {"requests": 1.5}, {"tokens": 10**13}, {"seconds": float("nan")}, {}, {"minutes": 3}, 7,
    ],
)  # fmt: skip
def test_a_budget_that_is_none_is_an_error_of_the_policy(place, systems, budget):
    assert place.gate({**systems["http"], "budget": budget}) == 2
    assert "app.yaml:3:" in place.err
    assert "internal error" not in place.err


def test_a_budget_of_what_is_never_asked_is_an_error(place):
    assert place.gate({"generator": {"model": "demo-slm"}, "budget": {"requests": 9}}) == 2
    assert "ask nobody" in place.err


@pytest.mark.parametrize("found", [None, -1, True, "many", float("nan"), 10**400, [], {}])
def test_what_is_no_count_is_not_reported(found):
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    assert usage_of({"usage": dict.fromkeys(names, found)}) == Usage()
    assert usage_of({"usage": found}) == usage_of(found) == Usage()
    for said, tokens in (({"output_tokens": 4}, 7), ({"total_tokens": 9}, 9), ({}, None)):
        assert usage_of({"usage": {"input_tokens": 3, **said}}).tokens == tokens


QUESTIONS = questions(5)


def test_seconds_run_from_the_first_question():
    slow = Slow(lambda _: 1.0)
    meter = Meter(BudgetPart(seconds=3.0), clock=lambda: slow.now)
    slow.now = 100.0
    asked = meter.asked(QUESTIONS, slow.ask, lambda: True)
    found = []
    with pytest.raises(BudgetError, match=r"3 seconds is spent.*3 questions.*left: 2 q"):
        found.extend(position for position, _ in asked)
    assert found == [0, 1, 2]
