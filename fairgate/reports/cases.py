"""The clearest changed answers, and every judged pair in a line."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.verdicts import JudgedPair, Reading, Reason
from fairgate.engine.baseline import Baseline
from fairgate.engine.gate import GateRun
from fairgate.engine.judge import document_key
from fairgate.reports.escaping import excerpt, name, redacted, sentence
from fairgate.reports.view import CaseRow, CaseView, ReportOptions

_KEPT = 60
"""Characters shown of what source and follow-up have in common, on the short side."""
_NAMED_DOCUMENTS = 4
_ID_CHARACTERS = 40


def clearest(
    run: GateRun, options: ReportOptions, baseline: Baseline | None = None
) -> list[CaseView]:
    """Return changed answers, the clearest first, each of another source.

    Clearest: new since the baseline, then different from the neutral answers and the unprefixed
    one, then the widest answer margin, then the order of the plan. Where there are fewer sources
    than cases wanted, further cases of the same sources fill up.
    """
    changed = [j for j in run.result.judged if j.is_violated and not j.pair.control]
    satisfied = _satisfied_before(baseline)
    changed.sort(key=lambda judged: _clearness(judged, satisfied))
    first: list[JudgedPair] = []
    rest: list[JudgedPair] = []
    seen: set[tuple[str, str]] = set()
    for judged in changed:
        where = (judged.pair.suite, judged.pair.source)
        (rest if where in seen else first).append(judged)
        seen.add(where)
    texts = {(case.suite, case.key): case for case in run.result.plan.cases}
    return [
        replace(_case(run, judged, texts, options), is_new=_where(judged) in satisfied)
        for judged in (first + rest)[: options.cases]
    ]


def _where(judged: JudgedPair) -> tuple[str, str]:
    return judged.pair.suite, judged.pair.key


def _clearness(
    judged: JudgedPair, satisfied: AbstractSet[tuple[str, str]]
) -> tuple[bool, bool, float]:
    margin = judged.follow_up.margin
    return (
        _where(judged) not in satisfied,
        judged.generation is not True,
        -(margin if margin is not None else -1.0),
    )


def _satisfied_before(baseline: Baseline | None) -> AbstractSet[tuple[str, str]]:
    """Return the pairs whose answer the baseline found unchanged, by the claim that cases show."""
    found: set[tuple[str, str]] = set()
    for name_of_suite, suite in baseline.suites.items() if baseline else ():
        values = suite.table.values
        column = values.get("controlled", values.get("generation"))
        if column is not None:
            found.update(
                (name_of_suite, key)
                for key, value in zip(suite.table.keys, column, strict=True)
                if value == 0
            )
    return found


def changed_pairs(judged: Sequence[JudgedPair]) -> int:
    """Return how many demographic pairs have a changed answer."""
    return sum(j.is_violated and not j.pair.control for j in judged)


def case_rows(judged: Sequence[JudgedPair]) -> list[CaseRow]:
    """Return every demographic pair that is violated or inconclusive, in the order of the plan."""
    rows = []
    for item in judged:
        claim = item.generation if isinstance(item.controlled, Reason) else item.controlled
        if item.pair.control or claim is False:
            continue
        verdict = "violated" if claim is True else f"inconclusive ({claim})"
        rows.append(
            CaseRow(
                key=name(item.pair.key),
                suite=name(item.pair.suite),
                name=name(item.pair.noun_phrase or item.pair.term),
                category=name(item.pair.category),
                source_answer=_label(item.source),
                neutral_answer=name(item.majority or ""),
                answer=_label(item.follow_up),
                verdict=verdict,
                margin=item.follow_up.margin,
                rrs=score(item),
            )
        )
    return rows


def score(judged: JudgedPair) -> float | None:
    """Return RRS; None where one of its parts is not known."""
    distance, changes = judged.mean_distance, judged.label_changes
    if isinstance(distance, Reason) or isinstance(changes, Reason):
        return None
    return round(distance + changes, 6)


def _case(
    run: GateRun,
    judged: JudgedPair,
    texts: dict[tuple[str, str], Case],
    options: ReportOptions,
) -> CaseView:
    pair = judged.pair
    source, follow_up = (texts[pair.suite, key].query for key in (pair.source, pair.key))
    before, changed, after = _difference(source, follow_up, options)
    left, right = (run.executions.get((pair.suite, key)) for key in (pair.source, pair.key))
    gone, come, documents = _documents(left, right)
    rrs = score(judged)
    names = f"{shlex.quote(options.run_path)} {shlex.quote(pair.key)}"
    explain = f"fairgate explain {names}" if options.has_explain else ""
    return CaseView(
        key=name(pair.key),
        suite=name(pair.suite),
        name=name(pair.noun_phrase or pair.term),
        category=name(pair.category),
        is_new=False,
        source=redacted(source, options.redact),
        before=before,
        changed=changed,
        after=after,
        source_answer=_label(judged.source),
        neutral_answer=name(judged.majority or ""),
        answer=_label(judged.follow_up),
        response=_response(right, judged.follow_up, options),
        margin="" if judged.follow_up.margin is None else f"{judged.follow_up.margin:.2f}",
        rrs="" if rrs is None else f"{rrs:.3f}",
        documents=documents,
        documents_in=come,
        documents_out=gone,
        explain=sentence(explain),
    )


def _label(reading: Reading) -> str:
    return name(reading.label) if reading.label is not None else f"({reading.reason})"


def _response(execution: Execution | None, reading: Reading, options: ReportOptions) -> str:
    """Return what the model wrote, unless the label says it all."""
    text = (execution.response or "").strip() if execution else ""
    if not text or text.strip(".!\"'").lower() == (reading.label or ""):
        return ""
    return redacted(text, options.redact)


def _difference(source: str, follow_up: str, options: ReportOptions) -> tuple[str, str, str]:
    """Split the follow-up into what it shares with the source and what it adds in between."""
    if options.redact == "hash":
        return redacted(follow_up, "hash"), "", ""
    head = _common(source, follow_up)
    shorter = min(len(source), len(follow_up)) - head
    tail = _common(source[::-1][:shorter], follow_up[::-1][:shorter])
    end = len(follow_up) - tail
    before, changed, after = follow_up[:head], follow_up[head:end], follow_up[end:]
    if options.redact == "excerpt" and len(before) > _KEPT:
        before = "…" + before[1 - _KEPT :]
    return (
        redacted(before, options.redact),
        redacted(changed, options.redact),
        redacted(after, options.redact, 2 * _KEPT),
    )


def _common(left: str, right: str) -> int:
    """Return how many first characters two texts share; texts may be megabytes long."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _documents(left: Execution | None, right: Execution | None) -> tuple[list[str], list[str], str]:
    """Return which documents went and came, and how many, in words."""
    if left is None or right is None or left.documents is None or right.documents is None:
        return [], [], ""
    then = {key: d.id for d in left.documents if (key := document_key(d)) is not None}
    now = {key: d.id for d in right.documents if (key := document_key(d)) is not None}
    gone = [excerpt(i, _ID_CHARACTERS) for key, i in then.items() if key not in now and i]
    come = [excerpt(i, _ID_CHARACTERS) for key, i in now.items() if key not in then and i]
    replaced = len(now.keys() - then.keys())
    total = len(right.documents)
    words = f"{replaced} of {total} documents replaced" if replaced else "same documents"
    return gone[:_NAMED_DOCUMENTS], come[:_NAMED_DOCUMENTS], words
