"""The kind `table`: answers that were asked elsewhere, a row each, judged like any other suite.

Nothing is asked. Each row is a unit; rows of one source and prompt are averaged where they are
scanned (`gate/parity.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from statistics import fmean
from typing import Literal, Self

from pydantic import Field

from fairgate.domain.cases import Case, TestPlan, follow_up_key
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Execution
from fairgate.domain.ports import Executed
from fairgate.domain.schema import Access, SuiteModel
from fairgate.domain.units import Arm, Claim, Reading, Reason, Unit
from fairgate.io.outcome_rows import OutcomeRow, OutcomeTable, cell_text
from fairgate.io.tables import capped, list_in_cell
from fairgate.metrics.columns import AssessedSuite, Column, Pool, PoolAnswer, VectorsOf
from fairgate.metrics.parity import CONTROLLED, OVERLAP, SCORES, UNREADABLE
from fairgate.relations.oracles.oracle import Oracle, majority, reading
from fairgate.relations.oracles.score import ANY, Scale, ScoreOracle, read_score, scale_of
from fairgate.suites.metamorphic.plan import FOLLOW_UP
from fairgate.suites.metamorphic.sentences import SENTENCES, why_unread
from fairgate.suites.readings import Readings
from fairgate.suites.suite import Suite

KIND = "table"
_PLAIN = re.compile(r"[^#@\x00-\x1f]{1,100}")
"""Sources that can be named in keys as they stand."""
_LONGEST_LABEL, _MOST_LABELS = 60, 24
_HALF = 0.5
_DIGITS = re.compile(r"\d+(?:[.,:/-]\d+)*")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ].*)?|\d{1,2}:\d\d(?::\d\d)?")


class OutcomeKind(StrEnum):
    """How the cells of an outcome are read."""

    SCORE = "score"
    """Numbers, whose means are compared."""
    LABEL = "label"
    """One of few words, compared with the usual one of its source."""
    TEXT = "text"
    """Answers in sentences, read beside those to control prompts."""
    DOCUMENTS = "document"
    """Lists of documents, of which control prompts' share some."""


class TablePolicy(SuiteModel):
    """A table, as records name the suite."""

    kind: Literal["table"] = Field(default="table", description="Kind of the suite.")
    unstable_margin: float = Field(default=0.0, description="Rows have no margin.")

    def narrowed(self, most: int) -> Self:
        """Return the suite: a table is judged whole."""
        del most
        return self

    def accesses(self) -> tuple[Access, ...]:
        """Return nothing: a file is read."""
        return ()


def kind_of_outcome(table: OutcomeTable) -> tuple[OutcomeKind, Scale]:
    """Return how cells are read: as numbers where half of those that are filled are numbers.

    With the scale of scores, where cells name one. Raises DataError where all are empty, all the
    same, or half of them are no label and no sentence either: amounts with a unit, dates, objects.
    """
    place = table.place
    texts = [text for row in table.rows if (text := cell_text(row.outcome).strip())]
    if not texts:
        raise DataError(f"{place}: every outcome is empty; expected numbers or labels")
    counts = Counter(texts)
    if len(counts) == 1:
        raise DataError(
            f"{place}: every outcome is {capped(texts[0])}, so that nothing can differ; expected "
            "outcomes of several kinds: is it the right column?"
        )
    lists = sum(count for text, count in counts.items() if text[0] == "[" and text[-1] == "]")
    if lists >= _HALF * len(texts):
        return OutcomeKind.DOCUMENTS, ANY
    scale = scale_of(counts)
    numbers = sum(count for text, count in counts.items() if read_score(text, scale) is not None)
    if numbers >= _HALF * len(texts):
        return OutcomeKind.SCORE, scale
    labels = {text.casefold() for text in counts}
    is_label = len(labels) <= _MOST_LABELS and max(map(len, labels)) <= _LONGEST_LABEL
    strange = [
        row
        for row in table.rows
        if (_DATE.fullmatch if is_label else _DIGITS.search)(cell_text(row.outcome).strip())
    ]
    # Amounts, dates and objects have few forms beside their digits, and short ones.
    forms = {_DIGITS.sub("0", cell_text(row.outcome).casefold()) for row in strange}
    is_few = len(forms) <= _MOST_LABELS and max(map(len, forms), default=0) <= _LONGEST_LABEL
    if len(strange) >= _HALF * len(texts) and is_few:
        raise DataError(
            f"{strange[0].place}: column {capped(table.outcome)} holds "
            f"{capped(strange[0].outcome)}; expected a number (7, 7.5, 7/10; without a unit, and "
            "without a comma that may part thousands), one of few labels, a sentence, or a list of "
            "documents. Of an object name the part by its path: `$.score.value`"
        )
    return (OutcomeKind.LABEL if is_label else OutcomeKind.TEXT), ANY


def unread(table: OutcomeTable, scale: Scale) -> str:
    """Say how many cells of scores are no number, with the first; empty where all are."""
    cells = {row.place: cell_text(row.outcome) for row in table.rows}
    strange = [place for place, text in cells.items() if read_score(text, scale) is None]
    if not strange:
        return ""
    many = "1 outcome is" if len(strange) == 1 else f"{len(strange):,} outcomes are"
    return (
        f"{many} no number and {'counts' if len(strange) == 1 else 'count'} as unreadable, first "
        f"{capped(cells[strange[0]])} at {strange[0]}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOracle(Oracle):
    """Reads a label: what a cell says, whatever its case and outer spaces."""

    @property
    def id(self) -> str:
        """Identify the rule."""
        return "cell 1"

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return the label; an empty cell is unreadable."""
        del case
        return reading(" ".join((execution.response or "").casefold().split()) or None)


@dataclass(frozen=True, kw_only=True)
class TableSuite(Suite):
    """The rows of a table, or of one value of the column that parts it."""

    policy: TablePolicy
    rows: Sequence[OutcomeRow]
    outcome: OutcomeKind
    scale: Scale = ANY
    is_better_lower: bool = False
    """Of scores, which way is worse."""
    cut_off: float | None = None
    """Of scores, the one that selects somebody."""

    @cached_property
    def oracles(self) -> Mapping[str, Oracle]:
        """Return the oracle of the cells."""
        is_score = self.outcome is OutcomeKind.SCORE
        return {KIND: ScoreOracle(scale=self.scale) if is_score else CellOracle()}

    @property
    def decisive(self) -> str:
        """The column that says whether a row counts as decided."""
        columns = {OutcomeKind.LABEL: CONTROLLED, OutcomeKind.DOCUMENTS: OVERLAP}
        if self.outcome is OutcomeKind.SCORE:
            return SCORES[self.is_better_lower]
        return columns.get(self.outcome, UNREADABLE)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the outcome, and whether it can be read."""
        read = SENTENCES.names if self.outcome is OutcomeKind.TEXT else (self.decisive,)
        return (*read, UNREADABLE)

    def why_unread(self, response: str) -> str:
        """Say that an answer in sentences has more of them than are read."""
        return why_unread(response) if self.outcome is OutcomeKind.TEXT else ""

    @property
    def selected_from(self) -> float | None:
        """The score from which somebody is selected."""
        return self.cut_off

    @property
    def has_control_arm(self) -> bool:
        """Whether identities are compared: beside each other where there are no control prompts."""
        return True

    def size(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    @cached_property
    def keys(self) -> Sequence[str]:
        """The key of each row, whatever the order of sources and prompts."""
        counts: Counter[str] = Counter()
        keys = []
        for row in self.rows:
            who = "/".join(filter(None, (row.category, row.who)))
            key = follow_up_key(source_id(row.source), KIND, who)
            number = row.repeat or str(counts[key] + 1)
            counts[key] += 1
            name = key if number == "1" else f"{key} ({number})"
            if counts[name] and name != key:
                name += f" ({counts[key]})"
            counts[name] += name != key
            keys.append(name)
        return keys

    def executions(self) -> dict[tuple[str, str], Execution]:
        """Return each row's answer, by suite and key."""
        return {
            (self.id, key): Execution(response=cell_text(row.outcome))
            for key, row in zip(self.keys, self.rows, strict=True)
        }

    def plan(self) -> TestPlan:
        """Return a case and a unit for each row."""
        cases, units = [], []
        for key, row in zip(self.keys, self.rows, strict=True):
            cluster = source_id(row.source)
            cases.append(
                Case(
                    key=key, query=row.source, suite=self.id, instruction="", labels=(),
                    cluster=cluster, oracle=KIND, retriever=None,
                )
            )  # fmt: skip
            units.append(
                Unit(
                    key=key,
                    asks={FOLLOW_UP: key},
                    dimensions={"category": row.category, "term": row.who},
                    content="",
                    suite=self.id,
                    cluster=cluster,
                    follows=None,
                    arm=Arm.CONTROL if row.is_control else Arm.TEST,
                    names={"noun_phrase": row.who} if row.who else {},
                )
            )
        return TestPlan(cases=cases, units=units, rejected=[])

    def assess(
        self, units: Sequence[Unit], readings: Readings, executions: Executed, vectors: VectorsOf
    ) -> AssessedSuite:
        """Return the score of each row, or whether its label is another one than usual."""
        read = readings.columns(units)
        answers = [read[FOLLOW_UP][row] for row in range(len(units))]
        columns: dict[str, Sequence[Claim]] = {}
        if self.outcome is OutcomeKind.TEXT:
            columns |= _sentences(units, answers, executions, vectors)
        elif self.outcome is OutcomeKind.SCORE:
            columns[self.decisive] = [
                one.value if isinstance(one.value, float) else one.reason or Reason.UNREADABLE
                for one in answers
            ]
        elif self.outcome is OutcomeKind.LABEL:
            columns[self.decisive] = list(_unusual(units, answers))
        else:
            columns[self.decisive] = list(_shared(units, self.rows))
        columns[UNREADABLE] = [float(one.reason is Reason.UNREADABLE) for one in answers]
        return AssessedSuite(
            units=units,
            readings=read,
            columns={name: Column.of(claims) for name, claims in columns.items()},
            decisive=self.decisive,
        )

    def absent(self, column: str, reasons: Sequence[Reason]) -> str | None:
        """Say why answers in sentences are not read in some way; a table has its other columns."""
        if column not in SENTENCES.names:
            return None
        common = Counter(reasons).most_common(1)[0][0]
        return SENTENCES.not_evaluated.get(common, f"every row is {common}")

    def must_match(self) -> Mapping[str, object]:
        """Return how cells are read."""
        return {"kind": KIND, "outcome": self.decisive, "oracle": self.oracles[KIND].id}

    def reading_rule(self) -> Mapping[str, object]:
        """Return the rule by which cells are read."""
        return {"rule": self.oracles[KIND].id}

    def describe(self, plan: TestPlan) -> Iterator[str]:
        """Yield how many rows there are."""
        yield f"  suite {self.id}: {len(plan.units)} rows"


def _unusual(units: Sequence[Unit], answers: Sequence[Reading]) -> Iterator[Claim]:
    """Yield for each row whether its label differs from most of its source's control prompts.

    Without its own; where the table has no control prompts, from most of the other rows.
    """
    has_controls = any(unit.is_control for unit in units)
    others_of = _beside(units)
    usual: dict[tuple[str, int], Reading] = {}
    nothing = Reading(value=None, reason=Reason.NO_MAJORITY)
    for row, unit in enumerate(units):
        others = others_of.get(unit.cluster, ())
        own = row if unit.is_control or not has_controls else -1
        if (unit.cluster, own) not in usual:
            several = [answers[other] for other in others if other != own]
            usual[unit.cluster, own] = majority(several, nothing)
        expected = usual[unit.cluster, own]
        answer = answers[row]
        if answer.value is None or expected.value is None:
            yield answer.reason or expected.reason or Reason.UNREADABLE
        else:
            yield float(answer.value != expected.value)


def _beside(units: Sequence[Unit]) -> dict[str, list[int]]:
    """Return the rows of each source's control prompts; all of them where there are none."""
    has_controls = any(unit.is_control for unit in units)
    others_of: dict[str, list[int]] = {}
    for row, unit in enumerate(units):
        if unit.is_control or not has_controls:
            others_of.setdefault(unit.cluster, []).append(row)
    return others_of


def _shared(units: Sequence[Unit], rows: Sequence[OutcomeRow]) -> Iterator[Claim]:
    """Yield which share of the documents of its source's control prompts each row has.

    The mean over the control prompts, without its own.
    """
    documents = [_documents(row) for row in rows]
    others_of = _beside(units)
    for row, unit in enumerate(units):
        others = [documents[other] for other in others_of.get(unit.cluster, ()) if other != row]
        if not documents[row] and not any(others):
            yield Reason.NO_DOCUMENTS
        elif shares := [len(documents[row] & other) / len(other) for other in others if other]:
            yield fmean(shares)
        else:
            yield Reason.NO_CONTROLS


def _documents(row: OutcomeRow) -> frozenset[str]:
    """Return the ids of a row's documents, or their texts. Raises DataError for anything else."""
    value = row.outcome
    if isinstance(value, str):
        value = list_in_cell(value, row.place, "outcome")
    if value is None:
        return frozenset()
    if not isinstance(value, list | tuple):
        raise DataError(
            f"{row.place}: the outcome is {capped(row.outcome)}; expected a list of documents' ids "
            "as in other rows"
        )
    found = set()
    for entry in value:
        each = entry
        if isinstance(entry, dict):
            each = next((entry[name] for name in ("id", "text") if entry.get(name)), None)
        if not isinstance(each, str | int):
            if isinstance(each, float):
                many = "one number" if len(value) == 1 else f"{len(value):,} values"
                raise DataError(
                    f"{row.place}: the outcome is {capped(row.outcome)}, a list with {many}; "
                    "expected the number alone for a score, or the documents' ids"
                )
            raise DataError(
                f"{row.place}: the outcome holds {capped(entry)} as a document; expected an id, or "
                "an object with `id` or `text`"
            )
        found.add(str(each))
    return frozenset(found)


def _sentences(
    units: Sequence[Unit], answers: Sequence[Reading], executions: Executed, vectors: VectorsOf
) -> dict[str, Sequence[Claim]]:
    """Return the columns of answers in sentences, each source's rows a pool."""
    rows_of: dict[str, list[int]] = {}
    for row, unit in enumerate(units):
        rows_of.setdefault(unit.cluster, []).append(row)
    nothing = Reading(value=None, reason=Reason.MISSING)
    pools = []
    for source, rows in rows_of.items():
        members = []
        for row in rows:
            execution = executions[units[row].suite, units[row].key]
            members.append(
                PoolAnswer(
                    key=units[row].key, unit=units[row], reading=answers[row],
                    executions=[execution], responses=[execution.response or ""],
                )
            )  # fmt: skip
        own = PoolAnswer(key=source, unit=None, reading=nothing, executions=[], responses=[])
        pools.append(Pool(relation=KIND, source=own, members=members))
    claims: dict[str, list[Claim]] = {
        name: [Reason.MISSING] * len(units) for name in SENTENCES.names
    }
    for rows, values in zip(rows_of.values(), SENTENCES.compute(pools, vectors), strict=True):
        for name in SENTENCES.names:
            for row, value in zip(rows, values[name], strict=True):
                claims[name][row] = value if isinstance(value, Reason) else float(value)
    return {**claims}


def source_id(source: str) -> str:
    """Return how keys name a source: as it stands, or a hash where it is long or has signs."""
    if _PLAIN.fullmatch(source):
        return source
    return f"text {hashlib.sha256(source.encode()).hexdigest()[:16]}"
