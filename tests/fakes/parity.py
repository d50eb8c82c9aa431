"""Tables of planted differences, and what is asked of them, without a suite or a system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
from fakes.planted import policy_of

from fairgate.domain.outcomes import RuleResult
from fairgate.domain.parity import Against
from fairgate.gate.baseline import AcceptedRun, BaselineSuite
from fairgate.gate.changes import Comparison
from fairgate.gate.parity import judge_parity
from fairgate.gate.rules import ParityRule
from fairgate.metrics.metric import Table
from fairgate.metrics.parity import OUTCOMES
from fairgate.policy.schema import ParityPolicy

PEOPLE = {
    "gender": ("woman", "man", "non-binary"),
    "age": ("young", "old"),
    "race": ("asian", "black", "white", "latino"),
}
TERMS = [(category, term) for category, terms in PEOPLE.items() for term in terms]


@dataclass(frozen=True, kw_only=True)
class Planted:
    """Answers of which some differ from the usual one, anew for every seed."""

    sources: int = 60
    start: int = 0
    controls: int = 20
    noise: float = 0.05
    """Share of all answers that differ, whoever is named."""
    harm: Mapping[str, float] = field(default_factory=dict)
    """Term, category or `everybody` to the share of their answers that differ besides."""
    favour: Mapping[str, float] = field(default_factory=dict)
    """The same of those that differ otherwise and do not for these."""
    harmed: int | None = None
    """Only the first sources are harmed; None: all."""
    seed: int = 1
    column: str = "controlled"

    def values(self) -> np.ndarray:
        """Return [sources, prompts], identities first."""
        size = self.sources, len(TERMS) + self.controls
        rng = np.random.default_rng([self.seed, self.start, *size])
        found = (rng.random(size) < self.noise).astype(float)
        drawn = rng.random(size)
        numbers = np.arange(self.start, self.start + self.sources)
        at = numbers < (self.harmed if self.harmed is not None else np.inf)
        for place, own in enumerate(TERMS):
            for name in ("everybody", *own):
                hit = at & (drawn[:, place] < self.harm.get(name, 0.0))
                found[hit, place] = 1.0
                found[at & (drawn[:, place] < self.favour.get(name, 0.0)), place] = 0.0
        return found

    def table(self) -> Table:
        """Return the table of a suite `s` with these values."""
        return table_of({self.column: self.values()}, start=self.start)


def table_of(columns: Mapping[str, np.ndarray], *, start: int = 0, **more) -> Table:
    """Return the table that has these matrices [sources, prompts] as columns."""
    sources, prompts = next(iter(columns.values())).shape
    controls = prompts - len(TERMS)
    who = [*TERMS, *(("neutral", f"phrase {number}") for number in range(controls))]
    names = [f"s{number}" for number in range(start, start + sources)]
    rows = [(name, category, term) for name in names for category, term in who]
    return Table(
        suite="s",
        keys=[f"{name}#{category}/{term}" for name, category, term in rows],
        clusters=np.repeat(np.arange(sources), prompts),
        cluster_names=names,
        control=np.tile(np.arange(prompts) >= len(TERMS), sources),
        dimensions={
            "relation": ["r"] * len(rows),
            "category": [category for _, category, _ in rows],
            "term": [term for _, _, term in rows],
        },
        values={name: matrix.ravel() for name, matrix in columns.items()},
        **more,
    )


def compared_with(
    now: Table, before: Table, accepted: AcceptedRun = AcceptedRun.BASELINE, **more
) -> Comparison:
    """Return what compares a table with an accepted one; the same key asks the same."""
    kept = BaselineSuite(
        must_match={}, contents=dict.fromkeys(before.keys, "c"), table=before, quartiles=None
    )
    return Comparison(
        runs={accepted: SimpleNamespace(suites={"s": kept})},
        contents={"s": dict.fromkeys(now.keys, "c")},
        **more,
    )


NOTHING = Comparison(runs={}, contents={"s": {}})


def rule_of(outcome: str = "answers", against: Against = Against.CONTROL, **gate) -> ParityRule:
    """Return the rule of a gate that asks for an outcome of the suite `s`."""
    entry = ParityPolicy.model_validate({"parity": outcome, **gate})
    return ParityRule(gate=entry, position=0, outcome=OUTCOMES[outcome], suite="s", against=against)


def judged(
    table: Table, rule: ParityRule | None = None, comparison: Comparison = NOTHING, **policy
) -> RuleResult:
    """Judge one question of a table."""
    given = policy_of().model_copy(update=policy)
    (result,) = judge_parity(given, {}, [rule or rule_of()], {"s": table}, comparison)
    return result


def since(now: Planted, before: Planted, **gate) -> RuleResult:
    """Judge a run beside an accepted one."""
    rule, tables = rule_of(against=Against.BASELINE, **gate), (now.table(), before.table())
    return judged(tables[0], rule, compared_with(*tables))


def named(result: RuleResult) -> list[str]:
    """Return who is named, the clearest first."""
    return [node.name for node in result.parity.named]


def again(planted: Planted, **changes) -> Planted:
    """Return another run of the same system, with other noise."""
    return replace(planted, **{"seed": planted.seed + 1, **changes})
