"""What the policy's models share: types of fields, and the base of each part with kinds."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, model_validator

from fairgate.domain.wording import quoted

Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
Name = Annotated[str, Field(pattern=NAME_PATTERN)]

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
"""Any text that is not blank."""
_HOST = re.compile(r"\w(?:[\w.-]*\w)?\.?|[0-9a-fA-F]*:[0-9a-fA-F:.]+(?:%\w+)?")


def _address(text: str) -> str:
    """Return an address. Raises ValueError where a client would find no host or port in it."""
    expected = "expected `http://HOST:PORT/PATH`, such as `http://127.0.0.1:8000/ask`"
    if "{{" in text or "${" in text:
        raise ValueError(f"{quoted(text)}: nothing is filled into an address; {expected}")
    try:
        split = urlsplit(text)
        host, port = split.hostname or "", split.port
    except ValueError as error:
        raise ValueError(f"{quoted(text)} is no address ({error}); {expected}") from None
    if not _HOST.fullmatch(host) or port == 0:
        raise ValueError(f"{quoted(text)} is no address; {expected}")
    return text


Address = Annotated[str, Field(pattern=r"^https?://[^\s@]+$"), AfterValidator(_address)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
LIMIT = "Use only the first N sources; for question items, N per category in groups of four."
_BRANCH = re.compile(r"<[a-z-]+>")


def shape(value: object) -> str:
    """Return which branch of a union the user intended, judged by the kind of value."""
    kinds = ((bool, "<switch>"), ((dict, BaseModel), "<mapping>"), (list, "<list>"))
    return next((tag for kind, tag in kinds if isinstance(value, kind)), "<scalar>")


ByShape = Discriminator(shape)
"""Unions are distinguished by shape, so that messages cover only the intended branch."""


def is_branch(step: object) -> bool:
    """Return whether a step of an error's place is the tag of a union's branch, as in `<list>`."""
    return isinstance(step, str) and _BRANCH.fullmatch(step) is not None


class Strict(BaseModel):
    """Frozen, typed strictly, and closed: an unknown key is an error.

    What validates is built at the first use, as a part of the model that holds it: most models
    are never validated by themselves.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
    )


JsonPlace = Annotated[str, Field(pattern=r"^\$(\.[A-Za-z_][\w-]*|\[\d{1,6}\])*$")]
_ScorePlace = Annotated[str, Field(pattern=r"^\$(\.[A-Za-z_][\w-]*|\[(\d{1,6}|\*)\])*$")]


class SelectedPolicy(Strict):
    """Which scores select somebody."""

    low: Finite = Field(alias="from", description="The score from which somebody is selected.")


class ScorePolicy(Strict):
    """How a score is read from an answer, and which way is worse."""

    low: Finite | None = Field(
        default=None, alias="from", description="Lowest score; anything below is unreadable."
    )
    high: Finite | None = Field(
        default=None, alias="to", description="Highest score; anything above is unreadable."
    )
    marker: Text | None = Field(
        default=None,
        description="Text before the score, such as `Score:`.",
    )
    path: _ScorePlace | None = Field(
        default=None, description="Path of the score in an answer in JSON: `$.score`, `$[*].limit`."
    )
    better: Literal["higher", "lower"] = Field(
        default="higher", description="Which scores are better."
    )
    selected: SelectedPolicy | None = Field(
        default=None,
        description="Also report who is selected, `{from: 7}`: rates, and ratios to the highest.",
    )

    @model_validator(mode="after")
    def _rises(self) -> Self:
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"goes from {self.low:g} to {self.high:g}; expected a rising scale")
        if self.marker is not None and self.path is not None:
            raise ValueError("has `marker` and `path`; give one of them")
        return self


class ActionsPolicy(Strict):
    """How an agent's calls are read from its answers, and how they are compared."""

    tool: JsonPlace | None = Field(
        default="$.name", description="Path of the tool's name in a call; `null` where it has none."
    )
    arguments: JsonPlace = Field(
        default="$.arguments", description="Path of the arguments, an object or its JSON text."
    )
    ignore: list[Text] = Field(
        default_factory=list,
        description="Arguments that are not compared; inner ones `loan.note`. Amounts are "
        "a `score` with a path, in a suite of their own.",
    )
    order: bool = Field(default=False, description="Whether the order of calls counts as well.")
    without_call: Literal["unreadable", "no-action"] = Field(
        default="unreadable",
        description="How an answer without a call counts.",
    )


@dataclass(frozen=True, slots=True)
class Access:
    """One external resource that a run of the policy would use, and the secret sent to it."""

    verb: Literal["asks", "starts", "imports"]
    """An address over the network, a program on this machine, code into this process."""
    target: str
    """URL, command line or module as the policy gives it."""
    secret: str | None = None
    """NAME of the environment variable whose content would be sent; None where there is none."""
    way: str = ""
    """Everything else that is sent, and at which pace, as a text that is only compared: with the
    same secret, another request does something else."""


NOT_SENT = frozenset({"revision", "timeout", "response"})
"""Fields that are no part of what is sent: what stored replies are known by, how long a reply is
waited for, and where the answer stands in it."""


def way_of(part: BaseModel, *, named: Iterable[str] = ()) -> str:
    """Everything that a part of a policy sends, as `Access.way`: all of its fields but NOT_SENT.

    Made from the model, so that a new field counts until somebody decides that it is not sent.
    `named` are fields of which each value is an access of its own.
    """
    apart = {*NOT_SENT, *named}
    return json.dumps([type(part).__name__, part.model_dump(mode="json", exclude=apart)])


class Role(StrEnum):
    """What a file or model is in a run, as reports call it."""

    ATTRIBUTES = "sensitive attribute"
    CLASSIFIER = "classifier"
    CODE = "files of the system"
    COLLECTION = "collection"
    CORPUS = "corpus"
    EMBEDDER = "measuring embedder"
    GENERATOR = "generator"
    ITEMS = "question items"
    JUDGE = "judge's model"
    JUDGE_RECORD = "judge's record"
    LABELS = "labels of documents"
    PERTURBATIONS = "perturbation set"
    RECORDED = "recorded answers"
    RELATIONS = "relations"
    RETRIEVER = "retriever's embedder"
    SOURCES = "sources"
    TASK = "task"

    @property
    def is_under_test(self) -> bool:
        """Return whether a change of it is what the gate tests; the rest decides."""
        return self in _UNDER_TEST

    @property
    def is_model(self) -> bool:
        """Return whether its name may be that of a model on the hub."""
        return self in _MODELS


_UNDER_TEST = frozenset({
    Role.CODE, Role.COLLECTION, Role.CORPUS, Role.GENERATOR, Role.RECORDED, Role.RETRIEVER,
})  # fmt: skip
_MODELS = frozenset({Role.EMBEDDER, Role.GENERATOR, Role.JUDGE, Role.RETRIEVER})


@dataclass(frozen=True, slots=True)
class Names:
    """Marks a field whose text, or each text in its list, names a file, a folder or a model."""

    role: Role
    prefix: str = ""
    """Only texts that begin so name something, by what follows."""
    replaces: Role | None = None
    """What names this in the mappings that the field holds has `role` instead."""


class Decides:
    """Marks a field all of whose files and models decide, whatever their roles elsewhere."""


@dataclass(frozen=True, slots=True)
class Named:
    """A file, folder or model that a policy names."""

    role: Role
    name: str
    """As the policy gives it."""
    revision: str | None = None
    """Of a model on the hub."""
    decides: bool = False
    """Whether it decides, although its role is that of something under test."""

    @property
    def is_under_test(self) -> bool:
        """Whether a change of it is what the gate tests."""
        return self.role.is_under_test and not self.decides


def named_in(part: BaseModel) -> Iterator[Named]:
    """Yield what the marked fields of a policy, or of a part of one, name."""
    for field_name, field in type(part).model_fields.items():
        mark = next((entry for entry in field.metadata if isinstance(entry, Names)), None)
        decides = any(isinstance(entry, Decides) for entry in field.metadata)
        field_value = getattr(part, field_name)
        for value in field_value if isinstance(field_value, list) else [field_value]:
            if isinstance(value, BaseModel):
                for inner in named_in(value):
                    is_other = mark is not None and mark.replaces is inner.role
                    role = mark.role if mark and is_other else inner.role
                    yield replace(inner, role=role, decides=decides or inner.decides)
            elif mark is not None and isinstance(value, str) and value.startswith(mark.prefix):
                name = value.removeprefix(mark.prefix)
                yield Named(mark.role, name, getattr(part, "revision", None))


class NamesOutside(Strict):
    """A part of the policy that must report what it reaches: without that it is no model.

    Whether a change's own policy may be run, and what of it the base decides, follows from these
    alone. Addresses and programs are reported by every kind of system and suite; files and models
    are fields that are marked with `Names`, wherever they stand: what no field marks, no run of a
    pull request can read (`gate/manifest.py`).
    """

    @abstractmethod
    def accesses(self) -> Iterable[Access]:
        """Return every address, program and module that a run would use, with its secrets."""


class SuiteModel(NamesOutside):
    """One of the policy's `suites`; `kind` says which model it is."""

    id: Name = Field(description="Name of the suite; unique in the policy.")
    kind: Any
    """A literal in every kind."""
    thinking: list[Annotated[list[Text], Field(min_length=2, max_length=2)]] = Field(
        default_factory=list,
        description="Further pairs of tags that enclose the model's thinking.",
    )

    @model_validator(mode="after")
    def _tags_differ(self) -> Self:
        for opening, closing in self.thinking:
            if opening.strip().lower() == closing.strip().lower():
                raise ValueError(
                    f"`thinking`: {opening!r:.60} cannot open and close; name two tags"
                )
        return self

    @abstractmethod
    def narrowed(self, most: int) -> Self:
        """Return the suite with about `most` of its sources or items, for a quick trial run."""


class SystemModel(Strict):
    """The policy's `system`; its kind follows from the keys that it uses."""

    keys: ClassVar[tuple[str, ...]] = ()
    """Keys of the mapping that only this kind has: one of them makes it this kind."""

    @classmethod
    def contradictions(cls, data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield places below `system`, with the sentence, that contradict another place there.

        `data` is as it was written: what has a wrong type is passed over.
        """
        del data
        yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a system can do, so that what cannot be measured on it is known beforehand."""

    gives_documents: bool
    """Returns the documents it showed to the generator."""
    takes_documents: bool
    """Can answer with given documents instead of its own."""
    repeatable: bool
    """Can be asked again during a run; a recording cannot."""
    scores_options: bool
    """Returns the probability of given answers."""
    gives_degrees: bool = False
    """Tells how probable each label is beside what it answers."""
    answers: bool = True
    """Has a model that answers; else it retrieves alone."""
    takes_changed: bool = False
    """Can search its corpus with another text in the place of a document's."""
    speaks_in_turns: bool = False
    """Holds conversations: each of its own, one turn after the other."""
    is_greedy: bool = False
    """Answers the same question alike whenever it is asked."""
    temperature: float | None = None
    """At which its answers are drawn; None: not known."""
    top_k: int = 0
    """How many documents its own retriever is asked for; 0: it decides."""
    prompt: str | None = None
    """The policy's template of its generator's prompt."""
    decoding: object = "of the application"
    """How it decodes: must be equal for two runs of a suite to be comparable."""


class Columns(Strict):
    """A table of texts: where it is and which columns matter."""

    path: Annotated[Text, Names(Role.SOURCES)] = Field(
        description="CSV, TSV, JSONL, JSON or Parquet file, or a bundled name."
    )
    id: str | None = Field(
        default=None,
        description="Column of the identifier; default: found by name, else the row's "
        "number or a hash of the text.",
    )
    text: str | None = Field(
        default=None, description="Column of the text; default: found by name."
    )
    label: str | None = Field(
        default=None,
        description="Column of the label (`toxic`, …); default: found by name, if any.",
    )


class JudgeModel(NamesOutside):
    """The policy's `judge`: language models that vote, and what they were measured to be worth."""

    id: Name = Field(description="Name of the judge in records and reports.")
    record: Annotated[Text | None, Names(Role.JUDGE_RECORD)] = Field(
        default=None,
        description="JSON file that `fairgate judge evaluate` wrote.",
    )
    shows: Literal["pair", "follow-up"] = Field(
        default="pair",
        description="What judges are shown: both prompts and responses, or the follow-up's alone.",
    )

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Return the models' names."""

    @property
    @abstractmethod
    def definition(self) -> str:
        """Return the identity of models, prompts and decoding as they are written."""
