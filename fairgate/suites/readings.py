"""Every answer as its oracle read it: read once, when first asked for, and shared by all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.keys import first_asked
from fairgate.domain.units import Reading, Reason
from fairgate.oracles.oracle import Oracle, read_together
from fairgate.oracles.tone import ReadsTogether


@dataclass(frozen=True, slots=True)
class Readings:
    """The readings of one suite's cases. A cache: what it returns follows from its inputs alone."""

    suite: str
    oracles: Mapping[str, Oracle]
    unstable_margin: float
    executions: Mapping[tuple[str, str], Execution]
    _cases: dict[str, Case] = field(default_factory=dict)
    _embedded: dict[str, str] = field(default_factory=dict)
    _repeats: dict[str, list[str]] = field(default_factory=dict)
    _single: dict[str, Reading] = field(default_factory=dict)
    _together: dict[str, Reading] = field(default_factory=dict)
    _prepared: set[str] = field(default_factory=set)
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

    def one(self, key: str) -> Reading:
        """Return the reading of one answer by itself; a small margin makes it unstable."""
        found = self._single.get(key)
        if found is None:
            found = self._single[key] = self._alone(key)
        return found

    def all_of(self, key: str) -> Reading:
        """Return the combined reading of all answers to a case and its repeats."""
        keys = self._repeats.get(key)
        if keys is None:
            return self.one(key)
        if len(keys) == 1:
            return self.one(keys[0])
        if key not in self._together:
            self._together[key] = self._together_of(keys)
        return self._together[key]

    def repeats(self) -> dict[str, list[Reading]]:
        """Return the readings of cases that were asked more than once, thin margins included."""
        return {
            key: [self._raw(each) for each in keys]
            for key, keys in self._repeats.items()
            if len(keys) > 1
        }

    def _alone(self, key: str) -> Reading:
        """Return the reading of one answer; without a margin equal ones are one object."""
        raw = self._raw(key)
        if raw.margin is not None:
            return self._together_of([key])
        found = self._held.get(raw)
        if found is None:
            found = self._held[raw] = self._together_of([key])
        return found

    def _together_of(self, keys: Sequence[str]) -> Reading:
        raw = [self._raw(key) for key in keys]
        case = self._cases.get(keys[0])
        if case is None:
            return raw[0]
        return read_together(raw, self.oracles[case.oracle], self.unstable_margin)

    def _raw(self, key: str) -> Reading:
        if key not in self._cases:
            source = self.executions.get((self.suite, self._embedded.get(key, "")))
            is_empty = source is not None and source.response is not None
            return Reading(value=None, reason=Reason.UNREADABLE if is_empty else Reason.MISSING)
        execution = self.executions.get((self.suite, key))
        if execution is None or execution.response is None:
            return Reading(value=None, reason=Reason.MISSING)
        case = self._cases[key]
        self._prepare(case.oracle)
        return self.oracles[case.oracle].read(execution, case)

    def _prepare(self, name: str) -> None:
        """Show an oracle that likes many answers at once all that it will be asked about."""
        if name in self._prepared:
            return
        self._prepared.add(name)
        oracle = self.oracles[name]
        if not isinstance(oracle, ReadsTogether):
            return
        cases = [case.key for case in self._cases.values() if case.oracle == name]
        found = (self.executions.get((self.suite, key)) for key in cases)
        oracle.prepare([each.response for each in found if each is not None and each.response])
