"""`fairgate blame`: from two versions of a policy's files to what explains a red verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.errors import FairGateError, UsageError
from fairgate.domain.ports import Progress
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import harmless, quoted
from fairgate.features.blame.blame import blame
from fairgate.features.blame.question_limit import QuestionLimit
from fairgate.features.blame.report import blame_record
from fairgate.features.blame.result import Blame, Factor
from fairgate.features.blame.revisions import Version, version_of
from fairgate.features.blame.shapley import design
from fairgate.features.blame.sides import LocalSides, Parts, parts_of
from fairgate.gate.composition import Composition
from fairgate.gate.gate import GateInput
from fairgate.gate.loaded_policy import LoadedPolicy, load_policy_text
from fairgate.gate.references import NO_REFERENCES
from fairgate.io.durable import write_text
from fairgate.policy.parse import parse_policy
from fairgate.policy.schema import Policy
from fairgate.policy.yaml_text import read_yaml_file
from fairgate.systems.catalogue import kind_of, policy_parts
from fairgate.systems.index_retriever import RetrieverPolicy
from fairgate.systems.local import LocalPolicy
from fairgate.systems.onnx_generator import GeneratorPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A version of a repository's files, and the text of its policy."""

    version: Version
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Blaming:
    """Two sides, ready to be crossed; nothing was asked yet."""

    sides: LocalSides
    given: GateInput
    notes: Sequence[str]
    named: tuple[str, str]

    @property
    def announcement(self) -> str:
        """Return what differs, and what finding out costs at most."""
        factors = self.sides.factors
        if not factors:
            return "nothing differs that could explain a verdict"
        runs = len(design(factors))
        cases = sum(case.judge is None for case in self.given.plan.cases)
        price = f"{runs} combinations of up to {cases:,} questions: at most {runs * cases:,}"
        if Factor.CORPUS in factors:
            changed = len(self.sides.union.changed)
            price += f"; then a search among {changed:,} changed documents"
        return (
            f"{', '.join(factors)} differ{'s' if len(factors) == 1 else ''}; {price}. Stored "
            f"answers are not asked again; budget: {self.sides.limit.most:,} questions"
        )

    @property
    def notices(self) -> list[str]:
        """Return what adapters report: repaired files, rows without text. Not part of a result."""
        return self.sides.notices

    def result(self, progress: Progress) -> Blame:
        """Return what explains the verdict."""
        found = blame(self.given, self.sides, progress)
        base, head = self.named
        labels = {"base": base, "head": head}
        return replace(found, notes=[*self.notes, *found.notes], labels=labels)


@contextmanager
def blaming(
    base: str, head: str, policy: str, runtime: Runtime, budget: int, progress: Progress
) -> Iterator[Blaming]:
    """Yield BASE and HEAD, folders or git revisions, as sides that can be crossed.

    `policy` is its path in both. Raises UsageError where a side has no such policy, or a system
    that cannot be rebuilt.
    """
    inner = PurePosixPath(policy)
    if inner.is_absolute() or ".." in inner.parts:
        raise UsageError(
            f"--policy {quoted(policy)} leads out of BASE and HEAD; name its path in both"
        )
    with ExitStack() as stack:
        before, after = (
            stack.enter_context(version_of(named, Path(), role))
            for named, role in ((base, "BASE"), (head, "HEAD"))
        )
        sides = [
            Side(version=version, text=_text(version, policy, role))
            for version, role in ((before, "BASE"), (after, "HEAD"))
        ]
        yield crossed(sides[0], sides[1], policy, runtime, budget, progress)


def write_blame(run: Path, found: Blame) -> None:
    """Write blame.json into the folder of HEAD's run, which `check_run` has seen to be one."""
    text = json.dumps(blame_record(found), indent=1, allow_nan=False)
    write_text(run / "blame.json", f"{text}\n", option="--run")


def crossed(
    base: Side, head: Side, policy: str, runtime: Runtime, budget: int, progress: Progress
) -> Blaming:
    """Return two sides, ready to be crossed. Raises UsageError where they cannot be."""
    before, after = base.version, head.version
    runtimes = [replace(runtime, root=side.folder) for side in (before, after)]
    loaded = load_policy_text(head.text, after.shown(policy), runtimes[1])
    earlier = parse_policy(base.text, before.shown(policy), policy_parts()).policy
    _refuse_judged(loaded)
    parts = [
        _parts(found, role, own, progress)
        for found, role, own in zip(
            (earlier, loaded.policy), ("BASE", "HEAD"), runtimes, strict=True
        )
    ]
    if (parts[0].retriever is None) != (parts[1].retriever is None):
        raise UsageError(
            "one side has a retriever and the other has none: their parts cannot be exchanged"
        )
    given = Composition(loaded, runtimes[1], progress).gate_input(NO_REFERENCES)
    notes = [
        *before.notes,
        *after.notes,
        *_outside(earlier, loaded.policy),
        *_other_cases(base.text, before.shown(policy), runtimes[0], loaded.plan),
    ]
    return Blaming(
        sides=LocalSides(parts[0], parts[1], loaded, QuestionLimit(budget)),
        given=given,
        notes=notes,
        named=(before.named, after.named),
    )


def _text(side: Version, policy: str, role: str) -> str:
    path = side.folder / policy
    if not path.is_file():
        hint = "name one that has it: without it there is nothing to compare with"
        raise UsageError(f"{role} {quoted(side.named)} has no policy {quoted(policy)}; {hint}")
    return read_yaml_file(path)


def _parts(policy: Policy, role: str, runtime: Runtime, progress: Progress) -> Parts:
    system = policy.system
    why = f"it is {kind_of(system).id}"
    if isinstance(system, LocalPolicy):
        retriever, generator = system.retriever, system.generator
        if isinstance(retriever, RetrieverPolicy | None) and isinstance(generator, GeneratorPolicy):
            return parts_of(retriever, generator, runtime, progress)
        what = "generator" if isinstance(retriever, RetrieverPolicy | None) else "retriever"
        why = f"its {what} is asked from outside"
    raise UsageError(
        f"the system of {role} cannot be rebuilt: {why}, and what that was at another commit is "
        "not known here; blame crosses systems with `retriever: {corpus: …}` and "
        "`generator: {model: …}`. Compare recorded answers with `fairgate rescore` instead"
    )


def _refuse_judged(loaded: LoadedPolicy) -> None:
    if any(unit.verdicts for unit in loaded.plan.units):
        raise UsageError(
            "the policy has pairs that its judge decides, whose questions no budget of blame "
            "limits; name a policy whose relations need no judge"
        )


def _outside(before: Policy, after: Policy) -> Iterator[str]:
    """Yield which parts of the policy differ that no factor is about."""
    one, other = (policy.model_dump(exclude={"system"}) for policy in (before, after))
    names = [name for name in other if one.get(name) != other[name]]
    # Searches collections of the suites, too, where no retriever makes it a factor.
    embedders = [getattr(policy.system, "embedder", None) for policy in (before, after)]
    names += ["system.embedder"] if embedders[0] != embedders[1] else []
    if names:
        yield (
            f"outside of the factors, the policies differ in {', '.join(names)}: HEAD's hold for "
            "both sides"
        )


def _other_cases(text: str, shown: str, runtime: Runtime, plan: TestPlan) -> Iterator[str]:
    """Yield how many questions of the two sides differ, whatever file makes them differ."""
    try:
        then = load_policy_text(text, shown, runtime).plan
    except FairGateError as error:
        why = harmless(str(error).splitlines()[0][:200])
        yield f"BASE's suites cannot be loaded ({why}): both sides are asked HEAD's questions"
        return
    old, new = ({_name(case): _asked(case) for case in each.cases} for each in (then, plan))
    common = old.keys() & new.keys()
    edited = sum(old[name] != new[name] for name in common)
    if edited or len(common) < max(len(old), len(new)):
        yield (
            f"the questions differ: {edited:,} edited, {len(new) - len(common):,} only at HEAD, "
            f"{len(old) - len(common):,} only at BASE: both sides are asked HEAD's"
        )


def _name(case: Case) -> tuple[str, str]:
    return case.suite, case.key


def _asked(case: Case) -> Case:
    return case._replace(top_k=0)
