"""Whether a judge's verdicts count: its record, as `fairgate judge evaluate` wrote it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import DataError
from fairgate.domain.runtime import Runtime
from fairgate.domain.schema import JudgeModel
from fairgate.domain.wording import harmless, quoted
from fairgate.io.embedded_names import existing
from fairgate.io.text_files import read_json_object
from fairgate.relations.oracles.judge import JUDGE_RULE
from fairgate.suites.suite import JudgeSetup

RECORD_VERSION = 1
_FIGURES = ("precision", "recall", "f1", "auc", "kappa", "stability")
_TEXTS = ("definition", "fingerprints", "rule")
_COUNTS = ("pairs", "decided")


def read_record(judge: JudgeModel, runtime: Runtime) -> Mapping[str, object] | None:
    """Return the record that the policy names; None where it names none. Raises DataError."""
    if judge.record is None:
        return None
    path = existing(judge.record, runtime.root, confined=runtime.confined)
    record = read_json_object(path)
    if record.get("schema_version") != RECORD_VERSION:
        raise DataError(
            f"{judge.record}: 'schema_version' is {str(record.get('schema_version'))[:40]!r}, "
            f"expected {RECORD_VERSION}: write the record with `fairgate judge evaluate --out`"
        )
    for name in _TEXTS:
        if not isinstance(record.get(name), str):
            raise _wrong(judge, name, record, "a text")
    for name in _COUNTS:
        if not isinstance(record.get(name), int) or isinstance(record.get(name), bool):
            raise _wrong(judge, name, record, "a number of pairs")
    return record


def _wrong(judge: JudgeModel, name: str, record: Mapping[str, object], expected: str) -> DataError:
    return DataError(
        f"{judge.record}: {name!r} holds {str(record.get(name))[:60]!r}, expected {expected}: "
        "write the record with `fairgate judge evaluate --out`"
    )


def judge_setup(judge: JudgeModel | None, record: Mapping[str, object] | None) -> JudgeSetup | None:
    """Return what suites know of the judge before any model is looked at."""
    if judge is None:
        return None
    return JudgeSetup(
        count=len(judge.names),
        definition=judge.definition,
        is_proven=not any(shortcomings(judge, record)),
    )


def shortcomings(
    judge: JudgeModel, record: Mapping[str, object] | None, fingerprints: str | None = None
) -> Iterator[str]:
    """Yield why the verdicts fail no build; nothing where the record suffices.

    `fingerprints` are those of the models that judged; None: not looked at yet.
    """
    if record is None:
        yield "has no record: measure it with `fairgate judge evaluate` and name that as `record`"
        return
    if record["definition"] != judge.definition:
        yield (
            f"is another one than its record {quoted(judge.record or '')} was measured with: "
            "models, prompts or decoding differ"
        )
    elif fingerprints is not None and record["fingerprints"] != fingerprints:
        yield (
            f"consists of other models than its record was measured with: {harmless(fingerprints)} "
            f"instead of {harmless(str(record['fingerprints'])[:400])}"
        )
    if record["rule"] != JUDGE_RULE:
        yield f"was measured by the rule {harmless(str(record['rule'])[:40])}, now {JUDGE_RULE}"
    yield from _below(judge, record)


def _below(judge: JudgeModel, record: Mapping[str, object]) -> Iterator[str]:
    """Yield every figure of the record that does not reach the policy's floor."""
    floor = judge.floor
    pairs, decided = record["pairs"], record["decided"]
    assert isinstance(pairs, int)  # noqa: S101 (`read_record` refuses others)
    assert isinstance(decided, int)  # noqa: S101
    if decided < floor.pairs:
        yield f"was measured on {decided} pairs with a verdict, below the floor of {floor.pairs}"
    if not pairs > 0 or decided < floor.decided * pairs:
        yield (
            f"had a verdict for {decided} of {pairs} pairs, a smaller share than the floor of "
            f"{floor.decided:g}"
        )
    for name in _FIGURES:
        least = getattr(floor, name)
        value = _value(record.get(name))
        if least is not None and (value is None or value < least):
            shown = "not measured" if value is None else f"{value:g}"
            yield f"has {name} {shown} in its record, below the floor of {least:g}"


def _value(figure: object) -> float | None:
    """Return a figure's estimate; None where there is no finite one."""
    value = figure.get("value") if isinstance(figure, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def standing_notice(judge: JudgeModel, why: list[str]) -> str:
    """Return what readers must know of a judge whose verdicts fail no build."""
    return (
        f"the judge {quoted(judge.id)} {'; it '.join(why)}. Its verdicts are reported and fail no "
        "build"
    )


def unproven(plan: TestPlan) -> TestPlan:
    """Return the plan with every judged pair marked: verdicts are reported and fail no build."""
    units = [
        unit._replace(is_unproven=True, advisory=True) if unit.verdicts else unit
        for unit in plan.units
    ]
    return replace(plan, units=units)
