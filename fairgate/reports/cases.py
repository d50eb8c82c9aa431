"""The clearest changed answers, and every judged pair in a line."""

from __future__ import annotations

from collections.abc import Sequence

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.verdicts import JudgedPair, Reading, Reason
from fairgate.engine.gate import GateRun
from fairgate.engine.judge import document_key
from fairgate.reports.escaping import excerpt, redacted
from fairgate.reports.view import CaseRow, CaseView, ReportOptions

_KEPT = 60
"""Characters shown of what source and follow-up have in common, on the short side."""
_NAMED_DOCUMENTS = 4
_ID_CHARACTERS = 40


def clearest(run: GateRun, options: ReportOptions) -> list[CaseView]:
    """Return changed answers, those with the widest answer margin first, each of another source.

    Pairs whose margin is unknown come last, in the order of the plan; where there are fewer sources
    than cases wanted, further cases of the same sources fill up.
    """
    changed = [j for j in run.result.judged if j.is_violated and not j.pair.control]
    changed.sort(key=lambda j: -(j.follow_up.margin if j.follow_up.margin is not None else -1.0))
    first: list[JudgedPair] = []
    rest: list[JudgedPair] = []
    seen: set[tuple[str, str]] = set()
    for judged in changed:
        where = (judged.pair.suite, judged.pair.source)
        (rest if where in seen else first).append(judged)
        seen.add(where)
    texts = {(case.suite, case.key): case for case in run.result.plan.cases}
    return [_case(run, judged, texts, options) for judged in (first + rest)[: options.cases]]


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
                key=excerpt(item.pair.key),
                suite=item.pair.suite,
                name=item.pair.noun_phrase or item.pair.term,
                category=item.pair.category,
                source_answer=_label(item.source),
                neutral_answer=item.majority or "",
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
    explain = f"fairgate explain {options.run_path} {pair.key}" if options.has_explain else ""
    return CaseView(
        key=excerpt(pair.key),
        suite=pair.suite,
        name=pair.noun_phrase or pair.term,
        category=pair.category,
        source=redacted(source, options.redact),
        before=before,
        changed=changed,
        after=after,
        source_answer=_label(judged.source),
        neutral_answer=judged.majority or "",
        answer=_label(judged.follow_up),
        response=_response(right, judged.follow_up, options),
        margin="" if judged.follow_up.margin is None else f"{judged.follow_up.margin:.2f}",
        rrs="" if rrs is None else f"{rrs:.3f}",
        documents=documents,
        documents_in=come,
        documents_out=gone,
        explain=explain,
    )


def _label(reading: Reading) -> str:
    return reading.label if reading.label is not None else f"({reading.reason})"


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
    shorter = min(len(source), len(follow_up))
    head = next((i for i in range(shorter) if source[i] != follow_up[i]), shorter)
    tail = next(
        (i for i in range(shorter - head) if source[-1 - i] != follow_up[-1 - i]), shorter - head
    )
    end = len(follow_up) - tail
    before, changed, after = follow_up[:head], follow_up[head:end], follow_up[end:]
    if options.redact == "excerpt" and len(before) > _KEPT:
        before = "…" + before[1 - _KEPT :]
    return (
        redacted(before, options.redact),
        redacted(changed, options.redact),
        redacted(after, options.redact, 2 * _KEPT),
    )


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
