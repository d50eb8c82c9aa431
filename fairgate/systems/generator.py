"""The language model that answers: as ONNX here or in a worker, or behind an endpoint.

Its policy, its prompt and decoding, and how it is opened. An endpoint is an OpenAI-compatible one
(`POST <base>/chat/completions`: vLLM, Ollama, llama.cpp's server, hosted models). It puts the
messages into its own chat template, decides itself how it samples, and may serve another model
later: it guarantees nothing, so equal questions are asked again wherever a run asks for them again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Generator as PythonGenerator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from fairgate import __version__
from fairgate.domain.cases import Case
from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Answer, Chat, Decoding, Document, GenerationRequest, usage_of
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.ports import Generator, Runtime
from fairgate.domain.schema import Access, ByShape, Names, Role, Seed, Strict, Text
from fairgate.domain.wording import concealed_in_answer, quoted
from fairgate.io.http_messages import HttpAnswer, HttpService
from fairgate.io.machine import libraries_of_answers
from fairgate.systems.exchange import (
    Address,
    Attempts,
    Concurrency,
    PerSecond,
    Seconds,
    Variable,
    limits_of,
    require_safe,
)

if TYPE_CHECKING:
    from fairgate.io.http_client import Talk
    from fairgate.onnx.decoder import OnnxDecoder
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
_MOST_SEED = 2**31
"""Servers keep seeds in 32 bits."""
_MOST_CHARACTERS = 1_000_000
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
    shown = {"instruction": case.instruction, "text": case.text or case.query}
    return render_prompt(DEFAULT_TEMPLATE, **shown, documents=(), characters=1)


class GeneratorModel(Strict):
    """A generator's prompt and decoding."""

    decoding: Annotated[
        Annotated[Literal["greedy", "paper-text", "paper-code"], Tag("<scalar>")]
        | Annotated[DecodingPolicy, Tag("<mapping>")],
        ByShape,
    ] = Field(
        default="greedy",
        description="A preset (`greedy`; `paper-text`, `paper-code`: Oliveira et al.) or own.",
    )
    prompt: str | None = Field(
        default=None,
        description="Template with {instruction}, {documents} and {text}; default: FairGate's own.",
    )
    system: Text | None = Field(
        default=None, description="System turn of the conversation, before the prompt."
    )
    document_characters: Annotated[int, Field(ge=1)] = Field(
        default=1000, description="Longest excerpt of a document that is put into the prompt."
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


def _plain(value: object) -> bool | int | float | str:
    if isinstance(value, bool | int | float | str):
        return value
    raise ValueError("needs true, false, a number or a text")


Argument = Annotated[
    Any,
    AfterValidator(_plain),
    WithJsonSchema({"type": ["boolean", "integer", "number", "string"]}),
]


class GeneratorPolicy(GeneratorModel):
    """The small language model under test."""

    model: Annotated[Text, Names(Role.GENERATOR)] = Field(
        default="demo-slm",
        description="Embedded name, folder of an ONNX decoder, or Hugging Face id.",
    )
    revision: str | None = Field(default=None, description="Commit of a Hugging Face model.")
    template_arguments: dict[str, Argument] = Field(
        default_factory=dict,
        description="What the model's chat template may ask for besides, such as "
        "`enable_thinking: true`; thinking is off by default where the template can switch it.",
    )
    thinking_tokens: Annotated[int, Field(ge=0, le=65536)] = Field(
        default=4096,
        description="Longest thinking, in tokens, of a model that thinks before it answers; "
        "`max_new_tokens` counts the answer alone.",
    )

    @property
    def chosen_decoding(self) -> Decoding:
        """Return how tokens are chosen, and how long the model may think."""
        return replace(super().chosen_decoding, thinking_tokens=self.thinking_tokens)

    @property
    def chat(self) -> Chat:
        """Return what the model's chat template is given besides the prompt."""
        return Chat(system=self.system, arguments=tuple(self.template_arguments.items()))


class EndpointPart(Strict):
    """Where a model is asked, and at which pace."""

    base_url: Address = Field(
        description="Address with its version, such as `http://127.0.0.1:8000/v1`; "
        "`/chat/completions` is appended. Without credentials."
    )
    model: Text = Field(description="Name of the model as the endpoint knows it.")
    api_key_env: Variable | None = Field(
        default=None, description="NAME of the environment variable that holds the key."
    )
    revision: str | None = Field(
        default=None,
        description="What you change when the model behind the name changes. Answers are reused "
        "as long as it stays; without it every question is asked again in every run.",
    )
    timeout: Seconds = Field(default=120.0, description="Seconds to wait for one complete answer.")
    attempts: Attempts = 4
    concurrency: Concurrency = 4
    per_second: PerSecond = None

    @model_validator(mode="after")
    def _sends_the_key_safely(self) -> Self:
        require_safe(self.base_url, self.api_key_env)
        return self


class EndpointGeneratorPolicy(GeneratorModel):
    """A model behind an OpenAI-compatible endpoint."""

    endpoint: EndpointPart = Field(description="Which model is asked, and where.")

    @property
    def accesses(self) -> Iterable[Access]:
        """Return the endpoint, with the variable that is sent there."""
        return (Access("asks", self.endpoint.base_url, self.endpoint.api_key_env),)


def _place(value: object) -> str:
    """Return the kind of generator: the key `endpoint` determines it."""
    named = value if isinstance(value, dict) else getattr(type(value), "model_fields", ())
    return "<endpoint>" if "endpoint" in named else "<here>"


GeneratorField = Annotated[
    Annotated[GeneratorPolicy, Tag("<here>")]
    | Annotated[EndpointGeneratorPolicy, Tag("<endpoint>")],
    Discriminator(_place),
]
"""A model that runs here, or one behind an endpoint."""


def open_generator(
    chosen: GeneratorPolicy, resources: Resources, role: Role = Role.GENERATOR
) -> Generator:
    """Return the model, which the run's workers ask where it has some; nothing is loaded yet."""
    here, team = open_here(chosen, resources, role), resources.team
    if team is None:
        resources.collect(here.notices)
        return here
    runtime = resources.runtime.under_test if role.is_under_test else resources.runtime
    return team.generator(here, named_for_workers(chosen, runtime))


def named_for_workers(chosen: GeneratorPolicy, runtime: Runtime) -> str:
    """Return what tells a worker which model it opens, as plain values."""
    named = {
        "fairgate": __version__,
        "libraries": libraries_of_answers(),
        "generator": chosen.model_dump(mode="json"),
        "runtime": {
            "root": str(runtime.root.absolute()),
            "cache": str(runtime.cache.absolute()),
            "batch_size": runtime.batch_size,
            "sharing": 1 if runtime.workers is None else runtime.workers.count,
            "device": runtime.device,
            "confined": runtime.confined,
        },
    }
    return json.dumps(named)


def open_here(
    chosen: GeneratorPolicy, resources: Resources, role: Role = Role.GENERATOR
) -> OnnxDecoder:
    """Return the model as it runs in this process; nothing is loaded before it is asked."""
    from fairgate.onnx.batches import BatchSize
    from fairgate.onnx.decoder import OnnxDecoder

    return OnnxDecoder(
        resources.model_folder(chosen.model, chosen.revision, role),
        decoding=chosen.chosen_decoding,
        chat=chosen.chat,
        batch_size=BatchSize(resources.runtime.batch_size, resources.runtime.sharing),
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
        named = self._endpoint = chosen.endpoint
        self._system = chosen.system
        self._decoding = chosen.chosen_decoding
        self._meter = meter
        self._is_kept = is_kept
        self._url = named.base_url.rstrip("/") + "/chat/completions"
        self._service = HttpService(
            name=f"the endpoint {quoted(self._url)}, model {quoted(named.model)}",
            limits=limits_of(named),
            variables={"Authorization": named.api_key_env} if named.api_key_env else {},
            before="Bearer ",
            error=ModelError,
            hints={
                400: "the model may not take these settings: look at `decoding` and `system`",
                403: "the key has no right to this model",
                404: "check `base_url` (without /chat/completions) and `model`",
                413: "the prompt is too long: lower `document_characters` or `top_k`",
            },
            remedy="check the endpoint",
        )

    @property
    def fingerprint(self) -> str:
        """Identify endpoint, model, revision, system turn and decoding."""
        named = self._endpoint
        parts = (_VERSION, self._url, named.model, named.revision, self._system)
        return hashlib.sha256(repr((*parts, self._decoding)).encode()).hexdigest()

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Answer]]:
        """Yield `(position in requests, answer)` as they come.

        Raises ModelError for the first request without a usable answer, UsageError where the key is
        not set, BudgetError where not all may be asked.
        """
        return self._meter.asked(requests, self._asked, self._is_kept)

    def _asked(
        self, requests: Sequence[GenerationRequest]
    ) -> PythonGenerator[tuple[int, Answer], None, None]:
        yield from self._service.client.talk_all(map(self._talk, requests))

    def _talk(self, request: GenerationRequest) -> Talk[Answer]:
        """Put each turn with all that was said before it; return the answer to the last one."""
        service, system = self._service, self._system
        messages = [{"role": "system", "content": system}] if system else []
        for message in (*request.before, request.prompt):
            messages.append({"role": "user", "content": message})
            found = yield service.send(self._url, self._body(request, messages))
            answer = self._generated(service.usable(found))
            messages.append({"role": "assistant", "content": answer.text})
        return answer

    def _body(self, request: GenerationRequest, messages: list[dict[str, str]]) -> dict[str, Any]:
        decoding = self._decoding
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": messages,
            "temperature": decoding.temperature,
            "max_tokens": decoding.max_new_tokens,
        }
        if not decoding.is_greedy:
            body |= {"top_p": decoding.top_p, "seed": request.seed % _MOST_SEED}
            # Not every endpoint knows it, so it is only sent where the policy asks for it.
            body |= {"top_k": decoding.top_k} if decoding.top_k else {}
        return body

    def _generated(self, answer: HttpAnswer) -> Answer:
        service = self._service
        try:
            value = read_json(answer.body, strict=False)
            choice = value["choices"][0]
            text = _content(choice["message"])
        except (JsonError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise ModelError(
                f"{service.name}: the answer is no completion "
                f"({quoted(service.concealed(repr(error)))}); expected "
                '{"choices": [{"message": {"content": "…"}}]}'
            ) from None
        usage = usage_of(value)
        self._meter.add(usage)
        clean = text.encode("utf-8", "replace").decode("utf-8")
        return Answer(
            text=concealed_in_answer(clean, service.secrets),
            tokens=usage.output or 0,
            stopped="length" if choice.get("finish_reason") == "length" else "end",
        )


def _content(message: Any) -> str:
    """Return the model's text; for a refusal its reason, or nothing. Raises TypeError."""
    if (text := message.get("content")) is None:
        text = message.get("refusal") or ""
    if not isinstance(text, str) or len(text) > _MOST_CHARACTERS:
        raise TypeError("the content is no text")
    return text
