"""The second wave: which questions cross texts and documents, to separate the two paths."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, TypeVar

from fairgate.domain.cases import Case
from fairgate.domain.keys import crossed_key, repeat_key
from fairgate.domain.units import Judged, Unit
from fairgate.gate.pair_documents import Documents, keys_of
from fairgate.gate.wave import Answered
from fairgate.suites.metamorphic.plan import SOURCE

FEWEST = 30
"""Satisfied pairs that are crossed in each arm even where fewer are violated."""
_WAVE = 2


class Crossing:
    """The wave that separates the effect of retrieval from that of the generator."""

    id: ClassVar[str] = "crossing"

    def next(self, answered: Answered, seed: int) -> Sequence[Case]:
        """Return the crossed cases; empty where none are needed.

        Deterministic: satisfied pairs are drawn by a hash of the policy's seed and their key, so
        most of a sample stays when other pairs change.
        """
        suites = answered.suites
        crossing = {
            name: suite.crossing
            for name, suite in suites.items()
            if suite.crossing is not None and suite.crossing != "off"
        }
        cases: dict[tuple[str, str], Case] = {}
        pairs = zip(answered.judged, answered.documents, strict=True) if crossing else ()
        most = {name: suites[name].most_crossed for name in crossing}
        drawn = list(_drawn(pairs, crossing, most, seed))
        wanted = {(item.unit.suite, key) for item in drawn for key in keys_of(item)}
        known = {
            (case.suite, case.key): case
            for case in answered.plan.cases
            if case.suite in crossing and (case.suite, case.key) in wanted
        }
        for item in drawn:
            unit = item.unit
            again = suites[unit.suite].repeats + 1
            source, follow_up = (known[unit.suite, key] for key in keys_of(item))
            for case in (
                _again(source, again),
                _again(follow_up, again),
                _crossed(source, follow_up.key),
                _crossed(follow_up, source.key),
            ):
                cases.setdefault((case.suite, case.key), case)
        return list(cases.values())


def crossing_price(cases: Sequence[Case]) -> str:
    """Return what the crossed cases are for, how many there are, and how to have fewer."""
    pairs = sum(case.documents_of is not None for case in cases) // 2
    return (
        f"{len(cases):,} questions to separate retriever and generator in {pairs:,} pairs, less "
        "those in store; a suite's `attribution_pairs` allows fewer, `attribution: off` none"
    )


def most_questions(units: Sequence[Unit], *, is_greedy: bool, pairs: int | None = None) -> int:
    """Return how many questions crossing can add for at most so many of these pairs.

    Two for each pair; sampled answers are also asked again, once for the pair and once for its
    source (a greedy one is known already).
    """
    crossed = len(units) if pairs is None else min(pairs, len(units))
    sources = min(crossed, len({unit.asks[SOURCE] for unit in units}))
    return 2 * crossed + (0 if is_greedy else crossed + sources)


def _again(case: Case, number: int) -> Case:
    return case._replace(
        key=repeat_key(case.key, number), wave=_WAVE, repeat=number - 1, is_crossing=True
    )


def _crossed(case: Case, other: str) -> Case:
    return case._replace(
        key=crossed_key(case.key, other), wave=_WAVE, documents_of=other, is_crossing=True
    )


def _drawn(
    pairs: Iterable[tuple[Judged, Documents]],
    crossing: Mapping[str, str],
    most: Mapping[str, int | None],
    seed: int,
) -> Iterator[Judged]:
    """Yield the pairs to cross: of each arm the violated ones and as many satisfied ones.

    Where a suite allows fewer, each of its strata (arm and verdict) is a random sample; what a
    stratum found counts for all of it.
    """
    strata: dict[tuple[str, bool, bool], list[Judged]] = {}
    arms: dict[tuple[str, bool], list[Judged]] = {}
    for item, documents in pairs:
        unit = item.unit
        if documents is Documents.DIFFERENT and unit.suite in crossing:
            arm = unit.suite, unit.is_control
            arms.setdefault(arm, []).append(item)
            strata.setdefault((*arm, item.decision == 1.0), []).append(item)
    sizes: dict[str, dict[tuple[str, bool, bool], int]] = {}
    for (suite, is_control, is_violated), items in strata.items():
        violated = len(strata.get((suite, is_control, True), ()))
        sampled = not is_violated and crossing[suite] != "all"
        wanted = max(violated, FEWEST) if sampled else len(items)
        of_suite = sizes.setdefault(suite, {})
        of_suite[suite, is_control, is_violated] = min(len(items), wanted)
    chosen = set()
    for suite, of_suite in sizes.items():
        for stratum, taken in _shared(of_suite, most[suite]).items():
            ranked = sorted(strata[stratum], key=lambda item: _drawing_order(seed, item.unit))
            chosen |= {(suite, item.unit.key) for item in ranked[:taken]}
    for items in arms.values():
        yield from (item for item in items if (item.unit.suite, item.unit.key) in chosen)


Stratum = TypeVar("Stratum")


def _shared(sizes: Mapping[Stratum, int], most: int | None) -> dict[Stratum, int]:
    """Return how many of each stratum are taken: all, or equal parts of `most`, small ones whole.

    Equal parts, because a stratum of which nothing is read leaves no result at all.
    """
    shares: dict[Stratum, int] = {}
    left = sum(sizes.values()) if most is None else most
    for place, (stratum, size) in enumerate(sorted(sizes.items(), key=lambda one: one[1])):
        shares[stratum] = min(size, left // (len(sizes) - place))
        left -= shares[stratum]
    return shares


def _drawing_order(seed: int, unit: Unit) -> str:
    name = f"{seed}\0{unit.suite}\0{unit.key}"
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
