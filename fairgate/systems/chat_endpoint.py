"""Answers from an OpenAI-compatible endpoint: `POST <base>/chat/completions`.

vLLM, Ollama, llama.cpp's server and hosted models implement it. The endpoint puts the messages into
its own chat template, decides itself how it samples, and may serve another model later: it
guarantees nothing, so equal questions are asked again wherever a run asks for them again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fairgate.domain.applications import Used, not_counted, usage_of
from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Answer as GeneratedAnswer
from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.wording import concealed, concealed_in_answer, harmless, quoted
from fairgate.io.http_client import HttpClient
from fairgate.io.http_messages import BUSY, Answer, HttpError, Limits, Request, asks_to_wait, key_in

_VERSION = "chat-1"
"""Part of the fingerprint: raise it when the same answers would be read otherwise."""
_MOST_SEED = 2**31
"""Servers keep seeds in 32 bits."""
_MOST_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAddress:
    """Which model is asked, and where."""

    base_url: str
    model: str
    api_key_env: str | None = None
    """NAME of the environment variable that holds the key."""
    system: str | None = None
    revision: str | None = None


class ChatEndpoint:
    """A port `Generator` over the network. Margins are not known."""

    def __init__(
        self,
        address: ChatAddress,
        decoding: Decoding,
        limits: Limits,
        *,
        used: Used = not_counted,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        """Take address and decoding; nothing is asked and no variable is read yet."""
        self._address = address
        self._decoding = decoding
        self._limits = limits
        self._used = used
        self._sleep = sleep
        self._url = address.base_url.rstrip("/") + "/chat/completions"

    @property
    def fingerprint(self) -> str:
        """Identify endpoint, model, revision, system turn and decoding."""
        address = self._address
        parts = (_VERSION, self._url, address.model, address.revision, address.system)
        return hashlib.sha256(repr((*parts, self._decoding)).encode()).hexdigest()

    def generate(
        self, requests: Sequence[GenerationRequest]
    ) -> Iterator[tuple[int, GeneratedAnswer]]:
        """Yield `(position in requests, answer)` as they come.

        Raises ModelError for the first request without a usable answer, UsageError where the key is
        not set.
        """
        asked = (self._request(request) for request in requests)
        for position, found in self._client.ask_all(asked):
            yield position, self._generated(self._fine(found))

    @property
    def _where(self) -> str:
        return f"the endpoint {quoted(self._url)}, model {quoted(self._address.model)}"

    def _request(self, request: GenerationRequest) -> Request:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return Request(
            method="POST",
            url=self._url,
            headers=headers,
            body=json.dumps(self._body(request)).encode(),
        )

    def _body(self, request: GenerationRequest) -> dict[str, Any]:
        decoding, system = self._decoding, self._address.system
        messages = [{"role": "system", "content": system}] if system else []
        body: dict[str, Any] = {
            "model": self._address.model,
            "messages": [*messages, {"role": "user", "content": request.prompt}],
            "temperature": decoding.temperature,
            "max_tokens": decoding.max_new_tokens,
        }
        if not decoding.is_greedy:
            body |= {"top_p": decoding.top_p, "seed": request.seed % _MOST_SEED}
            # Not every endpoint knows it, so it is only sent where the policy asks for it.
            body |= {"top_k": decoding.top_k} if decoding.top_k else {}
        return body

    def _fine(self, found: Answer | HttpError) -> Answer:
        if isinstance(found, HttpError):
            raise ModelError(f"{self._where}: {found.sentence}; check that it runs, and `base_url`")
        if found.status // 100 != 2:
            detail = concealed(found.body[:2000].decode("utf-8", "replace"), [self._key]).strip()
            words = f" and the message {harmless(detail[:200])!r}" if detail else ""
            raise ModelError(
                f"{self._where}: refused with HTTP {found.status}{words}; {self._hint(found)}"
            )
        return found

    def _hint(self, answer: Answer) -> str:
        if wait := asks_to_wait(answer):
            return wait
        return {
            400: "the model may not take these settings: look at `decoding` and `system`",
            401: f"check the key in {self._address.api_key_env or 'a variable: `api_key_env`'}",
            403: "the key has no right to this model",
            404: "check `base_url` (without /chat/completions) and `model`",
            413: "the prompt is too long: lower `document_characters` or `top_k`",
        }.get(answer.status, "try again later" if answer.status in BUSY else "check the endpoint")

    def _generated(self, answer: Answer) -> GeneratedAnswer:
        try:
            value = read_json(answer.body, strict=False)
            choice = value["choices"][0]
            text = _content(choice["message"])
        except (JsonError, KeyError, IndexError, TypeError, AttributeError) as error:
            reason = concealed(repr(error), [self._key])
            raise ModelError(
                f"{self._where}: the answer is no completion ({quoted(reason)}); expected "
                '{"choices": [{"message": {"content": "…"}}]}'
            ) from None
        usage = usage_of(value)
        self._used(usage)
        clean = text.encode("utf-8", "replace").decode("utf-8")
        return GeneratedAnswer(
            text=concealed_in_answer(clean, [self._key]),
            tokens=usage.output or 0,
            stopped="length" if choice.get("finish_reason") == "length" else "end",
        )

    @cached_property
    def _client(self) -> HttpClient:
        return HttpClient(self._limits, secrets=[self._key], sleep=self._sleep)

    @cached_property
    def _key(self) -> str:
        """Return the key; empty where none is to be sent. Raises UsageError."""
        return key_in(self._address.api_key_env)


def _content(message: Any) -> str:
    """Return the model's text; for a refusal its reason, or nothing. Raises TypeError."""
    text = message.get("content")
    if text is None:
        text = message.get("refusal") or ""
    if not isinstance(text, str) or len(text) > _MOST_CHARACTERS:
        raise TypeError("the content is no text")
    return text
