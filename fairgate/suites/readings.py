"""Every answer as its oracles read it: by each once, when first asked for, and shared by all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fairgate.domain.cases import Case, first_asked, is_follow_up, of_system
from fairgate.domain.executions import Execution
from fairgate.domain.units import Reading, Reason, Unit
from fairgate.metrics.columns import ReadingColumn
from fairgate.relations.oracles.oracle import Oracle, read_together
from fairgate.relations.oracles.text import Pairs, with_known_tags


@dataclass(frozen=True, slots=True)
class Readings:
    """The readings of one suite's cases. A cache: what it returns follows from its inputs alone.

    An answer that several relations share is read by the oracle of whoever asks: `reader` names
    one of the oracles, and without it a case's own reads. Verdicts only their own oracle reads.
    """

    suite: str
    oracles: Mapping[str, Oracle]
    unstable_margin: float
    executions: Mapping[tuple[str, str], Execution]
    thinking: Pairs = ()
    """The policy's own tags of thinking."""
    why_unread: Callable[[str], str] = lambda _: ""
    """Why an answer counts as unreadable though an oracle may read something in it."""
    _cases: dict[str, Case] = field(default_factory=dict)
    _embedded: dict[str, str] = field(default_factory=dict)
    _repeats: dict[str, list[str]] = field(default_factory=dict)
    _single: dict[str, dict[str, Reading]] = field(default_factory=dict)
    """By oracle and key; `_together` likewise."""
    _together: dict[str, dict[str, Reading]] = field(default_factory=dict)
    _prepared: set[str] = field(default_factory=set)
    _first: dict[str, str] = field(default_factory=dict)
    """By name of an oracle the first one equal to it: they read alike."""
    _held: dict[Reading, Reading] = field(default_factory=dict)
    """What single answers come to, by how each was read: answers are many, labels few."""

    def add(self, case: Case) -> None:
        """Take a case that is asked. Repeats count together unless attribution asks them."""
        self._cases[case.key] = case
        first = first_asked(case.key)
        if not case.is_crossing and first != case.key:
            # The first has no entry until it is repeated; it may not be asked where a repeat is.
            begun = [first] if first in self._cases else []
            self._repeats.setdefault(first, begun).append(case.key)

    def expect(self, case: Case) -> None:
        """Take a case that embeds a response: where that one says nothing, it is not asked.

        It then counts as an answer that cannot be read, not as one that is missing.
        """
        if case.embeds is not None:
            self._embedded[case.key] = case.embeds

    def __contains__(self, key: str) -> bool:
        """Return whether a case is planned."""
        return key in self._cases

    def case(self, key: str) -> Case | None:
        """Return a case as it was asked; None where it was not."""
        return self._cases.get(key)

    @property
    def keys(self) -> Sequence[str]:
        """Return the keys of all cases, in the order in which they were added."""
        return list(self._cases)

    def is_answered(self, key: str) -> bool:
        """Return whether there is an execution of a case."""
        return (self.suite, key) in self.executions

    def one(self, key: str, reader: str = "") -> Reading:
        """Return the reading of one answer by itself; a small margin makes it unstable.

        Without a margin equal ones are one object.
        """
        if not self.oracles:
            return Reading(value=None, reason=Reason.NOT_ASKED)
        name = self._oracle_of(key, reader)
        readings = self._single.setdefault(name, {})
        reading = readings.get(key)
        if reading is None:
            raw = self._raw(key, name)
            if raw.margin is None:
                reading = self._held.get(raw)
            if reading is None:
                reading = self._together_of([key], name)
                if raw.margin is None:
                    self._held[raw] = reading
            readings[key] = reading
        return reading

    def all_of(self, key: str, reader: str = "") -> Reading:
        """Return the combined reading of all answers to a case and its repeats."""
        keys = self._repeats.get(key)
        if keys is None:
            return self.one(key, reader)
        if len(keys) == 1:
            return self.one(keys[0], reader)
        name = self._oracle_of(key, reader)
        readings = self._together.setdefault(name, {})
        if key not in readings:
            readings[key] = self._together_of(keys, name)
        return readings[key]

    def whatever_margin(self, key: str, reader: str = "") -> Reading:
        """Combine all answers to a case as `all_of` does, but read near ties by their label.

        Unstable is then only what changes between repeats.
        """
        reading = self.all_of(key, reader)
        if reading.reason is not Reason.UNSTABLE:
            return reading
        name = self._oracle_of(key, reader)
        raw = [self._raw(each, name) for each in self.repeat_keys(key)]
        return read_together(raw, self.oracles[name], -math.inf)

    def columns(self, units: Sequence[Unit]) -> dict[str, ReadingColumn]:
        """Read the answers to units, and return by role how they were read.

        Each answer is read by the oracle of its unit's relation, where it has one.
        """
        roles = dict.fromkeys(role for unit in units for role in unit.asks)
        codes = {role: [-1] * len(units) for role in roles}
        places: dict[Reading, int] = {}
        # Pairs of one source follow each other: its answer is looked up once.
        last: dict[str, tuple[str, str, int]] = {}
        for row, unit in enumerate(units):
            reader = unit.dimensions.get("relation", "")
            for role, key in unit.asks.items():
                name = last.get(role)
                if name is None or name[:2] != (key, reader):
                    place = places.setdefault(self.all_of(key, reader), len(places))
                    name = last[role] = key, reader, place
                codes[role][row] = name[2]
        different = list(places)
        return {
            role: ReadingColumn(np.asarray(of_role, dtype=np.int32), different)
            for role, of_role in codes.items()
        }

    def repeat_keys(self, key: str) -> Sequence[str]:
        """List the keys of a case and of its repeats that count together."""
        return self._repeats.get(key, (key,))

    def repeats_of(self, key: str, reader: str = "") -> Sequence[Reading]:
        """Return the readings of a case asked more than once, thin margins included; else none."""
        keys = self._repeats.get(key, ())
        if len(keys) < 2:
            return ()
        return [self._raw(repeat, self._oracle_of(repeat, reader)) for repeat in keys]

    @property
    def has_repeats(self) -> bool:
        """Return whether any case was asked more than once."""
        return any(len(keys) > 1 for keys in self._repeats.values())

    def _oracle_of(self, key: str, reader: str) -> str:
        """Return which oracle reads a case."""
        case = self._cases.get(key)
        if case is not None and (not reader or case.judge is not None):
            reader = case.oracle
        return self._first.get(reader) or self._first_of(reader)

    def _first_of(self, name: str) -> str:
        """Return the name of the first oracle that is equal to the named one."""
        if name not in self._first:
            own = self.oracles.get(name)
            same = (other for other, oracle in self.oracles.items() if oracle == own)
            self._first[name] = next(same, name)
        return self._first[name]

    def _together_of(self, keys: Sequence[str], name: str) -> Reading:
        raw = [self._raw(key, name) for key in keys]
        if keys[0] not in self._cases:
            return raw[0]
        return read_together(raw, self.oracles[name], self.unstable_margin)

    def _raw(self, key: str, name: str) -> Reading:
        if key not in self._cases:
            source = self.executions.get((self.suite, self._embedded.get(key, "")))
            is_empty = source is not None and source.response is not None
            return Reading(value=None, reason=Reason.UNREADABLE if is_empty else Reason.MISSING)
        execution = self.executions.get((self.suite, key))
        if execution is None or execution.response is None:
            return Reading(value=None, reason=Reason.MISSING)
        case = self._cases[key]
        if case.judge is None and self.why_unread(execution.response):
            return Reading(value=None, reason=Reason.UNREADABLE)
        self._prepare(name)
        return self.oracles[name].read(self._with_known_tags(execution), of_system(case))

    def why(self, key: str, reader: str = "") -> str:
        """Say why the answer to a case is unreadable; empty where none is there."""
        case, execution = self._cases.get(key), self.executions.get((self.suite, key))
        if case is None or execution is None or not self.oracles:
            return ""
        if case.judge is None and (unread := self.why_unread(execution.response or "")):
            return unread
        # An oracle from elsewhere need not say it.
        why = getattr(self.oracles[self._oracle_of(key, reader)], "why", None)
        return "" if why is None else str(why(self._with_known_tags(execution), case))

    def _with_known_tags(self, execution: Execution) -> Execution:
        if not self.thinking or execution.response is None:
            return execution
        return execution._replace(response=with_known_tags(execution.response, self.thinking))

    def _prepare(self, name: str) -> None:
        """Show an oracle that likes many answers at once all that it may be asked about.

        These are the answers to the cases of its own relation, and to all sources: it may share
        them with others.
        """
        prepare = getattr(self.oracles[name], "prepare", None)
        if prepare is None or name in self._prepared:
            return
        self._prepared.add(name)
        executions = (
            self.executions.get((self.suite, case.key))
            for case in self._cases.values()
            if self._first_of(case.oracle) == name
            or (case.judge is None and not is_follow_up(case.key))
        )
        answered = [self._with_known_tags(execution) for execution in executions if execution]
        prepare([execution.response for execution in answered if execution.response])
