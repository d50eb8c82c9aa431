"""Registries: everything of one sort, listed in one file, found by id; and what a feature brings.

A feature gives places, so that its files are imported when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar, cast

from fairgate.domain.errors import UsageError
from fairgate.domain.plugins import Plugin, plugins
from fairgate.domain.wording import quoted, suggestion


class Identified(Protocol):
    """Whatever has a stable id."""

    @property
    def id(self) -> str:
        """Stable kebab string, the same in policies, records and reports."""
        ...


Entry = TypeVar("Entry", bound=Identified)


class Registry(Generic[Entry]):
    """Entries in the order in which they are documented, then those of plugins. Ids are unique.

    An entry may be given by its location alone: its file is read when it is first asked for.
    Entry points of installed distributions are looked for when the registry is first read.
    """

    def __init__(
        self,
        noun: str,
        entries: Sequence[Entry] = (),
        *,
        see: str = "",
        package: str = "",
        locations: Mapping[str, str] = MappingProxyType({}),
        plugins: str = "",
    ) -> None:
        """Take the entries; `noun` and `see` (a command) are for messages about unknown ids.

        `locations` has `file:Class`, or `file:TABLE` with entries by id, for the ids of entries
        whose files, in `package`, are read later. `plugins` is the group of entry points
        that add some.
        """
        self._noun = noun
        self._see = see
        self._package = package
        self._own: dict[str, Entry | str | Plugin] = dict(locations)
        self._plugins = plugins
        self._brought: dict[str, str] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Register one more entry. Raises ValueError where its id is taken."""
        if entry.id in self._own:
            raise ValueError(f"there is already a {self._noun} called {entry.id!r}")
        self._own[entry.id] = entry

    @property
    def _by_id(self) -> dict[str, Entry | str | Plugin]:
        """Return the entries by id, with those of plugins. Raises UsageError for an id taken."""
        if self._plugins:
            group, self._plugins = self._plugins, ""
            for plugin in plugins(group):
                if plugin.id in self._own:
                    self._plugins = group
                    raise plugin.refused(f"there is already a {self._noun} of that name")
                self._own[plugin.id] = plugin
                self._brought[plugin.id] = plugin.distribution
        return self._own

    def _entry(self, name: str) -> Entry:
        entry = self._by_id[name]
        if isinstance(entry, Plugin):
            entry = self._own[name] = cast("Entry", entry.load())
        elif isinstance(entry, str):
            file, _, attribute = entry.partition(":")
            content = getattr(import_module(f"{self._package}.{file}"), attribute)
            entry = cast("Entry", content[name] if isinstance(content, Mapping) else content())
            if entry.id != name:
                raise ValueError(f"the {self._noun} {name!r} calls itself {entry.id!r}")
            self._by_id[name] = entry
        return entry

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries."""
        return iter([self._entry(name) for name in self._by_id])

    def __len__(self) -> int:
        """Return how many entries there are."""
        return len(self._by_id)

    def __contains__(self, name: object) -> bool:
        """Return whether there is an entry with that id."""
        return name in self._by_id

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids, in the order of the entries."""
        return tuple(self._by_id)

    def brought_by(self, name: str) -> str:
        """Name the distribution of a plugin's entry and its version; empty for all others."""
        return self._brought.get(name, "") if name in self._by_id else ""

    def get(self, name: str) -> Entry | None:
        """Return the entry with that id; None where there is none."""
        return self._entry(name) if name in self._by_id else None

    def __getitem__(self, name: str) -> Entry:
        """Return the entry with that id. Raises UsageError with the nearest ids."""
        if name not in self._by_id:
            see = f" See `{self._see}`." if self._see else ""
            raise UsageError(
                f"no {self._noun} is called {quoted(name)}; {suggestion(name, self.ids)}{see}"
            )
        return self._entry(name)

    @contextmanager
    def added(self, entry: Entry) -> Iterator[None]:
        """Register one more entry for the length of a block; tests and extensions use it."""
        self.add(entry)
        try:
            yield
        finally:
            del self._by_id[entry.id]


GROUPS = DAILY, WHY, DATA, CI, MORE = (
    "Every day",
    "Asking why",
    "Data and models",
    "In CI",
    "Further commands",
)
"""Sections of `fairgate --help`, in its order."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of `fairgate`."""

    location: str
    summary: str
    """What `fairgate --help` says of it."""
    answers: bool = False
    """Its exit code says what it found, or that a file is written: output that is lost leaves it as
    it is. What others print is their result, which is then not there."""
    takes_relations: bool = True
    """It may import relations of the user's own."""
    group: str = MORE  # of GROUPS


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What a file or folder of `fairgate/features` brings; a location is `module:attribute`."""

    id: str
    """Name of the file or folder."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    first: str = ""
    """Location of a function that takes the command line before plugins are looked for."""
    before: str = ""
    """Command of the core that its own stand before in `--help`; empty: behind those of a group."""
    extends: Mapping[str, str] = field(default_factory=dict)
    """By command of `fairgate`, the location of a function that returns it with more options or
    subcommands. The last feature of the list sees a call first."""
    formats: Mapping[str, str] = field(default_factory=dict)
    """By what `--format` names, the location of a `reports.formats.Format`."""
    sections: Mapping[str, str] = field(default_factory=dict)
    """By id, the location of a function from `reports.material.Material` to its sections; they
    follow the core's."""
    policy_keys: Mapping[str, str] = field(default_factory=dict)
    """By key of a policy, the location of its type and `pydantic.Field`, which has a default;
    sections find the value in `material.options.of_features`."""
    steps: Mapping[str, str] = field(default_factory=dict)
    """By input of the action, the location of what does it: see `step` in `github/gate_step.py`."""


FEATURES: Registry[Feature] = Registry("feature", plugins="fairgate.features")
"""Features of `features/shipped.py`, added by the command line: code below it knows none."""


def at(location: str) -> Any:
    """Import the object at `module:attribute`; a leading dot stands for the features."""
    module, _, name = location.partition(":")
    return getattr(import_module(module, "fairgate.features"), name)
