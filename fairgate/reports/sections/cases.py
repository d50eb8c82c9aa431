"""The clearest changed answers: both texts, both answers, what was retrieved, how to see more."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from fairgate.domain.executions import Execution
from fairgate.domain.outcomes import Outcome
from fairgate.domain.units import Reading, Reason
from fairgate.metrics.identity import UNREADABLE
from fairgate.reports import figures
from fairgate.reports.affected import (
    Subject,
    affected,
    failed_rules,
    failed_terms,
    subject,
    subject_of,
)
from fairgate.reports.blocks import Block, CaseItem, CaseList, Section, Text
from fairgate.reports.escaping import excerpt, redacted
from fairgate.reports.judged_rows import PairRow, in_words
from fairgate.reports.material import Material
from fairgate.reports.spans import (
    Inline,
    Kind,
    Span,
    Tone,
    Words,
    code,
    command,
    joined,
    muted,
    name,
)
from fairgate.reports.view import ReportOptions
from fairgate.suites.metamorphic.documents import document_key

_KEPT = 60
"""Characters shown of what source and follow-up have in common, on the short side."""
_NAMED_DOCUMENTS = 4
_ID_CHARACTERS = 40
_OTHERS = 6
_UNREADABLE = 3
_LOST = ("unreadable/net", UNREADABLE.id)

Where = tuple[str, str]


def cases(material: Material) -> Iterator[Section]:
    """Yield the clearest changed answers; nothing where none changed."""
    items = case_items(material, material.options.cases)
    if items:
        many = figures.count(len(material.changed_pairs), "changed answer")
        answers = min(len(items), len(material.changed_pairs))
        yield Section(
            id="cases",
            title=f"Clearest cases: {answers} of {many}" if answers else "Clearest case",
            blocks=[CaseList(cases=items)],
            in_page=False,
            worth=60,
        )


def case_items(material: Material, most: int) -> list[CaseItem]:
    """Return at most so many of the changed answers, the clearest first.

    Where a rule about documents failed, what was found for whom it failed is one more.
    """
    moved = _moved_most(material)
    shown = clearest_cases(material)[:most]
    by_source: dict[Where, list[PairRow]] = {(row.suite, row.source): [] for row in shown}
    for row in material.changed_pairs if shown else ():
        of_source = by_source.get((row.suite, row.source))
        if of_source is not None:
            of_source.append(row)
    found = [_case(material, row, by_source[row.suite, row.source]) for row in shown]
    return found if moved is None else [*found, _moved_case(material, moved)]


def _moved_most(material: Material) -> PairRow | None:
    """Return the pair that lost most documents, of those that a rule about them failed for."""
    failed = [r for r in failed_rules(material.result) if subject_of(r) is Subject.DOCUMENTS]
    named = ((rule.suite, term) for rule in failed for term, _ in failed_terms(material, rule))
    who = {each: place for place, each in enumerate(dict.fromkeys(named))}
    lost = [
        (who.get((row.suite, row.term), len(who)), overlap, number, row)
        for number, row in enumerate(material.named_pairs if failed else ())
        if (overlap := row.score("overlap")) is not None and overlap < 1
    ]
    return min(lost, key=lambda each: each[:3])[-1] if lost else None


def _moved_case(material: Material, row: PairRow) -> CaseItem:
    source, follow_up = (material.case(row.suite, key).query for key in (row.source, row.key))
    known, options = material.run.executions, material.options
    left, right = (known.get((row.suite, key)) for key in (row.source, row.key))
    return CaseItem(
        title=[name(row.phrase, Tone.STRONG), ": other documents are found"],
        text=_difference(source, follow_up, options),
        facts=list(_documents(left, right, row)),
        command=command(_explain(options, row)) if options.has_explain else code(row.key),
    )


def unreadable_answers(material: Material) -> Iterator[Block]:
    """Yield a few answers that hold no label, with the labels that were expected."""
    rules = material.result.rules
    lost = any(
        "unreadable" in rule.failed or (rule.metric in _LOST and rule.failed) for rule in rules
    )
    if not lost and material.result.outcome is not Outcome.INCONCLUSIVE:
        return
    found = [row for row in material.pairs if row.answer.reason is Reason.UNREADABLE]
    if not found:
        return
    first = found[0]
    asked = material.case(first.suite, first.key)
    alike = [row for row in found if (row.suite, row.relation) == (first.suite, first.relation)]
    texts = list(dict.fromkeys(_quoted(material, row) for row in alike))[:_UNREADABLE]
    expected: list[str | Span] = ["Asked was ", Span(asked.instruction, Kind.QUOTE)]
    if asked.labels:
        labels = joined([name(label) for label in asked.labels])
        expected = ["Expected one of the labels ", *labels]
    yield Text(
        lines=[
            [
                *expected,
                "; the system wrote, for example: ",
                *joined([Span(text, Kind.QUOTE) for text in texts], " · "),
            ]
        ]
    )


def _quoted(material: Material, row: PairRow) -> str:
    execution = material.run.executions.get((row.suite, row.key))
    text = (execution.response or "").strip() if execution else ""
    return excerpt(redacted(text, material.options.redact)) if text else "(nothing)"


def explain_command(material: Material) -> str:
    """Return the command that tells more of the clearest case; empty where there is none."""
    row = _case_of_the_rule(material)
    has_one = row is not None and material.options.has_explain
    return _explain(material.options, row) if row is not None and has_one else ""


def _case_of_the_rule(material: Material) -> PairRow | None:
    """Return the clearest case of what the leading rule is about, of whom it affects most."""
    about = subject(material)
    if about is Subject.ANSWERS:
        return next(iter(clearest_cases(material)), None)
    places = {m.where.get("term", ""): place for place, m in enumerate(affected(material))}
    named = sorted(material.named_pairs, key=lambda row: places.get(row.term, len(places)))
    if about is Subject.REFUSALS:
        return next((row for row in named if row.answer.reason is Reason.UNREADABLE), None)
    moved = [row for row in named if (overlap := row.score("overlap")) is not None and overlap < 1]
    worst = places and moved and moved[0].term
    return min(
        (row for row in moved if row.term == worst),
        key=lambda row: row.score("overlap") or 0.0,
        default=None,
    )


def _explain(options: ReportOptions, row: PairRow) -> str:
    return f"fairgate explain {shlex.quote(options.run_path)} {shlex.quote(row.key)}"


def clearest_cases(material: Material) -> list[PairRow]:
    """Return the changed answers, the clearest first, each of another source.

    Clearest: new since the baseline, then of the most affected identities, then different from the
    neutral answers and from the one without a speaker, then the widest answer margin, then the
    order of the plan. Further cases of the same sources follow.
    """
    known = material.clearest.get(material.beside.id)
    if known is not None:
        return known
    places = {m.where.get("term", ""): place for place, m in enumerate(affected(material))}

    def clearness(row: PairRow) -> tuple[bool, int, bool, float]:
        margin = row.answer.margin
        return (
            not material.was_unchanged(row),
            places.get(row.term, len(places)),
            row.verdict("generation") != 1.0,
            -(margin if margin is not None else -1.0),
        )

    first: list[PairRow] = []
    rest: list[PairRow] = []
    seen: set[Where] = set()
    for row in sorted(material.changed_pairs, key=clearness):
        where = (row.suite, row.source)
        (rest if where in seen else first).append(row)
        seen.add(where)
    return material.clearest.setdefault(material.beside.id, first + rest)


def _case(material: Material, row: PairRow, of_source: Sequence[PairRow]) -> CaseItem:
    """Return a case with what a reader needs to judge it; `of_source` are its source's changes."""
    source, follow_up = (material.case(row.suite, key).query for key in (row.source, row.key))
    options, known = material.options, material.run.executions
    left, right = (known.get((row.suite, key)) for key in (row.source, row.key))
    explain = command(_explain(options, row)) if options.has_explain else code(row.key)
    return CaseItem(
        title=_title(row, is_new=material.was_unchanged(row)),
        text=_difference(source, follow_up, options),
        facts=[
            *_response(right, row.answer, options),
            *_documents(left, right, row),
            *_others(row, of_source),
        ],
        command=explain,
    )


def _others(row: PairRow, of_source: Sequence[PairRow]) -> Iterator[Inline]:
    """Yield for whom else the same text changes its answer."""
    others = [other for other in of_source if other.key != row.key]
    if others:
        named: list[Inline] = [
            [name(one.phrase), " (", answer_of(one.answer), ")"] for one in others[:_OTHERS]
        ]
        more = len(others) - _OTHERS
        last = [f" and {more:,} more"] if more > 0 else []
        yield ["The same text changes for ", *joined(named), *last]


def _title(row: PairRow, *, is_new: bool) -> Inline:
    neutral: Words = []
    if row.majority:
        neutral = [name(row.majority), " with neutral wording, "]
    margin = row.answer.margin
    return [
        name(row.phrase, Tone.STRONG),
        ": ",
        *neutral,
        answer_of(row.source_answer),
        " without a speaker, " if row.names_speaker else " for the source, ",
        answer_of(row.answer, Tone.STRONG),
        " here",
        *([", new since the baseline"] if is_new else []),
        *(muted(f" (margin {margin:.2f} nats)") if margin is not None else []),
    ]


def answer_of(reading: Reading, tone: Tone = Tone.NORMAL) -> Span:
    """Return an answer as it was read, or why it was not."""
    if reading.value is None:
        return Span(f"({reading.reason})", tone=tone)
    return name(in_words(reading.value), tone)


def _response(
    execution: Execution | None, reading: Reading, options: ReportOptions
) -> Iterator[Inline]:
    """Yield what the model wrote, unless the label says it all."""
    text = (execution.response or "").strip() if execution else ""
    if text and text.strip(".!\"'").lower() != (reading.value or ""):
        yield ["The model wrote ", Span(redacted(text, options.redact), Kind.QUOTE)]


def _difference(source: str, follow_up: str, options: ReportOptions) -> Inline:
    """Return the follow-up, the part that the source lacks standing out."""
    if options.redact == "hash":
        return Span(redacted(follow_up, "hash"), Kind.QUOTE)
    head = common(source, follow_up)
    shorter = min(len(source), len(follow_up)) - head
    tail = common(source[::-1][:shorter], follow_up[::-1][:shorter])
    end = len(follow_up) - tail
    before, changed, after = follow_up[:head], follow_up[head:end], follow_up[end:]
    if options.redact == "excerpt" and len(before) > _KEPT:
        before = "…" + before[1 - _KEPT :]
    return [
        Span(redacted(before, options.redact), Kind.QUOTE),
        Span(redacted(changed, options.redact), Kind.QUOTE, Tone.CHANGED),
        Span(redacted(after, options.redact, 2 * _KEPT), Kind.QUOTE),
    ]


def common(left: str, right: str) -> int:
    """Return how many first characters two texts share; texts may be megabytes long."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _documents(left: Execution | None, right: Execution | None, row: PairRow) -> Iterator[Inline]:
    """Yield which documents went and came."""
    if left is None or right is None or left.documents is None or right.documents is None:
        return
    then = {key: d.id for d in left.documents if (key := document_key(d)) is not None}
    now = {key: d.id for d in right.documents if (key := document_key(d)) is not None}
    replaced = len(now.keys() - then.keys())
    words: Words = ["Same documents"]
    if replaced:
        words = [f"{replaced} of {len(right.documents)} documents replaced"]
        words += _ids(", out ", {key: i for key, i in then.items() if key not in now})
        words += _ids(", in ", {key: i for key, i in now.items() if key not in then})
    score = row.score("rrs")
    yield [*words, *(muted(f", RRS {score:.3f}") if score is not None else [])]


def _ids(head: str, documents: Mapping[str, str | None]) -> Words:
    ids = [excerpt(one, _ID_CHARACTERS) for one in documents.values() if one]
    return [head, *joined([code(one) for one in ids[:_NAMED_DOCUMENTS]])] if ids else []
