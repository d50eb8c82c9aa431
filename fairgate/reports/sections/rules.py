"""Every rule: what it found, whether it held, and why."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from fairgate.domain.outcomes import Outcome
from fairgate.reports import figures
from fairgate.reports.blocks import Column, Depth, Form, Row, Section, Table, Text
from fairgate.reports.material import Material
from fairgate.reports.rule_rows import RuleRow
from fairgate.reports.spans import Inline, Kind, Span, Tone, Words, code, figure, muted, name, spans

_SHORT = 12
_ALIKE = 3
"""Rules that break one limit, each in its slice, and are shown before the others are folded."""
_FOLDED = {False: "rules passed", True: "rules passed or are only reported"}
_URGENCY = {
    outcome: rank
    for rank, outcome in enumerate(
        (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.NOT_EVALUATED, Outcome.PASS)
    )
}
_REPORTED_RANK = len(_URGENCY)
TONES = {
    Outcome.PASS: Tone.GOOD,
    Outcome.FAIL: Tone.BAD,
    Outcome.INCONCLUSIVE: Tone.UNSURE,
    Outcome.NOT_EVALUATED: Tone.UNSURE,
}


def rules(material: Material) -> Iterator[Section]:
    """Yield the table of rules, what failed first; it is also kept where there is little room."""
    places = sorted(range(len(material.rules)), key=lambda at: _urgency(material.rules[at]))
    rows = [material.rules[at] for at in places]
    if not rows:
        return
    likely = likely_range(material)
    compared = any(row.has_change for row in rows)
    broken = _repeats(material)
    repeats = {place for place, at in enumerate(places) if at in broken}
    columns = [
        Column(head="outcome"),
        Column(head="rule"),
        Column(head="now", is_number=True),
        *_if(compared, Column(head="base", is_number=True, is_wide=True)),
        *_if(compared, Column(head="change", is_number=True)),
        Column(head=likely, is_number=True, is_wide=True),
    ]
    table = Table(
        label="Table of rules",
        columns=columns,
        rows=[
            _row(row, words, compared=compared, is_repeat=place in repeats)
            for place, (row, words) in enumerate(zip(rows, rule_names(rows, repeats), strict=True))
        ],
        most=_SHORT,
        folded=_FOLDED[any(row.is_reported for row in rows)],
        repeated="further rules of the same kind failed",
    )
    notes = []
    if compared:
        notes.append(
            f"The {likely} of a change is a lower and an upper bound, each of which holds by "
            f"itself with {material.confidence} or more, corrected for testing several rules."
        )
        in_size = any(row.has_change and figures.is_best_at_zero(row.metric) for row in rows)
        notes.append(
            "Changes of rates are in points"
            + (", of what is best at 0 in size, away from 0." if in_size else ".")
        )
    yield Section(
        id="rules",
        title="Rules",
        blocks=[table, *([Text(lines=[" ".join(notes)], form=Form.SMALL)] if notes else [])],
        in_console=True,
        count=len(rows),
        worth=90,
    )


def likely_range(material: Material) -> str:
    """Return what intervals are called, with the confidence that they have."""
    return f"likely range ({material.confidence})"


def _if(wanted: bool, column: Column) -> list[Column]:  # noqa: FBT001 (reads as a sentence)
    return [column] if wanted else []


def _row(row: RuleRow, words: Inline, *, compared: bool, is_repeat: bool) -> Row:
    passed = not row.needs_attention
    why = "; ".join(row.reasons)
    stands_out = row.has_change and not passed
    changed = figure(row.change, Tone.STRONG if stands_out else Tone.NORMAL)
    return Row(
        cells=[
            outcome_of(row),
            words,
            figure(row.now),
            *([figure(row.base), changed] if compared else []),
            figure(row.interval),
        ],
        note=muted(why) if passed else why,
        tone=Tone.NORMAL if passed else TONES[row.outcome],
        is_settled=passed,
        is_repeat=is_repeat,
        rank=3 * _urgency(row) + bool(row.where) + is_repeat,
    )


def _urgency(row: RuleRow) -> int:
    return _REPORTED_RANK if row.is_reported else _URGENCY[row.outcome]


def outcome_of(row: RuleRow) -> list[Span]:
    """Return the mark and the word of a rule's outcome."""
    mark = Span(row.outcome.value, Kind.MARK)
    advisory = [Span(" (advisory)")] if row.is_advisory else []
    tone = Tone.NORMAL if row.is_reported else TONES[row.outcome]
    return [mark, Span(" "), Span(row.word, Kind.PROSE, tone), *advisory]


def _repeats(material: Material) -> set[int]:
    """Return the places of rules that break a limit that others of their kind break by more.

    The worst few of a kind stand for them on the page; which identities they are is said above.
    """
    kinds: dict[tuple[object, ...], list[tuple[float, int]]] = {}
    for place, rule in enumerate(material.result.rules):
        if rule.where and tuple(rule.failed) == ("bound",) and rule.value is not None:
            kind = (rule.metric, rule.suite, *rule.where, *rule.bounds.items(), rule.advisory)
            size = figures.size(rule.value, rule.metric, *rule.bounds)
            worst = size if "min" in rule.bounds else -size
            kinds.setdefault(kind, []).append((worst, place))
    return {
        place for found in kinds.values() if len(found) > _ALIKE
        for _, place in sorted(found)[_ALIKE:]
    }  # fmt: skip


def rule_names(rows: Sequence[RuleRow], repeats: Container[int] = ()) -> list[list[Span]]:
    """Return what each rule is called; a metric that repeats is an ellipsis and the slice."""
    names: list[list[Span]] = []
    previous = ("", "", False, False)
    for place, row in enumerate(rows):
        # The page folds what passed or repeats: an ellipsis may not stand for a name elsewhere.
        kind = (row.metric, row.suite, row.needs_attention, place in repeats)
        suite: Words = [" in ", name(row.suite)] if row.suite else []
        if row.where and kind == previous:
            words: Words = ["… ", name(row.brief)]
        else:
            inside: Words = [", ", name(row.slice)] if row.slice else []
            words = [row.title, *inside, *suite, *muted([" ", code(row.metric)])]
        names.append(spans(words))
        previous = kind
    return names


def rule_figures(material: Material) -> Iterator[Section]:
    """Yield every figure of every rule, for readers who know statistics."""
    rows = material.rules
    if not rows:
        return
    anchored = any(row.since_anchor != figures.NONE for row in rows)
    heads = (
        "estimate", likely_range(material), "change", "its two bounds", "corrected p", "sources",
        "discordant pairs", "smallest detectable change",
        *(["since the anchor"] if anchored else []), "limits",
    )  # fmt: skip
    table = Table(
        label="Figures of every rule",
        columns=[Column(head="rule"), *(Column(head=head, is_number=True) for head in heads)],
        rows=[
            Row(
                cells=[
                    words,
                    *map(
                        figure,
                        (
                            row.value,
                            row.value_interval,
                            row.change,
                            row.interval if row.has_change else figures.NONE,
                            row.p_value,
                            row.sources,
                            row.discordant,
                            row.detectable,
                            *([row.since_anchor] if anchored else []),
                            row.limits or figures.NONE,
                        ),
                    ),
                ]
            )
            for row, words in zip(rows, rule_names(rows), strict=True)
        ],
        depth=Depth.FULL,
    )
    yield Section(id="figures", title="Every rule in figures", blocks=[table], worth=10)
