"""Tokens of the rows that a session's graph is tried out with."""

from __future__ import annotations

_TOKENS = 11
"""Numbers of tokens that every vocabulary has."""
_FACTOR, _STEP, _MODULUS, _LOW_BITS = 1103515245, 12345, 1 << 31, 16
"""The linear congruential generator of ISO C (7.22.2.2), whose low bits repeat early."""


def trial_row(seed: int, length: int) -> list[int]:
    """Return so many tokens from 0 to 10 in an order without a period, the same in every run."""
    row, state = [], seed
    for _ in range(length):
        state = (state * _FACTOR + _STEP) % _MODULUS
        row.append((state >> _LOW_BITS) % _TOKENS)
    return row
