"""Plugins: catalogue entries that other installed distributions bring, as entry points.

A distribution names them in its metadata, by group, id and place:

    [project.entry-points."fairgate.metrics"]
    "toy/share" = "fairgate_toy.metrics:SHARE"

They may use the names of `fairgate.api`. Whoever installs a distribution trusts it: its code runs
with FairGate's rights, as the code of any library does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from typing import Any

from fairgate.domain.errors import UsageError
from fairgate.domain.wording import harmless, quoted

GROUPS = (
    "fairgate.features", "fairgate.metrics", "fairgate.relations", "fairgate.suites",
    "fairgate.systems",
)  # fmt: skip
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point: the id of an entry, where it is (`module:attribute`), and who brings it."""

    id: str
    location: str
    distribution: str
    """Name and version."""

    def load(self) -> Any:
        """Import the entry. Raises UsageError where its distribution cannot deliver it."""
        module, _, name = self.location.partition(":")
        try:
            entry = getattr(import_module(module), name)
        except (Exception, SystemExit) as error:
            raise self.refused(
                f"{type(error).__name__}: {harmless(str(error)[:_SHOWN])}"
            ) from error
        if getattr(entry, "id", None) != self.id:
            raise self.refused(f"the entry calls itself {quoted(str(getattr(entry, 'id', '')))}")
        return entry

    def refused(self, why: str) -> UsageError:
        """Make the error for a plugin that cannot be used."""
        return UsageError(
            f"the plugin {quoted(self.id)} ({quoted(self.location)}) of {self.distribution} cannot "
            f"be used: {why}; repair or uninstall that distribution"
        )


@cache
def _installed() -> tuple[tuple[str, Plugin], ...]:
    points = sorted(
        (point.group, dist.name, dist.version, point.name, point.value)
        for dist in metadata.distributions()
        for point in dist.entry_points
        if point.group in GROUPS
    )
    return tuple(
        (group, Plugin(name, value, f"{distribution} {version}"))
        for group, distribution, version, name, value in dict.fromkeys(points)
    )


def plugins(group: str) -> Sequence[Plugin]:
    """List the entry points of a group, by distribution and id: the same for every run."""
    return [plugin for of, plugin in _installed() if of == group]


def distributions() -> dict[str, str]:
    """Map each distribution that brings a plugin to its version."""
    pairs = (plugin.distribution.rpartition(" ") for _, plugin in _installed())
    return {name: version for name, _, version in pairs}
