"""A model behind an OpenAI-compatible endpoint: asked as its makers document it, never believed."""

import hashlib
import json

import pytest
from contract.conftest import ASKED, NO_RETRIEVAL
from fakes import rag_app

from fairgate.systems.budget import Meter
from fairgate.systems.generator import ChatEndpoint, EndpointGeneratorPolicy, EndpointPart

SECRET = "swordfish-0815"  # noqa: S105  # of nothing


@pytest.fixture
def gate(place, chat, at_once):
    def run(out="out", generator=None, **fields):
        endpoint = {"base_url": chat.url, "model": "small", **fields}
        system = {"generator": {"endpoint": endpoint, **(generator or {})}}
        return place.gate(system, out, **NO_RETRIEVAL)

    return run


def test_a_model_behind_an_endpoint_is_gated_and_that_it_changes_prompts_is_noted(
    place, chat, gate
):
    assert gate(generator={"system": "Be brief."}) == 0, place.err
    path, key, body = chat.seen[0]
    assert (path, key) == ("/v1/chat/completions", None)
    assert [message["role"] for message in body.pop("messages")] == ["system", "user"]
    assert body == {"model": "small", "temperature": 0.0, "max_tokens": 150}
    assert "small at http://127.0.0.1" in place.record()["provenance"]["under_test"]["model"]
    assert any("its own chat template" in notice for notice in place.record()["notices"])


def test_sampling_is_asked_for_as_the_policy_says(chat, gate):
    wanted = {"temperature": 0.5, "top_p": 0.9, "top_k": 20, "max_new_tokens": 9}
    gate(generator={"decoding": wanted})
    bodies = [body for _, _, body in chat.seen]
    names = ("temperature", "top_p", "top_k", "max_tokens")
    assert {tuple(body[name] for name in names) for body in bodies} == {tuple(wanted.values())}
    seeds = [body["seed"] for body in bodies]
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert len(set(seeds)) == len(seeds)


@pytest.mark.parametrize("way", ["endpoint", "http"])
def test_repeats_are_really_asked_again(place, chat, http_system, start, way):
    """Greedy or not: nobody promises the same answer twice."""
    app = start()
    endpoint = {"generator": {"endpoint": {"base_url": chat.url, "model": "small"}}}
    changes = {**NO_RETRIEVAL, "perturbations": "repeats: 2, perturbations"}
    system = http_system(app) if way == "http" else endpoint
    assert place.gate(system, **changes) == 0, place.err
    assert len(chat.seen) + len(app.seen) == 2 * ASKED


ALWAYS = 10_000
FAULTS = {
    "unauthorised": ((401, {"error": {"message": "no"}}), 1, 4, "HTTP 401"),
    "unknown model": ((404, {"error": "no model small"}), 1, 4, "check `base_url`"),
    "busy once": ((429, {}), 1, 0, ""),
    "busy always": ((503, {}), ALWAYS, 4, "HTTP 503"),
    "a page": ((200, b"<html>"), 1, 4, "no completion"),
    "another form": ((200, {"text": "x"}), 1, 4, "no completion"),
    "no choice": ((200, {"choices": []}), 1, 4, "no completion"),
    "no text": ((200, {"choices": [{"message": {"content": ["x"]}}]}), 1, 4, "no completion"),
    "a list": ((200, []), 1, 4, "no completion"),
    "encoded twice": ((200, b'"{\\"choices\\": [{\\"message\\": {\\"content\\": \\"x\\"}}]}"'), 1, 4, "(a text with JSON in it: let it be encoded once)"),
    "too much": ((200, b"x" * (17 << 20)), 1, 4, "larger than 16,777,216 bytes"),
    "not UTF-8": ((200, b'{"choices": "\xff"}'), 1, 4, "is not UTF-8"),
    "elsewhere": ((302, {}), 1, 4, "HTTP 302"),
    "half a number": ((200, b'{"choices": [{"message": {"content": "x"}}], "usage": {"total_tokens": 1e'), 1, 4, "no completion"),
    "the key": ((500, {"error": f"{SECRET} is wrong"}), ALWAYS, 4, "*** is wrong"),
}  # fmt: skip


@pytest.mark.walk(4)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_never_green_and_always_explained(place, chat, gate, monkeypatch, fault):
    monkeypatch.setenv("MY_KEY", SECRET)
    answer, times, code, words = FAULTS[fault]
    chat.faults = [answer] * times
    assert gate(api_key_env="MY_KEY", concurrency=1) == code, place.err
    assert words in place.err
    assert chat.seen[0][1] == f"Bearer {SECRET}"
    assert SECRET not in place.out + place.err
    if code:
        assert "'small'" in place.err


def completion(content, reason="stop", **more):
    return {"choices": [{"message": {"content": content, **more}, "finish_reason": reason}]}


THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "negative?"}]}
CONTENTS = {
    "a text": (completion("positive"), "positive"),
    "one part": (completion([{"type": "text", "text": "positive"}]), "positive"),
    "parts": (completion([{"type": "text", "text": "posi"}, {"type": "text", "text": "tive"}]), "positive"),
    "thinking first": (completion([THINKING, {"type": "text", "text": "positive"}]), "positive"),
    "reasoning": (completion([{"type": "reasoning", "summary": []}, {"type": "output_text", "text": "positive"}]), "positive"),
    "a part alone": (completion({"type": "text", "text": "positive"}), "positive"),
    "a text with annotations": (completion([{"type": "text", "text": {"value": "positive", "annotations": []}}]), "positive"),
    "a refusal": (completion(None, refusal="I cannot."), "I cannot."),
    "a refusal as a part": (completion([{"type": "refusal", "refusal": "I cannot."}]), "I cannot."),
    "a refusal beside an empty text": (completion("", refusal="I cannot."), "I cannot."),
    "a text with references": (completion([{"type": "text", "text": "positive"}, {"type": "reference", "reference_ids": [1]}]), "positive"),
    "nothing said": (completion(""), ""),
    "half of what a filter cut off": (completion("negat", "content_filter"), ""),
    "half of what was sensitive": (completion("negat", "sensitive"), ""),
}  # fmt: skip


def test_content_is_read_in_every_form(place, chat, gate):
    chat.faults = [(200, value) for value, _ in CONTENTS.values()]
    gate(concurrency=1)
    read = [row["response"] for row in place.executions()]
    assert read[: len(CONTENTS)] == [text for _, text in CONTENTS.values()]
    assert len(chat.seen) == ASKED


@pytest.mark.parametrize(
    "content",
    [["positive"], [{"type": "image_url"}], [{"type": "text"}], 7, {"text": "x"},
     [{"type": "text", "text": "x"}, {"type": "summary", "text": "y"}]],
)  # fmt: skip
def test_content_of_no_known_form_is_no_answer(place, chat, gate, content):
    chat.faults = [(200, completion(content))]
    assert gate(concurrency=1) == 4
    assert "the content is no text" in place.err


def test_an_application_s_parts_are_read_too(place, start, http_system):
    app = start()
    raw = b'{"answer": [{"type": "text", "text": "positive"}], "contexts": []}'
    app.faults = [(200, {}, raw)]
    place.gate(http_system(app, concurrency=1))
    assert place.executions()[0]["response"] == "positive"


def test_one_answer_without_content_among_others_is_asked_for_again(place, chat, gate, at_once):
    empty = {"choices": [{"message": {"content": None}}]}
    chat.faults = [None] * 20 + [(200, empty), (200, completion(None))]
    assert gate(concurrency=1) == 0, place.err
    assert {row["response"] for row in place.executions()} == {"positive", "negative"}
    assert len(chat.seen) == ASKED + 2


SILENT = {
    "no reason": (completion(None), 4, "have no content (`null`), however often"),
    "thinking": (completion(None, "length", reasoning_content="Hm"), 1, "`finish_reason: length`"),
    "thinking, a text": (completion("", "length"), 1, "enable_thinking: false"),
    "thinking aloud": (completion("<think>Hm", "length"), 1, "raise `decoding.max_new_tokens`"),
    "thinking aloud, by LocalAI": (completion("[THINK]Hm", "stop"), 1, "raise `decoding.max_new_tokens`"),
    "thinking, by Gemini": (completion(None, "MAX_TOKENS"), 1, "raise `decoding.max_new_tokens`"),
    "thinking, by Anthropic": (completion("", "max_tokens"), 1, "`finish_reason: max_tokens`"),
    "withheld by Gemini": (completion(None, "content_filter: PROHIBITED_CONTENT"), 1, "`finish_reason: content_filter: PROHIBITED_CONTENT`"),
    "withheld for safety": (completion("", "SAFETY"), 1, "were withheld by the endpoint's filter"),
    "withheld": (completion(None, "content_filter"), 1, "`finish_reason: content_filter`"),
    "all in its reasoning": (completion("", reasoning_content="It is positive."), 1, "thinking in `reasoning_content`"),
    "all in its reasoning, null": (completion(None, reasoning="It is positive."), 1, "switch thinking off"),
    "a call": (completion(None, "tool_calls", tool_calls=[{"id": "x"}]), 1, "call a tool"),
}  # fmt: skip


@pytest.mark.whole
def test_why_answers_say_nothing_is_told(place, chat, gate, at_once):
    """And one that has a reason for it is not asked for again."""
    usual, prompts = chat.answer, []
    for case, (value, times, words) in SILENT.items():
        chat.seen.clear()
        prompts.clear()

        def answer(prompt, value=value):
            prompts.append(prompt)
            return value if prompt == prompts[0] else usual(prompt)

        chat.answer = answer
        assert gate(concurrency=1) in (0, 1, 5), place.err
        assert len(chat.seen) == ASKED - 1 + times, case
        told = place.out + place.err
        assert f"1 of {ASKED} answers" in told, case
        assert words in told, (case, told)


RENAMED = {
    "OpenAI": (400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_completion_tokens"),
    "another": (422, "Unknown field `max_tokens`, expected `max_output_tokens`", "max_output_tokens"),
}  # fmt: skip


@pytest.mark.parametrize("name", RENAMED)
def test_the_limit_of_tokens_has_the_name_that_the_server_asks_for(place, chat, gate, name):
    status, words, wanted = RENAMED[name]
    usual = chat.answer

    def answer(prompt):
        refused = (status, {"error": {"message": words}})
        return refused if "max_tokens" in chat.seen[-1][2] else usual(prompt)

    chat.answer = answer
    assert gate(concurrency=1) == 0, place.err
    names = [{"max_tokens", wanted} & body.keys() for _, _, body in chat.seen]
    assert names.count({wanted}) == ASKED
    assert names.count({"max_tokens"}) in (1, 2)  # one may be under way


def test_a_name_that_is_refused_too_is_told(place, chat, gate):
    words = "'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    chat.faults = [(400, {"error": {"message": words}})] * 10_000
    assert gate(concurrency=1) == 4
    assert "HTTP 400" in place.err
    assert "Use 'max_completion_tokens' instead" in place.err
    assert len(chat.seen) <= 8


ELSEWHERE = {
    "the Responses API": ({"object": "response", "output": [{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "positive"}]}]}, "$.output[-1].content[0].text"),
    "Ollama": ({"model": "m", "message": {"role": "assistant", "content": "positive"}}, "$.message.content"),
    "Ollama, a prompt": ({"model": "m", "response": "positive"}, "$.response"),
    "completions": ({"choices": [{"text": "positive"}]}, "$.choices[0].text"),
    "Anthropic": ({"type": "message", "content": [{"type": "text", "text": "positive"}]}, "$.content[0].text"),
    "Gemini": ({"candidates": [{"content": {"parts": [{"text": "positive"}]}}]}, "$.candidates[0].content.parts[0].text"),
    "TGI": ([{"generated_text": "positive"}], "$[0].generated_text"),
}  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
def test_where_a_reply_of_another_api_has_its_text_is_told(
    place, chat, gate, start, http_system, name
):
    value, where = ELSEWHERE[name]
    chat.answer = lambda prompt: (200, value)
    assert gate(concurrency=1) == 4
    assert f"found a text at `{where}`: give `base_url`" in place.err
    app = start()
    app.faults = [(200, {}, json.dumps(value).encode())] * 9
    assert place.gate(http_system(app, concurrency=1), **NO_RETRIEVAL) == 4
    assert (
        f"name the place of the answer's text in `response.answer`, which may be `{where}`"
        in place.err
    )


def test_more_fields_of_the_request_and_of_the_template_are_the_policy_s(place, chat, gate):
    extra = {"max_completion_tokens": 9, "temperature": None, "reasoning_effort": "low"}
    arguments = {"enable_thinking": False}
    assert gate(generator={"template_arguments": arguments}, extra_body=extra) == 0, place.err
    for _, _, body in chat.seen:
        body.pop("messages")
        assert body == {
            "model": "small", "max_completion_tokens": 9, "reasoning_effort": "low",
            "chat_template_kwargs": arguments,
        }  # fmt: skip


def test_answers_are_kept_apart_by_all_that_is_sent(chat, gate):
    counts = []
    for generator, fields in (
        ({}, {}), ({}, {"extra_body": {"min_p": 0.1}}), ({"template_arguments": {"a": 1}}, {}),
        ({"template_arguments": {"a": 2}}, {}), ({}, {}),
    ):  # fmt: skip
        chat.seen.clear()
        assert gate(generator=generator, revision="r1", **fields) == 0
        counts.append(len(chat.seen))
    assert counts == [ASKED, ASKED, ASKED, ASKED, 0]


def test_stored_answers_stay_those_of_their_endpoint():
    """A key that a policy does not set asks no endpoint for what an earlier version stored."""
    endpoint = EndpointPart(base_url="http://127.0.0.1:8000/v1", model="small", revision="r1")
    sent = (
        "('chat-1', 'http://127.0.0.1:8000/v1/chat/completions', 'small', 'r1', None, "
        "Decoding(temperature=0.0, top_p=1.0, top_k=0, max_new_tokens=150, thinking_tokens=4096, "
        "seed=42))"
    )
    asked = ChatEndpoint(EndpointGeneratorPolicy(endpoint=endpoint), Meter(), bool)
    assert asked.fingerprint == hashlib.sha256(sent.encode()).hexdigest()


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"messages": []}, "`messages` is what FairGate asks"),
        ({"model": "x"}, "`model` is the endpoint's own"),
        ({"stream": True}, "would send the answer in pieces"),
        ({"n": 2}, "several answers"),
        ({"temperature": 1.0}, "belongs in `decoding`"),
    ],
)
def test_what_fairgate_sets_itself_no_extra_body_sets(place, gate, extra, words):
    assert gate(extra_body=extra) == 2
    assert words in place.err
    assert "app.yaml:3:" in place.err
    template = {"template_arguments": {"a": 1}}
    assert gate(generator=template, extra_body={"chat_template_kwargs": {"a": 2}}) == 2
    assert "keep `template_arguments`" in place.err


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"base_url": "http://example.org/v1", "api_key_env": "MY_KEY"}, "would be sent unencrypted"),
        ({"base_url": "ftp://x/"}, "3:"),
        ({"modl": "x"}, "unknown key `modl` in `system.generator.endpoint`; did you mean `model`?"),
    ],
)  # fmt: skip
def test_what_a_policy_says_wrong_is_said_with_its_place(place, gate, fields, words):
    assert gate(**fields) == 2
    assert "app.yaml:3:" in place.err
    assert words in place.err


def test_probabilities_are_not_compared_by_an_endpoint(place, chat):
    system = {"generator": {"endpoint": {"base_url": chat.url, "model": "small"}}}
    bias = (
        "  - {id: b, kind: bbq, items: demo-bbq, limit: 4, settings: [none], read: scored}\ngates:"
    )
    assert place.gate(system, **NO_RETRIEVAL, **{"gates:": bias}) == 2
    assert "compares the probabilities of options" in place.err
    assert chat.seen == []


def test_degrees_are_asked_for_and_read_at_the_label(place, chat, gate):
    """Without log-probabilities the labels are gated, and nothing about degrees is green."""
    reads = {**NO_RETRIEVAL, "perturbations": "read: [labels, degrees], perturbations"}
    system = {"generator": {"endpoint": {"base_url": chat.url, "model": "small"}}}

    def whole(prompt):
        text = rag_app.reply(prompt)["answer"]
        other = "negative" if text.startswith("positive") else "positive"
        top = [{"token": text, "logprob": -0.4}, {"token": other, "logprob": -1.5}]
        content = [{"token": text, "logprob": -0.4, "top_logprobs": top}]
        message = {"role": "assistant", "content": text}
        return {"choices": [{"message": message, "logprobs": {"content": content}}]}

    assert place.gate(system, "without", **reads) == 0, place.err
    assert all(body["logprobs"] is True and body["top_logprobs"] == 20 for _, _, body in chat.seen)
    executions = (place.root / "without" / "executions.jsonl").read_text()
    assert '"degrees"' not in executions
    chat.answer = whole
    assert place.gate(system, "with", **reads) == 0, place.err
    executions = (place.root / "with" / "executions.jsonl").read_text().splitlines()
    assert all('"degrees": {"positive": -' in line for line in executions)
    assert all('"at_most": ["neutral"]' in line for line in executions)


LACKING = {
    "null": (None, "`choices[0].logprobs` is "),
    "an empty object": ({}, "`choices[0].logprobs` is an empty object"),
    "no content": ({"text": "x"}, "`choices[0].logprobs` is an object with `text`"),
    "null as content": ({"content": None}, "`choices[0].logprobs` is an object with `content`"),
    "no others": ({"content": [{"token": "x", "logprob": -1}]}, "`choices[0].logprobs.content[0].top_logprobs` is "),
    "null as others": ({"content": [{"token": "x", "logprob": -1, "top_logprobs": None}]}, "`choices[0].logprobs.content[0].top_logprobs` is "),
    "no probability": ({"content": [{"token": "x", "prob": 0.5}]}, "`choices[0].logprobs.content[0]` is an object with `token`, `prob`, expected"),
    "older, no others": ({"tokens": ["x"], "token_logprobs": [-1]}, "`choices[0].logprobs.top_logprobs` is "),
    "older, null": ({"tokens": ["x"], "token_logprobs": [None]}, "`choices[0].logprobs` is "),
}  # fmt: skip


@pytest.mark.parametrize("form", LACKING)
def test_what_log_probabilities_lack_is_told_with_its_place(place, chat, form):
    reported, words = LACKING[form]
    place.sources(4)
    reads = {**NO_RETRIEVAL, "perturbations": "read: [labels, degrees], perturbations"}
    system = {"generator": {"endpoint": {"base_url": chat.url, "model": "small"}}}
    message = {"role": "assistant", "content": "positive"}
    chat.answer = lambda prompt: {"choices": [{"message": message, "logprobs": reported}]}
    place.gate(system, **reads)
    assert f"answers lack log-probabilities that `degrees` needs: {words}" in place.err
    assert ", expected " in place.err


BROKEN = ("error", "network_error", "insufficient_system_resource", "abort", "cancelled", "timeout")
"""Of OpenRouter, Z.AI, DeepSeek, SGLang and vLLM."""


@pytest.mark.walk(2)
@pytest.mark.parametrize("reason", BROKEN)
def test_half_an_answer_is_a_failure_and_none_that_is_read(place, chat, gate, at_once, reason):
    """Where a provider dies on the way a gateway sends what came until then, with status 200."""
    place.sources(12)
    usual = chat.answer
    half = completion("negat", reason)
    chat.answer = lambda prompt: half if "Black" in prompt else usual(prompt)
    assert gate() == 1, place.err
    told = place.record()["notices"][0]
    assert "for `race/black`, 12 of 12" in told
    assert f"finish_reason: {reason}" in told
    own = [row["response"] for row in place.executions() if "race/black" in row["key"]]
    assert own == [""] * 12


ADVICE = {
    "a field": (400, {"message": "Unsupported value: 'temperature' does not support 0 with this model."}, "`extra_body: {temperature: null}` leaves it out"),
    "FastAPI": (422, None, "'body seed: Extra inputs are not permitted'; the model may not take these settings: `extra_body: {seed: null}`"),
    "fewer": (400, {"message": "top_logprobs must be at most 5"}, "`top_logprobs: 5` asks for fewer"),
    "a filter": (400, {"message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", "code": "content_filter"}, "its filter refuses this text"),
    "LM Studio": (404, {"message": "No models loaded. Please load a model in the developer page or use the 'lms load' command.", "code": "model_not_found"}, "load the model in the server"),
    "Ollama": (404, {"message": "model 'small' not found, try pulling it first", "type": "api_error"}, "load the model in the server"),
    "llama.cpp": (400, {"code": 400, "message": "model is not loaded", "type": "invalid_request_error"}, "load the model in the server"),
    "a list of models": (404, {"message": "model 'small' not found, available: llama-3, qwen"}, "name in `model` one of those that it lists"),
    "another list": (400, {"message": "Invalid model 'small'. Must be one of: llama-3, qwen"}, "name in `model` one of those that it lists"),
    "a provider's words": (400, {"message": "Provider returned error", "metadata": {"raw": "top_k is not supported"}}, "Provider returned error: top_k is not supported'; the model may"),
}  # fmt: skip
FASTAPI = {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}  # fmt: skip


@pytest.mark.parametrize("name", ADVICE)
def test_a_refusal_is_told_in_the_server_s_words_and_what_follows_from_them(
    place, chat, gate, name
):
    status, error, advice = ADVICE[name]
    chat.faults = [(status, FASTAPI if error is None else {"error": error})] * 9
    assert gate(concurrency=1) == 4
    assert advice in place.err
    assert '{"' not in place.err


PAGES = {
    413: ("413 Request Entity Too Large", "it takes no request of this size"),
    502: ("502 Bad Gateway", "look into its log"),
}


@pytest.mark.parametrize("status", PAGES)
def test_a_page_of_a_server_in_between_is_told_without_its_tags(place, chat, gate, at_once, status):
    words, advice = PAGES[status]
    page = f"<html><head><title>{words}</title></head><body><hr>nginx</body></html>"
    chat.faults = [(status, page.encode())] * 99
    assert gate(concurrency=1) == 4
    assert f"HTTP {status} and the message '{words} nginx'; " in place.err
    assert advice in place.err


@pytest.mark.parametrize(
    "body", [b'data: {"choices": []}\n\ndata: [DONE]\n', b'{"message": {}}\n{"done": true}\n']
)
def test_an_answer_in_pieces_is_told_as_that(place, chat, gate, body):
    chat.faults = [(200, body)] * 9
    assert gate(concurrency=1) == 4
    assert "; it is a stream: let the server answer in one piece" in place.err
