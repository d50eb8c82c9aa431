"""Who gets no answer: where a service fails at an identity, that leads the report as what it is.

HTTP errors, time-outs and empty texts say nothing about how somebody is answered. An identity is
named where a share of its answers is missing that control prompts are far from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fairgate.gate.served import failures_of
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
_Unanswered = tuple[float, str, str, str, int, int]
"""Less the share of answers that are missing, suite, term, what came instead, how often, of how
many."""


def _unanswered(material: Material) -> Iterator[_Unanswered]:
    """Yield at which identities the system fails, and at control prompts hardly."""
    failures = failures_of(material.run.executions)

    def by_identity(counted: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
        total: Counter[tuple[str, str]] = Counter()
        for (suite, variant), count in counted.items():
            total[suite, _who(material, suite, variant)] += count
        return total

    asked = by_identity(failures.asked)
    for failure, variants in failures.failed.items():
        failed = by_identity(variants)
        for (suite, who), count in failed.items():
            if who in ("", _CONTROLS) or count < _FEWEST:
                continue
            share = count / asked[suite, who]
            usual = failed[suite, _CONTROLS] / max(1, asked[suite, _CONTROLS])
            if share >= max(_SHARE, _TIMES * usual):
                yield -share, suite, who, failure, count, asked[suite, who]


def _who(material: Material, suite: str, variant: str) -> str:
    """Return whom a variant names, or that it is a control prompt; empty for sources and items."""
    terms = material.identities(suite)
    term = next((part for part in variant.split("/") if part in terms), "")
    return _CONTROLS if term and terms[term].is_control else term


def title(material: Material) -> blocks.Words:
    """Return who gets no answer: `HTTP 500 for a Black person, 60 of 60`; empty for nobody."""
    people: dict[str, list[blocks.Inline]] = {}
    every = sorted(_unanswered(material))
    for _, suite, term, failure, count, asked in every[:_MOST]:
        person = name(material.person(suite, term), Tone.STRONG)
        people.setdefault(failure, []).append([person, f", {count:,} of {asked:,}"])
    more = [f"{len(every) - _MOST} more"] if len(every) > _MOST else []
    parts: list[blocks.Inline] = [
        [f"{failure} for ", *joined(named, " and ")] for failure, named in people.items()
    ]
    return list(joined([*parts, *more], ", "))
