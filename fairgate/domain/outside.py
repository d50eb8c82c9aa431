"""What a policy names outside itself: files, models, addresses, programs, code, secrets for them.

Whether a change's own policy may be run, and what of it the base decides, follows from these alone.
Addresses and programs are reported by every kind of system and suite; files and models are fields
that are marked with `Names`, wherever they stand: what no field marks, no run of a pull request
can read (`composition/manifest.py`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel

from fairgate.domain.fields import Strict


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
    """Method, headers and form of what is sent, as a text that is only compared: with the same
    secret, another request does something else."""


class Role(StrEnum):
    """What a file or model is in a run, as reports call it."""

    ATTRIBUTES = "sensitive attribute"
    CLASSIFIER = "classifier"
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
    RETRIEVER = "retriever's embedder"
    SOURCES = "sources"
    TASK = "task"
    TOKENIZER = "corpus tokenizer"

    @property
    def is_under_test(self) -> bool:
        """Return whether a change of it is what the gate tests (SPEC 9); the rest decides."""
        return self in _UNDER_TEST

    @property
    def is_model(self) -> bool:
        """Return whether its name may be that of a model on the hub."""
        return self in _MODELS


_UNDER_TEST = frozenset({
    Role.COLLECTION, Role.CORPUS, Role.GENERATOR, Role.RECORDED, Role.RETRIEVER, Role.TOKENIZER,
})  # fmt: skip
_MODELS = frozenset({Role.EMBEDDER, Role.GENERATOR, Role.JUDGE, Role.RETRIEVER, Role.TOKENIZER})


@dataclass(frozen=True, slots=True)
class Names:
    """Marks a field whose text, or each text in its list, names a file, a folder or a model."""

    role: Role
    prefix: str = ""
    """Only texts that begin so name something, by what follows."""
    replaces: Role | None = None
    """What names this in the mappings that the field holds has `role` instead."""


@dataclass(frozen=True, slots=True)
class Named:
    """A file, folder or model that a policy names."""

    role: Role
    name: str
    """As the policy gives it."""
    revision: str | None = None
    """Of a model on the hub."""


def named_in(part: BaseModel) -> Iterator[Named]:
    """Yield what the marked fields of a policy, or of a part of one, name."""
    for field_name, field in type(part).model_fields.items():
        mark = next((one for one in field.metadata if isinstance(one, Names)), None)
        value = getattr(part, field_name)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, BaseModel):
                for inner in named_in(one):
                    is_other = mark is not None and mark.replaces is inner.role
                    yield replace(inner, role=mark.role) if mark and is_other else inner
            elif mark is not None and isinstance(one, str) and one.startswith(mark.prefix):
                name = one.removeprefix(mark.prefix)
                yield Named(mark.role, name, getattr(part, "revision", None))


class NamesOutside(Strict):
    """A part of the policy that must report what it reaches: without that it is no model."""

    @abstractmethod
    def accesses(self) -> Iterable[Access]:
        """Return every address, program and module that a run would use, with its secrets."""
