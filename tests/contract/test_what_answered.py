"""What replies say of themselves: a cache, a model, how long a prompt was. Seen on planted servers.

`woman` is refused by the model; behind each of these servers that was green.
"""

import json

import pytest
from contract.conftest import ASKED, NO_RETRIEVAL, SOURCES
from fakes.rag_app import reply

HITS = [
    ("X-Cache", "Hit from cloudfront"),
    ("X-Cache-Status", "HIT"),
    ("cf-aig-cache-status", "HIT"),
    ("cf-cache-status", "HIT"),
    ("helicone-cache", "HIT"),
    ("x-portkey-cache-status", "SEMANTIC HIT"),
    ("x-litellm-cache-hit", "True"),
    ("x-cached", "true"),
    ("Cache-Status", "ExampleCache; hit"),
    ("Age", "35"),
    ("x-litellm-cache-key", "a81f5b"),
]
MISSES = [
    ("X-Cache", "Miss from cloudfront"),
    ("X-Cache-Status", "MISS"),
    ("cf-cache-status", "DYNAMIC"),
    ("x-litellm-cache-hit", "False"),
    ("x-litellm-semantic-similarity", "0.42"),
    ("Cache-Control", "no-cache, max-age=0"),
    ("Cache-Status", "ExampleCache; fwd=miss"),
    ("Age", "0"),
    ("x-cached-tokens", "0"),
    ("x-prompt-cache-tokens", "128"),
]


SILENT = {
    "call a tool and say nothing": {
        "message": {"content": None, "tool_calls": [{"function": {"name": "answer"}}]},
        "finish_reason": "tool_calls",
    },
    "were withheld by the endpoint's filter": {
        "message": {"content": ""}, "finish_reason": "content_filter",
    },
}  # fmt: skip


def said(prompt, *, headers=None, model="small", tokens=None, **more):
    choice = {"message": {"content": reply(prompt)["answer"]}, "finish_reason": "stop"}
    usage = {"prompt_tokens": tokens or len(prompt) // 4, "completion_tokens": 1}
    return 200, {"choices": [choice], "model": model, "usage": usage, **more}, headers or {}


@pytest.fixture
def gate(place, chat, at_once):
    def run(out="out", **fields):
        endpoint = {"base_url": chat.url, "model": "small", **fields}
        return place.gate({"generator": {"endpoint": endpoint}}, out, **NO_RETRIEVAL)

    return run


@pytest.mark.walk(3)
@pytest.mark.parametrize(("name", "value"), HITS)
def test_a_reply_from_a_cache_is_no_ground_for_a_verdict(place, chat, gate, name, value):
    chat.answer = lambda prompt: said(prompt, headers={name: value} if "woman" in prompt else {})
    assert gate() == 5, place.err
    [problem] = place.record()["evidence"]["problems"]
    assert problem.startswith(f"{SOURCES} of {ASKED} replies of the system come from a cache")
    assert f"`{name.lower()}: {value}`" in problem
    assert "#gender/woman" in problem
    assert "come from a cache" in place.out
    assert place.call("rescore", "out", "--policy", "app.yaml", "--out", "again") == 5


TOLD_HITS = [
    {"extra_fields": {"cache_debug": {"cache_hit": True, "hit_type": "semantic"}}},
    {"extra_fields": {"cache_metadata": {"cache_hit": True}}},
    {"gptcache": True}, {"cached": True}, {"meta": {"from_cache": True}},
]  # fmt: skip
TOLD_MISSES = [
    {"extra_fields": {"cache_debug": {"cache_hit": False}}}, {"cached": False},
    {"usage": {"prompt_cache_hit_tokens": 64}}, {"use_cache": True}, {"cached_tokens": 12},
]  # fmt: skip


@pytest.mark.walk(3)
@pytest.mark.parametrize("fields", [*TOLD_HITS, *TOLD_MISSES], ids=str)
def test_a_cache_that_only_the_reply_s_body_tells_counts_too(place, chat, gate, fields):
    chat.answer = lambda prompt: said(prompt, **(fields if "woman" in prompt else {}))
    assert (gate() == 5) == (fields in TOLD_HITS), place.out + place.err
    assert ("come from a cache (`" in " ".join(place.record()["evidence"]["problems"])) == (
        fields in TOLD_HITS
    )


@pytest.mark.walk(2)
@pytest.mark.parametrize(("name", "value"), MISSES)
def test_a_cache_that_was_passed_is_none(place, chat, gate, name, value):
    chat.answer = lambda prompt: said(prompt, headers={name: value})
    assert gate() == 0, place.out + place.err


def test_the_report_names_the_model_that_answered(place, chat, gate):
    chat.answer = lambda prompt: said(prompt, model="small-2026-01-01")
    assert gate() == 0, place.err
    told = f"the system's replies name the model 'small-2026-01-01' ({ASKED})"
    assert told in place.record()["notices"]


def test_another_model_than_was_asked_for_is_told(place, chat, gate):
    chat.answer = lambda prompt: said(prompt, model="cheap-7b")
    assert gate() == 0, place.err
    told = "the system's replies name the model 'cheap-7b', while the policy asks for 'small'"
    assert place.record()["notices"][0].startswith(told)


@pytest.mark.walk(2)
@pytest.mark.parametrize("names", [["fp_1"], ["fp_1", "fp_2"], [None]])
def test_a_model_that_is_exchanged_during_a_run_is_told(place, chat, gate, names):
    def answer(prompt):
        return said(prompt, system_fingerprint=names[-1] if "woman" in prompt else names[0])

    chat.answer = answer
    assert gate() == 0, place.err
    told = [w for w in place.record()["notices"] if "providers or system fingerprints" in w]
    assert len(told) == (len(names) > 1)
    assert not told or ("'fp_2' (first " in told[0] and "#gender/woman" in told[0])
    assert ("system fingerprints" in place.out) == bool(told)


@pytest.mark.parametrize("why", SILENT)
def test_what_came_in_place_of_a_text_is_told_and_nothing_advised_of_reading(
    place, chat, gate, why
):
    chat.answer = lambda prompt: said(prompt, choices=[SILENT[why]])
    assert gate() == 5
    assert why in place.err
    assert "No text came back" in place.out
    assert "one word" not in place.out


def test_several_providers_behind_one_model_are_told(place, chat, gate):
    """OpenRouter names them; each may run the model in another precision."""
    chat.answer = lambda prompt: said(prompt, provider="A" if "woman" in prompt else "B")
    assert gate() == 0, place.err
    assert (
        "2 providers or system fingerprints: 'B' (first 's0'), 'A'" in place.record()["notices"][0]
    )


def test_several_models_of_an_endpoint_have_no_verdict(place, chat, gate):
    chat.answer = lambda prompt: said(prompt, model="small" if len(chat.seen) < 100 else "fallback")
    assert gate(concurrency=1) == 5
    [problem] = place.record()["evidence"]["problems"]
    assert f"2 models: 'small' (99, first 's0'), 'fallback' ({ASKED - 99}, first " in problem


FALLBACKS = [
    ("x-litellm-attempted-fallbacks", "1"), ("x-litellm-fallback-model-used", "cheap"),
    ("x-portkey-fallback", "true"),
]  # fmt: skip
NO_FALLBACKS = [
    ("x-litellm-attempted-fallbacks", "0"), ("x-litellm-max-fallbacks", "3"),
    ("x-litellm-fallback-model-used", "None"),
]  # fmt: skip


@pytest.mark.walk(3)
@pytest.mark.parametrize(("name", "value"), [*FALLBACKS, *NO_FALLBACKS])
def test_another_model_that_a_gateway_falls_back_to_is_one_of_several(
    place, chat, gate, name, value
):
    """Its body still names the model that was asked for."""
    chat.answer = lambda prompt: said(prompt, headers={name: value} if "woman" in prompt else {})
    is_fallback = (name, value) in FALLBACKS
    assert (gate() == 5) == is_fallback, place.err
    problems = " ".join(place.record()["evidence"]["problems"])
    assert (f"'small ({name}: {value})'" in problems) == is_fallback


def test_several_models_of_an_application_are_told(place, start, http_system):
    app = start()
    app.model = lambda: "small" if len(app.seen) < 100 else "large"
    assert place.gate(http_system(app), **NO_RETRIEVAL) == 0, place.err
    assert "name 2 models: 'small'" in place.record()["notices"][0]


def test_prompts_whose_fronts_are_cut_have_no_verdict(place, chat, gate):
    chat.answer = lambda prompt: said(prompt, tokens=min(len(prompt) // 4, 24))
    assert gate() == 5
    [problem] = place.record()["evidence"]["problems"]
    assert "are 24 tokens by its replies" in problem


def test_equal_counts_of_an_application_are_told(place, start, http_system):
    app = start()
    app.usage = {"prompt_tokens": 512}
    assert place.gate(http_system(app), **NO_RETRIEVAL) == 0, place.err
    assert (
        f"{ASKED} of {ASKED} prompts of the system are 512 tokens" in place.record()["notices"][0]
    )


def test_what_was_said_is_stored_with_each_answer(place, chat, gate):
    chat.answer = lambda prompt: said(prompt, headers={"X-Cache": "hit"})
    assert gate(revision="r1") == 5
    chat.seen.clear()
    assert gate(revision="r1", out="again") == 5  # from the store
    assert not chat.seen
    for out in ("out", "again"):
        served = [line["served"] for line in place.executions(out)]
        assert {(s["model"], s["cache"]) for s in served} == {("small", "x-cache: hit")}
        assert len({s["prompt_tokens"] for s in served}) > 3


@pytest.mark.walk(2)
@pytest.mark.parametrize("served", [3, [], {"model": 1}, {"cache": None}, {"tokens": 3}])
def test_a_recording_s_word_on_it_is_read_strictly(place, chat, gate, served):
    assert gate() == 0
    file = place.root / "out" / "executions.jsonl"
    lines = [json.loads(line) | {"served": served} for line in file.read_text().splitlines()]
    (place.root / "recorded.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert place.gate({"recorded": "recorded.jsonl"}, "other", **NO_RETRIEVAL) in (2, 4)
    assert "recorded.jsonl:1: served is " in place.err


STATUSES = [500, 504, 501, 400]


@pytest.mark.walk(1)
@pytest.mark.parametrize("status", STATUSES)
def test_an_identity_that_always_gets_an_error_is_red_in_seconds_and_told(
    place, chat, gate, monkeypatch, status
):
    waited = []

    async def wait(seconds):
        waited.append(seconds)

    monkeypatch.setattr("fairgate.io.http_client._sleep", wait)
    place.sources(12)
    usual = chat.answer
    refused = status, {"error": {"message": "cannot"}}, {}
    chat.answer = lambda prompt: refused if "Black" in prompt else usual(prompt)
    assert gate() == 1, place.err
    assert sum(waited) < 15
    notice = place.record()["notices"][0]
    assert notice.startswith(
        f"HTTP {status} for `race/black`, 12 of 12: their sources were answered"
    )
    assert "cannot" in notice
    assert place.call("rescore", "out", "--policy", "app.yaml", "--out", "again") == 1
    assert place.record("again")["notices"][0] == notice
    own = {
        row["key"]: row.get("served") for row in place.executions() if "race/black" in row["key"]
    }
    assert {served["failure"] for served in own.values()} == {f"HTTP {status}"}
