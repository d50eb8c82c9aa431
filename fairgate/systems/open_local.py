"""A local system that was opened for a run: each part is made when it is asked, at most once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from fairgate.domain.cases import TestPlan
from fairgate.domain.executions import Chat, Document, Execution
from fairgate.domain.fields import Role
from fairgate.domain.fingerprints import short
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
from fairgate.systems.budget_meter import Budget, BudgetedGenerator, Meter
from fairgate.systems.chat_generator import EndpointGeneratorPolicy, open_chat_generator
from fairgate.systems.execute import ANSWERS, RETRIEVALS, LocalSystem, System
from fairgate.systems.generation import GeneratorModel
from fairgate.systems.index_retriever import OpenIndex, RetrieverPolicy
from fairgate.systems.onnx_generator import GeneratorPolicy, open_generator
from fairgate.systems.own_retriever import OpenOwnRetriever, OwnRetrieverPolicy
from fairgate.systems.replicas import NoStore, Reordered
from fairgate.systems.resources import Resources


class OpenLocal:
    """A local system under test; each part is made at most once, when it is asked."""

    def __init__(
        self,
        retriever: RetrieverPolicy | OwnRetrieverPolicy | None,
        generator: GeneratorPolicy | EndpointGeneratorPolicy,
        resources: Resources,
        meter: Meter | None = None,
        role: Role = Role.GENERATOR,
    ) -> None:
        """Take the parts that the policy names and what systems share; None: without a budget."""
        self._meter = Meter(Budget()) if meter is None else meter
        self._index = (
            None if retriever is None else _open_retriever(retriever, resources, self._meter)
        )
        self._chosen = generator
        self._role = role
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
        found = {} if self._index is None else self._index.under_test()
        found |= self._resources.suites_under_test()
        found["model"] = f"{model_name(self._chosen)} {short(self._generator.fingerprint)}"
        found["prompt"] = short(prompt_facts(self._chosen))
        return found

    @property
    def retriever(self) -> Retriever | None:
        """Return the policy's retriever over its corpus, if it has one."""
        return None if self._index is None else self._index.retriever

    def replica(self, number: int) -> tuple[Sequence[str], SystemUnderTest]:
        """Return the system with other document orders and sampling seeds, past the store."""
        self._meter.keeps = False
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
        kinds = set()
        if not self._is_generator_known():
            kinds.add(ANSWERS)
        if isinstance(self._index, OpenOwnRetriever) and not self._index.is_known():
            kinds.add(RETRIEVALS)
        store = self._resources.store
        if kinds:
            return LocalSystem(self._parts, StoreApart(store, self._resources.unfinished, kinds))
        return LocalSystem(self._parts, store)

    def _is_generator_known(self) -> bool:
        chosen = self._chosen
        if isinstance(chosen, GeneratorPolicy):
            return True
        # In a confined run a named revision is the claim of whoever wrote the policy.
        return not self._resources.runtime.confined and chosen.endpoint.revision is not None

    @cached_property
    def _parts(self) -> System:
        own = {} if self.retriever is None else {"default": self.retriever}
        return System(
            retrievers={**own, **self._resources.suite_retrievers()},
            generator=self._generator,
            template=self._chosen.template,
            document_characters=self._chosen.document_characters,
            decoding=self._chosen.chosen_decoding,
            is_exact=isinstance(self._chosen, GeneratorPolicy),
            embedder=self._index.embedder if isinstance(self._index, OpenOwnRetriever) else None,
        )

    @cached_property
    def _generator(self) -> Generator:
        if isinstance(self._chosen, EndpointGeneratorPolicy):
            asked = open_chat_generator(self._chosen, self._meter)
            return BudgetedGenerator(
                asked,
                self._meter,
                lambda: self._resources.keeps(is_known=self._is_generator_known()),
            )
        return open_generator(self._chosen, self._resources, self._role)


class StoreApart:
    """A result store that has some kinds in another one: what gives them may change unnoticed."""

    def __init__(self, inner: ResultStore, apart: ResultStore, kinds: Collection[str]) -> None:
        """Take the store of everything else, and that of these kinds."""
        self._inner, self._apart, self._kinds = inner, apart, kinds

    def get_many(self, kind: str, keys: Sequence[str]) -> Mapping[str, str]:
        """Return what is stored of the kind."""
        return self._of(kind).get_many(kind, keys)

    def put_many(self, kind: str, items: Iterable[tuple[str, str]]) -> None:
        """Store it where the kind belongs."""
        self._of(kind).put_many(kind, items)

    def _of(self, kind: str) -> ResultStore:
        return self._apart if kind in self._kinds else self._inner


def _open_retriever(
    policy: RetrieverPolicy | OwnRetrieverPolicy, resources: Resources, meter: Meter
) -> OpenIndex | OpenOwnRetriever:
    if isinstance(policy, OwnRetrieverPolicy):
        return OpenOwnRetriever(policy, resources, meter)
    return OpenIndex(policy, resources)


def model_name(generator: GeneratorModel) -> str:
    """Return what reports call the model."""
    if isinstance(generator, EndpointGeneratorPolicy):
        return f"{generator.endpoint.model} at {generator.endpoint.base_url}"
    return generator.model if isinstance(generator, GeneratorPolicy) else ""


def prompt_facts(generator: GeneratorModel) -> str:
    """Return what a prompt is made of, besides the model's own template."""
    facts = [generator.template, str(generator.document_characters)]
    chat = (
        generator.chat if isinstance(generator, GeneratorPolicy) else Chat(system=generator.system)
    )
    if chat != Chat():
        facts.append(repr(chat))
    return "\0".join(facts)
