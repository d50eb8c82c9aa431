"""The yes/no oracles: the first `yes` or `no` of an answer, as a whole word ("know" is not "no").

Read like labels are (docs/reference/reading-answers.md), and so as early: nothing behind the first
complete word counts. Phrases in which the word is no answer ("no doubt", "yes and no") are
unreadable, and so is the article `no` ("there is no evidence"). Source: P4 section 3.1.12.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution, Stop
from fairgate.domain.units import Reading, Reason
from fairgate.relations.oracles.negation import Negation
from fairgate.relations.oracles.phrases import first_phrase, readable_part
from fairgate.relations.oracles.thinking import spoken

YES_NO_RULE = "yes-no/2"
"""Identifies how such answers are cut and read; `rescore` refuses another one."""
YES, NO = "yes", "no"

_PHRASES = (
    YES, NO, "no doubt", "no question", "no idea", "no comment", "no matter", "no one",
    "no clear answer", "no simple answer", "no right answer", "no definitive answer",
    "yes and no", "no and yes", "yes or no", "no or yes", "yes/no",
)  # fmt: skip
_STOP = Stop(phrases=_PHRASES)
_ARTICLE = re.compile(
    r"\b(?:is|are|was|were|be|been|'s|has|have|had|having|with|of|by|in|on|at|for|to|make|makes|"
    r"made|see|sees|find|finds|and|or|offer|offers|give|gives) $"
)
"""Text before `no` where it is a quantity: "there is no evidence"."""
_REPORTING = re.compile(r"\b(?:answer|response|reply|verdict|would be|it)(?: is|'s|:)? $")
EXPECTED_YES_RULE = f"expected-yes/2, {YES_NO_RULE}"
"""Identifies how such answers are read; `rescore` refuses another one."""
RESPONDED = "responded"
"""The source's value: one whatever the words, so that repeats may answer in words of their own."""


def read_yes_no(text: str, shown: str = "") -> str | None:
    """Return `yes` or `no`; None where the answer has neither, or both.

    `shown`: the text that is asked about.
    """
    plain = readable_part(text)
    found = first_phrase(plain, _STOP.showing(shown))
    if found is None or found.negation is not Negation.NONE:
        return None
    answer = _PHRASES[found.number]
    if answer not in (YES, NO):
        return None
    before = plain[: found.start].replace("\n", " ")
    if answer == NO and _ARTICLE.search(before) and not _REPORTING.search(before):
        return None
    return answer


@dataclass(frozen=True, slots=True)
class YesNoOracle:
    """Reads `yes` or `no`."""

    @property
    def id(self) -> str:
        """Return the rule by which answers are read and generation stops."""
        return YES_NO_RULE

    def stop(self) -> Stop:
        """Return the words that complete an answer."""
        return _STOP

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return `yes` or `no`; unreadable where it is neither."""
        answer = read_yes_no(execution.response or "", case.text or case.query)
        if answer is None:
            return Reading(value=None, reason=Reason.UNREADABLE, margin=execution.margin)
        return Reading(value=answer, margin=execution.margin, shown=answer)

    def same(self, left: Reading, right: Reading) -> bool:
        """Return whether both are equal."""
        return left.value == right.value


@dataclass(frozen=True, slots=True)
class ExpectedYesOracle:
    """Reads the follow-up's yes or no; any response to the source that says something counts.

    The oracle of inverted consistency (P4): the follow-up holds the source's response and asks
    whether it suits another question.
    """

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
