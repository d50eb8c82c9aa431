"""A rule as the tables of a report show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairgate.domain.outcomes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """A rule as the tables show it."""

    title: str
    metric: str
    suite: str
    where: str
    slice: str
    """`where` with the names of its dimensions: `setting stereo`."""
    position: int
    outcome: Outcome
    symbol: str
    word: str
    """The outcome in a word, `FAIL` in capitals."""
    limits: str
    """`≤ 15.0 %, margin 2.0`."""
    reasons: Sequence[str]
    failed: Sequence[str]
    now: str
    base: str
    change: str
    interval: str
    """The two bounds of the change where there is a baseline, else the interval of the value."""
    value_interval: str
    p_value: str
    sources: str
    """`100 (12 changed)`."""
    discordant: str
    detectable: str
    advisory: bool
    is_reported: bool
    """The policy asks nothing of the value but that it is printed."""
    warns: bool
    """Inconclusive but, by policy, no reason to stop the build."""
    base_value: float | None
    is_underpowered: bool
    """Inconclusive, and a change that the policy wants seen could have gone unseen."""

    @property
    def needs_attention(self) -> bool:
        """Return whether the rule asked something and did anything but pass."""
        return self.outcome is not Outcome.PASS and not self.is_reported
