"""The option oracle: which of a case's three options an answer names, compared without case.

Letters, texts, thinking and denials are read as for question items (`choice.py`); here no option
stands for "unknown". Source: P4 section 3.1.13.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairgate.domain.cases import Case
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Execution, Stop
from fairgate.domain.units import Reading, Reason
from fairgate.relations.oracles.choice import CHOICE_RULE, Choices, choice_stop, read_choice
from fairgate.relations.oracles.folding import folded

OPTION_COUNT = 3


def option_stop(options: tuple[str, ...]) -> Stop:
    """Return what completes an answer to these options."""
    return choice_stop(options, ())


@dataclass(frozen=True, slots=True)
class OptionOracle:
    """Reads which option is named; the value is the option's text, folded."""

    @property
    def id(self) -> str:
        """Return the rule by which options are read."""
        return f"option/1, {CHOICE_RULE}"

    def stop(self) -> None:
        """Return None: every case has options, and so a stop, of its own."""

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return the option; unreadable where none or several are named.

        Raises DataError where a recorded answer was given to other options than the case's.
        """
        shown = tuple(execution.options) or case.options
        if sorted(map(folded, shown)) != sorted(map(folded, case.options)):
            raise DataError(
                f"the answer to {case.key!r:.80} of suite {case.suite!r} was given to the options "
                f"{list(shown)!r:.120}; the pair has {list(case.options)!r:.120}: record it again "
                "with the options of `fairgate plan`"
            )
        place = read_choice(execution.response or "", Choices(options=shown, unknown=-1), ())
        if place is None:
            return Reading(value=None, reason=Reason.UNREADABLE, margin=execution.margin)
        letter = "ABC"[place]
        return Reading(value=folded(shown[place]), margin=execution.margin, shown=letter)

    def same(self, left: Reading, right: Reading) -> bool:
        """Return whether both name the same option."""
        return left.value == right.value
