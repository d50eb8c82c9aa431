"""BASE's and HEAD's systems in parts, which `blame.py` combines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest

from fairgate.domain.cases import TestPlan
from fairgate.domain.executions import CorpusSpec, Document, Execution
from fairgate.domain.ports import (
    NOTHING,
    Executed,
    Generator,
    Progress,
    ResultStore,
    Retriever,
    SystemUnderTest,
    Vectors,
)
from fairgate.domain.runtime import Runtime
from fairgate.features.blame.documents import OWN_RETRIEVER, Factor, LimitedGenerator, QuestionLimit
from fairgate.features.blame.mixed_corpus import UnionCorpus, UnionSearch
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.gate.suite_retrievers import SuiteRetrievers
from fairgate.retrieval.corpus import CorpusColumns, CorpusFile
from fairgate.systems.catalogue import kind_of
from fairgate.systems.corpora import find_table, long_form, open_corpus
from fairgate.systems.embedders import Encoder, long_embedder
from fairgate.systems.execute import RETRIEVALS, LocalSystem, NoStore, System
from fairgate.systems.generator import GeneratorPolicy, open_generator
from fairgate.systems.local import RetrieverPolicy, StoreApart, prompt_facts
from fairgate.systems.resources import Resources

_EVERY = frozenset(Factor)
_OF_MODEL = ("model", "revision")
_OF_PROMPT = ("prompt", "system", "document_characters", "template_arguments")
_OF_DECODING = ("decoding", "thinking_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """One side's retriever, if it has one, and generator, with what they are opened with."""

    retriever: RetrieverPolicy | None
    generator: GeneratorPolicy
    resources: Resources

    @property
    def corpus(self) -> CorpusFile:
        """Return the documents; prepared where the policy says so."""
        assert self.retriever is not None  # noqa: S101 (asked where both sides have one)
        return open_corpus(long_form(self.retriever.corpus), self.resources)

    @property
    def encoder(self) -> Encoder:
        """Return the embedder of documents and queries."""
        assert self.retriever is not None  # noqa: S101
        return self.resources.encoder(long_embedder(self.retriever.embedder))

    @property
    def has_ids(self) -> bool:
        """Return whether the table of documents has a column of ids."""
        assert self.retriever is not None  # noqa: S101
        chosen = long_form(self.retriever.corpus)
        path = find_table("corpora", chosen.path, self.resources.runtime)
        spec = CorpusSpec(path=str(path), id=chosen.id, text=chosen.text, label=chosen.label)
        return CorpusColumns(spec).id is not None


class LocalSides:
    """Implements `documents.Sides` for systems whose parts run here.

    One model is loaded at a time. Suites that bring collections of their own search HEAD's, with
    HEAD's embedder, in every combination.
    """

    def __init__(
        self, base: Parts, head: Parts, loaded: LoadedPolicy, limit: QuestionLimit
    ) -> None:
        """Take both sides, HEAD's policy, and how many questions may be asked."""
        self.limit = limit
        self._parts = (base, head)
        self._head = head
        self._loaded = loaded
        self._opened: tuple[object, Generator] | None = None
        self._retrievers: dict[tuple[bool, bool], Retriever] = {}

    @cached_property
    def factors(self) -> Sequence[Factor]:
        """Return what differs, in the order of `Factor`."""
        return [factor for factor in Factor if self._differs(factor)]

    @property
    def notices(self) -> list[str]:
        """Return what adapters report, each once."""
        found = (notice for side in self._parts for notice in side.resources.notices)
        return list(dict.fromkeys(found))

    @cached_property
    def union(self) -> UnionCorpus:
        """Return the documents of both sides."""
        base, head = self._parts
        has_ids = base.has_ids and head.has_ids
        return UnionCorpus(base.corpus, head.corpus, has_ids=has_ids)

    def system(self, new: frozenset[Factor]) -> SystemUnderTest:
        """Return the system with HEAD's level of these factors, and BASE's of the others."""
        own = {}
        if self._head.retriever is not None:
            own = {OWN_RETRIEVER: self._retriever(new)}
        system = self._system(own, new, self._head.resources.store)
        depth = self._of(Factor.TOP_K, new).retriever
        if depth is None or depth.top_k == self._depth:
            return system
        return _Shallower(system, depth.top_k)

    def search(self) -> UnionSearch:
        """Return HEAD's retriever over the documents of both sides."""
        return UnionSearch(self.union, self._index(self.union, self._head))

    def searching(self, retriever: Retriever) -> SystemUnderTest:
        """Return HEAD's system with this retriever; what it finds is not stored."""
        store = StoreApart(self._head.resources.store, NoStore(), {RETRIEVALS})
        return self._system({OWN_RETRIEVER: retriever}, _EVERY, store)

    def _of(self, factor: Factor, new: frozenset[Factor]) -> Parts:
        return self._parts[factor in new]

    @property
    def _depth(self) -> int:
        return self._head.retriever.top_k if self._head.retriever is not None else 0

    def _differs(self, factor: Factor) -> bool:
        base, head = self._parts
        checks: dict[Factor, Callable[[], bool]] = {
            Factor.MODEL: lambda: (
                self._generator(_EVERY - {factor}).fingerprint
                != self._generator(_EVERY).fingerprint
            ),
            Factor.PROMPT: lambda: prompt_facts(base.generator) != prompt_facts(head.generator),
            Factor.DECODING: lambda: (
                base.generator.chosen_decoding != head.generator.chosen_decoding
            ),
        }
        then, now = base.retriever, head.retriever
        if then is not None and now is not None:
            checks |= {
                Factor.EMBEDDER: lambda: _fingerprints(base.encoder) != _fingerprints(head.encoder),
                Factor.CORPUS: lambda: not _same_documents(base.corpus, head.corpus),
                Factor.TOP_K: lambda: then.top_k != now.top_k,
            }
        return factor in checks and checks[factor]()

    def _system(
        self, own: Mapping[str, Retriever], new: frozenset[Factor], store: ResultStore
    ) -> LocalSystem:
        prompt = self._of(Factor.PROMPT, new).generator
        parts = System(
            retrievers={**own, **self._of_suites},
            generator=LimitedGenerator(self._generator(new), self.limit),
            template=prompt.template,
            document_characters=prompt.document_characters,
            decoding=self._of(Factor.DECODING, new).generator.chosen_decoding,
        )
        return LocalSystem(parts, store)

    @cached_property
    def _of_suites(self) -> Mapping[str, Retriever]:
        system = self._loaded.policy.system
        kind = kind_of(system)
        made = SuiteRetrievers(
            resources=self._head.resources,
            embedder=kind.embedder(system),
            role=kind.embedder_role(system),
        )
        return made.of_all(self._loaded.suites.values())

    def _generator(self, new: frozenset[Factor]) -> Generator:
        sides = {
            Factor.MODEL: _OF_MODEL,
            Factor.PROMPT: _OF_PROMPT,
            Factor.DECODING: _OF_DECODING,
        }
        name = tuple(factor in new for factor in sides)
        if self._opened is None or self._opened[0] != name:
            chosen = {
                field: getattr(self._of(factor, new).generator, field)
                for factor, fields in sides.items()
                for field in fields
            }
            policy = self._head.generator.model_copy(update=chosen)
            opened = open_generator(policy, self._of(Factor.MODEL, new).resources)
            self._opened = name, opened
        return self._opened[1]

    def _retriever(self, new: frozenset[Factor]) -> Retriever:
        name = (Factor.CORPUS in new, Factor.EMBEDDER in new)
        if name not in self._retrievers:
            corpus = self._of(Factor.CORPUS, new).corpus
            self._retrievers[name] = self._index(corpus, self._of(Factor.EMBEDDER, new))
        return self._retrievers[name]

    def _index(self, corpus: CorpusFile | UnionCorpus, side: Parts) -> Retriever:
        from fairgate.retrieval.flat_index import FlatIndex

        encoder = side.encoder
        index = FlatIndex(
            corpus,
            encoder.documents,
            queries=encoder.queries,
            cache_dir=self._head.resources.cache,
            progress=self._head.resources.progress,
        )
        self._head.resources.collect(index.notices)
        return index


def _fingerprints(encoder: Encoder) -> tuple[str, str]:
    return encoder.documents.fingerprint, encoder.queries.fingerprint


def _same_documents(base: CorpusFile, head: CorpusFile) -> bool:
    """Return whether both hold the same documents in the same order."""
    if base.fingerprint == head.fingerprint:
        return True
    pairs: Iterable[tuple[object, object]] = zip_longest(base.documents(), head.documents())
    return all(one == other for one, other in pairs)


class _Shallower:
    """A system that is asked for another number of documents than the plan says."""

    def __init__(self, inner: SystemUnderTest, top_k: int) -> None:
        self._inner = inner
        self._top_k = top_k

    def execute(
        self, plan: TestPlan, progress: Progress, earlier: Executed = NOTHING
    ) -> Mapping[tuple[str, str], Execution]:
        """Return the executions of the plan's cases, each with this many documents."""
        cases = [
            case._replace(top_k=self._top_k) if case.retriever == OWN_RETRIEVER else case
            for case in plan.cases
        ]
        return self._inner.execute(replace(plan, cases=cases), progress, earlier)

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return the embeddings of the documents."""
        return self._inner.vectors(documents)


def parts_of(
    retriever: RetrieverPolicy | None,
    generator: GeneratorPolicy,
    runtime: Runtime,
    progress: Progress,
) -> Parts:
    """Return one side's parts; nothing is loaded before it is asked."""
    resources = Resources(runtime, progress)
    return Parts(retriever=retriever, generator=generator, resources=resources)
