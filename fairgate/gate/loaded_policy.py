"""From a policy file to a plan: everything a run needs to know before a model is loaded.

Then whether the verdicts of a judge count: by its
record, as `fairgate judge evaluate` wrote it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgate.domain.cases import SYSTEM_RETRIEVER, TestPlan
from fairgate.domain.errors import DataError, PolicyError, Problem, UsageError
from fairgate.domain.ports import Runtime
from fairgate.domain.schema import JudgeModel, SystemModel
from fairgate.domain.wording import harmless, listed, quoted
from fairgate.gate.materials import SuiteMaterials
from fairgate.gate.rule_problems import (
    parity_problems,
    reference_problems,
    rule_problems,
    unknown_names,
)
from fairgate.gate.rules import standard_gates
from fairgate.gate.waivers import waiver_problems
from fairgate.io.named_files import existing
from fairgate.io.tables import read_json_object
from fairgate.metrics.catalogue import METRICS
from fairgate.policy.parse import ParsedPolicy, problem, readable_part
from fairgate.policy.schema import Policy
from fairgate.policy.yaml_text import YamlDocument, YamlFault, load_yaml, read_yaml_file
from fairgate.relations.oracles.judge import INSTRUCTIONS, JUDGE_RULE, PromptKind, kind_of_prompt
from fairgate.suites.catalogue import SUITE_KINDS
from fairgate.suites.suite import JudgeSetup, Setup, Suite
from fairgate.systems.catalogue import kind_of, policy_parts
from fairgate.systems.reference import reference_of

if TYPE_CHECKING:
    from fairgate.systems.system_kind import SystemKind

NO_BASELINE = "none"
"""What is named as the baseline where nothing is to be compared."""
RECORD_VERSION = 1
_UNMEASURED = {
    PromptKind.GENERAL: "was not measured on pairs of prompts and responses (`kind: general`)",
    PromptKind.NAMES: "was not measured on pairs that differ in a name (`kind: names`)",
    PromptKind.INVERTED: "was not measured on questions that hold the source's response "
    "(`kind: inverted`)",
    PromptKind.FOLLOW_UP: "was not measured on follow-ups alone (`kind: follow-up`)",
    PromptKind.OWN: "cannot be measured with the instruction of an own relation",
}
_LEAST_KAPPA, _LEAST_DECIDED, _LEAST_PAIRS = 0.4, 0.8, 20
"""What a judge's record must reach for its verdicts to count: agreement with people beyond chance,
share of the labelled pairs with a verdict, pairs with one. Estimates are compared."""
MOST_CASES = 2_000_000
"""Case limit for untrusted policies (`Runtime.confined`)."""


@dataclass(frozen=True, kw_only=True)
class LoadedPolicy:
    """A policy whose files are read and whose plan is made; no model is loaded."""

    parsed: ParsedPolicy
    suites: Mapping[str, Suite]
    """By id, in the order of the policy."""
    plan: TestPlan
    judge_record: Mapping[str, object] | None = None
    """What the policy's judge was measured to be worth; None where there is no record."""
    is_narrowed: bool = False
    """Whether only a part of its sources and items is asked."""

    @cached_property
    def questions(self) -> str:
        """Hash of all that the policy asks; empty where only a part of it is asked."""
        from fairgate.systems.recorded_answers import questions_hash

        return "" if self.is_narrowed else questions_hash(self.plan.cases)

    def questions_of(self, suite: str) -> str:
        """Return the hash of what a suite asks; empty where only a part of it is asked."""
        from fairgate.systems.recorded_answers import questions_hash

        if self.is_narrowed or len(self.suites) == 1:
            return self.questions
        return questions_hash(self.plan.cases_of(suite))

    @property
    def policy(self) -> Policy:
        """Return the policy itself."""
        return self.parsed.policy

    @property
    def is_judged(self) -> bool:
        """Return whether the policy's judge is asked about any pair."""
        return any(unit.verdicts for unit in self.plan.units)


class TooManyCasesError(UsageError):
    """A policy would plan more cases than it may; none of them is made."""

    def __init__(self, planned: int, most: int, why: str = "a confined run takes") -> None:
        """Take how many there would be, and how many may be."""
        self.planned = planned
        super().__init__(
            f"the policy plans up to {planned:,} cases (sources times terms, items times "
            f"settings), more than the {most:,} that {why}; set `limit`, or name fewer sources and "
            "terms"
        )


def load_policy(path: Path, runtime: Runtime, limit: int | None = None) -> LoadedPolicy:
    """Read a policy and all it names except models. Raises PolicyError with all problems.

    With a `limit`, about so many sources or items a suite are asked, for a quick trial run. Rules
    may name what is left out then: such a run decides nothing.
    """
    return load_policy_text(read_yaml_file(path), str(path), runtime, limit=limit)


def load_policy_text(
    text: str,
    shown_path: str,
    runtime: Runtime,
    *,
    most: int | None = None,
    limit: int | None = None,
) -> LoadedPolicy:
    """Like `load_policy`, but from text (a commit's, say).

    `most`: fewer cases than a confined run plans at most.
    """
    _, loaded, problems = loaded_part(text, shown_path, runtime, most=most, limit=limit)
    if loaded is None:
        raise PolicyError(problems)
    return loaded


def loaded_part(
    text: str,
    shown_path: str,
    runtime: Runtime,
    *,
    most: int | None = None,
    limit: int | None = None,
) -> tuple[ParsedPolicy | None, LoadedPolicy | None, list[Problem]]:
    """Return the readable part of a policy, the policy where all of it is right, and all problems.

    What depends on something that is wrong is not reported: it may be right. Raises UsageError if a
    confined run would plan too much.
    """
    parsed, problems = readable_part(text, shown_path, policy_parts())
    written = load_yaml(text, shown_path)
    problems += [written.problem(*each) for each in unknown_names(_entries(written, "gates"))]
    if parsed is None:
        return None, None, problems
    if not parsed.policy.gates and "gates" not in parsed.stand_ins:
        standard = parsed.policy.model_copy(update={"gates": standard_gates(parsed.policy)})
        parsed = replace(parsed, policy=standard)
    if limit is not None:
        suites_asked = [suite.narrowed(limit) for suite in parsed.policy.suites]
        part = parsed.policy.model_copy(update={"suites": suites_asked})
        parsed = replace(parsed, policy=part)
    later: list[Problem] = []
    record = None
    try:  # where it cannot be read, that is a problem of the policy
        record = read_record(parsed.policy.judge, runtime)
    except DataError as error:
        later.append(problem(parsed, ("judge", "record"), str(error)))
    suites = _load_suites(parsed, runtime, later, record)
    # Counted before any of them is made.
    planned = sum(suite.size() for suite in suites.values()) if runtime.confined else 0
    most = MOST_CASES if most is None else min(most, MOST_CASES)
    if planned > most:
        raise TooManyCasesError(planned, most)
    plans: dict[str, TestPlan] = {}
    for position, model in enumerate(parsed.policy.suites):
        if model.id in suites:
            try:
                plans[model.id] = suites[model.id].plan()
            except DataError as error:  # what forbids a plan is a problem of its suite
                later.append(problem(parsed, ("suites", position), str(error)))
    plan = joined(plans.values())
    ids = [row.get("id") for row in _entries(written, "suites")]
    named = [name if isinstance(name, str) else "" for name in ids]
    lost = {name for name in named if name not in plans}
    lost |= {"", *named} if len(set(named)) < len(named) else set()
    found: list[YamlFault] = []
    if limit is None:
        found += parity_problems(parsed.policy, suites, plan, lost)
        found += rule_problems(parsed.policy, plan, lost)
    found += [
        *reference_problems(parsed.policy, plan, parsed.stand_ins),
        *_valueless(parsed.policy, suites),
    ]
    if limit is None and not lost:
        found += waiver_problems(parsed.policy, plan, suites, runtime.today)
    # What each system names that is not there, and what it cannot answer.
    for name, kind, place in systems_of(parsed, runtime):
        labels = kind.placed_labels()
        wrong = [*kind.missing(place), *(labels.problems(runtime) if labels else ())]
        found += [((name, *where), sentence) for where, sentence in wrong]
        found += unanswerable(kind, plan, name)
    if parsed.policy.compares_with_base and "system" not in parsed.stand_ins:
        why = kind_of(parsed.policy.system).lacks_base_version()
        found += [(("reference",), f"`base` cannot be compared with: {why}")] if why else []
    later += [problem(parsed, *each) for each in found]
    reported = {(each.path, each.line, each.column) for each in problems}
    problems += [each for each in later if (each.path, each.line, each.column) not in reported]
    if problems:
        return parsed, None, list(dict.fromkeys(problems))
    loaded = LoadedPolicy(
        parsed=parsed,
        suites=suites,
        plan=plan,
        judge_record=record,
        is_narrowed=limit is not None,
    )
    return parsed, loaded, []


def _valueless(policy: Policy, suites: Mapping[str, Suite]) -> Iterator[YamlFault]:
    """Yield every gate about a suite that lacks what the column of its metric needs.

    And every one whose metric can have a value in none of its suites.
    """
    for position, gate in policy.bounds:
        metric = METRICS.get(gate.metric)
        if metric is None:
            continue
        place = "gates", position, "metric"
        kind = metric.units.suite_kind
        own = [s for s in suites.values() if s.kind == kind and gate.suite in (None, s.id)]
        for suite in own if metric.needs.lacking else ():
            if metric.column not in suite.columns:
                yield place, f"{metric.id} {metric.needs.lacking.format(suite=quoted(suite.id))}"
        reasons = [suite.lacks(metric.column) for suite in own]
        if reasons and all(reasons):
            names = listed((suite.id for suite in own), last="and")
            sentence = (
                f"{gate.metric} can have no value in {names}: {reasons[0]}; remove the rule, or "
                "let the suite ask for answers (a `generator`, no `retrieve_only`)"
            )
            yield place, sentence


def systems_of(parsed: ParsedPolicy, runtime: Runtime) -> Iterator[tuple[str, SystemKind, Runtime]]:
    """Yield `system` and `reference` as far as they are known, and how their files are read."""
    policy = parsed.policy
    if "system" not in parsed.stand_ins:
        yield "system", kind_of(policy.system), runtime.under_test
    reference = reference_of(policy, runtime)
    if reference is not None and "reference" not in parsed.stand_ins:
        yield "reference", *reference


def unanswerable(system: SystemModel, plan: TestPlan, name: str = "system") -> Iterator[YamlFault]:
    """Yield what suites ask that a system cannot answer, at its place: `system` or `reference`."""
    kind = kind_of(system)
    can = kind.capabilities()
    changing = (case.suite for case in plan.cases if case.changed is not None)
    for suite in () if can.takes_changed else sorted({*changing}):
        sentence = (
            f"suite {quoted(suite)} changes documents, which this system is not given: place "
            "`{{changed}}` in its request, name `changed` in `takes`, or record answers by key"
        )
        yield (name,), sentence
    if not can.repeatable:
        return  # what a recording's system could do is not known
    own = (None, SYSTEM_RETRIEVER)
    scored = (case.suite for case in plan.cases if case.scored)
    handed = (case.suite for case in plan.cases if case.retriever not in own)
    for suite in () if can.scores_options else sorted({*scored}):
        sentence = (
            f"suite {quoted(suite)} compares the probabilities of options (`read: scored`), which "
            f"a system of kind `{kind.id}` does not return; set `read: generated`"
        )
        yield (name,), sentence
    degrees = {case.suite: case.is_generated for case in plan.cases if case.forms}
    for suite, is_generated in sorted(degrees.items()):
        if not (can.gives_degrees if is_generated else can.scores_options):
            sentence = (
                f"suite {quoted(suite)} asks how probable each label is, which a system of kind "
                f"`{kind.id}` does not tell{' without generating' * can.gives_degrees}; "
                + ("set `read: [labels, degrees]`" if can.gives_degrees else "take `degrees` out")
            )
            yield (name,), sentence
    conversing = (case.suite for case in plan.cases if case.before)
    for suite in () if can.speaks_in_turns else sorted({*conversing}):
        sentence = (
            f"suite {quoted(suite)} asks in conversations, which this system does not hold; give "
            "its request a place for `{{session}}` or `{{messages}}`, name `turns` in `takes`, or "
            "name a `generator.endpoint`"
        )
        yield (name,), sentence
    for suite in () if can.takes_documents else sorted({*handed}):
        sentence = (
            f"suite {quoted(suite)} shows documents of its own, which this system does not take; "
            "give its request a place for `{{documents}}`, name `documents` in `takes`, or ask "
            "with `settings: [none]` alone"
        )
        yield (name,), sentence


def _entries(document: YamlDocument, key: str) -> list[dict[str, Any]]:
    """Return the raw entries of one of a document's lists, valid or not."""
    entries = document.data.get(key) if isinstance(document.data, dict) else None
    rows = entries if isinstance(entries, list) else []
    return [row if isinstance(row, dict) else {} for row in rows]


def joined(plans: Iterable[TestPlan]) -> TestPlan:
    """Return one plan of all suites, in their order."""
    parts = list(plans)
    return TestPlan(
        cases=[case for part in parts for case in part.cases],
        units=[unit for part in parts for unit in part.units],
        rejected=[rejected for part in parts for rejected in part.rejected],
    )


def _load_suites(
    parsed: ParsedPolicy,
    runtime: Runtime,
    problems: list[Problem],
    record: Mapping[str, object] | None,
) -> dict[str, Suite]:
    policy, named = parsed.policy, parsed.policy.judge
    judge = None
    if "judge" in parsed.stand_ins:
        judge = JudgeSetup(count=1, definition="", proven=frozenset())
    elif named is not None:
        proven = frozenset(k for k in INSTRUCTIONS if not any(shortcomings(named, record, kind=k)))
        judge = JudgeSetup(
            count=len(named.names),
            definition=named.definition,
            proven=proven,
            shows_pair=named.shows == "pair",
        )
    can = kind_of(policy.system).capabilities()
    suites: dict[str, Suite] = {}
    for position, model in enumerate(policy.suites):
        setup = Setup(
            seed=policy.seed,
            retriever=SYSTEM_RETRIEVER if can.gives_documents else None,
            top_k=can.top_k,
            takes_documents=can.takes_documents,
            answers=can.answers,
            judge=judge,
            has_reference=isinstance(policy.reference, SystemModel)
            or (policy.compares_with_base and runtime.base.answers),
            lacks_base="" if not policy.compares_with_base else runtime.base.lacking,
        )
        materials = SuiteMaterials(parsed, position, runtime, problems)
        suite = SUITE_KINDS[model.kind].load(model, setup, materials)
        if suite is not None:
            suites[model.id] = suite
    return suites


def read_record(judge: JudgeModel | None, runtime: Runtime) -> Mapping[str, object] | None:
    """Return the record that the policy names; None where it names none. Raises DataError."""
    if judge is None or judge.record is None:
        return None
    record = read_json_object(existing(judge.record, runtime.root, confined=runtime.confined))
    if record.get("schema_version") != RECORD_VERSION:
        raise DataError(
            f"{judge.record}: 'schema_version' is {str(record.get('schema_version'))[:40]!r}, "
            f"expected {RECORD_VERSION}: write the record with `fairgate judge evaluate --out`"
        )
    for names, kind, expected in (
        (("definition", "fingerprints", "rule"), str, "a text"),
        (("pairs", "decided"), int, "a number of pairs"),
    ):
        for name in names:
            if type(record.get(name)) is not kind:
                raise DataError(
                    f"{judge.record}: {name!r} holds {str(record.get(name))[:60]!r}, expected "
                    f"{expected}: write the record with `fairgate judge evaluate --out`"
                )
    return record


def shortcomings(
    judge: JudgeModel,
    record: Mapping[str, Any] | None,
    fingerprints: str | None = None,
    *,
    kind: PromptKind = PromptKind.GENERAL,
) -> Iterator[str]:
    """Yield why verdicts by prompts of a kind fail no build; nothing where the record suffices.

    `fingerprints` are those of the models that judged; None: not looked at yet.
    """
    if record is None:
        yield "has no record: measure it with `fairgate judge evaluate` and name that as `record`"
        return
    if record["definition"] != judge.definition:
        yield (
            f"is another one than its record {quoted(judge.record or '')} was measured with: "
            "models, prompts or decoding differ"
        )
    elif fingerprints is not None and record["fingerprints"] != fingerprints:
        yield (
            f"consists of other models than its record was measured with: {harmless(fingerprints)} "
            f"instead of {harmless(str(record['fingerprints'])[:400])}"
        )
    if record["rule"] != JUDGE_RULE:
        yield f"was measured by the rule {harmless(str(record['rule'])[:40])}, now {JUDGE_RULE}"
    figures = record if kind is PromptKind.GENERAL else record.get(kind)
    if not isinstance(figures, dict) or not figures.get("pairs"):
        yield _UNMEASURED[kind]
        return
    pairs, decided = figures["pairs"], figures.get("decided")
    if type(pairs) is not int or type(decided) is not int:
        yield f"has no number of pairs under {kind.value!r} in its record"
        return
    if decided < _LEAST_PAIRS:
        yield f"was measured on {decided} pairs with a verdict, below the floor of {_LEAST_PAIRS}"
    if not pairs > 0 or decided < _LEAST_DECIDED * pairs:
        yield (
            f"had a verdict for {decided} of {pairs} pairs, a smaller share than the floor of "
            f"{_LEAST_DECIDED:g}"
        )
    figure = figures.get("kappa")
    kappa = figure.get("value") if isinstance(figure, dict) else None
    if isinstance(kappa, bool) or not isinstance(kappa, int | float) or not math.isfinite(kappa):
        kappa = None
    if kappa is None or kappa < _LEAST_KAPPA:
        figure_text = "not measured" if kappa is None else f"{float(kappa):g}"
        yield f"has kappa {figure_text} in its record, below the floor of {_LEAST_KAPPA:g}"


def judge_notices(loaded: LoadedPolicy, fingerprints: str | None = None) -> list[str]:
    """Return why the judge's verdicts fail no build; nothing where they do, or none is asked.

    `fingerprints` are those of the models that judged; None: not looked at yet.
    """
    judge = loaded.policy.judge
    if judge is None or not loaded.is_judged:
        return []
    reasons = {
        kind: why
        for kind in dict.fromkeys(_kinds(loaded.plan).values())
        if (why := tuple(shortcomings(judge, loaded.judge_record, fingerprints, kind=kind)))
    }
    return [
        f"the judge {quoted(judge.id)} {'; it '.join(why)}. Its verdicts"
        f"{_of_kinds([kind for kind in reasons if reasons[kind] == why], loaded.plan)} "
        "are reported and fail no build"
        for why in dict.fromkeys(reasons.values())
    ]


def _of_kinds(kinds: Sequence[PromptKind], plan: TestPlan) -> str:
    """Return which verdicts are meant; empty where all that are asked are."""
    if set(kinds) == set(_kinds(plan).values()):
        return ""
    return f" by the prompts {listed([kind.value for kind in kinds])}"


def _kinds(plan: TestPlan) -> dict[tuple[str, str], PromptKind]:
    """Return the kind of prompt of every case that a judge is asked, by suite and key."""
    judged = (case for case in plan.cases if case.judge is not None)
    return {(case.suite, case.key): kind_of_prompt(case.instruction) for case in judged}


def unproven(
    plan: TestPlan, judge: JudgeModel, record: Mapping[str, Any] | None, who: str
) -> TestPlan:
    """Return the plan with the pairs marked whose verdicts are reported and fail no build.

    `who` are the fingerprints of the models that judge.
    """
    kinds = _kinds(plan)
    lacking = {k for k in set(kinds.values()) if any(shortcomings(judge, record, who, kind=k))}
    units = [
        unit._replace(is_unproven=True, advisory=True)
        if unit.verdicts and kinds.get((unit.suite, unit.verdicts[0])) in lacking
        else unit
        for unit in plan.units
    ]
    return replace(plan, units=units)
