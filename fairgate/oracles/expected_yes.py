"""The oracle of inverted consistency: the source says anything, the follow-up is to say yes (P4).

The follow-up holds the source's response and asks whether it suits another question.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.units import Reading, Reason
from fairgate.oracles.thinking import spoken_spans
from fairgate.oracles.yes_no import YES_NO_RULE, YesNoOracle

EXPECTED_YES_RULE = f"expected-yes/1, {YES_NO_RULE}"
"""Identifies how such answers are read; `rescore` refuses another one."""


def spoken(text: str) -> str:
    """Return what a response says beside its thinking, without outer space."""
    spans, _ = spoken_spans(text)
    return " ".join(text[start:end] for start, end in spans).strip()


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
        """Return yes or no of a case that embeds a response; else the response itself."""
        if case.embeds is not None:
            return YesNoOracle().read(execution, case)
        answer_text = spoken(execution.response or "")
        if not answer_text:
            return Reading(value=None, reason=Reason.UNREADABLE)
        return Reading(value=answer_text)

    def same(self, left: Reading, right: Reading) -> bool:
        """Return whether both say the same."""
        return left.value == right.value
