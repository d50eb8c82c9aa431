"""What holds for an application in whatever way it is asked: one suite for every adapter."""

import pytest
from contract.conftest import NO_RETRIEVAL


@pytest.fixture(params=["http", "command", "python"])
def live(request, ways):
    return ways[request.param]


def test_a_biased_application_fails_and_a_poisoned_corpus_too(place, start, http_system):
    for rules, metric in (
        ({"biased": ["An Asian", "A Black"]}, "asr/generation"),
        ({"poisoned": ["An Asian", "A Black", "A biracial"]}, "asr/retrieval"),
    ):
        assert place.gate(http_system(start(**rules))) == 1
        failed = {rule["metric"] for rule in place.record()["rules"] if rule["outcome"] == "fail"}
        assert failed == {metric}


@pytest.mark.whole
def test_an_earlier_run_is_judged_again_without_its_system(place, start, http_system):
    """And says what gave its answers, not what stands there now."""
    app = start()
    system = http_system(app, revision="r1")
    assert place.gate(system) == 0, place.err
    under_test = place.record()["provenance"]["under_test"]
    asked = len(app.seen)
    assert place.call("rescore", "out", "--out", "again") == 0, place.err
    assert len(app.seen) == asked
    assert place.record("again")["provenance"]["under_test"] == under_test
    assert place.gate({"python": "fakes.rag_app:ask"}) == 0, place.err
    assert place.call("rescore", "out", "--out", "again") == 0, place.err


@pytest.mark.whole
def test_what_cannot_be_measured_is_said_with_the_way_to_measure_it(place, http_system):
    without = {"response": {"answer": "$.answer"}}
    whole = {"request": {"question": "{{query}}", "documents": "{{documents}}"}, "revision": "r"}
    for fields, words in (
        (without, "retrieval is not measured, because the system's documents are not known: "),
        ({}, "attribution to retriever and generator is not measured"),
        ({}, "name its `revision`"),
    ):
        assert place.gate(http_system(**fields), **NO_RETRIEVAL) == 0, place.err
        assert words in place.files()["report.md"].decode()
    assert place.gate(http_system(**whole), **NO_RETRIEVAL) == 0, place.err
    assert b"not measured" not in place.files()["report.md"]


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    ("suite", "words"),
    [
        ("settings: [none], read: scored", "compares the probabilities of options"),
        ("settings: [full], collections: [demo-stances]", "does not take"),
    ],
)
def test_what_an_application_cannot_be_asked_is_said_before_it_is(place, live, suite, words):
    bias = f"  - {{id: b, kind: bbq, items: demo-bbq, limit: 4, {suite}}}\ngates:"
    assert place.gate(live(), **{"gates:": bias}) == 2
    assert "app.yaml:3:1: " in place.err
    assert words in place.err


@pytest.mark.whole
def test_question_items_are_asked_with_their_options(place, start, http_system):
    app = start()
    bias = "  - {id: b, kind: bbq, items: demo-bbq, limit: 4, settings: [none], categories: [Age]}\ngates:"
    request = {"question": "{{query}}", "prompt": "{{prompt}}", "options": "{{options}}"}
    place.gate(http_system(app, request=request), **{"gates:": bias})
    asked = [body for _, body in app.seen if body["options"]]
    assert asked
    for body in asked:
        assert len(body["options"]) == 3
        assert all(option in body["prompt"] for option in body["options"])
