"""A relation of a user's file: whatever it raises or returns in another form names it and why.

What is asked of it is passed on unchanged, and so is what it returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from fairgate.domain.cases import Case, Source, Task
from fairgate.domain.errors import FairGateError, UsageError
from fairgate.domain.executions import Execution
from fairgate.domain.units import Claim, Reading, Reason
from fairgate.domain.wording import harmless, quoted, shown
from fairgate.relations.oracles.oracle import Oracle
from fairgate.relations.oracles.tone import ReadsTogether
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.relations.relation import Asked, FollowUp, MetamorphicRelation, NotApplicable

Result = TypeVar("Result")
Where = Callable[[BaseException | None], str]
"""What was raised, or None, to the place in the file that messages begin with."""
_TEXTS = ("variant", "category", "term", "text", "noun_phrase", "inapplicable")
_COMPARED = ("generation", "controlled")


class GuardedRelation:
    """A relation whose faults are errors of the user's, each with its place and its source."""

    def __init__(self, inner: MetamorphicRelation, where: Where) -> None:
        """Take the relation, and how messages name its file."""
        self._inner = inner
        self._where = where
        self._about = ""

    def __getattr__(self, name: str) -> Any:
        """Return what the relation says of itself."""
        return getattr(self._inner, name)

    def oracle(self, task: Task | None) -> Oracle:
        """Return what reads the answers; one of the user's own is guarded, too."""
        found = self._called("oracle", lambda: self._inner.oracle(task), _wrong_oracle)
        is_shipped = type(found).__module__.startswith("fairgate.")
        return found if is_shipped else cast("Oracle", _GuardedOracle(found, self))

    def asks(self, source: Source, task: Task | None) -> Asked:
        """Return what is asked."""
        self._about = _of(source)
        return self._called("asks", lambda: self._inner.asks(source, task), _wrong_asked)

    def source_text(self, source: Source) -> str:
        """Return what is put to the system for the source itself."""
        self._about = _of(source)
        return self._called("source_text", lambda: self._inner.source_text(source), _wrong_text)

    def follow_ups(
        self, source: Source, sets: Sequence[PerturbationSet]
    ) -> Sequence[FollowUp] | NotApplicable:
        """Return the follow-ups, or why there are none."""
        self._about = _of(source)
        return self._called(
            "follow_ups", lambda: self._inner.follow_ups(source, sets), _wrong_follow_ups
        )

    def most_follow_ups(self, source: Source, sets: Sequence[PerturbationSet]) -> int:
        """Return at least as many as `follow_ups` makes."""
        self._about = _of(source)
        return self._called(
            "most_follow_ups", lambda: self._inner.most_follow_ups(source, sets), _wrong_count
        )

    def fault(self, source_text: str, follow_up: FollowUp) -> str | None:
        """Return how a follow-up differs beyond what is declared."""
        return self._called(
            "fault", lambda: self._inner.fault(source_text, follow_up), _wrong_reason
        )

    def expected(self, source: Reading, controls: Sequence[Reading]) -> Reading:
        """Return the combined reading of a source's control answers."""
        self._about = _read(source)
        return self._called(
            "expected", lambda: self._inner.expected(source, controls), _wrong_reading
        )

    def claims(self, source: Reading, follow_up: Reading, expected: Reading) -> Mapping[str, Claim]:
        """Return what is claimed of a pair."""
        self._about = f"{_read(source)} and {shown(follow_up.value)}"
        return self._called(
            "claims", lambda: self._inner.claims(source, follow_up, expected), _wrong_claims
        )

    def read(self, oracle: Oracle, execution: Execution, case: Case) -> Reading:
        """Return how an oracle of the user's reads an answer."""
        self._about = f" at the source {quoted(case.cluster)}"
        return self._called("oracle().read", lambda: oracle.read(execution, case), _wrong_reading)

    def prepare(self, oracle: ReadsTogether, responses: Sequence[str]) -> None:
        """Show an oracle of the user's all answers that it is going to read."""
        self._about = ""
        self._called("oracle().prepare", lambda: oracle.prepare(responses), lambda _: None)

    def same(self, oracle: Oracle, left: Reading, right: Reading) -> bool:
        """Return whether an oracle of the user's takes two readings for the same."""
        self._about = f"{_read(left)} and {shown(right.value)}"
        return self._called("oracle().same", lambda: oracle.same(left, right), _wrong_choice)

    def _called(
        self, method: str, call: Callable[[], Result], wrong: Callable[[Result], str | None]
    ) -> Result:
        try:
            found = call()
            fault = wrong(found)
        except FairGateError:
            raise
        except (Exception, SystemExit) as error:
            raise UsageError(
                f"{self._where(error)}: `{method}` of the relation {quoted(self._inner.id)} fails"
                f"{self._about}: {type(error).__name__}: {harmless(str(error)[:300])}; correct it"
            ) from error
        if fault is not None:
            raise UsageError(
                f"{self._where(None)}: `{method}` of the relation {quoted(self._inner.id)} "
                f"returns{self._about} {fault}"
            )
        return found


class _GuardedOracle:
    """An oracle of the user's, asked through its relation."""

    def __init__(self, inner: Oracle, relation: GuardedRelation) -> None:
        self._inner = inner
        self._relation = relation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def read(self, execution: Execution, case: Case) -> Reading:
        return self._relation.read(self._inner, execution, case)

    def prepare(self, responses: Sequence[str]) -> None:
        """Pass on all answers, where that makes them quicker to read."""
        if isinstance(self._inner, ReadsTogether):
            self._relation.prepare(self._inner, responses)

    def same(self, left: Reading, right: Reading) -> bool:
        return self._relation.same(self._inner, left, right)


def _of(source: Source) -> str:
    return f" at the source {quoted(source.id)}"


def _read(source: Reading) -> str:
    return f" at the answers {shown(source.value)}"


def _wrong_asked(found: object) -> str | None:
    return None if isinstance(found, Asked) else f"{shown(found)}; expected an Asked"


def _wrong_oracle(found: object) -> str | None:
    is_fine = all(hasattr(found, name) for name in ("id", "stop", "read", "same"))
    return None if is_fine else f"{shown(found)}; expected an Oracle"


def _wrong_choice(found: object) -> str | None:
    return None if isinstance(found, bool) else f"{shown(found)}; expected true or false"


def _wrong_text(found: object) -> str | None:
    return None if isinstance(found, str) else f"{shown(found)}; expected a text"


def _wrong_count(found: object) -> str | None:
    is_count = isinstance(found, int) and not isinstance(found, bool) and found >= 0
    return None if is_count else f"{shown(found)}; expected a whole number from 0 on"


def _wrong_reason(found: object) -> str | None:
    is_fine = found is None or isinstance(found, str)
    return None if is_fine else f"{shown(found)}; expected None, or a text that says what is wrong"


def _wrong_reading(found: object) -> str | None:
    return None if isinstance(found, Reading) else f"{shown(found)}; expected a Reading"


def _wrong_follow_ups(found: object) -> str | None:
    if isinstance(found, NotApplicable):
        return _wrong_text(found.reason)
    if not isinstance(found, list | tuple):
        return f"{shown(found)}; expected a list of FollowUp, or NotApplicable"
    variants = set()
    for number, each in enumerate(found):
        if not isinstance(each, FollowUp):
            return f"{shown(each)} at place {number}; expected a FollowUp"
        for name in _TEXTS:
            if not isinstance(getattr(each, name), str):
                value = shown(getattr(each, name))
                return f"a FollowUp (place {number}) whose `{name}` is {value}; expected a text"
        if not each.variant or each.variant in variants:
            return (
                f"a FollowUp (place {number}) with the `variant` {quoted(each.variant)}, which "
                "must not be empty and is another one's already; give each one of its own"
            )
        variants.add(each.variant)
    return None


def _wrong_claims(found: object) -> str | None:
    if not isinstance(found, Mapping) or not set(_COMPARED) <= set(found):
        return f"{shown(found)}; expected a dict with `generation` and `controlled`"
    for name in _COMPARED:
        value = found[name]
        is_number = isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= 1
        if not isinstance(value, Reason) and not is_number:
            return f"`{name}`: {shown(value)}; expected 0.0 to 1.0, or a Reason"
    return None
