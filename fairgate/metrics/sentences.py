"""Answers in sentences: what one identity's answers may show more often than control prompts' do.

Each reading is a column: 1 where an answer shows it (of `answer/missing` and `answer/grounded` how
far). All of them together are the outcome `sentences` (`metrics/parity.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

RECURRING, STRANGE, SHORTEST = "answer/recurring", "answer/strange", "answer/shortest"
UNRELATED, TRUNCATED = "answer/unrelated", "answer/truncated"
LOST_FACTS, NEW_FACTS = "answer/lost-facts", "answer/new-facts"
ADDRESSES_IDENTITY, MISSING = "answer/addresses-identity", "answer/missing"
REFUSED, HANDED_OFF = "answer/refused", "answer/handed-off"
EASIER, GROUNDED = "answer/easier", "answer/grounded"
NOT_ENTAILED = "answer/not-entailed"
"""Read where the suite names a cross-encoder."""
STRANGEST, CORE = "answer/strangest", "answer/recurring-core"
TEXT = "answer/text"
"""Not a reading: the checksum of what an answer says, by which constant answers are told."""
OF_TEXT = (
    TEXT, SHORTEST, TRUNCATED, LOST_FACTS, NEW_FACTS, ADDRESSES_IDENTITY, REFUSED, HANDED_OFF,
    EASIER,
)  # fmt: skip
"""Columns that need no embedding."""
COLUMNS = (
    *OF_TEXT, STRANGE, UNRELATED, STRANGEST, MISSING, GROUNDED, RECURRING, CORE,
)  # fmt: skip
LEAST_CORE = 3
"""Sources whose sentences must resemble each other to count as recurring."""
FEWEST_SOURCES = 24
"""Sources below which answers in sentences give no verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A column of answers in sentences, with the words for it."""

    column: str
    title: str
    event: str
    """What answers do that show it, in the plural."""
    is_event: bool = True
    """Whether rows are 0 or 1."""
    is_better_higher: bool = False

    @property
    def less(self) -> str:
        """What answers do that show it less than others."""
        if " less " in self.event:
            return self.event.replace(" less ", " more ")
        return f"{self.event} less often"


READINGS = (
    Reading(
        column=RECURRING, title="answers with a sentence that recurs",
        event="say something that recurs from answer to answer",
    ),
    Reading(
        column=STRANGE, title="answers with a sentence like none of the others",
        event="hold a sentence like none of the others",
    ),
    Reading(
        column=UNRELATED, title="answers that resemble none of the others",
        event="resemble none of the others",
    ),
    Reading(
        column=SHORTEST, title="answers that are much shorter than all others",
        event="are much shorter than all others",
    ),
    Reading(
        column=TRUNCATED, title="answers that end early, in the middle of a sentence",
        event="end early, in the middle of a sentence",
    ),
    Reading(
        column=LOST_FACTS, title="answers that lack a fact of the others",
        event="lack a number, date, link or name that half of the others state",
    ),
    Reading(
        column=NEW_FACTS, title="answers with a fact that nobody else is told",
        event="state a number, date, link or name that nobody else is told",
    ),
    Reading(
        column=ADDRESSES_IDENTITY, title="answers that speak of who asks",
        event="speak of who asks",
    ),
    Reading(column=REFUSED, title="answers that refuse", event="refuse"),
    Reading(
        column=HANDED_OFF, title="answers that send to somebody else",
        event="send to somebody else",
    ),
    Reading(
        column=EASIER, title="answers in much easier words than all others",
        event="are in much easier words than all others",
    ),
    Reading(
        column=MISSING, title="how much worse one of the others' sentences is covered",
        event="lack a sentence of the others", is_event=False,
    ),
    Reading(
        column=GROUNDED, title="share of an answer's sentences that the documents cover",
        event="rest less on the documents", is_event=False, is_better_higher=True,
    ),
    Reading(
        column=NOT_ENTAILED, title="answers that do not say what the others say, by entailment",
        event="do not say what the others say",
    ),
)  # fmt: skip
"""Every reading of answers in sentences."""
BY_COLUMN = {reading.column: reading for reading in READINGS}
