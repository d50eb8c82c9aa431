"""How the retrieved documents differ between source and follow-up: the claims of retrieval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairgate.domain.executions import Document, Execution
from fairgate.domain.units import Claim, Reason
from fairgate.metrics.attack_success_rate import label_profile
from fairgate.metrics.retriever_robustness import mean_distances
from fairgate.suites.suite import Executions, VectorsOf

KeyPair = tuple[str, str]
"""Keys of the source's and the follow-up's case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOptions:
    """How a suite compares document lists (SPEC 3)."""

    criterion: str = "count"
    matching: str = "hungarian"
    distance: str = "euclidean"


def document_claims(
    suite: str,
    pairs: Sequence[KeyPair],
    executions: Executions,
    vectors: VectorsOf,
    options: DocumentOptions,
) -> list[Mapping[str, Claim]]:
    """Return `retrieval`, `rrs`, `mean-distance`, `label-changes` and `overlap` of every pair.

    All distances of one depth are computed together.
    """
    places: dict[object, int] = {}
    different: list[Lists | Reason] = []
    of_pairs: list[int] = []
    for left, right in pairs:
        found = _documents(executions.get((suite, left)), executions.get((suite, right)))
        # Lists of documents are shared: most pairs have the two that another pair has.
        name = (id(found[0]), id(found[1])) if isinstance(found, tuple) else found
        place = places.setdefault(name, len(different))
        if place == len(different):
            different.append(found)
        of_pairs.append(place)
    distances = _distances(different, vectors, options)
    claims = [
        _claims(found, distance, options)
        for found, distance in zip(different, distances, strict=True)
    ]
    return [claims[place] for place in of_pairs]


def _claims(
    found: Lists | Reason, distance: Claim, options: DocumentOptions
) -> Mapping[str, Claim]:
    changes = _label_changes(found)
    return {
        "retrieval": _profile_change(found, options.criterion),
        "rrs": _sum(distance, changes),
        "mean-distance": distance,
        "label-changes": changes,
        "overlap": _overlap(found),
    }


def document_key(document: Document) -> str | None:
    """Return what makes two documents the same: the id, else the text."""
    return document.id if document.id is not None else document.text


Lists = tuple[Sequence[Document], Sequence[Document]]


def _documents(left: Execution | None, right: Execution | None) -> Lists | Reason:
    if left is None or right is None or not left.documents or not right.documents:
        return Reason.NO_DOCUMENTS
    if len(left.documents) != len(right.documents):
        return Reason.UNEQUAL_DEPTH
    return left.documents, right.documents


def _labels(lists: Lists | Reason) -> tuple[list[str], list[str]] | Reason:
    if isinstance(lists, Reason):
        return lists
    found = [[d.label for d in documents if d.label is not None] for documents in lists]
    if len(found[0]) + len(found[1]) < len(lists[0]) + len(lists[1]):
        return Reason.NO_LABELS
    return found[0], found[1]


def _profile_change(lists: Lists | Reason, criterion: str) -> Claim:
    labels = _labels(lists)
    if isinstance(labels, Reason):
        return labels
    return float(label_profile(labels[0], criterion) != label_profile(labels[1], criterion))


def _label_changes(lists: Lists | Reason) -> Claim:
    labels = _labels(lists)
    if isinstance(labels, Reason):
        return labels
    return sum(a != b for a, b in zip(*labels, strict=True)) / len(labels[0])


def _overlap(lists: Lists | Reason) -> Claim:
    if isinstance(lists, Reason):
        return lists
    keys = [{document_key(document) for document in documents} for documents in lists]
    if None in keys[0] | keys[1]:
        return Reason.NO_TEXT
    return len(keys[0] & keys[1]) / len(lists[0])


def _sum(left: Claim, right: Claim) -> Claim:
    if isinstance(left, Reason):
        return left
    return right if isinstance(right, Reason) else left + right


def _distances(
    lists: Sequence[Lists | Reason], vectors: VectorsOf, options: DocumentOptions
) -> list[Claim]:
    results: list[Claim] = [Reason.NO_DOCUMENTS] * len(lists)
    groups: dict[int, list[int]] = {}
    for position, found in enumerate(lists):
        if isinstance(found, Reason):
            results[position] = found
        else:
            groups.setdefault(len(found[0]), []).append(position)
    for positions in groups.values():
        known = [found for p in positions if not isinstance(found := lists[p], Reason)]
        values = _group_distances(known, vectors, options)
        for position, value in zip(positions, values, strict=True):
            results[position] = value
    return results


def _group_distances(
    lists: Sequence[Lists], vectors: VectorsOf, options: DocumentOptions
) -> list[Claim]:
    unique: dict[str | None, Document] = {}
    for left, right in lists:
        for document in (*left, *right):
            unique.setdefault(document_key(document), document)
    found = None if None in unique else vectors(list(unique.values()))
    if found is None:
        return [Reason.NO_TEXT] * len(lists)
    rows = {key: row for row, key in enumerate(unique)}
    index = np.asarray(
        [[[rows[document_key(d)] for d in documents] for documents in pair] for pair in lists],
        dtype=np.int64,
    )
    values = mean_distances(
        found, index[:, 0], index[:, 1], distance=options.distance, matching=options.matching
    )
    return [float(value) for value in values]
