"""Code of the user's: whatever it raises or returns in another form names it and why.

What is asked of a relation of a user's file, and of its oracle, is passed on unchanged, and so is
what it returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from fairgate.domain.cases import Case, Source, Task
from fairgate.domain.errors import FairGateError, UsageError
from fairgate.domain.executions import Execution
from fairgate.domain.units import Reading, Reason
from fairgate.domain.wording import harmless, quoted, shown
from fairgate.relations.oracles.oracle import Oracle
from fairgate.relations.relation import Asked, FollowUp, MetamorphicRelation, NotApplicable

Where = Callable[[BaseException | None], str]
"""What was raised, or None, to the place in the file that messages begin with."""
Wrong = Callable[[Any], str | None]
"""What was returned, to what is wrong about it."""
About = Callable[..., str]
"""What is given, to the source or the answers that messages name."""
_TEXTS = ("variant", "category", "term", "text", "noun_phrase", "inapplicable")
_COMPARED = ("generation", "controlled")


@contextmanager
def code_of_the_user(
    message: Callable[[BaseException, str], str], passed: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Run code of the user's: what it raises is an error of theirs, and ends nothing else.

    `message` makes the message of what was raised and of its words; `passed` are errors that are
    passed on as they are.
    """
    try:
        yield
    except passed:
        raise
    except (Exception, SystemExit) as error:
        words = f"{type(error).__name__}: {harmless(str(error)[:300])}"
        raise UsageError(message(error, words)) from error


class Guarded:
    """A relation of the user's, or an oracle of one: faults are reported with place and source."""

    def __init__(self, inner: MetamorphicRelation | Oracle, where: Where, owner: str = "") -> None:
        """Take what is guarded, and how messages name its file; an oracle's `owner` is an id."""
        self._inner = inner
        self._where = where
        self._id = owner or inner.id
        self._before = "oracle()." if owner else ""
        self._about = ""
        for name, (wrong, about) in (_OF_AN_ORACLE if owner else _OF_A_RELATION).items():
            if hasattr(inner, name):
                setattr(self, name, partial(self._called, name, wrong, about))

    def __getattr__(self, name: str) -> Any:
        """Return what it says of itself."""
        return getattr(self._inner, name)

    def oracle(self, task: Task | None) -> Oracle:
        """Return what reads the answers; one of the user's own is guarded, too."""
        found = cast("Oracle", self._called("oracle", _wrong_oracle, None, task))
        is_shipped = type(found).__module__.startswith("fairgate.")
        return found if is_shipped else cast("Oracle", Guarded(found, self._where, self._id))

    def _called(self, name: str, wrong: Wrong, about: About | None, *given: Any) -> Any:
        self._about = self._about if about is None else about(*given)

        def message(error: BaseException, words: str) -> str:
            return self._reported(name, error, f"fails{self._about}: {words}; correct it")

        with code_of_the_user(message, passed=(FairGateError,)):
            found = getattr(self._inner, name)(*given)
            fault = wrong(found)
        if fault is not None:
            raise UsageError(self._reported(name, None, f"returns{self._about} {fault}"))
        return found

    def _reported(self, name: str, error: BaseException | None, did: str) -> str:
        method = f"`{self._before}{name}` of the relation {quoted(self._id)}"
        return f"{self._where(error)}: {method} {did}"


def _source(source: Source, *_: object) -> str:
    return f" at the source {quoted(source.id)}"


def _case(execution: Execution, case: Case) -> str:
    del execution
    return f" at the source {quoted(case.cluster)}"


def _answer(source: Reading, *_: object) -> str:
    return f" at the answers {shown(source.value)}"


def _answers(source: Reading, follow_up: Reading, *_: object) -> str:
    return f"{_answer(source)} and {shown(follow_up.value)}"


def _is_no(kind: type | tuple[type, ...], wanted: str) -> Wrong:
    return lambda found: None if isinstance(found, kind) else f"{shown(found)}; expected {wanted}"


def _wrong_oracle(found: object) -> str | None:
    is_fine = all(hasattr(found, name) for name in ("id", "stop", "read", "same"))
    return None if is_fine else f"{shown(found)}; expected an Oracle"


def _wrong_count(found: object) -> str | None:
    is_count = isinstance(found, int) and not isinstance(found, bool) and found >= 0
    return None if is_count else f"{shown(found)}; expected a whole number from 0 on"


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


_wrong_text = _is_no(str, "a text")
_wrong_reading = _is_no(Reading, "a Reading")
_OF_A_RELATION: dict[str, tuple[Wrong, About | None]] = {
    "asks": (_is_no(Asked, "an Asked"), _source),
    "source_text": (_wrong_text, _source),
    "follow_ups": (_wrong_follow_ups, _source),
    "most_follow_ups": (_wrong_count, _source),
    "fault": (_is_no((str, type(None)), "None, or a text that says what is wrong"), None),
    "expected": (_wrong_reading, _answer),
    "claims": (_wrong_claims, _answers),
}
"""By a method's name; None: it is about what the call before it was."""
_OF_AN_ORACLE: dict[str, tuple[Wrong, About | None]] = {
    "read": (_wrong_reading, _case),
    "prepare": (lambda _: None, lambda _: ""),
    "same": (_is_no(bool, "true or false"), _answers),
}
