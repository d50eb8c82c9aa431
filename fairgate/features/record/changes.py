"""What differs from an earlier record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from fairgate.domain.errors import DataError
from fairgate.features.record.figures import size_text, sizes_text
from fairgate.features.record.history import History
from fairgate.features.record.model import Record, TestedRun
from fairgate.features.record.run import first_problem
from fairgate.io.tables import read_json_object
from fairgate.reports.escaping import excerpt

_MOST_OF_VALUE = 60


def earlier_record(path: Path) -> Record:
    """Return an earlier record. Raises DataError where the file is none."""
    try:
        return Record.model_validate(read_json_object(path))
    except ValidationError as error:
        raise DataError(
            f"{path}: is no record of this version ({first_problem(error)}); name the `.json` that "
            "`fairgate record` wrote"
        ) from error


def changes_since(earlier: Record, runs: Sequence[tuple[TestedRun, History]]) -> Iterator[str]:
    """Yield what differs from an earlier record, run by run (by policy and path)."""
    then = {f"{run.policy} ({run.policy_path})": run for run in earlier.runs}
    now = {f"{run.policy} ({run.policy_path})": (run, history) for run, history in runs}
    for name in {**then, **now}:
        if name not in then or name not in now:
            yield f"{name}: {'is new' if name in now else 'is no longer tested'}"
            continue
        yield from (f"{name}: {what}" for what in _differences(then[name], *now[name]))


def _differences(then: TestedRun, now: TestedRun, history: History) -> Iterator[str]:
    for name_of in ("day", "outcome", "fairgate"):
        before, after = getattr(then, name_of), getattr(now, name_of)
        if before != after:
            yield f"{name_of}: {before} → {after}"
    commits = [side.commit.id[:12] if side.commit else "not known" for side in (then, now)]
    if commits[0] != commits[1]:
        yield f"commit tested: {' → '.join(commits)}"
    if then.policy_sha256 != now.policy_sha256:
        old = history.policy_at(then.commit.id if then.commit else "", then.policy_sha256)
        keys = [*_changed_keys(old.data, history.data)] if old and history.document else None
        why = "not known which keys: the earlier policy, or this one, is no file of a commit here"
        yield f"policy, keys that changed: {why if keys is None else '; '.join(keys) or 'none'}"
    for part in {**then.under_test, **now.under_test}:
        before, after = (side.under_test.get(part, "none") for side in (then, now))
        if before != after:
            yield f"system, {part}: {before} → {after}"
    persons = [
        {f"{category}/{term}" for category, terms in side.tested.items() for term in terms}
        for side in (then, now)
    ]
    for change, left in (("no longer", persons[0] - persons[1]), ("now", persons[1] - persons[0])):
        if left:
            yield f"{change} tested: {', '.join(sorted(left))}"
    claims = [
        {f"{c.rule} in {c.suite} {c.where or ''}".strip(): c for c in side.claims}
        for side in (then, now)
    ]
    for name in {**claims[0], **claims[1]}:
        if name not in claims[0] or name not in claims[1]:
            yield f"{name}: {'newly asked' if name in claims[1] else 'no longer asked'}"
            continue
        for what, value_of in (
            ("limit", lambda c: sizes_text(c.limits, c.unit)),
            ("outcome", lambda c: c.outcome + ", waived" * (c.waived is not None)),
            ("named", lambda c: sizes_text({d.who: d.estimate for d in c.named}, c.unit)),
            ("value", lambda c: size_text(c.value, c.unit)),
        ):
            before, after = (value_of(side[name]) for side in claims)
            if before != after:
                yield f"{name}, {what}: {before} → {after}"


def _changed_keys(then: object, now: object, key: str = "") -> Iterator[str]:
    """Yield the keys of a policy that changed, each with both values."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name in {**then, **now}:
            yield from _changed_keys(then.get(name), now.get(name), f"{key}.{name}".lstrip("."))
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for index, (before, after) in enumerate(zip(then, now, strict=True)):
            yield from _changed_keys(before, after, f"{key}[{index}]")
    elif then != now:
        yield f"{key} ({_entry(then)} → {_entry(now)})"


def _entry(value: object) -> str:
    if isinstance(value, dict | list):
        return f"{len(value)} {'entry' if len(value) == 1 else 'entries'}"
    return "none" if value is None else excerpt(str(value), _MOST_OF_VALUE)
