"""`fairgate shrink`: the findings of a run, asked anew with ever shorter sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fairgate.domain.errors import UsageError
from fairgate.domain.ports import Progress
from fairgate.domain.runtime import Runtime
from fairgate.domain.units import Judged
from fairgate.domain.wording import quoted, suggestion
from fairgate.features.shrink.shrink import Shrunk, claim_of, is_finding, shrink
from fairgate.gate.composition import Composition
from fairgate.gate.gate import GateInput, GateRun
from fairgate.gate.run_folder import replay
from fairgate.metrics.intersectional import COLUMN as HIDDEN
from fairgate.reports.escaping import Redaction
from fairgate.suites.metamorphic.suite import MetamorphicSuite
from fairgate.systems.catalogue import kind_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkChoice:
    """The options of `fairgate shrink`."""

    keys: tuple[str, ...]
    """Findings to shrink; empty: those of `intersectional/hidden`."""
    suite: str | None
    policy: Path | None
    findings: int
    questions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinking:
    """What is going to be shrunk, and each result as it comes."""

    announcement: str
    results: Iterator[Shrunk]
    redact: Redaction


def shrink_run(run: Path, choice: ShrinkChoice, runtime: Runtime, progress: Progress) -> Shrinking:
    """Return the shrinking of a run's findings; nothing is asked until results are taken.

    Raises UsageError for unknown keys, pairs that are no finding, and systems that cannot be asked.
    """
    undated = replace(runtime, today=None)
    replayed, given, loaded, _ = replay(run, choice.policy, undated)
    system = loaded.policy.system
    if not kind_of(system).capabilities(system).repeatable:
        raise UsageError(
            f"the policy's system is {kind_of(system).id}: it cannot be asked about shorter texts; "
            "name a policy of the same suites whose system answers, with --policy"
        )
    chosen = _chosen(replayed, given, choice)
    total = choice.questions * len(chosen)
    announcement = (
        f"shrinks {len(chosen)} finding{'' if len(chosen) == 1 else 's'}; asks the system at most "
        f"{total:,} questions"
    )
    composition = Composition(loaded, undated, progress)
    return Shrinking(
        announcement=announcement,
        results=_results(chosen, given, composition, choice.questions),
        redact=loaded.policy.redact,
    )


def _results(
    chosen: Sequence[Judged], given: GateInput, composition: Composition, most: int
) -> Iterator[Shrunk]:
    with composition.serving():
        for judged in chosen:
            suite = given.suites[judged.unit.suite]
            assert isinstance(suite, MetamorphicSuite)  # noqa: S101 (chosen so)
            sources = {source.id: source for source in suite.given.sources}
            source = sources[judged.unit.cluster]
            yield shrink(judged.unit, source, suite, given, composition.system, most)


def _chosen(run: GateRun, given: GateInput, choice: ShrinkChoice) -> list[Judged]:
    """Return the findings to shrink, in the order of the plan."""
    pairs = [
        judged
        for judged in run.result.judged
        if choice.suite in (None, judged.unit.suite) and _has_source(judged, given)
    ]
    if choice.keys:
        return [_finding(key, pairs) for key in dict.fromkeys(choice.keys)]
    found = [each for each in pairs if claim_of(each.unit) == HIDDEN and is_finding(each)]
    if not found:
        raise UsageError(
            "the run has no finding of `intersectional/hidden` (answers that only a combination "
            "changes); name another violated pair by its key: its source's text can be shrunk too"
        )
    return found[: choice.findings]


def _has_source(judged: Judged, given: GateInput) -> bool:
    """Return whether a unit's follow-ups are made of its source, and so of a shorter one."""
    suite = given.suites[judged.unit.suite]
    if not isinstance(suite, MetamorphicSuite):
        return False
    return not suite.relations[judged.unit.dimensions["relation"]].takes_pairs


def _finding(key: str, pairs: Sequence[Judged]) -> Judged:
    found = [judged for judged in pairs if judged.unit.key == key]
    if not found:
        known = [judged.unit.key for judged in pairs if is_finding(judged)]
        raise UsageError(
            f"the run has no pair {quoted(key)} whose follow-up is made of its source; "
            f"{suggestion(key, known[:3000])}"
        )
    suites = sorted({judged.unit.suite for judged in found})
    if len(suites) > 1:
        raise UsageError(
            f"{quoted(key)} is a case of {len(suites)} suites; add --suite {suites[0]}"
        )
    if not is_finding(found[0]):
        claim = claim_of(found[0].unit)
        what = (
            "a neutral pair"
            if found[0].unit.is_control
            else "a combination whose parts change the answer too, or that changes nothing"
            if claim == HIDDEN
            else "not violated, or not decided"
        )
        raise UsageError(f"{quoted(key)} is no finding: it is {what}")
    return found[0]
