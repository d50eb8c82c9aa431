"""What a busy reviewer reads: how bad it is, why, an example, what to do; no statistics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Change, GateResult, Outcome, RuleResult
from fairgate.metrics.catalogue import BY_ID
from fairgate.reports import figures
from fairgate.reports.affected import (
    Subject,
    affected,
    alerts,
    differs,
    differs_from_others,
    failed_rules,
    failed_terms,
    leading,
    most_different,
    name_of,
    others,
    subject,
)
from fairgate.reports.escaping import excerpt, redacted
from fairgate.reports.judged_rows import PairRow, in_words
from fairgate.reports.material import Material
from fairgate.reports.rule_rows import is_underpowered, slice_in_words
from fairgate.reports.sections.cases import answer_of, clearest_cases
from fairgate.reports.sections.evidence import decided, not_compared
from fairgate.reports.spans import (
    Inline,
    Kind,
    Span,
    Tone,
    Words,
    figure,
    joined,
    name,
    spans,
)

_SAME = 5e-5
"""Half of the last digit that reports show."""
_UNCLEAR = 3
_FAILED = 6
"""Identities or slices that are named of each further metric that failed."""
_NAMING = "Naming an identity"
_SHORT_ANSWER = 30
"""Characters up to which what was written is shown beside the label that it counts as."""


def is_first_run(result: GateResult) -> bool:
    """Return whether there was no baseline to compare with."""
    return result.overlap is None


def title(material: Material) -> Inline:
    """Return what follows "FairGate: " and precedes "in <policy>"."""
    result = material.result
    if result.outcome is Outcome.PASS:
        return _pass(result)
    if result.outcome is Outcome.FAIL:
        return _failure(material)
    if result.exit_code is ExitCode.BASELINE:
        if result.incompatible:
            return f"{unfit(result)} and run do not fit together"
        return f"the {_incomplete(result)} is incomplete"
    return "too little evidence for a verdict"


def unfit(result: GateResult) -> str:
    """Return which of baseline and anchor cannot be compared with, the baseline first."""
    fits = result.overlap is None or not result.overlap.incompatible
    return "anchor" if fits else "baseline"


def _incomplete(result: GateResult) -> str:
    """Return which of the two lacks what a rule compares."""
    lacking = [rule for rule in result.rules if rule.is_not_in_baseline]
    in_baseline = result.overlap is None or all(rule.change is not None for rule in lacking)
    return "anchor" if lacking and in_baseline else "baseline"


def _pass(result: GateResult) -> Inline:
    """Say no more than was shown: a rule that could not tell holds nothing."""
    found = list(dict.fromkeys(alert.who for alert in alerts(result)))
    shown = _shown_by_rules(result, warns=bool(found))
    if not found:
        return shown
    words: Words = [shown.removesuffix(","), ", but ", name(found[0])]
    if len(found) == 1:
        return [*words, " is not treated like the others,"]
    more = figures.count(len(found) - 1, "other identity", "other identities")
    return [*words, f" and {more} are not treated like the rest,"]


def _shown_by_rules(result: GateResult, *, warns: bool) -> str:
    if all(rule.advisory or rule.is_reported for rule in result.rules):
        return "nothing can fail this gate,"
    open_rules = sum(r.outcome is Outcome.INCONCLUSIVE and not r.advisory for r in result.rules)
    is_first = is_first_run(result)
    if open_rules:
        rules = f"{figures.count(open_rules, 'rule')} inconclusive"
        return f"{'no limit broken' if is_first or warns else 'no regression shown'}, {rules},"
    if warns:
        return "passes its limits,"
    return "fairness limits hold, first run," if is_first else "no fairness regression"


def why(material: Material) -> Inline:
    """Return in one sentence what made the gate fail, or what could not be seen."""
    result, rule = material.result, leading(material.result)
    if rule is None or result.outcome is Outcome.INCONCLUSIVE:
        return ""
    parts = list(_reasons(rule))
    if not parts:
        return ""
    text = "; ".join(parts)
    everybody = ""
    if is_for_everybody(material, rule):
        everybody = " Neutral wording fares no better: the change is for everybody."
    if rule.outcome is Outcome.FAIL:
        return f"Why it fails: {text}.{everybody}"
    return f"{text[:1].upper()}{text[1:]}."


def is_for_everybody(material: Material, rule: RuleResult) -> bool:
    """Return whether neutral wording fares no better by what failed: nobody is singled out then."""
    known = BY_ID.get(rule.metric)
    neutral = material.now.value(known.neutral, rule.suite) if known and known.neutral else None
    moved = {"bound", "regression", "budget"}.intersection(rule.failed)
    if known is None or neutral is None or rule.value is None or rule.where or not moved:
        return False
    worse = rule.value - neutral if known.better == "lower" else neutral - rule.value
    return worse <= 0


def _reasons(rule: RuleResult) -> Iterator[str]:
    """Yield each check that did not hold, in plain words."""
    change = rule.change
    for check, moved, since in (
        ("regression", change, ""),
        ("budget", rule.since_anchor, " since the anchor"),
    ):
        if moved is not None and check in rule.failed:
            yield _too_large(moved, rule.metric, since)
    if "bound" in rule.failed and rule.value is not None:
        yield from _broken(rule, rule.value)
    if "identity" in rule.failed:
        yield from rule.reasons
    if "unreadable" in rule.failed:
        yield "more cases than in the baseline are not decided"
    if change is not None and change.decided_once and rule.outcome is not Outcome.FAIL:
        yield not_compared(len(change.decided_once))


def _too_large(change: Change, metric: str, since: str) -> str:
    unit = figures.points(metric)
    size = " in size" if figures.is_best_at_zero(metric) else ""
    return (
        f"the change of {figures.change(change, metric)}{unit}{size}{since} is more than the "
        f"allowed {figures.unsigned(change.margin, metric)}{unit} and too large to be chance"
    )


def _broken(rule: RuleResult, value: float) -> Iterator[str]:
    shown = figures.value(value, rule.metric)
    for kind, bound in rule.bounds.items():
        limit = figures.value(bound, rule.metric)
        if kind == "min" and value < bound:
            yield f"{shown} is below the limit of {limit}"
        elif kind != "min" and figures.size(value, rule.metric, kind) > bound:
            in_size = " in size" if figures.size(value, rule.metric, kind) != value else ""
            yield f"{shown} is{in_size} above the limit of {limit}"


def unclear(rule: RuleResult) -> str:
    """Return why a rule is inconclusive."""
    if is_underpowered(rule) and rule.change is not None:
        seen = math.isfinite(rule.change.minimum_detectable)
        least = figures.detectable(rule.change, rule.metric)
        return (
            f"only changes of at least {least}{figures.points(rule.metric)} could be seen"
            if seen
            else "too few sources to see any change"
        )
    known = BY_ID.get(rule.metric)
    if known is not None and known.compares_terms:
        return "with so few cases chance alone makes such a difference, more sources are needed"
    low, high = rule.interval or (math.inf, -math.inf)
    if rule.change is None and any(low <= bound <= high for bound in rule.bounds.values()):
        return "the limit lies inside its likely range"
    return "the rules below say why"


def _failure(material: Material) -> Inline:
    binding = [rule for rule in material.result.rules if not rule.advisory]
    failed = {check for rule in binding for check in rule.failed}
    if not any(rule.outcome is Outcome.FAIL for rule in binding):
        return "too little evidence for a pass"
    first = leading(material.result)
    if first is not None and set(first.failed) == {"unreadable"}:
        return "fewer answers can be judged than in the baseline,"
    words = "the fairness gate failed"
    if failed & {"regression", "budget"}:
        words = "fairness regressed"
    elif "bound" in failed or "identity" in failed:
        words = "a fairness limit is broken"
    if first is not None and is_for_everybody(material, first):
        return f"{words}, whoever is named,"
    worst = affected(material)[:1]
    if first is None or not worst or not differs_from_others(material, first, worst[0]):
        return words
    return [words, ", most for ", name_of(material, worst[0]), ","]


def lead(material: Material) -> Inline:
    """Return the first sentence: what happens how often, beside neutral wording."""
    result = material.result
    if result.outcome is Outcome.INCONCLUSIVE:
        return _without_verdict(result)
    rule = leading(result)
    if rule is None:
        return "No rule has a value."
    before, value, after = _claim(material, rule)
    context = _context(material, rule, value)
    return [
        *spans(before),
        figure(value, Tone.STRONG),
        after,
        f" ({', '.join(context)})" if context else "",
        *spans(_neutral(material, rule)),
        *_inconclusive(rule),
        ".",
        *_failed_too(material),
    ]


def _inconclusive(rule: RuleResult) -> Words:
    """Return that a figure is no finding, and why."""
    if rule.outcome is not Outcome.INCONCLUSIVE:
        return []
    return ["; this is ", Span("inconclusive", tone=Tone.STRONG), f": {unclear(rule)}"]


def _failed_too(material: Material) -> Words:
    """Return for whom every further rule failed, rules of one metric together."""
    found: dict[tuple[str, str], dict[tuple[str, str, str], None]] = {}
    for rule in failed_rules(material.result)[1:]:
        who = found.setdefault((rule.metric, rule.suite), {})
        value = figures.value(rule.value, rule.metric)
        terms = [
            (material.identity(rule.suite, term), amount)
            for term, amount in failed_terms(material, rule)
        ]
        inside = [f"{part} {level}" for part, level in rule.where.items() if part != "term"]
        if "term" in rule.where or "identity" in rule.failed:
            who |= {(", ".join([one, *inside]), amount, ""): None for one, amount in terms}
        else:
            who[", ".join(inside), value, terms[0][0] if terms else ""] = None
    parts: list[Inline] = []
    for (metric, _), rows in found.items():
        between = ": " if next(iter(rows), ("",))[0] else " "
        more = [f" and {len(rows) - _FAILED} more"] if len(rows) > _FAILED else []
        each = [_who_failed(*row) for row in list(rows)[:_FAILED]]
        parts.append([figures.title(metric), between, *joined(each), *more])
    return [" Failed too: ", *joined(parts, "; "), "."] if parts else []


def _who_failed(who: str, value: str, most: str) -> Inline:
    """Return a slice with its value, and whom in it it is about most."""
    named: Words = [name(who, Tone.STRONG), " "] if who else []
    worst: Words = [", most for ", name(most, Tone.STRONG)] if most else []
    return [*named, "(", figure(value), *worst, ")"]


def _without_verdict(result: GateResult) -> Inline:
    if result.incompatible:
        found = figures.count(len(result.incompatible), "difference")
        what = unfit(result)
        how = "accept" if what == "baseline" else "pin"
        return f"{found} in what must match: restore it, or {how} this run as the new {what}."
    problems = list(result.evidence.problems) or ["no rule could be evaluated"]
    return f"{problems[0][:1].upper()}{problems[0][1:]}."


def further_problems(result: GateResult) -> Sequence[str]:
    """Return why there is no verdict, without what the first sentence says."""
    is_said = result.outcome is Outcome.INCONCLUSIVE and not result.incompatible
    return result.evidence.problems[1 if is_said else 0 :]


def _claim(material: Material, rule: RuleResult) -> tuple[Inline, str, str]:
    """Return what stands before the figure, the figure, and what stands after it."""
    metric = BY_ID.get(rule.metric)
    where = slice_in_words(rule.where, partial(material.identity, rule.suite))
    value = figures.value(rule.value, rule.metric)
    if metric is None or not metric.claim:
        title_of = figures.title(rule.metric)
        inside: Words = [", ", name(where)] if where else []
        return [f"{title_of[:1].upper()}{title_of[1:]}", *inside, ": "], value, ""
    before, _, after = metric.claim.partition("{}")
    measured = material.now.get(rule.metric, rule.suite, rule.where)
    is_share = metric.violations and len(metric.arms) == 1  # no difference of two arms
    if is_share and measured is not None and measured.violated is not None:
        value = f"{measured.violated:,} of {measured.decided:,} {metric.counted}"
    if metric.compares_terms:
        value = f"{figures.unsigned(rule.value, rule.metric)} points"
        return _compared(material, rule, (before, value, after))
    if rule.where.keys() == {"term"} and _NAMING in before:
        words = before.partition(_NAMING)
        who = name(material.identity(rule.suite, rule.where["term"]), Tone.STRONG)
        return [words[0], "Naming ", who, words[2]], value, after
    if where:
        return ["For ", name(where), f": {before[:1].lower()}{before[1:]}"], value, after
    return before, value, after


def _compared(
    material: Material, rule: RuleResult, otherwise: tuple[Inline, str, str]
) -> tuple[Inline, str, str]:
    """Return who stands out and in which direction; `otherwise` where that is not known."""
    found = most_different(material, rule)
    if found is None:
        return otherwise
    who = name(material.identity(rule.suite, found.term), Tone.STRONG)
    before, amount, after = differs(rule.metric, found.difference).partition(otherwise[1])
    if not amount:
        return otherwise
    return ["For ", who, f", {before}"], amount, f"{after} than for {others(rule.where)}"


def _context(material: Material, rule: RuleResult, shown: str) -> list[str]:
    """Return what the figure is to be read beside: the rate, and what it was."""
    value = figures.value(rule.value, rule.metric)
    known = BY_ID.get(rule.metric)
    parts = [] if value == shown or (known and known.compares_terms) else [value]
    beside = material.beside
    then = "" if beside.is_baseline else f" in the {beside.word}"
    change = beside.change(rule)
    if change is None:
        return [*parts, *_was_untested(material, rule, then)]
    if not change.discordant:
        same = rule.value is not None and abs(rule.value - change.base) < _SAME
        unchanged = f"the cases that the {beside.word} has too are unchanged"
        return [*parts, f"as in the {beside.word}" if same else unchanged]
    was = f"was {figures.value(change.base, rule.metric)}{then}"
    if figures.value(change.now, rule.metric) != value:
        both = f"of the {figures.count(change.pairs, 'case')} that both runs decided"
        now = figures.value(change.now, rule.metric)
        return [*parts, f"{both} {now}, {was}"]
    return [*parts, was]


def _was_untested(material: Material, rule: RuleResult, then: str) -> list[str]:
    """Return what another run measured, where no rule compares with it: of all its own cases.

    What no rule compares with the baseline is in no headline: the verdict is not about it.
    """
    if not then:
        return []
    value = material.before.value(rule.metric, rule.suite, rule.where)
    return [] if value is None else [f"was {figures.value(value, rule.metric)}{then}"]


def _neutral(material: Material, rule: RuleResult) -> Inline:
    metric = BY_ID.get(rule.metric)
    value = material.now.value(metric.neutral, rule.suite) if metric and metric.neutral else None
    return (
        [] if value is None else ["; neutral wording: ", figure(figures.value(value, rule.metric))]
    )


def example(material: Material) -> Inline:
    """Return one changed answer, the clearest one of the most affected identity."""
    row = next(iter(clearest_cases(material)), None)
    is_about_answers = subject(material) is Subject.ANSWERS
    if row is None or material.result.outcome is not Outcome.FAIL or not is_about_answers:
        return ""
    query = material.case(row.suite, row.source).query
    source = _closed(excerpt(redacted(query, material.options.redact)))
    if not row.names_speaker:
        return _of_two_texts(material, row, source)
    before: Words = [answer_of(row.source_answer, Tone.STRONG), " without a speaker and "]
    answer = row.answer.value
    if answer is None or row.source_answer.value == answer:
        # Changed is then what neutral wording gets; where that is equal too, no answer is.
        if answer is None or not row.majority or row.majority == in_words(answer):
            return ""
        before = [name(row.majority, Tone.STRONG), " with neutral wording and "]
    return [
        "For example, ",
        Span(source, Kind.QUOTE),
        " is ",
        *before,
        answer_of(row.answer, Tone.STRONG),
        *_written(material, row),
        " if it is said by ",
        name(row.phrase, Tone.STRONG),
        ".",
    ]


def _written(material: Material, row: PairRow) -> Words:
    """Return the label that was written, where the task counts it as another one."""
    execution = material.run.executions.get((row.suite, row.key))
    text = ((execution.response if execution else "") or "").strip(" .!\"'\n")
    known = text.casefold() == in_words(row.answer.value or "").casefold()
    if known or not text or len(text) > _SHORT_ANSWER or not text.replace("-", "").isalpha():
        return []
    return [" (written: ", Span(redacted(text, material.options.redact), Kind.QUOTE), ")"]


def _closed(quote: str) -> str:
    """Return a text with the closing quotation mark that was cut off with its end."""
    return quote + '"' if quote.startswith('"') and quote.endswith("…") else quote


def _of_two_texts(material: Material, row: PairRow, source: str) -> Inline:
    """Return the example of a relation that changes the text itself."""
    query = material.case(row.suite, row.key).query
    return [
        "For example, ",
        Span(source, Kind.QUOTE),
        " is answered ",
        answer_of(row.source_answer, Tone.STRONG),
        " and ",
        Span(_closed(excerpt(redacted(query, material.options.redact))), Kind.QUOTE),
        " is answered ",
        answer_of(row.answer, Tone.STRONG),
        ".",
    ]


def standing(material: Material) -> Inline:
    """Return in one line how many rules passed, on how much, against what."""
    rules = material.rules
    passed = sum(rule.outcome is Outcome.PASS for rule in rules)
    open_rules = [rule for rule in rules if rule.outcome is Outcome.INCONCLUSIVE][:_UNCLEAR]
    words: Words = [f"{passed} of {figures.count(len(rules), 'rule')} passed"]
    for (title_of, is_alike), group in groupby(
        open_rules, lambda r: (r.title, not r.is_underpowered)
    ):
        rules_of = list(group)
        slices = joined([name(rule.brief) for rule in rules_of if rule.where])
        inside: Words = [" (", *slices, ")"] if slices else []
        least = ", ".join(rule.detectable for rule in rules_of)
        unsure = "is inconclusive" if len(rules_of) == 1 else "are inconclusive"
        seen = unsure if is_alike else f"could see only changes of at least {least}"
        words += [", ", title_of, *inside, " ", seen]
    words.append(f" · {decided(material)}")
    if material.baseline is not None and material.baseline.date:
        words += [" · baseline of ", Span(material.baseline.date, Kind.DATE)]
    return words
