"""The kinds of tests: the interface of one, and every kind that a policy can name.

Kinds are listed without what runs them, so that reading a policy loads no numbers. The first is the
default of `kind`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairgate.domain.registry import Registry
from fairgate.domain.schema import SuiteModel

if TYPE_CHECKING:
    from fairgate.suites.suite import Materials, Setup, Suite


@dataclass(frozen=True, slots=True)
class SuiteKind:
    """A kind of tests: how a policy declares it and how it is loaded."""

    id: str
    model: type[SuiteModel]
    load: Callable[[Any, Setup, Materials], Suite | None]
    """Returns the suite of a policy's model; None where the materials reported a problem."""


SUITE_KINDS: Registry[SuiteKind] = Registry(
    "kind of suite",
    package="fairgate.suites",
    plugins="fairgate.suites",
    locations={"metamorphic": "metamorphic.kind:KINDS", "bbq": "question_items.kind:KINDS"},
)
"""A line for each: its id, and a table in its file. A file is read when a policy names its kind."""
