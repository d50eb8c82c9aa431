"""The result for a terminal: what happened, to whom, and what to do next, in about 25 lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fairgate.domain.outcomes import Outcome
from fairgate.reports import figures
from fairgate.reports.escaping import excerpt, plain
from fairgate.reports.markdown import rule_names, shown_rules
from fairgate.reports.view import CaseView, SliceRow, SuiteView, View

_WIDTH = 100
_RULE = 46
_NAME = 30
_TERMS = 5
_CASES = 3
_BAR = 16
_MARKS = {
    Outcome.PASS: "pass",
    Outcome.FAIL: "FAIL",
    Outcome.INCONCLUSIVE: "?",
    Outcome.NOT_EVALUATED: "-",
}
_COLOURS = {Outcome.PASS: "32", Outcome.FAIL: "31", Outcome.INCONCLUSIVE: "33"}
_MARKUP = re.compile(r"\x00([0-9]+)\x01(.*?)\x02", re.DOTALL)
_COLUMNS = (7, 8, 8, 8, 19)


def render_console(view: View, *, colour: bool = False) -> str:
    """Return the result as plain text; `colour` adds ANSI colours, never from hostile text."""
    blocks = [
        list(_verdict(view)),
        list(_rules(view)),
        *(list(_terms(suite, several=len(view.suites) > 1)) for suite in view.suites),
        list(_cases(view.cases, view.violated)),
        list(_evidence(view)),
        list(_next(view)),
    ]
    lines = [line for block in blocks if block for line in (*block, "")]
    return "\n".join(_finished(line, colour=colour) for line in lines[:-1]) + "\n"


def _finished(line: str, *, colour: bool) -> str:
    """Make the line harmless, then put colours where our own code marked them."""
    # The marks are control characters, which `plain` would show; hold them back meanwhile.
    parts = re.split(r"(\x00[0-9]+\x01|\x02)", line)
    clean = "".join(p if p[:1] in ("\0", "\2") else plain(p) for p in parts).rstrip()
    return _MARKUP.sub(r"\033[\1m\2\033[0m" if colour else r"\2", clean)


def _painted(text: str, outcome: Outcome) -> str:
    code = _COLOURS.get(outcome)
    return f"\0{code}\1{text}\2" if code else text


def _bold(text: str) -> str:
    return f"\0001\1{text}\2"


def _verdict(view: View) -> Iterator[str]:
    word = _painted(f"{view.symbol} {view.word}", view.outcome)
    yield f"{word}  {plain(view.headline.title.rstrip(','))} in {plain(view.policy)}"
    head = view.headline
    affected = ", ".join(f"{plain(name)} {rate}" for name, rate in head.affected)
    sentence = f"{plain(head.before)}{head.figure}{head.after}"
    yield from _wrapped(sentence, "  ")
    if affected:
        yield from _wrapped(f"{head.affected_label}: {affected}.", "  ")
    if view.report_only and view.outcome is not Outcome.PASS:
        loud = f"THIS IS A {view.word}: --report-only keeps the exit code at 0 instead of "
        yield "  " + _painted(f"{loud}{view.exit_code} ({view.exit_meaning}).", view.outcome)
    for notice in view.notices:
        yield from _wrapped(f"note: {plain(notice)}", "  ")
    for problem in view.evidence.problems[0 if head.figure else 1 :]:
        yield from _wrapped(f"also: {plain(problem)}", "  ")
    if view.baseline:
        for difference in view.baseline.incompatible[:10]:
            yield from _wrapped(f"differs: {plain(difference)}", "  ")


def _rule_name(title: str, where: str) -> str:
    """Cut the title, so that the slice of a rule is never what falls off."""
    if title == "…":
        return f"  … {where}"
    return f"{excerpt(title, max(20, _RULE - len(where) - 2))}, {where}" if where else title


def _rules(view: View) -> Iterator[str]:
    shown = shown_rules(view.rules)
    if not shown:
        return
    names = [_rule_name(title, plain(where)) for title, _, where in rule_names(shown)]
    width = min(_RULE, max(len(name) for name in names))
    heads = ("outcome", "now", "base", "change", view.range_head)
    yield _bold(f"  {'rule':<{width}}  {_cells(heads)}")
    for name, row in zip(names, shown, strict=True):
        cells = (_MARKS[row.outcome], row.now, row.base, row.change, row.interval)
        line = f"  {_padded(name, width)}  {_cells(cells)}"
        yield _painted(line, row.outcome) if row.outcome is not Outcome.PASS else line
        if row.needs_attention:
            yield from _wrapped("; ".join(plain(reason) for reason in row.reasons), "      ")
    if len(shown) < len(view.rules):
        yield f"  and {figures.count(len(view.rules) - len(shown), 'further rule')} in the report"
    yield from _wrapped(view.range_note, "  ")


def _cells(cells: Sequence[str]) -> str:
    first, *rest = cells
    padded = [f"{cell:>{width}}" for cell, width in zip(rest, _COLUMNS[1:], strict=True)]
    return "  ".join([f"{first:<{_COLUMNS[0]}}", *padded])


def _terms(suite: SuiteView, *, several: bool) -> Iterator[str]:
    rows = [row for row in suite.terms if row.value][:_TERMS]
    if not rows:
        return
    where = f", suite {plain(suite.suite)}" if several else ""
    yield _bold(f"  {suite.claim}{where}")
    full = max(row.value or 0.0 for row in rows)
    for row in rows:
        yield f"  {_padded(row.name, _NAME)}  {row.rate:>7}  {_bar(row, full)}  {_figures(row)}"
    if suite.neutral_value is not None:
        yield f"  {_padded('neutral wording', _NAME)}  {suite.neutral:>7}"


def _bar(row: SliceRow, full: float) -> str:
    return f"{figures.bar(row.value or 0.0, full, _BAR):<{_BAR}}"


def _figures(row: SliceRow) -> str:
    parts = [] if row.bounds is None else [row.interval]
    if row.base_value is not None:
        parts.append(f"was {row.base}")
    return ", ".join(parts)


def _cases(cases: Sequence[CaseView], violated: int) -> Iterator[str]:
    if not cases:
        return
    shown = cases[:_CASES]
    yield _bold(f"  clearest of {figures.count(violated, 'changed answer')}")
    for case in shown:
        asked = case.neutral_answer or case.source_answer
        yield (
            f"  {plain(excerpt(case.key, 48))}: {plain(case.name)}, "
            f"{plain(asked)} became {plain(case.answer)}{', new' if case.is_new else ''}"
        )
        yield f"      {plain(excerpt(case.source, _WIDTH - 8))}"


def _evidence(view: View) -> Iterator[str]:
    found = view.evidence
    undecided = ", ".join(f"{number:,} {reason}" for reason, number in found.inconclusive)
    line = f"{found.decided:,} of {figures.count(found.planned, found.unit)} decided"
    if undecided:
        line += f" ({undecided})"
    if found.invalid:
        line += f", {figures.count(found.invalid, 'follow-up')} rejected by the linter"
    yield from _wrapped(line, "  ")
    base = view.baseline
    if base is None:
        yield "  no baseline: only bounds decide, regression rules are not evaluated"
        return
    of = f" of {base.date}" if base.date else ""
    line = (
        f"baseline {plain(base.path)}{plain(of)}: {figures.count(base.compared, 'case')} in common"
    )
    if base.new or base.removed:
        line += f", {len(base.new):,} new, {len(base.removed):,} removed"
    line += f"; {base.apart}" if base.apart else ""
    yield from _wrapped(line, "  ")
    changed = [name for name, _, since in view.ran.under_test if since.startswith("changed")]
    if changed:
        yield from _wrapped(f"changed since then: {plain(', '.join(changed))}", "  ")


def _next(view: View) -> Iterator[str]:
    for name, path in view.files.items():
        yield f"  {name:<10}  {plain(path)}"
    for what, command in _steps(view):
        yield f"  {what:<10}  {plain(command)}"


def _steps(view: View) -> Iterator[tuple[str, str]]:
    if view.cases and view.cases[0].explain and view.outcome is Outcome.FAIL:
        yield "look at", view.cases[0].explain
    if view.is_first_run and view.outcome is Outcome.PASS and view.accept_command:
        yield "next", view.accept_command
    elif view.accept_command and view.outcome is Outcome.FAIL:
        yield "on purpose", view.accept_command


def _padded(name: str, width: int) -> str:
    return f"{excerpt(plain(name), width):<{width}}"


def _wrapped(text: str, indent: str) -> Iterator[str]:
    import textwrap

    yield from textwrap.wrap(
        plain(text),
        width=_WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
