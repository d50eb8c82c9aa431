"""The retrievers that suites bring themselves: collections of documents with a stance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fairgate.domain.items import DEFAULT_RETRIEVER
from fairgate.domain.outcomes import short
from fairgate.domain.ports import Embedder, Retriever
from fairgate.domain.runtime import Runtime
from fairgate.domain.schema import Role, SuiteModel
from fairgate.gate.materials import collection_paths
from fairgate.policy.yaml_text import Where
from fairgate.retrieval.bm25_index import NO_BM25
from fairgate.suites.question_items.stances import StanceCollection
from fairgate.suites.suite import CollectionSearch, Suite
from fairgate.systems.embedders import EmbedderPolicy, Encoder
from fairgate.systems.model_files import embedder_problem
from fairgate.systems.resources import Resources

if TYPE_CHECKING:
    from fairgate.suites.question_items.policy import EndpointPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRetrievers:
    """Builds the suites' retrievers; nothing is loaded before it is asked."""

    resources: Resources
    embedder: EmbedderPolicy
    """The system's own embedder, for `dense`."""
    role: Role

    def of_all(self, suites: Iterable[Suite]) -> dict[str, Retriever]:
        """Return the retrievers of all suites by the keys that cases give."""
        return {
            search.key: self._retriever(search) for suite in suites for search in suite.searches()
        }

    def under_test(self, suites: Iterable[Suite]) -> dict[str, str]:
        """Return the suites' collections and retrievers by fingerprint."""
        found: dict[str, str] = {}
        for suite in suites:
            searches = suite.searches()
            if not searches:
                continue
            names = searches[0].collections
            corpus = StanceCollection(self._paths(searches[0]), "full").fingerprint
            ways = "".join(self._retriever(search).fingerprint for search in searches)
            listed = dict.fromkeys(search.name for search in searches)
            found |= {
                f"{suite.id}: collections": f"{', '.join(names)} {short(corpus)}",
                f"{suite.id}: retrievers": f"{', '.join(listed)} {short(ways)}",
            }
        return found

    def _paths(self, search: CollectionSearch) -> list[str]:
        return collection_paths(search.collections, self.resources.runtime)

    def _retriever(self, search: CollectionSearch) -> Retriever:
        corpus = StanceCollection(self._paths(search), search.setting)
        chosen = search.way
        if chosen == "bm25":
            from fairgate.retrieval.bm25_index import Bm25Index

            return Bm25Index(corpus)
        if isinstance(chosen, str) and chosen != DEFAULT_RETRIEVER:
            from fairgate.retrieval.exact_index import InnerProductIndex

            encoder = self.resources.encoder(_contriever(chosen), Role.RETRIEVER, unit=False)
            return InnerProductIndex(corpus, encoder.documents, queries=encoder.queries)
        from fairgate.retrieval.flat_index import FlatIndex
        from fairgate.suites.question_items.policy import EndpointPolicy

        encoder = (
            self._endpoint(chosen)
            if isinstance(chosen, EndpointPolicy)
            else self.resources.encoder(self.embedder, self.role)
        )
        return FlatIndex(
            corpus,
            encoder.documents,
            queries=encoder.queries,
            cache_dir=self.resources.cache,
            progress=self.resources.progress,
        )

    def _endpoint(self, chosen: EndpointPolicy) -> Encoder:
        from fairgate.retrieval.embedding_endpoint import EndpointEmbedder

        def side(prompt: str) -> Embedder:
            return self.resources.stored(
                EndpointEmbedder(
                    chosen.endpoint,
                    chosen.model,
                    api_key_env=chosen.api_key_env,
                    timeout=chosen.timeout,
                    prompt=prompt,
                )
            )

        return Encoder(documents=side(chosen.document_prompt), queries=side(chosen.query_prompt))


def retriever_problems(suite: SuiteModel, runtime: Runtime) -> Iterator[tuple[Where, str]]:
    """Yield which of a suite's retrievers cannot be made here, by their place in the suite."""
    for number, named in enumerate(getattr(suite, "retrievers", ())):
        wrong = ""
        if named == "bm25" and find_spec("bm25s") is None:
            wrong = NO_BM25
        elif isinstance(named, str) and ":" in named:
            wrong = embedder_problem(_contriever(named), runtime)
        if wrong:
            yield ("retrievers", number), wrong


def _contriever(named: str) -> EmbedderPolicy:
    return EmbedderPolicy(model=named.partition(":")[2], pooling="mean")
