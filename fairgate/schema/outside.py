"""What a policy names outside itself: files, addresses, programs, code, and secrets for them.

Every kind of system and every kind of suite must report both: whether a change's own policy may be
run, and what a change edited, is decided from these alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from fairgate.schema.fields import Strict


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


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file or folder of data that the policy names."""

    kind: str
    """Kind of embedded data that the name could mean instead: `corpora`, `sources`, `recorded`."""
    name: str
    """As the policy gives it."""
    decides_questions: bool
    """Whether it defines what is asked or measures the answers, and is not itself under test."""


class NamesOutside(Strict):
    """A part of the policy that must report what it reaches: without that it is no model."""

    @abstractmethod
    def accesses(self) -> Iterable[Access]:
        """Return every address, program and module that a run would use, with its secrets."""
