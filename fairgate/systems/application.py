"""Applications under test, whatever the way they are asked: their policy, and asking in a run."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial
from typing import Annotated, Protocol

from pydantic import Field

from fairgate.domain.cases import SYSTEM_RETRIEVER, Case
from fairgate.domain.errors import ApplicationError
from fairgate.domain.executions import Document, Execution, Question
from fairgate.domain.outcomes import short
from fairgate.domain.ports import (
    NOTHING,
    Application,
    Executed,
    Progress,
    ResultStore,
    Retriever,
    Vectors,
)
from fairgate.domain.schema import Access, Capabilities, Names, Role
from fairgate.io.replies import ReplyPaths
from fairgate.systems.budget import Meter
from fairgate.systems.execute import (
    Fresh,
    Stage,
    answer_from,
    answer_to,
    documents_for,
    embedded,
)
from fairgate.systems.failing_alone import FailingAlone
from fairgate.systems.generator import prompt_alone
from fairgate.systems.models import EMBEDS_REPLIES, EmbedderField
from fairgate.systems.resources import Resources
from fairgate.systems.revisions import NoStore, RevisionFiles, is_code_known
from fairgate.systems.service_fields import ResponsePaths
from fairgate.systems.system_kind import NOT_OF_BASE, SystemKind

EmbedderOfReplies = Annotated[
    EmbedderField | None,
    Names(Role.EMBEDDER),
    Field(description=EMBEDS_REPLIES),
]


class ApplicationPart(Protocol):
    """How an application is asked, whatever the way."""

    @property
    def accesses(self) -> list[Access]:
        """What a run reaches, with its secrets."""

    @property
    def response(self) -> ResponsePaths:
        """The places of answer and documents."""

    @property
    def revision(self) -> str | RevisionFiles | None:
        """What names its state."""

    @property
    def shown(self) -> str:
        """The way and the place, for reports."""

    @property
    def takes(self) -> Sequence[str]:
        """`documents` and `changed`, where it takes them."""

    @property
    def takes_turns(self) -> bool:
        """Whether it holds conversations."""

    def opened(self, paths: ReplyPaths, resources: Resources, meter: Meter) -> Application:
        """Return the application; nothing is asked yet."""


class ApplicationKind(SystemKind):
    """A kind of system that is one application, asked from outside."""

    @property
    def to_take_documents(self) -> str:
        """Return the policy's setting by which the application is handed documents."""
        return f"name `documents` in `system.{self.id}.takes` if it can use them"

    @property
    @abstractmethod
    def part(self) -> ApplicationPart:
        """Return how the application is asked, in the long form."""

    def lacks_base_version(self) -> str:
        """Say that the base commit's version of an application does not run beside this one."""
        return NOT_OF_BASE

    def accesses(self) -> Iterable[Access]:
        """Return the addresses, programs and code that it reaches, with its secrets."""
        server = getattr(self, "serve", None)
        return [*self.part.accesses, *(server.accesses if server else ())]

    def capabilities(self) -> Capabilities:
        """Return the capabilities that the policy declares, or has a place for."""
        return Capabilities(
            gives_documents=self.part.response.documents is not None,
            takes_documents="documents" in self.part.takes,
            takes_changed="changed" in self.part.takes,
            repeatable=True,
            scores_options=False,
            speaks_in_turns=self.part.takes_turns,
        )

    @property
    def is_asked(self) -> bool:
        """Always True: an application is asked from outside."""
        return True

    def notices(self, *, crosses: bool) -> Iterable[str]:
        """Yield what the policy leaves open about the application."""
        can = self.capabilities()
        if not can.gives_documents:
            yield (
                "retrieval is not measured, because the system's documents are not known: "
                f"give their place in `system.{self.id}.response.documents`"
            )
        elif crosses and not can.takes_documents:
            yield (
                "attribution to retriever and generator is not measured, because the system is "
                f"handed no documents: {self.to_take_documents}"
            )
        if self.part.revision is None:
            yield (
                "every run asks the system everything, because its version is not known: name "
                "its `revision`, best as the files that it is made of"
            )

    def open(self, resources: Resources) -> ApplicationSystem:
        """Return the application, asked for the first time in the run.

        Raises UsageError where it may not be.
        """
        return ApplicationSystem(self, resources)


class ApplicationSystem:
    """A system under test that is one application.

    What came back is stored batch by batch under the application's revision, so that a killed run
    continues where it stopped and an unchanged application is not asked again. Without a revision
    it is unknown whether it changed, so what came back is kept only until the run ends.
    """

    def __init__(self, policy: ApplicationKind, resources: Resources) -> None:
        """Take the policy; nothing is asked yet. Raises UsageError where it may not be."""
        self._policy = policy
        self._resources = resources
        self._meter = resources.meter_for(policy)
        part = policy.part
        self._application = part.opened(part.response.paths, resources, self._meter)
        self._takes_documents = "documents" in part.takes
        self._failing = FailingAlone[Question]()

    def execute(
        self, cases: Sequence[Case], progress: Progress, earlier: Executed = NOTHING
    ) -> Executed:
        """Return an execution for every case that the application can be asked.

        Cases that are shown another case's documents are left out where it takes none, and so are
        cases that exist only for them. Raises ApplicationError where it fails: a broken system has
        no verdict. Answers received before the failure are stored.
        """
        if not self._takes_documents:
            crossing = {case.suite for case in cases if case.documents_of is not None}
            cases = [case for case in cases if case.suite not in crossing]
        retrievers: Mapping[str, Retriever] = {}
        store: ResultStore = NoStore()
        if any(case.retriever not in (None, SYSTEM_RETRIEVER) for case in cases):
            # A suite searches collections of its own, and hands over what is found.
            retrievers, store = self._resources.suite_retrievers(), self._resources.store
        documents = documents_for(cases, retrievers, store, earlier, progress)
        questions = {
            (case.suite, case.key): _question(case, documents.get((case.suite, case.key)))
            for case in cases
        }
        self._failing.learn(cases, [*questions.values()])
        replies = self._replies(questions.values(), progress)
        executions = {}
        for case in cases:
            question = questions[case.suite, case.key]
            reply = replies[question]
            documents_shown = reply.documents if question.documents is None else question.documents
            executions[case.suite, case.key] = reply.of_case(
                documents=documents_shown, options=case.options
            )
        return executions

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return embeddings of the documents' texts; None where a text is not known."""
        chosen = self._policy.chosen_embedder()
        return embedded(documents, lambda: self._resources.encoder(chosen).documents)

    def under_test(self) -> dict[str, str]:
        """Return where the application is, and its revision as far as the user names it."""
        facts, revision = {"system": self._policy.part.shown}, self._application.revision
        if revision is not None:
            facts["revision"] = short(revision)
        if self._takes_documents:
            facts |= self._resources.suites_under_test()
        return facts

    @cached_property
    def _store(self) -> ResultStore:
        is_code = is_code_known(self._policy.part)
        self._resources.reuses = self._is_known()
        return self._resources.kept(is_known=self._is_known(), is_code_known=is_code)

    def _is_known(self) -> bool:
        return self._resources.believes(self._application.revision)

    def _replies(
        self,
        questions: Iterable[Question],
        progress: Progress,
    ) -> dict[Question, Execution]:
        """Return a reply for each different question: stored ones, and what is asked now.

        A follow-up at which the system fails alone (`FailingAlone`) has an empty reply.
        """
        application = self._application

        def asked(missing: list[Question]) -> Fresh[Question, Execution]:
            is_known = self._is_known()
            is_kept = partial(self._resources.keeps, is_known=is_known)
            with closing(self._meter.asked(missing, application.ask, is_kept)) as coming:
                for position, reply in coming:
                    yield {missing[position]: reply}

        stage = Stage(
            name="ask",
            kind="reply",
            decode=lambda _, value: answer_from(value),
            encode=answer_to,
            make=lambda missing: self._failing.past(missing, asked),
        )
        fingerprint, unique = application.fingerprint, dict.fromkeys(questions)
        keys = {
            question: hashlib.sha256(
                json.dumps([fingerprint, question.as_dict()], sort_keys=True).encode()
            ).hexdigest()
            for question in unique
        }
        replies = stage.results(keys, self._store, progress)
        replies |= self._failing.instead(unique, replies)
        if lost := len(keys) - len(replies):
            raise ApplicationError(
                f"{application.name} gave no answer to {lost} of {len(keys)} questions"
            )
        return replies


def _question(case: Case, documents: Sequence[Document] | None) -> Question:
    return Question(
        query=case.query,
        text=case.text,
        instruction=case.instruction,
        prompt=prompt_alone(case),
        options=case.options,
        documents=None if documents is None else tuple(documents),
        repeat=case.repeat,
        # An application that retrieves for its own answers decides how deep.
        top_k=0 if case.is_answered else case.top_k,
        changed=case.changed if documents is None else None,
        before=case.before,
    )
