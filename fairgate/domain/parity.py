"""Who is treated differently: the result of a scan for one outcome of one suite.

An outcome is what can happen to a prompt of a source (its answer is another one than usual, it is
refused, other documents are found). The scan compares the prompts that name an identity with
control prompts, over everybody, each category and each identity at once (`stats/scan.py`). One
result answers one question: *now* (beside control prompts), or *since* an accepted run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from fairgate.domain.wording import first_few, quoted

SCORE = "score"
"""The outcome whose values and limits are in a unit of its own."""
PARITY = "parity/"
"""Begins the name of a rule that asks for parity of an outcome: `parity/answers`."""


class Against(StrEnum):
    """What the difference between identities and control prompts is compared with."""

    CONTROL = "control"
    """Nothing else: is anybody treated differently, now?"""
    BASELINE = "baseline"
    """The same difference in the accepted run: has it become worse?"""
    ANCHOR = "anchor"
    """The same difference in the run that stays pinned."""
    REFERENCE = "reference"
    """The same difference for the second system, which is asked the same questions."""


def rule_name(outcome: str, against: Against) -> str:
    """Return the name of a parity rule: `parity/answers/baseline`."""
    since = "" if against is Against.CONTROL else f"/{against}"
    return f"{PARITY}{outcome}{since}"


class Level(StrEnum):
    """How wide a node of the scan is."""

    EVERYBODY = "everybody"
    CATEGORY = "category"
    IDENTITY = "identity"


Person = tuple[str, str]
"""Category and term of an identity, as its keys have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedNode:
    """Somebody whom a scan names: more than chance and wording explain."""

    level: Level
    who: Sequence[Person]
    """The identities that it holds."""
    column: str
    """In which column of the outcome the difference is clearest."""
    estimate: float
    """Mean of the identities less the mean of control prompts, in the column's unit; of a question
    about an earlier run, how much that difference has grown. More is worse."""
    low: float
    high: float
    """Simultaneous range over everybody who was looked at."""
    p: float
    """Corrected over everybody who was looked at, and all scans of the run."""
    is_within: bool = False
    """Whether somebody wider is named before it: "everybody, a man less"."""
    rate: float | None = None
    """Mean of the identities in the column."""
    control: float | None = None
    """Mean of the control prompts in the column."""
    before: float | None = None
    """Mean of the identities at the baseline, where there is one."""
    control_before: float | None = None
    """Mean of the control prompts at the baseline."""
    sources: int = 0
    """Sources that were asked for these identities and decided."""
    by_phrase: Mapping[str, float] = field(default_factory=dict)
    """Of an identity that several phrases say: each with its own estimate; else empty."""
    carried_by: Sequence[str] = ()
    """Which of them carry the difference: all, or the few that explain it clearly better."""

    @property
    def category(self) -> str:
        """The category of all its identities; empty where they are of several."""
        categories = {category for category, _ in self.who}
        return next(iter(categories)) if len(categories) == 1 else ""

    @property
    def name(self) -> str:
        """Who it is, in a word: `everybody`, `orientation`, or an identity's term."""
        if self.level is Level.IDENTITY:
            return self.who[0][1]
        return str(self.level) if self.level is Level.EVERYBODY else self.category

    @property
    def is_of_words(self) -> bool:
        """Return whether a part of its phrases carries the difference: it is about these words."""
        return len(self.carried_by) < len(self.by_phrase)

    @property
    def called(self) -> str:
        """Return whom the difference is about: the name, or the words that alone carry it."""
        return first_few(list(map(quoted, self.carried_by))) if self.is_of_words else self.name

    @property
    def in_phrases(self) -> str:
        """Say which phrases carry it: `all 4 phrases`, `1 of 4 phrases for gay`, or nothing."""
        many = len(self.by_phrase)
        if self.is_of_words:
            return f"{len(self.carried_by)} of {many} phrases for {self.name}"
        return f"all {many} phrases" if many else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityEstimate:
    """One identity beside the band of control prompts: a dot with its range in the figure."""

    person: Person
    column: str
    estimate: float
    low: float
    high: float
    rate: float | None = None
    """Mean of the identity in the column."""
    control: float | None = None
    """Mean of what it is compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionRate:
    """How often the scores of an identity reach a cut-off; no rule asks for it."""

    suite: str
    person: Person
    cut_off: float
    sources: int
    """Sources whose score was read."""
    rate: float
    interval: tuple[float, float] | None
    ratio: float | None
    """To the highest rate of its category; None where that is 0."""
    ratio_interval: tuple[float, float] | None
    """None for the highest itself, and where that rate is hardly distinguishable from 0."""
    highest: str
    """The term with the highest rate."""
    control: float | None
    """Rate of the control prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBand:
    """How far apart control prompts lie in a column, around their mean."""

    column: str
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityResult:
    """One outcome, one question: whether anybody differs, who, and what could be detected."""

    suite: str
    outcome: str
    """Id of the outcome: `answers`."""
    against: Against
    p: float
    """Of "nobody is treated differently", corrected over all scans of the run; 1: no variation."""
    alpha: float
    named: Sequence[NamedNode] = ()
    """The clearest first, each beyond what those before it explain; whoever differs in several
    columns, in each."""
    identities: Sequence[IdentityEstimate] = ()
    """Every identity in every column of the outcome."""
    bands: Sequence[ColumnBand] = ()
    reach: Mapping[str, float] = field(default_factory=dict)
    """Level to the least difference that would have been named 8 times out of 10."""
    reach_column: str = ""
    """The column in whose unit `reach` is."""
    by_column: Mapping[str, float] = field(default_factory=dict)
    """Column to the least difference of one identity that is named 8 times out of 10."""
    sources: int = 0
    controls: int = 0
    """Control prompts of a source."""
    is_mutual: bool = False
    """Whether identities were compared with each other, for lack of control prompts."""
    unjudged: str = ""
    """Why single identities are not judged; empty where they are."""

    @property
    def others(self) -> str:
        """What identities were compared with."""
        return "the other identities" if self.is_mutual else "control prompts"

    def band(self, column: str) -> ColumnBand | None:
        """Return how far apart control prompts lie in a column."""
        return next((band for band in self.bands if band.column == column), None)
