"""Cases that the policy sets aside until a date: which they are, and when an entry is wrong."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from fairgate.domain.cases import TestPlan
from fairgate.domain.wording import harmless, quoted, suggestion
from fairgate.policy.schema import Policy

Path = tuple[str | int, ...]


def quarantined(policy: Policy, suite: str) -> frozenset[str]:
    """Return the keys that count for nothing in a suite."""
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
                    f"({harmless(entry.reason)[:80]}): remove the entry, or say why it needs longer"
                ),
            )


def quarantine_notices(policy: Policy, plan: TestPlan) -> list[str]:
    """Return a sentence for each entry: what is set aside, how much, until when and why."""
    notices = []
    for entry in policy.quarantine:
        pairs = sum(
            entry.suite in (None, pair.suite) and entry.case in (pair.key, pair.source)
            for pair in plan.pairs
        )
        # The key of an item stands for every way in which it is asked.
        items = sum(
            entry.suite in (None, case.suite) and entry.case in (case.key, case.item.key)
            for case in plan.items
        )
        many = "1 pair" if pairs == 1 else f"{pairs} pairs"
        if items:
            many = "1 case" if items == 1 else f"{items} cases"
        notices.append(
            f"quarantined until {entry.until}: {entry.case} ({many} left out): {entry.reason}"
        )
    return notices


def _keys(plan: TestPlan, suite: str | None) -> list[str]:
    """Return what an entry can name: pairs, sources, items and ways in which they are asked."""
    pairs = [pair for pair in plan.pairs if suite in (None, pair.suite)]
    items = [case for case in plan.items if suite in (None, case.suite)]
    named = [key for pair in pairs for key in (pair.source, pair.key)]
    named += [key for case in items for key in (case.item.key, case.key)]
    return list(dict.fromkeys(named))


def _hint(key: str, keys: list[str]) -> str:
    source = key.partition("#")[0]
    near = [known for known in keys if known.partition("#")[0] == source]
    return suggestion(key, near or [known for known in keys if "#" not in known][:2000])
