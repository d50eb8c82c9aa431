"""Cases that the policy excludes until a date: which they are, and when an entry is wrong."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from fairgate.domain.cases import TestPlan, source_of
from fairgate.domain.units import Unit
from fairgate.domain.wording import harmless, quoted, suggestion
from fairgate.policy.schema import Policy

Path = tuple[str | int, ...]


def quarantined(policy: Policy, suite: str) -> frozenset[str]:
    """Return the excluded keys of a suite."""
    return frozenset(entry.case for entry in policy.quarantine if entry.suite in (None, suite))


def quarantine_problems(
    policy: Policy, plan: TestPlan, today: dt.date | None
) -> Iterator[tuple[Path, str]]:
    """Yield (path in the policy, message) for entries that have expired or name no case.

    `today` None does not ask for the date.
    """
    suites = [suite.id for suite in policy.suites]
    for position, entry in enumerate(policy.quarantine):
        path: Path = ("quarantine", position)
        if entry.suite is not None and entry.suite not in suites:
            yield (
                (*path, "suite"),
                f"unknown suite {quoted(entry.suite)}; {suggestion(entry.suite, suites)}",
            )
            continue
        keys = _keys(plan, entry.suite)
        if entry.case not in keys:
            yield (
                (*path, "case"),
                (
                    f"no case has the key {quoted(entry.case)}; "
                    f"{_hint(entry.case, keys)}: correct or remove the entry"
                ),
            )
        try:
            until = dt.date.fromisoformat(entry.until)
        except ValueError:
            yield (*path, "until"), f"{quoted(entry.until)} is no date; expected YYYY-MM-DD"
            continue
        if today is not None and until < today:
            yield (
                (*path, "until"),
                (
                    f"the quarantine of {quoted(entry.case)} ended on {entry.until} "
                    f"({harmless(entry.reason)[:80]}): remove the entry, or extend it with a reason"
                ),
            )


def quarantine_notices(policy: Policy, plan: TestPlan) -> list[str]:
    """Return a sentence for each entry: what is excluded, how much, until when and why."""
    notices = []
    for entry in policy.quarantine:
        left_out = [
            unit
            for unit in plan.units
            if entry.suite in (None, unit.suite) and entry.case in _names(unit)
        ]
        noun = "pair" if all(len(unit.asks) > 1 for unit in left_out) else "case"
        many = f"{len(left_out)} {noun}{'' if len(left_out) == 1 else 's'}"
        notices.append(
            f"quarantined until {entry.until}: {entry.case} ({many} left out): {entry.reason}"
        )
    return notices


def _names(unit: Unit) -> list[str]:
    """Return what an entry can call a unit: its own key, a case it asks, or its item.

    The key of an item covers every way in which it is asked.
    """
    item = unit.names.get("item")
    return [*([item] if item else []), *unit.asks.values(), unit.key]


def _keys(plan: TestPlan, suite: str | None) -> list[str]:
    named = [name for u in plan.units if suite in (None, u.suite) for name in _names(u)]
    return list(dict.fromkeys(named))


def _hint(key: str, keys: list[str]) -> str:
    source = source_of(key)
    near = [known for known in keys if source_of(known) == source]
    return suggestion(key, near or [known for known in keys if "#" not in known][:2000])
