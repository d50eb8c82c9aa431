"""A retriever that runs here: an index over a corpus, searched by an embedder."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, Tag

from fairgate.domain.fields import ByShape, Names, Role, Strict, Text
from fairgate.domain.fingerprints import short
from fairgate.domain.ports import Retriever
from fairgate.systems.corpora import CorpusPolicy, long_form, open_corpus
from fairgate.systems.embedders import DEFAULT_EMBEDDER, EmbedderField, Encoder, long_embedder
from fairgate.systems.resources import Resources

if TYPE_CHECKING:
    from fairgate.retrieval.corpus import CorpusFile


class RetrieverPolicy(Strict):
    """The retriever under test."""

    corpus: Annotated[
        Annotated[Text, Tag("<scalar>")] | Annotated[CorpusPolicy, Tag("<mapping>")],
        ByShape,
        Names(Role.CORPUS, replaces=Role.SOURCES),
    ] = Field(description="Embedded name, path, or path with columns.")
    embedder: Annotated[EmbedderField, Names(Role.RETRIEVER, replaces=Role.EMBEDDER)] = Field(
        default=DEFAULT_EMBEDDER,
        description="Embedded name, folder of an ONNX encoder, Hugging Face id, or a mapping.",
    )
    index: Literal["flat"] = Field(
        default="flat", description="`flat`: exact inner product (FAISS)."
    )
    top_k: Annotated[int, Field(ge=1, le=100)] = Field(
        default=4, description="How many documents the generator is shown."
    )


class OpenIndex:
    """The retriever, opened; corpus, encoder and index are made when they are asked."""

    def __init__(self, policy: RetrieverPolicy, resources: Resources) -> None:
        """Take the policy and what systems share."""
        self._policy = policy
        self._resources = resources

    @cached_property
    def retriever(self) -> Retriever:
        """Return the index over the corpus."""
        from fairgate.retrieval.flat_index import FlatIndex

        index = FlatIndex(
            self._corpus,
            self._encoder.documents,
            queries=self._encoder.queries,
            cache_dir=self._resources.cache,
            progress=self._resources.progress,
        )
        self._resources.collect(index.notices)
        return index

    def under_test(self) -> dict[str, str]:
        """Return corpus, embedder and index, with fingerprints."""
        sides = (self._encoder.documents.fingerprint, self._encoder.queries.fingerprint)
        encoder = "\0".join(dict.fromkeys(sides))
        name = long_embedder(self._policy.embedder).model
        return {
            "corpus": f"{long_form(self._policy.corpus).path} {short(self._corpus.fingerprint)}",
            "embedder": f"{name} {short(encoder)}",
            "index": self._policy.index,
        }

    @cached_property
    def _encoder(self) -> Encoder:
        return self._resources.encoder(long_embedder(self._policy.embedder), Role.RETRIEVER)

    @cached_property
    def _corpus(self) -> CorpusFile:
        return open_corpus(long_form(self._policy.corpus), self._resources)
