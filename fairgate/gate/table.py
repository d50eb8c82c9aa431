"""The gate of a table: rows that were asked elsewhere, judged and reported as a run is.

No system is asked and nothing is read here; the rows are there. `fairgate table` and
`fairgate.scan` are this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairgate import __version__
from fairgate.domain.errors import UsageError
from fairgate.domain.executions import Execution
from fairgate.domain.outcomes import Provenance
from fairgate.domain.parity import SCORE
from fairgate.domain.ports import SILENT, Embedder
from fairgate.domain.wording import first_few, quoted
from fairgate.gate.accepted_runs import baseline_of
from fairgate.gate.baseline import AcceptedRuns, must_match
from fairgate.gate.composition import FinishedRun
from fairgate.gate.gate import GateInput, run_gate
from fairgate.gate.loaded_policy import LoadedPolicy, joined
from fairgate.gate.run_folder import TABLE
from fairgate.io.outcome_rows import OutcomeRow, OutcomeTable, cell_text
from fairgate.io.tables import damage_in
from fairgate.policy.definition_files import named_controls
from fairgate.policy.parse import ParsedPolicy
from fairgate.policy.schema import ALL, AnyGate, ParityPolicy, Policy
from fairgate.policy.yaml_text import YamlDocument
from fairgate.relations.oracles.score import Scale
from fairgate.stats.scan import FEWEST_CONTROLS
from fairgate.suites.table.suite import (
    OutcomeKind,
    TablePolicy,
    TableSuite,
    kind_of_outcome,
    unread,
)
from fairgate.systems.catalogue import kind_of
from fairgate.systems.recorded import RecordedPolicy, RecordedSystem
from fairgate.systems.recorded_answers import RecordedAnswers
from fairgate.systems.resources import Resources

_FEWEST, _MOST_IDENTITIES = 2, 1000
_UNNAMEABLE = re.compile(r"[^a-z0-9._-]+")
_LONGEST = 60
_ASKED = {
    OutcomeKind.SCORE: SCORE,
    OutcomeKind.LABEL: "answers",
    OutcomeKind.TEXT: "sentences",
    OutcomeKind.DOCUMENTS: "documents",
}
"""The outcome that is asked about a table's cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableGate:
    """What a table is judged by."""

    name: str = "table"
    limit: float | None = None
    """Largest difference that is accepted, in the outcome's unit; None: the outcome's own."""
    is_better_lower: bool = False
    """Whether a lower score is the better one."""
    selected_from: float | None = None
    """Of scores, the one that selects somebody, with the better ones."""
    fingerprint: str = ""
    """Of the file that was read."""
    day: str = ""
    """YYYY-MM-DD, for the record."""


def judged_table(
    table: OutcomeTable,
    gate: TableGate,
    baseline: OutcomeTable | None = None,
    resources: Resources | None = None,
) -> FinishedRun:
    """Return the verdict on a table, beside that of an earlier one where there is one.

    `resources` open what reads answers in sentences; without them such a table is refused. Raises
    DataError where the table cannot be judged, BaselineError where the earlier one cannot.
    """
    kind, scale = kind_of_outcome(table)
    if kind is OutcomeKind.TEXT and resources is None:
        raise UsageError(
            f"{table.place}: the outcome is answers in sentences, which an embedder reads; judge "
            "them with `fairgate table FILE`"
        )
    if gate.selected_from is not None and kind is not OutcomeKind.SCORE:
        raise UsageError(
            f"{table.place}: the outcome is {kind}s, of which nobody is selected from "
            f"{gate.selected_from:g} on; expected numbers"
        )
    for read in filter(None, (table, baseline)):
        _refuse_named_controls(read)
    accepted_runs = AcceptedRuns()
    if baseline is not None:
        before = _judged(baseline, gate, kind, scale, AcceptedRuns(), resources).run
        accepted = baseline_of(before, reason=f"table {baseline.place}", date="")
        accepted_runs = AcceptedRuns(baseline=accepted, baseline_path=baseline.place)
    return _judged(table, gate, kind, scale, accepted_runs, resources)


def _refuse_named_controls(table: OutcomeTable) -> None:
    """Raise UsageError where control prompts are identities, beside which nothing would be seen."""
    names = [row.who or row.category for row in table.rows if row.is_control]
    others = {row.category for row in table.rows if not row.is_control}
    if faults := named_controls([*table.controls, *names], filter(None, others)):
        raise UsageError(
            f"{table.place}: control prompts must name nobody: {first_few(faults)}; word them "
            "otherwise (`a tall person`), or leave these rows out: without control prompts "
            "identities are compared with each other"
        )


def _require_few(rows: Sequence[OutcomeRow], place: str) -> None:
    """Raise UsageError where more identities stand beside control prompts than minutes allow."""
    identities = {(row.category, row.who) for row in rows if not row.is_control}
    if len(identities) > _MOST_IDENTITIES and any(row.is_control for row in rows):
        raise UsageError(
            f"{place}: {len(identities):,} identities beside control prompts; at most "
            f"{_MOST_IDENTITIES:,} are judged at once: part them with `by`, or leave the control "
            "prompts out"
        )


def _judged(
    table: OutcomeTable,
    gate: TableGate,
    kind: OutcomeKind,
    scale: Scale,
    accepted_runs: AcceptedRuns,
    resources: Resources | None,
) -> FinishedRun:
    suites: dict[str, TableSuite] = {}
    strange = unread(table, scale) if kind is OutcomeKind.SCORE else ""
    for value, rows in table.by().items():
        name = _name(value or gate.name, suites)
        _require_few(rows, table.place)
        suites[name] = TableSuite(
            policy=TablePolicy(id=name),
            rows=rows,
            outcome=kind,
            scale=scale,
            is_better_lower=gate.is_better_lower,
            cut_off=gate.selected_from,
        )
    policy = Policy(
        version=1,
        name=gate.name,
        system=RecordedPolicy(recorded=table.place),
        suites=[suite.policy for suite in suites.values()],
        gates=_gates(kind, gate.limit),
    )
    plan = joined(suite.plan() for suite in suites.values())
    executions: dict[str | tuple[str, str], Execution] = {
        name: execution
        for suite in suites.values()
        for name, execution in suite.executions().items()
    }
    gate_input = GateInput(
        policy=policy,
        suites=suites,
        plan=plan,
        must_match={name: must_match(suite, {}) for name, suite in suites.items()},
        provenance=Provenance(
            under_test={TABLE: gate.fingerprint or table.place},
            environment={},
            fairgate=__version__,
            policy_path=table.place,
        ),
        accepted_runs=accepted_runs,
        notices=[*_unknown(suites), *filter(None, [strange, _damaged(table)]), *table.notices],
        day=gate.day,
    )
    recording = RecordedAnswers(table.place, executions)
    system = RecordedSystem(lambda: recording, lambda: _embedder(policy, resources))
    progress = SILENT if resources is None else resources.progress
    run = run_gate(gate_input, system, progress)
    document = YamlDocument(path=table.place, data={}, marks={}, problems=(), complete=True)
    loaded = LoadedPolicy(
        parsed=ParsedPolicy(policy=policy, document=document), suites=suites, plan=plan
    )
    return FinishedRun(loaded=loaded, run=run, notices=())


def _damaged(table: OutcomeTable) -> str:
    """Say how many rows name a source or somebody in damaged text; empty where none does."""
    damage = {
        row.place: how
        for row in table.rows
        if (how := damage_in(f"{row.source} {row.category} {row.who}"))
    }
    first = next(iter(damage), "")
    return (
        f"{len(damage):,} rows hold damaged text, first {first}: {damage[first]}" if first else ""
    )


def _embedder(policy: Policy, resources: Resources | None) -> Embedder:
    """Return the embedder of answers in sentences."""
    assert resources is not None  # noqa: S101 (texts are refused without)
    return resources.encoder(kind_of(policy.system).chosen_embedder()).documents


def _gates(kind: OutcomeKind, limit: float | None) -> list[AnyGate]:
    """Return the question about the outcome with its limit, and all others by theirs."""
    if limit is not None and kind is not OutcomeKind.SCORE and not 0 <= limit < 1:
        raise UsageError(
            f"the limit is {limit:g}; of {kind}s it is a share of the answers, below 1: for "
            f"{limit:g} points write {limit / 100:g}"
        )
    gates: list[AnyGate] = [ParityPolicy(parity=ALL)]
    if limit is not None:
        gates.append(ParityPolicy(parity=_ASKED[kind], max=limit, regression=limit))
    return gates


def _unknown(suites: Mapping[str, TableSuite]) -> list[str]:
    """Say what tables without enough control prompts, or sources, cannot show."""
    notices: dict[str, list[str]] = {}
    for name, suite in suites.items():
        cells = {cell_text(row.outcome).strip() for row in suite.rows}
        if len(cells) == 1:
            why = f"every outcome is {quoted(cells.pop())}, so that nothing could differ"
            notices.setdefault(why, []).append(name)
        prompts = len({(row.category, row.who) for row in suite.rows if row.is_control})
        if prompts < _FEWEST:
            has = "no control prompts" if not prompts else "only one control prompt"
            why = (
                f"{has} (the same sources with phrases that name nobody): identities are compared "
                "with each other, and what all of them suffer alike is not seen; add "
                f"{FEWEST_CONTROLS} or more and name them with `control`"
            )
        elif prompts < FEWEST_CONTROLS:
            why = (
                f"{prompts} control prompts are fewer than {FEWEST_CONTROLS}: categories and "
                "everybody are judged, and single identities not; add more phrases that name nobody"
            )
        else:
            continue
        notices.setdefault(why, []).append(name)
    several = len(suites) > 1
    return [
        f"{', '.join(names[:3])}{'…' * (len(names) > 3)}: {why}" if several else why
        for why, names in notices.items()
    ]


def plain_name(value: str) -> str:
    """Return a value as policies and suites can be called."""
    return _UNNAMEABLE.sub("-", value.casefold()).strip("-._")[:_LONGEST] or "table"


def _name(value: str, taken: Mapping[str, object]) -> str:
    """Return a value as the name of a suite, other than those that are taken."""
    name = plain_name(value)
    number = 1
    chosen = name
    while chosen in taken:
        number += 1
        chosen = f"{name}-{number}"
    return chosen
