"""The interface of a kind of tests: how a policy declares it and how it is loaded.

Kinds are listed without what runs them, so that reading a policy loads no numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from fairgate.domain.suite import SuiteModel

if TYPE_CHECKING:
    from fairgate.suites.suite import Materials, Setup, Suite


class SuiteKind(Protocol):
    """A kind of tests: how a policy declares it and how it is loaded."""

    id: ClassVar[str]
    model: ClassVar[type[SuiteModel]]

    def load(self, policy: SuiteModel, setup: Setup, materials: Materials) -> Suite | None:
        """Return the suite; None where the materials reported a problem."""
        ...
