"""A bundle's files and verdict as an in-toto statement: hashes of what was tested, and the result.

Statement: in-toto Attestation Framework, Statement v1. Predicate: Test Result v0.1, whose `result`
is PASSED, WARNED or FAILED. Nothing is signed here; `actions/attest` signs the predicate with the
bundle as its subject.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
CONFIGURATION = ("policy.yaml", "baseline.json", "anchor.json")
"""What the verdict was reached by, among a bundle's members."""


def statement(members: Mapping[str, bytes], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statement about `members`, whose run record is `record`."""
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
