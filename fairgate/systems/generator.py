"""The language model that answers: as ONNX here, or behind an endpoint.

Its policy, its prompt and decoding, and how it is opened. An endpoint is an OpenAI-compatible one
(`POST <base>/chat/completions`: vLLM, Ollama, llama.cpp's server, hosted models). It puts the
messages into its own chat template, decides itself how it samples, and may serve another model
later: it guarantees nothing, so equal questions are asked again wherever a run asks for them again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Generator as PythonGenerator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from fairgate.domain.cases import Case
from fairgate.domain.errors import FailedRequestError, ModelError
from fairgate.domain.executions import (
    Chat,
    Decoding,
    Document,
    Execution,
    GenerationRequest,
    named_turn,
    usage_of,
)
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.ports import Generator
from fairgate.domain.schema import Access, Address, ByShape, Names, Role, Seed, Strict, Text, way_of
from fairgate.domain.wording import concealed_in_answer, harmless, quoted, shown
from fairgate.io.http_messages import ATTEMPTS, HttpAnswer, HttpError, failure_in
from fairgate.io.http_service import HttpService
from fairgate.io.replies import place_of_text, served_of, text_of_parts
from fairgate.relations.oracles.text import spoken, spoken_spans
from fairgate.systems.listed_tokens import MOST_LISTED, lacking_in, listed_degrees
from fairgate.systems.models import WHICH_GRAPH, GraphFile
from fairgate.systems.revisions import RevisionField
from fairgate.systems.service_fields import (
    Concurrency,
    Seconds,
    Variable,
    limits_of,
    require_safe,
)

if TYPE_CHECKING:
    from fairgate.io.http_client import Talk
    from fairgate.systems.budget import Meter
    from fairgate.systems.resources import Resources

PRESETS = {
    "greedy": Decoding(),
    "paper-text": Decoding(temperature=0.1, top_p=0.9, top_k=50, max_new_tokens=150, seed=42),
    "paper-code": Decoding(max_new_tokens=800),
}
DEFAULT_TEMPLATE = "{instruction}\n\n{documents}{text}\nAnswer:"
"""The instruction and the documents come first: follow-ups of a source share them as a prefix."""
_VERSION = "chat-1"
"""Part of the fingerprint: raise it when the same answers would be read otherwise."""
_BEGINNING = 200
"""Bytes of a reply that is no completion which are shown."""
_MOST_SEED = 2**31
"""Servers keep seeds in 32 bits."""
_MOST_CHARACTERS = 1_000_000
_SET_HERE = {
    "model": "is the endpoint's own `model`; name it there",
    "messages": "is what FairGate asks; change `prompt` or `system`",
    "stream": "would send the answer in pieces; leave it out",
    "n": "would give several answers; leave it out",
    **dict.fromkeys(
        ("temperature", "top_p", "top_k", "seed"), "belongs in `decoding`; `null` leaves it out"
    ),
}
"""Fields of a request that `extra_body` may not set, and why; null takes out one of `decoding`."""
_LIMIT = "max_tokens"
_LIMITS = r"\b(?:max_[a-z_]{0,20}tokens(?:_to_sample)?|num_predict)\b"
"""Names of the longest answer, in tokens."""
_REASONING = ("reasoning_content", "reasoning", "thinking", "thinking_blocks")
"""Members of a message beside its content that hold thinking."""
_CUT = ("length", "max_tokens", "max_output_tokens", "model_length")
"""Reasons to end at the limit of tokens: OpenAI's, Anthropic's, Gemini's, Mistral's."""
_WITHHELD = "filter|safety|block|prohibit|recitation|spii|refusal|sensitive"
_FILTERED = r"content.?(?:filter|management|policy)|responsible.?ai|moderation"
"""How filters say that they refuse a prompt."""
_NOT_LOADED = r"\bno models?\b.{0,20}\bloaded|\bnot loaded|\bload a model|\bpulling it"
"""How LM Studio, llama.cpp's server and Ollama say that they have not loaded a model."""
_OTHER_MODELS = r"\bmodels?\b.{0,160}\b(?:available|choose from|one of|(?:known|valid) models)\b"
"""How servers begin the list of the models that they have."""
_NO_CONTENT = "have no content (`null`), however often they are asked for, and no reason for it"
_PLACES = re.compile(r"(\{(?:instruction|documents|text)\})")


class DecodingPolicy(Strict):
    """How the generator chooses tokens. Temperature 0 is greedy."""

    temperature: Annotated[float, Field(ge=0, le=5)] = Field(
        default=0.0, description="0 is greedy."
    )
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0, description="Nucleus mass kept."
    )
    top_k: Annotated[int, Field(ge=0)] = Field(default=0, description="Tokens kept; 0 keeps all.")
    max_new_tokens: Annotated[int, Field(ge=1, le=8192)] = Field(
        default=150, description="Longest answer, in tokens."
    )
    seed: Seed = Field(default=42, description="Seed from which every case's own seed is derived.")


def render_prompt(
    template: str, *, instruction: str, text: str, documents: Sequence[Document], characters: int
) -> str:
    """Fill `{instruction}`, `{documents}` and `{text}`; nothing inside them is expanded again.

    Documents are a numbered block that ends with a blank line, nothing where there are none: white
    space inside each is folded, and its text cut after `characters` characters.
    """
    lines = [
        f"[{rank}] {_folded(document.text or '', characters)}"
        for rank, document in enumerate(documents, start=1)
    ]
    block = "Documents:\n" + "\n".join(lines) + "\n\n" if lines else ""
    parts = {"{instruction}": instruction, "{documents}": block, "{text}": text}
    return "".join(parts.get(piece, piece) for piece in _PLACES.split(template))


@lru_cache(maxsize=4096)  # thousands of prompts show the same few documents
def _folded(text: str, characters: int) -> str:
    return " ".join(text.split())[:characters]


def prompt_alone(case: Case) -> str:
    """Return a case's instruction and text in FairGate's own template, without documents."""
    return render_prompt(
        DEFAULT_TEMPLATE,
        instruction=case.instruction, text=case.text, documents=(), characters=0,
    )  # fmt: skip


def _plain(value: object) -> bool | int | float | str:
    if isinstance(value, bool | int | float | str):
        return value
    raise ValueError("needs true, false, a number or a text")


Argument = Annotated[
    Any,
    AfterValidator(_plain),
    WithJsonSchema({"type": ["boolean", "integer", "number", "string"]}),
]


class GeneratorModel(Strict):
    """A generator's prompt and decoding."""

    decoding: Annotated[
        Annotated[Literal["greedy", "paper-text", "paper-code"], Tag("<scalar>")]
        | Annotated[DecodingPolicy, Tag("<mapping>")],
        ByShape,
    ] = Field(
        default="greedy",
        description="A preset (`greedy`; Oliveira et al.: `paper-text`, `paper-code`) or your own.",
    )
    prompt: str | None = Field(
        default=None,
        description="Template with {instruction}, {documents} and {text}; default: FairGate's own.",
    )
    system: Text | None = Field(
        default=None, description="System turn of the conversation, before the prompt."
    )
    document_characters: Annotated[int, Field(ge=1)] = Field(
        default=1000, description="Longest excerpt of a document in the prompt."
    )
    template_arguments: dict[str, Argument] = Field(
        default_factory=dict,
        description="Arguments of the model's chat template, such as `enable_thinking: true`.",
    )

    @property
    def template(self) -> str:
        """Return the prompt's template."""
        return self.prompt or DEFAULT_TEMPLATE

    @property
    def chosen_decoding(self) -> Decoding:
        """Return how tokens are chosen, presets spelled out."""
        chosen = self.decoding
        return PRESETS[chosen] if isinstance(chosen, str) else Decoding(**chosen.model_dump())

    @property
    def chat(self) -> Chat:
        """Return the arguments of the model's chat template besides the prompt."""
        return Chat(system=self.system, arguments=tuple(self.template_arguments.items()))


class GeneratorPolicy(GeneratorModel):
    """The small language model under test."""

    model: Annotated[Text, Names(Role.GENERATOR)] = Field(
        default="demo-slm",
        description="Bundled name, folder of an ONNX decoder, or Hugging Face id.",
    )
    revision: str | None = Field(default=None, description="Commit of a Hugging Face model.")
    file: GraphFile | None = Field(default=None, description=WHICH_GRAPH)
    thinking_tokens: Annotated[int, Field(ge=0, le=65536)] = Field(
        default=4096,
        description="Longest thinking, in tokens, of a model that thinks before it answers.",
    )

    @property
    def chosen_decoding(self) -> Decoding:
        """Return how tokens are chosen, and how long the model may think."""
        return replace(super().chosen_decoding, thinking_tokens=self.thinking_tokens)


def _extra(body: dict[str, Any]) -> dict[str, Any]:
    """Return more fields of a request. Raises ValueError for those that FairGate sets itself."""
    for name, value in body.items():
        if name in _SET_HERE and value is not None:
            raise ValueError(f"`{name}` {_SET_HERE[name]}")
    try:
        json.dumps(body, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("holds what JSON cannot; expected texts, numbers, lists, maps") from None
    return body


ExtraBody = Annotated[dict[Text, Any], AfterValidator(_extra)]


def _without_path(url: str) -> str:
    """Return an endpoint's address. Raises ValueError where it ends with what is appended."""
    end = "/chat/completions"
    if url.rstrip("/").endswith(end):
        raise ValueError(f"ends with {end}, which is appended; leave it out")
    return url


class EndpointPart(Strict):
    """Where a model is asked, and at which pace."""

    base_url: Annotated[Address, AfterValidator(_without_path)] = Field(
        description="Address with its version, such as `http://127.0.0.1:8000/v1`."
    )
    model: Text = Field(description="Name of the model as the endpoint knows it.")
    api_key_env: Variable | None = Field(
        default=None, description="NAME of the environment variable that holds the key."
    )
    extra_body: ExtraBody = Field(
        default_factory=dict,
        description="Further fields of each request; `null` removes a field.",
    )
    revision: RevisionField = None
    timeout: Seconds = 120.0
    concurrency: Concurrency = 4

    @model_validator(mode="after")
    def _sends_the_key_safely(self) -> Self:
        require_safe(self.base_url, self.api_key_env)
        return self


class EndpointGeneratorPolicy(GeneratorModel):
    """A model behind an OpenAI-compatible endpoint."""

    endpoint: EndpointPart = Field(description="Which model is asked, and where.")

    @model_validator(mode="after")
    def _sets_the_template_s_arguments_once(self) -> Self:
        if self.template_arguments and "chat_template_kwargs" in self.endpoint.extra_body:
            raise ValueError(
                "has `template_arguments`, which `endpoint.extra_body.chat_template_kwargs` are, "
                "too; keep `template_arguments`"
            )
        return self

    @property
    def accesses(self) -> Iterable[Access]:
        """Return the endpoint, with the variable that is sent there."""
        endpoint = self.endpoint
        return (Access("asks", endpoint.base_url, endpoint.api_key_env, way_of(endpoint)),)


def _place(value: object) -> str:
    """Return the kind of generator: the key `endpoint` determines it."""
    keys = value if isinstance(value, dict) else getattr(type(value), "model_fields", ())
    return "<endpoint>" if "endpoint" in keys else "<here>"


GeneratorField = Annotated[
    Annotated[GeneratorPolicy, Tag("<here>")]
    | Annotated[EndpointGeneratorPolicy, Tag("<endpoint>")],
    Discriminator(_place),
]
"""A model that runs here, or one behind an endpoint."""


def open_generator(
    chosen: GeneratorPolicy, resources: Resources, role: Role = Role.GENERATOR
) -> Generator:
    """Return the model; nothing is loaded before it is asked."""
    from fairgate.onnx.batches import BatchSize
    from fairgate.onnx.decoder import OnnxDecoder

    return OnnxDecoder(
        resources.model_path(chosen, role),
        decoding=chosen.chosen_decoding,
        chat=chosen.chat,
        batch_size=BatchSize(resources.runtime.batch_size),
        threads=resources.runtime.threads,
        device=resources.runtime.device,  # type: ignore[arg-type]
    )


class ChatEndpoint:
    """A port `Generator` over the network. Margins are not known."""

    def __init__(
        self, chosen: EndpointGeneratorPolicy, meter: Meter, is_kept: Callable[[], bool]
    ) -> None:
        """Take address and decoding; nothing is asked and no variable is read yet.

        `meter` counts; `is_kept`: whether answers are stored for the next run.
        """
        endpoint = self._endpoint = chosen.endpoint
        self._chat = chosen.chat
        self._decoding = chosen.chosen_decoding
        self._meter = meter
        self._is_kept = is_kept
        self.notices: list[str] = []
        """Why answers say nothing, once they are there."""
        self._silent: Counter[str] = Counter()
        self._limit = _LIMIT
        self._answers = 0
        self._url = endpoint.base_url.rstrip("/") + "/chat/completions"
        self._service = HttpService(
            name=f"the endpoint {quoted(self._url)}, model {quoted(endpoint.model)}",
            limits=limits_of(seconds=endpoint.timeout, concurrency=endpoint.concurrency),
            variables={"Authorization": endpoint.api_key_env} if endpoint.api_key_env else {},
            before="Bearer ",
            error=ModelError,
            hints={
                400: "the model may not take these settings: look at `decoding`, `system` and "
                "`extra_body` (`top_logprobs: 5` where it lists fewer and a suite reads `degrees`)",
                403: "the key has no right to this model",
                404: "check `base_url` (without /chat/completions) and `model`",
                413: "the prompt is too long for the model: shorten the text, lower "
                "`document_characters`, `top_k` or `max_new_tokens`, or give the server a longer "
                "context",
            },
            remedy="check the endpoint",
            advice=self._advice,
            lacks=lambda value: _message(value) is None,
        )

    @property
    def fingerprint(self) -> str:
        """Identify endpoint, model, revision, system turn, decoding and all else that is sent."""
        endpoint, chat = self._endpoint, self._chat
        parts = (
            _VERSION,
            self._url,
            endpoint.model,
            endpoint.revision,
            chat.system,
            self._decoding,
        )
        more = (sorted(chat.arguments), json.dumps(endpoint.extra_body, sort_keys=True))
        is_plain = not chat.arguments and not endpoint.extra_body
        return hashlib.sha256(repr(parts if is_plain else (*parts, *more)).encode()).hexdigest()

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Execution]]:
        """Yield `(position in requests, answer)` as they come.

        Raises ModelError for the first request without a usable answer, UsageError where the key is
        not set, BudgetError where not all may be asked.
        """
        return self._meter.asked(requests, self._asked, self._is_kept)

    def _asked(
        self, requests: Sequence[GenerationRequest]
    ) -> PythonGenerator[tuple[int, Execution], None, None]:
        for position, (answer, why_silent) in self._service.client.talk_all(
            map(self._talk, requests)
        ):
            self._answers += 1
            if why_silent:
                self._silent[why_silent] += 1
            self.notices[:] = self._remarks()
            yield position, answer

    def _talk(self, request: GenerationRequest) -> Talk[tuple[Execution, str]]:
        """Put each turn with all that was said before it.

        Return the answer to the last one, and why it says nothing, where it does. An answer without
        content and without a reason for it is asked for again.
        """
        service, system = self._service, self._chat.system
        messages = [{"role": "system", "content": system}] if system else []
        for number, message in enumerate((*request.before, request.prompt)):
            turn = named_turn(request.before, request.prompt, number) if request.before else ""
            messages.append({"role": "user", "content": message})
            after = 0.0
            for _ in range(ATTEMPTS):
                http_request = service.send(self._url, self._body(request, messages))
                response = yield replace(http_request, after=after)
                if name := self._other_limit(response):
                    self._limit = name
                    response = yield service.send(self._url, self._body(request, messages))
                about = turn
                if service.is_too_long(response):
                    end = quoted(f"…{message[-30:]}")
                    about = turn or f"a prompt of {len(message):,} characters that ends in {end}"
                try:
                    usable = service.usable(response, about)
                    answer, why_silent = self._generated(usable, request, turn, messages)
                except ModelError as error:
                    if service.is_too_long(response):
                        raise
                    raise FailedRequestError(str(error), request, failure_in(response)) from None
                if why_silent != _NO_CONTENT:
                    break
                after = 1.0
            messages.append({"role": "assistant", "content": answer.response or ""})
        return answer, why_silent

    def _advice(self, words: str) -> str:
        """Return what to do where a refusal names a filter, models, or a field that was sent."""
        if re.search(_FILTERED, words, re.IGNORECASE):
            return "its filter refuses this text: take another text, or set the filter lower"
        if re.search(_NOT_LOADED, words, re.IGNORECASE):
            return "load the model in the server, or name in `model` one that is loaded"
        if re.search(_OTHER_MODELS, words, re.IGNORECASE):
            return "name in `model` one of those that it lists"
        sent = ("temperature", "top_p", "top_k", "seed", "top_logprobs", "logprobs")
        for name in (*sent, "chat_template_kwargs", *self._endpoint.extra_body):
            if re.search(rf"(?<![\w.]){re.escape(name)}\b", words):
                other = "; `top_logprobs: 5` asks for fewer" * (name == "top_logprobs")
                return (
                    "the model may not take these settings: "
                    f"`extra_body: {{{name}: null}}` leaves it out{other}"
                )
        return ""

    def _other_limit(self, response: HttpAnswer | HttpError) -> str:
        """Return the name that a server wants instead of `max_tokens`; empty for none."""
        if isinstance(response, HttpError) or response.status not in (400, 422):
            return ""
        words = response.body[:2000].decode("utf-8", "replace")
        other = next((name for name in re.findall(_LIMITS, words) if name != _LIMIT), "")
        return "" if _LIMIT not in words or self._service.is_too_long(response) else other

    def _body(self, request: GenerationRequest, messages: list[dict[str, str]]) -> dict[str, Any]:
        decoding, extra = self._decoding, self._endpoint.extra_body
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": messages,
            "temperature": decoding.temperature,
        }
        if extra.get("max_completion_tokens") is None:  # servers refuse the two together
            body[self._limit] = decoding.max_new_tokens
        if not decoding.is_greedy:
            body |= {"top_p": decoding.top_p, "seed": request.seed % _MOST_SEED}
            # Not every endpoint knows it, so it is only sent where the policy asks for it.
            body |= {"top_k": decoding.top_k} if decoding.top_k else {}
        if request.forms:
            body |= {"logprobs": True, "top_logprobs": MOST_LISTED}
        if self._chat.arguments:
            body["chat_template_kwargs"] = dict(self._chat.arguments)
        return {name: value for name, value in (body | extra).items() if value is not None}

    def _generated(
        self,
        answer: HttpAnswer,
        request: GenerationRequest,
        turn: str,
        messages: Sequence[Mapping[str, str]],
    ) -> tuple[Execution, str]:
        """Return the answer, and why it says nothing; empty where it says something."""
        service = self._service
        try:
            value = read_json(answer.body, strict=False)
            message = _message(value)
            text = _content(message, value)
        except (JsonError, TypeError) as error:
            streams = re.match(rb"\s*(?:data|event):|\s*\{.*\}\r?\n\s*\{", answer.body)
            begins = answer.body[:_BEGINNING].decode("utf-8", "replace").strip()
            raise ModelError(
                f"{service.name}{f', asked {turn}' if turn else ''}: the answer is no completion "
                f"({service.concealed(str(error))}), it begins "
                f"{quoted(service.concealed(begins))}; expected "
                '{"choices": [{"message": {"content": "…"}}]}'
                + _elsewhere(answer.body)
                + ("; it is a stream: let the server answer in one piece" if streams else "")
            ) from None
        usage = usage_of(value)
        characters = sum(len(each["content"]) for each in messages)
        self._meter.add(usage)
        reason = value["choices"][0].get("finish_reason")
        if _is_withheld(reason) and not (message or {}).get("refusal"):
            text = None  # what a filter let through is half an answer
        clean = (text or "").encode("utf-8", "replace").decode("utf-8")
        generated = Execution(
            response=concealed_in_answer(clean, service.secrets),
            tokens=usage.output or 0,
            stopped="length" if _is_cut(reason) else "end",
            degrees=listed_degrees(value["choices"][0], request) if request.forms else None,
            served=served_of(value, answer.headers, characters=characters),
        )
        why_silent = _why_silent(text, message, reason)
        if request.forms and (lacking := lacking_in(value["choices"][0].get("logprobs"))):
            why_silent = why_silent or f"lack log-probabilities that `degrees` needs: {lacking}"
        return generated, why_silent

    def _remarks(self) -> Iterator[str]:
        """Yield how many answers say nothing, for each reason."""
        for why, count in self._silent.items():
            yield f"{self._service.name}: {count:,} of {self._answers:,} answers {why}"


def _elsewhere(body: bytes) -> str:
    """Say where a reply of another API has its text; empty where that is not known."""
    with suppress(JsonError):
        if place := place_of_text(read_json(body, strict=False)):
            return (
                f"; found a text at `{place}`: give `base_url` the server's OpenAI-compatible "
                f"address, or ask it as an application, `http` with `response: {{answer: {place}}}`"
            )
    return ""


def _message(value: Any) -> Mapping[str, Any] | None:
    """Return the message of a completion; None where an answer is none."""
    choices = value.get("choices") if isinstance(value, Mapping) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, Mapping) else None
    return message if isinstance(message, Mapping) else None


def _content(message: Mapping[str, Any] | None, value: Any) -> str | None:
    """Return the model's text, for a refusal its reason; None for nothing. Raises TypeError."""
    if message is None:
        is_within = isinstance(value, str)
        raise TypeError(
            "a text with JSON in it: let it be encoded once" * is_within or "no message"
        )
    text = text_of_parts(message.get("content"))
    text = text or message.get("refusal") or text
    if text is not None and (not isinstance(text, str) or len(text) > _MOST_CHARACTERS):
        raise TypeError(f"the content is no text: `choices[0].message.content` is {shown(text)}")
    return text


def _why_silent(text: str | None, message: Mapping[str, Any] | None, reason: object) -> str:
    """Return, for a sentence, why an answer says nothing; empty where it says something."""
    is_thinking = _only_thinks(text or "")
    if text and not is_thinking:
        return ""
    if message is not None and (message.get("tool_calls") or message.get("function_call")):
        return "call a tool and say nothing (`tool_calls`); let the endpoint offer none"
    finish = f"`finish_reason: {harmless(str(reason)[:40])}`"
    if _is_cut(reason) or is_thinking:
        return (
            f"end before they say anything ({finish}), such as a model that is still thinking: "
            "raise `decoding.max_new_tokens`, or switch thinking off "
            "(`template_arguments: {enable_thinking: false}` for most models)"
        )
    if _is_withheld(reason):
        return f"were withheld by the endpoint's filter ({finish})"
    if where := next((name for name in _REASONING if message and message.get(name)), ""):
        return (
            f"have no content, and thinking in `{where}`: switch thinking off "
            "(`template_arguments: {enable_thinking: false}` for most models), or let the server "
            "tell its end from the answer (its reasoning parser)"
        )
    if text is not None:  # an empty text is what a model may say
        return ""
    return _NO_CONTENT


def _is_cut(reason: object) -> bool:
    """Return whether an answer ended at its limit of tokens, as gateways to other models say it."""
    return isinstance(reason, str) and reason.lower() in _CUT


def _is_withheld(reason: object) -> bool:
    return isinstance(reason, str) and re.search(_WITHHELD, reason, re.IGNORECASE) is not None


def _only_thinks(text: str) -> bool:
    """Return whether thinking has no end, however the server says that the answer ended."""
    return spoken_spans(text)[1] and not spoken(text)
