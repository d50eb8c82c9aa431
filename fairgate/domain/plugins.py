"""Plugins: catalogue entries that other installed distributions bring, as entry points.

A distribution names them in its metadata, by group, id and location:

    [project.entry-points."fairgate.metrics"]
    "toy/share" = "fairgate_toy.metrics:SHARE"

They may use the names of `fairgate.api`. Whoever installs a distribution trusts it: its code runs
with FairGate's rights, as the code of any library does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from types import SimpleNamespace
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
    """An entry of a catalogue, and who brings it."""

    point: metadata.EntryPoint
    name: str
    """Of the distribution."""
    version: str

    @property
    def id(self) -> str:
        """The entry's id."""
        return self.point.name

    @property
    def distribution(self) -> str:
        """Name and version of the distribution."""
        return f"{self.name} {self.version}"

    def load(self) -> Any:
        """Import the entry. Raises UsageError where its distribution cannot deliver it."""
        try:
            entry = self.point.load()
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
            f"the plugin {quoted(self.id)} ({quoted(self.point.value)}) of {self.distribution} "
            f"cannot be used: {why}; repair or uninstall that distribution"
        )


@cache
def _installed() -> tuple[Plugin, ...]:
    every = metadata.entry_points()
    points = (point for group in GROUPS for point in every.select(group=group))
    installed = (Plugin(p, p.dist.name, p.dist.version) for p in points if p.dist is not None)
    return tuple(sorted(installed, key=lambda plugin: (plugin.distribution, plugin.id)))


_setting = SimpleNamespace(hidden=False)


def hide(*, hidden: bool) -> None:
    """Let no plugin be found from here on, or every one again."""
    _setting.hidden = hidden


def plugins(group: str) -> Sequence[Plugin]:
    """List the entry points of a group, by distribution and id: the same for every run."""
    if _setting.hidden:
        return []
    return [plugin for plugin in _installed() if plugin.point.group == group]


def module_files() -> Iterator[tuple[str, str]]:
    """Yield the name and the file of the package that each plugin is in; none is imported."""
    for name in dict.fromkeys(plugin.point.module.partition(".")[0] for plugin in _installed()):
        try:
            spec = find_spec(name)
        except (ImportError, ValueError):
            continue
        files = [*(spec.submodule_search_locations or ()), spec.origin] if spec else []
        yield from ((name, file) for file in files if file)


def distributions() -> dict[str, str]:
    """Map each distribution that brings a plugin to its version."""
    return {plugin.name: plugin.version for plugin in _installed()}
