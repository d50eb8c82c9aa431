"""Suites of question items: what the policy names, and the retrievers that search collections."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fairgate.adapters.dataset_hub import fetch_dataset, fetch_table
from fairgate.adapters.embedded_names import find
from fairgate.adapters.files.question_items.read import ItemFiles, read_items
from fairgate.adapters.files.stances import StanceCollection, check_collections, stance_files
from fairgate.adapters.unknown_wordings import unknown_wordings
from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import DataError, PolicyError, Problem, UsageError
from fairgate.domain.items import DEFAULT_RETRIEVER, NO_RETRIEVAL
from fairgate.domain.runtime import Runtime
from fairgate.engine.judge_items import ItemOptions
from fairgate.engine.plan_items import ItemSuiteInput, choose_examples, retriever_key
from fairgate.engine.ports import Retriever
from fairgate.engine.quarantine import quarantined
from fairgate.policy.parse import ParsedPolicy, problem
from fairgate.policy.schema import Policy
from fairgate.suites.question_items.policy import BbqSuitePolicy, EndpointPolicy, ItemsPolicy
from fairgate.systems.catalogue import kind_of
from fairgate.systems.embedders import EmbedderPolicy, Encoder
from fairgate.systems.resources import Resources
from fairgate.systems.tables import named_on_hub

Loaded = TypeVar("Loaded")


def load_item_suites(
    parsed: ParsedPolicy, runtime: Runtime, problems: list[Problem]
) -> list[ItemSuiteInput]:
    """Return the policy's suites of question items, loaded; what is wrong goes to `problems`."""
    loaded = [
        _load(parsed, position, suite, runtime, problems)
        for position, suite in enumerate(parsed.policy.suites)
        if isinstance(suite, BbqSuitePolicy)
    ]
    return [suite for suite in loaded if suite is not None]


def _load(
    parsed: ParsedPolicy,
    position: int,
    suite: BbqSuitePolicy,
    runtime: Runtime,
    problems: list[Problem],
) -> ItemSuiteInput | None:
    before = len(problems)
    system = parsed.policy.system

    def attempt(name: str, load: Callable[[], Loaded]) -> Loaded | None:
        try:
            return load()
        except PolicyError as error:
            problems.extend(error.problems)
        except (DataError, UsageError) as error:
            problems.append(problem(parsed, ("suites", position, name), str(error)))
        return None

    wordings = unknown_wordings()
    found = attempt("items", lambda: read_items(_item_files(suite, runtime), wordings))
    if kind_of(system).capabilities(system).takes_documents:
        attempt("collections", lambda: _check_collections(suite, runtime))
    if found is None or len(problems) > before:
        return None
    given = ItemSuiteInput(
        suite=suite,
        items=found.items,
        excluded=found.excluded,
        unknown_wordings=wordings,
        seed=parsed.policy.seed,
    )
    # Examples can be too few: said here, where the place in the policy is known.
    if suite.shots:
        attempt("shots", lambda: choose_examples(given.items, given.seed))
    return given


def _item_files(suite: BbqSuitePolicy, runtime: Runtime) -> ItemFiles:
    named = ItemsPolicy(path=suite.items) if isinstance(suite.items, str) else suite.items
    metadata = None
    if named.metadata is not None:
        metadata = str(_located("items", named.metadata, runtime))
    return ItemFiles(
        path=str(_located("items", named.path, runtime)),
        format=named.format,
        metadata=metadata,
        categories=suite.categories,
    )


def _located(kind: str, name: str, runtime: Runtime) -> Path:
    """Return an embedded file, a user's file, or the folder of a Hugging Face data set."""
    hub = named_on_hub(name, runtime)
    if hub is not None:
        return fetch_table(*hub) if hub[1] else fetch_dataset(hub[0])
    return find(kind, name, runtime.root, confined=runtime.confined)


def collection_paths(suite: BbqSuitePolicy, runtime: Runtime) -> list[str]:
    """Return the files of the suite's collections. Raises DataError."""
    return stance_files([str(_located("collections", name, runtime)) for name in suite.collections])


def _check_collections(suite: BbqSuitePolicy, runtime: Runtime) -> None:
    """Read every collection once, so that a missing stance is told before a model is loaded."""
    settings = [setting for setting in suite.settings if setting != NO_RETRIEVAL]
    if settings:
        check_collections(collection_paths(suite, runtime), settings, max(suite.depths))


def item_options(suites: Sequence[ItemSuiteInput], policy: Policy) -> dict[str, ItemOptions]:
    """Return how the answers of each suite are read."""
    return {
        given.suite.id: ItemOptions(
            unknown_wordings=tuple(given.unknown_wordings),
            unparsed=given.suite.unparsed,
            unstable_margin=given.suite.unstable_margin,
            shuffled=given.suite.shuffle,
            quarantined=quarantined(policy, given.suite.id),
        )
        for given in suites
    }


def item_suite_lines(suites: Sequence[ItemSuiteInput], plan: TestPlan) -> Iterator[str]:
    """Yield what `validate` says about suites of question items."""
    for given in suites:
        asked = [case for case in plan.items if case.suite == given.suite.id]
        items = {case.item.key: case.item for case in asked}
        clusters = len({item.cluster for item in items.values()})
        yield (
            f"  suite {given.suite.id}: {len(items)} items of {clusters} templates, "
            f"{len(asked)} questions to the system"
        )
        for reason, many in Counter(item.reason for item in given.excluded).most_common():
            yield f"    {many} items left out: {reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRetrievers:
    """Builds the retrievers of suites of question items; nothing is loaded before it is asked."""

    resources: Resources
    embedder: EmbedderPolicy
    """The system's own embedder, for `dense`."""

    def of_all(self, suites: Sequence[BbqSuitePolicy]) -> dict[str, Retriever]:
        """Return the retrievers of all suites by the keys that cases give."""
        return {key: retriever for suite in suites for key, retriever in self.of(suite).items()}

    def of(self, suite: BbqSuitePolicy) -> dict[str, Retriever]:
        """Return a retriever for each setting that retrieves and each way to do it."""
        settings = [setting for setting in suite.settings if setting != NO_RETRIEVAL]
        files = collection_paths(suite, self.resources.runtime) if settings else []
        return {
            retriever_key(suite.id, setting, name): self._retriever(
                chosen, StanceCollection(files, setting)
            )
            for setting in settings
            for name, chosen in zip(suite.retriever_names, suite.retrievers, strict=True)
        }

    def _retriever(self, chosen: str | EndpointPolicy, corpus: StanceCollection) -> Retriever:
        if chosen == "bm25":
            from fairgate.adapters.bm25_index import Bm25Index

            return Bm25Index(corpus)
        if isinstance(chosen, str) and chosen != DEFAULT_RETRIEVER:
            from fairgate.adapters.inner_product_index import InnerProductIndex

            model = EmbedderPolicy(model=chosen.partition(":")[2], pooling="mean")
            encoder = self.resources.encoder(model, unit=False)
            return InnerProductIndex(corpus, encoder.documents, queries=encoder.queries)
        from fairgate.adapters.faiss_index.flat_index import FlatIndex

        encoder = (
            self._endpoint(chosen)
            if isinstance(chosen, EndpointPolicy)
            else self.resources.encoder(self.embedder)
        )
        return FlatIndex(
            corpus,
            encoder.documents,
            queries=encoder.queries,
            cache_dir=self.resources.cache,
            progress=self.resources.progress,
        )

    def _endpoint(self, chosen: EndpointPolicy) -> Encoder:
        from fairgate.adapters.embedding_endpoint import EndpointEmbedder

        endpoint = self.resources.stored(
            EndpointEmbedder(
                chosen.endpoint,
                chosen.model,
                api_key_env=chosen.api_key_env,
                timeout=chosen.timeout,
            )
        )
        return Encoder(documents=endpoint, queries=endpoint)

    def under_test(self, suites: Sequence[BbqSuitePolicy]) -> dict[str, str]:
        """Return the suites' collections and retrievers by fingerprint."""
        found: dict[str, str] = {}
        for suite in suites:
            retrievers = self.of(suite)
            if not retrievers:
                continue
            files = collection_paths(suite, self.resources.runtime)
            corpus = StanceCollection(files, "full").fingerprint
            ways = "".join(retriever.fingerprint for retriever in retrievers.values())
            found |= {
                f"{suite.id}: collections": f"{', '.join(suite.collections)} {_short(corpus)}",
                f"{suite.id}: retrievers": f"{', '.join(suite.retriever_names)} {_short(ways)}",
            }
        return found


def _short(fingerprint: str) -> str:
    return hashlib.sha256(fingerprint.encode()).hexdigest()[:12]
