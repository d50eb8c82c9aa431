"""Units, the assessed items of every kind of suite: how their answers were read, and their claims.

A *unit* is a pair of source and follow-up, a question item as it was asked, or whatever else a kind
of suite judges. Its *claims* are the columns of the suite's one table; metrics, comparisons and
baselines know claims and dimensions, never the kind.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class Arm(StrEnum):
    """Which arm of its suite a unit belongs to."""

    TEST = "test"
    CONTROL = "control"
    """The control arm: prompts of the same shape, no demographic."""


class Reason(StrEnum):
    """Why something is not decided."""

    MISSING = "missing"
    """There is no answer (a recording lacks the key)."""
    UNREADABLE = "unreadable"
    """The answer contains nothing that the oracle reads."""
    UNSTABLE = "unstable"
    """The answer changed between repeats, or its margin is below `unstable_margin`."""
    NO_MAJORITY = "no-majority"
    """The source's control answers have no majority."""
    NO_CONTROLS = "no-controls"
    """None of the source's control answers is readable."""
    NO_DOCUMENTS = "no-documents"
    """The documents of source or follow-up are not known."""
    NO_LABELS = "no-labels"
    """A retrieved document carries no label."""
    NO_TOXIC_LABEL = "no-toxic-label"
    """No retrieved document of the suite has a label that is known as toxic."""
    NO_TEXT = "no-text"
    """A retrieved document's text is not known, so it has no embedding."""
    NO_STANCE = "no-stance"
    """A retrieved document's stance is neither stereo nor anti nor neutral."""
    NO_RETRIEVAL = "no-retrieval"
    """The unit was asked without documents."""
    NO_ORDER = "no-order"
    """The order in which the options were shown is not known."""
    UNEQUAL_DEPTH = "unequal-depth"
    """Source and follow-up were given different numbers of documents."""
    NOT_ASKED = "not-asked"
    """The suite asks for no answers (`retrieve_only`)."""
    NOT_TAKEN = "not-taken"
    """The system was given a changed document and returned it as it was."""
    NOT_RETRIEVED = "not-retrieved"
    """The document is missing from the list of source or follow-up."""
    NO_RANK = "no-rank"
    """The relation's answers are not the labels that the task puts in order."""
    NO_COMBINATION = "no-combination"
    """The follow-up changes one attribute, not two."""
    NO_CONVERSATION = "no-conversation"
    """The follow-up is no turn of a conversation."""
    NO_VERDICT = "no-verdict"
    """The judges gave no verdict that can be read, or none that most of them share."""
    INDETERMINABLE = "indeterminable"
    """The judges say that the responses do not suffice to tell."""
    CALLED_INVALID = "called-invalid"
    """The judges say that a prompt or a response cannot be used, and not the same of the two."""
    INVALID_PROMPT = "invalid-prompt"
    """The judges say that a prompt cannot be used."""
    INVALID_RESPONSE = "invalid-response"
    """The judges say that a response cannot be used."""
    NO_DEGREES = "no-degrees"
    """It is not known how probable the labels are."""
    LOW_MASS = "low-mass"
    """The scored forms have too little of the probability: the answer counts by its label alone."""
    NO_REFERENCE = "no-reference"
    """The reference has no answer to the same question."""
    NO_BASE = "no-base"
    """The reference is the base commit's system, and no base commit is known."""
    OTHER_RELATION = "other-relation"
    """The column belongs to another relation."""
    FEW_ANSWERS = "few-answers"
    """Too few answers to the same source are there to compare with."""
    ALL_ALIKE = "all-alike"
    """The embedder holds unrelated sentences in the answers' script nearly alike."""


UNREPORTED = "the system does not report which documents it retrieved"
"""Why nothing is said of documents, where no answer comes with any."""
UNREPORTED_TEXTS = "the system does not report the texts of its documents"
"""Why nothing is said of what answers rest on, where documents come without their texts."""

REASON_WORDS: Mapping[Reason, str] = {
    Reason.MISSING: "no answer",
    Reason.UNREADABLE: "unreadable answers",
    Reason.UNSTABLE: "unstable answer",
    Reason.NO_MAJORITY: "answers to control prompts without a majority",
    Reason.NO_CONTROLS: "no readable answer to a control prompt",
    Reason.NO_DOCUMENTS: "documents not known",
    Reason.NO_LABELS: "a document without a label",
    Reason.NO_TOXIC_LABEL: "no label known as toxic",
    Reason.NO_TEXT: "a document without its text",
    Reason.NO_STANCE: "a document without a stance",
    Reason.NO_RETRIEVAL: "asked without documents",
    Reason.NO_ORDER: "order of the options not known",
    Reason.UNEQUAL_DEPTH: "different numbers of documents",
    Reason.NOT_ASKED: "no answer asked for",
    Reason.NOT_TAKEN: "changed document returned as it was",
    Reason.NOT_RETRIEVED: "document not found both times",
    Reason.NO_RANK: "answer without a place in the order",
    Reason.NO_COMBINATION: "no combination of attributes",
    Reason.NO_CONVERSATION: "not asked in a conversation",
    Reason.NO_VERDICT: "without a judge's verdict",
    Reason.INDETERMINABLE: "called indeterminable by the judge",
    Reason.CALLED_INVALID: "called invalid by the judge",
    Reason.INVALID_PROMPT: "prompt called invalid by the judge",
    Reason.INVALID_RESPONSE: "response called invalid by the judge",
    Reason.NO_DEGREES: "degrees not known",
    Reason.LOW_MASS: "too little of the probability in the scored forms",
    Reason.NO_BASE: "no base commit known",
    Reason.NO_REFERENCE: "no answer of the reference",
    Reason.OTHER_RELATION: "of another relation",
    Reason.FEW_ANSWERS: "too few answers to compare with",
    Reason.ALL_ALIKE: "in a script that the embedder cannot tell sentences apart in",
}
"""The wording for readers."""
_COUNTABLE = (Reason.UNSTABLE, Reason.NO_CONTROLS)
"""Whose wording has a plural in -s; that of the others says what a case lacks."""


def counted(reasons: Mapping[Reason, int]) -> str:
    """Return `72 unstable answers, 3 no answer`, the commonest first."""
    return ", ".join(
        f"{number:,} {REASON_WORDS[reason]}{'s' if number != 1 and reason in _COUNTABLE else ''}"
        for reason, number in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    )


EVERY_ATTRIBUTE = "all attributes"
"""Category of units that change all attributes of a person at once; no set can be called so."""
TOGETHER = "+"
"""Between the dimensions of units that change two attributes at once."""
Value = str | float | tuple[str, ...]
"""What an oracle reads: a label or an option, a score, a ranking."""
Claim = float | Reason
"""True is 1.0: everything that is claimed of a unit is a number, or not decided for a reason."""


class CaseKeys(Mapping[str, str]):
    """Role to the key of the case that is asked for it, in half the memory of a dictionary.

    A plan of a million pairs has a million of them, and their roles are the same few.
    """

    __slots__ = ("_keys", "_positions")

    def __init__(self, positions: Mapping[str, int], keys: tuple[str, ...]) -> None:
        """Take the keys, and the position of each role among them, which units share."""
        self._positions = positions
        self._keys = keys

    def __getitem__(self, role: str) -> str:
        """Return the key of a role's case. Raises KeyError."""
        return self._keys[self._positions[role]]

    def __iter__(self) -> Iterator[str]:
        """Yield the roles."""
        return iter(self._positions)

    def items(self) -> ItemsView[str, str]:
        """Return the roles with their keys, several times as fast as a look-up for each role."""
        return {role: self._keys[place] for role, place in self._positions.items()}.items()

    def __len__(self) -> int:
        """Return how many cases are asked."""
        return len(self._keys)

    def __repr__(self) -> str:
        """Return it as the mapping that it is."""
        return repr(dict(self))


class Unit(NamedTuple):
    """What a suite judges, before anything is answered."""

    key: str
    """Unique in the suite; written and parsed in `domain/cases.py`."""
    asks: Mapping[str, str]
    """Role to the key of the case that is asked for it (`source`, `follow-up`, `answer`)."""
    dimensions: Mapping[str, str]
    """`relation`, `category`, `term`, `setting`, …: what slices and rules can name."""
    content: str
    """Short hash of everything that was asked: units of equal key and content are compared."""
    suite: str
    cluster: str
    """The independent unit that it belongs to: its source, or for BBQ its template."""
    follows: str | None = ""
    """What a right answer depends on; empty: the cluster. None: nothing, so that equal answers to
    all units are no sign of a system that does not read them."""
    arm: Arm = Arm.TEST
    advisory: bool = False
    """Whether it counts only where a rule names its relation: equal answers are not quite owed."""
    verdicts: tuple[str, ...] = ()
    """Keys of the cases that judges are asked about it; empty where the answers decide."""
    is_unproven: bool = False
    """Whether those judges have no sufficient record: what they say is reported, and fails no
    build."""
    names: Mapping[str, str] = MappingProxyType({})
    """How reports name parts of the unit: `noun_phrase`, say."""

    @property
    def is_control(self) -> bool:
        """Return whether the unit belongs to the control arm."""
        return self.arm is Arm.CONTROL


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An answer as the oracle read it; `value` None says why in `reason`."""

    value: Value | None
    reason: Reason | None = None
    margin: float | None = None
    """Nats between the answer and the next best one; None where it is not known."""
    shown: str = ""
    """How the value was shown to the model: the letter of an option, where letters were shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessed:
    """A unit with everything that was decided about it."""

    unit: Unit
    readings: Mapping[str, Reading]
    """By role; what is not asked but follows (`controls`) may stand here too."""
    claims: Mapping[str, Claim]
    """Name of the column to its value; every unit of a suite has the same names."""
    decisive: str
    """Name of the claim that says whether the unit counts as decided."""

    @property
    def decision(self) -> Claim:
        """Return the decisive claim's value."""
        return self.claims[self.decisive]
