"""Whether a bundle is what it claims: its bytes, its hashes, and the verdict from its rows."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairgate import __version__
from fairgate.domain.errors import BaselineError, DataError, PolicyError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.outcomes import GateResult, Provenance
from fairgate.domain.wording import quoted
from fairgate.features.bundles.bundle import (
    OPTIONAL,
    REQUIRED,
    STATEMENT,
    as_json,
    differences,
    policy_json,
    versions_json,
)
from fairgate.features.bundles.bundle_zip import unzipped
from fairgate.features.bundles.in_toto import statement
from fairgate.features.bundles.verdict_rows import VerdictInput, verdict_input
from fairgate.gate.baseline import Baseline
from fairgate.gate.baseline_files import load_baseline
from fairgate.gate.gate import GateInput, result_of
from fairgate.policy.parse import parse_policy
from fairgate.policy.schema import Policy
from fairgate.reports.run_record import run_record
from fairgate.systems.catalogue import policy_parts


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
    members = unzipped(path, REQUIRED | OPTIONAL)
    missing = sorted(REQUIRED - members.keys())
    if missing:
        raise DataError(f"{path}: the member {missing[0]} is missing; bundle the run again")
    bundle = _Bundle(path, members)
    record = bundle.object("run.json")
    tables = bundle.object("tables.json")
    if record.get("fairgate") != __version__:
        raise DataError(
            f"{path}: made by FairGate {quoted(str(record.get('fairgate')))}, and this is "
            f"{__version__}, which words and rounds its own way: verify it with the version that "
            "made it"
        )
    try:
        claimed = statement({k: v for k, v in members.items() if k != STATEMENT}, record)
        bundle.expect(STATEMENT, as_json(claimed), "the other members' hashes and verdict")
        bundle.expect("versions.json", versions_json(record), "run.json and this FairGate")
        policy = bundle.policy()
        bundle.expect("policy.json", policy_json(policy), "policy.yaml")
        found = verdict_input(tables, bundle.rows(), [suite.id for suite in policy.suites])
        result = result_of(
            _gate_input(bundle, policy, found, record), found.tables, found.judged, ()
        )
        computed = json.loads(json.dumps(run_record(result, found.must_match)))
        redacted = tables["redacted"]
        bundle.expect_texts(redacted=redacted)
    except BaselineError as error:
        raise DataError(f"{path}: its rows do not fit its baseline: {error!s:.300}") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: its rows are none of a run ({type(error).__name__}: {error!s:.120})"
        ) from error
    first = next(differences(record, computed, redacted=redacted), None)
    if first is not None:
        raise DataError(f"{path}: its rows do not give the verdict that it records: {first}")
    return CheckedBundle(result=result, statement=claimed, redacted=redacted, members=len(members))


def _gate_input(
    bundle: _Bundle, policy: Policy, found: VerdictInput, record: Mapping[str, Any]
) -> GateInput:
    return GateInput(
        policy=policy,
        suites={},
        plan=found.plan,
        must_match=found.must_match,
        baseline=bundle.baseline("baseline.json", policy.name),
        baseline_path=record["baseline"] or "",
        anchor=bundle.baseline("anchor.json", policy.name),
        anchor_path=record["anchor"] or "",
        provenance=Provenance(
            under_test={}, environment={}, fairgate=record["fairgate"], policy_path=""
        ),
    )


class _Bundle:
    """The members of one bundle; every error names the bundle and the member."""

    def __init__(self, path: Path, members: Mapping[str, bytes]) -> None:
        self._path, self._members = path, members

    def expect(self, name: str, data: bytes, source: str) -> None:
        """Raise DataError unless a member is what follows from `source`."""
        if self._members[name] != data:
            raise DataError(f"{self._path}: {name} is not what follows from {source}")

    def expect_texts(self, *, redacted: object) -> None:
        """Raise DataError unless questions and answers are hashes where the tables say so."""
        hashes = {"suite", "key", "sha256"}
        for name in ("plan.jsonl", "executions.jsonl"):
            for line in io.BytesIO(self._members[name]):
                if redacted is not (set(self._json(name, line)) == hashes):
                    raise DataError(f"{self._path}: {name} is not as redacted as tables.json says")
        if redacted and "report.html" in self._members:
            raise DataError(f"{self._path}: has a page, which a redacted bundle has not")

    def object(self, name: str) -> dict[str, Any]:
        value = self._json(name, self._members[name])
        if not isinstance(value, dict):
            raise DataError(f"{self._path}: {name} holds no JSON object")
        return value

    def rows(self) -> Iterator[Any]:
        """Yield the rows one by one: all at once take five times their file."""
        for n, line in enumerate(io.BytesIO(self._members["rows.jsonl"]), start=1):
            yield self._json(f"rows.jsonl:{n}", line)

    def policy(self) -> Policy:
        try:
            text = self._members["policy.yaml"].decode()
            return parse_policy(text, f"{self._path}: policy.yaml", policy_parts()).policy
        except (UnicodeDecodeError, PolicyError) as error:
            raise DataError(f"{self._path}: policy.yaml is no policy: {error!s:.300}") from error

    def baseline(self, name: str, policy: str) -> Baseline | None:
        if name not in self._members:
            return None
        try:
            found = load_baseline(self._members[name].decode(), f"{self._path}: {name}")
        except (UnicodeDecodeError, BaselineError) as error:
            raise DataError(f"{self._path}: {name} is no baseline: {error!s:.300}") from error
        if found.policy != policy:
            raise DataError(f"{self._path}: {name} is of another policy, {found.policy!r:.60}")
        return found

    def _json(self, name: str, data: bytes) -> Any:
        try:
            return read_json(data)
        except JsonError as error:
            raise DataError(f"{self._path}: {name}: {error}") from error
