"""Run the plan's cases through the system under test, each unique question once.

The only slow step. What was answered before comes from the result store; what is new is stored
batch by batch, so that a killed run loses at most one batch. Batching, order and the state of the
store are invisible in the result.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar, cast

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.errors import BudgetError, FairGateError, ModelError, PartlyRetrievedError
from fairgate.domain.executions import (
    Answer,
    Decoding,
    Document,
    Execution,
    GenerationRequest,
    SharedDocuments,
    Stop,
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
from fairgate.systems.generation import render_prompt

ANSWERS, RETRIEVALS = "answer", "retrieval"
"""Kinds of stored results: answers and retrieved documents."""
_AT_ONCE = 64
_DECIMALS = 4
Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
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


def read_back(
    keys: Mapping[Key, str],
    stored: Mapping[str, str],
    decode: Callable[[Key, object], Value | None],
) -> dict[Key, Value]:
    """Return what is stored for each key and has its form; `decode` returns None where not.

    A store is a file that may have been edited: a text without the expected form counts as missing,
    and what is missing is computed again.
    """
    found: dict[Key, Value] = {}
    for key, name in keys.items():
        if name not in stored:
            continue
        try:
            value = decode(key, read_json(stored[name]))
        except ValueError:
            continue
        if value is not None:
            found[key] = value
    return found


def documents_to(documents: Sequence[Document]) -> str:
    """Return the stored text of a list of documents."""
    rows = [[d.id, d.text, d.label, d.score] for d in documents]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def documents_from(value: object, most: int) -> list[Document] | None:
    """Return the documents of a stored list; a retriever may have found fewer than `most`."""
    if not isinstance(value, list):
        return None
    rows = value
    if len(rows) > most or not all(isinstance(row, list) and len(row) == 4 for row in rows):
        return None
    if not all(_is_text(part) for row in rows for part in row[:3]):
        return None
    if not all(row[3] is None or _is_number(row[3]) for row in rows):
        return None
    return [Document(id=row[0], text=row[1], label=row[2], score=row[3]) for row in rows]


def answer_to(answer: Answer) -> str:
    """Return the stored text of an answer."""
    return json.dumps(flat(answer), ensure_ascii=False, separators=(",", ":"))


def answer_from(value: object) -> Answer | None:
    """Return a stored answer."""
    fields = value if isinstance(value, dict) else {}
    text, margin = fields.get("text"), fields.get("margin")
    tokens, stopped = fields.get("tokens", 0), fields.get("stopped", "end")
    if not isinstance(text, str) or not isinstance(stopped, str) or type(tokens) is not int:
        return None
    if margin is not None and not _is_number(margin):
        return None
    return Answer(text=text, margin=margin, tokens=tokens, stopped=stopped)


def scores_from(value: object, count: int) -> list[float] | None:
    """Return the stored scores of `count` options."""
    if not isinstance(value, list) or len(value) != count:
        return None
    return list(value) if all(map(_is_number, value)) else None


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def score(
    requests: Sequence[GenerationRequest],
    generator: Generator,
    store: ResultStore,
    progress: Progress,
) -> dict[GenerationRequest, Answer]:
    """Return for each request the most probable of its options; the margin is to the next one.

    Each unique request is scored once, and what was scored before comes from the store. Raises
    ModelError where the generator cannot score.
    """
    keys = {request: _key(generator, request) for request in dict.fromkeys(requests)}
    if not keys:
        return {}
    if not hasattr(generator, "score_options"):
        raise ModelError(
            "this generator does not return the probability of an answer; use `read: generated`"
        )
    stored = store.get_many("score", list(keys.values()))
    known = read_back(keys, stored, lambda r, value: scores_from(value, len(r.options)))
    answers = {request: _answer(request, values) for request, values in known.items()}
    missing = [request for request in keys if request not in answers]
    progress.start("score", len(keys), len(answers))
    at_once = _AT_ONCE * getattr(generator, "side_by_side", 1)
    for start in range(0, len(missing), at_once):
        batch = missing[start : start + at_once]
        scores = cast("OptionScorer", generator).score_options(batch)
        found = dict(zip(batch, scores, strict=True))
        store.put_many("score", [(keys[r], json.dumps(values)) for r, values in found.items()])
        answers |= {request: _answer(request, values) for request, values in found.items()}
        progress.advance(len(batch))
    progress.finish()
    return answers


def named_option(case: Case, answer: str) -> str:
    """Return the text of the option that was scored best (its letter may have been scored)."""
    return case.options[case.scored.index(answer)]


def _answer(request: GenerationRequest, scores: Sequence[float]) -> Answer:
    ranked = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    margin = round(scores[ranked[0]] - scores[ranked[1]], _DECIMALS)
    return Answer(text=request.options[ranked[0]], margin=margin, stopped="label")


def _key(generator: Generator, request: GenerationRequest) -> str:
    parts = json.dumps([generator.fingerprint, request.prompt, request.options])
    return hashlib.sha256(parts.encode()).hexdigest()


def execute(
    plan: TestPlan,
    system: System,
    store: ResultStore,
    progress: Progress,
    earlier: Executed = NOTHING,
) -> dict[tuple[str, str], Execution]:
    """Return an execution for every case of the plan, in the order of the plan.

    A case with `documents_of` is shown that case's documents, of this plan or an `earlier` one.
    Raises ModelError or RetrievalError where the system fails: a broken system has no verdict.
    """
    executions = dict(earlier)
    for wave in sorted({case.wave for case in plan.cases}):
        cases = [case for case in plan.cases if case.wave == wave]
        documents = retrieve(cases, system.retrievers, store, progress)
        for case in cases:
            if case.documents_of is not None:
                shown = executions[case.suite, case.documents_of].documents
                documents[case.suite, case.key] = shown or ()
        requests = [
            request_for(case, documents.get((case.suite, case.key)), system) for case in cases
        ]
        scored = [r for r, case in zip(requests, cases, strict=True) if case.scored]
        written = [r for r, case in zip(requests, cases, strict=True) if not case.scored]
        answers = _generate(written, system.generator, store, progress)
        answers |= score(scored, system.generator, store, progress)
        for case, request in zip(cases, requests, strict=True):
            answer = answers[request]
            executions[case.suite, case.key] = Execution(
                key=case.key,
                suite=case.suite,
                documents=documents.get((case.suite, case.key)),
                response=named_option(case, answer.text) if case.scored else answer.text,
                margin=answer.margin,
                options=case.options,
            )
    return {(c.suite, c.key): executions[c.suite, c.key] for c in plan.cases}


class LocalSystem:
    """The system under test on this machine, with a store of its results."""

    def __init__(self, system: System, store: ResultStore) -> None:
        """Take the system and the store; nothing is loaded before it is asked."""
        self._system = system
        self._store = store

    def execute(
        self, plan: TestPlan, progress: Progress, earlier: Executed = NOTHING
    ) -> Mapping[tuple[str, str], Execution]:
        """Return an execution for every case of the plan, see `execute`."""
        return execute(plan, self._system, self._store, progress, earlier)

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return the embeddings of retrieved documents, of their index or of their texts."""
        if self._system.embedder is not None:
            texts = [document.text for document in documents if document.text is not None]
            return self._system.embedder().embed(texts) if len(texts) == len(documents) else None
        ids = [document.id for document in documents if document.id is not None]
        if len(ids) < len(documents) or not self._system.retrievers:
            return None
        return next(iter(self._system.retrievers.values())).vectors(ids)


def request_for(
    case: Case, documents: Sequence[Document] | None, system: System
) -> GenerationRequest:
    """Return the complete prompt of a case and, unless it is certain, a seed of the case's own."""
    prompt = render_prompt(
        system.template,
        instruction=case.instruction,
        text=case.text or case.query,
        documents=documents or (),
        characters=system.document_characters,
    )
    seed = 0
    if not (system.decoding.is_greedy and system.is_exact):
        seed = int(_digest(str(system.decoding.seed), case.suite, case.key)[:15], 16)
    if case.scored:
        return GenerationRequest(prompt=prompt, options=case.scored, source=case.cluster)
    return GenerationRequest(
        prompt=prompt,
        labels=case.labels,
        stop=None if case.stop is None else case.stop.showing(case.text or case.query),
        seed=seed,
        options=case.options,
        source=case.cluster,
    )


def retrieve(
    cases: Sequence[Case],
    retrievers: Mapping[str, Retriever],
    store: ResultStore,
    progress: Progress,
) -> dict[tuple[str, str], Sequence[Document]]:
    """Return by (suite, key) the documents of the cases that name one of the retrievers."""
    found: dict[tuple[str, str], Sequence[Document]] = {}
    for name, retriever in retrievers.items():
        wanted = [c for c in cases if c.retriever == name and c.documents_of is None]
        if not wanted:
            continue
        # Documents are in rank order, so the deepest list holds the others.
        deepest = max(case.top_k for case in wanted)
        lists = _retrieve_queries([c.query for c in wanted], deepest, retriever, store, progress)
        found |= {(case.suite, case.key): lists[case.query][: case.top_k] for case in wanted}
    return found


def _retrieve_queries(
    queries: Sequence[str], top_k: int, retriever: Retriever, store: ResultStore, progress: Progress
) -> dict[str, tuple[Document, ...]]:
    fingerprint = retriever.fingerprint
    keys = {query: _digest(fingerprint, str(top_k), query) for query in dict.fromkeys(queries)}
    stored = store.get_many(RETRIEVALS, list(keys.values()))
    shared = SharedDocuments()
    lists = read_back(keys, stored, lambda _, value: _shared_list(value, top_k, shared))
    missing = [query for query in keys if query not in lists]
    progress.start("retrieve", len(keys), len(lists))
    for start in range(0, len(missing), retriever.at_once):
        batch = missing[start : start + retriever.at_once]
        try:
            results = dict(zip(batch, retriever.retrieve(batch, top_k), strict=True))
        except PartlyRetrievedError as partly:
            results = {batch[position]: documents for position, documents in partly.found.items()}
            _keep_retrieved(results, keys, store)
            if isinstance(partly.error, BudgetError):
                raise partly.error.with_left(len(missing) - start - len(batch)) from None
            raise partly.error from None
        _keep_retrieved(results, keys, store)
        lists |= {query: shared.held(found) for query, found in results.items()}
        progress.advance(len(batch))
    progress.finish()
    return lists


def _shared_list(value: object, most: int, shared: SharedDocuments) -> tuple[Document, ...] | None:
    found = documents_from(value, most)
    return None if found is None else shared.held(found)


def _keep_retrieved(
    found: Mapping[str, Sequence[Document]], keys: Mapping[str, str], store: ResultStore
) -> None:
    store.put_many(RETRIEVALS, [(keys[query], documents_to(each)) for query, each in found.items()])


def _generate(
    requests: Sequence[GenerationRequest],
    generator: Generator,
    store: ResultStore,
    progress: Progress,
) -> dict[GenerationRequest, Answer]:
    fingerprint = generator.fingerprint
    keys = {request: _request_key(fingerprint, request) for request in dict.fromkeys(requests)}
    stored = store.get_many(ANSWERS, list(keys.values()))
    answers = read_back(keys, stored, lambda _, value: answer_from(value))
    missing = [request for request in keys if request not in answers]
    progress.start("generate", len(keys), len(answers))
    for batch in _batches(generator.generate(missing)) if missing else ():
        fresh = {missing[position]: answer for position, answer in batch}
        store.put_many(ANSWERS, [(keys[r], answer_to(a)) for r, a in fresh.items()])
        answers |= fresh
        progress.generated(sum(answer.tokens for answer in fresh.values()))
        progress.advance(len(fresh))
    progress.finish()
    lost = len(missing) - sum(request in answers for request in missing)
    if lost:
        raise ModelError(f"the generator returned no answer for {lost} of {len(missing)} prompts")
    return answers


def _request_key(fingerprint: str, request: GenerationRequest) -> str:
    return _digest(
        fingerprint,
        request.prompt,
        _end_of_answer(request.labels, request.stop),
        str(request.seed),
    )


def _end_of_answer(labels: tuple[str, ...], stop: Stop | None) -> str:
    return json.dumps([labels, None if stop is None else asdict(stop)])


def _batches(
    answers: Iterator[tuple[int, Answer]], size: int = 16
) -> Iterator[list[tuple[int, Answer]]]:
    """Yield answers in batches; where an error or interrupt ends them, the rest is the last."""
    batch: list[tuple[int, Answer]] = []
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


class Reordered:
    """A retriever whose lists are shown in another order, the same for every query.

    Ranks are exchanged alike everywhere, so metrics of the retrieval do not move; the prompts do.
    """

    def __init__(self, inner: Retriever, seed: int) -> None:
        """Take the retriever and the number that names the order."""
        self._inner = inner
        self._seed = seed

    @property
    def fingerprint(self) -> str:
        """Identify retriever and order."""
        return f"{self._inner.fingerprint} order {self._seed}"

    @property
    def at_once(self) -> int:
        """Return what the retriever says."""
        return self._inner.at_once

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[Document]]:
        """Return the retriever's documents in this order."""
        order = list(range(top_k))
        random.Random(self._seed).shuffle(order)  # noqa: S311 (no secret)
        return [
            [found[rank] for rank in order if rank < len(found)]
            for found in self._inner.retrieve(queries, top_k)
        ]

    def vectors(self, document_ids: Sequence[str]) -> Vectors | None:
        """Return what the retriever returns."""
        return self._inner.vectors(document_ids)


class NoStore:
    """A result store that keeps nothing: every question is asked again."""

    def get_many(self, kind: str, keys: Sequence[str]) -> Mapping[str, str]:
        """Return nothing."""
        del kind, keys
        return {}

    def put_many(self, kind: str, items: Iterable[tuple[str, str]]) -> None:
        """Discard the results."""
        del kind
        for _ in items:
            pass
