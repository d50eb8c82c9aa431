"""The oracle of inverted consistency: the source says anything, the follow-up is to say yes (P4).

The follow-up holds the source's response and asks whether it suits another question.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.units import Reading, Reason
from fairgate.relations.oracles.thinking import spoken
from fairgate.relations.oracles.yes_no import YES_NO_RULE, YesNoOracle

EXPECTED_YES_RULE = f"expected-yes/2, {YES_NO_RULE}"
"""Identifies how such answers are read; `rescore` refuses another one."""
RESPONDED = "responded"
"""The source's value: one whatever the words, so that repeats may answer in words of their own."""


@dataclass(frozen=True, slots=True)
class ExpectedYesOracle:
    """Reads the follow-up's yes or no; any response to the source that says something counts."""

    @property
    def id(self) -> str:
        """Return the rule by which answers are read."""
        return EXPECTED_YES_RULE

    def stop(self) -> None:
        """Return None: the cases say it, the source's answer runs to its end."""

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return yes or no of a case that embeds a response; else whether one was given."""
        if case.embeds is not None:
            return YesNoOracle().read(execution, case)
        if not spoken(execution.response or ""):
            return Reading(value=None, reason=Reason.UNREADABLE)
        return Reading(value=RESPONDED)

    def same(self, left: Reading, right: Reading) -> bool:
        """Return whether both say the same."""
        return left.value == right.value
