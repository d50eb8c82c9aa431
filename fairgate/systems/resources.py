"""What systems are opened with: how to run, the store, and models by name, each made once."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairgate.domain.cases import Case
from fairgate.domain.ports import Embedder, Progress, ResultStore, Retriever, Runtime
from fairgate.domain.schema import Role
from fairgate.io.git import keep_out_of_git, writable
from fairgate.systems.budget import UNLIMITED, BudgetPart, Meter
from fairgate.systems.models import (
    EmbedderPolicy,
    Encoder,
    NamedModel,
    local_folder,
    unproved,
)
from fairgate.systems.revisions import NoStore, StoreOfState, checkout_state

if TYPE_CHECKING:
    from fairgate.retrieval.exact_index import Corpus
    from fairgate.systems.result_store import SqliteResultStore


Made = TypeVar("Made")


class Resources:
    """The parts that systems share. Heavy libraries are imported when something is first asked."""

    def __init__(
        self,
        runtime: Runtime,
        progress: Progress,
        *,
        suite_retrievers: Callable[[], Mapping[str, Retriever]] = dict,
        suites_under_test: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Take how to run; `suite_retrievers` are those that suites bring themselves, by key."""
        self.runtime = runtime
        self.progress = progress
        self.suite_retrievers = suite_retrievers
        self.suites_under_test = suites_under_test
        """What those retrievers search, by name, with fingerprints."""
        self.questions: Callable[[], str] = str
        """Returns the hash of the run's questions; empty where they are not all of a plan's."""
        self.cases: Callable[[], Sequence[Case]] = tuple
        """Returns the cases of the plan."""
        self.not_code: Collection[Path] = ()
        """Files of the checkout whose changes leave the system as it is, by resolved path."""
        self.reuses = False
        """Whether the system's answers of an earlier run are used, since it was first asked."""
        self.asks_anew = False
        """Whether the system is asked past the stores, as a trial of it is."""
        self._made: dict[str, Any] = {}
        self.meter: Meter | None = None
        """What counts all that the system asks from outside, once something may."""
        self._notices: list[list[str]] = []
        self._encoders: dict[tuple[EmbedderPolicy, Role, bool], Encoder] = {}
        self.run_identity: Callable[[], str] | None = None
        """What identifies the run; None: nothing goes on where this was interrupted."""
        self._first: Resources | None = None
        """Those of the system under test, whose stores these use."""

    def meter_for(self, system: object) -> Meter:
        """Return the one meter of what a system asks, without limits where its policy has none."""
        if self.meter is None:
            self.meter = self.shared_meter(getattr(system, "budget", None), "system.budget")
        return self.meter

    def shared_meter(self, part: BudgetPart | None, field: str) -> Meter:
        """Return a meter with a policy's limits, or the one whose limits several runs share."""
        shared = {} if self.runtime.meters is None else self.runtime.meters
        if field in shared:
            meter: Meter = shared[field]
            return meter
        meter = Meter(part, field=field)
        shared[field if part is not None else f"{field}{UNLIMITED}"] = meter
        return meter

    def beside(
        self,
        runtime: Runtime,
        *,
        suite_retrievers: Callable[[], Mapping[str, Retriever]] = dict,
        suites_under_test: Callable[[], Mapping[str, str]] = dict,
    ) -> Resources:
        """Resources of a second system in the same run, whose files `runtime` reads.

        The stores are those of the first; questions count by the second's own limits.
        """
        other = Resources(
            replace(runtime, meters=None),
            self.progress,
            suite_retrievers=suite_retrievers,
            suites_under_test=suites_under_test,
        )
        other.questions, other.cases = self.questions, self.cases
        other.not_code = self.not_code
        other._first = self
        other._notices = self._notices
        return other

    @property
    def notices(self) -> list[str]:
        """Return the adapters' notices: repaired files, left-out rows. Not part of a result."""
        return [notice for notices in self._notices for notice in notices]

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """Return the object of a name, made at most once."""
        if name not in self._made:
            self._made[name] = make()
        entry: Made = self._made[name]
        return entry

    def collect(self, notices: list[str]) -> None:
        """Add a list that an adapter appends its notices to."""
        self._notices.append(notices)

    @cached_property
    def cache(self) -> Path:
        """Return the folder of stored results and models. Raises UsageError.

        What is in it is believed: a committed one would decide what a run finds.
        """
        folder = writable(self.runtime.cache, "--cache")
        keep_out_of_git(folder)
        return folder

    @cached_property
    def store(self) -> SqliteResultStore:
        """Return the store of results."""
        if self._first is not None:
            return self._first.store
        from fairgate.systems.result_store import SqliteResultStore

        store = SqliteResultStore(self.cache / "store.sqlite")
        self.collect(store.notices)
        return store

    @cached_property
    def unfinished(self) -> ResultStore:
        """Return the store of answers that count until the run ends: of what has no revision.

        Keeps nothing in a confined run, and where the same run is under way in another process.
        """
        if self._first is not None:
            return self._first.unfinished
        if self.run_identity is None or self.runtime.confined:
            return NoStore()
        from fairgate.systems.result_store import SqliteResultStore

        folder = self.cache / "unfinished" / self.run_identity()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        self._ours = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(self._ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return NoStore()
        path = folder / "store.sqlite"
        if path.exists():
            notice = (
                "this run goes on where it was interrupted, with the answers of before; if the "
                f"system has changed since, remove {folder} and run again"
            )
            self.collect([notice])
        store = SqliteResultStore(path)
        self.collect(store.notices)
        return store

    def end(self, *, is_interrupted: bool) -> None:
        """Forget what counted until the end of the run, or leave it to the next process."""
        if not is_interrupted and "store" in self.__dict__:
            self.store.fold()
        store = self.__dict__.pop("unfinished", None)
        if self.run_identity is None or store is None or isinstance(store, NoStore):
            return
        store.close()
        if not is_interrupted:
            shutil.rmtree(self.cache / "unfinished" / self.run_identity()[:16], ignore_errors=True)
        os.close(self._ours)

    def believes(self, revision: str | None) -> bool:
        """Return whether a revision names a state, so that what it answered may be reused.

        In a confined run it is the claim of whoever wrote the policy, or of the application.
        """
        return revision is not None and not self.runtime.confined

    def kept(self, *, is_known: bool, is_code_known: bool = False) -> ResultStore:
        """Return where answers are stored; `is_known`: they have a revision that counts.

        Where that is a name alone, answers are found again for the same checkout only: whoever
        edits the system may forget to change the name.
        """
        if self.asks_anew:
            return NoStore()
        if not is_known:
            return self.unfinished
        if is_code_known or not self.checkout:
            return self.store
        return StoreOfState(self.store, self.checkout)

    @cached_property
    def checkout(self) -> str:
        """Return the state of the checkout that is under test; empty where there is none."""
        return checkout_state(self.runtime.under_test.root, self.not_code)

    def keeps(self, *, is_known: bool) -> bool:
        """Return whether the next run finds the answers of this one, should it be interrupted."""
        if self.asks_anew:
            return False
        return is_known or not isinstance(self.unfinished, NoStore)

    def encoder(
        self, chosen: EmbedderPolicy, role: Role = Role.EMBEDDER, *, unit: bool = True
    ) -> Encoder:
        """Return an encoder, its results stored; `unit` gives vectors of length one."""
        from fairgate.onnx.encoder import OnnxEncoder

        if (chosen, role, unit) not in self._encoders:
            encoder = OnnxEncoder(
                self.model_path(chosen, role),
                batch_size=self.runtime.batch_size,
                threads=self.runtime.threads,
                device=self.runtime.device,  # type: ignore[arg-type]
                unit=unit,
                choice=chosen.choice,
            )
            self._encoders[chosen, role, unit] = Encoder(
                documents=self.stored(encoder),
                queries=self.stored(encoder.for_queries()),
                prompts=(encoder.settings.query_prompt, encoder.settings.document_prompt),
            )
        return self._encoders[chosen, role, unit]

    def index(
        self,
        way: object,
        corpus: Corpus,
        encoder: Callable[[], Encoder],
        *,
        unit: bool = True,
        progress: Progress | None = None,
    ) -> Retriever:
        """Return the index of a corpus: `bm25` compares words, any other way `encoder`'s vectors.

        The encoder is made where it is needed; `unit`: its vectors have length one. `progress` is
        the run's where none is given.
        """
        if way == "bm25":
            from fairgate.retrieval.bm25_index import Bm25Index

            return Bm25Index(corpus)
        from fairgate.retrieval.flat_index import FlatIndex

        chosen = encoder()
        return FlatIndex(
            corpus,
            chosen.documents,
            queries=chosen.queries,
            progress=progress or self.progress,
            unit=unit,
        )

    def stored(self, embedder: Embedder) -> Embedder:
        """Return the embedder behind the store: no text is embedded twice."""
        from fairgate.retrieval.embedding_cache import CachedEmbedder

        return CachedEmbedder(embedder, self.store)

    def model_path(self, chosen: NamedModel, role: Role) -> Path:
        """Return where a model is: bundled, a folder of the user's, or fetched from the hub.

        The path is that of the graph where the policy chose one among several.
        """
        from fairgate.onnx.model_folder import fetch

        runtime = self.runtime.under_test if role.is_under_test else self.runtime
        name, revision, file = chosen.model, chosen.revision, chosen.file
        if (folder := local_folder(name, revision, runtime)) is None:
            folder = fetch(name, revision=revision, models=self.cache / "models", file=file)
        path = folder / (file or "")
        if note := unproved(name, path):
            self.collect([note])
        return path
