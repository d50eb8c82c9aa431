"""One case through the system under test: the documents it had, its prompt, its answer.

The system is a model of our own, or a whole application that is asked questions and replies.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from fairgate.domain.degrees import Degrees
from fairgate.domain.wording import quoted, shown

KeyType = TypeVar("KeyType")
Thing = TypeVar("Thing")

MOST_SHARED = 200_000
"""Documents, and lists of them, among which an equal one is looked for."""
_MOST = 10**12
"""Of tokens; what is reported beyond is no report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One retrieved text. A recording may contain only some of the fields."""

    id: str | None = None
    text: str | None = None
    label: str | None = None
    score: float | None = None


class DocumentList(tuple[Document, ...]):  # noqa: SLOT001 (its hash is kept)
    """A list whose hash is computed once: it is looked up for each answer that rests on it."""

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        """Return the hash of an equal tuple."""
        return self._hash


class SharedDocuments:
    """Equal documents and equal lists of them, each held once: many answers rest on few."""

    def __init__(self) -> None:
        """Begin with none."""
        self._documents: dict[Document, Document] = {}
        self._lists: dict[DocumentList, DocumentList] = {}

    def list_of(self, documents: Iterable[Document]) -> DocumentList:
        """Return an equal list; it and its documents are those of an earlier call if possible."""
        shared = DocumentList(
            shared_entry(self._documents, document, document, MOST_SHARED) for document in documents
        )
        return shared_entry(self._lists, shared, shared, MOST_SHARED)


def shared_entry(stored: dict[KeyType, Thing], name: KeyType, thing: Thing, most: int) -> Thing:
    """Return the entry of that name; a new one is stored while there are fewer than `most`."""
    return stored.setdefault(name, thing) if len(stored) < most else stored.get(name, thing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How answers are generated. Temperature 0 is greedy and ignores `top_p`, `top_k` and seed.

    Its `repr` identifies answers of endpoints that are stored.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    """Keep the k most probable tokens; 0 keeps all."""
    max_new_tokens: int = 150
    """Longest answer; thinking before it does not count."""
    thinking_tokens: int = 4096
    """Longest thinking of a model that thinks before it answers."""
    seed: int = 42

    @property
    def is_greedy(self) -> bool:
        """Return whether the most probable token is always taken."""
        return self.temperature == 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """The input of the chat template besides the user's message."""

    system: str | None = None
    """The system turn; None has none."""
    arguments: tuple[tuple[str, bool | int | float | str], ...] = ()
    """Names and values that the template may ask for, such as `enable_thinking`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """When an answer is complete: it says one of these phrases, and no continuation changes which.

    The phrases are labels or options and no stop strings.
    """

    phrases: tuple[str, ...]
    """Where there are none, the first JSON object, or list of objects, completes it."""
    marker: str = ""
    """Text after which reading begins; empty: at the beginning of the answer."""
    choice: bool = False
    """The phrases are an item's options: a letter may stand for one, and scripts without spaces
    are searched inside their words."""
    shown: str = ""
    """The text that is asked about: what an answer repeats of it is mentioned, not said."""
    values: tuple[int, ...] = ()
    """Which answer each of the phrases gives; empty: each its own."""
    unknown: int = -1
    """The option that says that the answer is not known; -1: none does."""
    negated: tuple[tuple[str, str], ...] = ()
    """Labels, and those that they mean when they are directly denied."""
    first_named: bool = False
    """Whether the first phrase that is named completes the answer, whatever is said of it."""
    thinking: tuple[tuple[str, str], ...] = ()
    """Tags of thinking that the policy names, beside those of the table."""

    def showing(self, text: str) -> Stop:
        """Return the same for an answer about a text; options are named by repeating them."""
        return self if self.choice else replace(self, shown=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """One complete prompt for the generator. Equal requests give equal answers."""

    prompt: str
    """The user's message, complete, before the chat template."""
    labels: tuple[str, ...] = ()
    """Labels whose margin is computed; empty where none is known."""
    stop: Stop | None = None
    """What ends the answer early; None: one of the labels, or nothing where there are none."""
    seed: int = 0
    """Seeds this request's sampling alone (unused when greedy)."""
    options: tuple[str, ...] = ()
    """With `score_options`: texts whose log-probabilities are compared, without generating."""
    forms: tuple[tuple[str, str], ...] = ()
    """Labels and the texts that express them, which are scored beside generating: the answer has
    degrees. An endpoint looks for the labels alone."""
    before: tuple[str, ...] = ()
    """What the user said in earlier turns; each is answered before the next is put."""
    source: str = field(default="", compare=False)
    """About which source it is asked, for messages: no part of what is asked."""

    @property
    def ends_with(self) -> Stop | None:
        """Return the rule that ends the answer early; None runs to the end."""
        return self.stop or (Stop(phrases=self.labels) if self.labels else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a server itself says of an answer beside its text; None where it does not."""

    model: str | None = None
    """The model that the reply names."""
    fingerprint: str | None = None
    """Of the server's weights and settings, as the reply names it (`system_fingerprint`), behind
    the provider that a gateway chose (`provider`)."""
    cache: str | None = None
    """The header or field by which it comes from a cache: `x-cache: hit`."""
    prompt_tokens: int | None = None
    characters: int = 0
    """Of the prompt that was sent."""
    failure: str | None = None
    """What came instead of an answer, however often it was asked for: `HTTP 500`."""
    error: str | None = None
    """The same as a sentence, with the server's words."""


def served_fields(served: Served) -> dict[str, object]:
    """Return the reply's statements as plain values."""
    return {name: value for name, value in asdict(served).items() if value}


def served_from(value: object) -> Served | None:
    """Return the stored value; None where there is none. Raises ValueError for another form."""
    if value is None:
        return None
    texts = ("model", "fingerprint", "cache", "failure", "error")
    numbers = ("prompt_tokens", "characters")
    fields = value if isinstance(value, Mapping) else {"": None}
    if any(
        name not in (*texts, *numbers) or not isinstance(statement, str if name in texts else int)
        for name, statement in fields.items()
    ):
        raise ValueError(f"served is {shown(value)}; expected {', '.join((*texts, *numbers))}")
    return Served(**fields)


class Execution(NamedTuple):
    """What came back: of a model, an application or a recording, then of the system for a case.

    Cases with equal answers may share one.
    """

    documents: Sequence[Document] | None = None
    """In rank order; None where the system does not return them or no retrieval took place."""
    response: str | None = None
    """None: no answer exists (missing from a recording). An empty string is an answer."""
    margin: float | None = None
    """Log-probability (nats) of the chosen label minus that of the best other label at the first
    token where they differ, rounded to 4 decimals; None where the engine does not know it."""
    options: tuple[str, ...] = ()
    """In the order shown; empty where none were, or a recording does not tell."""
    degrees: Degrees | None = None
    """Where forms were scored; None where none were, or an endpoint does not tell."""
    tokens: int = 0
    """Generated for a request, the end-of-sequence token not counted."""
    stopped: str = "end"
    """Why generation ended: `label`, `end` (end-of-sequence token) or `length`."""
    served: Served | None = None
    """None where nothing is known, as of a model that runs here."""

    def of_case(
        self, *, documents: Sequence[Document] | None, options: tuple[str, ...]
    ) -> Execution:
        """Make of it the execution of a case, which does not keep how generating ended."""
        return self._replace(documents=documents, options=options, tokens=0, stopped="end")


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusSpec:
    """Where a table of texts is and which of its columns matter; None finds a column by name."""

    path: str
    id: str | None = None
    text: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusDocument:
    """One document of a corpus: the text that is embedded, shown and compared."""

    id: str
    text: str
    label: str | None = None


def named_turn(before: Sequence[str], query: str, number: int) -> str:
    """Name a turn, from 0, by what the user says in it and how the conversation begins."""
    if not before:
        return f"the question {quoted(query)}"
    text = (*before, query)[number]
    begins = f", in the conversation that begins {quoted(before[0])}" if number else ""
    return f"turn {number + 1} of {len(before) + 1} ({quoted(text)}){begins}"


def embedding_key(embedder: str, text: str) -> str:
    """Return the key of a text's embedding: it depends on the embedder and the text alone."""
    return hashlib.sha256(f"{embedder}\x00{text}".encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question to an application. Equal questions are asked once."""

    query: str
    """The test case's text alone, as a retriever searches for it."""
    text: str
    """The test case as a prompt shows it: with its options, where it has some."""
    instruction: str
    """What is to be done with the text; empty where the suite has none."""
    prompt: str
    """Instruction and text as one message, without documents."""
    options: tuple[str, ...] = ()
    """Answers to choose from, in the order to show them."""
    documents: tuple[Document, ...] | None = None
    """To be shown instead of what the application would retrieve; None: it retrieves itself."""
    top_k: int = 0
    """How many documents a retriever is asked for; 0 where the application decides itself."""
    repeat: int = 0
    """How often the same was asked before (`repeats`): 0 the first time."""
    changed: CorpusDocument | None = None
    """A document of the corpus as this question has it: another text under its id."""
    before: tuple[str, ...] = ()
    """What the user said in earlier turns of the conversation; each turn is answered."""
    session: str = field(default="", compare=False)
    """Name of the conversation that a turn belongs to: of no other one, and never stored."""
    messages: tuple[Mapping[str, str], ...] = field(default=(), compare=False)
    """What was said so far, with `role` and `content`; the last one is the turn's own."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values; what conversations and changed documents add, only where it is."""
        own = ("before", "session", "messages", "changed")
        fields = {name: value for name, value in asdict(self).items() if value or name not in own}
        if self.changed is not None:
            fields["changed"] = {"id": self.changed.id, "text": self.changed.text}
        return fields

    def named(self, replies: Sequence[Execution] = ()) -> str:
        """Name the question for a message; in a conversation the turn behind so many replies."""
        return named_turn(self.before, self.query, len(replies))

    def turns(self, replies: Sequence[Execution]) -> Iterator[Question]:
        """Yield each turn, whose reply the caller adds to `replies` before it takes the next.

        Earlier turns are texts alone: instruction, options and documents belong to the question.
        """
        session, history = os.urandom(16).hex(), []
        for message in self.before:
            history.append({"role": "user", "content": message})
            yield Question(
                query=message, text=message, instruction="", prompt=message, repeat=self.repeat,
                top_k=self.top_k, session=session, messages=tuple(history),
            )  # fmt: skip
            history.append({"role": "assistant", "content": replies[-1].response or ""})
        history.append({"role": "user", "content": self.prompt})
        yield replace(self, before=(), session=session, messages=tuple(history))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one question; None where they are not reported."""

    input: int | None = None
    output: int | None = None
    total: int | None = None

    @property
    def tokens(self) -> int | None:
        """Return all tokens: as reported, else those read and written together."""
        if self.total is not None or self.input is None or self.output is None:
            return self.total
        return self.input + self.output


def usage_of(value: Any) -> Usage:
    """Read the `usage` of an answer, in the form of OpenAI's endpoints.

    `prompt_tokens`, `completion_tokens` (or `input_tokens`, `output_tokens`), `total_tokens`.
    Whatever is no count, or below zero, is not reported.
    """
    reported = value.get("usage") if isinstance(value, Mapping) else None
    if not isinstance(reported, Mapping):
        return Usage()
    return Usage(
        input=_amount(reported, "prompt_tokens", "input_tokens"),
        output=_amount(reported, "completion_tokens", "output_tokens"),
        total=_amount(reported, "total_tokens"),
    )


def _amount(reported: Mapping[Any, Any], *names: str) -> int | None:
    for name in names:
        amount = reported.get(name)
        if isinstance(amount, int) and not isinstance(amount, bool) and 0 <= amount <= _MOST:
            return amount
    return None
