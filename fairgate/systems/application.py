"""An application under test, opened for a run: whatever way, it is asked each question once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cached_property

from fairgate.domain.applications import Question, Reply
from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.errors import ApplicationError
from fairgate.domain.executions import Document, Execution
from fairgate.domain.outcomes import short
from fairgate.domain.ports import (
    NOTHING,
    Application,
    Embedder,
    Executed,
    Progress,
    ResultStore,
    Retriever,
    RevisedApplication,
    SystemUnderTest,
    Vectors,
)
from fairgate.domain.schema import Capabilities
from fairgate.systems.budget_meter import BudgetedApplication, Meter
from fairgate.systems.embedders import EmbedderPolicy
from fairgate.systems.execute import NoStore, retrieve
from fairgate.systems.generation import DEFAULT_TEMPLATE, render_prompt
from fairgate.systems.resources import Resources

_KIND = "reply"
_AT_ONCE = 16


def application_notices(
    can: Capabilities, *, documents: str, handing: str, has_revision: bool
) -> list[str]:
    """Return what an application leaves open; `documents` and `handing` say how to change that."""
    found = []
    if not can.gives_documents:
        found.append(
            f"retrieval is not measured, because the system's documents are not known: {documents}"
        )
    elif not can.takes_documents:
        found.append(
            "attribution to retriever and generator is not measured, because the system is handed "
            f"no documents: {handing}"
        )
    if not has_revision:
        found.append(
            "every run asks the system everything, because its version is not known: name "
            "its `revision`"
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An application, and what is needed to ask it and to judge its replies."""

    application: Application
    store: ResultStore
    """Of the replies; one that lasts until the run ends where there is no revision."""
    takes_documents: bool
    """Whether documents can be handed over, so that crossed cases can be asked."""
    retrievers: Callable[[], Mapping[str, Retriever]]
    """Those that suites bring themselves, by key."""
    retrieval_store: Callable[[], ResultStore]
    embedder: Callable[[], Embedder | None]
    """Embeds the texts of the documents that came back, when RRS asks for it."""


class ApplicationSystem:
    """A system under test that is one application.

    What came back is stored batch by batch under the application's revision, so that a killed run
    continues where it stopped and an unchanged application is not asked again. Without a revision
    it is unknown whether it changed, so what came back is kept only until the run ends.
    """

    def __init__(self, asked: Asked) -> None:
        """Take the application; nothing is asked yet."""
        self._asked = asked

    def execute(
        self, plan: TestPlan, progress: Progress, earlier: Executed = NOTHING
    ) -> Mapping[tuple[str, str], Execution]:
        """Return an execution for every case of the plan that the application can be asked.

        Cases that are shown another case's documents are left out where it takes none, and so are
        cases that exist only for them. Raises ApplicationError where it fails: a broken system has
        no verdict. Answers received before the failure are stored.
        """
        executions = dict(earlier)
        for wave in sorted({case.wave for case in plan.cases}):
            cases = self._asked_of([case for case in plan.cases if case.wave == wave])
            documents = self._documents(cases, executions, progress)
            questions = {
                (case.suite, case.key): _question(case, documents.get((case.suite, case.key)))
                for case in cases
            }
            replies = self._replies(questions.values(), progress)
            for case in cases:
                question = questions[case.suite, case.key]
                reply = replies[question]
                shown = reply.documents if question.documents is None else question.documents
                executions[case.suite, case.key] = Execution(
                    key=case.key,
                    suite=case.suite,
                    documents=shown,
                    response=reply.answer,
                    options=case.options,
                )
        asked = ((case.suite, case.key) for case in plan.cases)
        return {name: executions[name] for name in asked if name in executions}

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return embeddings of the documents' texts; None where a text is not known."""
        texts = [document.text for document in documents if document.text is not None]
        embedder = self._asked.embedder() if len(texts) == len(documents) else None
        return None if embedder is None else embedder.embed(texts)

    def _asked_of(self, cases: Sequence[Case]) -> Sequence[Case]:
        """Leave out the waves of suites that cross documents, where none can be handed over."""
        if self._asked.takes_documents:
            return cases
        crossing = {case.suite for case in cases if case.documents_of is not None}
        return [case for case in cases if case.suite not in crossing]

    def _documents(
        self, cases: Sequence[Case], executions: Executed, progress: Progress
    ) -> dict[tuple[str, str], Sequence[Document]]:
        """Return the documents of cases for which the application does not look itself."""
        handed: dict[tuple[str, str], Sequence[Document]] = {}
        if any(case.retriever not in (None, "default") for case in cases):
            store = self._asked.retrieval_store()
            handed |= retrieve(cases, self._asked.retrievers(), store, progress)
        for case in cases:
            if case.documents_of is not None:
                shown = executions[case.suite, case.documents_of].documents
                handed[case.suite, case.key] = shown or ()
        return handed

    def _replies(self, questions: Iterable[Question], progress: Progress) -> dict[Question, Reply]:
        """Return a reply for each different question: stored ones, and what is asked now."""
        application, store = self._asked.application, self._asked.store
        keys = {q: _key(application.fingerprint, q) for q in dict.fromkeys(questions)}
        stored = store.get_many(_KIND, list(keys.values()))
        replies = {q: _reply_from(stored[key]) for q, key in keys.items() if key in stored}
        missing = [question for question in keys if question not in replies]
        progress.start("ask", len(keys), len(replies))
        fresh: dict[Question, Reply] = {}
        try:
            with closing(application.ask(missing)) as coming:
                for position, reply in coming:
                    fresh[missing[position]] = reply
                    progress.advance(1)
                    if len(fresh) == _AT_ONCE:
                        replies |= _kept(fresh, keys, store)
        finally:
            replies |= _kept(fresh, keys, store)
        progress.finish()
        lost = [question for question in missing if question not in replies]
        if lost:
            raise ApplicationError(
                f"{application.name} gave no answer to {len(lost)} of {len(missing)} questions"
            )
        return replies


def _kept(
    fresh: dict[Question, Reply], keys: Mapping[Question, str], store: ResultStore
) -> dict[Question, Reply]:
    """Store what came back, return it, and empty `fresh`."""
    kept = dict(fresh)
    store.put_many(_KIND, [(keys[q], _reply_to(reply)) for q, reply in kept.items()])
    fresh.clear()
    return kept


def _question(case: Case, documents: Sequence[Document] | None) -> Question:
    text = case.text or case.query
    prompt = render_prompt(
        DEFAULT_TEMPLATE, instruction=case.instruction, text=text, documents=(), characters=1
    )
    return Question(
        query=case.query,
        text=text,
        instruction=case.instruction,
        prompt=prompt,
        options=case.options,
        documents=None if documents is None else tuple(documents),
        repeat=case.repeat,
    )


def _key(fingerprint: str, question: Question) -> str:
    parts = json.dumps([fingerprint, asdict(question)], sort_keys=True)
    return hashlib.sha256(parts.encode()).hexdigest()


def _reply_to(reply: Reply) -> str:
    return json.dumps(asdict(reply), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _reply_from(text: str) -> Reply:
    row = json.loads(text)
    documents = row["documents"]
    return Reply(
        answer=row["answer"],
        documents=None
        if documents is None
        else tuple(Document(**document) for document in documents),
    )


class OpenApplication:
    """A system under test that is asked from outside."""

    def __init__(
        self,
        application: RevisedApplication,
        resources: Resources,
        *,
        meter: Meter,
        embedder: EmbedderPolicy,
        capabilities: Capabilities,
        shown: str,
    ) -> None:
        """Take the application; `shown` is what reports call it, `meter` counts its questions."""
        self._application = application
        self._meter = meter
        self._resources = resources
        self._embedder = embedder
        self._capabilities = capabilities
        self._shown = shown

    def execute(
        self, plan: TestPlan, progress: Progress, earlier: Executed = NOTHING
    ) -> Mapping[tuple[str, str], Execution]:
        """Return an execution for every case that the application can be asked."""
        return self._system.execute(plan, progress, earlier)

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return embeddings of the documents' texts; None where a text is not known."""
        return self._system.vectors(documents)

    def under_test(self) -> dict[str, str]:
        """Return where the application is, and its revision as far as the user names it."""
        revision = self._application.revision
        found = {"system": self._shown}
        if revision is not None:
            found["revision"] = short(revision)
        if self._capabilities.takes_documents:
            found |= self._resources.suites_under_test()
        return found

    def replica(self, number: int) -> tuple[Sequence[str], SystemUnderTest]:
        """Return the application, asked again: its own randomness is all that changes."""
        self._meter.keeps = False
        return ["asked again"] if number else [], self._asked(NoStore())

    @cached_property
    def _system(self) -> ApplicationSystem:
        return self._asked(self._resources.kept(is_known=self._is_known()))

    def _is_known(self) -> bool:
        # An untrusted application may keep its revision when it changes, or claim another's.
        return not self._resources.runtime.confined and self._application.revision is not None

    def _asked(self, store: ResultStore) -> ApplicationSystem:
        return ApplicationSystem(
            Asked(
                application=BudgetedApplication(
                    self._application,
                    self._meter,
                    lambda: self._resources.keeps(is_known=self._is_known()),
                ),
                store=store,
                takes_documents=self._capabilities.takes_documents,
                retrievers=self._resources.suite_retrievers,
                retrieval_store=lambda: self._resources.store,
                embedder=self._encoder,
            )
        )

    def _encoder(self) -> Embedder:
        return self._resources.encoder(self._embedder).documents
