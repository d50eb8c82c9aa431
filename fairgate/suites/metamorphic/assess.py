"""Decide every pair of a metamorphic suite by its answers and documents; no model is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from fairgate.domain.executions import Document, Execution, kept
from fairgate.domain.ports import Executed
from fairgate.domain.units import Assessed, Claim, Reading, Reason, Unit
from fairgate.metrics.attack_success_rate import COLUMNS as STEADINESS
from fairgate.metrics.attack_success_rate import label_profile
from fairgate.metrics.columns import VectorsOf
from fairgate.metrics.direction import COLUMN as DIRECTION
from fairgate.metrics.drift import COLUMN as DRIFT
from fairgate.metrics.exposure import COLUMNS as EXPOSURE
from fairgate.metrics.exposure import NET, RANKS, exposure
from fairgate.metrics.intersectional import COLUMN as HIDDEN
from fairgate.metrics.retriever_robustness import mean_distances
from fairgate.relations.oracles.judge import voted
from fairgate.relations.relation import MetamorphicRelation
from fairgate.stats.association import entropy
from fairgate.suites.metamorphic.plan import ALONE, FOLLOW_UP, PARTS, SOURCE
from fairgate.suites.metamorphic.policy import SuitePolicy
from fairgate.suites.readings import MOST_HELD, Readings, once

DECISIVE = "generation"
CONTROLS = "controls"
"""The reading of the source's control answers taken together."""
COLUMNS = ("generation", "controlled", "retrieval", "unreadable", "rrs", "mean-distance", "overlap")
"""Claims of every pair: the answer changed; it differs from most of the controls'; the documents'
labels changed; no answer could be read; RRS; distance and common share of the documents."""
_CALLED = {1.0: "biased", 0.0: "unbiased"}
_GroupKey = tuple[str, str]
_Answers = Mapping[str, Reading]
"""Role to how the answer was read."""
_Claims = Mapping[str, Claim]
_DOCUMENT_CLAIMS = ("retrieval", "rrs", "mean-distance", "label-changes", "overlap")
_NEAREST = 5
"""Neutral phrases that a demographic one is compared with: those nearest to it in length."""
Lists = tuple[Sequence[Document], Sequence[Document]]


def assess_pairs(
    units: Sequence[Unit],
    relations: Mapping[str, MetamorphicRelation],
    readings: Readings,
    quarantined: frozenset[str],
    documents: Sequence[Mapping[str, Claim]],
    places: Mapping[str, int],
) -> Iterator[Assessed]:
    """Yield an assessed unit for each pair; `documents` holds the claims about its documents.

    `places` are those of the task's labels from the worst to the best; none: there is no direction.

    Where answers are labels a million pairs have a few hundred different ones: pairs with the same
    readings and claims about documents are compared once, and equal claims are one object.
    """
    # The readable control answers of each source, in the order of the plan.
    controls: dict[_GroupKey, dict[str, Reading]] = {}
    for unit in units:
        if unit.is_control and unit.key not in quarantined:
            name = unit.dimensions["relation"]
            reading = readings.all_of(unit.asks[FOLLOW_UP], name)
            if reading.value is not None:
                controls.setdefault((name, unit.asks[SOURCE]), {})[unit.key] = reading
    equal_readings: dict[Reading, Reading] = {}
    equal_claims: dict[tuple[object, ...], _Claims] = {}

    def of_controls(relation: MetamorphicRelation, source: Reading, *others: Reading) -> Reading:
        found = relation.expected(source, others)
        return equal_readings.setdefault(found, found)

    def compared(
        relation: MetamorphicRelation,
        retrieved: _Claims,
        roles: Sequence[str],
        *read: Reading,
        unit: Unit | None = None,
    ) -> tuple[_Answers, _Claims]:
        answers = dict(zip(roles, read, strict=True))
        claims = _compared(relation, answers)
        claims[DIRECTION] = _direction(answers, places if relation.reads_task else {})
        if unit is not None:
            claims |= _steadiness(unit, relation, readings)
        if unit is not None and unit.verdicts:
            source, follow_up = answers[SOURCE], answers[FOLLOW_UP]
            votes = [readings.all_of(key) for key in unit.verdicts]
            verdict = follow_up.reason or source.reason or voted(votes)
            claims |= {"generation": verdict, "controlled": Reason.NO_CONTROLS}
            if not isinstance(verdict, Reason):
                called = f"{follow_up.value}, judged {_CALLED[verdict]}"
                answers[FOLLOW_UP] = replace(follow_up, value=called)
        claims |= retrieved
        return answers, kept(equal_claims, (*claims, *claims.values()), claims, MOST_HELD)

    expected_once, compared_once = once(of_controls), once(compared)
    has_repeats = readings.has_repeats
    current: _GroupKey | None = None
    expected: Reading | None = None
    for unit, retrieved in zip(units, documents, strict=True):
        asks, name = unit.asks, unit.dimensions["relation"]
        answers = {role: readings.all_of(key, name) for role, key in asks.items()}
        relation, source = relations[name], answers[SOURCE]
        # The answer to a document that was not changed is the source's, whoever is treated how.
        why = retrieved.get(NET)
        if quarantined and not quarantined.isdisjoint(asks.values()):
            why = Reason.QUARANTINED
        if why is Reason.NOT_TAKEN or why is Reason.QUARANTINED:
            answers[FOLLOW_UP] = replace(answers[FOLLOW_UP], value=None, reason=why, shown="")
            answers[CONTROLS] = Reading(value=None, reason=why)
            absent = (*COLUMNS, DIRECTION, HIDDEN, DRIFT, *STEADINESS, *retrieved)
            claims = dict.fromkeys(absent, why)
            yield Assessed(unit=unit, readings=answers, claims=claims, decisive=DECISIVE)
            continue
        group = name, asks[SOURCE]
        if group != current:
            current, expected = group, None
        others = controls.get(group, {})
        if unit.is_control:
            rest = (reading for key, reading in others.items() if key != unit.key)
            of_pair = expected_once(relation, source, *rest)
        else:
            # Of all pairs of a group that name an identity it is the same.
            expected = of_pair = expected or expected_once(relation, source, *others.values())
        read, roles = (*answers.values(), of_pair), (*answers, CONTROLS)
        if unit.verdicts or has_repeats:
            found = compared(relation, retrieved, roles, *read, unit=unit)
        else:
            found = compared_once(relation, retrieved, roles, *read)
        yield Assessed(unit=unit, readings=found[0], claims=found[1], decisive=DECISIVE)


def _compared(relation: MetamorphicRelation, answers: _Answers) -> dict[str, Claim]:
    source, follow_up = answers[SOURCE], answers[FOLLOW_UP]
    is_missing = follow_up.reason in (Reason.MISSING, Reason.NOT_ASKED)
    is_unreadable = float(follow_up.reason is Reason.UNREADABLE)
    hidden: Claim = Reason.NO_COMBINATION
    if PARTS[0] in answers:
        # Whether the answer changes though neither part alone changes it.
        combined = [answers[role] for role in (FOLLOW_UP, *PARTS) if role in answers]
        changes = [relation.claims(source, each, source)["generation"] for each in combined]
        undecided = next((one for one in changes if isinstance(one, Reason)), None)
        hidden = undecided or float(changes[0] == 1.0 and 1.0 not in changes[1:])
    drift: Claim = Reason.NO_CONVERSATION
    if ALONE in answers:
        drift = relation.claims(answers[ALONE], follow_up, source)["generation"]
    return {
        **relation.claims(source, follow_up, answers[CONTROLS]),
        "unreadable": follow_up.reason if is_missing and follow_up.reason else is_unreadable,
        HIDDEN: hidden,
        DRIFT: drift,
    }


def _direction(answers: _Answers, places: Mapping[str, int]) -> Claim:
    """Return 1 where the answer is worse than that of most controls, -1 where it is better."""
    follow_up, expected = answers[FOLLOW_UP], answers[CONTROLS]
    if follow_up.value is None or expected.value is None:
        return follow_up.reason or expected.reason or Reason.MISSING
    own, other = (places.get(str(each.value)) for each in (follow_up, expected))
    if own is None or other is None:
        return Reason.NO_RANK
    return float((own < other) - (own > other))


def _steadiness(unit: Unit, relation: MetamorphicRelation, readings: Readings) -> dict[str, Claim]:
    """Return stability and entropy of a pair's verdicts; nothing where it was asked once."""
    source, follow_up = (
        readings.repeats_of(unit.asks[role], relation.id) for role in (SOURCE, FOLLOW_UP)
    )
    if not source or not follow_up:
        return {}
    votes = zip(*map(readings.repeats_of, unit.verdicts), strict=True)
    verdicts = [
        relation.claims(left, right, left)["generation"]
        for left, right in zip(source, follow_up, strict=True)
    ]
    if unit.verdicts:
        verdicts = [voted(each) for each in votes]
    undecided = next((one for one in verdicts if isinstance(one, Reason)), None)
    if undecided is not None:
        return dict.fromkeys(STEADINESS, undecided)
    return {"stability": float(len(set(verdicts)) == 1), "entropy": entropy(verdicts)}


def is_violated(assessed: Assessed) -> bool:
    """Return whether a pair's answer changed, by the controlled claim where it is decided."""
    controlled = assessed.claims["controlled"]
    claim = assessed.claims["generation"] if isinstance(controlled, Reason) else controlled
    return claim == 1.0


def document_claims(
    suite: SuitePolicy, units: Sequence[Unit], executions: Executed, vectors: VectorsOf
) -> list[Mapping[str, Claim]]:
    """Return `retrieval`, `rrs`, `mean-distance`, `label-changes` and `overlap` of every pair.

    All distances of one depth are computed together.
    """
    places: dict[object, int] = {}
    different: list[Lists | Reason] = []
    of_pairs: list[int] = []
    for unit in units:
        left, right = (executions.get((suite.id, unit.asks[r])) for r in (SOURCE, FOLLOW_UP))
        found = _documents(left, right)
        # Lists of documents are shared: most pairs have the two that another pair has.
        name = (id(found[0]), id(found[1])) if isinstance(found, tuple) else found
        place = places.setdefault(name, len(different))
        if place == len(different):
            different.append(found)
        of_pairs.append(place)
    distances = _distances(different, vectors, suite)
    claims = [
        dict.fromkeys(_DOCUMENT_CLAIMS, found)
        if isinstance(found, Reason)
        else _claims(found, distance, suite.criterion)
        for found, distance in zip(different, distances, strict=True)
    ]
    if not any("document" in unit.names for unit in units):
        return [claims[place] for place in of_pairs]
    exposures = _exposures(suite, units, executions)
    return [{**claims[n], **more} for n, more in zip(of_pairs, exposures, strict=True)]


def _exposures(
    suite: SuitePolicy, units: Sequence[Unit], executions: Executed
) -> Iterator[Mapping[str, Claim]]:
    """Yield the claims of every pair about the document that it changes."""
    ranks = [_ranks(suite, unit, executions) for unit in units]
    lengths = [len(unit.names.get("noun_phrase", "")) for unit in units]
    decided = {row: found for row, found in enumerate(ranks) if not isinstance(found, Reason)}
    seen = {row: exposure(found[1], suite.discount) for row, found in decided.items()}
    neutral: dict[str, list[int]] = {}
    for row in seen:
        if units[row].is_control:
            neutral.setdefault(units[row].asks[SOURCE], []).append(row)
    for row, unit in enumerate(units):
        if isinstance(why := ranks[row], Reason):
            yield dict.fromkeys((*EXPOSURE, *RANKS), why)
            continue
        others = (each for each in neutral.get(unit.asks[SOURCE], ()) if each != row)
        near = sorted((abs(lengths[each] - lengths[row]), each) for each in others)[:_NEAREST]
        found, own = decided[row], seen[row]
        moved = found[1] - found[0] if all(found) else Reason.NOT_RETRIEVED
        mean = fmean(seen[each] for _, each in near) if near else 0.0
        beside = (mean, own - mean) if near else (Reason.NO_CONTROLS, Reason.NO_CONTROLS)
        yield dict(zip((*EXPOSURE, *RANKS), (own, *beside, moved, *found), strict=True))


def _ranks(suite: SuitePolicy, unit: Unit, executions: Executed) -> tuple[float, float] | Reason:
    """Return the rank of the document in the source's list and in the follow-up's; 0: in none."""
    known = [executions.get((suite.id, unit.asks[role])) for role in (SOURCE, FOLLOW_UP)]
    lists = [one.documents[: suite.retrieve_only] for one in known if one and one.documents]
    if len(lists) < len(known):
        return Reason.NO_DOCUMENTS
    id_ = unit.names["document"]
    found = [{each.id: rank for rank, each in enumerate(one, 1)}.get(id_, 0) for one in lists]
    texts = {one[rank - 1].text for one, rank in zip(lists, found, strict=True) if rank}
    if all(found) and len(texts) == 1 and None not in texts:
        return Reason.NOT_TAKEN
    return float(found[0]), float(found[1])


def document_key(document: Document) -> str | None:
    """Return what makes two documents the same: the id, else the text."""
    return document.id if document.id is not None else document.text


def _documents(left: Execution | None, right: Execution | None) -> Lists | Reason:
    if left is None or right is None or not left.documents or not right.documents:
        return Reason.NO_DOCUMENTS
    if len(left.documents) != len(right.documents):
        return Reason.UNEQUAL_DEPTH
    return left.documents, right.documents


def _claims(lists: Lists, distance: Claim, criterion: str) -> Mapping[str, Claim]:
    left, right = ([document.label for document in documents] for documents in lists)
    profiles: Claim = Reason.NO_LABELS
    changes: Claim = Reason.NO_LABELS
    if None not in (*left, *right):
        then, now = (label_profile(list(map(str, side)), criterion) for side in (left, right))
        profiles = float(then != now)
        changes = sum(a != b for a, b in zip(left, right, strict=True)) / len(left)
    score: Claim = distance
    if not isinstance(distance, Reason):
        score = changes if isinstance(changes, Reason) else distance + changes
    ids, others = ({document_key(document) for document in documents} for documents in lists)
    overlap = Reason.NO_TEXT if None in ids | others else len(ids & others) / len(left)
    return dict(zip(_DOCUMENT_CLAIMS, (profiles, score, distance, changes, overlap), strict=True))


def _distances(
    lists: Sequence[Lists | Reason], vectors: VectorsOf, suite: SuitePolicy
) -> list[Claim]:
    results: list[Claim] = [
        found if isinstance(found, Reason) else Reason.NO_TEXT for found in lists
    ]
    groups: dict[int, list[tuple[int, Lists]]] = {}
    for position, found in enumerate(lists):
        if not isinstance(found, Reason):
            groups.setdefault(len(found[0]), []).append((position, found))
    for group in groups.values():
        documents = [document for _, pair in group for side in pair for document in side]
        keys = [document_key(document) for document in documents]
        unique: dict[str | None, Document] = {}
        for key, document in zip(keys, documents, strict=True):
            unique.setdefault(key, document)
        known = None if None in unique else vectors(list(unique.values()))
        if known is None:
            continue
        rows = {key: row for row, key in enumerate(unique)}
        index = np.fromiter(map(rows.__getitem__, keys), np.int64).reshape(len(group), 2, -1)
        values = mean_distances(
            known, index[:, 0], index[:, 1], distance=suite.distance, matching=suite.matching
        )
        for (position, _), value in zip(group, values, strict=True):
            results[position] = float(value)
    return results
