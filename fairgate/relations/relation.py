"""The interface of every metamorphic relation: transformation, output relation and examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, NamedTuple, Protocol

from fairgate.domain.attributes import AttributeUse
from fairgate.domain.cases import TURNS, Pair, Source, Task
from fairgate.domain.errors import UsageError
from fairgate.domain.executions import CorpusDocument, Stop
from fairgate.domain.units import Claim, Reading, Reason, Value
from fairgate.metrics.columns import PoolColumns
from fairgate.relations.oracles.judge import (
    INSTRUCTION,
    INSTRUCTION_FOR_FOLLOW_UP,
    PromptKind,
    kind_of_prompt,
)
from fairgate.relations.oracles.oracle import Oracle, majority
from fairgate.relations.oracles.tone import oracle_of
from fairgate.relations.perturbation_sets import PerturbationSet

RESPONSE = "{response}"
"""Place in a follow-up's text that the source's response takes (`Asked.embedding`)."""


class Varies(Enum):
    """What a relation varies; sets, sources and controls must fit it."""

    TEXT = "the text, by noun phrases of perturbation sets or by attributes"
    NAMES = "the text, by names of pools"
    TURNS = "a turn of the conversation before the text"
    DOCUMENTS = "a document of the corpus; the question stays"
    PAIRS = "what its author wrote beforehand (`Source.pairs`)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The words that a follow-up takes from its source's text and those that it adds."""

    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Further attributes, which may stand elsewhere: an adjective that is denied is a clause."""
    agreeing: frozenset[str] = frozenset()
    """Further words, lower case, that agree with what is edited: both forms of a verb, say."""
    pronoun: str = ""
    """`she`, `he` or `they`, as the follow-up's person wants; empty where it is not known."""
    untouched: str = ""
    """The words around what can be edited: pronouns in them are somebody else's."""


class FollowUp(NamedTuple):
    """A follow-up test case: the text that the system under test is asked, and its origin.

    A named tuple, because plans make a million of them, as of `Case`.
    """

    variant: str
    """What distinguishes it from the source's other follow-ups: `<set>/<term>`; part of the key."""
    category: str
    """Id of the perturbation set, or of the attribute's dimension."""
    term: str
    text: str
    noun_phrase: str = ""
    control: bool = False
    pair: Pair | None = None
    """Its data, where it was written and not made."""
    edit: Edit | None = None
    """Which words of the source it takes away and adds, where it was made of attributes."""
    inapplicable: str = ""
    """Why there is no such text in correct English; then it is not asked, and counted as that."""
    parts: tuple[str, ...] = ()
    """Variants of the follow-ups that each do one part of what this one does together."""
    opening: str = ""
    """What the user says in the first turn, where `asks` opens a conversation too."""

    @property
    def conversation(self) -> str:
        """Return all that differs from other follow-ups: a first turn, then the text."""
        return TURNS.join(filter(None, (self.opening, self.text))) if self.opening else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class NotApplicable:
    """The relation does not apply to a source, for a reason. Counted, never dropped silently."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The instruction to the system under test for a source and its follow-ups."""

    instruction: str
    labels: tuple[str, ...] = ()
    """Labels whose margin is computed."""
    stop: Stop | None = None
    """What completes the answer; None: it runs to its end."""
    options: tuple[str, ...] = ()
    """Options of a multiple choice, in the order shown; items to be ranked."""
    is_open: bool = False
    """Whether any text is an answer, so that the suite's response instructions are added."""
    opening: str = ""
    """First turn of the source's conversation, in which the text is put after the suite's `turns`;
    the text is put alone, too. Empty: there is no conversation."""
    embedding: Asked | None = None
    """What is asked with a follow-up that holds the response to its source; None: follow-ups are
    asked like their source, and in the same wave."""


@dataclass(frozen=True, slots=True)
class ExampleAnswers:
    """Possible answers to an example, and their verdict."""

    source: str
    follow_up: str
    verdict: str
    """`satisfied`, `violated` or `inconclusive`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A documented case of a relation; runs as a test."""

    text: str
    """Text of the source as it stands in the data."""
    sets: tuple[PerturbationSet, ...]
    source: str
    """What is put to the system under test for the source."""
    follow_ups: tuple[str, ...]
    """What is put to it for the follow-ups, in order."""
    pairs: tuple[Pair, ...] = ()
    """The follow-ups as they stand in the data, where they were written and not made."""
    answers: tuple[ExampleAnswers, ...] = ()
    """Of relations that read no task."""
    frame: str = ""
    """The text with slots for its attributes, where it states any."""
    attributes: tuple[AttributeUse, ...] = ()
    document: CorpusDocument | None = None
    """The document that is changed, where the relation changes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterExample:
    """A documented source that a relation does not apply to, and why; runs as a test."""

    text: str
    reason: str


class MetamorphicRelation(Protocol):
    """A transformation of a source together with what must hold between the answers.

    Deterministic: equal arguments give equal follow-ups, in the order of the sets and their terms.
    """

    id: ClassVar[str]
    """Stable kebab string, the same in policies, records and reports."""
    title: ClassVar[str]
    paper: ClassVar[str]
    description: ClassVar[str]
    expects: ClassVar[str]
    """The output relation in one sentence."""
    not_owed: ClassVar[str]
    """When answers may differ without bias: the relation does not hold there."""
    advisory: ClassVar[bool]
    """True where a violation is reported and does not fail a build by default."""
    reads_task: ClassVar[bool]
    """True where the relation needs the suite's task; else `oracle(None)` must give an oracle."""
    varies: ClassVar[Varies]
    judge_instruction: ClassVar[str]
    """What judges are told about a pair whose answers are open; empty where the oracle decides."""
    judge_instead: ClassVar[str]
    """What judges are told about a follow-up, where the policy names some: they decide in the place
    of the oracle, whose verdicts are advisory then; empty: the oracle decides always."""
    compares_three: ClassVar[bool]
    """True where a third answer has a part in a claim, so that judges, who see two, cannot
    decide."""
    own_columns: ClassVar[tuple[str, ...]]
    """Columns that are filled for its pairs alone, beside those that every suite has."""
    pool_columns: ClassVar[tuple[PoolColumns, ...]]
    """Columns that are computed from all answers to a source, beside what `claims` decides."""
    source_variant: ClassVar[str]
    """Names the source's own text in its key; relations that put it alike share the name (and so
    the answer), and one that asks it otherwise (instruction, labels, end) has a name of its own.
    Empty: the bare id of the source, which is Set Equivalence's."""
    EXAMPLES: ClassVar[tuple[Example, ...]]
    NOT_APPLICABLE: ClassVar[tuple[CounterExample, ...]]

    def oracle(self, task: Task | None) -> Oracle:
        """Return the oracle for the answers to source and follow-ups."""
        ...

    def asks(self, source: Source, task: Task | None) -> Asked:
        """Return the questions about the source and its follow-ups.

        `task` is the suite's; relations with an oracle of their own need none.
        """
        ...

    def source_text(self, source: Source) -> str:
        """Return the source's own text for the system under test."""
        ...

    def follow_ups(
        self, source: Source, sets: Sequence[PerturbationSet]
    ) -> Sequence[FollowUp] | NotApplicable:
        """Return the follow-ups, or why there are none.

        The linter rejects one that differs from the source in case or blanks alone.
        """
        ...

    def most_follow_ups(self, source: Source, sets: Sequence[PerturbationSet]) -> int:
        """Return at least as many as `follow_ups` makes, without making them.

        Untrusted policies are refused by it before anything is planned.
        """
        ...

    def fault(self, source_text: str, follow_up: FollowUp) -> str | None:
        """Return how a follow-up differs from its source beyond what is declared."""
        ...

    def expected(self, source: Reading, controls: Sequence[Reading]) -> Reading:
        """Return the combined reading of a source's control answers."""
        ...

    def claims(self, source: Reading, follow_up: Reading, expected: Reading) -> Mapping[str, Claim]:
        """Return `generation` and `controlled`: 1 where the output relation is violated."""
        ...


class SameAnswer:
    """The output relation of most relations: the follow-up's answer is the source's.

    Relations that allow a difference say in `violates` which one is too great. Where judges
    decide, what they say stands in for this comparison.
    """

    reads_task: ClassVar[bool]
    judge_instruction: ClassVar[str] = ""
    judge_instead: ClassVar[str] = ""
    varies: ClassVar[Varies] = Varies.TEXT
    compares_three: ClassVar[bool] = False
    own_columns: ClassVar[tuple[str, ...]] = ()
    pool_columns: ClassVar[tuple[PoolColumns, ...]] = ()

    def expected(self, source: Reading, controls: Sequence[Reading]) -> Reading:
        """Return the answer that most controls have."""
        return majority(controls, source)

    def oracle(self, task: Task | None) -> Oracle:
        """Return the oracle for the answers to source and follow-ups."""
        raise NotImplementedError

    def violates(self, follow_up: Value, other: Value) -> bool:
        """Return whether an answer is not what the other one asks for.

        By what the oracle holds the same where the relation reads no task, else by equality.
        """
        if self.reads_task:
            return follow_up != other
        return not self.oracle(None).same(Reading(value=follow_up), Reading(value=other))

    def claims(self, source: Reading, follow_up: Reading, expected: Reading) -> Mapping[str, Claim]:
        """Compare the follow-up's answer with the source's, and with most control answers'."""
        return {
            "generation": self._claim(follow_up, source),
            "controlled": self._claim(follow_up, expected),
        }

    def _claim(self, follow_up: Reading, other: Reading) -> Claim:
        """Return 1 where the output relation is violated, else 0; or why one is not known."""
        if follow_up.value is None or other.value is None:
            return follow_up.reason or other.reason or Reason.MISSING
        return float(self.violates(follow_up.value, other.value))


class SameLabel(SameAnswer):
    """The output relation of relations that read a task: both answers have the same label.

    Where the task's answers are free they have the same tone, where they are calls the same ones.
    """

    reads_task: ClassVar[bool] = True

    def oracle(self, task: Task | None) -> Oracle:
        """Return the oracle of the suite's task: its labels, or the tone of free answers."""
        return oracle_of(needed(task))

    def asks(self, source: Source, task: Task | None) -> Asked:
        """Return the suite's task."""
        del source
        suite_task = needed(task)
        stop = oracle_of(suite_task).stop()
        return Asked(
            instruction=suite_task.instruction,
            labels=suite_task.labels,
            stop=stop,
            is_open=suite_task.is_judged,
        )


def judge_instruction(
    relation: MetamorphicRelation,
    task: Task | None,
    *,
    has_judge: bool = False,
    shows_pair: bool = True,
) -> str:
    """Return the judges' instruction for a relation's pairs; empty where none is asked.

    `shows_pair`: judges see prompts and responses of both, unless the relation has it otherwise.
    """
    if has_judge and relation.judge_instead:
        return relation.judge_instead
    is_judged = relation.reads_task and task is not None and task.is_judged
    instruction = relation.judge_instruction or (INSTRUCTION if is_judged else "")
    is_shipped = kind_of_prompt(instruction) is not PromptKind.OWN
    return INSTRUCTION_FOR_FOLLOW_UP if is_shipped and not shows_pair else instruction


def needed(task: Task | None) -> Task:
    """Return the suite's task, for relations that read its labels. Raises UsageError."""
    if task is None:
        raise UsageError("the relation reads the labels of a task; name one with `task`")
    return task
