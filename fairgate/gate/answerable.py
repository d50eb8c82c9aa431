"""Whether the system can answer what the suites ask: reported before a run starts."""

from __future__ import annotations

from collections.abc import Iterator

from fairgate.domain.cases import TestPlan
from fairgate.domain.wording import quoted
from fairgate.policy.schema import Policy
from fairgate.policy.yaml_nodes import Where
from fairgate.systems.catalogue import kind_of


def unanswerable(policy: Policy, plan: TestPlan) -> Iterator[tuple[Where, str]]:
    """Yield what suites ask that the system cannot answer, at the place of the system."""
    kind = kind_of(policy.system)
    can = kind.capabilities(policy.system)
    if not can.repeatable:
        return  # what a recording's system could do is not known
    scored = {case.suite for case in plan.cases if case.scored and not can.scores_options}
    handed = {
        case.suite
        for case in plan.cases
        if case.retriever not in (None, "default") and not can.takes_documents
    }
    for suite in sorted(scored):
        sentence = (
            f"suite {quoted(suite)} compares the probabilities of options (`read: scored`), which "
            f"a system of kind `{kind.id}` does not return; set `read: generated`"
        )
        yield ("system",), sentence
    for suite in sorted(handed):
        sentence = (
            f"suite {quoted(suite)} shows documents of its own, which this system does not take; "
            "give its request a place for `{{documents}}` or `takes_documents: true`, or ask with "
            "`settings: [none]` alone"
        )
        yield ("system",), sentence
