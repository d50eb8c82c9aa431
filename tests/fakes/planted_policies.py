"""Any policy against systems whose behaviour is planted, by the cases of its plan; no model answers.

A policy's own system is not opened: what is planted stands in its place and knows from the plan
which identity, control prompt or option each case is about. Plan, oracles, statistics and verdict
are the gate's own.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from fakes.planted import _vector, chance

from fairgate.domain.cases import Case, Condition
from fairgate.domain.executions import Document, Execution
from fairgate.domain.outcomes import Provenance
from fairgate.domain.ports import NOTHING, SILENT, Executed, Progress, Runtime
from fairgate.domain.units import TOGETHER, Unit
from fairgate.gate.baseline import AcceptedRuns, Baseline, must_match
from fairgate.gate.gate import GateInput, GateRun, run_gate
from fairgate.gate.loaded_policy import load_policy_text
from fairgate.suites.question_items.suite import QuestionItemSuite

CALLS = tuple(json.dumps([{"name": name, "arguments": {}}]) for name in ("refuse", "refund"))
"""Answers of an agent."""
TONES = ("I am furious about this.", "I am so happy for you, what wonderful news!")
"""Answers that the embedded classifiers read as bad and as good."""
_LIST = 20
SHORTEST, LONGEST = 5, 23
"""Characters of the identities' phrases."""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """What is planted. Shares are of the answers (documents) that they are about."""

    world: int = 0
    harm: float = 0.0
    """Answers to one identity that are the worst there is; of its changed documents, those that are
    far down; of question items, those that get the stereotyped answer."""
    noise: float = 0.0
    """Answers that turn, whoever is named and where nobody is; ranks that move."""
    placebo: float = 0.0
    """Sources whose answer turns for any follow-up; changed documents that are farther down."""
    length: float = 0.0
    """Share of the sources at which the longest phrase, whoever it names, gets the worst answer, or
    a document that names it is far down; the shortest has none of them."""
    guesses: float = 0.0
    """Question items that get any of their options."""
    refusals: float = 0.0
    """Answers that are no answer, to anybody."""
    run: int = 0
    """Another run of the same system has another number, and other noise."""


@dataclass(frozen=True, kw_only=True)
class PlantedSystem:
    """Answers each case by what it is about."""

    given: GateInput
    behaviour: Behaviour

    @cached_property
    def about(self) -> Mapping[tuple[str, str], Unit]:
        """The unit of each case that is asked for one follow-up alone, or for a question item."""
        found = {}
        for unit in self.given.plan.units:
            for role, key in unit.asks.items():
                if role != "source":
                    found[unit.suite, key] = unit
        return found

    @cached_property
    def harmed(self) -> Mapping[str, str]:
        """The identity of each suite that is treated worse: the first term, or attribute."""
        found: dict[str, str] = {}
        for unit in self.given.plan.units:
            if not unit.is_control:
                found.setdefault(unit.suite, _identity(unit))
        return found

    def execute(
        self, cases: Sequence[Case], progress: Progress, earlier: Executed = NOTHING
    ) -> Executed:
        """Return an execution of every case."""
        del progress, earlier
        return {(case.suite, case.key): self._execution(case) for case in cases}

    def vectors(self, documents: Sequence[Document]):
        return np.stack([_vector(document.id or "") for document in documents])

    def under_test(self) -> Mapping[str, str]:
        return {}

    def _execution(self, case: Case) -> Execution:
        unit = self.about.get((case.suite, case.key))
        return Execution(
            documents=self._documents(case, unit),
            response=None if self.is_alone else self._answer(case, unit),
            options=case.options,
        )

    def _drawn(self, *parts: object) -> float:
        return chance(self.behaviour.world, *parts)

    def _documents(self, case: Case, unit: Unit | None) -> tuple[Document, ...]:
        names = [f"{case.cluster} document {number}" for number in range(_LIST)]
        if self.is_alone and unit is not None:
            names = [
                f"{name} instead" if self._is_exchanged(case, unit, slot) else name
                for slot, name in enumerate(names)
            ]
        texts: dict[str, str] = {}
        sources = getattr(self.given.suites[case.suite], "sources", ())
        subjects = {each.id: each.document for each in sources if each.document is not None}
        if case.cluster in subjects:
            subject = case.changed or subjects[case.cluster]
            names = [*names[:4], subject.id, *names[4:-1]]
            texts = {subject.id: subject.text}
            if case.changed is not None:
                names = self._moved(case, unit, names)
        labels = ("non-toxic", "toxic")
        return tuple(
            Document(
                id=name, text=texts.get(name, name), label=labels[chance(name) < 0.3], score=1.0
            )
            for name in names[: case.top_k or None]
        )

    @cached_property
    def is_alone(self) -> bool:
        """Whether documents are all that is compared, so that harm is done to them."""
        system = self.given.policy.system
        return hasattr(system, "generator") and system.generator is None

    def _is_exchanged(self, case: Case, unit: Unit, slot: int) -> bool:
        planted, source = self.behaviour, case.cluster
        is_harmed = not unit.is_control and _identity(unit) == self.harmed[case.suite]
        return (
            (is_harmed and self._drawn("harm", source) < planted.harm)
            or self._drawn("placebo", source, slot) < planted.placebo
            or self._drawn("noise", planted.run, case.key, slot) < planted.noise
        )

    def _moved(self, case: Case, unit: Unit | None, names: list[str]) -> list[str]:
        subject, rest = names[4], [*names[:4], *names[5:]]
        rank = 4
        if unit and _identity(unit) == self.harmed[case.suite]:
            rank += 10 * (self._drawn("harm", case.cluster) < self.behaviour.harm)
        rank += 5 * (self._drawn("placebo", case.cluster) < self.behaviour.placebo)
        rank += 15 * self._is_longer(case, unit)
        if self._drawn("noise", case.key) < self.behaviour.noise:
            rank += 2 if self._drawn("side", case.key) < 0.5 else -2
        return [*rest[:rank], subject, *rest[rank:]]

    def _answer(self, case: Case, unit: Unit | None) -> str:
        planted, source = self.behaviour, case.cluster
        if self._drawn("refused", case.key) < planted.refusals:
            return "I cannot say."
        suite = self.given.suites[case.suite]
        if isinstance(suite, QuestionItemSuite):
            return f"{self._option(case, suite)}."
        worst, best = self._pair(case, unit)
        is_best = self._drawn("label", case.suite, source) < 0.5
        if unit is not None:
            is_best ^= self._drawn("placebo", source) < planted.placebo
        is_best ^= self._drawn("noise", planted.run, case.key) < planted.noise
        is_harmed = unit and not unit.is_control and _identity(unit) == self.harmed[case.suite]
        if is_harmed and self._drawn("harm", source) < planted.harm:
            is_best = False
        is_best &= not self._is_longer(case, unit)
        return best if is_best else worst

    def _is_longer(self, case: Case, unit: Unit | None) -> bool:
        phrase = unit.names.get("noun_phrase", "") if unit else ""
        share = (min(len(phrase), LONGEST) - SHORTEST) / (LONGEST - SHORTEST)
        return self._drawn("length", case.cluster, phrase) < share * self.behaviour.length

    def _pair(self, case: Case, unit: Unit | None) -> tuple[str, str]:
        """Return the worst and the best answer that a case can get."""
        relation = unit.dimensions.get("relation", "") if unit else case.oracle
        if case.options:
            return case.options[0], case.options[1]
        if "score" in relation or "score" in case.instruction.lower():
            return "1", "5"
        if "yes" in relation:
            return "No.", "Yes."
        task = getattr(self.given.suites[case.suite], "task", None)
        if getattr(task, "actions", None):
            return CALLS
        labels = getattr(task, "labels", ()) or case.labels
        order = getattr(task, "order", ()) or labels
        return (order[0], order[-1]) if order else TONES

    def _option(self, case: Case, suite: QuestionItemSuite) -> str:
        item = suite._item_of[case.key]
        planted, key = self.behaviour, case.key
        place = item.correct
        if self._drawn("harm", key) < planted.harm:
            place = item.stereotype
        if item.condition is Condition.AMBIGUOUS and self._drawn("any", key) < planted.placebo:
            place = item.stereotype if self._drawn("side", key) < 0.5 else item.counter
        if self._drawn("guess", key) < planted.guesses + planted.noise:
            place = int(3 * self._drawn("which", key))
        return item.options[place]


def _identity(unit: Unit) -> str:
    own = unit.dimensions
    category = own.get("category", "").partition(TOGETHER)[0]
    # A written pair has an identity of its own; its dimension is what others share.
    is_written = own.get("relation", "").startswith("meta-fair/")
    return category if is_written else own.get("term") or category


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A policy, loaded once, that planted systems are put to."""

    text: str
    root: Path = field(default_factory=Path)

    @cached_property
    def given(self) -> GateInput:
        """What a run of the policy starts from, without a baseline."""
        loaded = load_policy_text(self.text, "policy.yaml", Runtime(root=self.root))
        return GateInput(
            policy=loaded.policy,
            suites=loaded.suites,
            plan=loaded.plan,
            must_match={n: must_match(s, {"decoding": "x"}) for n, s in loaded.suites.items()},
            provenance=Provenance(under_test={}, environment={}, fairgate="0", policy_path="p"),
        )

    def run(self, behaviour: Behaviour, baseline: Baseline | None = None) -> GateRun:
        """Gate a system that behaves so, through the whole real line."""
        given = replace(self.given, accepted_runs=AcceptedRuns(baseline=baseline))
        return run_gate(given, PlantedSystem(given=given, behaviour=behaviour), SILENT)


def pages_policies(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the heading and the text of each block of a page that shows gates."""
    heading = ""
    for part in re.finditer(
        r"^#+ ([^\n]*)$|^```(\w*)\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    ):
        title, kind, text = part.groups()
        heading = title or heading
        if kind == "yaml" and re.search(r"^(gates:|- \{(metric|parity))", text, re.MULTILINE):
            yield heading, text
