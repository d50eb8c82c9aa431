"""The language model that answers: as ONNX here or in a worker, or behind an endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, Tag, WithJsonSchema

from fairgate import __version__
from fairgate.domain.executions import Chat, Decoding
from fairgate.domain.ports import Generator
from fairgate.domain.runtime import Runtime
from fairgate.domain.schema import Names, Role, Text
from fairgate.domain.wording import quoted
from fairgate.io.environment import libraries_of_answers
from fairgate.systems.chat_generator import EndpointGeneratorPolicy
from fairgate.systems.generation import GeneratorModel
from fairgate.systems.resources import Resources

if TYPE_CHECKING:
    from fairgate.onnx.decoder import OnnxDecoder

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
"""Arguments of a chat template that a policy may not set."""


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
    workers = runtime.workers
    is_elsewhere = workers is not None and workers.ray_address is not None
    places = [
        place.absolute() if is_elsewhere else place for place in (runtime.root, runtime.cache)
    ]
    how = {
        "root": str(places[0]),
        "cache": str(places[1]),
        "batch_size": runtime.batch_size,
        "sharing": 1 if workers is None else workers.count,
        "device": runtime.device,
        "confined": runtime.confined,
    }
    named = {
        "fairgate": __version__,
        "libraries": libraries_of_answers(),
        "generator": chosen.model_dump(mode="json"),
        "runtime": how,
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


def argument_contradictions(system: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield arguments of the chat template that a policy cannot set."""
    generator = system.get("generator")
    given = generator.get("template_arguments") if isinstance(generator, dict) else None
    for name in given if isinstance(given, dict) else ():
        where = ("generator", "template_arguments", str(name))
        if name in _OURS:
            yield where, f"{quoted(str(name))} is set by FairGate itself; remove it"
        elif not str(name).isidentifier():
            yield where, f"{quoted(str(name))} is no name that a template can ask for"


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
