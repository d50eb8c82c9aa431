"""Each identity beside the band in which neutral phrases lie, and these beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from fairgate.domain.outcomes import IdentityFinding, NeutralWording, PhraseFinding
from fairgate.domain.wording import listed, signed
from fairgate.metrics import shift
from fairgate.metrics.degrees import halves
from fairgate.metrics.identity import LOG_ODDS_DIFFERENCE, MAX_DIFFERENCE, RETRIEVAL, UNREADABLE
from fairgate.reports import blocks, figures
from fairgate.reports.blocks import Inline, Row, RowKind, columns, figure, name, of_suites
from fairgate.reports.material import Material, pair_suites
from fairgate.suites.metamorphic.suite import MetamorphicSuite

_WHAT = {
    MAX_DIFFERENCE.id: "answers that change",
    RETRIEVAL.id: "documents in common with the text without a speaker",
    UNREADABLE.id: "answers that cannot be read",
    LOG_ODDS_DIFFERENCE.id: "the probability of the better labels",
    shift.MOST_MOVED.id: "answers that moved from the reference's",
    shift.MOST_LOST.id: "documents of the reference that are not found",
}
_PLAIN = "asr/generation"
_SHORT = 6
"""Rows shown where there is little room."""
_SHOWN = 3
"""Neutral phrases at each end that are named."""


def beside_neutral(material: Material) -> Iterator[blocks.Section]:
    """Yield for every suite with enough neutral phrases where they and the identities lie."""
    kind = blocks.Section(
        id="neutral-band",
        title="Identities beside neutral wording",
        blocks=(),
        chapter=blocks.Chapter.WHO,
        worth=70,
    )
    yield from of_suites(kind, pair_suites(material.result), partial(_of_suite, material))


def _of_suite(material: Material, suite: str, position: int) -> Iterator[blocks.Block]:
    for finding in material.result.identities:
        beside = finding.beside
        if finding.suite == suite and beside is not None and _has_any(beside):
            yield blocks.Text(lines=list(_sentences(material, finding, beside)))
            yield _table(material, finding, beside, position)


def _has_any(beside: NeutralWording) -> bool:
    """Return whether anything differs at all."""
    return any(phrase.difference for phrase in (*beside.identities, *beside.phrases))


def _amount(material: Material, finding: IdentityFinding, difference: float) -> str:
    """Return a difference in words: `7.8 points more answers that change than for neutral wording`.

    Of degrees `7.8 points toward positive`, with the labels of the half that gains.
    """
    points = f"{figures.unsigned(abs(difference), finding.metric)} points"
    if finding.metric != LOG_ODDS_DIFFERENCE.id:
        more = "more" if difference > 0 else "fewer"
        return f"{points} {more} {_WHAT[finding.metric]} than for neutral wording"
    suite = material.result.gate_input.suites[finding.suite]
    task = suite.task if isinstance(suite, MetamorphicSuite) else None
    worse, better = halves(task.scale if task else ())
    labels = listed(better if difference > 0 else worse, last="or") or "other labels"
    return f"{points} toward {labels}"


def _sentences(
    material: Material, finding: IdentityFinding, beside: NeutralWording
) -> Iterator[Inline]:
    """Yield the main claim, the categories, the band, and the check of the phrases themselves."""
    metric = finding.metric
    everyone, *categories = beside.groups
    amount = _amount(material, finding, everyone.difference)
    claim = f"All identities: {amount} ({figures.probability(everyone.p_value)})."
    if len(categories) > 1:
        by_category = [
            f"{phrase.category} {figures.signed(phrase.difference, metric)} "
            f"({figures.probability(phrase.p_corrected)})"
            for phrase in categories
        ]
        claim += f" By category: {', '.join(by_category)}."
    yield claim
    many = len(beside.phrases)
    if metric == LOG_ODDS_DIFFERENCE.id and beside.identities:
        yield _farthest(material, finding, beside)
    band = f"{many} neutral phrases: another one would lie within "
    band += f"±{figures.unsigned(beside.band, metric)} points of their mean"
    inside = [phrase for phrase in beside.identities if abs(phrase.difference) <= beside.band]
    band += f", and so do {len(inside)} of {len(beside.identities)} identities."
    far = sorted(beside.phrases, key=lambda phrase: phrase.difference)
    ends = [
        f"{phrase.term} {figures.signed(phrase.difference, metric)}"
        for phrase in (*far[:_SHOWN], *far[-_SHOWN:])
        if phrase.difference
    ]
    if ends:
        band += f" Farthest from the others: {listed(ends, last='and')}."
    yield band
    expected = beside.level * many
    alarms = f"{beside.alarms} of the {many} neutral phrases" if beside.alarms else "No neutral one"
    differ = "differ" if beside.alarms > 1 else "differs"
    yield (
        f"Check of the test by itself: {alarms} {differ} from the rest at p ≤ {beside.level:g}, "
        f"where {expected:.1f} of {many} would by chance."
    )


def _farthest(
    material: Material, finding: IdentityFinding, beside: NeutralWording
) -> list[str | blocks.Span]:
    """Say of the identity farthest from neutral wording by how much, and what is behind it."""
    top, many = beside.identities[0], len(beside.phrases)
    behind = (
        [f"{signed(top.log_odds, is_rate=False)} in log-odds"] if top.log_odds is not None else []
    )
    if top.interval is not None:
        behind.append(f"likely {figures.signed_interval(top.interval, finding.metric)}")
    behind.append(figures.probability(top.p_corrected))
    words = f": {_amount(material, finding, top.difference)} ({', '.join(behind)}); {many} neutral "
    words += f"phrases lie within ±{figures.unsigned(beside.band, finding.metric)}."
    own, neutral = (
        material.now.value(metric, finding.suite, where)
        for metric, where in ((_PLAIN, {"term": top.term}), (f"{_PLAIN}/control", {}))
    )
    if own is not None and neutral is not None:
        words += f" Of its answers {figures.value(own, _PLAIN)} really changed, with neutral "
        words += f"wording {figures.value(neutral, _PLAIN)}."
    return [name(material.identity(finding.suite, top.term), blocks.Tone.STRONG), words]


def _table(
    material: Material, finding: IdentityFinding, beside: NeutralWording, position: int
) -> blocks.Block:
    metric, in_degrees = finding.metric, finding.metric == LOG_ODDS_DIFFERENCE.id

    def changed(metric: str, where: Mapping[str, str]) -> Inline:
        return figure(figures.value(material.now.value(metric, finding.suite, where), _PLAIN))

    def row(phrase: PhraseFinding) -> Row:
        is_inside = abs(phrase.difference) <= beside.band
        side = "inside" if is_inside else "above" if phrase.difference > 0 else "below"
        cells: list[Inline] = [
            name(material.identity(finding.suite, phrase.term)),
            figure(figures.signed(phrase.difference, metric)),
            side,
            figure(figures.probability(phrase.p_corrected)),
        ]
        if in_degrees:
            nats = (
                figures.NONE if phrase.log_odds is None else signed(phrase.log_odds, is_rate=False)
            )
            values = figures.signed_interval(phrase.interval, metric), nats
            cells += [*map(figure, values), changed(_PLAIN, {"term": phrase.term})]
        return Row(cells=cells, kind=RowKind.NORMAL)

    cells: list[Inline] = [
        "neutral phrases",
        figure(f"±{figures.unsigned(beside.band, metric)}"),
        "the band",
        "",
    ]
    cells += ["", "", changed(f"{_PLAIN}/control", {})] if in_degrees else []
    reference = Row(cells=cells, kind=RowKind.REFERENCE)
    heads = columns("who", numbers=["points from neutral wording"])
    heads += columns("band")
    heads += columns(numbers=["corrected p"])
    if in_degrees:
        heads += columns(numbers=["likely range", "log-odds", "answers that changed"])
    number = f" {position}" if position > 1 else ""
    return blocks.Table(
        label=f"Identities beside neutral wording, {_WHAT[metric]}{number}",
        columns=heads,
        rows=[*map(row, beside.identities), reference],
        most=_SHORT,
    )
