"""What suites name, from bundled files, paths and the hub, and the retrievers that they bring."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fairgate.domain.cases import DEFAULT_RETRIEVER, Classifier, Source, Task
from fairgate.domain.errors import DataError, PolicyError, Problem, UsageError
from fairgate.domain.executions import CorpusSpec
from fairgate.domain.outcomes import short
from fairgate.domain.ports import Retriever, Runtime
from fairgate.domain.schema import Columns, Role, SuiteModel
from fairgate.io.named_files import fetch_dataset, fetch_table, find
from fairgate.policy.definition_files import (
    collect_perturbation_sets,
    known_dimensions,
    read_task,
    refuse_named_controls,
    task_from_policy,
    unknown_wordings,
)
from fairgate.policy.parse import ParsedPolicy, problem
from fairgate.policy.yaml_text import YamlFault
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.retrieval.bm25_index import NO_BM25
from fairgate.suites.metamorphic.policy import ClassifierPolicy, TaskPolicy
from fairgate.suites.metamorphic.sources import read_source_files, read_sources
from fairgate.suites.question_items.item_files import (
    StanceCollection,
    check_collections,
    read_items,
    stance_files,
)
from fairgate.suites.suite import CollectionSearch, Items, Suite
from fairgate.systems.corpora import find_table, named_on_hub
from fairgate.systems.models import EmbedderPolicy, Encoder, embedder_problem
from fairgate.systems.resources import Resources
from fairgate.systems.system_kind import SystemKind

if TYPE_CHECKING:
    from fairgate.suites.question_items.policy import EndpointPolicy, ItemsPolicy

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SuiteMaterials:
    """Reads what one suite names. Implements `suites.suite.Materials`."""

    parsed: ParsedPolicy
    position: int
    """Of the suite in the policy."""
    runtime: Runtime
    problems: list[Problem]
    """Everything that is wrong, with its place in the policy or in a file."""

    def task(self, named: str | TaskPolicy) -> Task | None:
        """Return a bundled task, a task file, or one written in the policy."""
        root, confined = self.runtime.root, self.runtime.confined

        def read() -> Task:
            policy = named
            if isinstance(policy, str):
                policy = read_task(policy, folder=root, confined=confined)
            task = task_from_policy(policy, partial(_opened, self.runtime))
            return replace(task, is_hidden=self.parsed.policy.redact == "hash")

        return self.attempt("task", read)

    def sources(
        self, named: str | Columns, limit: int | None, attributes: Sequence[str] = ()
    ) -> Sequence[Source] | None:
        """Return the sources of a table, with bundled attributes and those of the named files."""
        columns = Columns(path=named) if isinstance(named, str) else named
        root, confined = self.runtime.root, self.runtime.confined
        own = partial(known_dimensions, attributes, folder=root, confined=confined)

        def read() -> Sequence[Source]:
            path = find_table("sources", columns.path, self.runtime)
            spec = CorpusSpec(path=str(path), id=columns.id, text=columns.text, label=columns.label)
            if path.is_dir():
                files = [str(file) for file in sorted(path.glob("*.jsonl"))]
                return read_source_files(files, spec, limit)
            found = read_sources(spec, limit, own)
            refuse_named_controls(found)
            return found

        if attributes:
            self.attempt("attributes", own)  # told, whether the sources need them or not
        return self.attempt("sources", read)

    def perturbation_sets(
        self,
        names: Sequence[str],
        control: str,
        *,
        phrases: int | None = None,
    ) -> Sequence[PerturbationSet] | None:
        """Return the sets in the order named, the control arm's last.

        `phrases` are the most for each term.
        """
        sets, misfits, problems = collect_perturbation_sets(
            names,
            control,
            phrases=phrases,
            folder=self.runtime.root,
            confined=self.runtime.confined,
        )
        self.problems.extend(problems)
        self.problems.extend(
            problem(self.parsed, ("suites", self.position, *path), sentence)
            for path, sentence in misfits
        )
        return None if problems or misfits else sets

    def items(self, named: str | ItemsPolicy, categories: Sequence[str] | None) -> Items | None:
        """Return question items and what was excluded."""
        from fairgate.suites.question_items.policy import ItemsPolicy

        chosen = ItemsPolicy(path=named) if isinstance(named, str) else named

        def read() -> Items:
            metadata = chosen.metadata
            if metadata is not None:
                metadata = str(located("items", metadata, self.runtime))
            path = str(located("items", chosen.path, self.runtime))
            return read_items(
                path,
                unknown_wordings(),
                metadata=metadata,
                categories=categories,
                columns=chosen.columns,
            )

        return self.attempt("items", read)

    def check_collections(self, names: Sequence[str], settings: Sequence[str], depth: int) -> None:
        """Read every collection once, so that a missing stance is reported early."""
        self.attempt(
            "collections",
            lambda: check_collections(collection_paths(names, self.runtime), settings, depth),
        )

    def attempt(self, field: str, load: Callable[[], T]) -> T | None:
        """Call `load`; report at the suite's field any error that it raises."""
        try:
            return load()
        except PolicyError as error:
            self.problems.extend(error.problems)
        except (DataError, UsageError) as error:
            self.report(field, str(error))
        return None

    def report(self, field: str, sentence: str) -> None:
        """Report what is wrong with a field of the suite."""
        self.problems.append(problem(self.parsed, ("suites", self.position, field), sentence))


def _opened(
    runtime: Runtime, policy: ClassifierPolicy, allowed: Sequence[str] | None
) -> Classifier:
    from fairgate.systems.classifiers import open_classifier  # most tasks have none

    return open_classifier(runtime, policy, allowed)


def located(kind: str, name: str, runtime: Runtime) -> Path:
    """Return a bundled file, a user's file, or the folder of a Hugging Face data set."""
    hub = named_on_hub(name, runtime)
    if hub is not None:
        return fetch_table(*hub) if hub[1] else fetch_dataset(hub[0])
    return find(kind, name, runtime.root, confined=runtime.confined)


def collection_paths(names: Sequence[str], runtime: Runtime) -> list[str]:
    """Return the files of collections. Raises DataError."""
    return stance_files([str(located("collections", name, runtime.under_test)) for name in names])


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRetrievers:
    """Builds the suites' retrievers; nothing is loaded before it is asked."""

    resources: Resources
    system: SystemKind
    """Whose embedder `dense` is, and whose budget what an endpoint embeds is counted against."""

    def of_all(self, suites: Iterable[Suite]) -> dict[str, Retriever]:
        """Return the retrievers of all suites by the keys that cases give."""
        searches = (search for suite in suites for search in suite.searches())
        return {search.key: self._retriever(search) for search in searches}

    def under_test(self, suites: Iterable[Suite]) -> dict[str, str]:
        """Return the suites' collections and retrievers by fingerprint."""
        facts: dict[str, str] = {}
        for suite in suites:
            searches = suite.searches()
            if not searches:
                continue
            names = searches[0].collections
            corpus = StanceCollection(self._paths(searches[0]), "full").fingerprint
            ways = "".join(self._retriever(search).fingerprint for search in searches)
            listed = dict.fromkeys(search.name for search in searches)
            facts |= {
                f"{suite.id}: collections": f"{', '.join(names)} {short(corpus)}",
                f"{suite.id}: retrievers": f"{', '.join(listed)} {short(ways)}",
            }
        return facts

    def _paths(self, search: CollectionSearch) -> list[str]:
        return collection_paths(search.collections, self.resources.runtime)

    def _retriever(self, search: CollectionSearch) -> Retriever:
        corpus = StanceCollection(self._paths(search), search.setting)
        chosen = search.way
        unit = not isinstance(chosen, str) or chosen == DEFAULT_RETRIEVER
        return self.resources.index(chosen, corpus, lambda: self._encoder(chosen), unit=unit)

    def _encoder(self, chosen: object) -> Encoder:
        from fairgate.suites.question_items.policy import EndpointPolicy

        if isinstance(chosen, EndpointPolicy):
            return self._endpoint(chosen)
        if isinstance(chosen, str) and chosen != DEFAULT_RETRIEVER:
            return self.resources.encoder(_contriever(chosen), Role.RETRIEVER, unit=False)
        return self.resources.encoder(self.system.chosen_embedder(), self.system.embedder_role())

    def _endpoint(self, chosen: EndpointPolicy) -> Encoder:
        from fairgate.retrieval.embedding_cache import CachedEmbedder
        from fairgate.retrieval.embedding_endpoint import AT_ONCE, EndpointEmbedder

        meter = self.resources.meter_for(self.system)
        asked = EndpointEmbedder(
            chosen.endpoint, chosen.model, meter, api_key_env=chosen.api_key_env
        )
        embedder = CachedEmbedder(asked, self.resources.store, AT_ONCE)
        return Encoder(documents=embedder, queries=embedder)


def retriever_problems(suite: SuiteModel, runtime: Runtime) -> Iterator[YamlFault]:
    """Yield which of a suite's retrievers cannot be made here, by their place in the suite."""
    for number, retriever in enumerate(getattr(suite, "retrievers", ())):
        wrong = ""
        if retriever == "bm25" and find_spec("bm25s") is None:
            wrong = NO_BM25
        elif isinstance(retriever, str) and ":" in retriever:
            wrong = embedder_problem(_contriever(retriever), runtime)
        if wrong:
            yield ("retrievers", number), wrong


def _contriever(name: str) -> EmbedderPolicy:
    return EmbedderPolicy(
        model=name.partition(":")[2], pooling="mean", query_prompt="", document_prompt=""
    )
