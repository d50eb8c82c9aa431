"""The kinds of tests: the interface of one, and every kind that a policy can name.

Kinds are listed without what runs them, so that reading a policy loads no numbers. The first is the
default of `kind`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from fairgate.domain.catalogue import Catalogue
from fairgate.domain.schema import SuiteModel

if TYPE_CHECKING:
    from fairgate.suites.suite import Materials, Setup, Suite


class SuiteKind(Protocol):
    """A kind of tests: how a policy declares it and how it is loaded."""

    id: ClassVar[str]
    model: ClassVar[type[SuiteModel]]

    def load(self, policy: SuiteModel, setup: Setup, materials: Materials) -> Suite | None:
        """Return the suite; None where the materials reported a problem."""
        ...


SUITE_KINDS: Catalogue[SuiteKind] = Catalogue(
    "kind of suite",
    package="fairgate.suites",
    places={
        "metamorphic": "metamorphic.policy:Metamorphic",
        "bbq": "question_items.policy:QuestionItems",
    },
)
"""A line for each: its id, its file and its class. A file is read when a policy names its kind."""
