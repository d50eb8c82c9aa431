"""BASE's and HEAD's systems in parts, which `causes.py` exchanges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import zip_longest

from fairgate.domain.cases import SYSTEM_RETRIEVER, Case
from fairgate.domain.executions import CorpusSpec, Document
from fairgate.domain.ports import (
    NOTHING,
    SILENT,
    Executed,
    Generator,
    Progress,
    ResultStore,
    Retriever,
    SystemUnderTest,
    Vectors,
)
from fairgate.features.blame.documents import Mixture, VersionedCorpus
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.gate.materials import SuiteRetrievers
from fairgate.retrieval.corpus import CorpusColumns, CorpusFile
from fairgate.systems.catalogue import kind_of
from fairgate.systems.corpora import find_table, long_form, open_corpus
from fairgate.systems.execute import LocalParts, LocalSystem
from fairgate.systems.generator import GeneratorPolicy, open_generator
from fairgate.systems.local import RetrieverPolicy, prompt_facts
from fairgate.systems.models import Encoder, long_embedder
from fairgate.systems.resources import Resources
from fairgate.systems.revisions import NoStore


class Factor(StrEnum):
    """A part of a system that a change can replace alone."""

    MODEL = "model"
    PROMPT = "prompt"
    DECODING = "decoding"
    EMBEDDER = "embedder"
    CORPUS = "corpus"
    TOP_K = "top_k"


_OF_GENERATOR = {
    Factor.MODEL: ("model", "revision", "file"),
    Factor.PROMPT: ("prompt", "system", "document_characters", "template_arguments"),
    Factor.DECODING: ("decoding", "thinking_tokens"),
}
"""Each factor of a generator to the fields of the policy that it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideParts:
    """One side's retriever, if it has one, and generator, with what they are opened with."""

    retriever: RetrieverPolicy | None
    generator: GeneratorPolicy
    resources: Resources

    @property
    def searched(self) -> RetrieverPolicy:
        """Return the retriever, which both sides have where it is asked for."""
        assert self.retriever is not None  # noqa: S101
        return self.retriever

    @property
    def corpus(self) -> CorpusFile:
        """Return the documents."""
        return open_corpus(long_form(self.searched.corpus), self.resources)

    @property
    def encoder(self) -> Encoder:
        """Return the embedder of documents and queries."""
        return self.resources.encoder(long_embedder(self.searched.embedder))

    @property
    def has_ids(self) -> bool:
        """Return whether the table of documents has a column of ids."""
        chosen = long_form(self.searched.corpus)
        path = find_table("corpora", chosen.path, self.resources.runtime)
        spec = CorpusSpec(path=str(path), id=chosen.id, text=chosen.text, label=chosen.label)
        return CorpusColumns(spec).id is not None


class LocalSides:
    """Two versions of a system whose parts run here, and can be combined.

    One model is loaded at a time. Suites that bring collections of their own search HEAD's, with
    HEAD's embedder, in every combination.
    """

    def __init__(self, base: SideParts, head: SideParts, loaded: LoadedPolicy) -> None:
        """Take both sides and HEAD's policy."""
        self._parts = (base, head)
        self._head = head
        self._loaded = loaded
        self._opened: tuple[object, Generator] | None = None
        self._retrievers: dict[tuple[bool, bool], Retriever] = {}

    @cached_property
    def factors(self) -> Sequence[Factor]:
        """Return the factors that differ, in the order of `Factor`."""
        return [factor for factor in Factor if self._differs(factor)]

    @property
    def notices(self) -> list[str]:
        """Return the adapters' notices, each once."""
        notices = (notice for side in self._parts for notice in side.resources.notices)
        return list(dict.fromkeys(notices))

    @cached_property
    def corpus(self) -> VersionedCorpus:
        """Return the documents of both sides."""
        base, head = self._parts
        return VersionedCorpus(base.corpus, head.corpus, has_ids=base.has_ids and head.has_ids)

    def system(self, new: frozenset[Factor]) -> SystemUnderTest:
        """Return the system with HEAD's level of these factors, and BASE's of the others."""
        store = self._head.resources.store
        if self._head.retriever is None:
            return self._system({}, new, store)
        system = self._system({SYSTEM_RETRIEVER: self._retriever(new)}, new, store)
        depth = self._parts_with(Factor.TOP_K, new).searched.top_k
        return system if depth == self._head.retriever.top_k else _Shallower(system, depth)

    def searching(self, corpus: Mixture) -> SystemUnderTest:
        """Return HEAD's system on other documents; its rankings are not stored."""
        retriever = self._index(corpus, self._head, SILENT)
        return self._system({SYSTEM_RETRIEVER: retriever}, frozenset(Factor), NoStore())

    def _parts_with(self, factor: Factor, new: frozenset[Factor]) -> SideParts:
        return self._parts[factor in new]

    def _differs(self, factor: Factor) -> bool:
        (base, head), everything = self._parts, frozenset(Factor)
        match factor:
            case Factor.MODEL:
                then, now = self._generator(everything - {factor}), self._generator(everything)
                return then.fingerprint != now.fingerprint
            case Factor.PROMPT:
                return prompt_facts(base.generator) != prompt_facts(head.generator)
            case Factor.DECODING:
                return base.generator.chosen_decoding != head.generator.chosen_decoding
        if base.retriever is None or head.retriever is None:
            return False
        match factor:
            case Factor.EMBEDDER:
                if base.searched.index != head.searched.index:
                    return True
                return _fingerprints(base.encoder) != _fingerprints(head.encoder)
            case Factor.CORPUS:
                return not _same_documents(base.corpus, head.corpus)
        return base.retriever.top_k != head.retriever.top_k

    def _system(
        self, own: Mapping[str, Retriever], new: frozenset[Factor], retrieved: ResultStore
    ) -> LocalSystem:
        prompt = self._parts_with(Factor.PROMPT, new).generator
        parts = LocalParts(
            retrievers={**own, **self._of_suites},
            generator=self._generator(new),
            template=prompt.template,
            document_characters=prompt.document_characters,
            decoding=self._parts_with(Factor.DECODING, new).generator.chosen_decoding,
        )
        return LocalSystem(parts, self._head.resources.store, retrieved)

    @cached_property
    def _of_suites(self) -> Mapping[str, Retriever]:
        kind = kind_of(self._loaded.policy.system)
        retrievers = SuiteRetrievers(resources=self._head.resources, system=kind)
        return retrievers.of_all(self._loaded.suites.values())

    def _generator(self, new: frozenset[Factor]) -> Generator:
        name = tuple(factor in new for factor in _OF_GENERATOR)
        if self._opened is None or self._opened[0] != name:
            chosen = {
                field: getattr(self._parts_with(factor, new).generator, field)
                for factor, fields in _OF_GENERATOR.items()
                for field in fields
            }
            policy = self._head.generator.model_copy(update=chosen)
            self._opened = (
                name,
                open_generator(policy, self._parts_with(Factor.MODEL, new).resources),
            )
        return self._opened[1]

    def _retriever(self, new: frozenset[Factor]) -> Retriever:
        name = (Factor.CORPUS in new, Factor.EMBEDDER in new)
        if name not in self._retrievers:
            corpus = self._parts_with(Factor.CORPUS, new).corpus
            side = self._parts_with(Factor.EMBEDDER, new)
            self._retrievers[name] = self._index(corpus, side, self._head.resources.progress)
        return self._retrievers[name]

    def _index(
        self, corpus: CorpusFile | Mixture, side: SideParts, progress: Progress
    ) -> Retriever:
        way, resources = side.searched.index, self._head.resources
        return resources.index(way, corpus, lambda: side.encoder, progress=progress)


def _fingerprints(encoder: Encoder) -> tuple[str, str]:
    return encoder.documents.fingerprint, encoder.queries.fingerprint


def _same_documents(base: CorpusFile, head: CorpusFile) -> bool:
    """Return whether both hold the same documents in the same order."""
    if base.fingerprint == head.fingerprint:
        return True
    pairs: Iterable[tuple[object, object]] = zip_longest(base.documents(), head.documents())
    return all(document == other for document, other in pairs)


@dataclass(frozen=True, slots=True)
class _Shallower:
    """A system that is asked for another number of documents than the plan says."""

    inner: SystemUnderTest
    top_k: int

    def execute(
        self, cases: Sequence[Case], progress: Progress, earlier: Executed = NOTHING
    ) -> Executed:
        """Return the executions of the cases, each with this many documents."""
        shallower = [
            case._replace(top_k=self.top_k) if case.retriever == SYSTEM_RETRIEVER else case
            for case in cases
        ]
        return self.inner.execute(shallower, progress, earlier)

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return the embeddings of the documents."""
        return self.inner.vectors(documents)
