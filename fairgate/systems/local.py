"""A system put together here: a retriever over a corpus, and a language model that runs here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Chat, Document, Execution
from fairgate.domain.outcomes import short
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
from fairgate.domain.schema import (
    Access,
    ByShape,
    Capabilities,
    Names,
    Role,
    Strict,
    SystemModel,
    Text,
)
from fairgate.io.embedded_names import find
from fairgate.systems.budget import BudgetField, meter_for
from fairgate.systems.budget_meter import Budget, BudgetedGenerator, Meter
from fairgate.systems.chat_generator import EndpointGeneratorPolicy, open_chat_generator
from fairgate.systems.corpora import (
    CorpusPolicy,
    corpus_findings,
    long_form,
    named_on_hub,
    open_corpus,
)
from fairgate.systems.embedders import (
    DEFAULT_EMBEDDER,
    EmbedderField,
    EmbedderPolicy,
    Encoder,
    long_embedder,
)
from fairgate.systems.execute import ANSWERS, RETRIEVALS, LocalSystem, NoStore, Reordered, System
from fairgate.systems.generation import GeneratorModel, template_contradictions
from fairgate.systems.generator import (
    GeneratorField,
    GeneratorPolicy,
    argument_contradictions,
    open_generator,
)
from fairgate.systems.labelling import PlacedLabels
from fairgate.systems.model_files import decoder_problem, embedder_problem, unproved
from fairgate.systems.own_retriever import WAYS, OpenOwnRetriever, OwnRetrieverPolicy
from fairgate.systems.resources import Resources
from fairgate.systems.serving import ServePart
from fairgate.systems.system_kind import Finding, SystemKind
from fairgate.systems.vector_stores import StoreSearch

if TYPE_CHECKING:
    from fairgate.retrieval.corpus import CorpusFile


def _whose(value: object) -> str:
    """Return the kind of retriever: the keys of an own retriever determine it."""
    named = value if isinstance(value, dict) else getattr(type(value), "model_fields", ())
    return "<own>" if any(key in named for key in WAYS) else "<index>"


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


class LocalPolicy(SystemModel):
    """A retriever and a language model, put together by FairGate."""

    keys: ClassVar[tuple[str, ...]] = ("retriever", "generator")

    retriever: (
        Annotated[
            Annotated[RetrieverPolicy, Tag("<index>")]
            | Annotated[OwnRetrieverPolicy, Tag("<own>")],
            Discriminator(_whose),
        ]
        | None
    ) = Field(
        default=None,
        description="An index over `corpus`, or one of your own (`http`, `command`, `python`, or "
        "the vector stores `qdrant`, `chroma` and `pgvector`). "
        "Left out: the generator is asked without documents.",
    )
    generator: GeneratorField = Field(
        description="The model that answers: one that runs here, or an endpoint."
    )
    embedder: Annotated[EmbedderField | None, Names(Role.RETRIEVER, replaces=Role.EMBEDDER)] = (
        Field(
            default=None,
            description="Without `retriever`: embeds the collections of `bbq` suites; default "
            "`minilm`.",
        )
    )

    serve: ServePart | None = Field(
        default=None,
        description="Starts what a retriever or generator asks over the network, for the run.",
    )

    budget: BudgetField = None

    @model_validator(mode="after")
    def _limits_what_is_asked(self) -> Self:
        asks = isinstance(self.generator, EndpointGeneratorPolicy) or isinstance(
            self.retriever, OwnRetrieverPolicy
        )
        if self.budget is not None and not asks:
            raise ValueError(
                "has a `budget`, but retriever and generator run here and ask nobody; leave it out"
            )
        searches = isinstance(self.retriever, OwnRetrieverPolicy) and isinstance(
            self.retriever.way, StoreSearch
        )
        counted = self.budget and (self.budget.tokens or self.budget.money)
        if counted and searches and not isinstance(self.generator, EndpointGeneratorPolicy):
            raise ValueError(
                "has a `budget` of tokens or money, which a vector store does not report; limit "
                "`requests` or `seconds`"
            )
        return self

    @model_validator(mode="after")
    def _one_embedder(self) -> Self:
        if self.embedder is not None and self.retriever is not None:
            raise ValueError("has `embedder` twice; set `retriever.embedder` alone")
        return self

    @classmethod
    def contradictions(cls, data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield what the prompt's template lacks."""
        yield from argument_contradictions(data)
        yield from template_contradictions(data)


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
        """Return an execution for every case of the plan, see `execute`."""
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


class Local(SystemKind[LocalPolicy]):
    """Models that run on this machine, their results stored."""

    id = "local"
    model = LocalPolicy

    def accesses(self, policy: LocalPolicy) -> Iterable[Access]:
        """Return what retriever and generator reach; models and corpora are files."""
        parts = (policy.retriever, policy.generator)
        asked = (OwnRetrieverPolicy, EndpointGeneratorPolicy)
        found = [access for part in parts if isinstance(part, asked) for access in part.accesses]
        return [*found, *(policy.serve.accesses if policy.serve else ())]

    def capabilities(self, policy: LocalPolicy) -> Capabilities:
        """Return what local models can do: everything, with a retriever; endpoints only text."""
        return Capabilities(
            gives_documents=policy.retriever is not None,
            takes_documents=True,
            repeatable=True,
            scores_options=isinstance(policy.generator, GeneratorPolicy),
        )

    def must_match(self, policy: LocalPolicy) -> Mapping[str, object]:
        """Return the decoding as the policy gives it."""
        chosen = policy.generator.decoding
        return {"decoding": chosen if isinstance(chosen, str) else chosen.model_dump()}

    def open(self, policy: LocalPolicy, resources: Resources) -> OpenLocal:
        """Return the system; nothing is loaded before it is asked."""
        return OpenLocal(
            policy.retriever, policy.generator, resources, meter_for(policy, resources)
        )

    def missing(
        self, policy: LocalPolicy, runtime: Runtime
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the corpus where there is no such file."""
        if not isinstance(policy.retriever, RetrieverPolicy):
            return
        name = long_form(policy.retriever.corpus).path
        try:
            if named_on_hub(name, runtime) is None:
                find("corpora", name, runtime.root, confined=runtime.confined)
        except DataError as error:
            yield ("retriever", "corpus"), str(error)

    def examined(
        self, policy: LocalPolicy, plan: TestPlan | None, runtime: Runtime
    ) -> Iterator[Finding]:
        """Yield what is wrong with model folders and corpus, and what the corpus holds."""
        del plan
        retriever, generator = policy.retriever, policy.generator
        if isinstance(generator, GeneratorPolicy):
            wrong = decoder_problem(generator.model, generator.revision, runtime)
            place = ("generator", "model")
            if wrong:
                yield Finding(place=place, sentence=wrong)
            elif note := unproved(generator.model, generator.revision, runtime):
                yield Finding(place=place, sentence=note, is_problem=False)
        if retriever is not None:
            embedder = long_embedder(retriever.embedder)
            wrong = embedder_problem(embedder, runtime)
            place = ("retriever", "embedder")
            if wrong:
                yield Finding(place=place, sentence=wrong)
            elif note := unproved(embedder.model, embedder.revision, runtime):
                yield Finding(place=place, sentence=note, is_problem=False)
        if isinstance(retriever, RetrieverPolicy):
            corpus, depth = long_form(retriever.corpus), retriever.top_k
            for name, sentence, is_problem in corpus_findings(corpus, depth, runtime):
                yield Finding(place=("retriever", name), sentence=sentence, is_problem=is_problem)

    def top_k(self, policy: LocalPolicy) -> int:
        """Return how many documents the retriever is asked for."""
        return policy.retriever.top_k if policy.retriever else 0

    def prompt(self, policy: LocalPolicy) -> str | None:
        """Return the policy's own template, if it has one."""
        return policy.generator.prompt

    def is_greedy(self, policy: LocalPolicy) -> bool:
        """Return whether no token is drawn at random, and no endpoint decides about that."""
        is_here = isinstance(policy.generator, GeneratorPolicy)
        return is_here and policy.generator.chosen_decoding.is_greedy

    def runs_a_model(self, policy: LocalPolicy) -> bool:
        """Return whether the generator is no endpoint."""
        return isinstance(policy.generator, GeneratorPolicy)

    def side_by_side(self, policy: LocalPolicy) -> int:
        """Return how many prompts an endpoint is sent at once; models here take them in batches."""
        chosen = policy.generator
        return chosen.endpoint.concurrency if isinstance(chosen, EndpointGeneratorPolicy) else 1

    def notices(self, policy: LocalPolicy) -> Iterable[str]:
        """Return that an endpoint changes prompts in a way that is not seen here."""
        if isinstance(policy.generator, EndpointGeneratorPolicy):
            yield (
                "the endpoint puts each prompt into its own chat template, which may add turns and "
                "instructions that FairGate does not see"
            )

    def labels(self, policy: LocalPolicy) -> PlacedLabels | None:
        """Return those of a retriever of one's own; a corpus has its own."""
        chosen = getattr(policy.retriever, "labels", None)
        return None if chosen is None else PlacedLabels(("retriever", "labels"), chosen)

    def embedder(self, policy: LocalPolicy) -> EmbedderPolicy:
        """Return the retriever's embedder, else the one that the policy names."""
        return long_embedder(policy.retriever.embedder if policy.retriever else policy.embedder)

    def embedder_role(self, policy: LocalPolicy) -> Role:
        """Return that it retrieves, unless a retriever of one's own does."""
        is_own = isinstance(policy.retriever, OwnRetrieverPolicy)
        return Role.EMBEDDER if is_own else Role.RETRIEVER
