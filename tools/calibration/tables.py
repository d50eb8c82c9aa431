"""Plain Markdown tables of simulation results, and exact limits of simulated rates."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.stats import binomtest


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """One line a row; numbers as they are formatted by the caller."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def clopper_pearson(count: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """The exact limits of a rate."""
    limits = binomtest(count, trials).proportion_ci(confidence, method="exact")
    return float(limits.low), float(limits.high)
