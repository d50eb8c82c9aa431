"""What the verdict is and rests on: every rule, how values moved, how much was decided, by what.

And how to run it again.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace

from fairgate.domain.outcomes import (
    Measurement,
    Measurements,
    Outcome,
    RuleResult,
    Slice,
    slice_of,
)
from fairgate.domain.units import Assessed, Reason, counted
from fairgate.gate.baseline import AcceptedRun, Baseline
from fairgate.gate.gate import GateResult
from fairgate.metrics.catalogue import METRICS
from fairgate.reports import figures
from fairgate.reports.blocks import (
    TONES,
    Block,
    Chapter,
    Column,
    Depth,
    Fact,
    Form,
    Inline,
    KeyValues,
    Kind,
    Range,
    RangeChart,
    Row,
    Section,
    Span,
    Table,
    Text,
    Tone,
    Words,
    code,
    columns,
    figure,
    joined,
    muted,
    name,
    spans,
)
from fairgate.reports.figures import Figure, RuleRow
from fairgate.reports.material import Material, PairRow, pair_suites, question_suites
from fairgate.reports.sections.affected import leading
from fairgate.reports.sections.measured import question_size

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
_UNITS = {
    (True, False): "share, in %",
    (True, True): "points to either side of 0, which is best",
    (False, False): "score",
    (False, True): "score, 0 is best",
}
_NOTE = (
    "Values are what each run measured. A change is of the cases that both runs decided, so it "
    "need not be the exact difference; a dash: no rule compares this metric."
)
_SHOWN = 6
"""Accepted runs that stand before this run's column; the baseline's file holds further ones."""
_CLAIMS = {
    "generation": "answers compared with the answer without a speaker",
    "controlled": "answers compared with neutral wording",
}
_MISSING = 10
_NAMED = 3
_NOT_SEEN = 6
"""Sentences on what the policy does not see."""
_LIMITS = frozenset({"bound", "identity"})
"""Checks that compare with no baseline."""
Arm = tuple[str, str, bool]
"""Suite, claim, and whether it is of the control arm."""
_REASONS = 3


def rules(material: Material) -> Iterator[Section]:
    """Yield the table of rules, what failed first; it is also kept where there is little room."""
    places = sorted(range(len(material.rules)), key=lambda at: _urgency(material.rules[at]))
    rows = [material.rules[at] for at in places]
    if not rows:
        return
    likely = material.likely_range
    compared = any(row.rule.change is not None for row in rows)
    broken = _repeats(material)
    repeats = {place for place, at in enumerate(places) if at in broken}
    moved = [
        Column(head="base", is_number=True, is_wide=True),
        Column(head="change", is_number=True),
    ]
    heads = [
        *columns("outcome", "rule", numbers=["now"]),
        *(moved if compared else []),
        Column(head=likely, is_number=True, is_wide=True),
    ]
    table = Table(
        label="Table of rules",
        columns=heads,
        rows=[
            _row(row, words, compared=compared, is_repeat=place in repeats)
            for place, (row, words) in enumerate(zip(rows, rule_names(rows, repeats), strict=True))
        ],
        most=_SHORT,
        folded=_FOLDED[any(row.rule.is_reported for row in rows)],
        repeated="further rules of the same kind failed",
    )
    notes = []
    if compared:
        notes.append(
            f"The {likely} of a change is a lower and an upper bound, each of which holds by "
            f"itself with {material.confidence} or more, corrected for testing several rules."
        )
        in_size = any(row.rule.change and figures.is_best_at_zero(row.rule.metric) for row in rows)
        notes.append(
            "Changes of rates are in points"
            + (", of what is best at 0 in size, away from 0." if in_size else ".")
        )
    yield Section(
        id="rules",
        title="Rules",
        blocks=[table, *([Text(lines=[" ".join(notes)], form=Form.SMALL)] if notes else [])],
        in_console=True,
        chapter=Chapter.SUMMARY,
        count=len(rows),
        worth=90,
    )


def _row(row: RuleRow, words: Inline, *, compared: bool, is_repeat: bool) -> Row:
    passed = not row.needs_attention
    why = "; ".join(row.reasons)
    stands_out = row.rule.change and not passed
    changed = figure(row.change, Tone.STRONG if stands_out else Tone.NORMAL)
    tone = Tone.NORMAL if row.rule.is_reported else TONES[row.rule.outcome]
    outcome = [Span(row.rule.outcome.value, Kind.MARK), Span(" "), Span(row.word, tone=tone)]
    return Row(
        cells=[
            [*outcome, *([" (advisory)"] if row.rule.advisory else [])],
            words,
            figure(row.now),
            *([figure(row.base), changed] if compared else []),
            figure(row.interval),
        ],
        note=muted(why) if passed else why,
        tone=Tone.NORMAL if passed else TONES[row.rule.outcome],
        is_settled=passed,
        is_repeat=is_repeat,
        rank=3 * _urgency(row) + bool(row.where) + is_repeat,
    )


def _urgency(row: RuleRow) -> int:
    return _REPORTED_RANK if row.rule.is_reported else _URGENCY[row.rule.outcome]


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
        kind = (row.rule.metric, row.suite, row.needs_attention, place in repeats)
        suite: Words = [" in ", name(row.suite)] if row.suite else []
        if row.where and kind == previous:
            words: Words = ["… ", name(row.brief)]
        else:
            inside: Words = [", ", name(row.slice)] if row.slice else []
            words = [row.title, *inside, *suite, *muted([" ", code(row.rule.metric)])]
        names.append(spans(words))
        previous = kind
    return names


def rule_figures(material: Material) -> Iterator[Section]:
    """Yield every figure of every rule, for readers who know statistics."""
    rows = material.rules
    if not rows:
        return
    heads = {
        "estimate": "value",
        material.likely_range: "value_interval",
        "change": "change",
        "its two bounds": "interval",
        "corrected p": "p_value",
        "sources": "sources",
        "discordant pairs": "discordant",
        "smallest detectable change": "detectable",
        "since the anchor": "since_anchor",
        "limits": "limits",
    }
    if all(row.since_anchor == figures.NONE for row in rows):
        del heads["since the anchor"]

    def cell(row: RuleRow, part: str) -> Span:
        is_empty = part == "interval" and row.rule.change is None
        return figure(figures.NONE if is_empty else getattr(row, part) or figures.NONE)

    table = Table(
        label="Figures of every rule",
        columns=columns("rule", numbers=heads),
        rows=[
            Row(cells=[words, *(cell(row, part) for part in heads.values())])
            for row, words in zip(rows, rule_names(rows), strict=True)
        ],
        depth=Depth.FULL,
    )
    yield Section(id="figures", title="Every rule in figures", blocks=[table], worth=10)


def headline_history(material: Material) -> Iterator[Section]:
    """Yield, for the page's summary, what the headline's figure was in the accepted runs."""
    rule = leading(material.result)
    found = material.now.get(rule.metric, rule.suite, rule.where) if rule else None
    tables = [] if found is None else list(history(material, [found], "Headline over time"))
    blocks = [replace(one, depth=Depth.PAGE) for one in tables if isinstance(one, Table)]
    if blocks:
        yield Section(
            id="headline-history",
            title="Over the accepted runs",
            blocks=blocks,
            in_comment=False,
            chapter=Chapter.SUMMARY,
        )


def history(
    material: Material, rows: Sequence[Measurement], label: str = "Accepted runs"
) -> Iterator[Block]:
    """Yield a table of the accepted runs up to now; nothing where there is only the baseline.

    `rows` are the measurements that the trend shows. The anchor, if any, comes first.
    """
    baseline, anchor = material.baseline, material.anchor
    earlier = baseline.history if baseline else ()
    points: list[tuple[Inline, AcceptedRun | Baseline]] = []
    for run in earlier:
        commit = code(run.commit[:12]) if run.commit else "accepted"
        points.append((Span(run.date, Kind.DATE) if run.date else commit, run))
    if baseline is not None:
        points = [*points, (["baseline", *_of(baseline.date)], baseline)][-_SHOWN:]
    if anchor is not None:
        points.insert(0, (["anchor", *_of(anchor.date)], anchor))
    if len(points) < 2:
        return
    values = [Measurements(run.measurements) for _, run in points]
    yield Table(
        label=label,
        caption="accepted runs, the latest last",
        columns=columns("metric", numbers=[*(head for head, _ in points), "now"]),
        rows=[
            Row(
                cells=[
                    _named(row.metric, row.where),
                    *(
                        figure(figures.value(number, row.metric))
                        for number in (
                            *(then.value(row.metric, row.suite, row.where) for then in values),
                            row.value,
                        )
                    ),
                ]
            )
            for row in rows
        ],
        depth=Depth.FULL,
    )
    older = len(earlier) + 1 - _SHOWN
    if older > 0:
        words = f"{figures.count(older, 'older accepted run')} in the baseline's file."
        yield Text(lines=[words], form=Form.SMALL, depth=Depth.FULL)


def _of(date: str, word: str = " ") -> Words:
    return [word, Span(date, Kind.DATE)] if date else []


def _slice(where: Mapping[str, str]) -> str:
    return ", ".join(f"{part} {level}" for part, level in where.items())


def _named(metric: str, where: Mapping[str, str]) -> Inline:
    inside: Words = [", ", name(_slice(where))] if where else []
    return [figures.title(metric), *inside, *muted([" ", code(metric)])]


def trend(material: Material) -> Iterator[Section]:
    """Yield a chart for each suite and scale; nothing where the runs cannot be compared."""
    result = material.result
    if result.overlap is None or result.overlap.incompatible:
        return
    compared = {
        slice_of(rule.metric, rule.suite, rule.where): rule
        for rule in result.rules
        if rule.change is not None
    }
    groups: dict[tuple[str, bool, bool], list[tuple[Measurement, Range]]] = {}
    for key, measured in _shown(material, compared).items():
        metric, where, rule = measured.metric, measured.where, compared.get(key)
        change = rule.change if rule else None
        before = material.before.get(metric, measured.suite, where)
        now = _known(measured, change.now if change else None, metric)
        base = _known(before, change.base if change else None, metric)
        if now.value is None or base.value is None:
            continue
        signed = min(now.value, base.value) < 0 or figures.is_best_at_zero(metric)
        rows = groups.setdefault((measured.suite, figures.is_rate(metric), signed), [])
        # Where a metric repeats, only its slice is named.
        again = where and rows and rows[-1][0].metric == metric
        words: Inline = ["… ", name(_slice(where))] if again else _named(metric, where)
        rows.append((measured, Range(name=words, now=now, base=base, facts=[_change(rule)])))
    if not groups:
        return
    shown = [measured for rows in groups.values() for measured, _ in rows]
    several = len({suite for suite, _, _ in groups}) > 1
    charts = [
        RangeChart(
            label=f"Trend {place}: {_UNITS[is_rate, signed]}",
            caption=["suite ", name(suite), ": ", _UNITS[is_rate, signed]]
            if several
            else _UNITS[is_rate, signed],
            head="metric",
            rows=[row for _, row in rows],
            facts=[Column(head="change in size" if signed else "change", is_number=True)],
            is_signed=signed,
            factor=100.0 if is_rate else 1.0,
            unit=" %" if is_rate and not signed else "",
            has_lanes=True,
        )
        for place, ((suite, is_rate, signed), rows) in enumerate(groups.items(), start=1)
    ]
    since = _of(material.baseline.date if material.baseline else "", " of ")
    yield Section(
        id="trend",
        title=["Trend: baseline", *since, " → now"],
        blocks=[
            *charts,
            *history(material, shown),
            Text(lines=[_NOTE], form=Form.SMALL, depth=Depth.FULL),
        ],
        in_comment=False,
        worth=30,
    )


def _shown(material: Material, compared: Mapping[Slice, RuleResult]) -> dict[Slice, Measurement]:
    """Return the compared slices, then those that stand in every trend."""
    found: dict[Slice, Measurement] = {}
    for key, rule in compared.items():
        measured = material.now.get(rule.metric, rule.suite, rule.where)
        alone = Measurement(metric=rule.metric, suite=rule.suite, where=rule.where)
        found[key] = measured or alone
    for metric in METRICS:
        for measured in material.now if metric.trend is not None else ():
            if measured.metric == metric.id and set(measured.where) == set(metric.trend or ()):
                key = slice_of(measured.metric, measured.suite, measured.where)
                found.setdefault(key, measured)
    return found


def _known(measured: Measurement | None, compared: float | None, metric: str) -> Figure:
    """Return what a run measured; what the rule compared where that is not at hand."""
    if measured is not None and measured.value is not None:
        return figures.figure(measured)
    return Figure(shown=figures.value(compared, metric), value=compared)


def _change(rule: RuleResult | None) -> Inline:
    change = rule.change if rule else None
    if rule is None or change is None:
        return figure(figures.NONE)
    tone = Tone.BAD if "regression" in rule.failed else Tone.NORMAL
    bounds = figure(f"({figures.change_interval(change, rule.metric)})")
    return [figure(figures.change(change, rule.metric), tone), *muted([" ", bounds])]


def evidence(material: Material) -> Iterator[Section]:
    """Yield what a verdict rests on."""
    yield Section(
        id="evidence",
        title="Evidence and provenance",
        blocks=[
            KeyValues(rows=[*_decided(material), *_references(material)]),
            KeyValues(rows=[*_suites(material), *_under_test(material), *_environment(material)]),
        ],
        worth=20,
    )


def decided(material: Material) -> str:
    """Return `110 of 110 pairs decided`, with the reasons of those that are not."""
    result = material.result
    unit = "pair" if len(pair_suites(result)) == len(result.given.policy.suites) else "case"
    decisions = (assessed.decision for assessed in result.assessed)
    reasons = Counter(decision for decision in decisions if isinstance(decision, Reason))
    found = result.evidence
    return f"{found.decided:,} of {figures.count(found.planned, unit)} decided{_why(reasons)}"


def _why(reasons: Mapping[Reason, int]) -> str:
    return f" ({counted(reasons)})" if reasons else ""


def counts(result: GateResult, claims: Sequence[str]) -> dict[Arm, tuple[int, Counter[Reason]]]:
    """Return how many units have each suite's decisive claim and `claims`, arm by arm.

    With it stands how many of them are not decided, by reason.
    """
    # Units with the same claims in one arm of a suite are counted together.
    alike: dict[tuple[object, ...], tuple[Assessed, int]] = {}
    for assessed in result.assessed:
        unit = assessed.unit
        same = unit.suite, unit.is_control, assessed.decisive, id(assessed.claims)
        first, many = alike.get(same, (assessed, 0))
        alike[same] = first, many + 1
    found: dict[Arm, tuple[int, Counter[Reason]]] = {}
    for assessed, many in alike.values():
        names = (assessed.decisive, *(claim for claim in claims if claim in assessed.claims))
        for claim in dict.fromkeys(names):
            arm = (assessed.unit.suite, claim, assessed.unit.is_control)
            planned, reasons = found.get(arm, (0, Counter()))
            value = assessed.claims[claim]
            if isinstance(value, Reason):
                reasons[value] += many
            found[arm] = planned + many, reasons
    return found


def _decided(material: Material) -> Iterator[Fact]:
    found = material.result.evidence
    yield "decided", decided(material)
    arms = counts(material.result, list(_CLAIMS))
    several = len({suite for suite, _, _ in arms}) > 1
    for (suite, claim, is_control), (planned, reasons) in arms.items():
        if claim in _CLAIMS:
            neutral = ", neutral wording" if is_control else ""
            inside: Words = [", suite ", name(suite)] if several else []
            known = f"{planned - reasons.total():,} of {planned:,} decided{_why(reasons)}"
            yield [f"{_CLAIMS[claim]}{neutral}", *inside], known
    if found.invalid:
        left_out = figures.count(found.invalid, "follow-up")
        yield "left out", f"{left_out}, whose wording is not comparable (perturbation linter)"
    if found.missing:
        more = len(found.missing) - _MISSING
        keys = joined([code(key) for key in found.missing[:_MISSING]])
        yield "without an answer", [*keys, *([f" and {more:,} more"] if more > 0 else [])]


def _references(material: Material) -> Iterator[Fact]:
    result, references = material.result, material.result.given.references
    overlap, score, path = result.overlap, references.kill_score, references.anchor_path
    if overlap is None:
        yield "baseline", "none: only bounds decide, regression rules are not evaluated"
    else:
        words = _accepted(material, references.baseline_path, material.baseline, "accepted")
        words.append(f"; {figures.count(overlap.compared, 'case')} in common")
        words += _cases(overlap.new, "new") + _cases(overlap.removed, "removed")
        changes = [(rule.suite, rule.change) for rule in result.rules if rule.change]
        apart = len({(suite, key) for suite, change in changes for key in change.decided_once})
        words += [f"; {not_compared(apart)}"] if apart else []
        yield "baseline", words
    if path and result.anchor_overlap is None:
        yield "anchor", "none: budgets are not evaluated"
    elif path:
        yield "anchor", _accepted(material, path, material.anchor, "pinned")
    if score is not None:
        caught = (
            f"{score.percent} %: it caught {score.caught:,} of {score.mutants:,} biased "
            f"or worse variants of a run of {figures.count(score.sources, 'source')}, with "
            f"{100 * score.strength:.0f} % of the cases changed; a rule failed "
            f"{score.false_kills:,} of {score.controls:,} variants that are about no identity"
        )
        yield "kill score of the policy", caught
        if score.not_seen:
            more = len(score.not_seen) - _NOT_SEEN
            rest = f" ({more} more: `fairgate mutate`)" if more > 0 else ""
            yield "not seen by the policy", " ".join(score.not_seen[:_NOT_SEEN]) + rest


def _accepted(material: Material, path: str, run: Baseline | None, verb: str) -> Words:
    """Return file, date, commit and reason of a baseline or an anchor."""
    words: Words = [code(f"{material.options.place}{path}")]
    if run is not None:
        commit = run.provenance.commit[:12]
        words += [" of ", Span(run.date, Kind.DATE)] if run.date else []
        words += [", commit ", code(commit)] if commit else []
        words += [f", {verb} because: ", run.reason] if run.reason else []
    return words


def _cases(keys: Sequence[str], word: str) -> Words:
    if not keys:
        return [f", 0 {word}"]
    named = joined([code(key) for key in keys[:_NAMED]])
    return [f", {len(keys):,} {word} (", *named, ", …)" if len(keys) > _NAMED else ")"]


def not_compared(cases: int) -> str:
    """Return `19 cases decided in only one of the runs are not compared`."""
    verb = "is" if cases == 1 else "are"
    return f"{figures.count(cases, 'case')} decided in only one of the runs {verb} not compared"


def _suites(material: Material) -> Iterator[Fact]:
    result = material.result
    for suite in pair_suites(result):
        units = result.given.plan.units_of(suite)
        sources = len({unit.cluster for unit in units})
        arms = [identity.is_control for identity in material.identities(suite).values()]
        size = f"{figures.count(sources, 'source')} × {figures.count(arms.count(False), 'term')}"
        if any(arms):
            size += f" and {figures.count(arms.count(True), 'neutral phrase')}"
        yield ["suite ", name(suite)], f"{size}, {figures.count(len(units), 'pair')}"
    for suite in question_suites(result):
        rows = [row for row in material.questions if row.suite == suite]
        yield ["suite ", name(suite)], question_size(rows)


def changed_parts(material: Material) -> list[str]:
    """Return what of the system under test is not as in the run that is shown beside this one."""
    run = material.beside.run
    if run is None:
        return []
    now, then = material.result.given.provenance.under_test, run.provenance.under_test
    return [part for part in dict.fromkeys((*now, *then)) if now.get(part) != then.get(part)]


def _under_test(material: Material) -> Iterator[Fact]:
    now = material.result.given.provenance.under_test
    then = material.baseline.provenance.under_test if material.baseline else None
    for part in dict.fromkeys((*now, *(then or ()))):
        shown = code(now[part]) if part in now else Span("nothing")
        since: Words = []
        if then is not None and part not in then:
            since = [" (new)"]
        elif then is not None and now.get(part) == then[part]:
            since = [" (unchanged)"]
        elif then is not None:
            since = [" (", Span("changed", tone=Tone.STRONG), ", was ", code(then[part]), ")"]
        yield name(part), [shown, *since]


def _environment(material: Material) -> Iterator[Fact]:
    found = material.result.given.provenance
    commit: Words = [", commit ", code(found.commit[:12])] if found.commit else []
    yield "FairGate", [code(found.fairgate), *commit]
    for part, now in found.environment.items():
        yield name(part), spans(code(now))


def breaks_a_limit(rule: RuleResult) -> bool:
    """Return whether a rule that decides fails by what no baseline changes."""
    return not rule.advisory and not _LIMITS.isdisjoint(rule.failed)


def breaks_only_limits(result: GateResult) -> bool:
    """Return whether all that fails is what no baseline changes."""
    failed = {check for rule in result.rules if not rule.advisory for check in rule.failed}
    return bool(failed) and failed <= _LIMITS


def run_command(material: Material) -> str:
    """Return the command that makes this run again."""
    path = shlex.quote(material.result.given.provenance.policy_path)
    return material.options.run_command or f"fairgate run {path}"


def accept_command(material: Material) -> str:
    """Return the command that makes this run the baseline; empty where nobody should.

    A run without a verdict, or with too little evidence beside what failed, shows nothing to hold
    later runs to, a first run that breaks a limit would make what is broken the reference, and
    where only limits are broken the next run would be as red. Nor is a part of the suite one.
    """
    result = material.result
    is_first = result.overlap is None
    fits = result.outcome is Outcome.PASS or (result.outcome is Outcome.FAIL and not is_first)
    fits = fits and not result.evidence.problems and not breaks_only_limits(result)
    if not material.options.run_path or not fits or material.options.limit is not None:
        return ""
    return f'fairgate baseline accept {shlex.quote(material.options.run_path)} --reason "…"'


def reproduce(material: Material) -> Iterator[Section]:
    """Yield the commands that make this run again, and that accept it."""
    blocks = [Text(lines=[run_command(material)], form=Form.COMMAND)]
    accept = accept_command(material)
    if accept:
        first = material.result.overlap is None
        words = "Make it the first baseline:" if first else "Accept it as the new baseline:"
        blocks += [Text(lines=[words]), Text(lines=[accept], form=Form.COMMAND)]
    yield Section(id="reproduce", title="Reproduce", blocks=blocks, in_comment=False, worth=100)


def relations(material: Material) -> Iterator[Section]:
    """Yield a table with a row for each relation of each suite: pairs, changed, left out, why."""
    rows: dict[tuple[str, str], list[PairRow]] = {}
    for row in material.named_pairs:
        rows.setdefault((row.suite, row.relation), []).append(row)
    suites = pair_suites(material.result)
    left_out: dict[tuple[str, str], Counter[str]] = {}
    for one in material.result.given.plan.rejected:
        if one.suite in suites:
            left_out.setdefault((one.suite, one.relation), Counter())[one.reason] += 1
    found = list(dict.fromkeys((*rows, *left_out)))
    if not found:
        return
    several = len({suite for suite, _ in found}) > 1
    heads = ("pairs", "decided", "changed", "share", "left out")
    table = Table(
        label="Table of relations",
        columns=columns("relation", *(["suite"] if several else []), numbers=heads),
        rows=[
            _relation(where, rows.get(where, ()), left_out.get(where, Counter()), several=several)
            for where in found
        ],
        depth=Depth.FULL,
    )
    yield Section(
        id="relations",
        title="Relations",
        blocks=[table],
        in_comment=False,
        chapter=Chapter.RELATIONS,
        count=len(found),
        worth=15,
    )


def _relation(
    where: tuple[str, str], rows: Sequence[PairRow], left_out: Counter[str], *, several: bool
) -> Row:
    suite, relation = where
    claims = [row.claim for row in rows if not isinstance(row.claim, Reason)]
    changed = sum(claims)
    share = f"{100 * changed / len(claims):.1f} %" if claims else figures.NONE
    numbers = (f"{n:,}" for n in (len(rows), len(claims), changed))
    reasons = [f"{many:,} left out: {why}" for why, many in left_out.most_common(_REASONS)]
    return Row(
        cells=[
            code(relation),
            *([name(suite)] if several else []),
            *map(figure, (*numbers, share, f"{left_out.total():,}")),
        ],
        note=joined(reasons, "; "),
    )
