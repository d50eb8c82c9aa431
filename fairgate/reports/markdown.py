"""The report as Markdown: `report.md` in full, the pull-request comment within its limit.

What does not fit is left out by whole sections, never inside a table, and the text says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fairgate.domain.outcomes import Outcome
from fairgate.reports import figures
from fairgate.reports.rule_view import RuleRow
from fairgate.reports.social_bias import sweep_chart
from fairgate.reports.templating import markdown_environment
from fairgate.reports.view import BandRow, SliceRow, SuiteView, View

COMMENT_LIMIT = 60_000
"""GitHub refuses comments above 65,536 characters; the rest is for markers and footers."""
SUMMARY_LIMIT = 1_000_000

_SECTIONS = (
    "verdict",
    "rules",
    "terms",
    "bias",
    "causes",
    "retrieval",
    "cases",
    "evidence",
    "figures",
    "ran",
    "reproduce",
)
_DROPPED_FIRST = (
    "figures",
    "ran",
    "evidence",
    "retrieval",
    "cases",
    "causes",
    "bias",
    "terms",
    "rules",
)
_ROWS_IN_COMMENT = 12
_TERMS_SHOWN = 8
_BAR = 24
_URGENCY = {
    outcome: rank
    for rank, outcome in enumerate(
        (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.NOT_EVALUATED, Outcome.PASS)
    )
}
_NAME = 34


def render_report(view: View, *, limit: int = SUMMARY_LIMIT) -> str:
    """Return `report.md`: everything a reviewer may ask, the verdict first."""
    return _render(view, _SECTIONS, limit=limit, compact=False)


def render_comment(view: View, *, limit: int = COMMENT_LIMIT, report_url: str = "") -> str:
    """Return the pull-request comment: three lines where all is well, else details to unfold."""
    if view.outcome is Outcome.PASS:
        return _render(view, ("green",), limit=limit, compact=True, report_url=report_url)
    return _render(view, _SECTIONS, limit=limit, compact=True, report_url=report_url)


def length(text: str) -> int:
    """Return the length that a limit counts: UTF-16 units, never fewer than code points."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _render(
    view: View, names: Sequence[str], *, limit: int, compact: bool, report_url: str = ""
) -> str:
    environment = markdown_environment()
    values = _values(view, compact=compact, report_url=report_url)
    sections = {
        name: _tidy(environment.get_template(f"{name}.md.j2").render(values)) for name in names
    }
    left_out: list[str] = []
    for name in _DROPPED_FIRST:
        if length(_joined(sections, left_out)) <= limit:
            break
        if sections.pop(name, ""):
            left_out.append(name)
    return _joined(sections, left_out)


def _tidy(section: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", section).strip()


def _joined(sections: Mapping[str, str], left_out: Sequence[str]) -> str:
    parts = [text for text in sections.values() if text]
    if left_out:
        names = ", ".join(sorted(left_out, key=_SECTIONS.index))
        parts.append(f"_Left out because this text has a limit: {names}. See the full report._")
    return "\n\n".join(parts) + "\n"


def _values(view: View, *, compact: bool, report_url: str) -> dict[str, object]:
    shown = shown_rules(view.rules) if compact else list(view.rules)
    return {
        "view": view,
        "compact": compact,
        "report_url": report_url,
        "shown_rules": shown,
        "hidden_rules": len(view.rules) - len(shown),
        "rule_names": rule_names(shown),
        "all_rule_names": rule_names(view.rules),
        "passed": sum(row.outcome is Outcome.PASS for row in view.rules),
        "unclear": [row for row in view.rules if row.outcome is Outcome.INCONCLUSIVE],
        "term_chart": term_chart,
        "band_chart": band_chart,
        "sweep_chart": sweep_chart,
        "worst": lambda rows: list(rows)[:_TERMS_SHOWN],
        "count": figures.count,
    }


def shown_rules(rules: Sequence[RuleRow]) -> list[RuleRow]:
    """Return the rows that a short table shows: what did not pass, then passed whole suites."""
    if len(rules) <= _ROWS_IN_COMMENT:
        return list(rules)
    ranked = sorted(
        enumerate(rules),
        key=lambda item: (_URGENCY[item[1].outcome], bool(item[1].where), item[0]),
    )
    kept = sorted(number for number, _ in ranked[:_ROWS_IN_COMMENT])
    return [rules[number] for number in kept]


def rule_names(rules: Sequence[RuleRow]) -> list[tuple[str, str, str]]:
    """Return (title, metric, slice) per row; a repeated metric is an ellipsis and a bare value."""
    names, previous = [], ("", "")
    for row in rules:
        same = (row.metric, row.suite) == previous and row.where
        names.append(("…", "", row.where) if same else (row.title, row.metric, row.slice))
        previous = (row.metric, row.suite)
    return names


def term_chart(suite: SuiteView, rows: Sequence[SliceRow]) -> str:
    """Return bars of the rates with intervals and the baseline's value; neutral wording last."""
    full = max(0.01, *(row.value or 0.0 for row in suite.terms), suite.neutral_value or 0.0)
    lines = [(row.name, row.rate, row.value, row.interval, row.base) for row in rows]
    if suite.neutral_value is not None:
        lines.append(
            ("neutral wording", suite.neutral, suite.neutral_value, suite.neutral_interval, "–")
        )
    width = min(_NAME, max(len(line[0]) for line in lines))
    reach = max(len(line[3]) for line in lines)
    return "\n".join(
        f"{_padded(name, width)}  {rate:>7}  {interval:^{reach}}  "
        f"{figures.bar(value or 0.0, full, _BAR):<{_BAR}}{_was(base)}"
        for name, rate, value, interval, base in lines
    )


def band_chart(bands: Sequence[BandRow]) -> str:
    """Return the share of each RRS band as bars."""
    lines = []
    for row in bands:
        blocks = figures.bar(row.share, 1.0, _BAR)
        lines.append(
            f"{row.band:<16}  {row.limits:<10}  {row.shown:>7}  {blocks:<{_BAR}}{_was(row.base)}"
        )
    return "\n".join(lines)


def _was(base: str) -> str:
    return "" if base == figures.NONE else f"  (was {base})"


def _padded(name: str, width: int) -> str:
    name = name if len(name) <= width else name[: width - 1] + "…"
    return f"{name:<{width}}"
