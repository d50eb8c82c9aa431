"""A system put together here: a retriever over a corpus, and a language model that runs here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, Tag, model_validator

from fairgate.adapters.embedded_names import find
from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Chat, Document, Execution
from fairgate.domain.runtime import Runtime
from fairgate.engine.burn_in import NoStore, Reordered
from fairgate.engine.execute import LocalSystem, System
from fairgate.engine.ports import (
    NOTHING,
    Executed,
    Generator,
    Progress,
    Retriever,
    SystemUnderTest,
    Vectors,
)
from fairgate.schema.fields import ByShape, Strict, Text
from fairgate.schema.outside import Access, NamedFile
from fairgate.schema.system import Capabilities, SystemModel
from fairgate.systems.corpora import CorpusPolicy, long_form, open_corpus
from fairgate.systems.embedders import (
    DEFAULT_EMBEDDER,
    EmbedderField,
    EmbedderPolicy,
    Encoder,
    long_embedder,
)
from fairgate.systems.generators import GeneratorPolicy, open_generator, prompt_contradictions
from fairgate.systems.resources import Resources
from fairgate.systems.system_kind import SystemKind
from fairgate.systems.tables import named_on_hub

if TYPE_CHECKING:
    from fairgate.adapters.files.corpus import CorpusFile


class RetrieverPolicy(Strict):
    """The retriever under test."""

    corpus: Annotated[
        Annotated[Text, Tag("<scalar>")] | Annotated[CorpusPolicy, Tag("<mapping>")], ByShape
    ] = Field(description="Embedded name, path, or path with columns.")
    embedder: EmbedderField = Field(
        default=DEFAULT_EMBEDDER,
        description="Embedded name, folder of an ONNX encoder, Hugging Face id, or a mapping.",
    )
    index: Literal["flat"] = Field(
        default="flat", description="`flat`: exact inner product (FAISS)."
    )
    top_k: Annotated[int, Field(ge=1, le=100)] = Field(
        default=4, description="How many documents the generator is shown."
    )


class LocalPolicy(SystemModel):
    """A retriever and a language model that run here."""

    keys: ClassVar[tuple[str, ...]] = ("retriever", "generator")

    retriever: RetrieverPolicy | None = Field(
        default=None, description="Left out: the generator is asked without documents."
    )
    generator: GeneratorPolicy = Field(description="The model that answers.")
    embedder: EmbedderField | None = Field(
        default=None,
        description="Without `retriever`: embeds the collections of `bbq` suites; default "
        "`minilm`.",
    )

    @model_validator(mode="after")
    def _one_embedder(self) -> Self:
        if self.embedder is not None and self.retriever is not None:
            raise ValueError("has `embedder` twice; set `retriever.embedder` alone")
        return self

    @classmethod
    def contradictions(cls, data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield what the prompt's template lacks."""
        yield from prompt_contradictions(data)


class Local(SystemKind[LocalPolicy]):
    """Models that run on this machine, their results stored."""

    id = "local"
    model = LocalPolicy

    def accesses(self, policy: LocalPolicy) -> Iterable[Access]:
        """Return nothing: models and data come from the repository or the hub."""
        del policy
        return ()

    def named_files(self, policy: LocalPolicy) -> Iterable[NamedFile]:
        """Return the corpus: that it changes is why there is a gate."""
        if policy.retriever is None:
            return ()
        corpus = long_form(policy.retriever.corpus)
        return (NamedFile("corpora", corpus.path, decides_questions=False),)

    def capabilities(self, policy: LocalPolicy) -> Capabilities:
        """Return what local models can do: all there is, with a retriever."""
        return Capabilities(
            gives_documents=policy.retriever is not None,
            takes_documents=True,
            repeatable=True,
            scores_options=True,
        )

    def must_match(self, policy: LocalPolicy) -> Mapping[str, object]:
        """Return the decoding as the policy gives it."""
        chosen = policy.generator.decoding
        return {"decoding": chosen if isinstance(chosen, str) else chosen.model_dump()}

    def open(self, policy: LocalPolicy, resources: Resources) -> OpenLocal:
        """Return the system; nothing is loaded before it is asked."""
        return OpenLocal(policy, resources)

    def missing(
        self, policy: LocalPolicy, runtime: Runtime
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the corpus where there is no such file."""
        if policy.retriever is None:
            return
        name = long_form(policy.retriever.corpus).path
        try:
            if named_on_hub(name, runtime) is None:
                find("corpora", name, runtime.root, confined=runtime.confined)
        except DataError as error:
            yield ("retriever", "corpus"), str(error)

    def top_k(self, policy: LocalPolicy) -> int:
        """Return how many documents the retriever is asked for."""
        return policy.retriever.top_k if policy.retriever else 0

    def prompt(self, policy: LocalPolicy) -> str | None:
        """Return the policy's own template, if it has one."""
        return policy.generator.prompt

    def is_greedy(self, policy: LocalPolicy) -> bool:
        """Return whether no token is drawn at random."""
        return policy.generator.chosen_decoding.is_greedy

    def embedder(self, policy: LocalPolicy) -> EmbedderPolicy:
        """Return the retriever's embedder, else the one that the policy names."""
        return long_embedder(policy.retriever.embedder if policy.retriever else policy.embedder)


class OpenLocal:
    """A local system under test; each part is made at most once, when it is asked."""

    def __init__(self, policy: LocalPolicy, resources: Resources) -> None:
        """Take the policy and what systems share."""
        self._policy = policy
        self._resources = resources

    def execute(
        self, plan: TestPlan, progress: Progress, earlier: Executed = NOTHING
    ) -> Mapping[tuple[str, str], Execution]:
        """Return an execution for every case of the plan, see `engine.execute`."""
        return self._system.execute(plan, progress, earlier)

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return the stored embeddings of retrieved documents."""
        return self._system.vectors(documents)

    def under_test(self) -> dict[str, str]:
        """Return corpus, embedder, index, collections, model and prompt."""
        found = {}
        retriever, generator = self._policy.retriever, self._policy.generator
        if retriever is not None:
            path = long_form(retriever.corpus).path
            found["corpus"] = f"{path} {_short(self._corpus.fingerprint)}"
            name = long_embedder(retriever.embedder).model
            found["embedder"] = f"{name} {_short(self._encoder_fingerprint)}"
            found["index"] = retriever.index
        found |= self._resources.suites_under_test()
        found["model"] = f"{generator.model} {_short(self._generator.fingerprint)}"
        found["prompt"] = _short(prompt_facts(generator))
        return found

    def replica(self, number: int) -> tuple[Sequence[str], SystemUnderTest]:
        """Return the system with other document orders and sampling seeds, past the store."""
        parts, changes = self._parts, []
        if number:
            if parts.retrievers:
                changes.append(f"document order {number}")
            if not parts.decoding.is_greedy:
                changes.append(f"sampling seed {parts.decoding.seed + number}")
            parts = replace(
                parts,
                retrievers={
                    name: Reordered(inner, number) for name, inner in parts.retrievers.items()
                },
                decoding=replace(parts.decoding, seed=parts.decoding.seed + number),
            )
        return changes, LocalSystem(parts, NoStore())

    @cached_property
    def _system(self) -> LocalSystem:
        return LocalSystem(self._parts, self._resources.store)

    @cached_property
    def _parts(self) -> System:
        own = {"default": self.retriever} if self._policy.retriever else {}
        return System(
            retrievers={**own, **self._resources.suite_retrievers()},
            generator=self._generator,
            template=self._policy.generator.template,
            document_characters=self._policy.generator.document_characters,
            decoding=self._policy.generator.chosen_decoding,
        )

    @cached_property
    def _encoder(self) -> Encoder:
        return self._resources.encoder(Local().embedder(self._policy))

    @property
    def _encoder_fingerprint(self) -> str:
        sides = (self._encoder.documents.fingerprint, self._encoder.queries.fingerprint)
        return "\0".join(dict.fromkeys(sides))

    @cached_property
    def _corpus(self) -> CorpusFile:
        if self._policy.retriever is None:
            raise AssertionError  # only asked where there is a retriever
        return open_corpus(long_form(self._policy.retriever.corpus), self._resources)

    @cached_property
    def retriever(self) -> Retriever:
        """Return the policy's retriever over its corpus."""
        from fairgate.adapters.faiss_index.flat_index import FlatIndex

        index = FlatIndex(
            self._corpus,
            self._encoder.documents,
            queries=self._encoder.queries,
            cache_dir=self._resources.cache,
            progress=self._resources.progress,
        )
        self._resources.collect(index.notices)
        return index

    @cached_property
    def _generator(self) -> Generator:
        return open_generator(self._policy.generator, self._resources)


def prompt_facts(generator: GeneratorPolicy) -> str:
    """Return what a prompt is made of, besides the model's own template."""
    facts = [generator.template, str(generator.document_characters)]
    if generator.chat != Chat():
        facts.append(repr(generator.chat))
    return "\0".join(facts)


def _short(fingerprint: str) -> str:
    return hashlib.sha256(fingerprint.encode()).hexdigest()[:12]
