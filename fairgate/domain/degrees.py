"""Degrees of an answer: how probable each of a task's labels is, whatever was said.

Stored in records and stores as `"degrees": {"negative": -1.2, "positive": -0.4}`, nats, with
`"at_most": ["negative"]` where an endpoint tells an upper bound only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.wording import quoted, shown

LEAST_NATS = -999.0
"""Of a form whose probability rounds to 0: logarithms stay finite."""
_MOST_LABELS = 1000
_MOST_MASS = 1.001
"""Sum of probabilities that are rounded, each by at most 0.00005 nats."""


@dataclass(frozen=True, slots=True)
class Degrees:
    """How probable each label of an answer is, summed over the forms in which it is scored."""

    log_probabilities: tuple[tuple[str, float], ...]
    """Label to nats, at most 0, rounded to 4 decimals; the order is that of the task."""
    at_most: tuple[str, ...] = ()
    """Labels of which only this upper bound is known: an endpoint lists the likeliest tokens."""

    @classmethod
    def summed(cls, labels: Sequence[str], log_probabilities: Sequence[float]) -> Degrees:
        """Sum the probabilities of forms, each given with the label that it expresses."""
        of_label: dict[str, list[float]] = {}
        for label, nats in zip(labels, log_probabilities, strict=True):
            of_label.setdefault(label, []).append(nats)
        return cls(tuple((label, _summed(several)) for label, several in of_label.items()))

    @property
    def mass(self) -> float:
        """Probability of all scored forms together, in [0, 1]."""
        return min(1.0, math.fsum(math.exp(nats) for _, nats in self.log_probabilities))

    @property
    def likeliest(self) -> tuple[str, float]:
        """The most probable label, the first of equals, and the nats to the next one."""
        ranked = sorted(self.log_probabilities, key=lambda one: -one[1])
        return ranked[0][0], round(ranked[0][1] - ranked[1][1], 4)


def _summed(log_probabilities: Sequence[float]) -> float:
    top = max(log_probabilities)
    if top <= LEAST_NATS:
        return LEAST_NATS
    total = top + math.log(math.fsum(math.exp(nats - top) for nats in log_probabilities))
    return round(min(0.0, total), 4) + 0.0


def degrees_fields(degrees: Degrees) -> dict[str, object]:
    """Return degrees as records and stores hold them."""
    fields: dict[str, object] = {"degrees": dict(degrees.log_probabilities)}
    return fields | {"at_most": list(degrees.at_most)} if degrees.at_most else fields


def degrees_from(fields: Mapping[str, object]) -> Degrees | None:
    """Return the degrees of a record; None where it has none. Raises ValueError."""
    nats_by_label, bounded = fields.get("degrees"), fields.get("at_most")
    if nats_by_label is None and bounded is None:
        return None
    if not isinstance(nats_by_label, dict) or not 2 <= len(nats_by_label) <= _MOST_LABELS:
        raise ValueError("degrees: expected an object of two labels or more with a number each")
    for label, nats in nats_by_label.items():
        if not is_finite_number(nats) or nats > 0:
            raise ValueError(
                f"degrees[{quoted(str(label))}] is {shown(nats)}; expected a log-probability in "
                "nats, a finite number of at most 0"
            )
    labels = [] if bounded is None else bounded
    if not isinstance(labels, list) or any(label not in list(nats_by_label) for label in labels):
        raise ValueError("at_most: expected a list of labels that `degrees` has")
    degrees = Degrees(
        tuple((str(label), float(nats)) for label, nats in nats_by_label.items()), tuple(labels)
    )
    if math.fsum(math.exp(nats) for _, nats in degrees.log_probabilities) > _MOST_MASS:
        raise ValueError("degrees: their probabilities sum to more than 1; expected nats of each")
    return degrees


def is_finite_number(value: object) -> bool:
    """Whether a value read from JSON is a number, and finite; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
