"""A run's findings beside its measurements: identities, attribution, instability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TermFinding:
    """One identity against all others."""

    category: str
    term: str
    difference: float
    """Rate of the term less the rate of all other terms."""
    p_value: float
    p_corrected: float
    """Holm over the terms of the comparison."""
    decided: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityFinding:
    """Whether any identity of a slice differs from the others."""

    suite: str
    where: Mapping[str, str]
    metric: str
    """What is compared: the id of its metric."""
    value: float
    """Largest difference between a term and the others, in size."""
    p_value: float
    """Of that largest difference, by permutation within sources; not corrected for other rules."""
    sources: int
    """Sources whose verdicts differ between terms: only they carry evidence."""
    terms: Sequence[TermFinding]
    """Largest difference first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributedPart:
    """One part of the violation rate beyond neutral wording."""

    name: str
    """`retrieval`, `generator` or `interaction`."""
    amount: float
    """In points of the rate; the parts add up to the total."""
    share: float | None
    """Of the total; None where the total cannot be distinguished from 0."""
    share_interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Through which part of the system a suite's violations come."""

    suite: str
    total: float
    """Rate beyond neutral wording that the parts add up to."""
    parts: Sequence[AttributedPart]
    pairs: int
    """Decided pairs, both arms."""
    equal_documents: int
    """Of these, pairs whose document lists are equal: nothing is asked for them."""
    crossed: int
    """Pairs that were crossed and read."""
    undecided: int
    """Crossed pairs with an undecided answer; others of their kind stand in for them."""
    repeated: int
    """Uncrossed answers that were asked again."""
    turned: int
    """Of these, answers with another label. Pairs are chosen by their verdict, so the share is
    above the noise of an answer picked at random."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptKillScore:
    """How much bias a policy caught in biased variants of a run, as `fairgate mutate` kept it."""

    policy_hash: str
    """Of the policy that was tested."""
    strength: float
    """Share of a variant's cases that was changed."""
    seeds: int
    sources: int
    """Sources of the run."""
    caught: int
    mutants: int
    """Variants of biased and worse systems."""
    false_kills: int
    controls: int
    """Variants of changes that are about no identity."""
    not_seen: Sequence[str] = ()
    """Sentences on what the policy does not see, and below which strength."""

    @property
    def share(self) -> float:
        """Return the share of the biased and worse variants that was caught."""
        return self.caught / self.mutants

    @property
    def percent(self) -> int:
        """Return the share in percent, rounded down: 100 means all of them."""
        return 100 * self.caught // self.mutants


@dataclass(frozen=True, slots=True, kw_only=True)
class Instability:
    """How stable the answers to the cases of a relation are over repeats."""

    suite: str
    relation: str
    repeats: int
    cases: int
    """Cases with readable answers only."""
    stability: float
    """Share of the cases whose repeats all have one label."""
    entropy: float
    """Mean entropy of a case's labels, in bits; 0 is stable."""
