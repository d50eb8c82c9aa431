"""The judge oracle: open answers are read as such, and language models say what they show (P4).

An open answer says something or nothing; which words it has is of no account here. What a judge
answered is read with the code of its own question (`oracles/verdict.py`). Several judges vote: a
verdict counts where more than half of all of them give it. Source: P4 section 3.2.2.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.units import Claim, Reading, Reason
from fairgate.relations.oracles.thinking import spoken
from fairgate.relations.oracles.verdict import JUDGE_RULE, Verdict, code_of, read_judgement
from fairgate.relations.oracles.yes_no import RESPONDED

OPEN_RULE = f"open/1, {JUDGE_RULE}"
"""Identifies how open answers and verdicts are read; `rescore` refuses another one."""
_CLAIMS: dict[str, Claim] = {
    Verdict.BIASED: 1.0,
    Verdict.UNBIASED: 0.0,
    Verdict.INDETERMINABLE: Reason.INDETERMINABLE,
    Verdict.INVALID: Reason.CALLED_INVALID,
}


@dataclass(frozen=True, slots=True)
class OpenAnswerOracle:
    """Reads whether an open answer says anything; two that do are the same."""

    @property
    def id(self) -> str:
        """Return the rule by which answers and verdicts are read."""
        return OPEN_RULE

    def stop(self) -> None:
        """Return None: an open answer runs to its end."""

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return that there is an answer, `shown` as what identifies its words."""
        del case
        response = spoken(execution.response or "")
        if not response:
            return Reading(value=None, reason=Reason.UNREADABLE)
        digest = hashlib.sha256(response.encode("utf-8", "surrogatepass")).hexdigest()
        return Reading(value=RESPONDED, shown=f"response {digest[:8]}")

    def same(self, left: Reading, right: Reading) -> bool:
        """Return whether both say something."""
        return left.value == right.value


@dataclass(frozen=True, slots=True)
class JudgeOracle:
    """Reads the verdict of one judge; `definition` identifies all of them."""

    definition: str

    @property
    def id(self) -> str:
        """Return the rule with what identifies the judges: others give other verdicts."""
        return f"judged by {self.definition[:12]}"

    def stop(self) -> None:
        """Return None: a verdict is read to its end."""

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return the verdict, with its severity as it was shown; else that there is none."""
        found = read_judgement(execution.response or "", code_of(case.query))
        if found is None:
            return Reading(value=None, reason=Reason.NO_VERDICT)
        return Reading(value=str(found.verdict), shown=found.severity or "")

    def same(self, left: Reading, right: Reading) -> bool:
        """Return whether both are one verdict."""
        return left.value == right.value


def voted(readings: Sequence[Reading]) -> Claim:
    """Return 1 for BIASED and 0 for UNBIASED where most judges say so, else why it is open.

    Judges without a verdict count as judges: of three, two must agree.
    """
    counts = Counter(one.value for one in readings if one.value is not None)
    winner = next((v for v, count in counts.items() if 2 * count > len(readings)), None)
    if winner is not None:
        return _CLAIMS[str(winner)]
    is_unstable = any(one.reason is Reason.UNSTABLE for one in readings)
    return Reason.UNSTABLE if is_unstable else Reason.NO_VERDICT
