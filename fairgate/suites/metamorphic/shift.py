"""What moved from the policy's reference, pair by pair; the columns of `metrics/shift.py`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fairgate.domain.cases import is_reference_key, reference_key, repeat_key, system_key
from fairgate.domain.executions import Document, Execution
from fairgate.domain.ports import Executed
from fairgate.domain.units import Claim, Reading, Reason, Unit
from fairgate.metrics import shift
from fairgate.metrics.columns import AssessedSuite, Column, VectorsOf
from fairgate.metrics.degrees import log_odds
from fairgate.metrics.exposure import COLUMNS as EXPOSURE
from fairgate.relations.oracles.oracle import Oracle
from fairgate.relations.oracles.text import spoken
from fairgate.suites.metamorphic.assess import CONTROLS, EXCLUDED, document_key, exposures_of
from fairgate.suites.metamorphic.definition import SuiteDefinition
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE
from fairgate.suites.metamorphic.sentences import (
    AnswerText,
    read_text,
    readings_between,
    sentence_vectors,
    why_unread,
)
from fairgate.suites.readings import Readings


def of_reference(executions: Executed) -> Executed:
    """Return the reference's executions under the keys that the system's have."""
    return {
        (suite, system_key(key)): execution
        for (suite, key), execution in executions.items()
        if is_reference_key(key)
    }


def shift_columns(
    suite: SuiteDefinition,
    assessed: AssessedSuite,
    readings: Readings,
    executions: Executed,
    vectors: VectorsOf,
) -> dict[str, Column]:
    """Columns that compare the answers and documents of every follow-up with the reference's.

    O(follow-ups); nothing is asked. A row that is excluded has its reason throughout. Answers in
    sentences are compared as these are read, whatever labels they have.
    """
    controls = assessed.readings.get(CONTROLS)
    label_ranks = suite.task.ranks if suite.task is not None else {}
    scale = suite.task.scale if suite.task is not None else ()
    reference = of_reference(executions)
    claims: dict[str, list[Claim]] = {name: [] for name in suite.shift_columns}
    if shift.EXPOSURE in claims:
        sides = (
            exposures_of(suite.policy, assessed.units, side) for side in (executions, reference)
        )
        exposures = [
            _difference(own[EXPOSURE[0]], other[EXPOSURE[0]])
            for own, other in zip(*sides, strict=True)
        ]
    spoken_of = _in_sentences(suite, assessed.units, executions, vectors)
    for row, unit in enumerate(assessed.units):
        reason = None if controls is None else controls[row].reason
        values: dict[str, Claim] = {}
        if shift.EXPOSURE in claims:
            values[shift.EXPOSURE] = exposures[row]
        if reason in EXCLUDED:
            values = dict.fromkeys(claims, reason)
        else:
            values |= _of_answers(suite, unit, readings, label_ranks)
            if spoken_of is not None:
                values[shift.ANSWER] = spoken_of[row]
            values[shift.CHANGES] = _changes(
                suite, unit, assessed.columns["generation"][row], readings
            )
            own, other = (
                (side.get((suite.id, unit.asks[FOLLOW_UP]))) for side in (executions, reference)
            )
            values[shift.DOCUMENTS] = not_found(own, other)
            values[shift.DEGREE] = _degree(own, other, scale)
        for name, column in claims.items():
            column.append(values[name])
    return {name: Column.of(column) for name, column in claims.items()}


def _of_answers(
    suite: SuiteDefinition, unit: Unit, readings: Readings, label_ranks: Mapping[str, int]
) -> dict[str, Claim]:
    names = (shift.ANSWER, shift.UNREADABLE, shift.DIRECTION)
    if suite.policy.retrieve_only or unit.verdicts:
        return dict.fromkeys(names, Reason.NOT_ASKED)
    relation, key = unit.dimensions["relation"], unit.asks[FOLLOW_UP]
    own = readings.whatever_margin(key, relation)
    other = readings.all_of(reference_key(key), relation)
    return dict(zip(names, compared(own, other, suite.oracles[relation], label_ranks), strict=True))


def _in_sentences(
    suite: SuiteDefinition, units: Sequence[Unit], executions: Executed, vectors: VectorsOf
) -> list[Claim] | None:
    """1 where an answer differs from the reference's by any reading; None: none is read so.

    Undecided where the reference's own repeats differ from each other by one.
    """
    if not suite.policy.reads_sentences:
        return None
    pairs = [texts_beside(suite, unit, executions) for unit in units]
    texts = (text for pair in pairs for of_system in pair for text in of_system)
    embedded = sentence_vectors((line for text in texts for line in text.masked), vectors)
    vector_of = embedded or {}
    claims: list[Claim] = []
    for own, other in pairs:
        if not own or not other:
            claims.append(Reason.NO_REFERENCE if own else Reason.MISSING)
        elif any(why_unread(text.whole) for text in (*own, *other)):
            claims.append(Reason.UNREADABLE)
        elif embedded is None and own[0].masked != other[0].masked:
            claims.append(Reason.NO_TEXT)
        elif any(readings_between(other[0], again, vector_of) for again in other[1:]):
            claims.append(Reason.UNSTABLE)
        else:
            claims.append(float(bool(readings_between(own[0], other[0], vector_of))))
    return claims


def texts_beside(
    suite: SuiteDefinition, unit: Unit, executions: Executed
) -> tuple[list[AnswerText], list[AnswerText]]:
    """Answers of the system, and of the reference, to a follow-up, as they are read; by repeat."""
    key, who = unit.asks[FOLLOW_UP], unit.names.get("noun_phrase", "")
    several = [
        [
            read_text(spoken(execution.response, suite.thinking), who)
            for number in range(1, suite.policy.repeats + 1)
            if (execution := executions.get((suite.id, repeat_key(name, number)))) is not None
            and execution.response is not None
        ]
        for name in (key, reference_key(key))
    ]
    return several[0], several[1]


def _changes(suite: SuiteDefinition, unit: Unit, own: Claim, readings: Readings) -> Claim:
    """1 where naming somebody changes the answer and not the reference's, -1 the reverse."""
    if suite.policy.retrieve_only or unit.verdicts:
        return Reason.NOT_ASKED
    name = unit.dimensions["relation"]
    source, follow_up = (
        readings.all_of(reference_key(unit.asks[role]), name) for role in (SOURCE, FOLLOW_UP)
    )
    other = suite.relations[name].claims(source, follow_up, source)["generation"]
    return _difference(own, Reason.NO_REFERENCE if other is Reason.MISSING else other)


def compared(
    own: Reading, other: Reading, oracle: Oracle, label_ranks: Mapping[str, int]
) -> tuple[Claim, Claim, Claim]:
    """Whether an answer moved, became unreadable, and moved toward the worse labels.

    `other` is the reference's: where it is missing or a near tie nothing is decided.
    """
    if own.reason is Reason.MISSING:
        return Reason.MISSING, Reason.MISSING, Reason.MISSING
    if other.reason is Reason.MISSING:
        return Reason.NO_REFERENCE, Reason.NO_REFERENCE, Reason.NO_REFERENCE
    lost = other.reason is Reason.UNREADABLE
    unreadable = float(own.reason is Reason.UNREADABLE) - float(lost)
    if other.value is None:
        why: Reason = other.reason or Reason.NO_REFERENCE
        return why, unreadable, why
    if own.value is None:
        why = own.reason or Reason.MISSING
        moved: Claim = 1.0 if own.reason is Reason.UNREADABLE else why
        return moved, unreadable, why
    ranks = (label_ranks.get(str(reading.value)) for reading in (own, other))
    now, then = ranks
    direction: Claim = Reason.NO_RANK
    if now is not None and then is not None:
        direction = float((now < then) - (now > then))
    return float(not oracle.same(own, other)), unreadable, direction


def not_found(own: Execution | None, other: Execution | None) -> Claim:
    """Share of the reference's documents that the system does not retrieve, in [0, 1]."""
    if other is None:
        return Reason.NO_REFERENCE
    if own is None or own.documents is None or not other.documents:
        return Reason.NO_DOCUMENTS
    now, then = (_keys(execution.documents or ()) for execution in (own, other))
    if None in now | then:
        return Reason.NO_TEXT
    return len(then - now) / len(then)


def _keys(documents: Sequence[Document]) -> set[str | None]:
    return {document_key(document) for document in documents}


def _degree(own: Execution | None, other: Execution | None, scale: Sequence[str]) -> Claim:
    if other is None:
        return Reason.NO_REFERENCE
    if own is None or own.degrees is None or other.degrees is None or not scale:
        return Reason.NO_DEGREES
    odds = [log_odds(each.degrees, scale) for each in (own, other) if each.degrees is not None]
    now, then = odds
    if now is None or then is None:
        return Reason.NO_RANK
    return 0.5 * (math.tanh(now / 2) - math.tanh(then / 2))


def _difference(own: Claim, other: Claim) -> Claim:
    if isinstance(own, Reason):
        return own
    return other if isinstance(other, Reason) else own - other
