"""Run the plan's cases through the system under test, each unique question once.

The only slow step. What was answered before comes from the result store; what is new is stored
batch by batch, so that a killed run loses at most one batch. Batching, order and the state of the
store are invisible in the result.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

from fairgate.domain.cases import Case, document_fault, marked_documents
from fairgate.domain.degrees import Degrees, degrees_fields, degrees_from, is_finite_number
from fairgate.domain.errors import (
    BudgetError,
    DataError,
    FailedQuestionError,
    FairGateError,
    ModelError,
    PartlyRetrievedError,
)
from fairgate.domain.executions import (
    CorpusDocument,
    Decoding,
    Document,
    Execution,
    GenerationRequest,
    Question,
    SharedDocuments,
    served_fields,
    served_from,
)
from fairgate.domain.json_text import flat, read_json
from fairgate.domain.ports import (
    NOTHING,
    Embedder,
    Executed,
    Generator,
    OptionScorer,
    Progress,
    ResultStore,
    Retriever,
    Vectors,
)
from fairgate.io.replies import MOST_DOCUMENTS
from fairgate.systems.failing_alone import FailingAlone
from fairgate.systems.generator import render_prompt

ANSWERS, RETRIEVALS = "answer", "retrieval"
"""Kinds of stored results: answers and retrieved documents."""
_AT_ONCE = 64
_as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
Search = tuple[str, CorpusDocument | None]
"""A query, and the document that has another text for it."""
K = TypeVar("K")
V = TypeVar("V")
Fresh = abc.Generator[Mapping[K, V], None, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalParts:
    """A retriever (or none) and a generator with its prompt: what the policy puts under test."""

    retrievers: Mapping[str, Retriever]
    generator: Generator
    template: str
    document_characters: int
    decoding: Decoding
    is_exact: bool = True
    """Whether greedy answers are always the same; what an endpoint promises is not known."""
    embedder: Callable[[], Embedder] | None = None
    """Embeds texts of documents whose retriever has no vectors; None: they are not embedded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage(Generic[K, V]):
    """A step of answering whose results are stored: known ones are read, others made."""

    name: str
    """For progress."""
    kind: str
    """Under which results are stored."""
    decode: Callable[[K, object], V | None]
    """Returns None for what has not the form of a result."""
    encode: Callable[[V], str]
    make: Callable[[list[K]], Fresh[K, V]]
    """Yields results in batches, each of which is stored before the next is made."""

    def results(self, keys: Mapping[K, str], store: ResultStore, progress: Progress) -> dict[K, V]:
        """Return a result for each key, by its name in the store; what `make` left out is absent.

        A store is a file that may have been edited: a text without the expected form counts as
        missing, and what is missing is computed again. Results made before an error are stored.
        """
        results: dict[K, V] = {}
        stored = store.get_many(self.kind, list(keys.values()))
        for key, name in keys.items():
            if name in stored:
                with contextlib.suppress(ValueError):
                    if (value := self.decode(key, read_json(stored[name]))) is not None:
                        results[key] = value
        missing = [key for key in keys if key not in results]
        progress.start(self.name, len(keys), len(results))
        # Closed also where storing fails or is interrupted: what is under way ends with it.
        with contextlib.closing(self.make(missing)) as batches:
            for fresh in batches if missing else ():
                store.put_many(self.kind, [(keys[key], self.encode(v)) for key, v in fresh.items()])
                results |= fresh
                progress.advance(len(fresh))
        progress.finish()
        return results


def documents_to(documents: Sequence[Document]) -> str:
    """Return the stored text of a list of documents."""
    return _as_json(_rows(documents))


def _rows(documents: Sequence[Document]) -> list[list[object]]:
    return [[d.id, d.text, d.label, d.score] for d in documents]


def documents_from(value: object, most: int) -> tuple[Document, ...] | None:
    """Return the documents of a stored list; a retriever may have found fewer than `most`."""
    if not isinstance(value, list) or len(value) > most:
        return None
    for row in value:
        if not isinstance(row, list) or len(row) != 4:
            return None
        if not all(isinstance(part, str | None) for part in row[:3]):
            return None
        if row[3] is not None and not is_finite_number(row[3]):
            return None
    return tuple(Document(id=row[0], text=row[1], label=row[2], score=row[3]) for row in value)


def answer_to(answer: Execution) -> str:
    """Return the stored text of an answer; documents and degrees only where there are any."""
    fields: dict[str, object] = {
        "text": answer.response,
        "margin": answer.margin,
        "tokens": answer.tokens,
        "stopped": answer.stopped,
    }
    fields |= {} if answer.degrees is None else degrees_fields(answer.degrees)
    fields |= {} if answer.served is None else {"served": served_fields(answer.served)}
    fields |= {} if answer.documents is None else {"documents": _rows(answer.documents)}
    return _as_json(fields)


def answer_from(value: object) -> Execution | None:
    """Return a stored answer."""
    fields = value if isinstance(value, dict) else {}
    text, margin = fields.get("text"), fields.get("margin")
    tokens, stopped = fields.get("tokens", 0), fields.get("stopped", "end")
    if not isinstance(text, str) or not isinstance(stopped, str) or type(tokens) is not int:
        return None
    if margin is not None and not is_finite_number(margin):
        return None
    documents = None
    if (
        "documents" in fields
        and (documents := documents_from(fields["documents"], MOST_DOCUMENTS)) is None
    ):
        return None
    try:
        degrees, served = degrees_from(fields), served_from(fields.get("served"))
    except ValueError:
        return None
    return Execution(
        documents=documents,
        response=text,
        margin=margin,
        tokens=tokens,
        stopped=stopped,
        degrees=degrees,
        served=served,
    )


def scores_from(value: object, count: int) -> list[float] | None:
    """Return the stored scores of `count` options."""
    if not isinstance(value, list) or len(value) != count:
        return None
    return list(value) if all(map(is_finite_number, value)) else None


def _score(
    requests: Sequence[GenerationRequest],
    generator: Generator,
    store: ResultStore,
    progress: Progress,
) -> dict[GenerationRequest, Execution]:
    """Return for each request the most probable of its options, or of the labels of its forms.

    The margin is to the next one. Each unique request is scored once, and what was scored before
    comes from the store. Raises ModelError where the generator cannot score.
    """
    if not requests:
        return {}
    if not hasattr(generator, "score_options"):
        raise ModelError(
            "this generator does not return the probability of an answer; use `read: generated`"
        )
    scorer = cast("OptionScorer", generator)

    def scored(missing: list[GenerationRequest]) -> Fresh[GenerationRequest, list[float]]:
        for start in range(0, len(missing), _AT_ONCE):
            batch = missing[start : start + _AT_ONCE]
            yield dict(zip(batch, scorer.score_options(batch), strict=True))

    stage = Stage(
        name="score",
        kind="score",
        decode=lambda request, value: scores_from(value, len(request.options)),
        encode=json.dumps,
        make=scored,
    )
    keys = {
        request: hashlib.sha256(
            json.dumps([generator.fingerprint, request.prompt, request.options]).encode()
        ).hexdigest()
        for request in dict.fromkeys(requests)
    }
    answers = {}
    for request, scores in stage.results(keys, store, progress).items():
        if request.forms:
            degrees = Degrees.summed([label for label, _ in request.forms], scores)
            label, margin = degrees.likeliest
            answers[request] = Execution(
                response=label, margin=margin, stopped="label", degrees=degrees
            )
            continue
        ranked = sorted(zip(scores, request.options, strict=True), key=lambda one: -one[0])
        margin = round(ranked[0][0] - ranked[1][0], 4)
        answers[request] = Execution(response=ranked[0][1], margin=margin, stopped="label")
    return answers


class LocalSystem:
    """The system under test on this machine, with a store of its results."""

    def __init__(
        self, system: LocalParts, store: ResultStore, retrieved: ResultStore | None = None
    ) -> None:
        """Take the system and the store; nothing is loaded before it is asked.

        `retrieved` is the store of what is retrieved, where that is another one.
        """
        self._system = system
        self._store = store
        self._retrieved = store if retrieved is None else retrieved

    def execute(
        self, cases: Sequence[Case], progress: Progress, earlier: Executed = NOTHING
    ) -> dict[tuple[str, str], Execution]:
        """Return an execution for every case, in their order.

        A case with `documents_of` is shown the documents of that `earlier` case. Raises ModelError
        or RetrievalError where the system fails: a broken system has no verdict.
        """
        system, store = self._system, self._store
        require_documents_of_corpus(cases, system.retrievers)
        documents = documents_for(
            cases, system.retrievers, self._retrieved, earlier, progress, self.failing_searches
        )
        searches = [(case.query, case.changed) for case in cases]
        unfound = self.failing_searches.instead(searches, ())
        requests = [
            request_for(case, documents.get((case.suite, case.key)), system) for case in cases
        ]
        # Who gets no documents because the retriever fails gets no answer: that is unreadable.
        lost = {
            (case.suite, case.key): unfound[search]
            for case, search in zip(cases, searches, strict=True)
            if search in unfound
            and case.documents_of is None
            and not documents.get((case.suite, case.key), True)
        }
        answered = [
            (request, case)
            for request, case in zip(requests, cases, strict=True)
            if case.is_answered and (case.suite, case.key) not in lost
        ]
        scored = [request for request, case in answered if is_scored(case)]
        generated = [request for request, case in answered if not is_scored(case)]
        failing = self.failing_requests
        failing.learn(cases, requests)
        answers = _generate(generated, system.generator, store, progress, failing)
        answers |= _score(scored, system.generator, store, progress)
        executions: dict[tuple[str, str], Execution] = {}
        for case, request in zip(cases, requests, strict=True):
            listed = documents.get((case.suite, case.key))
            answer = lost.get((case.suite, case.key), Execution(response=""))
            if case.is_answered and (case.suite, case.key) not in lost:
                answer = answers[request]
            # Its letter may have been scored in the place of an option.
            if case.scored and answer.response in case.scored:
                option = case.options[case.scored.index(answer.response)]
                answer = answer._replace(response=option)
            executions[case.suite, case.key] = answer.of_case(
                documents=listed, options=case.options
            )
        return executions

    @cached_property
    def failing_searches(self) -> FailingAlone[Search]:
        """Queries at which a retriever fails and not at their sources'."""
        return FailingAlone()

    @cached_property
    def failing_requests(self) -> FailingAlone[GenerationRequest]:
        """Prompts at which the generator fails and not at their sources'."""
        return FailingAlone()

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return the embeddings of retrieved documents, of their index or of their texts."""
        if self._system.embedder is not None:
            return embedded(documents, self._system.embedder)
        ids = [document.id for document in documents if document.id is not None]
        if len(ids) < len(documents) or not self._system.retrievers:
            return None
        return next(iter(self._system.retrievers.values())).vectors(ids)


def require_documents_of_corpus(cases: Sequence[Case], retrievers: Mapping[str, Retriever]) -> None:
    """Raise DataError where a source names a document that is not the corpus' own.

    Only an index of ours knows its documents' texts.
    """
    marked = marked_documents(cases)
    for retriever in retrievers.values() if marked else ():
        text_of = getattr(retriever, "text_of", None)
        if text_of is None:
            continue
        for source, document in marked.items():
            if fault := document_fault(source, document, text_of(document.id)):
                raise DataError(fault)


def embedded(documents: Sequence[Document], embedder: Callable[[], Embedder]) -> Vectors | None:
    """Return embeddings of the documents' texts; None where a text is not known."""
    texts = [document.text for document in documents if document.text is not None]
    return embedder().embed(texts) if len(texts) == len(documents) else None


def request_for(
    case: Case, documents: Sequence[Document] | None, system: LocalParts
) -> GenerationRequest:
    """Return the complete prompt of a case and, unless it is certain, a seed of the case's own."""
    prompt = render_prompt(
        system.template,
        instruction=case.instruction,
        text=case.text,
        documents=documents or (),
        characters=system.document_characters,
    )
    seed = 0
    if not (system.decoding.is_greedy and system.is_exact):
        seed = int(_digest(str(system.decoding.seed), case.suite, case.key)[:15], 16)
    if case.scored:
        return GenerationRequest(prompt=prompt, options=case.scored, source=case.cluster)
    if is_scored(case):
        texts = tuple(text for _, text in case.forms)
        return GenerationRequest(
            prompt=prompt, options=texts, forms=case.forms, source=case.cluster
        )
    return GenerationRequest(
        prompt=prompt,
        labels=case.labels,
        stop=None if case.stop is None else case.stop.showing(case.text),
        seed=seed,
        options=case.options,
        forms=case.forms,
        before=case.before,
        source=case.cluster,
    )


def is_scored(case: Case) -> bool:
    """Whether probabilities of texts are the answer, and none is generated."""
    return bool(case.scored) or not case.is_generated


def documents_for(
    cases: Sequence[Case],
    retrievers: Mapping[str, Retriever],
    store: ResultStore,
    earlier: Executed,
    progress: Progress,
    failing: FailingAlone[Search] | None = None,
) -> dict[tuple[str, str], Sequence[Document]]:
    """Return by (suite, key) what cases are shown: what a retriever finds, or a case was before."""
    failing = failing or FailingAlone()
    documents: dict[tuple[str, str], Sequence[Document]] = {}
    for name, retriever in retrievers.items():
        if wanted := [c for c in cases if c.retriever == name and c.documents_of is None]:
            # Documents are in rank order, so the deepest list holds the others.
            deepest = max(case.top_k for case in wanted)
            searches = [(case.query, case.changed) for case in wanted]
            failing.learn(wanted, searches)
            lists = _retrieve(searches, deepest, retriever, store, progress, failing)
            for case, search in zip(wanted, searches, strict=True):
                documents[case.suite, case.key] = lists[search][: case.top_k]
    for case in cases:
        if case.documents_of is not None:
            ranking = earlier[case.suite, case.documents_of].documents or ()
            if (own := case.changed) is not None:
                # The other's ranking with this one's wording: the two paths of an answer.
                ranking = [replace(d, text=own.text) if d.id == own.id else d for d in ranking]
            documents[case.suite, case.key] = ranking
    return documents


def _retrieve(
    searches: Sequence[Search],
    top_k: int,
    retriever: Any,
    store: ResultStore,
    progress: Progress,
    failing: FailingAlone[Search],
) -> dict[Search, tuple[Document, ...]]:
    shared = SharedDocuments()

    def decode(_: Search, value: object) -> tuple[Document, ...] | None:
        documents = documents_from(value, top_k)
        return None if documents is None else shared.list_of(documents)

    def made(missing: list[Search]) -> Fresh[Search, tuple[Document, ...]]:
        for start in range(0, len(missing), retriever.at_once):
            batch = missing[start : start + retriever.at_once]
            try:
                changed = [changed_document for _, changed_document in batch]
                arguments = (changed,) if any(changed) else ()  # most retrievers take none
                rankings = retriever.retrieve([query for query, _ in batch], top_k, *arguments)
            except PartlyRetrievedError as partly:
                yield {
                    batch[position]: tuple(ranking) for position, ranking in partly.rankings.items()
                }
                if isinstance(partly.error, BudgetError):
                    raise partly.error.with_left(len(missing) - start - len(batch)) from None
                if isinstance(partly.error, FailedQuestionError):
                    question = partly.error.question
                    if isinstance(question, Question):
                        search = (question.query, question.changed)
                        reason = f"the retriever's {partly.error.reason}"
                        raise FailedQuestionError(str(partly.error), search, reason) from None
                raise partly.error from None
            yield dict(zip(batch, map(shared.list_of, rankings), strict=True))

    stage = Stage(
        name="retrieve",
        kind=RETRIEVALS,
        decode=decode,
        encode=documents_to,
        make=lambda missing: failing.past(missing, made),
    )
    fingerprint = retriever.fingerprint
    keys = {
        (query, changed_document): _digest(
            fingerprint,
            str(top_k),
            query,
            *((changed_document.id, changed_document.text) if changed_document else ()),
        )
        for query, changed_document in dict.fromkeys(searches)
    }
    lists = stage.results(keys, store, progress)
    return lists | dict.fromkeys(failing.instead(keys, lists), ())


def _generate(
    requests: Sequence[GenerationRequest],
    generator: Generator,
    store: ResultStore,
    progress: Progress,
    failing: FailingAlone[GenerationRequest],
) -> dict[GenerationRequest, Execution]:
    def made(missing: list[GenerationRequest]) -> Fresh[GenerationRequest, Execution]:
        for batch in _batches(generator.generate(missing)):
            yield {missing[position]: answer for position, answer in batch}

    stage = Stage(
        name="generate",
        kind=ANSWERS,
        decode=lambda _, value: answer_from(value),
        encode=answer_to,
        make=lambda missing: failing.past(missing, made),
    )
    if not requests:  # the model's files may not even be here
        return {}
    fingerprint, unique = generator.fingerprint, dict.fromkeys(requests)
    ends = {
        (labels, stop): json.dumps([labels, None if stop is None else flat(stop)])
        for labels, stop in {(request.labels, request.stop) for request in unique}
    }
    keys = {
        request: _digest(
            fingerprint,
            request.prompt,
            ends[request.labels, request.stop],
            str(request.seed),
            *request.before,
            *((json.dumps(request.forms),) if request.forms else ()),
        )
        for request in unique
    }
    answers = stage.results(keys, store, progress)
    answers |= failing.instead(unique, answers)
    if lost := len(unique) - len(answers):
        raise ModelError(f"the generator returned no answer for {lost} of {len(unique)} prompts")
    return answers


def _batches(
    answers: Iterator[tuple[int, Execution]], size: int = 16
) -> Iterator[list[tuple[int, Execution]]]:
    """Yield answers in batches; where an error or interrupt ends them, the rest is the last."""
    batch: list[tuple[int, Execution]] = []
    try:
        for item in answers:
            batch.append(item)
            if len(batch) == size:
                yield batch
                batch = []
    except (FairGateError, KeyboardInterrupt):
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _digest(*parts: str) -> str:
    """Return the SHA-256 of the parts, each delimited by its length in bytes."""
    text = "".join([f"{len(part)}:{part}" for part in parts])
    if text.isascii():  # as many bytes as characters
        return hashlib.sha256(text.encode()).hexdigest()
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        sha.update(str(len(data)).encode() + b":" + data)
    return sha.hexdigest()
