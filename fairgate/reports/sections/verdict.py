"""What the verdict is and rests on: every rule, how values moved, how much was decided, by what.

And how to run it again.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from fairgate.domain.outcomes import Outcome, RuleResult
from fairgate.domain.units import Reason, counted
from fairgate.gate.baseline import Baseline
from fairgate.gate.gate import GateResult
from fairgate.gate.labels import ENOUGH
from fairgate.metrics.columns import AssessedUnits, Column
from fairgate.reports import blocks, figures
from fairgate.reports.blocks import (
    Section,
    Span,
    code,
    columns,
    command,
    figure,
    joined,
    muted,
    name,
    spans,
)
from fairgate.reports.figures import RuleRow
from fairgate.reports.material import Material, pair_suites, question_suites
from fairgate.reports.sections import EVIDENCE, RELATIONS, RULES
from fairgate.reports.sections.measured import question_size
from fairgate.stats.observations import Levels

_SHORT = 12
MOST_BOUNDS = 3
"""Broken bounds that the first sentences name."""
_NOT_COMPARED = "not evaluated"
_URGENCY = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.NOT_EVALUATED, Outcome.PASS)
_MISSING = 10
_NAMED = 3
"""Sentences on what the policy does not see."""
_REVISIONS = {"system": "revision", "retriever": "retriever revision", "model": "model revision"}
"""Parts that may be asked from outside, and the fact that names their state."""
_LIMITS = frozenset({"bound", "parity"})
"""Checks that compare with no baseline."""
_REASONS = 3
_SAME = "for the same reason"
"""What stands beside a rule that has no value, where the line above says why."""


def rules(material: Material) -> Iterator[Section]:
    """Yield the table of bounds, what failed first; it is also kept where there is little room."""
    bounds = [row for row in material.rules if row.rule.parity is None]
    first: dict[tuple[str, ...], int] = {}
    for place, row in enumerate(bounds):
        first.setdefault(_lacks(row), place)

    def urgency(row: RuleRow) -> tuple[bool, int, str, int]:
        """Order what needs attention first, and keep together what is counted or said together."""
        group, lacks = group_of(row), _lacks(row)
        return bool(group), _URGENCY.index(row.rule.outcome), group, first[lacks] if lacks else 0

    rows = sorted(bounds, key=urgency)
    if not rows:
        return
    compared = any(row.rule.change is not None for row in rows)
    heads = columns("outcome", "rule", numbers=["now"])
    heads.append(blocks.Column(head=material.confidence_interval, is_number=True, is_wide=True))
    if compared:
        heads.append(blocks.Column(head="base", is_number=True, is_wide=True))
        heads += columns(numbers=["change"])
        heads.append(blocks.Column(head="interval of the change", is_number=True, is_wide=True))
    lacking = [(), *map(_lacks, rows)]
    same = [bool(lacks) and lacks == then for then, lacks in pairwise(lacking)]
    notes = [_SAME if is_same else _note(row) for row, is_same in zip(rows, same, strict=True)]
    described = zip(rows, rule_names(rows), [row.interval for row in rows], notes, strict=True)
    table = blocks.Table(
        label="Table of rules",
        columns=heads,
        rows=[_row(*row_parts, compared=compared) for row_parts in described],
        most=_SHORT,
    )
    # Without a verdict each rule says what it lacks; else the first sentences name what fails.
    is_open = material.result.outcome is Outcome.INCONCLUSIVE
    is_cut = sum(row.rule.fails_gate for row in rows) > MOST_BOUNDS
    yield replace(
        RULES,
        blocks=[table],
        in_console=is_open,
        in_comment=is_open or is_cut,
        count=len(rows),
    )


def _lacks(row: RuleRow) -> tuple[str, ...]:
    """Return why a rule of its own line has no value, by suite; empty for all others."""
    is_open = row.rule.outcome is Outcome.NOT_EVALUATED and not group_of(row)
    return (row.suite, *row.reasons) if is_open and row.reasons else ()


def _note(row: RuleRow) -> str:
    if group_of(row).startswith(_NOT_COMPARED):
        return ""
    return "; ".join(row.reasons)


def _row(
    row: RuleRow, words: blocks.Inline, interval: str, note: str, *, compared: bool
) -> blocks.Row:
    group, tone = group_of(row), blocks.TONES[row.rule.outcome]
    stands_out = row.rule.change and not group
    changed = figure(row.change, blocks.Tone.STRONG if stands_out else blocks.Tone.NORMAL)
    outcome = [Span(row.rule.outcome.value, blocks.Kind.MARK), Span(" "), Span(row.word, tone=tone)]
    return blocks.Row(
        cells=[
            [*outcome, *([" (advisory)"] if row.rule.advisory else [])],
            words,
            figure(row.now),
            figure(interval),
            *([figure(row.base), changed, figure(row.change_interval)] if compared else []),
        ],
        note=note,
        tone=blocks.Tone.NORMAL if group else tone,
        group=group,
    )


def group_of(row: RuleRow) -> str:
    """Return the group of a rule that needs no attention; empty for all others."""
    if row.rule.is_reported:
        return "only reported"
    if row.rule.is_first_run and row.rule.outcome is Outcome.NOT_EVALUATED:
        return f"{_NOT_COMPARED}: nothing to compare with"
    return "passed" if row.rule.outcome is Outcome.PASS else ""


def rule_names(rows: Sequence[RuleRow]) -> list[list[Span]]:
    """Return the rules' names; a metric that repeats is an ellipsis and the slice."""
    names: list[list[Span]] = []
    previous = ("", "", "")
    for row in rows:
        # Groups are folded: an ellipsis may not stand for a name elsewhere.
        kind = (row.rule.metric, row.suite, group_of(row))
        suite: blocks.Words = [" in ", name(row.suite)] if row.suite else []
        if row.where and kind == previous:
            words: blocks.Words = ["… ", name(row.brief)]
        else:
            inside: blocks.Words = [", ", name(row.slice)] if row.slice else []
            words = [row.title, *inside, *suite, *muted([" ", code(row.rule.metric)])]
        names.append(spans(words))
        previous = kind
    return names


def evidence(material: Material) -> Iterator[Section]:
    """Yield what a verdict rests on."""
    rests_on = [*_decided(material), *_trust(material), *_references(material)]
    was_tested = [*_suites(material), *_under_test(material)]
    both = [blocks.KeyValues(rows=rows) for rows in (rests_on, was_tested)]
    yield replace(EVIDENCE, blocks=both)


def decided(material: Material) -> str:
    """Return `110 of 110 pairs decided`, with the reasons of those that are not."""
    result = material.result
    unit = "pair" if len(pair_suites(result)) == len(result.gate_input.policy.suites) else "case"
    reasons: Counter[Reason] = Counter()
    for suite in AssessedUnits.of(result.assessed).suites.values():
        reasons.update(suite.decisions.counts())
    evidence_ = result.evidence
    why = f" ({counted(reasons)})" if reasons else ""
    return f"{evidence_.decided:,} of {figures.count(evidence_.planned, unit)} decided{why}"


def _decided(material: Material) -> Iterator[blocks.KeyValue]:
    evidence_ = material.result.evidence
    yield "decided", decided(material)
    if evidence_.invalid:
        excluded = figures.count(evidence_.invalid, "follow-up")
        yield "excluded", f"{excluded}, whose wording is not comparable (perturbation linter)"
    if evidence_.missing:
        more = len(evidence_.missing) - _MISSING
        keys = joined([code(key) for key in evidence_.missing[:_MISSING]])
        yield "without an answer", [*keys, *([f" and {more:,} more"] if more > 0 else [])]


def _references(material: Material) -> Iterator[blocks.KeyValue]:
    result, accepted_runs = material.result, material.result.gate_input.accepted_runs
    overlap, path = result.overlap, accepted_runs.anchor_path
    if overlap is None:
        yield "baseline", "none: nothing is compared with an earlier run"
    else:
        words = _accepted(material, accepted_runs.baseline_path, material.baseline, "accepted")
        words.append(f"; {figures.count(overlap.compared, 'case')} in common")
        words += _cases(overlap.new, "new") + _cases(overlap.removed, "removed")
        changes = [(rule.suite, rule.change) for rule in result.rules if rule.change]
        apart = len({(suite, key) for suite, change in changes for key in change.decided_once})
        if apart:
            once, are = figures.count(apart, "case"), "is" if apart == 1 else "are"
            words.append(f"; {once} decided in only one of the runs {are} not compared")
        yield "baseline", words
    if path and result.anchor_overlap is None:
        yield "anchor", "none: budgets are not evaluated"
    elif path:
        yield "anchor", _accepted(material, path, material.anchor, "pinned")


def _trust(material: Material) -> Iterator[blocks.KeyValue]:
    """Yield how often people call right what each suite's reading reports."""
    for suite, precision in material.result.gate_input.precisions.items():
        words = f"{precision.right:,} of {figures.count(precision.labelled, 'labelled difference')}"
        words += " called right"
        if precision.labelled < ENOUGH:
            words += f"; {ENOUGH} are needed to say how far it can be trusted"
        else:
            low, high = (100 * end for end in (precision.interval.low, precision.interval.high))
            share = 100 * precision.right / precision.labelled
            words += (
                f": {share:.0f} % ({low:.0f} … {high:.0f} %) of what is reported is read right, if "
                "the labelled cases are like the others"
            )
        yield ["reading in suite ", name(suite)], words


def _accepted(material: Material, path: str, run: Baseline | None, verb: str) -> blocks.Words:
    """Return file, date, commit and reason of a baseline or an anchor."""
    words: blocks.Words = [code(f"{material.options.place}{path}")]
    if run is not None:
        commit = run.provenance.commit[:12]
        words += [" of ", Span(run.date, blocks.Kind.DATE)] if run.date else []
        words += [", commit ", code(commit)] if commit else []
        words += [f", {verb} because: ", run.reason] if run.reason else []
    return words


def _cases(keys: Sequence[str], word: str) -> blocks.Words:
    if not keys:
        return [f", 0 {word}"]
    named = joined([code(key) for key in keys[:_NAMED]])
    return [f", {len(keys):,} {word} (", *named, ", …)" if len(keys) > _NAMED else ")"]


def _suites(material: Material) -> Iterator[blocks.KeyValue]:
    result = material.result
    for suite in pair_suites(result):
        units = result.gate_input.plan.units_of(suite)
        sources = len({unit.cluster for unit in units})
        arms = [identity.is_control for identity in material.identities(suite).values()]
        size = f"{figures.count(sources, 'source')} × {figures.count(arms.count(False), 'term')}"
        if any(arms):
            size += f" and {figures.count(arms.count(True), 'control prompt')}"
        yield ["suite ", name(suite)], f"{size}, {figures.count(len(units), 'pair')}"
    for suite in question_suites(result):
        rows = [row for row in material.questions if row.suite == suite]
        yield ["suite ", name(suite)], question_size(rows)


def changed_parts(material: Material) -> list[str]:
    """Return the parts of the system that differ from the baseline's."""
    run = material.baseline
    if run is None:
        return []
    now, then = material.result.gate_input.provenance.under_test, run.provenance.under_test
    return [part for part in dict.fromkeys((*now, *then)) if now.get(part) != then.get(part)]


def unknown_parts(facts: Mapping[str, str]) -> list[str]:
    """Return the parts of a system that are asked from outside and whose state has no name."""
    return [
        part
        for part, fact in facts.items()
        if (name := _REVISIONS.get(part.rpartition(": ")[2])) is not None
        and (not part.endswith("model") or " at http" in fact)
        and f"{part.rpartition(': ')[0]}{': ' * (': ' in part)}{name}" not in facts
    ]


def _under_test(material: Material) -> Iterator[blocks.KeyValue]:
    provenance = material.result.gate_input.provenance
    now = provenance.under_test
    then = material.baseline.provenance.under_test if material.baseline else None
    for part in dict.fromkeys((*now, *(then or ()))):
        fact = code(now[part]) if part in now else Span("nothing")
        since: blocks.Words = []
        if then is not None and part not in then:
            since = [" (new)"]
        elif then is not None and now.get(part) == then[part]:
            is_known = part not in unknown_parts(now)
            since = [" (unchanged)" if is_known else " (whether it has changed is not known)"]
        elif then is not None:
            since = [
                " (",
                Span("changed", tone=blocks.Tone.STRONG),
                ", was ",
                code(then[part]),
                ")",
            ]
        yield name(part), [fact, *since]

    if provenance.commit:
        yield "commit of the checkout", [code(provenance.commit[:12])]
    yield "run again", [command(run_command(material))]
    if accept := accept_command(material):
        yield "accept as the baseline", [command(accept)]
    yield "FairGate", [code(provenance.fairgate)]
    for part, where in provenance.environment.items():
        yield name(part), spans(code(where))


def breaks_a_limit(rule: RuleResult) -> bool:
    """Return whether a rule that decides fails by what no baseline changes."""
    return rule.fails_gate and not _LIMITS.isdisjoint(rule.failed)


def breaks_only_limits(result: GateResult) -> bool:
    """Return whether all that fails is what no baseline changes."""
    failed = {check for rule in result.rules if rule.fails_gate for check in rule.failed}
    return bool(failed) and failed <= _LIMITS


def run_command(material: Material) -> str:
    """Return the command that makes this run again."""
    path = shlex.quote(material.result.gate_input.provenance.policy_path)
    name = "table" if material.options.of_table else "run"
    return material.options.run_command or f"{material.options.called(name)} {path}"


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
    options = material.options
    if not options.run_path or not fits or options.limit is not None or options.of_table:
        return ""
    accept = material.options.called("baseline accept")
    return f'{accept} {shlex.quote(material.options.run_path)} --reason "…"'


_INVALID = ("invalid prompt", "invalid response")
"""P4's two columns: what the linter or the judge rejects, and answers that say nothing of use."""
_NO_RESPONSE = (Reason.MISSING, Reason.UNREADABLE, Reason.INVALID_RESPONSE)


def relations(material: Material) -> Iterator[Section]:
    """Yield a table with a row for each relation of each suite: pairs, changed, excluded, why."""
    claims_of: dict[tuple[str, str], Column] = {}
    for pairs in material.judged:
        units = pairs.assessed.units
        levels = Levels.of(unit.dimensions["relation"] for unit in units)
        for relation in levels.taken(np.flatnonzero(~pairs.is_control)).first_rows():
            own = np.flatnonzero(~pairs.is_control & levels.equal(relation))
            claims_of[units[0].suite, relation] = pairs.claims.taken(own)
    suites = pair_suites(material.result)
    excluded: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    invalid: Counter[tuple[str, str]] = Counter()
    for rejected in material.result.gate_input.plan.rejected:
        if rejected.suite in suites:
            excluded[rejected.suite, rejected.relation][rejected.reason] += 1
            invalid[rejected.suite, rejected.relation] += rejected.kind == "invalid"
    relations_ = list(dict.fromkeys((*claims_of, *excluded)))
    if not relations_:
        return
    several = len({suite for suite, _ in relations_}) > 1
    heads = ("pairs", "decided", "changed", "share", *_INVALID, "excluded")
    table_rows = []
    for suite, relation in relations_:
        claims, reasons = claims_of.get((suite, relation), Column.of(())), excluded[suite, relation]
        why_open = Counter(claims.counts())
        decided = len(claims) - why_open.total()
        changed = int((claims.values == 1.0).sum())
        share = f"{100 * changed / decided:.1f} %" if decided else figures.NONE
        counts = [f"{many:,}" for many in (len(claims), decided, changed)]
        prompts = invalid[suite, relation] + why_open[Reason.INVALID_PROMPT]
        responses = sum(why_open[reason] for reason in _NO_RESPONSE)
        why = [f"{many:,} excluded: {reason}" for reason, many in reasons.most_common(_REASONS)]
        called = [code(relation), *([name(suite)] if several else [])]
        of_all = (prompts, responses, reasons.total())
        numbers = map(figure, (*counts, share, *(f"{many:,}" for many in of_all)))
        table_rows.append(blocks.Row(cells=[*called, *numbers], note=joined(why, "; ")))
    table = blocks.Table(
        label="Table of relations",
        columns=columns("relation", *(["suite"] if several else []), numbers=heads),
        rows=table_rows,
        depth=blocks.Depth.FULL,
    )
    yield replace(RELATIONS, blocks=[table], count=len(relations_))
