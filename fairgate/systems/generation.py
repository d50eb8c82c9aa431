"""A generator's prompt and decoding, wherever it runs: their policy, and how a prompt is made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from fairgate.domain.executions import Decoding, Document
from fairgate.domain.schema import ByShape, Seed, Strict, Text

PRESETS = {
    "greedy": Decoding(),
    "paper-text": Decoding(temperature=0.1, top_p=0.9, top_k=50, max_new_tokens=150, seed=42),
    "paper-code": Decoding(max_new_tokens=800),
}
DEFAULT_TEMPLATE = "{instruction}\n\n{documents}{text}\nAnswer:"
"""The instruction and the documents come first: follow-ups of a source share them as a prefix."""
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


def render_documents(documents: Sequence[Document], *, characters: int) -> str:
    """Return the documents as a numbered block that ends with a blank line; empty without any.

    White space inside a document is folded and its text cut after `characters` characters.
    """
    if not documents:
        return ""
    lines = [
        f"[{rank}] {_folded(document.text or '', characters)}"
        for rank, document in enumerate(documents, start=1)
    ]
    return "Documents:\n" + "\n".join(lines) + "\n\n"


def render_prompt(
    template: str, *, instruction: str, text: str, documents: Sequence[Document], characters: int
) -> str:
    """Fill `{instruction}`, `{documents}` and `{text}`; nothing inside them is expanded again."""
    block = render_documents(documents, characters=characters)
    parts = {"{instruction}": instruction, "{documents}": block, "{text}": text}
    return "".join(parts.get(piece, piece) for piece in _pieces(template))


@lru_cache(maxsize=4096)  # thousands of prompts show the same few documents
def _folded(text: str, characters: int) -> str:
    return " ".join(text.split())[:characters]


@lru_cache(maxsize=16)
def _pieces(template: str) -> list[str]:
    return _PLACES.split(template)


class GeneratorModel(Strict):
    """A generator's prompt and decoding."""

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


def template_contradictions(
    system: Mapping[str, Any],
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what a prompt's template lacks, so that the model would not see it."""
    generator = system.get("generator")
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
