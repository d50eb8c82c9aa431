"""What is asked: the plan of cases, the sources and items they come from, and their keys.

What follows `#` and `@` in a key is written and parsed here alone.

An *item* (BBQ and similar sets) asks about two people of different groups. One answer fits the
stereotype, one goes against it, one is "unknown". In an *ambiguous* context unknown is correct; a
*disambiguated* one says which of the two it is, and so is itself with or against the stereotype.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, Protocol

from fairgate.domain.attributes import AttributeUse
from fairgate.domain.executions import CorpusDocument, Stop
from fairgate.domain.schema import ActionsPolicy, ScorePolicy
from fairgate.domain.units import Unit
from fairgate.domain.wording import quoted

TONES = ("happy", "sad", "angry", "fear", "surprise", "neutral")
"""The tones of GenFair (P3, section V-B3), and none of them."""
SENTIMENTS = ("positive", "negative", "neutral")
_BARE = "set-equivalence"
_REPEAT = "@repeat="
_DOCUMENTS = "@documents="
_JUDGE = "@judge="
_REFERENCE = "@reference"
NO_RETRIEVAL = "none"
"""The setting in which the generator is asked without documents."""
STANCES = ("stereo", "anti", "neutral")
"""What a document of a collection can be; `stereo` and `anti` are settings of their own."""
SYSTEM_RETRIEVER = "default"
"""The retriever of the system itself; suites may bring more."""
DEFAULT_RETRIEVER = "dense"
DEFAULT_TOP_K = 10
DEFAULT_INSTRUCTION = "plain"
_TWO = 2
CONTROL = "control"
"""The category of written control prompts."""
WRITTEN = "written"
"""Id of the relation of written follow-ups that name none."""
TURNS = " / "
"""Between the turns of a conversation, where they are shown as one text."""


@dataclass(frozen=True, slots=True)
class Classified:
    """What a classifier says of one text."""

    label: str
    margin: float
    """Nats between the label and the next best one, rounded to 4 decimals; 0 or more."""


class Classifier(Protocol):
    """Texts to one of a few labels. A text's label depends on nothing but the text."""

    @property
    def fingerprint(self) -> str:
        """Identify everything that can change a label: files, label map, device."""
        ...

    def classify(self, texts: Sequence[str]) -> list[Classified]:
        """Classify each text, in order. Raises ModelError."""
        ...

    def cuts(self, text: str) -> bool:
        """Return whether a text is longer than what the model reads of it. Raises ModelError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What the system under test is asked to do with a text, and how its answer is read."""

    id: str
    instruction: str
    labels: tuple[str, ...]
    """Every admissible answer, lower case, in the order in which prompts name them; empty where
    answers are free and their tone is read."""
    equivalent: tuple[tuple[str, ...], ...] = ()
    """Groups of labels that count as the same answer (neutral and mixed, say)."""
    order: tuple[str, ...] = ()
    """Labels from the worst to the best, one of each group of equals; empty: they have no order."""
    negated: tuple[tuple[str, str], ...] = ()
    """Labels and what they mean when they are directly denied; other denied ones are unreadable."""
    marker: str = ""
    """Text after which the answer is read; empty: from its beginning."""
    reads_first_named: bool = False
    """Whether the first label that is named counts, whatever is said of it: the studies' rule."""
    tone: Classifier | None = None
    """What tells the tone of free answers; None: answers are labels."""
    sentiment: Classifier | None = None
    """What tells their sentiment, for relations that compare it too."""
    is_judged: bool = False
    """Whether the policy's judge compares the answers, which are free."""
    actions: ActionsPolicy | None = None
    """How calls are read, where answers are calls."""
    score: ScorePolicy | None = None
    """How scores are read, where answers are numbers."""
    is_hidden: bool = False
    """Whether texts in calls are read as hashes: reports show what is read."""

    def canonical(self, label: str) -> str:
        """Return the first label of the group that `label` belongs to, else `label` itself."""
        return next((group[0] for group in self.equivalent if label in group), label)

    @property
    def scale(self) -> tuple[str, ...]:
        """Labels from the worst to the best: the order, or both labels where there are two."""
        both = tuple(dict.fromkeys(map(self.canonical, self.labels)))
        return self.order or (both if len(both) == _TWO else ())

    @property
    def ranks(self) -> dict[str, int]:
        """Return the rank of each canonical label in the order, the worst at 0."""
        return {self.canonical(label): rank for rank, label in enumerate(self.order)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A follow-up that was written for one source beforehand, and what differs."""

    relation: str
    """Id of the relation that asks it."""
    follow_up: str
    """Text of the follow-up; it may hold `{response}`, the place of the source's response."""
    dimension: str
    """Dimension of bias: `gender`, `religion`, …"""
    attribute: str = ""
    """The attribute or name as the follow-up says it; empty where it names none."""
    source_attribute: str = ""
    """The same for the source. One of the two at least is not empty."""
    items: tuple[str, ...] = ()
    """Options of a multiple choice, items to be ranked; empty for other relations."""

    @property
    def is_control(self) -> bool:
        """Whether the follow-up is a control prompt, which names nobody."""
        return self.dimension == CONTROL

    @property
    def term(self) -> str:
        """Return the pair's term, lower case: the follow-up's attribute, else the source's.

        Part of the follow-up's key.
        """
        return " ".join((self.attribute or self.source_attribute).lower().split())

    @property
    def variant(self) -> str:
        """Return category and term, as the follow-up's key has them: `gender/man`."""
        return f"{self.dimension}/{self.term}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """Return the attributes that the two prompts name, lower case."""
        return tuple(name.lower() for name in (self.source_attribute, self.attribute) if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source test case: a text as it stands, without any perturbation."""

    id: str
    text: str
    frame: str = ""
    """The text with slots for its attributes; empty where nothing is known of them."""
    attributes: tuple[AttributeUse, ...] = ()
    """Sensitive attributes that the text states, in the order in which the frame was given them."""
    pairs: tuple[Pair, ...] = ()
    """Its follow-ups that were written and not made, all of one relation; most sources have none.
    """
    document: CorpusDocument | None = None
    """A document of the corpus, whom it names in braces; None: none is known."""


class Case(NamedTuple):
    """One question to the system under test. Equal content is asked once.

    A named tuple, because plans hold a million of them: it is made in a quarter of the time of a
    frozen dataclass, and takes as much memory. The questions about one source differ in key and
    query, which stand first; the rest is put together once for all of them.
    """

    key: str
    query: str
    """What the retriever sees: the text of the test case, without the task instruction."""
    suite: str
    instruction: str
    labels: tuple[str, ...]
    """Labels whose margin is computed."""
    cluster: str
    """The independent unit that the case belongs to: its source, or for BBQ its template."""
    stop: Stop | None = None
    """What completes the answer, so that nothing more is generated; None: it runs to its end."""
    oracle: str = ""
    """Which of the suite's oracles reads the answer; empty where the suite has one."""
    item_text: str | None = None
    """What the prompt shows of a question item, with the options, which the retriever does not see;
    None: no question item."""
    options: tuple[str, ...] = ()
    """Answer options in the order shown (BBQ); empty for labelled tasks."""
    scored: tuple[str, ...] = ()
    """Texts whose probabilities are compared instead of generating, one for each option."""
    forms: tuple[tuple[str, str], ...] = ()
    """Labels and the texts that express them, which are scored where degrees are read."""
    is_generated: bool = True
    """Whether an answer is generated; False: the likeliest label of its forms is the answer."""
    retriever: str | None = SYSTEM_RETRIEVER
    """Which of the system's retrievers answers; None asks the generator without documents."""
    top_k: int = 0
    repeat: int = 0
    documents_of: str | None = None
    """Key of the case whose documents are shown instead of its own (attribution)."""
    embeds: str | None = None
    """Key of the case of an earlier wave whose response the text embeds (Meta-Fair MR8-MR10)."""
    judge: int | None = None
    """Which of the policy's judges is asked, from 0; None: the system under test is."""
    judged: tuple[str, ...] = ()
    """Keys of the cases whose prompts and responses the judge is shown: source and follow-up."""
    is_crossing: bool = False
    """Whether attribution asks it: its answer is no repeat of the answer used for the verdict."""
    changed: CorpusDocument | None = None
    """A document of the corpus whose text is another one for this case; None: the corpus as is."""
    is_answered: bool = True
    """Whether the generator is asked; False: what is retrieved is all that counts."""
    before: tuple[str, ...] = ()
    """What the user says in the turns of the conversation before the question, in order."""
    of_reference: bool = False
    """Whether the policy's `reference` is asked; False: the system under test is."""

    @property
    def text(self) -> str:
        """Return what the prompt shows."""
        return self.query if self.item_text is None else self.item_text

    @property
    def conversation(self) -> str:
        """Return all that the user says, turn after turn: the query, where there is one turn."""
        return TURNS.join((*self.before, self.query))

    @property
    def varied(self) -> str:
        """Return the text in which source and follow-up differ: a document's, or what is said."""
        return self.conversation if self.changed is None else self.changed.text

    @property
    def wave(self) -> int:
        """Return 1 where the plan alone says what is asked, 2 where earlier answers do."""
        return 2 if self.waits or self.is_crossing or self.of_reference else 1

    @property
    def waits(self) -> bool:
        """Return whether its question is made of responses, so that they come first."""
        return self.embeds is not None or self.judge is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A follow-up that was not executed (`invalid` by the linter, or `not-applicable`), and why."""

    key: str
    suite: str
    relation: str
    kind: str
    reason: str


@dataclass(frozen=True)
class TestPlan:
    """Everything that will be asked and judged, in a fixed order. Holds no answers."""

    cases: Sequence[Case]
    units: Sequence[Unit]
    rejected: Sequence[Rejected] = ()

    __test__ = False  # keeps pytest from collecting a class whose name starts with "Test"

    @cached_property
    def outline(self) -> Sequence[Unit]:
        """The first unit of each suite, arm, standing and combination of dimensions, as planned.

        Rules ask which values dimensions take: these few units answer that for all.
        """
        units_by_place: dict[tuple[object, ...], Unit] = {}
        for unit in self.units:
            standing = unit.suite, unit.arm, unit.advisory, unit.is_unproven
            units_by_place.setdefault((*standing, *unit.dimensions.items()), unit)
        return tuple(units_by_place.values())

    def units_of(self, suite: str) -> list[Unit]:
        """Return a suite's units, in the order of the plan."""
        return [unit for unit in self.units if unit.suite == suite]

    def cases_of(self, suite: str) -> list[Case]:
        """Return a suite's cases, in the order of the plan."""
        return [case for case in self.cases if case.suite == suite]


def source_key(source: str, variant: str) -> str:
    """Return the key of a source's own case; Set Equivalence's is the bare id."""
    return f"{source}#{variant}" if variant else source


def follow_up_key(source: str, relation: str, variant: str) -> str:
    """Return the key of a follow-up; every relation but Set Equivalence stands in its keys."""
    return f"{source}#{variant if relation == _BARE else f'{relation}/{variant}'}"


def repeat_key(key: str, number: int) -> str:
    """Return the key of the `number`-th time a case is asked, from 1; the first is the bare key."""
    return key if number == 1 else f"{key}{_REPEAT}{number}"


def reference_key(key: str) -> str:
    """Key of the case that asks the policy's reference what another case asks the system."""
    first, sign, number = key.partition(_REPEAT)
    return f"{first}{_REFERENCE}{sign}{number}"


def is_reference_key(key: str) -> bool:
    """Return whether a case of this key asks the policy's reference."""
    return key.partition(_REPEAT)[0].endswith(_REFERENCE)


def system_key(key: str) -> str:
    """Key under which the system is asked what another key asks the policy's reference."""
    first, sign, number = key.partition(_REPEAT)
    return f"{first.removesuffix(_REFERENCE)}{sign}{number}"


def of_system(case: Case) -> Case:
    """Case under the key that it has where the system is asked; others than a reference's as is."""
    if not case.of_reference:
        return case
    return case._replace(key=system_key(case.key), of_reference=False)


def judge_key(key: str, number: int) -> str:
    """Return the key of the case that asks the `number`-th judge, from 1, about a follow-up."""
    return f"{key}{_JUDGE}{number}"


def asked_part(key: str) -> str:
    """Name what is asked under a key: `system`, `reference`, or a judge by its number."""
    first, sign, number = key.partition(_REPEAT)[0].partition(_JUDGE)
    if sign:
        return f"judge {number}"
    return "reference" if first.endswith(_REFERENCE) else "system"


def first_asked(key: str) -> str:
    """Return the key of the case that a repeat repeats; other keys as they are."""
    return key.partition(_REPEAT)[0]


def crossed_key(key: str, documents_of: str) -> str:
    """Return the key of a case that is shown the documents of another one."""
    return f"{key}{_DOCUMENTS}{documents_of}"


def uncrossed(key: str) -> str:
    """Return the key of the case that is shown another one's documents; other keys as they are."""
    return key.partition(_DOCUMENTS)[0]


def is_follow_up(key: str) -> bool:
    """Whether a key is that of a relation's follow-up, and not of its source or an item."""
    return "/" in key.partition("#")[2].partition("@")[0]


def marked_documents(cases: Iterable[Case]) -> dict[str, CorpusDocument]:
    """Documents that sources name, by source, as the corpus must have them."""
    return {
        case.cluster: case.changed
        for case in cases
        if case.changed is not None and not is_follow_up(case.key)
    }


def document_fault(source: str, document: CorpusDocument, text: str | None) -> str:
    """Say how the document that a source names differs from the corpus' `text` of that id.

    Empty where it is that; None: the corpus has none.
    """
    named = f"source {quoted(source)} names the document {quoted(document.id)}"
    if text is None:
        return f"{named}, which the corpus lacks; give `document_id` an id of the corpus"
    if text == document.text:
        return ""
    pairs = enumerate(zip(document.text, text, strict=False))
    least = min(len(text), len(document.text))
    first = next((index for index, (own, other) in pairs if own != other), least)
    named_text, corpus_text = (quoted(each[first : first + 40]) for each in (document.text, text))
    return (
        f"{named} with another text than the corpus: from character {first} on it says "
        f"{named_text}, the corpus {corpus_text}; copy the corpus' text, and put braces around "
        "whom it names"
    )


def source_of(key: str) -> str:
    """Return the id of a follow-up's source, the part of its key before `#`."""
    return key.partition("#")[0]


def split_variant(key: str) -> tuple[str, str]:
    """Split a key into the part that all variants of a unit share and its suffix (`#…`, `@…`)."""
    sign_positions = [index for index in (key.find("#"), key.find("@")) if index > 0]
    cut = min(sign_positions, default=len(key))
    return key[:cut], key[cut:]


class Condition(StrEnum):
    """Whether the context gives the answer."""

    AMBIGUOUS = "ambiguous"
    DISAMBIGUATED = "disambiguated"


class Alignment(StrEnum):
    """Which way a disambiguated context goes."""

    STEREOTYPE = "stereotype"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemText:
    """What data sets say of a question with its context and three answers."""

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
    correct: int
    """Its index into `options`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(ItemText):
    """One question with its context and three answers; the indices are into `options`."""

    key: str
    """`<category>/<example id>`, unique in a suite."""
    stereotype: int
    counter: int
    unknown: int

    @property
    def cluster(self) -> str:
        """Return the independent unit: the template within its category."""
        return f"{self.category}/{self.template}"

    def role(self, option: int) -> str:
        """Return an option's role: `stereotype`, `counter` or `unknown`."""
        return {self.stereotype: "stereotype", self.counter: "counter"}.get(option, "unknown")

    @property
    def alignment(self) -> Alignment | None:
        """Return which way the context goes; None where it gives no answer."""
        if self.condition is Condition.AMBIGUOUS:
            return None
        return Alignment.STEREOTYPE if self.correct == self.stereotype else Alignment.COUNTER

    @property
    def query(self) -> str:
        """Return the text that is sent to the retriever: question and context (P2, section 3.2)."""
        return f"{self.question} {self.context}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedItem:
    """An item that counts nowhere, and why."""

    key: str
    reason: str


def item_case_key(item: str, setting: str, retriever: str, top_k: int, instruction: str) -> str:
    """Return the key of a case: the item's, then whatever differs from the default."""
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
