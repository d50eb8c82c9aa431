"""How numbers and rules are written: rates times 100 with one decimal, scores with three."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from fairgate.domain import wording
from fairgate.domain.outcomes import Better, Change, Measurement, Outcome, RuleResult
from fairgate.domain.parity import SCORE, Against, Level
from fairgate.domain.wording import difference
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.parity import RULES

NO_BREAK = "\N{NO-BREAK SPACE}"
NONE = "\N{EN DASH}"
"""Stands where there is no value."""
Bounds = tuple[float, float]
_UNITS = re.compile(r"(?<=\d) (?=%|points?\b)")
_FIRST = "first run:"
REPORTED = "reported"
WAIVED = ", waived"
"""Follows the outcome of a rule that a waiver keeps from stopping the build."""
COMPARISONS = {
    Against.CONTROL: "now",
    Against.BASELINE: "since baseline",
    Against.ANCHOR: "since anchor",
    Against.REFERENCE: "beside reference",
}
LEVELS = {
    Level.IDENTITY: "one identity",
    Level.CATEGORY: "a category",
    Level.EVERYBODY: "everybody",
}
"""Whom a difference is about, as a reach is told."""
WORDS = {
    Outcome.PASS: "pass",
    Outcome.FAIL: "FAIL",
    Outcome.INCONCLUSIVE: "inconclusive",
    Outcome.NOT_EVALUATED: "not evaluated",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A value with its interval, as tables write it and as charts draw it; dashes if unknown."""

    shown: str = "\N{EN DASH}"
    interval: str = "\N{EN DASH}"
    value: float | None = None
    bounds: Bounds | None = None


NOTHING = Figure()


def unbroken(text: str) -> str:
    """Keep numbers of a sentence and their units on one line."""
    return _UNITS.sub(NO_BREAK, text)


def is_rate(metric: str) -> bool:
    """Return whether the metric is a share that is shown times 100."""
    if metric in RULES:
        return RULES[metric][0].id != SCORE
    entry = METRICS.get(metric)
    return entry is None or entry.is_rate


def title(metric: str) -> str:
    """Return a rule in plain words: `answers, since baseline`; its id where none is known."""
    if metric in RULES:
        outcome, against = RULES[metric]
        return f"{outcome.id}, {COMPARISONS[against]}"
    entry = METRICS.get(metric)
    return entry.title if entry else metric


def metric_in(metric: str, where: Mapping[str, str]) -> str:
    """Return the metric's id and the slice that it is of: `asr (relation set/add)`."""
    inside = ", ".join(f"{name} {value}" for name, value in where.items())
    return f"{metric} ({inside})" if inside else metric


def value(number: float | None, metric: str) -> str:
    """Return `9.4 %` for a rate, `5.3 points` for a difference of rates, `0.712` for a score."""
    if number is None or not math.isfinite(number):
        return NONE
    return wording.value(number, is_rate=is_rate(metric), is_difference=is_difference(metric))


def is_difference(metric: str) -> bool:
    """Return whether the metric is a difference of rates, in points."""
    entry = METRICS.get(metric)
    return metric in RULES or (entry is not None and entry.is_difference)


def signed(number: float | None, metric: str) -> str:
    """Return `+5.3` (percentage points) or `+0.050`."""
    if number is None or not math.isfinite(number):
        return NONE
    return wording.signed(number, is_rate=is_rate(metric))


def unsigned(number: float | None, metric: str) -> str:
    """Return `5.3` (percentage points) or `0.050`."""
    return value(number, metric).removesuffix(" %").removesuffix(" points")


def interval(bounds: tuple[float, float] | None, metric: str) -> str:
    """Return `7.1 … 12.0` for an interval of a value."""
    if bounds is None:
        return NONE
    return f"{unsigned(bounds[0], metric)} … {unsigned(bounds[1], metric)}"


def signed_interval(bounds: tuple[float, float] | None, metric: str) -> str:
    """Return `+2.8 … +8.1` for an interval of a change."""
    if bounds is None or not all(map(math.isfinite, bounds)):
        return NONE
    return f"{signed(bounds[0], metric)} … {signed(bounds[1], metric)}"


def count(number: int, singular: str) -> str:
    """Return `1 source`, `2,100 sources`."""
    return f"{number:,} {singular}{'s' * (number != 1)}"


def figure(measured: Measurement | None, *, is_signless: bool = False) -> Figure:
    """Return a measurement as a figure; `is_signless` leaves the per cent sign to the heading."""
    if measured is None or measured.value is None:
        return NOTHING
    write = unsigned if is_signless else value
    return Figure(
        shown=write(measured.value, measured.metric),
        interval=interval(measured.interval, measured.metric),
        value=measured.value,
        bounds=measured.interval,
    )


def change(moved: Change, metric: str) -> str:
    """Return now minus base, both as printed; of values that are best at 0, of their sizes."""
    entry = METRICS.get(metric)
    ends = (moved.base, moved.now)
    base, now = map(abs, ends) if entry and entry.better is Better.TOWARD_ZERO else ends
    if not (math.isfinite(base) and math.isfinite(now)):
        return NONE
    return difference(base, now, is_rate=is_rate(metric))


def change_interval(moved: Change, metric: str) -> str:
    """Return the bounds of the change in rising order: `+2.8 … +8.1`."""
    entry = METRICS.get(metric)
    flipped = entry is not None and entry.better == "higher"
    ends = (-moved.upper, -moved.lower) if flipped else (moved.lower, moved.upper)
    return signed_interval(ends, metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """A rule in words and figures, as tables and files for other tools show it; not escaped."""

    rule: RuleResult
    title: str
    suite: str
    """Empty where there is only one."""
    where: str
    """The levels alone, as policies have them: `stereo`, `woman`."""
    slice: str
    """As readers see it: `setting stereo`, `A woman`."""
    brief: str
    """The same without the names of dimensions: `stereo`, `A woman`."""
    word: str
    """The outcome in a word, `FAIL` in capitals."""
    reasons: Sequence[str]
    now: str
    """On the cases that are compared, where there is a change; else on all of them."""
    interval: str
    """Of the value, on all decided cases."""
    base: str = NONE
    change: str = NONE
    change_interval: str = NONE

    @property
    def needs_attention(self) -> bool:
        """Return whether the rule asked something and did anything but pass."""
        return self.rule.outcome is not Outcome.PASS and not self.rule.is_reported


def rule_rows(
    rules: Sequence[RuleResult], identity: Callable[[str, str], str] = lambda _, term: term
) -> list[RuleRow]:
    """Return a row for every rule, in the order of the policy.

    `identity` names a term of a suite as its texts do.
    """
    several = len({rule.suite for rule in rules}) > 1
    return [_row(rule, partial(identity, rule.suite), several=several) for rule in rules]


def readable(reasons: Iterable[str]) -> list[str]:
    """Return a rule's reasons without what is said elsewhere."""
    texts = [reason.removeprefix("not evaluated: ") for reason in reasons]
    return [reason for reason in texts if not reason.startswith(_FIRST)] or texts


def slice_in_words(where: Mapping[str, str], name_of: Callable[[str], str]) -> str:
    """Return a slice as readers see it; an identity is called as the texts call it."""
    parts = where.items()
    return ", ".join(
        name_of(level) if part == "term" else f"{part} {level}" for part, level in parts
    )


def _in_table(number: float | None, metric: str) -> str:
    """Return a value as tables have it: what is a difference in either direction has its sign."""
    written = value(number, metric)
    return (
        f"+{written}"
        if is_difference(metric) and signed(number, metric).startswith("+")
        else written
    )


def _row(rule: RuleResult, name_of: Callable[[str], str], *, several: bool) -> RuleRow:
    metric, moved = rule.metric, rule.change
    reasons = readable(rule.reasons)
    own_value = now = _in_table(rule.value, metric)
    figures: dict[str, str] = {}
    if moved is not None:
        now = _in_table(moved.now, metric)
        figures |= {
            "base": _in_table(moved.base, metric),
            "change": change(moved, metric),
            "change_interval": change_interval(moved, metric),
        }
        if now != own_value:
            reasons.append(
                f"on all its cases the value is {own_value}, the change is of the "
                f"{count(moved.pairs, 'case')} that both runs decided"
            )
    return RuleRow(
        rule=rule,
        title=title(metric),
        suite=rule.suite if several else "",
        where=", ".join(rule.where.values()),
        slice=slice_in_words(rule.where, name_of),
        brief=", ".join(
            name_of(level) if by == "term" else level for by, level in rule.where.items()
        ),
        word=REPORTED if rule.is_reported else WORDS[rule.outcome] + WAIVED * bool(rule.waiver),
        reasons=reasons,
        now=now,
        interval=interval(rule.interval, metric),
        **figures,
    )
