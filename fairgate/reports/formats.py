"""The files that a finished run can be written as; those for machines and later runs are made here.

`run.json` and `rows.jsonl`, with a line a judged case, are documented in
docs/reference/run-record.md. Equal results give equal bytes: keys stand in a fixed order, numbers
are written as the engine rounded them, there are no timings but the `pace` of a system that became
slower, and what is not a finite number is null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from html import escape
from itertools import chain

from fairgate.domain.outcomes import Change, RuleResult
from fairgate.domain.parity import ParityResult, SelectionRate
from fairgate.domain.registry import FEATURES, Registry, at
from fairgate.domain.units import Arm, Assessed, Claim, Reason
from fairgate.gate.baseline import Baseline
from fairgate.gate.gate import GateResult
from fairgate.gate.labels import Precision
from fairgate.metrics import shift
from fairgate.metrics.columns import AssessedUnits
from fairgate.metrics.exposure import COLUMNS as EXPOSURE
from fairgate.metrics.exposure import RANKS
from fairgate.reports import material
from fairgate.reports.blocks import View
from fairgate.reports.escaping import markdown, markdown_block, plain
from fairgate.reports.html import render_html
from fairgate.reports.markdown import render_report
from fairgate.suites.metamorphic.plan import SOURCE

SCHEMA_VERSION = 2
_UNTOLD = ("parity", "failing", "doubts", "waiver")
_as_text = json.encoder.encode_basestring_ascii
_AS_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_VERDICTS = ("generation", "controlled", "retrieval")
_SCORES = ("mean-distance", "label-changes", "rrs", "overlap")
_MOST_HELD = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjudged:
    """What is reported in a verdict's place: an error, or a policy that is only introduced."""

    title: str
    text: str
    """Plain."""
    is_error: bool


def _unjudged_markdown(unjudged: Unjudged) -> str:
    return f"# {markdown(unjudged.title)}\n\n{markdown_block(unjudged.text)}\n"


def _unjudged_html(unjudged: Unjudged) -> str:
    title, text = (escape(plain(part)) for part in (unjudged.title, unjudged.text))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"<h1>{title}</h1>\n<pre>{text}</pre>\n</html>\n"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One way to write a run down."""

    id: str
    """As `--format` names it."""
    file: str
    render: Callable[[View], str | Iterator[str]]
    """The text, whole or in pieces that are written one after the other."""
    shown_as: str = ""
    """What the console calls the file; empty: it does not name it."""
    output: str = ""
    """Name of the action's output that holds the file's path; empty: there is none."""
    is_default: bool = False
    """Whether a run writes it where nobody names formats."""
    is_needed: bool = False
    """Whether later commands read it, so that every run writes it."""
    unjudged: Callable[[Unjudged], str] | None = None
    """The text in a verdict's place; None: there is no file then."""


def render_run_record(result: GateResult) -> str:
    """Return `run.json`."""
    return json.dumps(run_record(result), indent=2, allow_nan=False) + "\n"


def run_record(result: GateResult) -> dict[str, object]:
    """Return the content of `run.json` as plain values."""
    gate_input, accepted_runs = result.gate_input, result.gate_input.accepted_runs
    provenance = gate_input.provenance
    rejected = [_record(item, without=("relation",)) for item in gate_input.plan.rejected]
    return {
        "schema_version": SCHEMA_VERSION,
        "fairgate": provenance.fairgate,
        "policy": gate_input.policy.name,
        "outcome": result.outcome.value,
        "exit_code": int(result.exit_code),
        "confidence": gate_input.policy.confidence,
        "regression_level": gate_input.policy.regression_level,
        "measurements": [
            _record(item, without=() if item.note else ("note",)) for item in result.measurements
        ],
        "rules": [_rule(rule) for rule in result.rules],
        "parity": [_parity(parity) for parity in result.parity_results],
        "evidence": {**_record(result.evidence), "rejected": rejected},
        "baseline": accepted_runs.baseline_path if result.overlap is not None else None,
        "accepted": _accepted(accepted_runs.baseline) if result.overlap is not None else None,
        "overlap": _plain(result.overlap),
        "anchor": accepted_runs.anchor_path if result.anchor_overlap is not None else None,
        "anchor_overlap": _plain(result.anchor_overlap),
        "degradation": _plain(result.degradation),
        "attribution": [
            {
                **_record(finding),
                "parts": {part.name: _record(part, without=("name",)) for part in finding.parts},
            }
            for finding in result.attribution
        ],
        "fingerprint": {
            suite: dict(sorted(own.items())) for suite, own in sorted(gate_input.must_match.items())
        },
        "provenance": {
            "policy_path": provenance.policy_path,
            "policy_sha256": provenance.policy_sha256,
            "commit": provenance.commit or None,
            "under_test": dict(provenance.under_test),
            "environment": dict(provenance.environment),
        },
        **({"labels": _labels(gate_input.precisions)} if gate_input.precisions else {}),
        **({"selection": [*map(_selection, result.selection)]} if result.selection else {}),
        **({} if result.origin is None else {"answers": _record(result.origin)}),
        **({"day": gate_input.day} if gate_input.day else {}),
        "notices": result.notices,
    }


def _accepted(baseline: Baseline | None) -> dict[str, object] | None:
    """Return which accepted run was compared with."""
    if baseline is None:
        return None
    provenance = baseline.provenance
    return {
        "date": baseline.date,
        "fairgate": provenance.fairgate,
        "commit": provenance.commit or None,
        "sha256": baseline.sha256,
    }


def _labels(by_suite: Mapping[str, Precision]) -> dict[str, object]:
    return {
        suite: {
            "right": precision.right,
            "labelled": precision.labelled,
            "interval": [round(precision.interval.low, 6), round(precision.interval.high, 6)],
        }
        for suite, precision in by_suite.items()
    }


def _rule(rule: RuleResult) -> dict[str, object]:
    names = {"position": "gate", "is_first_run": "first_run", "is_reported": "reported"}
    changes = ("change", "since_anchor")
    moved = {name: _change(getattr(rule, name)) for name in changes}
    waived = {} if rule.waiver is None else {"waived": _record(rule.waiver)}
    return {**_record(rule, without=(*_UNTOLD, *changes), names=names), **moved, **waived}


def _parity(parity: ParityResult) -> dict[str, object]:
    """Return a scan's result: who, how much, how surely, and the reach."""
    return {
        "suite": parity.suite,
        "outcome": parity.outcome,
        "against": parity.against.value,
        "p": parity.p,
        "alpha": parity.alpha,
        "named": [
            {**_record(node, without=("who",)), "who": ["/".join(who) for who in node.who]}
            for node in parity.named
        ],
        "reach": dict(parity.reach),
        "sources": parity.sources,
        "control_prompts": 0 if parity.is_mutual else parity.controls,
        "unjudged": parity.unjudged,
        "identities": [
            {**_record(identity, without=("person", "before")), "who": "/".join(identity.person)}
            for identity in parity.identities
        ],
        "bands": _plain(parity.bands),
    }


def _selection(rate: SelectionRate) -> dict[str, object]:
    return {**_record(rate, without=("person",)), "who": "/".join(filter(None, rate.person))}


def _change(change: Change | None) -> dict[str, object] | None:
    if change is None:
        return None
    left_out = ("lower", "upper", "decided_once")
    record = _record(change, without=left_out, names={"change": "worsening"})
    return {**record, "interval": _plain((change.lower, change.upper))}


def _record(
    item: object, *, without: Sequence[str] = (), names: Mapping[str, str] | None = None
) -> dict[str, object]:
    """Return the fields of a dataclass in their order, some left out or called otherwise."""
    assert is_dataclass(item)  # noqa: S101 (called with our own shapes alone)
    return {
        (names or {}).get(field.name, field.name): _plain(getattr(item, field.name))
        for field in fields(item)
        if field.name not in without
    }


def _plain(value: object) -> object:
    """Return a value as JSON knows it; what is not a finite number is None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return _record(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def rows_jsonl(result: GateResult) -> Iterator[str]:
    """Yield a line of JSON, with its line end, for each judged case in the order of the plan."""
    with_rows = {*material.pair_suites(result), *material.question_suites(result)}
    suites = AssessedUnits.of(result.assessed).suites
    units = chain.from_iterable(suites[name] for name in suites if name not in with_rows)
    others = chain(map(_question, material.question_rows(result)), map(_unit, units))
    yield from (f"{line}\n" for line in chain(_pairs(result), map(_AS_JSON, others)))


def _pairs(result: GateResult) -> Iterator[str]:
    """Yield the line of each pair; what many of them share is written once.

    A million pairs are of a few dozen kinds, and have a few hundred different outcomes.
    """
    outcomes: dict[int, str] = {}
    kinds: dict[tuple[int, Arm], tuple[str, str]] = {}
    for suite in material.judged_pairs(result):
        units, alike = suite.assessed.units, suite.assessed.alike
        numbers = range(len(units)) if alike is None else alike.tolist()
        kinds.clear()
        outcomes.clear()
        for place, (unit, number) in enumerate(zip(units, numbers, strict=True)):
            # Units of one kind have one mapping of dimensions, or equal ones.
            kind = id(unit.dimensions), unit.arm
            if kind not in kinds:
                row = material.PairRow(suite.assessed[place], suite.main)
                about = {"category": row.category, "term": row.term, "control": row.is_control}
                kinds[kind] = (
                    _members({"suite": row.suite, "relation": row.relation}),
                    _members(about),
                )
            outcome = outcomes.get(number)
            if outcome is None:
                outcome = _members(_outcome(material.PairRow(suite.assessed[place], suite.main)))
                if alike is not None and len(outcomes) < _MOST_HELD:
                    outcomes[number] = outcome
            before, after = kinds[kind]
            yield (
                f'{{"key":{_as_text(unit.key)},{before},"source":{_as_text(unit.asks[SOURCE])},'
                f"{after},{outcome}}}"
            )


def _members(record: Mapping[str, object]) -> str:
    """Return the members of an object as JSON, without its braces."""
    return _AS_JSON(record)[1:-1]


def _outcome(row: material.PairRow) -> dict[str, object]:
    distance, changes, rrs, overlap = (_number(row.score(name)) for name in _SCORES)
    return {
        "source_label": row.source_answer.value,
        "follow_up_label": row.answer.value,
        "majority": row.majority,
        **{name: _verdict(row.verdict(name)) for name in _VERDICTS},
        "mean_distance": distance,
        "label_changes": changes,
        "rrs": rrs,
        "overlap": overlap,
        "margin": _number(row.answer.margin),
        **{
            name.replace("-", "_"): _number(row.score(name))
            for name in ((*EXPOSURE, *RANKS) if row.ranks else ())
        },
        **_shifts(row.assessed.claims),
    }


def _shifts(claims: Mapping[str, Claim]) -> dict[str, object]:
    """Give each shift from the reference, if there is one: a number, or the reason for none."""
    return {
        name: f"inconclusive({claim})" if isinstance(claim, Reason) else _number(claim)
        for name in sorted(shift.COLUMNS)
        if (claim := claims.get(name)) is not None
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _verdict(claim: material.YesOrNo) -> str:
    if isinstance(claim, Reason):
        return f"inconclusive({claim})"
    return "violated" if claim else "satisfied"


def _unit(row: Assessed) -> dict[str, object]:
    return {
        "key": row.unit.key,
        "suite": row.unit.suite,
        **row.unit.dimensions,
        "control": row.unit.is_control,
        **{
            name: f"inconclusive({claim})" if isinstance(claim, Reason) else _number(claim)
            for name, claim in row.claims.items()
        },
    }


def _question(row: material.QuestionRow) -> dict[str, object]:
    stereotypes = row.assessed.claims["stereotypes"]
    return {
        "key": row.key,
        "suite": row.suite,
        "category": row.level("category"),
        "template": row.assessed.unit.names["template"],
        "condition": row.level("condition"),
        "alignment": row.level("alignment") or None,
        "setting": row.level("setting"),
        "retriever": row.level("retriever") or None,
        "k": int(row.level("k") or 0) or None,
        "instruction": row.level("instruction"),
        "answer": f"inconclusive({row.bias})"
        if isinstance(row.bias, Reason)
        else material.BIAS_WORDS[row.bias],
        "correct": None if isinstance(row.is_correct, Reason) else row.is_correct,
        "letter": row.reading.shown or None,
        "stereotype_share": None if isinstance(stereotypes, Reason) else stereotypes,
        "margin": _number(row.reading.margin),
        **_shifts(row.assessed.claims),
    }


FORMATS: Registry[Format] = Registry(
    "format",
    (
        Format(
            id="md",
            file="report.md",
            render=render_report,
            shown_as="report",
            output="report-md",
            is_default=True,
            unjudged=_unjudged_markdown,
        ),
        Format(
            id="html",
            file="report.html",
            render=render_html,
            shown_as="page",
            output="report-html",
            is_default=True,
            unjudged=_unjudged_html,
        ),
        Format(
            id="json",
            file="run.json",
            render=lambda view: render_run_record(view.result),
            shown_as="record",
            output="report-json",
            is_needed=True,
        ),
        Format(
            id="rows",
            file="rows.jsonl",
            render=lambda view: rows_jsonl(view.result),
            is_needed=True,
        ),
    ),
)


def formats() -> Registry[Format]:
    """Return the formats of the core, then those of features."""
    places = (location for feature in FEATURES for location in feature.formats.values())
    return Registry("format", (*FORMATS, *map(at, places)))


def known_files() -> list[str]:
    """Return the name of every file that a format writes."""
    return [form.file for form in formats()]


def chosen(names: str) -> list[Format]:
    """Return the formats that a comma-separated list names, and those that every run needs.

    Empty: the default ones. Raises UsageError for an unknown name.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    all_formats = formats()
    ids = {all_formats[name].id for name in wanted}
    are_listed = [form.id in ids if wanted else form.is_default for form in all_formats]
    return [
        form
        for form, is_asked in zip(all_formats, are_listed, strict=True)
        if form.is_needed or is_asked
    ]
