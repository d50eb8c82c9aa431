"""The result of the gate: what was measured, of each rule, and what was found beside the rules."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from fairgate.domain.parity import Against, NamedNode, ParityResult

CONFIDENCE = 0.95
"""Of every interval that reports print."""
Slice = tuple[str, str, frozenset[tuple[str, str]]]
"""Metric, suite, and the levels of the dimensions that are named."""


class Outcome(StrEnum):
    """The outcome of a rule or of the gate."""

    PASS = "pass"  # noqa: S105 (no password)
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    NOT_EVALUATED = "not-evaluated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How a metric moved against the baseline, on the cases decided in both."""

    base: float
    now: float
    change: float
    """The worsening: now - base with its sign turned so that more is worse."""
    lower: float
    upper: float
    """Bounds of the change, each one-sided at the corrected level."""
    p_value: float
    p_corrected: float
    significant: bool
    sources: int
    changed_sources: int
    discordant: int
    pairs: int
    """Cases that are compared: in the baseline too, and decided in both runs."""
    margin: float
    sign_changed: bool = False
    method: str = ""
    decided_once: Sequence[str] = ()
    """Keys of cases that both runs asked and only one of them decided: not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """By whom, why, up to which value and until when a failed rule stops no build.

    Texts are on one line, and harmless.
    """

    owner: str
    reason: str
    up_to: float
    expires: str
    """The last day, YYYY-MM-DD."""

    def __str__(self) -> str:
        """Return the sentence that reports print."""
        return f"waived until {self.expires} by {self.owner}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubts:
    """What the gate weighs beside the outcome of a rule."""

    is_incomplete: bool = False
    """Baseline or anchor lacks the value to compare with (exit 3)."""
    is_diluted: bool = False
    """A bound holds with the cases that were added or excluded, and not on the baseline's."""
    is_bare: bool = False
    """It fails by an estimate alone, beyond its bound by no more than chance explains."""
    open_evidence: str = ""
    """What would end the run without a pass if the rule did not fail: no waiver is about that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """What became of one rule: a bound of a metric in a slice, or a question about an outcome."""

    metric: str
    """Id of the metric, or name of the question: `parity/answers/baseline`."""
    suite: str
    where: Mapping[str, str]
    position: int
    """Index of the entry in the policy's `gates`."""
    outcome: Outcome
    reasons: Sequence[str]
    """One plain sentence for each check."""
    bounds: Mapping[str, float] = field(default_factory=dict)
    """`max`, `min`, `max_abs`, of parity also `regression` or `budget`."""
    value: float | None = None
    """Of parity the estimate of the node that is named first; None where nobody is."""
    interval: tuple[float, float] | None = None
    change: Change | None = None
    since_anchor: Change | None = None
    """How the value moved since the anchor; its `margin` is the rule's budget."""
    parity: ParityResult | None = None
    """The scan that decides; None for metrics."""
    failing: Sequence[NamedNode] = ()
    """Of parity, the named nodes beyond the limit."""
    advisory: bool = False
    is_reported: bool = False
    """The policy sets no limit for the value; it is only printed."""
    is_first_run: bool = False
    """Not evaluated only because there is no baseline yet, or no base commit to compare with."""
    failed: Sequence[str] = ()
    """Which checks failed: `bound`, `regression`, `budget`, `unreadable`, `parity`."""
    doubts: Doubts = Doubts()
    waiver: Waiver | None = None
    """What keeps this failure from stopping the build; the outcome stays `fail`."""

    @property
    def is_binding(self) -> bool:
        """Return whether a failure can stop the build: the rule has a limit and is not advisory."""
        return not (self.advisory or self.is_reported)

    @property
    def fails_gate(self) -> bool:
        """Return whether the build stops by this rule's failure: it is not advisory, nor waived."""
        return self.outcome is Outcome.FAIL and not self.advisory and self.waiver is None

    @property
    def against(self) -> Against | None:
        """What a question about an outcome compares with; None for metrics."""
        return None if self.parity is None else self.parity.against


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """How much of what was planned was decided."""

    planned: int
    decided: int
    invalid: int
    missing: Sequence[str]
    """Keys of cases without an answer."""
    problems: Sequence[str]
    """Why there is no verdict; empty where there is one."""
    undecided: Mapping[str, int] = field(default_factory=dict)
    """How many of `planned` were not decided, by reason: with `decided` they add up to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """How the run's cases relate to the baseline's."""

    compared: int
    new: Sequence[str]
    removed: Sequence[str]
    incompatible: Sequence[str]
    """Field-by-field differences of what must match; any of them ends with exit code 3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation:
    """P1's RQ1-2: the RRS above which answers count as degraded, and how well that predicts."""

    suite: str
    threshold: float | None
    auc: float | None
    stable_pairs: int
    flipped_pairs: int


MEASURING = "measuring embedder"
"""Under which name a run keeps the embedder that only measures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the answers of a system come from that is asked from outside."""

    asked: int
    """Answers that this run asked for."""
    stored: int
    """Answers that an earlier run asked for, under the same revision."""

    @property
    def sentence(self) -> str:
        """The sentence that reports print."""
        every = self.asked + self.stored
        if not self.stored:
            return f"All {every:,} answers were asked for in this run; none came from the store."
        return (
            f"{self.asked:,} of {every:,} answers were asked for in this run; {self.stored:,} came "
            "from the store, under the same `revision`: what changed without it is not in them."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a run comes from. Nothing in it changes between identical runs."""

    under_test: Mapping[str, str]
    """Model, corpus, embedder, prompt: what a comparison with the baseline compares."""
    environment: Mapping[str, str]
    """Processor features, GPU, library versions: reported, never compared."""
    fairgate: str
    policy_path: str
    commit: str = ""
    policy_sha256: str = ""
    """Of the policy's text; empty: not known."""

    @property
    def embedding_space(self) -> str:
        """The fingerprint of the model whose vectors give distances; empty: the default one's."""
        embedder = self.under_test.get(MEASURING) or self.under_test.get("embedder", "")
        return embedder.rpartition(" ")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributedPart:
    """One part of the violation rate beyond control prompts."""

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
    """Rate beyond control prompts that the parts add up to."""
    parts: Sequence[AttributedPart]
    pairs: int
    """Decided pairs, both arms."""
    equal_documents: int
    """Of these, pairs whose document lists are equal: nothing is asked for them."""
    crossed: int
    """Pairs that were crossed and read."""
    undecided: int
    """Crossed pairs with an undecided answer; others of their kind stand in for them."""


def short(fingerprint: str) -> str:
    """Return 12 hexadecimal digits that change with a fingerprint, or a text not to be shown."""
    return hashlib.sha256(fingerprint.encode()).hexdigest()[:12]


class Subject(StrEnum):
    """What a metric is about."""

    ANSWERS = "answers"
    DOCUMENTS = "documents"
    REFUSALS = "refusals"
    """Answers that cannot be read."""


class Better(StrEnum):
    """Which way a metric should go."""

    LOWER = "lower"
    HIGHER = "higher"
    TOWARD_ZERO = "toward-zero"
    """Signed: the smaller in size, the better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a metric is in the slice `where` of a suite; `where` is empty for the whole suite."""

    metric: str
    suite: str
    where: Mapping[str, str] = field(default_factory=dict)
    value: float | None = None
    """Fraction or score; None where nothing was decided or the metric is not evaluated."""
    interval: tuple[float, float] | None = None
    """Confidence interval at 0.95, clustered by source; None says why in `note`."""
    decided: int = 0
    inconclusive: int = 0
    violated: int | None = None
    """Decided pairs that violate the relation; None where the metric counts none."""
    note: str = ""


class Measurements:
    """Measurements by metric, suite and slice, in their order; the last of equal slices counts."""

    def __init__(self, measurements: Iterable[Measurement] = ()) -> None:
        """Index the measurements once; O(n)."""
        self._by_slice = {slice_of(m.metric, m.suite, m.where): m for m in measurements}

    def __iter__(self) -> Iterator[Measurement]:
        """Yield the measurements in their order."""
        return iter(self._by_slice.values())

    def get(
        self, metric: str, suite: str, where: Mapping[str, str] | None = None
    ) -> Measurement | None:
        """Return the measurement of exactly this slice; None where there is none."""
        return self._by_slice.get(slice_of(metric, suite, where or {}))

    def value(
        self, metric: str, suite: str, where: Mapping[str, str] | None = None
    ) -> float | None:
        """Return the value in exactly this slice; None where there is none."""
        measurement = self.get(metric, suite, where)
        return None if measurement is None else measurement.value

    def by(self, metric: str, suite: str, *dimensions: str) -> list[Measurement]:
        """Return the slices of a suite that name exactly these dimensions."""
        wanted = metric, suite, {*dimensions}
        return [m for m in self if (m.metric, m.suite, {*m.where}) == wanted]


def slice_of(metric: str, suite: str, where: Mapping[str, str]) -> Slice:
    """Return a slice's identity, whatever the order of its dimensions."""
    return metric, suite, frozenset(where.items())
