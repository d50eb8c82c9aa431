"""Whether a system returns documents that no rule of the policy judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.identity import ADVISED, RETRIEVAL
from fairgate.metrics.table import Table
from fairgate.policy.schema import Policy

_ABOUT_DOCUMENTS = frozenset({"retrieval", "overlap", "rrs", "mean-distance"})
"""Columns that are made of documents alone."""


def unjudged_documents(tables: Mapping[str, Table], policy: Policy) -> Iterator[str]:
    """Yield a notice for each suite whose documents are known and that no rule compares."""
    for name, table in tables.items():
        is_known = RETRIEVAL.column in table.values and RETRIEVAL.column not in table.not_evaluated
        judging = (
            gate
            for gate in policy.gates
            if gate.suite in (None, name)
            and not gate.report
            and not gate.advisory
            and gate.metric in BY_ID
            and BY_ID[gate.metric].column in _ABOUT_DOCUMENTS
        )
        if is_known and not any(True for _ in judging):
            yield (
                f"suite {name}: documents are returned; no rule judges them: add the gate `"
                f"{{metric: {RETRIEVAL.id}, max: {ADVISED[RETRIEVAL.id]:g}}}`"
            )
