"""`fairgate bundle`: a run as a zip file that carries its proof, and whether one is what it claims.

Checked are its bytes, its hashes, and the verdict, which is computed again from its rows.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from fairgate import __version__
from fairgate.domain.cases import Rejected, TestPlan
from fairgate.domain.errors import BaselineError, DataError, ExitCode, PolicyError, UsageError
from fairgate.domain.json_text import read_json
from fairgate.domain.outcomes import Provenance
from fairgate.domain.ports import Runtime
from fairgate.domain.units import Arm, Assessed, Claim, Reading, Reason, Unit
from fairgate.domain.wording import harmless, quoted
from fairgate.gate.accepted_runs import locate_references
from fairgate.gate.baseline import Baseline, References
from fairgate.gate.baseline_files import dump_baseline, load_baseline
from fairgate.gate.gate import GateInput, GateResult, GateRun, result_of
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.gate.measure import table_with
from fairgate.gate.run_folder import RECORD, check_run, execution_lines, plan_lines, replay
from fairgate.gate.waivers import waiver_problems
from fairgate.io.tables import read_json_object, read_whole
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import Table
from fairgate.policy.parse import parse_policy
from fairgate.policy.schema import Policy
from fairgate.reports.escaping import redacted
from fairgate.reports.figures import count
from fairgate.reports.formats import run_record
from fairgate.systems.catalogue import policy_parts
from fairgate.terminal.options import EXISTING_FILE, EXISTING_FOLDER, runtime_of, runtime_options

STATEMENT = "statement.json"
REQUIRED = frozenset(
    {
        "policy.yaml", "policy.json", "plan.jsonl", "executions.jsonl", "rows.jsonl", "tables.json",
        "run.json", "versions.json", STATEMENT,
    }
)  # fmt: skip
OPTIONAL = frozenset({"baseline.json", "anchor.json", "report.html"})
NOT_RECOMPUTED = frozenset(
    {"attribution", "instability", "kill_score", "notices", "pace", "provenance"}
)
"""Parts of the run record that no verdict rests on and that need answers or the machine: only the
hashes of the statement hold them, as they hold plan, answers and page."""
CONFIGURATION = ("policy.yaml", "baseline.json", "anchor.json")
"""What the verdict was reached by, among a bundle's members."""
MOST_BYTES = 512 << 20
_TIME = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE = 0o100644 << 16
_UNIX = 3
_BROKEN = (
    zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, ArithmeticError, LookupError,
    struct.error, EOFError, OSError,
)  # fmt: skip
"""What zipfile raises for archives that are none, are cut off, or need what it does not do."""
_NO_RUN = (
    PolicyError, BaselineError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError,
)  # fmt: skip
"""What is raised for members that are no policy, no baseline or no rows."""
_AGAIN = "expected the file as `fairgate bundle` wrote it; get it again, or bundle the run again"
_QUOTES = "evidence.problems"
_OF_UNIT = (
    "key", "suite", "cluster", "arm", "advisory", "dimensions", "content", "follows", "names",
    "asks",
)  # fmt: skip
"""What a row holds of its unit as it is."""
_TOLERANCE = 2e-6
_FILE = click.Path(dir_okay=False, path_type=Path)


# The archive.


def zipped(members: Mapping[str, bytes]) -> bytes:
    """Return the archive of the members. Equal members give equal bytes, on every machine.

    It has one possible form, so that nothing can be hidden in one: members are stored, in the order
    of their names, with fixed times and modes. A file with any other byte is refused: reading makes
    the archive again from its members and compares it. Stored members cannot expand, so a file's
    size limits what reading it takes.
    """
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, _TIME)
            info.create_system, info.external_attr = _UNIX, _REGULAR_FILE
            archive.writestr(info, members[name])
    return memory.getvalue()


def unzipped(path: Path) -> dict[str, bytes]:
    """Return the members of a bundle by name.

    Raises DataError for whatever `zipped` would not have written, before anything is read that
    takes more than the file itself.
    """
    data = read_whole(path, MOST_BYTES)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            names = [info.filename for info in infos]
            if unknown := sorted(set(names) - REQUIRED - OPTIONAL):
                raise DataError(f"{path}: has the member {quoted(unknown[0])}, which no bundle has")
            is_stored = all(info.compress_type == zipfile.ZIP_STORED for info in infos)
            size = sum(info.file_size for info in infos)
            if len(set(names)) < len(names) or not is_stored or size > len(data):
                raise DataError(f"{path}: has a member twice, or one that would expand; {_AGAIN}")
            members = {info.filename: archive.read(info) for info in infos}
    except _BROKEN as error:
        raise DataError(f"{path}: no bundle ({quoted(str(error))[:120]}); {_AGAIN}") from error
    if zipped(members) != data:
        raise DataError(
            f"{path}: its bytes are not those of a bundle with these members (other times, modes, "
            f"order, or data beside them); {_AGAIN}"
        )
    return members


# Its members, made of a run.


def bundle_run(
    run: Path, policy: Path | None, runtime: Runtime, named_baseline: str | None, *, redact: bool
) -> dict[str, bytes]:
    """Return the members of the bundle of a finished run.

    The run's answers are judged again first. Raises UsageError where that does not give the run's
    own verdict: policy or baseline are then not those that it was judged by. Unless one is named,
    the baseline is the one that the record names, and none where it names none: the file may have
    been accepted since.
    """
    check_run(run)
    record = read_json_object(run / RECORD)

    def references(loaded: LoadedPolicy, path: Path) -> References:
        own = record.get("baseline")
        own = own if isinstance(own, str) and "\0" not in own and Path(own).is_file() else None
        found = locate_references(loaded, path, named_baseline or own)
        if named_baseline is None and record.get("baseline") is None:
            found = replace(found, baseline=None)
        if named_baseline is None and record.get("anchor") is None:
            found = replace(found, anchor=None)
        return found

    dated = replace(runtime, today=None) if record.get("day") else runtime
    done = replay(run, policy, dated, references)
    first = next(differences(record, run_record(done.run.result)), None)
    if first is not None:
        raise UsageError(
            f"{run}: its answers do not give its verdict any more, policy or baseline are others "
            f"now ({first}); name those of the run with --policy and --baseline, or run again"
        )
    own, page = {"policy.yaml": done.loaded.parsed.document.text.encode()}, run / "report.html"
    if page.is_file() and not redact:
        own[page.name] = read_whole(page)
    return members_of(done.run, own, plan_lines(done.loaded), record, redact=redact)


def members_of(
    done: GateRun,
    own: Mapping[str, bytes],
    plan: Iterable[str],
    record: Mapping[str, Any],
    *,
    redact: bool,
) -> dict[str, bytes]:
    """Return every member of a run's bundle by name; equal runs give equal bytes.

    `own` are the run's files that a bundle holds as they are: `policy.yaml`, `report.html`. Of rows
    and tables a verdict is computed again. `redact` hides what models and corpora say.
    """
    given = done.given
    answers = execution_lines(done.executions.values())
    rows = (json.dumps(row, allow_nan=False) for row in _rows(done, redact=redact))
    rejected: Sequence[Mapping[str, Any]] = [asdict(one) for one in given.plan.rejected]
    if redact:  # sentences of the record may quote an answer or a source
        plan, answers, rejected = _hashes(plan), _hashes(answers), _without_reasons(rejected)
        evidence = record["evidence"]
        problems = [redacted(text, "hash") for text in evidence["problems"]]
        unasked = _without_reasons(evidence["rejected"])
        notices = [redacted(text, "hash") for text in record["notices"]]
        evidence = {**evidence, "problems": problems, "rejected": unasked}
        record = {**record, "notices": notices, "evidence": evidence}
    tables = {
        "redacted": redact,
        "suites": {
            name: {
                "columns": list(table.values),
                "not_evaluated": dict(table.not_evaluated),
                "bands": list(table.bands),
                "must_match": dict(given.must_match[name]),
            }
            for name, table in done.tables.items()
        },
        "rejected": rejected,
    }
    members = {
        **own,
        "policy.json": as_json(given.policy.model_dump(mode="json")),  # with every default
        "plan.jsonl": _lines(plan),
        "executions.jsonl": _lines(answers),
        "rows.jsonl": _lines(rows),
        "tables.json": as_json(tables),
        "run.json": as_json(record),
        "versions.json": _versions_json(record),
    }
    for reference, kept in given.references.runs.items():
        members[f"{reference}.json"] = dump_baseline(kept).encode()
    return {**members, STATEMENT: as_json(statement(members, record))}


def _rows(done: GateRun, *, redact: bool) -> Iterator[dict[str, Any]]:
    """Yield a row for each assessed unit, in their order, from which its verdict is recomputed.

    What it is about, how its answers were read, and a number or a reason for each column of its
    suite's table; no prompt and no answer.
    """
    places = dict.fromkeys(done.tables, 0)
    for one in done.result.assessed:
        unit, table, place = one.unit, done.tables[one.unit.suite], places[one.unit.suite]
        places[unit.suite] += 1
        claims: dict[str, Any] = {
            name: table.reasons.get(name, {}).get(place)
            if np.isnan(column[place])
            else float(column[place])
            for name, column in table.values.items()
        }
        claims.setdefault(one.decisive, one.decision)
        readings: dict[str, dict[str, object]] = {}
        for role in unit.asks:
            read = one.readings[role]
            is_hidden = redact and not isinstance(read.value, float | None)
            value = redacted(repr(read.value), "hash") if is_hidden else read.value
            readings[role] = {"value": value, "reason": read.reason, "shown": read.shown}
        own = ((name, getattr(unit, name)) for name in _OF_UNIT)
        judges = {"verdicts": unit.verdicts, "unproven": unit.is_unproven}
        yield {
            **{name: dict(each) if isinstance(each, Mapping) else each for name, each in own},
            "readings": readings,
            "decisive": one.decisive,
            "claims": claims,
            **(judges if unit.verdicts else {}),
        }


def statement(members: Mapping[str, bytes], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statement about `members`, whose run record is `record`.

    Statement: in-toto Attestation Framework, Statement v1. Predicate: Test Result v0.1: what the
    result was reached by, and the rules by their outcome. `result` is WARNED for a verdict that
    does not stop the build although a rule did not pass or the report warns; a run without a
    verdict has FAILED. Nothing is signed here; `actions/attest` signs the predicate with the bundle
    as its subject.
    """

    def resource(name: str) -> dict[str, Any]:
        return {"name": name, "digest": {"sha256": hashlib.sha256(members[name]).hexdigest()}}

    rules: dict[str, list[str]] = {"pass": [], "fail": [], "other": []}
    for rule in record["rules"]:
        where = ", ".join(f"{key} {level}" for key, level in sorted(rule["where"].items()))
        name = f"gates[{rule['gate']}] {rule['metric']} of {rule['suite']}"
        if not rule["reported"]:
            outcome = rule["outcome"] if rule["outcome"] in ("pass", "fail") else "other"
            rules[outcome].append(f"{name} ({where})" if where else name)
    open_ends = rules["fail"] or rules["other"] or record["warnings"]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [resource(name) for name in sorted(members)],
        "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
        "predicate": {
            "result": "FAILED" if record["exit_code"] else "WARNED" if open_ends else "PASSED",
            "configuration": [resource(name) for name in CONFIGURATION if name in members],
            "passedTests": rules["pass"],
            "warnedTests": rules["other"],
            "failedTests": rules["fail"],
        },
    }


def _versions_json(record: Mapping[str, Any]) -> bytes:
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


def _without_reasons(rejected: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{**one, "reason": redacted(one["reason"], "hash")} for one in rejected]


# Its verdict, computed again.


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedBundle:
    """A bundle that was found to be what it claims."""

    result: GateResult
    """Recomputed, not read."""
    statement: Mapping[str, Any]
    redacted: bool
    members: int


def check_bundle(path: Path) -> CheckedBundle:
    """Recompute a bundle's hashes and verdict. Raises DataError where anything differs."""
    members = unzipped(path)
    if missing := sorted(REQUIRED - members.keys()):
        raise DataError(f"{path}: the member {missing[0]} is missing; bundle the run again")

    def expect(name: str, data: bytes, source: str) -> None:
        if members[name] != data:
            raise DataError(f"{path}: {name} is not what follows from {source}")

    try:
        record, tables = (
            _object(f"{path}: {name}", members[name]) for name in ("run.json", "tables.json")
        )
        if record.get("fairgate") != __version__:
            raise DataError(
                f"{path}: made by FairGate {quoted(str(record.get('fairgate')))}, and this is "
                f"{__version__}, which words and rounds its own way: verify it with the version "
                "that made it"
            )
        claimed = statement({k: v for k, v in members.items() if k != STATEMENT}, record)
        expect(STATEMENT, as_json(claimed), "the other members' hashes and verdict")
        expect("versions.json", _versions_json(record), "run.json and this FairGate")
        text = members["policy.yaml"].decode()
        policy = parse_policy(text, f"{path}: policy.yaml", policy_parts()).policy
        expect("policy.json", as_json(policy.model_dump(mode="json")), "policy.yaml")
        given, assessed, found = _read(path, members, policy, record, tables)
        result = result_of(given, found, assessed)
        computed = json.loads(json.dumps(run_record(result)))
        is_hashed = tables["redacted"]
        for name in ("plan.jsonl", "executions.jsonl"):
            for line in io.BytesIO(members[name]):
                are_hashes = _object(f"{path}: {name}", line).keys() == {"suite", "key", "sha256"}
                if is_hashed is not are_hashes:
                    raise DataError(f"{path}: {name} is not as redacted as tables.json says")
        if is_hashed and "report.html" in members:
            raise DataError(f"{path}: has a page, which a redacted bundle has not")
    except _NO_RUN as error:
        raise DataError(
            f"{path}: its files are none of a run ({type(error).__name__}: {error!s:.300})"
        ) from error
    first = next(differences(record, computed, redacted=is_hashed), None)
    if first is not None:
        raise DataError(f"{path}: its rows do not give the verdict that it records: {first}")
    return CheckedBundle(result=result, statement=claimed, redacted=is_hashed, members=len(members))


def _object(place: str, data: bytes) -> dict[str, Any]:
    value = read_json(data)
    if not isinstance(value, dict):
        raise DataError(f"{place} holds no JSON object")
    return value


def _read(
    path: Path,
    members: Mapping[str, bytes],
    policy: Policy,
    record: Mapping[str, Any],
    tables: Mapping[str, Any],
) -> tuple[GateInput, list[Assessed], dict[str, Table]]:
    """Return what the verdict follows from: input, assessed units and a table for each suite.

    Rows are read one by one, for all at once take five times their file. Raises LookupError,
    TypeError, ValueError where they are none.
    """
    suites = {suite.id: tables["suites"][suite.id] for suite in policy.suites}
    if suites.keys() != tables["suites"].keys():
        raise ValueError("the tables are of other suites than those of the policy")
    groups: dict[str, list[Assessed]] = {name: [] for name in suites}
    assessed: list[Assessed] = []
    for number, line in enumerate(io.BytesIO(members["rows.jsonl"]), start=1):
        row = _object(f"{path}: rows.jsonl:{number}", line)
        one = _assessed(row, suites[row["suite"]]["columns"])
        assessed.append(one)
        groups[one.unit.suite].append(one)
    if len({(one.unit.suite, one.unit.key) for one in assessed}) < len(assessed):
        raise ValueError("two rows of a suite have one key")
    given = GateInput(
        policy=policy,
        suites={},
        plan=TestPlan(
            cases=(),
            units=[one.unit for one in assessed],
            rejected=[Rejected(**one) for one in tables["rejected"]],
        ),
        must_match={name: dict(suite["must_match"]) for name, suite in suites.items()},
        references=References(
            baseline=_baseline(path, members, "baseline.json", policy.name),
            baseline_path=record["baseline"] or "",
            anchor=_baseline(path, members, "anchor.json", policy.name),
            anchor_path=record["anchor"] or "",
        ),
        provenance=Provenance(
            under_test={}, environment={}, fairgate=record["fairgate"], policy_path=""
        ),
        day=str(record.get("day", "")),
    )
    if given.day:
        for _, why in waiver_problems(policy, given.plan, dt.date.fromisoformat(given.day)):
            raise ValueError(f"on {given.day} its policy is none: {why}")
    return given, assessed, {name: _table(name, suites[name], groups[name]) for name in suites}


def _assessed(row: Mapping[str, Any], columns: Sequence[str]) -> Assessed:
    def reading(found: Mapping[str, Any]) -> Reading:
        value, reason = found["value"], found["reason"]
        return Reading(
            value=tuple(value) if isinstance(value, list) else value,
            reason=None if reason is None else Reason(reason),
            shown=found["shown"],
        )

    own = {name: row[name] for name in _OF_UNIT} | {"arm": Arm(row["arm"])}
    verdicts, is_unproven = tuple(row.get("verdicts", ())), bool(row.get("unproven", False))
    unit = Unit(**own, verdicts=verdicts, is_unproven=is_unproven)
    claims = {name: row["claims"][name] for name in (*columns, row["decisive"])}
    return Assessed(
        unit=unit,
        readings={role: reading(row["readings"][role]) for role in unit.asks},
        claims={name: _claim(value) for name, value in claims.items() if value is not None},
        decisive=row["decisive"],
    )


def _claim(value: object) -> Claim:
    if isinstance(value, str):
        return Reason(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a claim is {value!r:.40}; expected a number or a reason")
    return float(value)


def _table(name: str, suite: Mapping[str, Any], assessed: Sequence[Assessed]) -> Table:
    columns = {
        column: [one.claims.get(column, np.nan) for one in assessed] for column in suite["columns"]
    }
    return table_with(
        name,
        [one.unit for one in assessed],
        values={
            column: np.asarray([np.nan if isinstance(c, Reason) else c for c in cells], np.float64)
            for column, cells in columns.items()
        },
        reasons={
            column: {place: cell for place, cell in enumerate(cells) if isinstance(cell, Reason)}
            for column, cells in columns.items()
        },
        not_evaluated=dict(suite["not_evaluated"]),
        bands=(float(suite["bands"][0]), float(suite["bands"][1])),
    )


def _baseline(path: Path, members: Mapping[str, bytes], name: str, policy: str) -> Baseline | None:
    if name not in members:
        return None
    found = load_baseline(members[name].decode(), f"{path}: {name}")
    if found.policy != policy:
        raise DataError(f"{path}: {name} is of another policy, {found.policy!r:.60}")
    return found


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


# The commands.


class _MakesByDefault(click.Group):
    """Reads `bundle RUN` as `bundle make RUN`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `make` before a first argument that names neither a command nor an option."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["make", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_MakesByDefault, short_help="Put a run into one file that carries its proof.")
def bundle() -> None:
    """Put a finished run into one file that carries its proof, and verify such files.

    `fairgate bundle RUN --out FILE` is short for `fairgate bundle make RUN --out FILE`.
    """


@bundle.command(short_help="Write the bundle of a finished run.")
@click.argument("run", type=EXISTING_FOLDER, metavar="RUN")
@click.option("--out", type=_FILE, default="bundle.zip", show_default=True, help="File to write.")
@click.option(
    "--predicate", type=_FILE,
    help="Also write the in-toto predicate alone, for `predicate-path` of actions/attest.",
)  # fmt: skip
@click.option("--policy", type=EXISTING_FILE, help="Policy of the run (default: the run's own).")
@click.option("--baseline", help="Baseline of the run, or `none`; default: as its record has it.")
@click.option(
    "--redact", is_flag=True,
    help="Hashes instead of prompts, documents and answers, and no page.",
)  # fmt: skip
@runtime_options
def make(run: Path, out: Path, predicate: Path | None, **options: Any) -> int:
    """Write policy, baseline, plan, answers, rows, verdict and hashes of the run in RUN as one zip.

    The run's answers are judged again first; they must give the run's verdict. Equal runs give
    equal bytes. Exits 0 whatever the verdict is.
    """
    from fairgate.io.durable import write_bytes

    runtime = runtime_of(options)
    members = bundle_run(
        run, options["policy"], runtime, options["baseline"], redact=options["redact"]
    )
    write_bytes(out, zipped(members))
    found = read_json(members[STATEMENT])["predicate"]
    if predicate is not None:
        write_bytes(predicate, as_json(found), option="--predicate")
    click.echo(f"{harmless(str(out))}: {len(members)} files, result {found['result']}")
    return ExitCode.PASS


@bundle.command(short_help="Recompute the hashes and the verdict of a bundle.")
@click.argument("file", type=EXISTING_FILE, metavar="FILE")
def verify(file: Path) -> int:
    """Recompute all hashes of the bundle FILE, and its verdict from its rows.

    Exits 0 where the bundle is what it claims, whatever its verdict is, and 4 where it is not.
    Who made a bundle is shown by its attestation alone: `gh attestation verify FILE`.
    """
    found = check_bundle(file)
    result = found.result
    name = harmless(str(file))
    answers = "hashes of answers" if found.redacted else "answers"
    waived = sum(rule.waiver is not None for rule in result.rules)
    on = (
        f", with {count(waived, 'waived failure')} on {result.given.day}, a day that it says itself"
    )
    click.echo(
        f"{name}: {found.members} files are as they were written (with {answers})\n"
        f"{name}: {len(result.assessed):,} rows and {len(result.rules)} rules give the recorded "
        f"verdict: {result.outcome.value}, exit code {int(result.exit_code)}, "
        f"{found.statement['predicate']['result']}{on * bool(waived)}\n"
        f"{name}: not computed again, held by hashes alone: questions, answers and page; of "
        f"run.json {', '.join(sorted(NOT_RECOMPUTED))}; of rows what no value follows from"
    )
    return ExitCode.PASS
