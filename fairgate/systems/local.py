"""A system put together here: a retriever over a corpus, and a language model that runs here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from fairgate.domain.cases import SYSTEM_RETRIEVER, TestPlan, marked_documents
from fairgate.domain.errors import DataError, UsageError
from fairgate.domain.executions import Chat, Execution, GenerationRequest
from fairgate.domain.outcomes import short
from fairgate.domain.ports import Embedder, Generator, ResultStore, Retriever, Runtime
from fairgate.domain.schema import (
    Access,
    ByShape,
    Capabilities,
    Columns,
    Names,
    Role,
    Strict,
    Text,
)
from fairgate.domain.wording import quoted
from fairgate.io.named_files import find
from fairgate.retrieval.bm25_index import NO_BM25
from fairgate.systems.budget import BudgetField, Meter
from fairgate.systems.corpora import (
    corpus_findings,
    long_form,
    named_on_hub,
    open_corpus,
)
from fairgate.systems.execute import LocalParts, LocalSystem
from fairgate.systems.generator import (
    ChatEndpoint,
    EndpointGeneratorPolicy,
    GeneratorField,
    GeneratorModel,
    GeneratorPolicy,
    open_generator,
)
from fairgate.systems.labelling import PlacedLabels
from fairgate.systems.models import (
    DEFAULT_EMBEDDER,
    EMBEDS_DOCUMENTS,
    EMBEDS_REPLIES,
    EmbedderField,
    EmbedderPolicy,
    Encoder,
    decoder_problem,
    embedder_problem,
    lacks_template,
    long_embedder,
    recorded_precision,
    unfetched,
    unproved_here,
)
from fairgate.systems.own_retriever import WAYS, AskedRetriever, OwnRetrieverPolicy
from fairgate.systems.resources import Resources
from fairgate.systems.revisions import is_code_known, resolved, revision_text
from fairgate.systems.serving import ServePart
from fairgate.systems.system_kind import NOT_OF_BASE, Finding, SystemKind

if TYPE_CHECKING:
    from fairgate.retrieval.corpus import CorpusFile


_OURS = (
    "add_generation_prompt",
    "chat_template",
    "continue_final_message",
    "conversation",
    "documents",
    "messages",
    "padding",
    "return_dict",
    "tokenize",
    "tools",
    "truncation",
)
"""Arguments of a chat template that a policy may not set."""


def _whose(value: object) -> str:
    """Return the kind of retriever: the keys of an own retriever determine it."""
    keys = value if isinstance(value, dict) else getattr(type(value), "model_fields", ())
    return "<own>" if any(key in keys for key in WAYS) else "<index>"


class RetrieverPolicy(Strict):
    """The retriever under test."""

    corpus: Annotated[
        Annotated[Text, Tag("<scalar>")] | Annotated[Columns, Tag("<mapping>")],
        ByShape,
        Names(Role.CORPUS, replaces=Role.SOURCES),
    ] = Field(description="Bundled name, path, or path with columns.")
    embedder: Annotated[EmbedderField, Names(Role.RETRIEVER, replaces=Role.EMBEDDER)] = Field(
        default=DEFAULT_EMBEDDER,
        description=EMBEDS_DOCUMENTS,
    )
    index: Literal["flat", "bm25"] = Field(
        default="flat",
        description="`flat`: exact inner product (FAISS); `bm25`: words instead of vectors.",
    )
    measure_with: Annotated[EmbedderField | None, Names(Role.EMBEDDER)] = Field(
        default=None,
        description="Embeds documents for RRS and distances; default: `embedder`.",
    )
    top_k: Annotated[int, Field(ge=1, le=100)] = Field(
        default=4, description="How many documents the generator is shown."
    )


class LocalPolicy(SystemKind):
    """A retriever and a language model, put together by FairGate."""

    id: ClassVar[str] = "local"
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
        description="An index over `corpus`, or one of your own.",
    )
    generator: GeneratorField | None = Field(
        default=None,
        description="The model that answers; left out: documents alone are compared.",
    )
    embedder: Annotated[EmbedderField | None, Names(Role.RETRIEVER, replaces=Role.EMBEDDER)] = (
        Field(
            default=None,
            description=EMBEDS_REPLIES,
        )
    )

    serve: ServePart | None = Field(
        default=None,
        description="Starts what is asked over the network.",
    )

    budget: BudgetField = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.generator is None and self.retriever is None:
            raise ValueError("needs a `generator`, a `retriever`, or both")
        is_endpoint = isinstance(self.generator, EndpointGeneratorPolicy)
        own = self.retriever if isinstance(self.retriever, OwnRetrieverPolicy) else None
        if self.budget is not None and not is_endpoint and own is None:
            raise ValueError(
                "has a `budget`, but retriever and generator run here and ask nobody; leave it out"
            )
        if self.embedder is not None and self.retriever is not None:
            raise ValueError("has `embedder` twice; set `retriever.embedder` alone")
        return self

    @classmethod
    def contradictions(cls, data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield what the prompt's template lacks, so that the model would not see it.

        And arguments of the chat template that a policy cannot set.
        """
        written = data.get("generator")
        generator = written if isinstance(written, dict) else {}
        arguments = generator.get("template_arguments")
        for name in arguments if isinstance(arguments, dict) else ():
            where = ("generator", "template_arguments", str(name))
            if name in _OURS:
                yield where, f"{quoted(str(name))} is set by FairGate itself; remove it"
            elif not str(name).isidentifier():
                yield where, f"{quoted(str(name))} is no name that a template can ask for"
        prompt, at_prompt = generator.get("prompt"), ("generator", "prompt")
        if not isinstance(prompt, str):
            return
        if "{text}" not in prompt:
            yield at_prompt, "the template lacks `{text}`, the place of the test case"
        if data.get("retriever") is not None and "{documents}" not in prompt:
            unseen = "so the model would never see what was retrieved"
            yield at_prompt, f"the template lacks `{{documents}}`, {unseen}"

    def lacks_base_version(self) -> str:
        """Say that a server or retriever runs the checkout's code; empty where none does."""
        is_code = isinstance(self.retriever, OwnRetrieverPolicy) or self.serve is not None
        return NOT_OF_BASE if is_code else ""

    def accesses(self) -> Iterable[Access]:
        """Return the accesses of retriever and generator; models and corpora are files."""
        parts = (self.retriever, self.generator)
        remote = (OwnRetrieverPolicy, EndpointGeneratorPolicy)
        accesses = [
            access for part in parts if isinstance(part, remote) for access in part.accesses
        ]
        return [*accesses, *(self.serve.accesses if self.serve else ())]

    def capabilities(self) -> Capabilities:
        """Return the capabilities of local models; endpoints give text only."""
        chosen = self.generator or GeneratorPolicy()
        answers = self.generator is not None
        way = getattr(self.retriever, "way", self.retriever)
        is_here = isinstance(self.generator, GeneratorPolicy)
        return Capabilities(
            gives_documents=self.retriever is not None,
            takes_documents=answers,
            answers=answers,
            takes_changed=bool(
                way.index == "flat"
                if isinstance(way, RetrieverPolicy)
                else "changed" in getattr(way, "takes", ())
            ),
            repeatable=True,
            scores_options=is_here,
            gives_degrees=answers,
            speaks_in_turns=answers and not is_here,
            # Of an endpoint it is not known; it is sent several prompts at once.
            is_greedy=isinstance(chosen, GeneratorPolicy) and chosen.chosen_decoding.is_greedy,
            temperature=_temperature(chosen) if answers else None,
            top_k=self.retriever.top_k if self.retriever else 0,
            decoding=_decoding_facts(chosen) if answers else "without answers",
            prompt=chosen.prompt,
        )

    def open(self, resources: Resources) -> OpenLocal:
        """Return the system; nothing is loaded before it is asked."""
        chosen = self.generator or NoGenerator()
        return OpenLocal(self.retriever, chosen, resources, resources.meter_for(self))

    def missing(self, runtime: Runtime) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the corpus where there is no such file."""
        if not isinstance(self.retriever, RetrieverPolicy):
            return
        name = long_form(self.retriever.corpus).path
        try:
            if named_on_hub(name, runtime) is None:
                find("corpora", name, runtime.root, confined=runtime.confined)
        except DataError as error:
            yield ("retriever", "corpus"), str(error)

    def examined(self, plan: TestPlan | None, runtime: Runtime) -> Iterator[Finding]:
        """Yield what is wrong with model folders and corpus, and what the corpus holds."""
        yield from super().examined(plan, runtime)
        retriever, generator = self.retriever, self.generator
        models: list[tuple[tuple[str, str], GeneratorPolicy | EmbedderPolicy, str]] = []
        if isinstance(generator, GeneratorPolicy):
            wrong = decoder_problem(generator, runtime)
            models.append((("generator", "model"), generator, wrong))
        if retriever is not None:
            embedder = long_embedder(retriever.embedder)
            wrong = embedder_problem(embedder, runtime)
            models.append((("retriever", "embedder"), embedder, wrong))
        for path, model, wrong in models:
            if wrong:
                yield Finding(place=path, sentence=wrong)
            elif note := unfetched(model, runtime):
                yield Finding(place=path, sentence=note, is_problem=False, is_fetched=True)
            elif note := unproved_here(model, runtime):
                yield Finding(place=path, sentence=note, is_problem=False)
        if isinstance(retriever, RetrieverPolicy):
            if retriever.index == "bm25" and find_spec("bm25s") is None:
                yield Finding(place=("retriever", "index"), sentence=NO_BM25)
            corpus, depth = long_form(retriever.corpus), retriever.top_k
            marked = marked_documents(plan.cases if plan else ())
            for name, sentence, is_problem in corpus_findings(corpus, depth, runtime, marked):
                yield Finding(place=("retriever", name), sentence=sentence, is_problem=is_problem)

    def notices(self, *, crosses: bool) -> Iterable[str]:
        """Warn that an endpoint may change prompts in a way that FairGate does not see."""
        del crosses
        if isinstance(self.generator, EndpointGeneratorPolicy):
            yield (
                "the endpoint puts each prompt into its own chat template, which may add turns and "
                "instructions that FairGate does not see"
            )

    @property
    def is_asked(self) -> bool:
        """Return whether an endpoint answers."""
        return isinstance(self.generator, EndpointGeneratorPolicy)

    def why_unreadable(self, resources: Resources) -> str:
        """Say that the model may be a base model, which continues a text instead of answering."""
        remedy = (
            "a base model continues a text instead of answering: take its instruction-tuned "
            "version (often `-instruct`, `-it` or `-chat`), or write a `prompt` that a label "
            "completes"
        )
        if isinstance(self.generator, EndpointGeneratorPolicy):
            name = quoted(self.generator.endpoint.model)
            return f"hardly any answer can be read: {name} may be a base model; {remedy}"
        chosen = self.generator
        if chosen is None or not lacks_template(chosen, resources.runtime.under_test):
            return ""
        name = quoted(chosen.model)
        return (
            f"hardly any answer can be read: {name} has no chat template, so it may be a base "
            f"model; {remedy}"
        )

    def placed_labels(self) -> PlacedLabels | None:
        """Return those of a retriever of one's own; a corpus has its own."""
        chosen = getattr(self.retriever, "labels", None)
        return None if chosen is None else PlacedLabels(("retriever", "labels"), chosen)

    def chosen_embedder(self) -> EmbedderPolicy:
        """Return the retriever's embedder, else the one that the policy names."""
        return long_embedder(self.retriever.embedder if self.retriever else self.embedder)

    def measuring_embedder(self) -> EmbedderPolicy:
        """Return `measure_with`, else the retriever's embedder."""
        embedder = (
            self.retriever.measure_with if isinstance(self.retriever, RetrieverPolicy) else None
        )
        return self.chosen_embedder() if embedder is None else long_embedder(embedder)

    def measures_apart(self) -> bool:
        """Return whether `measure_with` is set, or words retrieve, or a retriever of one's own."""
        own = self.retriever
        if isinstance(own, RetrieverPolicy):
            return own.measure_with is not None or own.index == "bm25"
        return own is not None and "embedder" in own.model_fields_set

    def embedder_role(self) -> Role:
        """Return the embedder's role: it retrieves, unless a retriever of one's own does."""
        is_own = isinstance(self.retriever, OwnRetrieverPolicy)
        return Role.EMBEDDER if is_own else Role.RETRIEVER


class NoGenerator(GeneratorModel):
    """Stands for the generator of a policy that has none."""


class NoAnswers:
    """A port `Generator` of which nothing is asked."""

    fingerprint = ""

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Execution]]:
        """Raise UsageError if there are requests: the policy names no generator."""
        if requests:
            raise UsageError("the policy names no `generator`, so nothing can be answered; add one")
        return iter(())


class OpenLocal(LocalSystem):
    """A policy's retriever and model, opened; each is made at most once, when it is asked."""

    def __init__(
        self,
        retriever: RetrieverPolicy | OwnRetrieverPolicy | None,
        generator: GeneratorPolicy | EndpointGeneratorPolicy | NoGenerator,
        resources: Resources,
        meter: Meter | None = None,
        role: Role = Role.GENERATOR,
    ) -> None:
        """Take the parts that the policy names and what systems share; None: without a budget.

        Raises UsageError where one of them may not be asked.
        """
        self._meter = meter or Meter()
        self._is_code_known = False
        if isinstance(generator, EndpointGeneratorPolicy):
            endpoint, runtime = generator.endpoint, resources.runtime
            reachable = runtime.under_test if role.is_under_test else runtime
            self._is_code_known = is_code_known(endpoint)
            generator = generator.model_copy(update={"endpoint": resolved(endpoint, reachable)})
        self._chosen = generator
        self._role = role
        self._resources = resources
        self._index = retriever if isinstance(retriever, RetrieverPolicy) else None
        self._asked = (
            AskedRetriever(retriever, resources, self._meter)
            if isinstance(retriever, OwnRetrieverPolicy)
            else None
        )

    def under_test(self) -> dict[str, str]:
        """Return corpus, embedder, index, collections, model and prompt."""
        facts = {} if self._asked is None else self._asked.under_test()
        if self._index is not None:
            corpus, name = long_form(self._index.corpus), long_embedder(self._index.embedder).model
            facts["corpus"] = f"{corpus.path} {short(self._corpus.fingerprint)}"
            if self._index.index == "flat":
                facts |= self._encoder.under_test(name)
            facts["index"] = self._index.index
        facts |= self._resources.suites_under_test()
        if not isinstance(self._chosen, NoGenerator):
            facts["model"] = f"{model_name(self._chosen)} {short(self._generator.fingerprint)}"
            if isinstance(self._chosen, EndpointGeneratorPolicy) and (
                revision := revision_text(self._chosen.endpoint.revision)
            ):
                facts["model revision"] = short(revision)
            if precision := self._precision:
                facts["precision"] = precision
            facts["prompt"] = short(prompt_facts(self._chosen))
        return facts

    @property
    def _precision(self) -> str:
        """The generator's, as its export recorded it; empty where no record says it."""
        if not isinstance(self._chosen, GeneratorPolicy):
            return ""
        runtime = self._resources.runtime
        of_system = runtime.under_test if self._role.is_under_test else runtime
        return recorded_precision(self._chosen, of_system)

    @cached_property
    def retriever(self) -> Retriever | None:
        """Return the policy's retriever, if it has one."""
        if self._index is None:
            return self._asked
        return self._resources.index(self._index.index, self._corpus, lambda: self._encoder)

    @cached_property
    def _encoder(self) -> Encoder:
        assert self._index is not None  # noqa: S101 (asked for an index alone)
        return self._resources.encoder(long_embedder(self._index.embedder), Role.RETRIEVER)

    @property
    def _measuring(self) -> Callable[[], Embedder] | None:
        """The embedder of texts for distances; None: the index has the vectors."""
        if self._asked is not None:
            return self._asked.embedder
        index = self._index
        if index is None or (index.measure_with is None and index.index == "flat"):
            return None
        chosen = long_embedder(index.measure_with or index.embedder)
        return lambda: self._resources.encoder(chosen).documents

    @cached_property
    def _corpus(self) -> CorpusFile:
        assert self._index is not None  # noqa: S101 (asked for an index alone)
        return open_corpus(long_form(self._index.corpus), self._resources)

    @cached_property
    def _store(self) -> ResultStore:  # type: ignore[override]  # as an attribute, made late
        chosen = self._chosen
        if self._role.is_under_test:
            self._resources.reuses = self._is_generator_known()
        is_named = isinstance(chosen, EndpointGeneratorPolicy) and self._role.is_under_test
        return self._resources.kept(
            is_known=self._is_generator_known(),
            is_code_known=not is_named or self._is_code_known,
        )

    @cached_property
    def _retrieved(self) -> ResultStore:  # type: ignore[override]  # as an attribute, made late
        retriever = self._asked
        return self._resources.kept(
            is_known=retriever is None or retriever.is_known(),
            is_code_known=retriever is None or retriever.is_code_known,
        )

    def _is_generator_known(self) -> bool:
        chosen = self._chosen
        if isinstance(chosen, EndpointGeneratorPolicy):
            return self._resources.believes(revision_text(chosen.endpoint.revision))
        return True

    @cached_property
    def _system(self) -> LocalParts:  # type: ignore[override]  # as an attribute, made late
        own = {} if self.retriever is None else {SYSTEM_RETRIEVER: self.retriever}
        return LocalParts(
            retrievers={**own, **self._resources.suite_retrievers()},
            generator=self._generator,
            template=self._chosen.template,
            document_characters=self._chosen.document_characters,
            decoding=self._chosen.chosen_decoding,
            is_exact=not isinstance(self._chosen, EndpointGeneratorPolicy),
            embedder=self._measuring,
        )

    @cached_property
    def _generator(self) -> Generator:
        chosen, resources = self._chosen, self._resources
        if isinstance(chosen, NoGenerator):
            return NoAnswers()
        if isinstance(chosen, GeneratorPolicy):
            return open_generator(chosen, resources, self._role)
        is_known = self._is_generator_known()
        endpoint = ChatEndpoint(chosen, self._meter, lambda: resources.keeps(is_known=is_known))
        resources.collect(endpoint.notices)
        return endpoint


def model_name(generator: GeneratorModel) -> str:
    """Return the model's name in reports."""
    if isinstance(generator, EndpointGeneratorPolicy):
        return f"{generator.endpoint.model} at {generator.endpoint.base_url}"
    return generator.model if isinstance(generator, GeneratorPolicy) else ""


def _temperature(generator: GeneratorModel) -> float | None:
    """Give the temperature of answers; None where an endpoint is left to choose it."""
    sent = generator.endpoint if isinstance(generator, EndpointGeneratorPolicy) else None
    if sent is not None and "temperature" in sent.extra_body:
        return None
    return generator.chosen_decoding.temperature


def _decoding_facts(generator: GeneratorModel) -> object:
    """Return how tokens are chosen, with the fields of requests that change it."""
    policy = generator.decoding
    decoding = policy if isinstance(policy, str) else policy.model_dump()
    extra = generator.endpoint.extra_body if isinstance(generator, EndpointGeneratorPolicy) else {}
    return [decoding, extra] if extra else decoding


def prompt_facts(generator: GeneratorModel) -> str:
    """Return the parts of a prompt, besides the model's own template."""
    chat = generator.chat
    facts = (generator.template, str(generator.document_characters))
    return "\0".join(facts if chat == Chat() else (*facts, repr(chat)))
