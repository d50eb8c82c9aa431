"""The kind `metamorphic`: how a policy declares it, and how its suites are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgate.suites.catalogue import SuiteKind
from fairgate.suites.metamorphic.policy import SuitePolicy

if TYPE_CHECKING:
    from fairgate.suites.suite import Materials, Setup, Suite


def load(policy: SuitePolicy, setup: Setup, materials: Materials) -> Suite | None:
    """Return the suite; None where the materials reported a problem."""
    from fairgate.suites.metamorphic.loading import loaded_suite

    return loaded_suite(policy, setup, materials)


KINDS = {"metamorphic": SuiteKind("metamorphic", SuitePolicy, load)}
