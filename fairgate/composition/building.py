"""Builds the system under test from a loaded policy; names every adapter.

Heavy libraries are imported when something is first asked of them, so a run whose results are all
stored loads none.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fairgate import __version__
from fairgate.adapters.embedded_names import existing, find
from fairgate.adapters.environment import describe_environment
from fairgate.adapters.git_calls import current_commit
from fairgate.composition.items import ItemRetrievers, item_options
from fairgate.composition.loading import LoadedPolicy, corpus_policy
from fairgate.composition.tables import find_table
from fairgate.domain.corpora import CorpusSpec
from fairgate.domain.errors import UsageError
from fairgate.domain.executions import Decoding
from fairgate.domain.outcomes import Provenance
from fairgate.domain.runtime import Runtime
from fairgate.engine.baseline import Baseline, items_must_match, must_match
from fairgate.engine.environment import environment_notices
from fairgate.engine.execute import LocalSystem, System
from fairgate.engine.gate import GateInput
from fairgate.engine.judge import JudgeOptions
from fairgate.engine.ports import Embedder, Generator, Progress, Retriever, SystemUnderTest
from fairgate.engine.prompts import DEFAULT_TEMPLATE
from fairgate.engine.quarantine import quarantine_notices, quarantined
from fairgate.engine.recorded import RecordedSystem, Recording
from fairgate.policy.system import GeneratorPolicy, PreparePolicy
from fairgate.suites.metamorphic.policy import SuitePolicy

if TYPE_CHECKING:
    from fairgate.adapters.files.corpus import CorpusFile
    from fairgate.adapters.files.recorded import RecordedAnswers
    from fairgate.adapters.result_store import SqliteResultStore
    from fairgate.adapters.token_counter import TokenizerFile

PRESETS = {
    "greedy": Decoding(),
    "paper-text": Decoding(temperature=0.1, top_p=0.9, top_k=50, max_new_tokens=150, seed=42),
    "paper-code": Decoding(max_new_tokens=800),
}


class Composition:
    """Builds what a run needs from a loaded policy; every part at most once, when it is asked."""

    def __init__(self, loaded: LoadedPolicy, runtime: Runtime, progress: Progress) -> None:
        """Take a loaded policy and how to run it."""
        self._loaded = loaded
        self._runtime = runtime
        self._progress = progress
        self._speakers: list[list[str]] = []

    @property
    def notices(self) -> list[str]:
        """Return what adapters had to say: repaired files, left-out rows. Not part of a result."""
        return [notice for speaker in self._speakers for notice in speaker]

    def gate_input(self, baseline: Baseline | None, baseline_path: str) -> GateInput:
        """Return everything that is known before a model is loaded."""
        policy = self._loaded.policy
        provenance = self.provenance()
        first_run = [] if baseline else [f"no baseline at {baseline_path}: this is a first run"]
        return GateInput(
            policy=policy,
            plan=self._loaded.plan,
            options={
                suite.id: judge_options(suite, quarantined(policy, suite.id))
                for suite in policy.metamorphic
            },
            item_options=item_options(self._loaded.item_suites, policy),
            must_match={
                given.suite.id: must_match(policy, given.suite, given.task)
                for given in self._loaded.suites
            }
            | {suite.id: items_must_match(policy, suite) for suite in policy.item_suites},
            baseline=baseline,
            baseline_path=baseline_path,
            provenance=provenance,
            notices=[
                *first_run,
                *quarantine_notices(policy, self._loaded.plan),
                *environment_notices(provenance, baseline),
            ],
        )

    def provenance(self) -> Provenance:
        """Return what is under test and where it runs, by fingerprint."""
        return Provenance(
            under_test=self._under_test(),
            environment=describe_environment(self._runtime.device),
            fairgate=__version__,
            policy_path=self._loaded.parsed.path,
            commit=current_commit(self._runtime.root),
        )

    def _under_test(self) -> dict[str, str]:
        system = self._loaded.policy.system
        if system.recorded is not None:
            return {"recorded": _short(self._recording.fingerprint)}
        found = {}
        if system.retriever is not None:
            found["corpus"] = f"{corpus_policy(system.retriever).path} {_short(self._corpus_id)}"
            found["embedder"] = f"{system.retriever.embedder} {_short(self.embedder.fingerprint)}"
            found["index"] = system.retriever.index
        for suite in self._loaded.policy.item_suites:
            found |= self._item_retrievers.under_test(suite)
        if system.generator is not None:
            found["model"] = f"{system.generator.model} {_short(self.generator.fingerprint)}"
            found["prompt"] = _short(f"{self._template}\0{system.generator.document_characters}")
        return found

    def system_under_test(self) -> SystemUnderTest:
        """Return the policy's system: local models with a store, or a recording."""
        system = self._loaded.policy.system
        if system.recorded is not None:
            return RecordedSystem(self._recording, lambda: self.embedder)
        return LocalSystem(self.parts(), self._store)

    def parts(self) -> System:
        """Return retrievers, generator and prompt of a policy whose models run here."""
        system = self._loaded.policy.system
        generator = system.generator or GeneratorPolicy()
        return System(
            retrievers=self._retrievers(),
            generator=self.generator,
            template=self._template,
            document_characters=generator.document_characters,
            decoding=decoding_of(generator),
        )

    def _retrievers(self) -> dict[str, Retriever]:
        policy = self._loaded.policy
        found = {"default": self.retriever} if policy.system.retriever else {}
        for suite in policy.item_suites:
            found |= self._item_retrievers.of(suite)
        return found

    @property
    def _item_retrievers(self) -> ItemRetrievers:
        return ItemRetrievers(
            runtime=self._runtime,
            progress=self._progress,
            embedder=lambda: self.embedder,
            mean_pooled=lambda name: self._encoder(name, unit=False),
            remembered=self._remembered,
        )

    def replayed(self, recording: Recording) -> SystemUnderTest:
        """Return a system that remembers an earlier run (`rescore`)."""
        return RecordedSystem(recording, lambda: self.embedder)

    @cached_property
    def _template(self) -> str:
        generator = self._loaded.policy.system.generator
        return (generator.prompt if generator else None) or DEFAULT_TEMPLATE

    @cached_property
    def _recording(self) -> RecordedAnswers:
        from fairgate.adapters.files.recorded import read_recorded

        name = self._loaded.policy.system.recorded or ""
        path = existing(name, self._runtime.root, confined=self._runtime.confined)
        return read_recorded(str(path))

    @cached_property
    def _store(self) -> SqliteResultStore:
        from fairgate.adapters.result_store import SqliteResultStore

        store = SqliteResultStore(self._runtime.cache / "store.sqlite")
        self._speakers.append(store.notices)
        return store

    @cached_property
    def embedder(self) -> Embedder:
        """Return the policy's embedder, with its results remembered."""
        system = self._loaded.policy.system
        name = system.retriever.embedder if system.retriever else system.embedder or "minilm"
        return self._encoder(name, unit=True)

    def _encoder(self, name: str, *, unit: bool) -> Embedder:
        from fairgate.adapters.onnx_encoder import OnnxEncoder

        encoder = OnnxEncoder(
            self._model_folder(name, None),
            batch_size=self._runtime.batch_size,
            threads=self._runtime.threads,
            device=self._runtime.device,  # type: ignore[arg-type]
            unit=unit,
        )
        return self._remembered(encoder)

    def _remembered(self, embedder: Embedder) -> Embedder:
        from fairgate.adapters.embedding_cache import CachedEmbedder

        return CachedEmbedder(embedder, self._store)

    @cached_property
    def _corpus(self) -> CorpusFile:
        from fairgate.adapters.files.corpus import CorpusFile

        retriever = self._loaded.policy.system.retriever
        if retriever is None:
            raise UsageError("the policy has no retriever")
        chosen = corpus_policy(retriever)
        path = find_table("corpora", chosen.path, self._runtime)
        spec = CorpusSpec(path=str(path), id=chosen.id, text=chosen.text, label=chosen.label)
        corpus = CorpusFile(self._prepared(spec, prepare=chosen.prepare))
        self._speakers.append(corpus.notices)
        return corpus

    @property
    def _corpus_id(self) -> str:
        return str(self._corpus.fingerprint)

    def _prepared(self, spec: CorpusSpec, *, prepare: PreparePolicy | bool) -> CorpusSpec:
        if prepare is False:
            return spec
        from fairgate.adapters.files.cleaning import PreparationOptions
        from fairgate.adapters.files.preparation import prepared_corpus

        chosen = PreparePolicy() if prepare is True else prepare
        return prepared_corpus(
            spec,
            self._runtime.cache,
            tokens=token_counter(chosen.tokenizer, self._runtime),
            options=PreparationOptions(sample=chosen.sample, seed=chosen.seed),
            progress=self._progress,
        )

    @cached_property
    def retriever(self) -> Retriever:
        """Return the policy's retriever over its corpus."""
        from fairgate.adapters.faiss_index.flat_index import FlatIndex

        index = FlatIndex(
            self._corpus, self.embedder, cache_dir=self._runtime.cache, progress=self._progress
        )
        self._speakers.append(index.notices)
        return index

    @cached_property
    def generator(self) -> Generator:
        """Return the policy's small language model."""
        from fairgate.adapters.onnx_decoder import OnnxDecoder

        chosen = self._loaded.policy.system.generator or GeneratorPolicy()
        return OnnxDecoder(
            self._model_folder(chosen.model, chosen.revision),
            decoding=decoding_of(chosen),
            batch_size=self._runtime.batch_size,
            threads=self._runtime.threads,
            device=self._runtime.device,  # type: ignore[arg-type]
        )

    def _model_folder(self, name: str, revision: str | None) -> Path:
        from fairgate.adapters.model_hub import fetch, is_hub_id

        if is_hub_id(name) and not (self._runtime.root / name).exists():
            return fetch(name, revision=revision, models=self._runtime.cache / "models")
        return find("models", name, self._runtime.root, confined=self._runtime.confined)


def decoding_of(generator: GeneratorPolicy) -> Decoding:
    """Return how a policy's generator chooses tokens."""
    chosen = generator.decoding
    return PRESETS[chosen] if isinstance(chosen, str) else Decoding(**chosen.model_dump())


def judge_options(suite: SuitePolicy, quarantined: frozenset[str]) -> JudgeOptions:
    """Return how a policy judges one suite's pairs."""
    return JudgeOptions(
        criterion=suite.criterion,
        matching=suite.matching,
        distance=suite.distance,
        unstable_margin=suite.unstable_margin,
        quarantined=quarantined,
    )


def token_counter(name: str, runtime: Runtime) -> TokenizerFile:
    """Return a counter for `bundled`, a tokenizer.json, a model folder, or a hub id.

    Where a hub id cannot be had (offline), the bundled tokenizer counts instead; its name in the
    manifest says so.
    """
    from fairgate.adapters.token_counter import TokenizerFile, hub_tokenizer

    bundled = find("models", "minilm", runtime.root) / "tokenizer.json"
    if name == "bundled":
        return TokenizerFile(bundled, "bundled")
    if (runtime.root / name).exists():
        local = existing(name, runtime.root, confined=runtime.confined)
        return TokenizerFile(local / "tokenizer.json" if local.is_dir() else local, name)
    return hub_tokenizer(name) or TokenizerFile(bundled, f"bundled ({name} could not be had)")


def _short(fingerprint: str) -> str:
    return hashlib.sha256(fingerprint.encode()).hexdigest()[:12]
