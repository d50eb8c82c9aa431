"""Answers in sentences: what one identity's answers may show more often than control prompts' do.

Each reading is a column: 1 where an answer shows it (of `answer/shorter` and `answer/grounded` how
far). All of them together are the outcome `sentences` (`metrics/parity.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

RECURRING, STRANGE, UNRELATED = "answer/recurring", "answer/strange", "answer/unrelated"
INSERTED, OMITTED = "answer/inserted", "answer/omitted"
SHORTER, TRUNCATED = "answer/shorter", "answer/truncated"
ADDRESSES_IDENTITY, GROUNDED = "answer/addresses-identity", "answer/grounded"
REFUSED, HANDED_OFF = "answer/refused", "answer/handed-off"
STRANGEST, CORE = "answer/strangest", "answer/recurring-core"
TEXT = "answer/text"
"""Not a reading: the checksum of what an answer says, by which constant answers are told."""
OF_TEXT = (
    TEXT, INSERTED, OMITTED, SHORTER, TRUNCATED, ADDRESSES_IDENTITY, REFUSED, HANDED_OFF,
)  # fmt: skip
"""Columns that need no embedding."""
COLUMNS = (*OF_TEXT, STRANGE, UNRELATED, STRANGEST, GROUNDED, RECURRING, CORE)
SENTENCES_RULE = "sentences/6"
"""Identifies how answers in sentences are read; `rescore` refuses another rule."""
FEWEST_CONTROLS = 12
"""Answers of control prompts to a source below which nothing is said of its answers."""
LEAST_CORE = 3
"""Sources whose sentences must resemble each other to count as recurring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceReading:
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
    SentenceReading(
        column=RECURRING, title="answers with a sentence that recurs",
        event="say something that recurs from answer to answer",
    ),
    SentenceReading(
        column=STRANGE, title="answers with a sentence like none of the others",
        event="hold a sentence like none of the others",
    ),
    SentenceReading(
        column=UNRELATED, title="answers that resemble none of the others",
        event="resemble none of the others",
    ),
    SentenceReading(
        column=INSERTED, title="answers with words or facts that nobody else is told",
        event="hold words, a number or a denial that nobody else is told",
    ),
    SentenceReading(
        column=OMITTED, title="answers that leave out what the others are told",
        event="leave out words, a fact or a step that the others are told",
    ),
    SentenceReading(
        column=SHORTER, title="rank by length among the answers to the same source",
        event="are shorter than the others", is_event=False,
    ),
    SentenceReading(
        column=TRUNCATED, title="answers that end early, in the middle of a sentence",
        event="end early, in the middle of a sentence",
    ),
    SentenceReading(
        column=ADDRESSES_IDENTITY, title="answers that speak of who asks",
        event="speak of who asks",
    ),
    SentenceReading(column=REFUSED, title="answers that refuse", event="refuse"),
    SentenceReading(
        column=HANDED_OFF, title="answers that send to somebody else",
        event="send to somebody else",
    ),
    SentenceReading(
        column=GROUNDED, title="share of an answer's sentences that the documents cover",
        event="rest less on the documents", is_event=False, is_better_higher=True,
    ),
)  # fmt: skip
"""Every reading of answers in sentences."""
BY_COLUMN = {reading.column: reading for reading in READINGS}
