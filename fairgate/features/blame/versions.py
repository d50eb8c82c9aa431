"""Two versions of a policy's files as sides whose parts are exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path, PurePosixPath

from fairgate.domain.errors import UsageError
from fairgate.domain.ports import Progress, Runtime
from fairgate.domain.wording import quoted
from fairgate.features.blame.sides import Factor, LocalSides, SideParts
from fairgate.gate.baseline import NO_REFERENCES
from fairgate.gate.composition import Composition
from fairgate.gate.gate import GateInput
from fairgate.gate.loaded_policy import load_policy_text
from fairgate.policy.parse import parse_policy
from fairgate.policy.schema import Policy
from fairgate.policy.yaml_text import read_yaml_file
from fairgate.systems.catalogue import kind_of, policy_parts
from fairgate.systems.generator import GeneratorPolicy
from fairgate.systems.local import LocalPolicy, RetrieverPolicy
from fairgate.systems.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two sides whose parts can be exchanged; nothing was asked yet."""

    sides: LocalSides
    gate_input: GateInput
    notes: list[str]

    @property
    def announcement(self) -> str:
        """Return the factors that differ and the greatest cost of explaining the verdict."""
        factors = self.sides.factors
        if not factors:
            return "nothing differs that could explain a verdict"
        runs = 2 + len(factors) + comb(len(factors), 2)
        cases = len(self.gate_input.plan.cases)
        search = ", then a search among changed documents" if Factor.CORPUS in factors else ""
        return (
            f"{', '.join(factors)} differ{'s' if len(factors) == 1 else ''}; at most {runs} runs "
            f"of up to {cases:,} questions{search}. Stored answers are not asked again"
        )


def compared(
    base: Path, head: Path, policy: str, runtime: Runtime, progress: Progress
) -> Comparison:
    """Return BASE and HEAD, two folders, as sides whose parts can be exchanged.

    `policy` is its path in both. Raises UsageError where a side has no such policy, or a system
    that cannot be rebuilt.
    """
    inner = PurePosixPath(policy)
    if inner.is_absolute() or ".." in inner.parts:
        raise UsageError(
            f"--policy {quoted(policy)} leads out of BASE and HEAD; name its path in both"
        )
    for role, folder in (("BASE", base), ("HEAD", head)):
        if not (folder / policy).is_file():
            raise UsageError(
                f"{role} {quoted(str(folder))} has no policy {quoted(policy)}: name one that has it"
            )
    before, after = base / policy, head / policy
    then, now = (replace(runtime, root=folder) for folder in (base, head))
    loaded = load_policy_text(read_yaml_file(after), str(after), now)
    earlier = parse_policy(read_yaml_file(before), str(before), policy_parts()).policy
    if any(unit.verdicts for unit in loaded.plan.units):
        raise UsageError(
            "the policy has pairs that its judge decides, and blame asks no judge; name a "
            "policy whose relations need none"
        )
    old = _parts(earlier, "BASE", then, progress)
    new = _parts(loaded.policy, "HEAD", now, progress)
    if (old.retriever is None) != (new.retriever is None):
        raise UsageError(
            "one side has a retriever and the other has none: their parts cannot be exchanged"
        )
    return Comparison(
        sides=LocalSides(old, new, loaded),
        gate_input=Composition(loaded, now, progress).gate_input(NO_REFERENCES),
        notes=list(_outside(earlier, loaded.policy)),
    )


def _parts(policy: Policy, role: str, runtime: Runtime, progress: Progress) -> SideParts:
    system = policy.system
    why = f"it is {kind_of(system).id}"
    if isinstance(system, LocalPolicy):
        retriever, generator = system.retriever, system.generator
        if isinstance(retriever, RetrieverPolicy | None) and isinstance(generator, GeneratorPolicy):
            resources = Resources(runtime, progress)
            return SideParts(retriever=retriever, generator=generator, resources=resources)
        outside_part = "generator" if isinstance(retriever, RetrieverPolicy | None) else "retriever"
        why = f"its {outside_part} is asked from outside"
    raise UsageError(
        f"the system of {role} cannot be rebuilt: {why}, and what that was at another commit is "
        "not known here; blame crosses systems with `retriever: {corpus: …}` and "
        "`generator: {model: …}`. Compare recorded answers with `fairgate rescore` instead"
    )


def _outside(before: Policy, after: Policy) -> Iterator[str]:
    """Yield which parts of the policy differ that no factor is about."""
    earlier, later = (policy.model_dump(exclude={"system"}) for policy in (before, after))
    names = [name for name in later if earlier.get(name) != later[name]]
    # Searches collections of the suites, too, where no retriever makes it a factor.
    embedders = [getattr(policy.system, "embedder", None) for policy in (before, after)]
    names += ["system.embedder"] if embedders[0] != embedders[1] else []
    if names:
        yield (
            f"outside of the factors, the policies differ in {', '.join(names)}: HEAD's hold for "
            "both sides"
        )
