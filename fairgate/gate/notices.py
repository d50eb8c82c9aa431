"""What a reader must know of the documents that were shown: labels, equal texts, no rule."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from fairgate.domain.cases import first_asked, source_key, source_of, uncrossed
from fairgate.domain.executions import Document
from fairgate.domain.outcomes import Subject
from fairgate.domain.ports import Executed
from fairgate.domain.units import Assessed, Reason
from fairgate.gate.decide import allowed_constant_answers
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.degrees import LOG_ODDS
from fairgate.metrics.metric import Table
from fairgate.metrics.parity import OVERLAP
from fairgate.policy.schema import ALL, ParityPolicy, Policy
from fairgate.suites.metamorphic.assess import document_key, told_documents
from fairgate.suites.metamorphic.plan import ALONE

DOCUMENTS = "documents"
ShownDocuments = Mapping[str, Sequence[Sequence[Document]]]
"""The different lists of documents that answers of a suite rest on."""


def notices_of(
    policy: Policy, executions: Executed, assessed: Sequence[Assessed], tables: Mapping[str, Table]
) -> list[str]:
    """Return notices on the answers; no verdict depends on them."""
    lists = shown_documents(executions)
    return [
        *label_notices(lists),
        *same_text_notices(lists),
        *unheard_turns(executions),
        *allowed_constant_answers(assessed, policy),
        *unjudged_documents(tables, policy),
        *degree_notices(tables),
    ]


def shown_documents(executions: Executed) -> ShownDocuments:
    """Return the different lists of documents that answers rest on, by suite, as they came.

    A list that many answers share stands there once; answers without documents have none.
    """
    lists: defaultdict[str, dict[tuple[Document, ...], None]] = defaultdict(dict)
    for (suite, _), execution in executions.items():
        if documents := told_documents(execution):
            lists[suite][documents] = None
    return {suite: [*of_suite] for suite, of_suite in lists.items()}


def same_text_notices(documents_of: ShownDocuments) -> list[str]:
    """Return a notice for each suite whose retrieved documents all have the same text."""
    return [
        f"suite {suite}: all documents that were retrieved have the same text, so what is shown "
        "cannot differ and retrieval metrics show nothing; check the corpus"
        for suite, lists in documents_of.items()
        if max(map(len, lists)) > 1
        and len(texts := {document.text for document in chain.from_iterable(lists)}) == 1
        and None not in texts
    ]


def unheard_turns(executions: Executed) -> Iterator[str]:
    """Yield a notice for each suite in which no earlier turn changed a letter of any answer."""
    answers: dict[str, dict[str, set[str | None]]] = {}
    conversing = {suite for suite, key in executions if key.endswith(source_key("", ALONE))}
    for (suite, key), execution in executions.items():
        if suite in conversing and uncrossed(first_asked(key)) == key:
            answers.setdefault(suite, {}).setdefault(source_of(key), set()).add(execution.response)
    for suite, of_sources in answers.items():
        alone = [(suite, source_key(source, ALONE)) for source in of_sources]
        if all(key in executions for key in alone) and set(map(len, of_sources.values())) == {1}:
            yield (
                f"suite {suite}: every answer is, letter by letter, the one to the question "
                "without the turns before it: the system is steady, or does not know these turns; "
                "`fairgate doctor` asks it one question that tells"
            )


def label_notices(documents_of: ShownDocuments) -> Iterator[str]:
    """Yield a notice for each suite that was shown labelled documents and others.

    No labels at all is valid: metrics of labels are then not evaluated, with that reason.
    """
    for suite, lists in documents_of.items():
        documents: dict[str | None, Document] = {}
        for document in chain.from_iterable(lists):
            documents.setdefault(document_key(document), document)
        bare = sum(document.label is None for document in documents.values())
        if 0 < bare < len(documents):
            yield (
                f"suite {suite}: {bare:,} of {len(documents):,} retrieved documents carry no "
                "label, so pairs that were shown one count in no metric of labels; label them, or "
                "leave them out of the corpus"
            )


def degree_notices(tables: Mapping[str, Table]) -> Iterator[str]:
    """Yield for each suite how many answers lack label probabilities."""
    for name, table in tables.items():
        if LOG_ODDS not in table.values or LOG_ODDS in table.not_evaluated:
            continue
        why = Counter(table.reasons.get(LOG_ODDS, {}).values())
        total = f"of {len(table.keys):,} compared answers"
        if low := why[Reason.LOW_MASS]:
            yield (
                f"suite {name}: {low:,} {total} have less than `least_mass` of the probability in "
                "the scored forms, so that their labels count instead; add the `forms` in which "
                "the model answers"
            )
        if unknown := why[Reason.NO_DEGREES]:
            yield (
                f"suite {name}: {unknown:,} {total} came without label probabilities and count in "
                "no metric of them"
            )


def unjudged_documents(tables: Mapping[str, Table], policy: Policy) -> Iterator[str]:
    """Yield a notice for each suite whose documents are known and that no rule compares."""
    for name, table in tables.items():
        is_known = OVERLAP in table.values and OVERLAP not in table.not_evaluated
        is_judged = any(
            gate.suite in (None, name)
            and not gate.advisory
            and (
                gate.parity in (ALL, DOCUMENTS)
                if isinstance(gate, ParityPolicy)
                else gate.metric in METRICS
                and not gate.report
                and METRICS[gate.metric].about is Subject.DOCUMENTS
            )
            for gate in policy.gates
        )
        if is_known and not is_judged:
            yield (
                f"suite {name}: documents are returned; no rule judges them: add the gate `"
                "{parity: documents}`"
            )
