"""The kind `bbq`: questions about two groups, with and without retrieved documents (P2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fairgate.domain.items import NO_RETRIEVAL, Item
from fairgate.domain.units import Judged, Reason, Unit
from fairgate.metrics.retriever_robustness import PAPER_BANDS
from fairgate.metrics.social_bias import check_inequalities
from fairgate.metrics.table import Table
from fairgate.relations.oracles.choice import CHOICE_RULE, ChoiceOracle
from fairgate.relations.oracles.oracle import Oracle
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.suites.question_items.judge import COLUMNS, LETTER_COLUMNS, STEREOTYPES, judge_items
from fairgate.suites.question_items.plan import (
    PlanInput,
    Question,
    build_plan,
    questions,
    retriever_key,
)
from fairgate.suites.question_items.policy import BbqSuitePolicy
from fairgate.suites.readings import Readings
from fairgate.suites.suite import (
    CollectionSearch,
    Executions,
    NamedByPolicy,
    SuitePlan,
    VectorsOf,
)

_NO_SHARE = {
    Reason.NO_RETRIEVAL: "the suite retrieves nothing",
    Reason.NO_DOCUMENTS: "the system does not report which documents it retrieved",
    Reason.NO_STANCE: "the retrieved documents carry no stance",
}
_NO_ORDER = "the recording does not contain the order in which the options were shown"


@dataclass(frozen=True)
class QuestionItemSuite(NamedByPolicy[BbqSuitePolicy]):
    """A suite of question items, loaded. Implements `suites.suite.Suite`."""

    given: PlanInput

    @cached_property
    def asked(self) -> list[Question]:
        """Return every item in every way it is asked, in the order of the plan."""
        return list(questions(self.given))

    @cached_property
    def _items(self) -> Mapping[str, Item]:
        return {question.case.key: question.item for question in self.asked}

    @cached_property
    def oracles(self) -> Mapping[str, Oracle]:
        """Return the one oracle, which reads choices."""
        oracle = ChoiceOracle(
            items=self._items,
            unknown_wordings=tuple(self.given.unknown_wordings),
            marker=self.policy.marker or "",
            shuffled=self.policy.shuffle,
        )
        return {"": oracle}

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the claims about choices and documents."""
        return COLUMNS

    @property
    def most_crossed(self) -> None:
        """Return nothing: there are no pairs."""
        return

    @property
    def crossing(self) -> None:
        """Return None: an item has no follow-up to cross with."""

    @property
    def repeats(self) -> int:
        """Return 1."""
        return 1

    @property
    def has_control_arm(self) -> bool:
        """Return False: the setting `none` is the reference."""
        return False

    def size(self) -> int:
        """Return items times settings, retrievers, depths and instructions."""
        policy = self.policy
        ways = len(policy.settings) * len(policy.retrievers) * len(policy.depths)
        return len(self.given.items) * ways * len(policy.instructions)

    def plan(self) -> SuitePlan:
        """Return every item in every way it is asked."""
        return build_plan(self.id, self.asked, self.given.excluded)

    def judge(
        self,
        units: Sequence[Unit],
        readings: Readings,
        executions: Executions,
        vectors: VectorsOf,
    ) -> list[Judged]:
        """Return a judged unit for each question."""
        del vectors  # stances are labels, not embeddings
        return list(
            judge_items(
                units,
                self._items,
                readings,
                executions,
                self.given.setup.quarantined,
                unparsed_is_wrong=self.policy.unparsed == "wrong",
            )
        )

    def absent(self, column: str, reasons: Sequence[Reason]) -> str | None:
        """Return why there is no share of stereotypes or no letter; choices always exist."""
        if column in LETTER_COLUMNS:
            return _NO_ORDER
        if column != STEREOTYPES:
            return None
        asked = [reason for reason in reasons if reason is not Reason.NO_RETRIEVAL]
        why = asked[0] if asked else Reason.NO_RETRIEVAL
        return _NO_SHARE.get(why, str(why))

    def verify(self, table: Table) -> None:
        """Raise RuntimeError where a bias exceeds what its accuracy allows (SPEC 4)."""
        check_inequalities(table)

    def bands(self, quartiles: tuple[float, float] | None) -> tuple[float, float]:
        """Return P1's limits; no score of this kind falls into a band."""
        del quartiles
        return PAPER_BANDS

    def must_match(self) -> Mapping[str, object]:
        """Return everything that decides a count; settings and depths are part of the keys."""
        policy = self.policy
        return {
            "kind": policy.kind,
            "instructions": {one.id: one.text for one in policy.instructions},
            "read": policy.read,
            "unparsed": policy.unparsed,
            "shots": policy.shots,
            "shuffle": policy.shuffle,
            "unstable_margin": policy.unstable_margin,
            "oracle": CHOICE_RULE,
            **({"marker": policy.marker} if policy.marker else {}),
        }

    def reading_rule(self) -> Mapping[str, object]:
        """Return the rules by which answers are cut and choices read."""
        marker = {"marker": self.policy.marker} if self.policy.marker else {}
        return {"rule": CHOICE_RULE, "read": self.policy.read, **marker}

    def searches(self) -> Sequence[CollectionSearch]:
        """Return a retriever for each setting that retrieves and each way to do it."""
        policy = self.policy
        return [
            CollectionSearch(
                key=retriever_key(self.id, setting, name),
                name=name,
                way=chosen,
                collections=policy.collections,
                setting=setting,
            )
            for setting in policy.settings
            if setting != NO_RETRIEVAL
            for name, chosen in zip(policy.retriever_names, policy.retrievers, strict=True)
        ]

    def replica(self, controls: Sequence[PerturbationSet]) -> QuestionItemSuite:
        """Return the suite itself: it has no control arm."""
        del controls
        return self

    def without_crossing(self) -> QuestionItemSuite:
        """Return the suite itself."""
        return self

    def describe(self, plan: SuitePlan) -> Iterator[str]:
        """Yield how many items, templates and questions there are, and what was left out."""
        items = {unit.names["item"] for unit in plan.units}
        clusters = {unit.cluster for unit in plan.units}
        yield (
            f"  suite {self.id}: {len(items)} items of {len(clusters)} templates, "
            f"{len(plan.units)} questions to the system"
        )
        for reason, many in Counter(item.reason for item in self.given.excluded).most_common():
            yield f"    {many} items left out: {reason}"
