"""How large a harm must be to be told from what neutral phrases do, and what more questions tell.

The errors are those of the comparisons themselves (`stats/phrases.py`): of one identity, of a
category and of everybody who is named, each at its strictest level under Holm's correction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import DataError
from fairgate.gate.neutral_wording import SIGN, phrase_sample
from fairgate.io.tables import read_json_object
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import Table
from fairgate.stats.phrases import FEWEST_PHRASES, PhraseNoise, phrase_noise

DEGREES, LABELS = "label/log-odds", "asr/generation/net"
POWER = 0.9
LEVEL = 0.05
"""At which reports call an identity, a category or everybody different, two-sided."""
_MOST_BYTES = 16 << 20
_PARTS = "apart", "residual", "excess"
MORE_SOURCES = (25, 50, 100, 200)


class Group(StrEnum):
    """Whom a harm befalls; the value is what texts call them."""

    ONE = "one identity"
    CATEGORY = "a category"
    EVERYONE = "everyone"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordingNoise:
    """What answers of a suite vary by, for a metric and each group."""

    suite: str
    metric: str
    origin: str
    """`run`, `burn-in`, or `assumed`."""
    groups: Mapping[Group, PhraseNoise]


_OF_REVIEWS = {
    DEGREES: (0.014, 0.036, (0.029, 0.023, 0.017)),
    LABELS: (0.0, 0.306, (0.220, 0.163, 0.116)),
}
"""SmolLM2-135M on 42 reviews: phrases apart, residual, excess of the three groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignPower:
    """The smallest harms that a design tells, by group, in points of 1."""

    sources: int
    questions: int
    least: Mapping[Group, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePower:
    """What one metric of a suite tells, as it is and with other numbers of sources."""

    noise: WordingNoise
    identities: int
    phrases: int
    designs: Sequence[DesignPower]
    """The suite's own first."""


def assumed_noise(suite: str, metric: str) -> WordingNoise:
    """Noise of a small model's answers, for suites of which nothing is measured."""
    apart, residual, excesses = _OF_REVIEWS[metric]
    groups = {
        group: PhraseNoise(apart=apart, residual=residual, excess=excess)
        for group, excess in zip(Group, excesses, strict=True)
    }
    return WordingNoise(suite=suite, metric=metric, origin="assumed", groups=groups)


def wording_noise(tables: Mapping[str, Table], origin: str) -> Iterator[WordingNoise]:
    """Yield what a run shows of its suites; nothing of one with fewer than 12 neutral phrases."""
    for suite, table in tables.items():
        for metric in (DEGREES, LABELS):
            column = BY_ID[metric].column
            if column not in table.values or column in table.not_evaluated:
                continue
            sample = phrase_sample(BY_ID[metric], table, {})
            if sample is None:
                continue
            categories = np.asarray([name.partition(SIGN)[0] for name in sample.identities])
            columns = {
                Group.ONE: np.split(sample.own, sample.own.shape[1], axis=1),
                Group.CATEGORY: [sample.own[:, categories == c] for c in np.unique(categories)],
                Group.EVERYONE: [sample.own],
            }
            groups = {
                group: phrase_noise(own, sample.neutral, sample.kurtosis)
                for group, own in columns.items()
            }
            yield WordingNoise(suite=suite, metric=metric, origin=origin, groups=groups)


def mean_noise(measured: Sequence[WordingNoise]) -> WordingNoise:
    """Root mean square of what several runs of one suite and metric show; one or more."""

    def of(group: Group, name: str) -> float:
        squares = [getattr(noise.groups[group], name) ** 2 for noise in measured]
        return float(np.sqrt(np.mean(squares)))

    first = measured[0]
    groups = {
        group: replace(noise, **{name: of(group, name) for name in _PARTS})
        for group, noise in first.groups.items()
    }
    return replace(first, groups=groups)


def noise_record(noise: WordingNoise) -> dict[str, Any]:
    """Give what a burn-in file holds of it."""
    groups = {
        group.value: {name: round(getattr(parts, name), 6) for name in _PARTS}
        for group, parts in noise.groups.items()
    }
    return {"suite": noise.suite, "metric": noise.metric, "groups": groups}


def read_wording(path: Path) -> list[WordingNoise]:
    """Noise in a burn-in.json that `read_burn_in` has read.

    Nothing of a file that holds none. Raises DataError.
    """
    body = read_json_object(path, _MOST_BYTES)
    try:
        return [
            WordingNoise(
                suite=str(row["suite"]),
                metric=str(row["metric"]),
                origin="burn-in",
                groups={
                    group: PhraseNoise(
                        **{name: _amount(row["groups"][group.value][name]) for name in _PARTS}
                    )
                    for group in Group
                },
            )
            for row in body.get("wording", [])
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: what it says of wording cannot be read ({error!r:.100}); make it again with "
            "`fairgate burn-in`"
        ) from error


def _amount(value: object) -> float:
    number = float(value) if isinstance(value, int | float) else math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"expected a number of 0 or more, found {value!r:.40}")
    return number


def suite_powers(
    plan: TestPlan, metrics_of: Mapping[str, Sequence[str]], measured: Sequence[WordingNoise]
) -> Iterator[SuitePower]:
    """Yield what each suite tells by its metrics; nothing of one with too few neutral phrases.

    What is measured counts, of several the last; where nothing is, a small model's noise.
    """
    noise_of = {(noise.suite, noise.metric): noise for noise in measured}
    for suite, metrics in metrics_of.items():
        units = plan.units_of(suite)
        own = {
            (unit.dimensions.get("category", ""), unit.dimensions["term"])
            for unit in units
            if not unit.is_control and "term" in unit.dimensions
        }
        phrases = len({unit.dimensions.get("term") for unit in units if unit.is_control})
        if phrases < FEWEST_PHRASES or not own:
            continue
        sources = len({unit.cluster for unit in units})
        categories = [category for category, _ in own]
        # The smallest category needs most; each is the strictest of its family.
        members = {
            Group.ONE: (1, len(own)),
            Group.CATEGORY: (min(map(categories.count, categories)), len(set(categories))),
            Group.EVERYONE: (len(own), 1),
        }
        questions = len(plan.cases_of(suite)) / sources
        for metric in metrics:
            noise = noise_of.get((suite, metric)) or assumed_noise(suite, metric)
            yield SuitePower(
                noise=noise,
                identities=len(own),
                phrases=phrases,
                designs=[
                    DesignPower(
                        sources=many,
                        questions=round(many * questions),
                        least={
                            group: noise.groups[group].least_told(
                                sources=many,
                                identities=size,
                                phrases=phrases,
                                level=LEVEL / tests,
                                power=POWER,
                            )
                            for group, (size, tests) in members.items()
                        },
                    )
                    for many in (sources, *(more for more in MORE_SOURCES if more != sources))
                ],
            )
