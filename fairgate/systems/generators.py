"""The generator of a local system: a language model that runs here, its prompt and decoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from fairgate.domain.executions import Decoding
from fairgate.engine.ports import Generator
from fairgate.engine.prompts import DEFAULT_TEMPLATE
from fairgate.schema.fields import ByShape, Seed, Strict, Text
from fairgate.systems.resources import Resources

PRESETS = {
    "greedy": Decoding(),
    "paper-text": Decoding(temperature=0.1, top_p=0.9, top_k=50, max_new_tokens=150, seed=42),
    "paper-code": Decoding(max_new_tokens=800),
}


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


def open_generator(chosen: GeneratorPolicy, resources: Resources) -> Generator:
    """Return the model; nothing is loaded before it is asked."""
    from fairgate.adapters.onnx_decoder import OnnxDecoder

    return OnnxDecoder(
        resources.model_folder(chosen.model, chosen.revision),
        decoding=chosen.chosen_decoding,
        batch_size=resources.runtime.batch_size,
        threads=resources.runtime.threads,
        device=resources.runtime.device,  # type: ignore[arg-type]
    )


def prompt_contradictions(system: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what a prompt's template lacks, so that the model would not see it."""
    generator = system.get("generator")
    prompt = generator.get("prompt") if isinstance(generator, dict) else None
    if not isinstance(prompt, str):
        return
    where = ("generator", "prompt")
    if "{text}" not in prompt:
        yield where, "the template lacks `{text}`, the place of the test case"
    if system.get("retriever") is not None and "{documents}" not in prompt:
        yield (
            where,
            "the template lacks `{documents}`, so the model would never see what was retrieved",
        )
