"""The generator of a local system: a language model that runs here, its prompt and decoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Tag, WithJsonSchema

from fairgate.domain.executions import Chat, Decoding
from fairgate.domain.wording import quoted
from fairgate.engine.ports import Generator
from fairgate.engine.prompts import DEFAULT_TEMPLATE
from fairgate.schema.fields import ByShape, Seed, Strict, Text
from fairgate.systems.resources import Resources

PRESETS = {
    "greedy": Decoding(),
    "paper-text": Decoding(temperature=0.1, top_p=0.9, top_k=50, max_new_tokens=150, seed=42),
    "paper-code": Decoding(max_new_tokens=800),
}


def _plain(value: object) -> bool | int | float | str:
    if isinstance(value, bool | int | float | str):
        return value
    raise ValueError("needs true, false, a number or a text")


Argument = Annotated[
    Any,
    AfterValidator(_plain),
    WithJsonSchema({"type": ["boolean", "integer", "number", "string"]}),
]
_OURS = (
    "add_generation_prompt",
    "chat_template",
    "continue_final_message",
    "conversation",
    "documents",
    "messages",
    "padding",
    "return_dict",
    "tokenize",
    "tools",
    "truncation",
)
"""Arguments of a chat template that are not the policy's to choose."""


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


class GeneratorPolicy(Strict):
    """The small language model under test."""

    model: Text = Field(
        default="demo-slm",
        description="Embedded name, folder of an ONNX decoder, or Hugging Face id.",
    )
    revision: str | None = Field(default=None, description="Commit of a Hugging Face model.")
    decoding: Annotated[
        Annotated[Literal["greedy", "paper-text", "paper-code"], Tag("<scalar>")]
        | Annotated[DecodingPolicy, Tag("<mapping>")],
        ByShape,
    ] = Field(
        default="greedy",
        description="A preset (`greedy`; `paper-text` and `paper-code`, as P1) or own values.",
    )
    prompt: str | None = Field(
        default=None,
        description="Template with {instruction}, {documents} and {text}; default: FairGate's own.",
    )
    system: Text | None = Field(
        default=None, description="System turn of the conversation, before the prompt."
    )
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
        decoding = PRESETS[chosen] if isinstance(chosen, str) else Decoding(**chosen.model_dump())
        return replace(decoding, thinking_tokens=self.thinking_tokens)

    @property
    def chat(self) -> Chat:
        """Return what the model's chat template is given besides the prompt."""
        return Chat(system=self.system, arguments=tuple(self.template_arguments.items()))


def open_generator(chosen: GeneratorPolicy, resources: Resources) -> Generator:
    """Return the model; nothing is loaded before it is asked."""
    from fairgate.adapters.onnx_decoder import OnnxDecoder

    return OnnxDecoder(
        resources.model_folder(chosen.model, chosen.revision),
        decoding=chosen.chosen_decoding,
        chat=chosen.chat,
        batch_size=resources.runtime.batch_size,
        threads=resources.runtime.threads,
        device=resources.runtime.device,  # type: ignore[arg-type]
    )


def prompt_contradictions(system: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what the model would not see, and what the policy cannot set."""
    generator = system.get("generator")
    given = generator.get("template_arguments") if isinstance(generator, dict) else None
    for name in given if isinstance(given, dict) else ():
        where = ("generator", "template_arguments", str(name))
        if name in _OURS:
            yield where, f"{quoted(str(name))} is set by FairGate itself; remove it"
        elif not str(name).isidentifier():
            yield where, f"{quoted(str(name))} is no name that a template can ask for"
    prompt = generator.get("prompt") if isinstance(generator, dict) else None
    if not isinstance(prompt, str):
        return
    place = ("generator", "prompt")
    if "{text}" not in prompt:
        yield place, "the template lacks `{text}`, the place of the test case"
    if system.get("retriever") is not None and "{documents}" not in prompt:
        yield (
            place,
            "the template lacks `{documents}`, so the model would never see what was retrieved",
        )
