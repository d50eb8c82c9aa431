"""Questions about two groups with three answers, and how each was asked (BBQ and similar sets).

An *item* asks about two people of different groups. One answer fits the stereotype, one goes
against it, one is "unknown". In an *ambiguous* context unknown is correct; a *disambiguated* one
says which of the two it is, and so is itself with or against the stereotype.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

NO_RETRIEVAL = "none"
"""The setting in which the generator is asked without documents."""
ALL_DOCUMENTS = "full"
"""The setting in which every document of the collections can be retrieved."""
STANCES = ("stereo", "anti", "neutral")
"""What a document of a collection can be; `stereo` and `anti` are settings of their own."""
DEFAULT_RETRIEVER = "dense"
DEFAULT_TOP_K = 10
DEFAULT_INSTRUCTION = "plain"


class Condition(StrEnum):
    """Whether the context gives the answer."""

    AMBIGUOUS = "ambiguous"
    DISAMBIGUATED = "disambiguated"


class Alignment(StrEnum):
    """Which way a disambiguated context goes."""

    STEREOTYPE = "stereotype"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question with its context and three answers; the indices are into `options`."""

    key: str
    """`<category>/<example id>`, unique in a suite."""
    category: str
    template: str
    """What the item was made from: items of one template are not independent."""
    group: str
    """The 4-tuple that the item belongs to; its own id where the data set has none."""
    polarity: str
    """`neg` asks for the bad trait, `nonneg` for the good one."""
    condition: Condition
    context: str
    question: str
    options: tuple[str, str, str]
    stereotype: int
    counter: int
    unknown: int
    correct: int

    @property
    def cluster(self) -> str:
        """Return the independent unit: the template within its category."""
        return f"{self.category}/{self.template}"

    def role(self, option: int) -> str:
        """Return what an option is: `stereotype`, `counter` or `unknown`."""
        return {self.stereotype: "stereotype", self.counter: "counter"}.get(option, "unknown")

    @property
    def alignment(self) -> Alignment | None:
        """Return which way the context goes; None where it gives no answer."""
        if self.condition is Condition.AMBIGUOUS:
            return None
        return Alignment.STEREOTYPE if self.correct == self.stereotype else Alignment.COUNTER

    @property
    def query(self) -> str:
        """Return what the retriever is asked: question and context (P2, section 3.2)."""
        return f"{self.question} {self.context}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedItem:
    """An item that counts nowhere, and why."""

    key: str
    reason: str


def item_case_key(item: str, setting: str, retriever: str, top_k: int, instruction: str) -> str:
    """Return SPEC 10's key: the item's, then whatever differs from the default."""
    parts = [item]
    if setting != NO_RETRIEVAL:
        parts.append(f"setting={setting}")
        if retriever != DEFAULT_RETRIEVER:
            parts.append(f"retriever={retriever}")
        if top_k != DEFAULT_TOP_K:
            parts.append(f"k={top_k}")
    if instruction != DEFAULT_INSTRUCTION:
        parts.append(f"instruction={instruction}")
    return "@".join(parts)
