"""A catalogue: everything of one sort that a policy can name, listed in one file, found by id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from fairgate.domain.errors import UsageError
from fairgate.domain.wording import quoted, suggestion


class Identified(Protocol):
    """Whatever has a stable id."""

    @property
    def id(self) -> str:
        """Stable kebab string, the same in policies, records and reports."""
        ...


Entry = TypeVar("Entry", bound=Identified)


class Catalogue(Generic[Entry]):
    """Entries in the order in which they are documented. Ids are unique."""

    def __init__(self, noun: str, entries: Sequence[Entry], *, see: str = "") -> None:
        """Take the entries; `noun` and `see` (a command) are for messages about unknown ids."""
        self._noun = noun
        self._see = see
        self._by_id: dict[str, Entry] = {}
        for entry in entries:
            self._add(entry)

    def _add(self, entry: Entry) -> None:
        if entry.id in self._by_id:
            raise ValueError(f"there is already a {self._noun} called {entry.id!r}")
        self._by_id[entry.id] = entry

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries."""
        return iter(tuple(self._by_id.values()))

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

    @property
    def by_id(self) -> Mapping[str, Entry]:
        """Return the entries by id, including entries that are added later."""
        return MappingProxyType(self._by_id)

    def get(self, name: str) -> Entry | None:
        """Return the entry with that id; None where there is none."""
        return self._by_id.get(name)

    def __getitem__(self, name: str) -> Entry:
        """Return the entry with that id. Raises UsageError with the nearest ids."""
        found = self._by_id.get(name)
        if found is None:
            see = f" See `{self._see}`." if self._see else ""
            raise UsageError(
                f"no {self._noun} is called {quoted(name)}; {suggestion(name, self.ids)}{see}"
            )
        return found

    @contextmanager
    def added(self, entry: Entry) -> Iterator[None]:
        """Hold one more entry for a while: how tests and extensions register their own."""
        self._add(entry)
        try:
            yield
        finally:
            del self._by_id[entry.id]
