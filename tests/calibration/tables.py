"""Plain Markdown tables of simulation results, and exact limits of simulated rates."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """One line a row; numbers as they are formatted by the caller."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def clopper_pearson(count: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404-413: exact, two-sided."""
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, trials - count + 1, tail))
    high = 1.0 if count == trials else float(betaincinv(count + 1, trials - count, 1 - tail))
    return low, high
