"""What a suite of question items measured: P2's tables, the k sweep, what was retrieved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairgate.domain.items import NO_RETRIEVAL
from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import GateResult
from fairgate.domain.verdicts import JudgedItem
from fairgate.reports import figures
from fairgate.reports.bias_groups import CONDITIONS, Measured, bias_groups
from fairgate.reports.bias_view import BiasCell, BiasView, SettingRow, SweepLine
from fairgate.reports.escaping import name

_AMB, _DIS = (metric for _, metric in CONDITIONS)
_CHANCE = 1 / 3
_BAR = 20
_MANY = 0.1
"""Share of answers without an option above which the report warns."""


def bias_views(result: GateResult, before: Sequence[Measurement]) -> list[BiasView]:
    """Return a view of every suite of question items; `before` is what the baseline measured."""
    suites = dict.fromkeys(item.case.suite for item in result.judged_items)
    return [_view(result, suite, before) for suite in suites]


def _view(result: GateResult, suite: str, before: Sequence[Measurement]) -> BiasView:
    judged = [item for item in result.judged_items if item.case.suite == suite]
    measured, base = _known(result.measurements, suite), _known(before, suite)
    settings = list(dict.fromkeys(item.case.setting for item in judged))
    categories = list(dict.fromkeys(item.case.item.category for item in judged))
    retrievers = list(dict.fromkeys(i.case.retriever for i in judged if i.case.retriever))
    items = {item.case.item.key: item.case.item for item in judged}
    templates = len({item.cluster for item in items.values()})
    return BiasView(
        suite=name(suite),
        size=f"{figures.count(len(items), 'item')} of {figures.count(templates, 'template')}, "
        f"{figures.count(len(judged), 'question')} asked",
        cautions=_cautions(measured, settings, result, suite),
        categories=[name(category) for category in categories],
        groups=bias_groups(measured, base, settings, categories),
        rows=[_row(measured, setting, settings, categories, judged) for setting in settings],
        shares=_shares(measured, settings, retrievers),
        retrievers=_by_retriever(measured, settings, retrievers),
        sweep=_sweep(measured, settings, retrievers, judged),
        letters=_letters(judged),
        own_scores=[
            (setting, _shown(measured, "bbq/s_amb", where), _shown(measured, "bbq/s_dis", where))
            for setting in settings
            for where in [{"setting": setting}]
        ],
    )


def _known(measurements: Sequence[Measurement], suite: str) -> Measured:
    return {
        (m.metric, tuple(sorted(m.where.items()))): m
        for m in measurements
        if m.suite == suite and m.value is not None
    }


def _get(measured: Measured, metric: str, where: Mapping[str, str]) -> Measurement | None:
    return measured.get((metric, tuple(sorted(where.items()))))


def _value(measured: Measured, metric: str, where: Mapping[str, str]) -> float | None:
    found = _get(measured, metric, where)
    return None if found is None else found.value


def _shown(measured: Measured, metric: str, where: Mapping[str, str]) -> str:
    return figures.unsigned(_value(measured, metric, where), metric)


def _row(
    measured: Measured,
    setting: str,
    settings: Sequence[str],
    categories: Sequence[str],
    judged: Sequence[JudgedItem],
) -> SettingRow:
    where = {"setting": setting}
    found = [_get(measured, metric, where) for _, metric in CONDITIONS]
    bounds = [figures.interval(m.interval if m else None, _AMB) for m in found]
    return SettingRow(
        setting=setting,
        cells=[_cell(measured, setting, settings, category) for category in categories],
        diff_bias=(_shown(measured, _AMB, where), _shown(measured, _DIS, where)),
        intervals=(bounds[0], bounds[1]),
        amplification=(
            figures.signed(_value(measured, f"amplification/{_AMB}", where), _AMB),
            figures.signed(_value(measured, f"amplification/{_DIS}", where), _DIS),
        ),
        accuracy=(
            _shown(measured, "accuracy/ambiguous", where),
            _shown(measured, "accuracy/disambiguated", where),
        ),
        out_of_choice=_shown(measured, "out-of-choice", where),
        answers=sum(item.case.setting == setting for item in judged),
    )


def _cell(measured: Measured, setting: str, settings: Sequence[str], category: str) -> BiasCell:
    shown, marks = [], []
    for _, metric in CONDITIONS:
        values = {
            one: value
            for one in settings
            if (value := _value(measured, metric, {"setting": one, "category": category}))
            is not None
        }
        own = values.get(setting)
        shown.append(figures.unsigned(own, metric))
        spread = len(set(values.values())) > 1
        mark = ""
        if spread and own == max(values.values()):
            mark = "max"
        elif spread and own == min(values.values()):
            mark = "min"
        marks.append(mark)
    return BiasCell(
        ambiguous=shown[0],
        disambiguated=shown[1],
        ambiguous_mark=marks[0],
        disambiguated_mark=marks[1],
    )


def _cautions(
    measured: Measured, settings: Sequence[str], result: GateResult, suite: str
) -> list[str]:
    """Say plainly where a system answers little better than a guess, and what was left out."""
    found = []
    first = NO_RETRIEVAL if NO_RETRIEVAL in settings else settings[0]
    clear = _get(measured, "accuracy/disambiguated", {"setting": first})
    if clear is not None and clear.value is not None and clear.value < 0.5:
        low = clear.interval[0] if clear.interval else clear.value
        how = "no better than a guess" if low <= _CHANCE else "hardly better than a guess"
        found.append(
            f"Where the context tells the answer, {figures.value(clear.value, _AMB)} of answers "
            f"are right in the setting {first}; guessing gives 33.3 %. This system is {how} on "
            "these questions, so a Diff-Bias near 0 shows no fairness and one far from 0 may be a "
            "habit of form."
        )
    lost = {
        one: value
        for one in settings
        if (value := _value(measured, "out-of-choice", {"setting": one})) is not None
    }
    worst = max(lost, key=lambda one: lost[one], default="")
    if worst and lost[worst] > _MANY:
        found.append(
            f"{figures.value(lost[worst], 'out-of-choice')} of the answers in the setting {worst} "
            "name none of the three options. Unless the policy counts them as wrong, they are "
            "dropped from the other figures, which then rest on the questions that the system "
            "happened to answer."
        )
    excluded = sum(item.suite == suite for item in result.plan.rejected)
    if excluded:
        found.append(
            f"{figures.count(excluded, 'item')} of the data set left out: no single group is "
            "stereotyped, or a group of four is not whole; they are in no count."
        )
    return found


def _shares(
    measured: Measured, settings: Sequence[str], retrievers: Sequence[str]
) -> list[tuple[str, str, str, str]]:
    metric, rows = "stereotype-share", []
    for setting in settings:
        for retriever in retrievers:
            where = {"setting": setting} | ({"retriever": retriever} if len(retrievers) > 1 else {})
            found = _get(measured, metric, where)
            if found is not None:
                shown = figures.value(found.value, metric)
                rows.append(
                    (setting, name(retriever), shown, figures.interval(found.interval, metric))
                )
    return rows


def _by_retriever(
    measured: Measured, settings: Sequence[str], retrievers: Sequence[str]
) -> list[tuple[str, str, str, str]]:
    if len(retrievers) < 2:
        return []
    return [
        (setting, name(retriever), _shown(measured, _AMB, where), _shown(measured, _DIS, where))
        for setting in settings
        if setting != NO_RETRIEVAL
        for retriever in retrievers
        for where in [{"setting": setting, "retriever": retriever}]
    ]


def _sweep(
    measured: Measured,
    settings: Sequence[str],
    retrievers: Sequence[str],
    judged: Sequence[JudgedItem],
) -> list[SweepLine]:
    depths = sorted({item.case.top_k for item in judged if item.case.top_k})
    if len(depths) < 2:
        return []
    lines = []
    for condition, metric in CONDITIONS:
        for setting in settings:
            for retriever in retrievers if setting != NO_RETRIEVAL else ():
                own = {"setting": setting} | (
                    {"retriever": retriever} if len(retrievers) > 1 else {}
                )
                values = [_value(measured, metric, {**own, "k": str(k)}) for k in depths]
                lines.append(
                    SweepLine(
                        setting=setting,
                        retriever=name(retriever),
                        condition=condition,
                        points=[
                            (k, value, figures.unsigned(value, metric))
                            for k, value in zip(depths, values, strict=True)
                        ],
                        path=_path(values),
                    )
                )
    return lines


def _path(values: Sequence[float | None]) -> str:
    """Return the points of a line in a box of 100 by 100 whose middle is 0 and whose top is 1."""
    step = 100 / max(1, len(values) - 1)
    return " ".join(
        f"{step * place:.1f},{50 - 50 * value:.1f}"
        for place, value in enumerate(values)
        if value is not None
    )


def _letters(judged: Sequence[JudgedItem]) -> str:
    known = [item.letter for item in judged if item.letter is not None]
    if not known:
        return ""
    return ", ".join(
        f"{letter} {100 * known.count(place) / len(known):.1f} %"
        for place, letter in enumerate("ABC")
    )


def sweep_chart(lines: Sequence[SweepLine]) -> str:
    """Return Diff-Bias over k as bars to both sides of 0, for text that keeps its spaces."""
    full = max([0.01, *(abs(v) for line in lines for _, v, _ in line.points if v is not None)])
    rows = []
    for line in lines:
        for k, value, shown in line.points:
            bar = figures.bar(abs(value or 0.0), full, _BAR)
            left, right = (bar, "") if (value or 0.0) < 0 else ("", bar)
            rows.append(
                f"{line.condition:<13}  {line.setting:<6}  {line.retriever:<12}  k={k:<3}  "
                f"{shown:>6}  {left:>{_BAR}}|{right}"
            )
    return "\n".join(row.rstrip() for row in rows)
