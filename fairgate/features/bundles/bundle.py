"""A finished run as one file that carries its proof: what `fairgate bundle` puts into the zip."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairgate.domain.cases import Rejected, TestPlan
from fairgate.domain.errors import UsageError
from fairgate.domain.runtime import Runtime
from fairgate.domain.units import Arm, Claim, Judged, Reading, Reason, Unit, Value
from fairgate.gate.accepted_runs import locate_references
from fairgate.gate.baseline import References
from fairgate.gate.baseline_files import dump_baseline
from fairgate.gate.gate import GateInput, GateRun
from fairgate.gate.judge import table_with
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.gate.run_folder import RunFolder, check_run, execution_lines, plan_lines, replay
from fairgate.io.text_files import read_json_object, read_whole
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.table import Table
from fairgate.policy.schema import Policy
from fairgate.reports.run_record import run_record

STATEMENT = "statement.json"
REQUIRED = frozenset(
    {
        "policy.yaml",
        "policy.json",
        "plan.jsonl",
        "executions.jsonl",
        "rows.jsonl",
        "tables.json",
        "run.json",
        "versions.json",
        STATEMENT,
    }
)
OPTIONAL = frozenset({"baseline.json", "anchor.json", "report.html"})
NOT_RECOMPUTED = frozenset(
    {"attribution", "instability", "kill_score", "notices", "pace", "provenance"}
)
"""Parts of the run record that no verdict rests on and that need answers or the machine: only the
hashes of the statement hold them, as they hold plan, answers and page."""
_QUOTES = "evidence.problems"
_TOLERANCE = 2e-6
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
CONFIGURATION = ("policy.yaml", "baseline.json", "anchor.json")
"""What the verdict was reached by, among a bundle's members."""
Row = dict[str, Any]
_HIDDEN = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFiles:
    """The texts of a run that a bundle holds as they are."""

    policy: str
    plan: Iterable[str]
    record: Mapping[str, Any]
    page: bytes | None = None


def bundle_run(
    run: Path,
    policy: Path | None,
    runtime: Runtime,
    named_baseline: str | None,
    *,
    redact: bool,
) -> dict[str, bytes]:
    """Return the members of the bundle of a finished run.

    The run's answers are judged again first. Raises UsageError where that does not give the run's
    own verdict: policy or baseline are then not those that it was judged by. Unless one is named,
    the baseline is the one that the record names, and none where it names none: the file may have
    been accepted since.
    """
    check_run(run)
    record = read_json_object(RunFolder(path=run).record)

    def references(loaded: LoadedPolicy, path: Path) -> References:
        own = record.get("baseline")
        own = own if isinstance(own, str) and "\0" not in own and Path(own).is_file() else None
        found = locate_references(loaded, path, named_baseline or own)
        if named_baseline is None and record.get("baseline") is None:
            found = replace(found, baseline=None)
        if named_baseline is None and record.get("anchor") is None:
            found = replace(found, anchor=None)
        return found

    done, given, loaded, _ = replay(run, policy, runtime, references)
    now = run_record(done.result, given.must_match)
    first = next(differences(record, now), None)
    if first is not None:
        raise UsageError(
            f"{run}: the run's answers do not give its verdict any more, policy or baseline are "
            f"not those that it was judged by ({first}); name them with --policy and --baseline, "
            "or run again"
        )
    page = run / "report.html"
    files = RunFiles(
        policy=loaded.parsed.text,
        plan=plan_lines(loaded),
        record=record,
        page=read_whole(page) if page.is_file() else None,
    )
    return members_of(given, done, files, redact=redact)


def statement(members: Mapping[str, bytes], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statement about `members`, whose run record is `record`.

    Statement: in-toto Attestation Framework, Statement v1. Predicate: Test Result v0.1, whose
    `result` is PASSED, WARNED or FAILED. Nothing is signed here; `actions/attest` signs the
    predicate with the bundle as its subject.
    """
    subject = [_resource(name, members[name]) for name in sorted(members)]
    return {
        "_type": STATEMENT_TYPE,
        "subject": subject,
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate(members, record),
    }


def predicate(members: Mapping[str, bytes], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the test result: what it was reached by, and the rules by their outcome.

    WARNED is a verdict that does not stop the build although a rule did not pass or the report
    warns; a run without a verdict has FAILED.
    """
    rules: Sequence[Mapping[str, Any]] = record["rules"]
    judged = [rule for rule in rules if not rule["reported"]]
    failed = [rule for rule in judged if rule["outcome"] == "fail"]
    passed = [rule for rule in judged if rule["outcome"] == "pass"]
    warned = [rule for rule in judged if rule["outcome"] not in ("fail", "pass")]
    open_ends = failed or warned or record["warnings"]
    result = "FAILED" if record["exit_code"] else "WARNED" if open_ends else "PASSED"
    return {
        "result": result,
        "configuration": [
            _resource(name, members[name]) for name in CONFIGURATION if name in members
        ],
        "passedTests": [*map(_name, passed)],
        "warnedTests": [*map(_name, warned)],
        "failedTests": [*map(_name, failed)],
    }


def _resource(name: str, data: bytes) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": hashlib.sha256(data).hexdigest()}}


def _name(rule: Mapping[str, Any]) -> str:
    where = ", ".join(f"{name} {level}" for name, level in sorted(rule["where"].items()))
    return f"gates[{rule['gate']}] {rule['metric']} of {rule['suite']}{f' ({where})' * bool(where)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictInput:
    """What a verdict follows from, besides policy, baseline and anchor."""

    plan: TestPlan
    """Units and what was rejected; the cases are not needed."""
    judged: Sequence[Judged]
    tables: Mapping[str, Table]
    must_match: Mapping[str, Mapping[str, str]]


def hidden(text: str) -> str:
    """Return what stands for a redacted text; equal texts, equal stand-ins."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"sha256:{digest[:_HIDDEN]}"


def rows_of(
    judged: Iterable[Judged], tables: Mapping[str, Table], *, redact: bool
) -> Iterator[Row]:
    """Yield a row for each judged unit, in their order; `redact` hides what oracles read.

    Everything that a verdict is recomputed from. A row is one judged unit: what it is about, how
    its answers were read, and a number or a reason for each column of its suite's table. It holds
    no prompt and no answer.
    """
    places = dict.fromkeys(tables, 0)
    for one in judged:
        unit, table = one.unit, tables[one.unit.suite]
        claims = _cells(table, places[unit.suite])
        places[unit.suite] += 1
        if one.decisive not in claims:
            decision = one.decision
            claims[one.decisive] = str(decision) if isinstance(decision, Reason) else decision
        yield {
            "key": unit.key,
            "suite": unit.suite,
            "cluster": unit.cluster,
            "arm": unit.arm.value,
            "advisory": unit.advisory,
            "dimensions": dict(unit.dimensions),
            "content": unit.content,
            "follows": unit.follows,
            "names": dict(unit.names),
            "asks": dict(unit.asks),
            "readings": {role: _reading_to(one.readings[role], redact) for role in unit.asks},
            "decisive": one.decisive,
            "claims": claims,
            **_judges_to(unit),
        }


def _judges_to(unit: Unit) -> Row:
    """Return which judges decide a unit, and whether they count; nothing where none does."""
    if not unit.verdicts:
        return {}
    return {"verdicts": list(unit.verdicts), "unproven": unit.is_unproven}


def _cells(table: Table, row: int) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for name, column in table.values.items():
        value = float(column[row])
        cells[name] = table.reasons.get(name, {}).get(row) if np.isnan(value) else value
    return cells


def _reading_to(reading: Reading, redact: bool) -> Row:  # noqa: FBT001 - called here alone
    value: object = reading.value
    if isinstance(reading.value, tuple):
        value = list(reading.value)
    if redact and not isinstance(reading.value, float | None):
        value = hidden(repr(reading.value))
    return {"value": value, "reason": reading.reason, "shown": reading.shown}


def tables_to(
    tables: Mapping[str, Table],
    must_match: Mapping[str, Mapping[str, str]],
    rejected: Sequence[Rejected],
    *,
    redact: bool,
) -> Row:
    """Return what rows do not say: the columns of each suite, and what was not executed."""
    return {
        "redacted": redact,
        "suites": {
            name: {
                "columns": list(table.values),
                "not_evaluated": dict(table.not_evaluated),
                "bands": list(table.bands),
                "must_match": dict(must_match[name]),
            }
            for name, table in tables.items()
        },
        "rejected": [
            {**asdict(one), "reason": hidden(one.reason) if redact else one.reason}
            for one in rejected
        ],
    }


def verdict_input(
    tables: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], order: Sequence[str]
) -> VerdictInput:
    """Return what the rows say; `order` is that of the suites in the policy.

    No row is kept, and what is equal in many is kept once. Raises LookupError, TypeError,
    ValueError where they are none.
    """
    suites = {name: tables["suites"][name] for name in order}
    if suites.keys() != tables["suites"].keys():
        raise ValueError("the tables are of other suites than those of the policy")
    judged: list[Judged] = []
    groups: dict[str, list[Judged]] = {name: [] for name in suites}
    cells: dict[str, dict[str, list[Any]]] = {
        name: {column: [] for column in suite["columns"]} for name, suite in suites.items()
    }
    known = _Known()
    for row in rows:
        one = _judged_from(row, suites, known)
        judged.append(one)
        groups[one.unit.suite].append(one)
        for column, own in cells[one.unit.suite].items():
            own.append(row["claims"][column])
    if len({(one.unit.suite, one.unit.key) for one in judged}) < len(judged):
        raise ValueError("two rows of a suite have one key")
    return VerdictInput(
        plan=TestPlan(
            cases=(),
            units=[one.unit for one in judged],
            rejected=[Rejected(**one) for one in tables["rejected"]],
        ),
        judged=judged,
        tables={
            name: _table_from(name, suite, cells[name], groups[name])
            for name, suite in suites.items()
        },
        must_match={name: dict(suite["must_match"]) for name, suite in suites.items()},
    )


class _Known:
    """What stands in many rows, once."""

    def __init__(self) -> None:
        self._mappings: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        self._readings: dict[tuple[object, ...], Reading] = {}

    def mapping(self, found: Mapping[str, str]) -> dict[str, str]:
        return self._mappings.setdefault(tuple(found.items()), dict(found))

    def reading(self, found: Mapping[str, Any]) -> Reading:
        own = _reading_from(found)
        return self._readings.setdefault((type(own.value), own.value, own.reason, own.shown), own)


def _judged_from(row: Mapping[str, Any], suites: Mapping[str, Any], known: _Known) -> Judged:
    if row["suite"] not in suites:
        raise ValueError(f"a row is of suite {row['suite']!r:.40}, which is not among the tables")
    unit = Unit(
        key=row["key"],
        suite=row["suite"],
        asks=dict(row["asks"]),
        cluster=row["cluster"],
        dimensions=known.mapping(row["dimensions"]),
        content=row["content"],
        follows=row["follows"],
        arm=Arm(row["arm"]),
        advisory=row["advisory"],
        verdicts=tuple(row.get("verdicts", ())),
        is_unproven=bool(row.get("unproven", False)),
        names=known.mapping(row["names"]),
    )
    return Judged(
        unit=unit,
        readings={role: known.reading(row["readings"][role]) for role in unit.asks},
        claims={name: _claim(value) for name, value in row["claims"].items() if value is not None},
        decisive=row["decisive"],
    )


def _reading_from(row: Mapping[str, Any]) -> Reading:
    value: Value | list[str] | None = row["value"]
    if isinstance(value, list):
        value = tuple(value)
    reason = None if row["reason"] is None else Reason(row["reason"])
    return Reading(value=value, reason=reason, shown=row["shown"])


def _claim(value: object) -> Claim:
    if isinstance(value, str):
        return Reason(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a claim is {value!r:.40}; expected a number or a reason")
    return float(value)


def _table_from(
    name: str,
    suite: Mapping[str, Any],
    columns: Mapping[str, Sequence[Any]],
    judged: Sequence[Judged],
) -> Table:
    return table_with(
        name,
        [one.unit for one in judged],
        values={
            column: np.asarray(
                [np.nan if cell is None else _number(_claim(cell)) for cell in cells], np.float64
            )
            for column, cells in columns.items()
        },
        reasons={
            column: {place: cell for place, cell in enumerate(cells) if isinstance(cell, str)}
            for column, cells in columns.items()
        },
        not_evaluated=dict(suite["not_evaluated"]),
        bands=(float(suite["bands"][0]), float(suite["bands"][1])),
    )


def _number(claim: Claim) -> float:
    return np.nan if isinstance(claim, Reason) else claim


def members_of(
    given: GateInput, done: GateRun, files: RunFiles, *, redact: bool
) -> dict[str, bytes]:
    """Return every member of a run's bundle by name; equal runs give equal bytes."""
    rows = rows_of(done.result.judged, done.tables, redact=redact)
    shown = _without_texts(files.record) if redact else files.record
    tables = tables_to(done.tables, given.must_match, given.plan.rejected, redact=redact)
    members = {
        "policy.yaml": files.policy.encode(),
        "policy.json": policy_json(given.policy),
        "plan.jsonl": _lines(_hashes(files.plan) if redact else files.plan),
        "executions.jsonl": _lines(
            _hashes(execution_lines(done.executions.values()))
            if redact
            else execution_lines(done.executions.values())
        ),
        "rows.jsonl": _lines(json.dumps(row, allow_nan=False) for row in rows),
        "tables.json": as_json(tables),
        "run.json": as_json(shown),
        "versions.json": versions_json(shown),
    }
    for name, reference in (("baseline.json", given.baseline), ("anchor.json", given.anchor)):
        if reference is not None:
            members[name] = dump_baseline(reference).encode()
    if files.page is not None and not redact:
        members["report.html"] = files.page
    return {**members, STATEMENT: as_json(statement(members, shown))}


def policy_json(policy: Policy) -> bytes:
    """Return the policy with every default filled in, for readers without YAML."""
    return as_json(policy.model_dump(mode="json"))


def versions_json(record: Mapping[str, Any]) -> bytes:
    """Return the versions that the verdict was reached with."""
    return as_json(
        {
            "fairgate": record["fairgate"],
            "metrics": {metric.id: metric.version for metric in METRICS},
            "environment": record["provenance"]["environment"],
            "under_test": record["provenance"]["under_test"],
        }
    )


def as_json(value: object) -> bytes:
    """Return the bytes of a member in JSON; equal values give equal bytes."""
    return (json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def _hashes(lines: Iterable[str]) -> Iterator[str]:
    """Yield for each line what it is about and its hash, so that its owner can show it later."""
    for line in lines:
        about = json.loads(line)
        digest = hashlib.sha256(line.encode("utf-8", "surrogatepass")).hexdigest()
        yield json.dumps({"suite": about["suite"], "key": about["key"], "sha256": digest})


def _without_texts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the run record without sentences that may quote an answer or a source."""
    evidence = record["evidence"]
    return {
        **record,
        "notices": [hidden(text) for text in record["notices"]],
        "evidence": {
            **evidence,
            "problems": [hidden(text) for text in evidence["problems"]],
            "rejected": [{**one, "reason": hidden(one["reason"])} for one in evidence["rejected"]],
        },
    }


def differences(
    recorded: Any, computed: Any, *, redacted: bool = False, at: str = ""
) -> Iterator[str]:
    """Yield where two run records differ in what is computed; numbers to 2e-6.

    What `redacted` readings would be quoted in is compared by its number alone.
    """
    if redacted and at == _QUOTES:
        recorded, computed = len(recorded), len(computed)
    if isinstance(recorded, dict) and isinstance(computed, dict):
        for name in sorted({*recorded, *computed} - (frozenset() if at else NOT_RECOMPUTED)):
            values = recorded.get(name, "nothing"), computed.get(name, "nothing")
            place = f"{at}.{name}" if at else name
            yield from differences(*values, redacted=redacted, at=place)
    elif isinstance(recorded, list) and isinstance(computed, list):
        if len(recorded) != len(computed):
            yield f"{at}: {len(recorded)} recorded, {len(computed)} computed"
        for place, pair in enumerate(zip(recorded, computed, strict=False)):
            yield from differences(*pair, redacted=redacted, at=f"{at}[{place}]")
    elif not _same(recorded, computed):
        yield f"{at}: recorded {recorded!r:.60}, computed {computed!r:.60}"


def _same(recorded: object, computed: object) -> bool:
    numbers = (int, float)
    if isinstance(recorded, bool) or isinstance(computed, bool):
        return recorded is computed
    if isinstance(recorded, numbers) and isinstance(computed, numbers):
        return abs(recorded - computed) <= _TOLERANCE
    return type(recorded) is type(computed) and recorded == computed
