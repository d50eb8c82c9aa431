"""The policy's `system`: retriever and generator under test, or answers recorded elsewhere."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, Tag, model_validator

from fairgate.schema.columns import Columns
from fairgate.schema.fields import ByShape, Seed, Strict, Text


class PreparePolicy(Strict):
    """How the corpus is cleaned before it is indexed (P1 section 4.1)."""

    tokenizer: str = Field(
        default="bundled",
        description="Counts tokens for the length fence: `bundled`, `gpt2`, a path or an id.",
    )
    sample: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0, description="Fraction of the cleaned texts to keep (P1: 0.1)."
    )
    seed: Seed = Field(default=42, description="Seed of the sample.")


class CorpusPolicy(Columns):
    """The documents that the retriever searches."""

    prepare: Annotated[
        Annotated[bool, Tag("<switch>")] | Annotated[PreparePolicy, Tag("<mapping>")], ByShape
    ] = Field(
        default=False, description="Clean the corpus first, as `fairgate corpus prepare` does."
    )


class RetrieverPolicy(Strict):
    """The retriever under test."""

    corpus: Annotated[
        Annotated[Text, Tag("<scalar>")] | Annotated[CorpusPolicy, Tag("<mapping>")], ByShape
    ] = Field(description="Embedded name, path, or path with columns.")
    embedder: Text = Field(
        default="minilm",
        description="Embedded name, folder of an ONNX encoder, or Hugging Face id.",
    )
    index: Literal["flat"] = Field(
        default="flat", description="`flat`: exact inner product (FAISS)."
    )
    top_k: Annotated[int, Field(ge=1, le=100)] = Field(
        default=4, description="How many documents the generator is shown."
    )


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


class SystemPolicy(Strict):
    """The system under test: a retriever and a generator, or answers recorded elsewhere."""

    retriever: RetrieverPolicy | None = Field(
        default=None, description="Left out: the generator is asked without documents."
    )
    generator: GeneratorPolicy | None = Field(default=None, description="The model that answers.")
    recorded: str | None = Field(
        default=None,
        description="JSONL file of answers that were produced elsewhere. May be empty for `check` "
        "and `plan`; in a run every key needs a line, with an empty `response` where the system "
        "gave none.",
    )
    embedder: str | None = Field(
        default=None,
        description="Without `retriever`: embeds a recorded system's documents for RRS, and the "
        "collections of `bbq` suites; default `minilm`.",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.recorded is None and self.generator is None:
            raise ValueError("names neither `generator` nor `recorded`; one of them is needed")
        if self.recorded is not None and (self.generator or self.retriever):
            raise ValueError("`recorded` replaces `retriever` and `generator`: remove one side")
        if self.embedder is not None and self.retriever is not None:
            raise ValueError("has `embedder` twice; set `retriever.embedder` alone")
        return self
