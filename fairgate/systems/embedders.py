"""Which model embeds documents and queries, and what its own files leave open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, Tag

from fairgate.domain.ports import Embedder
from fairgate.domain.schema import ByShape, Names, Role, Strict, Text

if TYPE_CHECKING:
    from fairgate.onnx.encoder_settings import EmbedderChoice

DEFAULT_EMBEDDER = "minilm"


class EmbedderPolicy(Strict):
    """An encoder, with what its own files leave open."""

    model: Annotated[Text, Names(Role.EMBEDDER)] = Field(
        default=DEFAULT_EMBEDDER,
        description="Embedded name, folder of an ONNX encoder, or Hugging Face id.",
    )
    revision: str | None = Field(default=None, description="Commit of a Hugging Face model.")
    pooling: (
        Literal["mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"] | None
    ) = Field(
        default=None,
        description="How token states become one vector, in sentence-transformers' terms; needed "
        "where the model's files do not define it.",
    )
    query_prompt: str | None = Field(
        default=None,
        description="Put before every query; default: the model's own prompt `query`.",
    )
    document_prompt: str | None = Field(
        default=None,
        description="Put before every document; default: the model's own prompt `document`.",
    )
    dimensions: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="Keep so many components of each vector (Matryoshka models); default: all, or "
        "the model's own `truncate_dim`.",
    )

    @property
    def choice(self) -> EmbedderChoice:
        """Return what is not left to the model's files."""
        from fairgate.onnx.encoder_settings import EmbedderChoice

        return EmbedderChoice(
            pooling=self.pooling,
            query_prompt=self.query_prompt,
            document_prompt=self.document_prompt,
            dimensions=self.dimensions,
        )


EmbedderField = Annotated[
    Annotated[Text, Tag("<scalar>")] | Annotated[EmbedderPolicy, Tag("<mapping>")], ByShape
]


def long_embedder(named: str | EmbedderPolicy | None) -> EmbedderPolicy:
    """Return the mapping that a name alone, or nothing, stands for."""
    if isinstance(named, EmbedderPolicy):
        return named
    return EmbedderPolicy(model=named or DEFAULT_EMBEDDER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """The two sides of one model: they differ where it needs another prompt before queries."""

    documents: Embedder
    queries: Embedder
