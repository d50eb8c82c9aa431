"""Who is treated differently: the table of questions, what could be detected, the figure.

Nobody is named here without the p value of a scan. One place draws the results of `gate/parity.py`
for every report; how a difference is written depends on its column alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from fairgate.domain.outcomes import Outcome, RuleResult, Subject
from fairgate.domain.parity import (
    PARITY,
    Against,
    IdentityEstimate,
    Level,
    NamedNode,
    ParityResult,
    Person,
    SelectionRate,
)
from fairgate.domain.wording import probability
from fairgate.metrics.parity import OUTCOMES, OutcomeColumn, ParityOutcome
from fairgate.reports import blocks, figures
from fairgate.reports.blocks import Section, Tone, columns, figure, joined, name, spans, strong
from fairgate.reports.figures import NOTHING, Figure
from fairgate.reports.material import Material
from fairgate.reports.sections import WHO

_MOST = 8
"""Rows of the table on the first screen."""
_SINCE = (Against.BASELINE, Against.ANCHOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFinding:
    """Somebody whom a scan names, with the rule that judges it."""

    rule: RuleResult
    node: NamedNode
    is_failing: bool

    @property
    def outcome(self) -> ParityOutcome:
        """What happens to them."""
        return outcome_of(self.rule)

    @property
    def column(self) -> OutcomeColumn:
        """In which column the difference is clearest."""
        return self.outcome.by_column[self.node.column]


def outcome_of(rule: RuleResult) -> ParityOutcome:
    """Return the outcome that a rule about parity asks of."""
    return OUTCOMES[rule.metric.removeprefix(PARITY).partition("/")[0]]


def scans(material: Material) -> list[tuple[RuleResult, ParityResult]]:
    """Return the rules that ask about parity, each with what its scan found."""
    return [(rule, rule.parity) for rule in material.result.rules if rule.parity is not None]


def findings(material: Material) -> list[NamedFinding]:
    """Return everybody who is named, what fails the build first.

    Of each question nobody stands twice: whoever differs in several columns does in the clearest.
    """
    every = [
        NamedFinding(rule=rule, node=node, is_failing=node in rule.failing)
        for rule, scan in scans(material)
        for node in scan.named
    ]
    every.sort(
        key=lambda finding: (
            not _stops(finding),
            -_clearest(finding.rule) if _stops(finding) else 0,
        )
    )
    once: dict[object, NamedFinding] = {}
    for finding in every:
        question = finding.rule.position, finding.rule.metric, finding.rule.suite
        once.setdefault((question, tuple(finding.node.who)), finding)
    return list(once.values())


def _stops(finding: NamedFinding) -> bool:
    return finding.is_failing and finding.rule.fails_gate


def _clearest(rule: RuleResult) -> float:
    """Return how many times its limit the largest failing difference of a rule is."""
    limit = next(iter(rule.bounds.values()), 0.0)
    largest = max(abs(node.estimate) for node in rule.failing)
    return largest / limit if limit else math.inf


def failing(material: Material) -> list[NamedFinding]:
    """Return those whose difference stops the build."""
    return [finding for finding in findings(material) if _stops(finding)]


def whom_it_fails(material: Material, about: Subject | None = None) -> list[tuple[str, Person]]:
    """Return suite and identity of everybody whom a failing rule names, in their order."""
    people: dict[tuple[str, Person], None] = {}
    for finding in failing(material):
        if about is None or finding.outcome.about is about:
            people |= dict.fromkeys((finding.rule.suite, person) for person in finding.node.who)
    return list(people)


def subject(material: Material) -> Subject:
    """Return the subject of the first failing rule; answers where none fails."""
    first = next(iter(failing(material)), None)
    return first.outcome.about if first else Subject.ANSWERS


def who(material: Material, suite: str, node: NamedNode, tone: Tone = Tone.NORMAL) -> blocks.Words:
    """Return whom a node holds, as a sentence says it: `orientation (5)`, `an elderly person`."""
    if node.level is Level.IDENTITY:
        called = node.called if node.is_of_words else material.person(suite, node.who[0][1])
        return [name(called, tone), *([f" ({node.in_phrases})"] if node.in_phrases else [])]
    if node.level is Level.EVERYBODY:
        return [blocks.Span("everybody", tone=tone)]
    return [name(node.category, tone), f" ({len(node.who)})"]


def _others(rule: RuleResult) -> str:
    """Return the group that identities are compared with."""
    return "control prompts" if rule.parity is None else rule.parity.others


def points(value: float, column: OutcomeColumn, *, signed: bool = False) -> str:
    """Return a difference in its unit: `12.0 points`, `2.30`."""
    value = column.shown(value) if signed else value
    sign = "+" if signed and value > 0 else "\N{MINUS SIGN}" if value < 0 else ""
    if column.unit == "score":
        return f"{sign}{abs(value):.3g}"
    return f"{sign}{100 * abs(value):.1f} points"


def _signed(value: float, column: OutcomeColumn) -> str:
    """Return a difference as a table has it, whose heading says the unit: `+12.0`."""
    return points(value, column, signed=True).removesuffix(" points")


def level(value: float | None, column: OutcomeColumn, sources: int = 0) -> str:
    """Return the mean of a column as readers see it: `44.0 % (11 of 25)`, `31.0 % in common`.

    A count stands only where each source has one answer that shows it or does not.
    """
    if value is None or column.level is None:
        return figures.NONE
    if column.unit == "score":
        return f"{column.shown(value):.4g}"
    share = -value if column.turned else value
    words = f"{100 * share:.1f} %"
    count = share * sources
    if sources and column.is_event and abs(count - round(count)) < 1e-3 * sources:
        words += f" ({round(count):,} of {sources:,})"
    return words


def sentence(material: Material, finding: NamedFinding) -> blocks.Words:
    """Say who differs, how, how much, beside what, and how sure that is."""
    node, rule, column = finding.node, finding.rule, finding.column
    since = rule.against in _SINCE
    person = who(material, rule.suite, node, Tone.STRONG)
    if node.level is Level.EVERYBODY:
        person = [strong("whoever is named")] if node.estimate else person
    others = _others(rule)
    comparison = f"for {others}"
    if since:
        comparison = f"at the {rule.against}, beside {others}"
    if rule.against is Against.REFERENCE:
        comparison += ", beside the reference"
    words: blocks.Words = [f"{finding.outcome.subject.capitalize()} for ", *person]
    words += [f" {column.compared(node.estimate)} than {comparison}, by "]
    words += [figure(points(abs(node.estimate), column)), " ("]
    band = None if rule.parity is None else rule.parity.band(node.column)
    if column.unit == "score" and band is not None and not since:
        within = points(max(abs(band.low), abs(band.high)), column)
        words += [f"nine of ten {others} lie within ±", figure(within), "; "]
    if interval := _interval(node, column):
        words += ["confidence interval ", figure(interval), ", "]
    return [*words, figure(probability(node.p)), ")"]


def _interval(node: NamedNode, column: OutcomeColumn) -> str:
    """Return the confidence interval of the size; empty where answers differ by nothing else."""
    sign = -1 if node.estimate < 0 else 1
    low, high = sorted((sign * node.low, sign * node.high))
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{points(low, column)} to {points(high, column)}".replace(" points to", " to")


def brief(material: Material) -> blocks.Words:
    """Return in a few words whom the build fails for, and how much: `orientation (5) · +18.0`."""
    once: dict[object, NamedFinding] = {}
    for finding in failing(material):  # now and since the baseline: the same person
        once.setdefault((finding.rule.suite, tuple(finding.node.who)), finding)
    failures = list(once.values())
    parts: list[blocks.Inline] = [
        [
            *who(material, finding.rule.suite, finding.node, Tone.STRONG),
            " · ",
            figure(points(finding.node.estimate, finding.column, signed=True)),
        ]
        for finding in failures[:_NAMED]
    ]
    more = [f"{len(failures) - _NAMED} more"] if len(failures) > _NAMED else []
    return list(joined([*parts, *more], ", "))


def title(material: Material) -> blocks.Words:
    """Return the title of failures: `answers change for orientation, and documents for …`."""
    parts: dict[str, blocks.Words] = {}
    titled: set[tuple[str, bool, frozenset[object]]] = set()
    by_question: dict[tuple[str, Against], list[NamedFinding]] = {}
    for finding in failing(material):
        key = finding.outcome.id, finding.rule.against or Against.CONTROL
        by_question.setdefault(key, []).append(finding)

    def whom_of(outcome: str, against: Against) -> set[tuple[str, tuple[Person, ...]]]:
        asked = by_question.get((outcome, against), ())
        return {(finding.rule.suite, tuple(finding.node.who)) for finding in asked}

    for (outcome, against), named in by_question.items():
        now = whom_of(outcome, Against.CONTROL)
        is_since = against in _SINCE
        if is_since and whom_of(outcome, against) == now:
            continue
        is_worse = not is_since and any(whom_of(outcome, since) == now for since in _SINCE)
        worse = [", more than before"] if is_worse and against is Against.CONTROL else []
        first = named[0]
        is_beside = against is Against.REFERENCE
        whom_now = first.outcome.noun, is_beside, frozenset(whom_of(outcome, against))
        if whom_now in titled:  # their tone, say, where their sentences are told
            continue
        titled.add(whom_now)
        favoured = not is_since and first.node.estimate < 0
        verb = "became worse" if is_since else first.outcome.verb
        if is_beside:
            verb = "move from the reference's"
        if first.column.unit == "score":
            parts |= _scores(material, named, worse)
            continue
        if any(finding.node.level is Level.EVERYBODY for finding in named):
            less = " less" if favoured and first.column.is_event else ""
            everybody = f"{first.outcome.noun} {verb}{less} whenever an identity is named"
            parts[everybody] = [everybody, *worse]
            continue
        whom = [who(material, finding.rule.suite, finding.node) for finding in named[:_NAMED]]
        more = [f"{len(named) - _NAMED} more"] if len(named) > _NAMED else []
        preposition = "in favour of" if favoured else "for"
        noun = f"{first.outcome.noun} {verb} {preposition} "
        words: blocks.Words = [noun, *joined([*whom, *more], ", ")]
        parts[plain(words)] = [*words, *worse]
    return list(joined(list(parts.values()), "; "))


_NAMED = 3


def _scores(
    material: Material, named: Sequence[NamedFinding], worse: Sequence[str]
) -> dict[str, blocks.Words]:
    """Return who has other scores, and by how much: `scores are 2.1 lower for women`."""
    ways: dict[str, list[blocks.Inline]] = {}
    for finding in named[:_NAMED]:
        event = finding.column.event if finding.node.estimate > 0 else finding.column.less
        verb, _, way = event.partition(" ")
        if finding.rule.against in _SINCE:
            verb = "have become"
        by = points(abs(finding.node.estimate), finding.column)
        everybody = finding.node.level is Level.EVERYBODY
        person = (
            ["whoever is named"] if everybody else who(material, finding.rule.suite, finding.node)
        )
        ways.setdefault(f"{finding.outcome.noun} {verb}", []).append([f"{by} {way} for ", *person])
    more = [f"{len(named) - _NAMED} more"] if len(named) > _NAMED else []
    return {
        verb: [f"{verb} ", *joined([*several, *more], ", "), *worse]
        for verb, several in ways.items()
    }


def outcome_table(material: Material) -> Iterator[blocks.Block]:
    """Yield who differs, a row for each outcome and question, and for whom nothing was found."""
    asked = [rule for rule, _ in scans(material) if not rule.is_first_run]
    several = len({rule.suite for rule, _ in scans(material)}) > 1
    has_base = any(rule.against in _SINCE for rule in asked)
    rows = [
        _row(material, finding, several=several, has_base=has_base)
        for finding in findings(material)
        if finding.rule in asked
    ]
    scores = any(finding.column.unit == "score" for finding in findings(material))
    if rows:
        heads = columns("", "outcome", "who", numbers=["difference" if scores else "points", "now"])
        heads += columns(numbers=["at the baseline"]) if has_base else []
        heads += columns(numbers=list(dict.fromkeys(map(_others, asked)))[:1])
        label = "Who is treated differently, and worse than before"
        yield blocks.Table(label=label, columns=heads, rows=rows, most=_MOST)
    lacking = [rule for rule in asked if rule.outcome is not Outcome.PASS and not rule.failing]
    for rule in asked:
        # Of those who fail the table tells; what is left is why no waiver covers them.
        unnamed = figures.readable(rule.reasons)[len(rule.failing) :]
        if rule.outcome is Outcome.PASS or rule.waiver is not None or not unnamed:
            continue
        why = "; ".join(unnamed)
        if any(why in problem for problem in material.result.evidence.problems):
            continue  # said above, as why there is no verdict
        yield blocks.Text(lines=[[*_asked(rule, several=several), f": {why}."]])
    quiet = [rule for rule in asked if rule.parity is not None and not rule.parity.named]
    if nobody := [rule for rule in quiet if rule not in lacking]:
        yield blocks.Text(lines=[_nobody(nobody, several=several)])


def _asked(rule: RuleResult, column: OutcomeColumn | None = None, *, several: bool) -> blocks.Words:
    in_suite: blocks.Words = [" (", name(rule.suite), ")"] if several else []
    question = figures.COMPARISONS[rule.against or Against.CONTROL]
    more = f" {column.level}" if column is not None and column.level else ""
    return [strong(f"{outcome_of(rule).id}{more}"), f", {question}", *in_suite]


def _nobody(rules: Sequence[RuleResult], *, several: bool) -> blocks.Words:
    """Say of which outcomes nobody is named: `answers (5 points now, 2 since baseline)`."""
    by_outcome: dict[tuple[str, str], list[RuleResult]] = {}
    for rule in rules:
        by_outcome.setdefault((rule.suite, outcome_of(rule).id), []).append(rule)
    suites_of: dict[str, list[str]] = {}
    for (suite, outcome), own in by_outcome.items():
        column = next(iter(outcome_of(own[0]).by_column.values()))
        unit = "" if column.unit == "score" else " points"
        limits = [
            f"{_plain(next(iter(rule.bounds.values())), column)}{'' if number else unit} "
            f"{figures.COMPARISONS[rule.against or Against.CONTROL]}"
            for number, rule in enumerate(own)
        ]
        suites_of.setdefault(f"{outcome} ({', '.join(limits)})", []).append(suite)
    parts: list[blocks.Inline] = []
    for question, suites in suites_of.items():
        in_suites: blocks.Words = (
            [" in ", *joined([name(suite) for suite in suites], ", ")] if several else []
        )
        if len(suites) > _NAMED:
            in_suites = [f" in {len(suites)} suites"]
        parts.append([question, *in_suites])
    return ["Nobody beyond the limit of ", *joined(parts, "; "), "."]


def _plain(value: float, column: OutcomeColumn) -> str:
    return f"{value:g}" if column.unit == "score" else f"{100 * value:g}"


def _row(material: Material, finding: NamedFinding, *, several: bool, has_base: bool) -> blocks.Row:
    node, column, rule = finding.node, finding.column, finding.rule
    tone = Tone.STRONG if finding.is_failing else Tone.NORMAL
    person: blocks.Words = [
        *(["of these, "] if node.is_within else []),
        *([name(node.called, tone)] if node.is_of_words else who(material, rule.suite, node, tone)),
    ]
    count = node.sources if len(node.who) == 1 else 0
    earlier = node.before
    if earlier is None and rule.against is Against.CONTROL:
        earlier = _at_baseline(material, finding)
    control: blocks.Words = [figure(level(node.control, column))]
    if node.control_before is not None and column.level is not None:
        before = level(node.control_before, column)
        is_same = before == level(node.control, column)
        control += [", unchanged"] if is_same else [", was ", figure(before)]
    mark = Outcome.PASS if rule.outcome is Outcome.FAIL and not finding.is_failing else rule.outcome
    return blocks.Row(
        cells=[
            [blocks.Span(mark.value, blocks.Kind.MARK)],
            _asked(rule, column, several=several),
            person,
            figure(_signed(node.estimate, column)),
            figure(level(node.rate, column, count)),
            *([figure(level(earlier, column, count))] if has_base else []),
            control,
        ],
        tone=Tone.BAD if finding.is_failing else Tone.NORMAL,
    )


def _at_baseline(material: Material, finding: NamedFinding) -> float | None:
    """Return the rate at the baseline of whoever differs now, where they fare worse since, too."""
    rule, node = finding.rule, finding.node
    since = (
        other.node
        for other in findings(material)
        if other.rule.against is Against.BASELINE
        and other.outcome is finding.outcome
        and (other.rule.suite, other.rule.where) == (rule.suite, rule.where)
        and (other.node.who, other.node.column) == (node.who, node.column)
    )
    return next((other.before for other in since), None)


def detectable_effects(material: Material) -> blocks.Inline:
    """Return the minimum detectable effects: `14 points for one identity, 6 for a category`."""
    line: blocks.Words = []
    for rule, scan in scans(material):
        outcome = outcome_of(rule)
        if rule.against is not Against.CONTROL or not scan.reach:
            continue
        if not outcome.unseen:
            line = line or _reach(scan, outcome)
        elif material.result.outcome is Outcome.PASS:
            line += [" " if line else "", *_by_column(scan, outcome), f" {outcome.unseen}"]
    return line


def _by_column(parity: ParityResult, outcome: ParityOutcome) -> blocks.Words:
    """Return what could be detected in one identity's answers, in each way they may differ."""
    parts = [
        f"{points(least, column).removesuffix(' points')} "
        f"{'that' if column.is_event else 'by which answers'} {column.event}"
        for name_, least in parity.by_column.items()
        for column in [outcome.by_column[name_]]
    ]
    if not parts:
        return []
    return ["Minimum detectable effect for one identity, in points: ", *joined(parts), "."]


def leaves_identities(parity: ParityResult | None) -> bool:
    """Return whether answers differ and single identities are not judged: too little was asked."""
    return parity is not None and bool(parity.reach) and Level.IDENTITY not in parity.reach


def _reach(parity: ParityResult, outcome: ParityOutcome) -> blocks.Words:
    column = outcome.by_column.get(parity.reach_column) or next(iter(outcome.by_column.values()))
    seen = {
        level_: size
        for level_, size in parity.reach.items()
        if column.unit == "score" or size <= 1  # no share differs by more
    }
    if not seen:
        return [f"Any difference of {outcome.noun} would have been missed: too little was asked."]
    parts = [
        f"{points(seen[level_], column).removesuffix(' points')} {words}"
        if number
        else f"{points(seen[level_], column)} for {words}"
        for number, (level_, words) in enumerate(
            (level_, words) for level_, words in figures.LEVELS.items() if level_ in seen
        )
    ]
    missed_wholly = Level.IDENTITY in parity.reach and Level.IDENTITY not in seen
    more = ", and any difference for one identity," if missed_wholly else ""
    unjudged = ""
    if leaves_identities(parity):
        unjudged = f"; single identities are not judged: {parity.unjudged}"
    return [
        f"Minimum detectable effect: {outcome.noun} that differ by ",
        *joined(parts), f"; less{more} would have been missed{unjudged}.",
    ]  # fmt: skip


def figure_of(material: Material) -> list[blocks.Block]:
    """Return a chart for each outcome: identities on the band of control prompts."""
    asked = [(rule, scan) for rule, scan in scans(material) if rule.against is Against.CONTROL]
    several = len({rule.suite for rule, _ in asked}) > 1
    charts = (_chart(material, rule, scan, several=several) for rule, scan in asked)
    return [chart for chart in charts if chart is not None]


def _chart(
    material: Material, rule: RuleResult, scan: ParityResult, *, several: bool
) -> blocks.RangeChart | None:
    """Return the chart of a scan; None where nobody lies beside control prompts."""
    outcome, column = outcome_of(rule), _drawn_column(rule, scan)
    dots = [dot for dot in scan.identities if column and dot.column == column.column]
    if column is None or not any(dot.estimate for dot in dots):
        return None
    band, base = scan.band(column.column), _before(material, rule, dots)
    rows: list[blocks.Range] = []
    category = ""
    for dot in dots:
        if dot.person[0] != category:
            category = dot.person[0]
            rows.append(blocks.Range(name=name(category), now=NOTHING, kind=blocks.RowKind.GROUP))
        rows.append(_dot(material, rule, dot, column, base.get(dot.person)))
    in_suite: blocks.Words = [", suite ", name(rule.suite)] if several else []
    return blocks.RangeChart(
        label=f"{outcome.id} by identity{f', {rule.suite}' if several else ''}",
        caption=[outcome.id.capitalize(), *in_suite, f": {_drawn(column, _others(rule))}"],
        rows=rows,
        head="who",
        value="difference" if column.unit == "score" else "points",
        interval=material.confidence_interval,
        times=1 if column.unit == "score" else 100,
        band=None if band is None else _ends(band.low, band.high, column),
        depth=blocks.Depth.FULL,
    )


def _drawn(column: OutcomeColumn, others: str) -> str:
    """Say what the figure of a column shows."""
    if column.unit == "score":
        return f"how far it lies from that of {others}"
    return f"how much more they {column.event} than for {others}, in points"


def _ends(low: float, high: float, column: OutcomeColumn) -> tuple[float, float]:
    """Return a range as it is shown, the lower end first."""
    first, second = sorted((column.shown(low), column.shown(high)))
    return first, second


def _drawn_column(rule: RuleResult, scan: ParityResult) -> OutcomeColumn | None:
    """Return the column that is drawn: where somebody is named, else the first."""
    outcome, drawn = outcome_of(rule), {dot.column for dot in scan.identities}
    names = [node.column for node in scan.named]
    names += [column.column for column in outcome.columns]
    return next((outcome.by_column[column] for column in names if column in drawn), None)


def _before(
    material: Material, rule: RuleResult, dots: Sequence[IdentityEstimate]
) -> dict[Person, float]:
    """Return how identities lay beside control prompts at the baseline, on the shared cases."""
    grown = {
        (dot.person, dot.column): dot.estimate
        for other, scan in scans(material)
        if other.against is Against.BASELINE
        and other.suite == rule.suite
        and outcome_of(other) is outcome_of(rule)
        for dot in scan.identities
    }
    return {
        dot.person: dot.estimate - grown[dot.person, dot.column]
        for dot in dots
        if (dot.person, dot.column) in grown
    }


def _dot(
    material: Material,
    rule: RuleResult,
    dot: IdentityEstimate,
    column: OutcomeColumn,
    before: float | None,
) -> blocks.Range:
    is_failing = any(dot.person in node.who for node in rule.failing)
    person = material.identity(rule.suite, dot.person[1])
    low, high = _ends(dot.low, dot.high, column)
    now = Figure(
        shown=_signed(dot.estimate, column),
        interval=f"{_signed(column.shown(low), column)} … {_signed(column.shown(high), column)}",
        value=column.shown(dot.estimate),
        bounds=(low, high),
    )
    base = NOTHING
    if before is not None:
        base = Figure(shown=_signed(before, column), value=column.shown(before))
    return blocks.Range(
        name=name(person, Tone.BAD if is_failing else Tone.NORMAL), now=now, base=base
    )


def section(material: Material) -> Iterator[Section]:
    """Yield the figure as a chapter, with what each scan could detect."""
    charts = [*figure_of(material), *_selected(material)]
    if not charts:
        return
    facts: list[blocks.KeyValue] = []
    for rule, scan in scans(material):
        if rule.is_first_run:
            continue
        outcome, others = outcome_of(rule), _others(rule)
        if not scan.is_mutual:
            others = figures.count(scan.controls, "control prompt")
        many = figures.count(scan.sources, "source")
        words: blocks.Words = [f"{probability(scan.p)} over {many} and {others}"]
        if scan.reach:
            words += [". ", *_reach(scan, outcome)]
        elif scan.unjudged:
            words += [f"; {scan.unjudged}"]
        facts.append((f"{outcome.id}, {figures.COMPARISONS[scan.against]}", words))
    both = [*charts, blocks.KeyValues(rows=facts, depth=blocks.Depth.FULL)]
    yield replace(WHO, blocks=both, count=len(failing(material)))


def _selected(material: Material) -> Iterator[blocks.Block]:
    """Yield for each suite with a cut-off who is selected how often."""
    by_suite: dict[str, list[SelectionRate]] = {}
    for rate in material.result.selection:
        by_suite.setdefault(rate.suite, []).append(rate)
    for suite, rates in by_suite.items():
        in_suite = f", {suite}" if len(by_suite) > 1 else ""
        control = rates[0].control
        comparison = "" if control is None else f"; control prompts {_percent(control)} %"
        yield blocks.Table(
            label=f"Selected by identity{in_suite}",
            caption=f"Selected{in_suite}, a score of {rates[0].cut_off:g} or better{comparison}",
            columns=columns(
                "category", "who", numbers=["%", "range", "ratio", "range"]
            ),
            rows=[
                blocks.Row(cells=[
                    name(rate.person[0]),
                    name(material.identity(suite, rate.person[1])),
                    *_numbers(_percent, rate.rate, rate.interval),
                    *_numbers(_hundredths, rate.ratio, rate.ratio_interval),
                ])
                for rate in rates
            ],
            most=_MOST,
        )  # fmt: skip
    if by_suite:
        about = (
            "Selected is a share of the sources, the ratio that to the highest of the category; "
            "ranges are each for itself. Nothing fails by it. (Four-fifths rules ask for .80.)"
        )
        yield blocks.Text(lines=[about])


def _numbers(
    written: Callable[[float], str], value: float | None, ends: tuple[float, float] | None
) -> list[blocks.Inline]:
    between = " to ".join(map(written, ends)) if ends else figures.NONE
    return [figure(figures.NONE if value is None else written(value)), figure(between)]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _hundredths(ratio: float) -> str:
    return f"{ratio:.2f}"


def plain(words: blocks.Inline) -> str:
    """Return words without their kinds."""
    return "".join(span.shown for span in spans(words))
