"""A prompt that is too long for a model is told as that, in whatever words a server refuses it."""

import http.server
import json

import pytest
from fakes.serving import Answering, served

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import GenerationRequest
from fairgate.retrieval.embedding_endpoint import EndpointEmbedder
from fairgate.systems.budget import Meter
from fairgate.systems.generator import ChatEndpoint, EndpointGeneratorPolicy, EndpointPart

TOO_LONG = [
    (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9012"),
    (400, {"message": "Input is wrong", "code": "context_length_exceeded"}),
    (400, "Input tokens exceed the configured limit of 272000 tokens."),
    (400, "prompt is too long: 213012 tokens > 200000 maximum"),
    (400, "request (3572 tokens) exceeds the available context size (2048 tokens), try increasing it"),
    (400, "the request exceeds the available context size. try increasing the context size"),
    (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
    (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"),
    (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
    (400, "Please reduce the length of the messages or completion."),
    (413, "Input validation error: `inputs` must have less than 512 tokens. Given: 600"),
    (400, "too many tokens: total number of tokens in the prompt cannot exceed 4081"),
    (400, "the model is loaded with context length of only 4096 tokens, which is not enough"),
    (400, "Input is too long for requested model."),
    (400, "Range of input length should be [1, 30720]"),
    (400, "The input (5000 tokens) is longer than the model's context length (4096 tokens)."),
    (413, ""),
]  # fmt: skip
OTHERS = [
    (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens"),
    (400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
    (400, "logprobs is not supported with this model"),
    (400, "Invalid value for temperature: expected a number from 0 to 2"),
    (400, "top_logprobs must be at most 5"),
    (400, "[] is too short - 'messages'"),
]
MEANT = [
    (400, "API key not valid. Please pass a valid API key.", "give the key in `api_key_env`"),
    (400, "The model `m` does not exist", "check `base_url`"),
    (
        413,
        "Request too large for m on tokens per minute (TPM): Limit 6000, Requested 7000",
        "lower `concurrency`",
    ),
    (403, "Rate limit exceeded", "lower `concurrency`"),
]


class _Refusing(Answering):
    def do_POST(self):  # noqa: N802 its name
        self.body()
        self.send(*self.server.refusal)


def told(refusal):
    """What is said by a chat endpoint and by an endpoint of embeddings."""
    status, words = refusal
    error = words if isinstance(words, dict) else {"message": words, "code": status}
    with served(http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)) as server:
        server.refusal = status, json.dumps({"error": error}).encode()
        policy = EndpointGeneratorPolicy(endpoint=EndpointPart(base_url=server.url, model="m"))
        request = GenerationRequest(prompt="word " * 400 + "the last words")
        with pytest.raises(ModelError) as chat:
            list(ChatEndpoint(policy, Meter(), bool).generate([request]))
        with pytest.raises(ModelError) as vectors:
            EndpointEmbedder(server.url, "m", Meter(), pause=lambda _: None).embed(["x"])
    return str(chat.value), str(vectors.value)


@pytest.mark.parametrize(("status", "words", "advice"), MEANT)
def test_advice_follows_a_server_s_words_and_not_its_status(status, words, advice):
    chat, _ = told((status, words))
    assert advice in chat
    assert "too long" not in chat.replace(words, "")


def test_a_prompt_that_does_not_fit_is_told_as_that_with_its_end():
    wrong = []
    for refusal in TOO_LONG:
        chat, vectors = told(refusal)
        if not (
            "asked a prompt of 2,014 characters that ends in '…" in chat
            and "the last words'" in chat
            and "give the server a longer context" in chat
            and "the text is too long for this model" in vectors
        ):
            wrong.append((refusal, chat, vectors))
    for refusal in OTHERS:
        chat, vectors = told(refusal)
        if "the model may not take these settings" not in chat or "too long for this" in vectors:
            wrong.append((refusal, chat, vectors))
    assert not wrong, wrong[0]
