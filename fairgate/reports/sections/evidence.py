"""How much was decided, what it was compared with, what ran and on what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fairgate.domain.units import Reason, counted
from fairgate.gate.baseline import Baseline
from fairgate.reports import figures, judged_rows
from fairgate.reports.blocks import Form, KeyValues, Section, Text
from fairgate.reports.material import Material
from fairgate.reports.sections.social_bias import question_size
from fairgate.reports.spans import Inline, Kind, Span, Tone, Words, code, joined, name, spans
from fairgate.reports.steps import accept_command, run_command

Facts = list[tuple[Inline, Inline]]
_CLAIMS = {
    "generation": "answers compared with the answer without a speaker",
    "controlled": "answers compared with neutral wording",
}
_MISSING = 10
_NAMED = 3
_NOT_SEEN = 6
"""Sentences on what the policy does not see."""


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
    found = material.result.evidence
    unit = judged_rows.unit(material.result)
    line = f"{found.decided:,} of {figures.count(found.planned, unit)} decided"
    return line + _why(judged_rows.undecided(material.result))


def _why(reasons: Mapping[Reason, int]) -> str:
    return f" ({counted(reasons)})" if reasons else ""


def _decided(material: Material) -> Iterator[tuple[Inline, Inline]]:
    found = material.result.evidence
    yield "decided", decided(material)
    counts = judged_rows.counts(material.result, list(_CLAIMS))
    several = len({count.suite for count in counts}) > 1
    for count in counts:
        arm = ", neutral wording" if count.is_control else ""
        suite: Words = [", suite ", name(count.suite)] if several else []
        if count.claim in _CLAIMS:
            head = [f"{_CLAIMS[count.claim]}{arm}", *suite]
            yield head, f"{count.decided:,} of {count.planned:,} decided{_why(count.reasons)}"
    if found.invalid:
        left_out = figures.count(found.invalid, "follow-up")
        yield "left out", f"{left_out}, whose wording is not comparable (perturbation linter)"
    if found.missing:
        more = len(found.missing) - _MISSING
        keys = joined([code(key) for key in found.missing[:_MISSING]])
        yield "without an answer", [*keys, *([f" and {more:,} more"] if more > 0 else [])]


def _baseline(material: Material) -> Iterator[tuple[Inline, Inline]]:
    overlap, baseline = material.result.overlap, material.baseline
    if overlap is None:
        yield "baseline", "none: only bounds decide, regression rules are not evaluated"
        return
    words = _accepted(material, material.result.baseline_path, baseline, "accepted")
    words.append(f"; {figures.count(overlap.compared, 'case')} in common")
    words += _cases(overlap.new, "new") + _cases(overlap.removed, "removed")
    apart = len({(rule.suite, key) for rule in material.result.rules if rule.change
                 for key in rule.change.decided_once})  # fmt: skip
    words += [f"; {not_compared(apart)}"] if apart else []
    yield "baseline", words


def _references(material: Material) -> Iterator[tuple[Inline, Inline]]:
    yield from _baseline(material)
    yield from _anchor(material)
    score = material.result.kill_score
    if score is not None:
        words = (
            f"{score.percent} %: it caught {score.caught:,} of {score.mutants:,} biased "
            f"or worse variants of a run of {figures.count(score.sources, 'source')}, with "
            f"{100 * score.strength:.0f} % of the cases changed; a rule failed "
            f"{score.false_kills:,} of {score.controls:,} variants that are about no identity"
        )
        yield "kill score of the policy", words
        if score.not_seen:
            more = len(score.not_seen) - _NOT_SEEN
            rest = f" ({more} more: `fairgate mutate`)" if more > 0 else ""
            yield "not seen by the policy", " ".join(score.not_seen[:_NOT_SEEN]) + rest


def _anchor(material: Material) -> Iterator[tuple[Inline, Inline]]:
    """Yield what budgets count from, where a rule has one."""
    result = material.result
    if not result.anchor_path:
        return
    if result.anchor_overlap is None:
        yield "anchor", "none: budgets are not evaluated"
        return
    yield "anchor", _accepted(material, result.anchor_path, material.anchor, "pinned")


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


def _suites(material: Material) -> Iterator[tuple[Inline, Inline]]:
    result = material.result
    for suite in judged_rows.pair_suites(result):
        sources, pairs = judged_rows.planned_pairs(result, suite)
        arms = [identity.is_control for identity in material.identities(suite).values()]
        size = f"{figures.count(sources, 'source')} × {figures.count(arms.count(False), 'term')}"
        if any(arms):
            size += f" and {figures.count(arms.count(True), 'neutral phrase')}"
        yield ["suite ", name(suite)], f"{size}, {figures.count(pairs, 'pair')}"
    for suite in judged_rows.question_suites(result):
        rows = [row for row in material.questions if row.suite == suite]
        yield ["suite ", name(suite)], question_size(rows)


def changed_parts(material: Material) -> list[str]:
    """Return what of the system under test is not as in the run that is shown beside this one."""
    run = material.beside.run
    if run is None:
        return []
    now, then = material.result.provenance.under_test, run.provenance.under_test
    return [part for part in dict.fromkeys((*now, *then)) if now.get(part) != then.get(part)]


def _under_test(material: Material) -> Iterator[tuple[Inline, Inline]]:
    now = material.result.provenance.under_test
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


def _environment(material: Material) -> Iterator[tuple[Inline, Inline]]:
    found = material.result.provenance
    commit: Words = [", commit ", code(found.commit[:12])] if found.commit else []
    yield "FairGate", [code(found.fairgate), *commit]
    for part, now in found.environment.items():
        yield name(part), spans(code(now))


def reproduce(material: Material) -> Iterator[Section]:
    """Yield the commands that make this run again, and that accept it."""
    blocks = [Text(lines=[run_command(material)], form=Form.COMMAND)]
    accept = accept_command(material)
    if accept:
        first = material.result.overlap is None
        words = "Make it the first baseline:" if first else "Accept it as the new baseline:"
        blocks += [Text(lines=[words]), Text(lines=[accept], form=Form.COMMAND)]
    yield Section(id="reproduce", title="Reproduce", blocks=blocks, in_comment=False, worth=100)
