"""A system put together here: a retriever over a corpus, and a language model that runs here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import Discriminator, Field, Tag, model_validator

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import DataError
from fairgate.domain.fields import Access, Capabilities, Names, Role, SystemModel
from fairgate.domain.runtime import Runtime
from fairgate.io.embedded_names import find
from fairgate.systems.budget import BudgetField, meter_for
from fairgate.systems.chat_generator import EndpointGeneratorPolicy
from fairgate.systems.corpora import corpus_findings, long_form
from fairgate.systems.embedders import EmbedderField, EmbedderPolicy, long_embedder
from fairgate.systems.generation import template_contradictions
from fairgate.systems.generators import GeneratorField
from fairgate.systems.index_retriever import RetrieverPolicy
from fairgate.systems.labelling import PlacedLabels
from fairgate.systems.model_files import decoder_problem, embedder_problem, unproved
from fairgate.systems.onnx_generator import GeneratorPolicy, argument_contradictions
from fairgate.systems.open_local import OpenLocal
from fairgate.systems.own_retriever import WAYS, OwnRetrieverPolicy
from fairgate.systems.resources import Resources
from fairgate.systems.serving import ServePart
from fairgate.systems.system_kind import Finding, SystemKind
from fairgate.systems.tables import named_on_hub
from fairgate.systems.vector_stores import StoreSearch


def _whose(value: object) -> str:
    """Return the kind of retriever: the keys of an own retriever determine it."""
    named = value if isinstance(value, dict) else getattr(type(value), "model_fields", ())
    return "<own>" if any(key in named for key in WAYS) else "<index>"


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
