"""A status of success with an error inside: kept in its own words, and retried like its status."""

import http.server
import json

import pytest
from contract.conftest import ASKED, NO_RETRIEVAL
from fakes.serving import Answering, served

from fairgate.domain.errors import FairGateError
from fairgate.domain.executions import GenerationRequest, Question
from fairgate.domain.ports import SILENT, Runtime
from fairgate.io.inner_errors import inner_error
from fairgate.retrieval.embedding_endpoint import EndpointEmbedder
from fairgate.systems.budget import Meter
from fairgate.systems.generator import ChatEndpoint, EndpointGeneratorPolicy, EndpointPart
from fairgate.systems.http import HttpPart
from fairgate.systems.own_retriever import HttpSearch
from fairgate.systems.resources import Resources

WORDS = "Please slow down, friend"
FORMS = {
    "OpenAI": (429, {"error": {"message": WORDS, "type": "x", "code": "rate_limit_exceeded"}}),
    "OpenRouter": (502, {"error": {"message": WORDS, "code": 502}}),
    "of a choice": (503, {"choices": [{"error": {"code": 503, "message": WORDS}, "message": {"content": None}}]}),
    "of a choice without a message": (504, {"choices": [{"error": {"code": 504, "message": WORDS}}]}),
    "of a choice beside half an answer": (502, {"choices": [{"error": {"code": 502, "message": WORDS}, "message": {"content": "negat"}, "finish_reason": "error"}]}),
    "beside no choices": (500, {"choices": [], "error": {"message": WORDS, "type": "server_error"}}),
    "Google": (429, [{"error": {"code": 429, "message": WORDS, "status": "RESOURCE_EXHAUSTED"}}]),
    "vLLM": (400, {"object": "error", "message": WORDS, "type": "BadRequestError", "code": 400}),
    "Anthropic": (503, {"type": "error", "error": {"type": "overloaded_error", "message": WORDS}}),
    "Ollama": (404, {"error": f"{WORDS}: model 'x' not found"}),
    "FastAPI": (500, {"detail": WORDS}),
    "FastAPI's fields": (500, {"detail": [{"loc": ["body"], "msg": WORDS, "type": "x"}]}),
    "Cloudflare": (500, {"success": False, "errors": [{"code": 7003, "message": WORDS}], "result": None}),
    "MiniMax": (429, {"base_resp": {"status_code": 1002, "status_msg": f"{WORDS}, rate limit"}}),
    "a code": (403, {"code": "403", "msg": WORDS}),
    "a failure": (500, {"status": "error", "message": WORDS}),
    "true": (500, {"error": True, "message": WORDS}),
    "a text": (503, {"error": f"{WORDS}, the model is overloaded"}),
    "a time-out": (504, {"error": {"type": "timeout", "message": WORDS}}),
    "Alibaba": (429, {"Error": {"Code": "Throttling.User", "Message": WORDS}}),
    "Lambda": (504, {"errorMessage": f"{WORDS}: task timed out", "errorType": "x", "errorCode": "x"}),
    "AWS": (429, {"__type": "ThrottlingException", "message": WORDS}),
    "Azure's gateway": (429, {"statusCode": 429, "message": WORDS}),
    "Baidu": (401, {"error_code": 110, "error_msg": f"{WORDS}: unauthorized"}),
    "Apigee": (500, {"fault": {"faultstring": WORDS, "detail": {"errorcode": "x"}}}),
    "an application": (500, {"err": WORDS}),
    "a key": (401, {"error": {"message": f"{WORDS}: Invalid API key"}}),
    "a message alone": (429, {"message": f"{WORDS}: too many requests"}),
    "a message of a limit": (429, {"message": f"{WORDS}: a trial key is limited to 20 calls / minute"}),
    "Baidu's limit": (429, {"error_code": 18, "error_msg": f"{WORDS}: qps request limit reached"}),
    "RFC 9457": (429, {"type": "about:blank", "title": "Too many", "status": 429, "detail": WORDS}),
    "handed on": (503, {"response": {"error": {"message": WORDS, "code": "overloaded"}}}),
    "handed on as a result": (429, {"result": {"status": "error", "message": f"{WORDS}: rate limit"}}),
    "handed on as a text": (500, {"statusCode": 500, "body": json.dumps({"error": WORDS})}),
    "Lambda's": (504, {"errorMessage": f"{WORDS}: task timed out after 3 s", "errorType": "x"}),
    "GraphQL": (429, {"data": None, "errors": [{"message": WORDS, "extensions": {}, "code": "RATE_LIMITED"}]}),
    "JSON-RPC": (503, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": f"{WORDS}: busy"}}),
    "Zhipu": (429, {"code": 1302, "msg": f"{WORDS}: 您的账户已达到速率限制", "success": False}),
    "Gemini blocks the prompt": (400, {"promptFeedback": {"blockReason": WORDS}, "usageMetadata": {}}),
    "Gemini blocks the answer": (400, {"candidates": [{"finishReason": WORDS, "index": 0}]}),
    "too many tokens": (413, {"error": {"message": f"{WORDS}: too many input tokens"}}),
    "too long": (413, {"error": {"message": f"{WORDS}: maximum context length"}}),
}  # fmt: skip
RETRIED = {429, 500, 502, 503, 504}


class Fixed(Answering):
    def do_POST(self):  # noqa: N802 its name
        self.body()
        self.server.asked += 1
        self.send(200, self.server.value)


@pytest.fixture
def fixed():
    with served(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fixed)) as server:
        server.asked, server.value = 0, None
        yield server


def chat(url, tmp_path):
    part = EndpointPart(base_url=url, model="m")
    policy = EndpointGeneratorPolicy(endpoint=part)
    list(ChatEndpoint(policy, Meter(), bool).generate([GenerationRequest(prompt="x")]))


def asked(part, tmp_path):
    resources = Resources(Runtime(root=tmp_path), SILENT)
    question = Question(query="x", text="x", instruction="", prompt="x")
    list(part.opened(part.response.paths, resources, Meter()).ask([question]))


WAYS = {
    "a chat endpoint": chat,
    "an application": lambda url, place: asked(HttpPart(url=url), place),
    "a retriever": lambda url, place: asked(HttpSearch(url=url), place),
    "embeddings": lambda url, _: EndpointEmbedder(url, "m", Meter(), pause=lambda _: None).embed(
        ["x"]
    ),
}


def test_an_error_inside_keeps_its_words_and_is_retried_like_its_status(fixed, tmp_path, at_once):
    """Every form that is known, in every way in which something is asked over HTTP."""
    wrong = []
    for form, (status, value) in FORMS.items():
        for way, ask in WAYS.items():
            fixed.asked, fixed.value = 0, value
            with pytest.raises(FairGateError) as raised:
                ask(fixed.url, tmp_path)
            text = str(raised.value)
            times = 4 if status in RETRIED else 1
            if WORDS not in text or f"HTTP {status}" not in text or fixed.asked != times:
                wrong.append((form, way, fixed.asked, text))
    assert not wrong


def test_what_is_asked_for_is_no_error_whatever_stands_beside_it():
    """An answer that is there counts, and an answer about errors is an answer."""
    fine = [
        {"choices": [{"message": {"content": "error 429: rate limit"}}], "error": None},
        {"choices": [{"message": {"content": "x"}}], "detail": None, "code": 0},
        {"choices": [{"message": {"content": "x"}}]},
        [], {}, "x", None, 7, {"error": ""}, {"errors": []}, {"success": True},
        {"message": "Hello, what can I do for you?"}, {"status": 200, "title": "x"},
        {"result": {"text": "x"}}, {"body": "{"}, {"candidates": [{"finishReason": "STOP"}]},
    ]  # fmt: skip
    assert not [value for value in fine if inner_error(value) is not None]


def test_an_error_inside_once_is_no_error_of_the_run(place, chat, http_system, start, at_once):
    """And what an application says beside no answer is no answer that nothing can be read in."""
    value = {"error": {"message": WORDS, "code": 429}}
    chat.faults = [(200, value)]
    endpoint = {"generator": {"endpoint": {"base_url": chat.url, "model": "small"}}}
    assert place.gate(endpoint, **NO_RETRIEVAL) == 0, place.err
    app = start()
    app.faults = [
        (200, {}, b'{"answer": null, "contexts": [], "error": "' + WORDS.encode() + b'"}')
    ]
    assert place.gate(http_system(app)) == 0, place.err
    assert len(app.seen) == ASKED + 1
