"""A run record that somebody else's machine wrote, told again in our own words.

The record is hostile: its form is checked, everything that is not needed is ignored, every text is
escaped, and the reader is told that nobody has verified the numbers.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairgate.domain.errors import DataError
from fairgate.domain.outcomes import Outcome
from fairgate.metrics.catalogue import BY_ID
from fairgate.reports import figures
from fairgate.reports.escaping import markdown, markdown_code, markdown_prose, name, sentence
from fairgate.reports.rule_rows import SYMBOLS

_ROWS = 40
_TITLES = {
    Outcome.PASS: "the gate passed",
    Outcome.FAIL: "the gate failed",
    Outcome.INCONCLUSIVE: "no verdict",
    Outcome.NOT_EVALUATED: "no verdict",
}
Text = Annotated[str, Field(max_length=4000)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e6, le=1e6)]


class _Checked(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Change(_Checked):
    base: Number | None = None


class _Rule(_Checked):
    metric: Annotated[str, Field(max_length=100)]
    suite: Text
    where: Annotated[dict[Text, Text], Field(max_length=16)] = {}
    outcome: Outcome
    reasons: Annotated[list[Text], Field(max_length=20)] = []
    value: Number | None = None
    interval: tuple[Number | None, Number | None] | None = None
    change: _Change | None = None
    advisory: bool = False


class _Evidence(_Checked):
    planned: Annotated[int, Field(ge=0, le=10**9)]
    decided: Annotated[int, Field(ge=0, le=10**9)]
    problems: Annotated[list[Text], Field(max_length=1000)] = []


class ForeignRecord(_Checked):
    """What is believed of a record's form; nothing of its content is."""

    policy: Annotated[str, Field(min_length=1, max_length=200)]
    outcome: Outcome
    rules: Annotated[list[_Rule], Field(max_length=5000)]
    evidence: _Evidence


def read_foreign_record(raw: bytes) -> ForeignRecord:
    """Return the record. Raises DataError where it is not one."""
    try:
        record = ForeignRecord.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise DataError(
            f"run.json is not a run record ({sentence(place)[:100]}: {first['type']}); it may come "
            "from another version of FairGate: use the same one in both workflows"
        ) from error
    unknown = next((rule.metric for rule in record.rules if rule.metric not in BY_ID), None)
    if unknown is not None:
        raise DataError(
            f"run.json names a metric that this FairGate does not have: {markdown(name(unknown))}"
        )
    return record


def render_foreign_record(record: ForeignRecord, *, head: str, report_url: str) -> str:
    """Return the comment: verdict, rules, and whose word that is."""
    symbol, title = SYMBOLS[record.outcome], _TITLES[record.outcome]
    decided, planned = record.evidence.decided, record.evidence.planned
    lines = [
        f"### {symbol} FairGate: {title} in {markdown_code(name(record.policy))}",
        "",
        f"{decided} of {planned} pairs decided at commit `{head[:12]}` · [run]({report_url})",
        "",
        *(f"- {markdown_prose(sentence(text))}" for text in record.evidence.problems[:5]),
        "",
        "| | rule | now | base | 95 % interval | verdict |",
        "|:-:|:--|--:|--:|:-:|:--|",
        *map(_row, sorted(record.rules, key=_rank)[:_ROWS]),
        "",
    ]
    if len(record.rules) > _ROWS:
        lines += [f"{len(record.rules) - _ROWS} further rules are not shown.", ""]
    lines.append(
        "<sub>These numbers come from a run of a fork's files. FairGate wrote them down again; it "
        "did not verify them.</sub>"
    )
    return "\n".join(lines) + "\n"


def _rank(rule: _Rule) -> tuple[bool, int]:
    order = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1, Outcome.NOT_EVALUATED: 2, Outcome.PASS: 3}
    return rule.advisory, order[rule.outcome]


def _row(rule: _Rule) -> str:
    where = ", ".join(rule.where.values())
    shown = f"{figures.title(rule.metric)} {markdown_code(rule.metric)}"
    shown += f" {markdown(name(where))}" if where else ""
    low, high = rule.interval or (None, None)
    interval = figures.NONE
    if low is not None and high is not None:
        interval = figures.interval((low, high), rule.metric)
    base = figures.value(rule.change.base if rule.change else None, rule.metric)
    reasons = "; ".join(sentence(reason)[:300] for reason in rule.reasons[:3])
    said = "pass" if rule.outcome is Outcome.PASS else f"**{rule.outcome.value}**"
    if reasons and rule.outcome is not Outcome.PASS:
        said += f": {markdown_prose(reasons)}"
    advisory = " (advisory)" if rule.advisory else ""
    return (
        f"| {SYMBOLS[rule.outcome]} | {shown} in {markdown(name(rule.suite))} | "
        f"{figures.value(rule.value, rule.metric)} | {base} | {interval} | {said}{advisory} |"
    )
