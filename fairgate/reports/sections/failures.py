"""Who gets no answer: where a service fails at an identity, that leads the report as what it is.

HTTP errors, time-outs and empty texts say nothing about how somebody is answered. An identity is
named where a share of its answers is missing that control prompts are far from.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from fairgate.gate.served import failure_of, variant_of
from fairgate.reports import blocks
from fairgate.reports.blocks import Tone, joined, name
from fairgate.reports.material import Material

_FEWEST, _SHARE, _TIMES = 3, 0.05, 2.0
"""An identity is named for so many failures, for this share of its answers, and for this many times
the share of control prompts."""
_CONTROLS = "#controls"
"""Stands for all control prompts; no term is called so."""
_MOST = 3
"""Identities that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAnswers:
    """Answers to one identity instead of which something else came."""

    suite: str
    term: str
    failure: str
    """`HTTP 500`, `an empty answer`."""
    count: int
    asked: int


def failed_answers(material: Material) -> list[FailedAnswers]:
    """Return at which identities the system fails, and at control prompts hardly; most first."""
    executions = material.run.executions
    if not any(map(failure_of, executions.values())):
        return []
    asked: Counter[tuple[str, str]] = Counter()
    failed: Counter[tuple[str, str, str]] = Counter()
    for (suite, key), execution in executions.items():
        term = _term(material, suite, key)
        who = _CONTROLS if term and material.identities(suite)[term].is_control else term
        asked[suite, who] += 1
        failed[suite, who, failure_of(execution)] += 1
    failures = []
    for (suite, who, failure), count in failed.items():
        if who in ("", _CONTROLS) or not failure or count < _FEWEST:
            continue
        of_identity = asked[suite, who]
        usual = failed[suite, _CONTROLS, failure] / max(1, asked[suite, _CONTROLS])
        if count / of_identity >= max(_SHARE, _TIMES * usual):
            failures.append(
                FailedAnswers(
                    suite=suite, term=who, failure=failure, count=count, asked=of_identity
                )
            )
    return sorted(failures, key=lambda each: (-each.count / each.asked, each.suite, each.term))


def _term(material: Material, suite: str, key: str) -> str:
    """Return whom a case names, or the control prompt; empty where it is a source or an item."""
    terms = material.identities(suite)
    return next((part for part in variant_of(key).split("/") if part in terms), "")


def title(material: Material) -> blocks.Words:
    """Return who gets no answer: `HTTP 500 for a Black person, 60 of 60`; empty for nobody."""
    failures: dict[str, list[blocks.Inline]] = {}
    every = failed_answers(material)
    for failed in every[:_MOST]:
        person = name(material.person(failed.suite, failed.term), Tone.STRONG)
        words: blocks.Inline = [person, f", {failed.count:,} of {failed.asked:,}"]
        failures.setdefault(failed.failure, []).append(words)
    more = [f"{len(every) - _MOST} more"] if len(every) > _MOST else []
    parts: list[blocks.Inline] = [
        [f"{failure} for ", *joined(people, " and ")] for failure, people in failures.items()
    ]
    return list(joined([*parts, *more], ", "))
