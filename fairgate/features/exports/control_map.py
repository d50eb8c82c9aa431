"""Which evidence of a run bears on which clause of a law or a standard, and what is missing.

The clauses are data (`data/controls/controls.json`). Nothing here says that a clause is met: that
is for people to decide, from more than a run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from fairgate.domain.outcomes import GateResult
from fairgate.domain.wording import harmless

SCHEMA_VERSION = 1
_ABSENT = {
    "rules": "no rule sets a limit",
    "measurements": "nothing was measured",
    "identities": "no two identities were compared",
    "causes": "attribution did not run",
    "retrieval": "the documents of no answer were measured",
    "controls": "no neutral wording was asked",
    "accuracy": "no question with a right answer was asked",
    "instability": "no question was asked more than once",
    "baseline": "the run was compared with no baseline",
    "kill-score": "the policy itself was not tested (`fairgate mutate --save`)",
    "evidence": "nothing was decided",
    "provenance": "the system under test is not known",
}


def render_control_map(result: GateResult) -> str:
    """Return `controls.json`. Equal results, equal bytes."""
    found = _evidence(result)
    known = json.loads(
        resources.files("fairgate").joinpath("data/controls/controls.json").read_text("utf-8")
    )
    body = {
        "schema_version": SCHEMA_VERSION,
        "policy": harmless(result.policy),
        "about": known["about"],
        "sources": known["sources"],
        "clauses": [_clause(clause, found) for clause in known["clauses"]],
    }
    return json.dumps(body, indent=2) + "\n"


def _clause(clause: Mapping[str, Any], found: Mapping[str, str]) -> dict[str, object]:
    wanted = clause["evidence"]
    return {
        "framework": clause["framework"],
        "clause": clause["clause"],
        "subject": clause["subject"],
        "evidence": [
            {"id": name, "in": _PLACES[name], "found": found[name]}
            for name in wanted
            if name in found
        ],
        "gaps": [*(_ABSENT[name] for name in wanted if name not in found), *clause["gaps"]],
    }


_PLACES = {
    "rules": "run.json: rules",
    "measurements": "run.json: measurements",
    "identities": "run.json: identities",
    "causes": "run.json: attribution",
    "retrieval": "run.json: measurements",
    "controls": "run.json: measurements",
    "accuracy": "run.json: measurements",
    "instability": "run.json: instability",
    "baseline": "run.json: overlap",
    "kill-score": "run.json: kill_score",
    "evidence": "run.json: evidence",
    "provenance": "run.json: provenance",
}


def _evidence(result: GateResult) -> dict[str, str]:
    """Return what the run has, by kind of evidence; what it has not is left out."""
    judged = [rule for rule in result.rules if not rule.is_reported]
    values = [item for item in result.measurements if item.value is not None]
    outcomes = [rule.outcome.value for rule in judged]
    by_outcome = [f"{outcomes.count(name)} {name}" for name in sorted(set(outcomes))]
    counts = {
        "rules": (len(judged), ", ".join(by_outcome)),
        "measurements": (len(values), "values with slices and intervals"),
        "identities": (
            len({(t.category, t.term) for found in result.identities for t in found.terms}),
            "identities compared with the others",
        ),
        "causes": (len(result.attribution), "suites attributed to retrieval and generator"),
        "retrieval": (
            sum(item.metric.startswith(("asr/retrieval", "rrs/", "retrieval/", "stereotype-share"))
                for item in values),
            "values about documents",
        ),
        "controls": (
            len({unit.key for unit in result.plan.units if unit.is_control}),
            "pairs of neutral wording",
        ),
        "accuracy": (
            sum(item.metric.startswith("accuracy/") for item in values),
            "values of accuracy",
        ),
        "instability": (len(result.instability), "relations with repeated questions"),
        "baseline": (result.overlap.compared if result.overlap else 0, "cases compared"),
        "kill-score": (
            0 if result.kill_score is None else result.kill_score.mutants,
            "biased variants put to the policy",
        ),
        "evidence": (result.evidence.decided, f"of {result.evidence.planned} units decided"),
        "provenance": (len(result.provenance.under_test), "parts of the system by fingerprint"),
    }  # fmt: skip
    return {name: f"{number:,} {words}" for name, (number, words) in counts.items() if number}
