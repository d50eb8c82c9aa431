"""A finished run as one file that carries its proof: what `fairgate bundle` puts into the zip."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairgate.domain.errors import UsageError
from fairgate.domain.runtime import Runtime
from fairgate.features.bundles.in_toto import statement
from fairgate.features.bundles.verdict_rows import hidden, rows_of, tables_to
from fairgate.gate.accepted_runs import locate_references
from fairgate.gate.baseline_files import dump_baseline
from fairgate.gate.execution_lines import execution_lines
from fairgate.gate.gate import GateInput, GateRun
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.gate.plan_lines import plan_lines
from fairgate.gate.references import References
from fairgate.gate.run_folder import RunFolder, check_run, replay
from fairgate.io.json_file import read_json_object, read_whole
from fairgate.metrics.catalogue import METRICS
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
