"""Is anybody treated differently, and worse than before? The one place that decides parity.

An outcome's columns become matrices of sources by prompts, of which `stats/scan.py` says who
differs from control prompts. *Now* asks this of the run, *since* of each case's change from an
accepted run, the control prompts' own change subtracted, *beside the reference* of the difference
between two systems. All scans of a run that ask alike share one level, whatever the policy names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from fairgate.domain.outcomes import Doubts, Outcome, RuleResult
from fairgate.domain.parity import (
    SCORE,
    Against,
    ColumnBand,
    IdentityEstimate,
    Level,
    NamedNode,
    ParityResult,
    Person,
)
from fairgate.domain.units import UNREPORTED, UNREPORTED_TEXTS
from fairgate.domain.wording import first_few, in_own_unit, listed, probability
from fairgate.gate.baseline import AcceptedRun
from fairgate.gate.changes import HALF, Comparison, lacks_base
from fairgate.gate.measure import rounded
from fairgate.gate.rules import ParityRule, outcomes_of
from fairgate.metrics.metric import Table
from fairgate.metrics.parity import OutcomeColumn, ParityOutcome
from fairgate.policy.schema import ALL, Policy
from fairgate.stats.observations import Floats, Integers
from fairgate.stats.phrases import carrying
from fairgate.stats.scan import (
    FEWEST_CONTROLS,
    NodeEstimate,
    Plan,
    ScanResult,
    Sided,
    needed_sources,
    nodes_of,
    noise_of,
    scan,
    scan_each,
)
from fairgate.suites.suite import Suite

SINCE = {Against.BASELINE: AcceptedRun.BASELINE, Against.ANCHOR: AcceptedRun.ANCHOR}
"""Questions about an accepted run, and which."""
_ACCEPT = {Against.BASELINE: "accept", Against.ANCHOR: "anchor"}
_FAILED = {Against.BASELINE: "regression", Against.ANCHOR: "budget"}
"""What a failure is called that is no difference of now."""
_ROUNDING = 1e-6
"""As far as another processor moves a probability: no noise that a reach could rest on."""
_FEWEST_CONTROLS = 2
"""Control prompts without which identities are compared with each other."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prompts:
    """The prompts of a suite in a slice: which rows of its table answer which.

    Identities come first, category by category, then control prompts. An identity that is said in
    several ways (phrases, relations) is one prompt, and its value the mean of them. Names name a
    group whoever they are given to, so a group is compared with the names of all groups: each is a
    control prompt, asked in some of the sources, less what its own group differs by.
    """

    persons: Sequence[Person]
    """Category and term; a term that is empty stands for the whole category, or everybody."""
    holds: Mapping[Person, Sequence[Person]]
    """Whom each of them stands for."""
    phrases: Sequence[float]
    """How many phrases say each of them: as many that are asked equally often weigh alike."""
    said: Mapping[Person, Mapping[str, _Rows]]
    """The rows of each phrase, of those that several say."""
    controls: int
    groups: Sequence[Person | None]
    """Of which group each control prompt is a name; None where it is none."""
    rows: npt.NDArray[np.int64]
    """Rows [n] of the table that count."""
    cells: npt.NDArray[np.int64]
    """Where each lies [n] in the flattened matrix of sources by prompts."""
    sources: int
    is_mutual: bool = False
    """Whether identities stand beside each other, for lack of control prompts: the others are the
    sample of wording then."""

    @classmethod
    def of(cls, table: Table, where: Mapping[str, str]) -> Prompts:
        """Find them; of control prompts only the relation is narrowed.

        Identities that fewer than half of the sources are asked about (attributes that each source
        has of its own) are one prompt for their category, or for everybody.
        """
        counted = table.counted_rows(where)
        inside = {name: level for name, level in where.items() if name == "relation"}
        is_person = ~table.control & counted & table.slice_mask(where)
        is_control = table.control & counted & table.slice_mask(inside)
        sources = len(table.cluster_names)
        people, controls = _rows_of(table, is_person), list[_Rows]()
        groups: list[Person | None] = []
        for group, rows in _rows_of(table, is_control).items():
            for name, own in _phrases(table, rows).items():
                controls.append(own)
                groups.append(group if name else None)
        holds = {person: [person] for person in people}
        for is_whole in (False, True):
            people, holds = _merged(people, holds, table, is_whole=is_whole)
        order = {name: n for n, name in enumerate(dict.fromkeys(name for name, _ in people))}
        persons = sorted(people, key=lambda person: order[person[0]])
        is_mutual = len(controls) < _FEWEST_CONTROLS
        if is_mutual:
            controls, groups = [], []
        of_prompts = [*(people[person] for person in persons), *controls]
        width = len(of_prompts)
        phrases_of = {person: _phrases(table, people[person]) for person in persons}
        taken = np.concatenate([*of_prompts, _NO_ROWS])
        columns = np.repeat(np.arange(width), [len(own) for own in of_prompts])
        return cls(
            persons=persons,
            holds={person: holds[person] for person in persons},
            phrases=[_equal(list(map(len, phrases_of[person].values()))) for person in persons],
            said={person: phrases for person, phrases in phrases_of.items() if len(phrases) > 1},
            controls=len(controls),
            groups=groups,
            rows=taken,
            cells=table.clusters[taken] * width + columns,
            sources=sources,
            is_mutual=is_mutual,
        )

    @property
    def categories(self) -> dict[str, list[str]]:
        """Category to the labels of its identities."""
        categories: dict[str, list[str]] = {}
        for person in self.persons:
            categories.setdefault(person[0], []).append(label_of(person))
        return categories

    @property
    def shape(self) -> tuple[int, int]:
        """Sources, prompts."""
        return self.sources, len(self.persons) + self.controls

    def matrix(self, values: Floats) -> Floats:
        """Return the values of rows as [sources, prompts]; NaN where none is decided."""
        of_rows = values[self.rows]
        is_decided = ~np.isnan(of_rows)
        size = self.shape[0] * self.shape[1]
        counts = np.bincount(self.cells[is_decided], minlength=size)
        sums = np.bincount(self.cells[is_decided], weights=of_rows[is_decided], minlength=size)
        with np.errstate(invalid="ignore"):
            means = np.where(counts > 0, sums / counts, np.nan)
        matrix = np.asarray(means.reshape(self.shape))
        self._take_groups_out(matrix[:, len(self.persons) :])
        return matrix

    def in_phrases(self, person: Person, values: Floats, clusters: Integers) -> Floats:
        """Return the values of rows as [sources, phrases] of a person; NaN where none is asked."""
        phrases = self.said[person].values()
        matrix = np.full((self.sources, len(phrases)), np.nan)
        for place, rows in enumerate(phrases):
            decided = rows[~np.isnan(values[rows])]
            counts = np.bincount(clusters[decided], minlength=self.sources)
            sums = np.bincount(clusters[decided], values[decided], minlength=self.sources)
            matrix[:, place] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return matrix

    def _take_groups_out(self, controls: Floats) -> None:
        """Bring names of every group to the mean of all groups of their category."""
        for category in {group[0] for group in self.groups if group is not None}:
            columns: dict[Person, list[int]] = {}
            for place, group in enumerate(self.groups):
                if group is not None and group[0] == category:
                    columns.setdefault(group, []).append(place)
            means = {
                group: float(np.nanmean(controls[:, places]))
                for group, places in columns.items()
                if not np.isnan(controls[:, places]).all()
            }
            for group, mean in means.items():
                controls[:, columns[group]] -= mean - sum(means.values()) / len(means)

    @property
    def must_be_there(self) -> npt.NDArray[np.bool_]:
        """Which cells [sources, prompts] a scan expects: all but names that are not asked for."""
        expected = np.ones(self.shape, dtype=bool)
        named = [len(self.persons) + n for n, group in enumerate(self.groups) if group is not None]
        expected[:, named] = self.is_asked[:, named]
        return expected

    @property
    def is_asked(self) -> npt.NDArray[np.bool_]:
        """Which sources [sources, prompts] were asked for which prompt."""
        size = self.shape[0] * self.shape[1]
        return np.asarray(np.bincount(self.cells, minlength=size).reshape(self.shape) > 0)


_Rows = npt.NDArray[np.int64]
_NO_ROWS = np.empty(0, dtype=np.int64)


def _rows_of(table: Table, selected: npt.NDArray[np.bool_]) -> dict[Person, _Rows]:
    """Return the rows of each category and term, in the order of the plan."""
    rows = np.flatnonzero(selected)
    names = table.dimension("category").names, table.dimension("term").names
    categories, terms = (table.dimension(name).codes[rows] for name in ("category", "term"))
    codes = categories.astype(np.int64) * max(1, len(names[1])) + terms
    used, first, places = np.unique(codes, return_index=True, return_inverse=True)
    grouped = np.split(rows[np.argsort(places, kind="stable")], np.cumsum(np.bincount(places))[:-1])
    found = {}
    for number in np.argsort(first).tolist():
        category, term = divmod(int(used[number]), max(1, len(names[1])))
        found[names[0][category], names[1][term]] = grouped[number]
    return found


def _phrases(table: Table, rows: _Rows) -> dict[str, _Rows]:
    """Return the rows of each phrase; of "" those that say nobody in several."""
    if "phrase" not in table.dimensions:
        return {"": rows}
    phrases = table.dimension("phrase")
    codes = phrases.codes[rows]
    used = sorted((phrases.names[code], code) for code in np.unique(codes).tolist())
    return {phrase: rows[codes == code] for phrase, code in used}


def _equal(counts: Sequence[int]) -> float:
    """Return how many phrases asked equally often are as good as some asked so often."""
    return rounded(sum(counts) ** 2 / sum(count**2 for count in counts))


def _merged(
    people: Mapping[Person, _Rows],
    holds: Mapping[Person, list[Person]],
    table: Table,
    *,
    is_whole: bool,
) -> tuple[dict[Person, _Rows], dict[Person, list[Person]]]:
    """Put those that few sources are asked about together: by category, or all of them."""

    def coarser(person: Person) -> Person:
        return ("" if is_whole else person[0], "")

    # Of the sources that are left: a table of some rows keeps the names of all.
    least = HALF * _sources(table, np.concatenate([*people.values(), _NO_ROWS]))
    sparse = {coarser(person) for person, rows in people.items() if _sources(table, rows) < least}
    parts: dict[Person, list[_Rows]] = {}
    members: dict[Person, list[Person]] = {}
    for person, rows in people.items():
        group = coarser(person) if coarser(person) in sparse else person
        parts.setdefault(group, []).append(rows)
        members.setdefault(group, []).extend(holds[person])
    rows_of = {group: np.concatenate(several) for group, several in parts.items()}
    return rows_of, members


def _sources(table: Table, rows: _Rows) -> int:
    """Return how many sources some rows are about."""
    return int(np.count_nonzero(np.bincount(table.clusters[rows])))


def label_of(person: Person) -> str:
    """Return an identity as keys have it: `race/black`."""
    return "/".join(filter(None, person)) or Level.EVERYBODY


def varies(values: Floats) -> bool:
    """Return whether prompts [sources, prompts] of a source differ."""
    return bool((np.fmax.reduce(values, axis=1) > np.fmin.reduce(values, axis=1)).any())


Columns = Mapping[str, Floats]
"""Column of an outcome to its values [sources, prompts], more is worse."""
InPhrases = Callable[[str, Person], Floats | None]
"""Column and identity to its values [sources, phrases], more is worse; None where one says it."""


def columns_of(columns: Iterable[OutcomeColumn], table: Table, prompts: Prompts) -> Columns:
    """Return the columns that a table has a value in; none where the first has no instrument."""
    found: dict[str, Floats] = {}
    for place, column in enumerate(columns):
        if not place and column.column in table.not_evaluated:
            break
        values = column.of(table)
        if values is not None and not np.isnan(values).all():
            found[column.column] = prompts.matrix(values)
    return found


def _in_phrases_of(outcome: ParityOutcome, table: Table, prompts: Prompts) -> InPhrases:
    """Return what gives the values of each phrase, of identities that several say."""

    def in_phrases(column: str, person: Person) -> Floats | None:
        values = outcome.by_column[column].of(table)
        if values is None or person not in prompts.said:
            return None
        return prompts.in_phrases(person, values, table.clusters)

    return in_phrases


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParityQuestion:
    """A scan before its level is known: an outcome of a suite, and what it is compared with."""

    suite: str
    outcome: ParityOutcome
    against: Against
    prompts: Prompts
    columns: Columns
    """What is scanned."""
    now: Columns
    """The same columns of this run."""
    measured: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    """Where the suite measured them: else an answer counts by something coarser, or not at all."""
    before: Columns = field(default_factory=dict)
    """And of the run that is compared with, where there is one."""
    in_phrases: InPhrases = lambda *_: None
    """What is scanned, phrase by phrase."""
    lacking: str = ""
    """Why there is nothing to scan."""
    lacks_base: bool = False
    """Whether that is because no base commit is known."""
    is_open: str = ""
    """Which column, or which relation, of the suite has no values, and why: the others alone let
    nobody pass."""

    @property
    def varies(self) -> bool:
        """Return whether prompts of a source differ in anything: else nothing is tested."""
        return any(map(varies, self.columns.values()))

    def scanned(self, alpha: float) -> Callable[[int], ScanResult]:
        """Scan; the result follows from how many scans share the level."""
        shares = {column.column: column.share for column in self.outcome.asked(self.against)}
        if self.prompts.is_mutual:
            people = len(self.prompts.persons)
            return partial(
                scan_each,
                {name: values[:, :people] for name, values in self.columns.items()},
                nodes_of(self.prompts.categories),
                shares=shares,
                sided=self.sided,
                alpha=alpha,
            )
        return scan(
            self.columns,
            nodes_of(self.prompts.categories),
            identities=len(self.prompts.persons),
            phrases=self.prompts.phrases or 1,
            asked=self.prompts.must_be_there,
            shares=shares,
            sided=self.sided,
            alpha=alpha,
        ).among

    @property
    def sided(self) -> Sided:
        """Which differences count: since an accepted run only those to the worse."""
        return "worse" if self.against in SINCE else "two"

    @property
    def undecided(self) -> dict[str, list[str]]:
        """By identity, the columns that measure less than half of its answers where controls' are.

        Or in which control prompts are measured in less than half of its sources.
        """
        asked, people = self.prompts.is_asked, len(self.prompts.persons)
        found: dict[str, list[str]] = {}
        for column, is_there in self.measured.items():
            has_control = is_there[:, 0 if self.prompts.is_mutual else people :].any(axis=1)
            for place, person in enumerate(self.prompts.persons):
                rows = asked[:, place] & has_control
                is_alone = rows.sum() < HALF * asked[:, place].sum()
                if is_alone or (rows.any() and is_there[rows, place].mean() < HALF):
                    found.setdefault(label_of(person), []).append(column)
        return found


def parity_question(
    outcome: ParityOutcome,
    against: Against,
    table: Table,
    comparison: Comparison,
    where: Mapping[str, str],
) -> ParityQuestion:
    """Return the question that a scan answers for an outcome of a suite."""
    accepted = SINCE.get(against)
    before = None
    if accepted is not None:
        suite = comparison.suite(table.suite, accepted)
        if suite is None:
            return _nothing(outcome, against, table, where, _why_not(against, comparison))
        base = comparison.rows(suite, table, accepted)
        table, before = _side_by_side(table, base)
    prompts = Prompts.of(table, where)
    if not prompts.persons:
        runs = "this run" if before is None else f"this run and the {against}"
        why = f"there is nobody in this slice about whom {runs} asked alike"
        return _nothing(outcome, against, table, where, why)
    sources = _sources(table, prompts.rows)
    if before is None and sources < outcome.least_sources:
        why = f"{sources:,} sources are too few for `{outcome.id}`: it takes "
        why += f"{outcome.least_sources:,}"
        return _nothing(outcome, against, table, where, why)
    now = columns_of(outcome.asked(against), table, prompts)
    in_phrases = _in_phrases_of(outcome, table, prompts)
    uncontrolled = _uncontrolled(outcome, against, table, where)
    measured = {name: ~np.isnan(prompts.matrix(table.values[name])) for name in now}
    ask = partial(
        ParityQuestion, suite=table.suite, outcome=outcome, against=against, prompts=prompts
    )
    if before is None:
        return ask(
            columns=now,
            now=now,
            measured=measured,
            in_phrases=in_phrases,
            lacking="" if now else uncontrolled or _absent(outcome, against, table),
            is_open=uncontrolled or _without_values(outcome, against, table, now),
            lacks_base=not now and any(lacks_base(c.column, table) for c in outcome.asked(against)),
        )
    then = columns_of(outcome.asked(against), before, prompts)
    both = [name for name in now if name in then]
    change = {name: now[name] - then[name] for name in both}
    said_then = _in_phrases_of(outcome, before, prompts)

    def changed(column: str, person: Person) -> Floats | None:
        own, old = in_phrases(column, person), said_then(column, person)
        return None if own is None or old is None else own - old

    lacking = ""
    if not both:
        lacking = f"the {against} has nothing comparable for the outcome `{outcome.id}`"
        lacking += f"; `fairgate baseline {_ACCEPT[against]}` a run that has it"
    return ask(
        columns=change,
        now={name: now[name] for name in both},
        before={name: then[name] for name in both},
        measured={name: measured[name] for name in both},
        in_phrases=changed,
        lacking=lacking,
        is_open=uncontrolled,
    )


def _uncontrolled(
    outcome: ParityOutcome, against: Against, table: Table, where: Mapping[str, str]
) -> str:
    """Name the relations of a slice without a value for lack of control prompts of their own.

    Beside other relations their rows would count for nothing, and whoever they harm would pass.
    """
    main = next((c.column for c in outcome.asked(against) if c.column in table.values), None)
    if main is None or "relation" not in table.dimensions:
        return ""
    asked = ~table.control & table.counted_rows(where) & table.slice_mask(where)
    has_value = set(table.levels("relation", asked & ~np.isnan(table.values[main])))
    has_control = set(table.levels("relation", table.control))
    relations = table.levels("relation", asked)
    lacking = [name for name in relations if name not in has_value | has_control]
    if not lacking:
        return ""
    who = f"relation {lacking[0]} asks" if len(lacking) == 1 else f"relations {listed(lacking)} ask"
    return (
        f"{who} no control prompts to compare answers with: return follow-ups with `control=True` "
        "for the terms of the suite's control set, or bound `asr/generation` in a suite of its own"
    )


def _without_values(outcome: ParityOutcome, against: Against, table: Table, now: Columns) -> str:
    """Name a column of a table that has nothing to scan; columns a suite lacks are not in it.

    What a system reports of its documents is its own business: other columns are scanned without.
    """
    for column in outcome.asked(against):
        why = table.not_evaluated.get(column.column, "nothing was decided")
        is_told = why not in (UNREPORTED, UNREPORTED_TEXTS)
        if is_told and column.column in table.values and column.column not in now:
            return f"whether answers {column.event} is not known: {why}"
    return ""


def _side_by_side(table: Table, base: Table) -> tuple[Table, Table]:
    """Return the rows of cases that both have, one by one, with the sources numbered alike."""
    if list(table.keys) != list(base.keys):
        rows = {key: row for row, key in enumerate(base.keys)}
        shared = [row for row, key in enumerate(table.keys) if key in rows]
        base = base.of_rows(np.asarray([rows[table.keys[row]] for row in shared], np.int64))
        table = table.of_rows(np.asarray(shared, dtype=np.int64))
    return table, replace(base, clusters=table.clusters, cluster_names=table.cluster_names)


def _nothing(
    outcome: ParityOutcome, against: Against, table: Table, where: Mapping[str, str], why: str
) -> ParityQuestion:
    prompts = Prompts.of(table, where)
    return ParityQuestion(
        suite=table.suite, outcome=outcome, against=against, prompts=prompts, columns={}, now={},
        lacking=why,
    )  # fmt: skip


def _why_not(against: Against, comparison: Comparison) -> str:
    accepted = SINCE[against]
    if accepted not in comparison.runs:
        return f"first run: there is no {against} to compare with yet"
    if accepted in comparison.unfit:
        return f"the {against} was made under other conditions, see the differences"
    return (
        f"the {against} has no such suite: `fairgate baseline {_ACCEPT[against]}` a run that has it"
    )


def _absent(outcome: ParityOutcome, against: Against, table: Table) -> str:
    reasons = (table.not_evaluated.get(column.column) for column in outcome.asked(against))
    return next(filter(None, reasons), "nothing was decided")


def judge_parity(
    policy: Policy,
    suites: Mapping[str, Suite],
    rules: Sequence[ParityRule],
    tables: Mapping[str, Table],
    comparison: Comparison,
) -> list[RuleResult]:
    """Return the result of every question about an outcome, suite by suite."""
    by_level = (
        ((Against.CONTROL,), policy.level),
        ((Against.BASELINE, Against.ANCHOR), policy.regression_level),
        ((Against.REFERENCE,), policy.level),
    )
    # What one level scanned is gone before the next one is: it takes as much memory as a table.
    return [
        result
        for asked, alpha in by_level
        for result in _judge_level(asked, alpha, suites, rules, tables, comparison)
    ]


def _judge_level(
    asked: Sequence[Against],
    alpha: float,
    suites: Mapping[str, Suite],
    rules: Sequence[ParityRule],
    tables: Mapping[str, Table],
    comparison: Comparison,
) -> list[RuleResult]:
    """Return the results of the questions that share a level."""
    questions: dict[object, ParityQuestion] = {}
    asking: list[tuple[ParityRule, ParityQuestion]] = []
    for rule in rules:
        table = tables[rule.suite]
        if rule.against not in asked or _is_unreported(rule, table, comparison):
            continue
        key = rule.suite, rule.outcome.id, rule.against, tuple(sorted(rule.gate.where.items()))
        if key not in questions:
            where = rule.gate.where
            questions[key] = parity_question(rule.outcome, rule.against, table, comparison, where)
        asking.append((rule, questions[key]))
    if not asking:
        return []
    # What the suites have is looked at, whatever the policy names.
    family = [*questions.values(), *_others(asked, questions, suites, tables, comparison)]
    scans = scans_of(family, alpha)
    varied = sum(question.varies for question in scans)
    return [
        _undiluted(
            rule,
            _result(rule, question, scans.get(question), alpha, varied),
            tables[rule.suite],
            comparison,
            alpha,
        )
        for rule, question in asking
    ]


def _is_unreported(rule: ParityRule, table: Table, comparison: Comparison) -> bool:
    """Return whether `all` means an outcome that the system does not report, now or ever.

    Whether an application hands its documents over is known once it has answered. Where an
    accepted run has them, the question stays: it has no verdict.
    """
    columns = rule.outcome.asked(rule.against)
    accepted = (run.suites.get(rule.suite) for run in comparison.runs.values())
    return (
        rule.gate.parity == ALL
        and all(
            table.not_evaluated.get(column.column) == UNREPORTED
            for column in columns
            if column.column in table.values
        )
        and all(column.of(suite.table) is None for suite in accepted if suite for column in columns)
    )


def _others(
    asked: Sequence[Against],
    known: Mapping[object, ParityQuestion],
    suites: Mapping[str, Suite],
    tables: Mapping[str, Table],
    comparison: Comparison,
) -> Iterator[ParityQuestion]:
    """Yield the outcomes that suites have and no gate asks about: they are of the family, too."""
    there = {(each.suite, each.outcome.id, each.against) for each in known.values()}
    against = asked[0]
    for name, suite in suites.items():
        for outcome in outcomes_of(suite, against):
            if (name, outcome.id, against) not in there:
                yield parity_question(outcome, against, tables[name], comparison, {})


def scans_of(family: Sequence[ParityQuestion], alpha: float) -> dict[ParityQuestion, ScanResult]:
    """Return the scan of each question, all of them at one level (Holm).

    Where prompts of a source never differ nothing can be found, so such questions take no part of
    the level (R. E. Tarone, Biometrics 46 (1990) 515-22).
    """
    scanned = {each: each.scanned(alpha) for each in family if each.columns and not each.lacking}
    first = {question: result(1) for question, result in scanned.items()}
    tested = sorted(
        (each for each in family if each in first and each.varies),
        key=lambda each: (first[each].p, each.suite, each.outcome.id),
    )
    results = dict(first)
    floor = 0.0
    for rank, question in enumerate(tested):
        scans = len(tested) - rank
        result = scanned[question](scans) if scans > 1 else first[question]
        floor = max(floor, result.p)
        if floor > result.p:  # a step-down never calls more than the one before it
            named = () if floor > alpha else result.named
            result = replace(result, p=floor, named=named)
        results[question] = result
    return results


def _mean(values: Floats, places: Sequence[int]) -> float | None:
    own = values[:, list(places)]
    own = own[~np.isnan(own)]
    return rounded(own.mean()) if own.size else None


def parity_result(
    question: ParityQuestion, scanned: ScanResult | None, alpha: float
) -> ParityResult:
    """Describe the result of a scan in the words of reports."""
    if scanned is None:
        return ParityResult(
            suite=question.suite,
            outcome=question.outcome.id,
            against=question.against,
            p=1.0,
            alpha=alpha,
        )
    people = {label_of(person): person for person in question.prompts.persons}
    people_first = 0 if question.prompts.is_mutual else len(question.prompts.persons)
    controls = range(people_first, question.prompts.shape[1])
    looks = {(look.node.columns, look.column): look for look in scanned.looks}
    named: list[NamedNode] = []
    for found in scanned.named:
        now, places = question.now[found.column], found.node.columns
        other_controls = [place for place in controls if place not in places]
        then = question.before.get(found.column)
        look = looks[found.node.columns, found.column]
        named_people = [people[label] for label in found.node.who]
        own = [one for person in named_people for one in question.prompts.holds[person]]
        by_phrase, carried_by = _in_phrases(question, scanned, found, look.estimate)
        named.append(
            NamedNode(
                level=_level(found.node.level, named_people),
                who=own,
                column=found.column,
                estimate=rounded(look.estimate),
                low=rounded(look.low),
                high=rounded(look.high),
                p=rounded(found.p),
                is_within=any({*own} < {*wider.who} for wider in named),
                rate=_mean(now, places),
                control=_mean(now, other_controls),
                before=None if then is None else _mean(then, places),
                control_before=None if then is None else _mean(then, other_controls),
                sources=int((~np.isnan(now[:, list(places)])).any(axis=1).sum()),
                by_phrase=by_phrase,
                carried_by=carried_by,
            )
        )
    identities = [
        IdentityEstimate(
            person=people[look.node.who[0]],
            column=look.column,
            estimate=rounded(look.estimate),
            low=rounded(look.low),
            high=rounded(look.high),
            rate=_mean(question.now[look.column], look.node.columns),
            control=_mean(
                question.now[look.column],
                [place for place in controls if place not in look.node.columns],
            ),
        )
        for look in scanned.looks
        if len(look.node.who) == 1 and np.isfinite([look.estimate, look.low, look.high]).all()
    ]
    drawn = {look.column for look in scanned.looks}
    asked = [c.column for c in question.outcome.asked(question.against) if c.column in drawn]
    reaches = {column: _reach(scanned, column) for column in asked}
    first = next((column for column in asked if reaches[column]), next(iter(asked), ""))
    return ParityResult(
        suite=question.suite,
        outcome=question.outcome.id,
        against=question.against,
        p=rounded(scanned.p),
        alpha=alpha,
        named=named,
        identities=identities,
        bands=[
            ColumnBand(
                column=name,
                low=rounded(band.low - band.mean),
                high=rounded(band.high - band.mean),
            )
            for name, band in scanned.bands.items()
        ],
        reach=reaches.get(first, {}),
        reach_column=first,
        by_column={
            column: reach[Level.IDENTITY]
            for column, reach in reaches.items()
            if Level.IDENTITY in reach
        },
        sources=scanned.sources,
        controls=scanned.controls,
        is_mutual=question.prompts.is_mutual,
        unjudged="; ".join(dict.fromkeys(scanned.no_verdict.values())),
    )


def _in_phrases(
    question: ParityQuestion, scanned: ScanResult, found: NodeEstimate, estimate: float
) -> tuple[dict[str, float], list[str]]:
    """Return the estimate of each phrase of one identity, and which phrases carry its difference.

    Each is scaled to the identity's own estimate, which rests on all sources of the scan.
    """
    person = next(p for p in question.prompts.persons if label_of(p) == found.node.who[0])
    is_one = len(found.node.who) == 1 and person[1]
    values = question.in_phrases(found.column, person) if is_one else None
    if values is None:
        return {}, []
    controls = question.columns[found.column][:, len(question.prompts.persons) :]
    has_any = ~np.isnan(controls).all(axis=1)
    beyond = values[has_any] - np.nanmean(controls[has_any], axis=1, keepdims=True)
    is_asked = ~np.isnan(beyond).all(axis=0)
    beyond = beyond[:, is_asked]
    phrases = [
        phrase
        for phrase, asked in zip(question.prompts.said[person], is_asked, strict=True)
        if asked
    ]
    means = np.nanmean(beyond, axis=0) - np.nanmean(beyond) + estimate
    carried = carrying(beyond, apart=scanned.bands[found.column].apart, effect=found.estimate)
    by_phrase = dict(zip(phrases, map(rounded, means), strict=True))
    return by_phrase, [phrases[place] for place in carried]


def _reach(scanned: ScanResult, column: str) -> dict[str, float]:
    """Return by level the least difference in a column that is named 8 times out of 10."""
    reach: dict[str, float] = {}
    for look in scanned.looks:
        if look.column == column and np.isfinite(look.high) and look.standard_error > _ROUNDING:
            reach[look.node.level] = max(reach.get(look.node.level, 0.0), rounded(look.reach))
    return reach


def _level(level: str, people: Sequence[Person]) -> Level:
    """Return how wide a node is, whose only prompt may stand for a category or everybody."""
    if level == Level.IDENTITY and not people[0][1]:
        return Level.CATEGORY if people[0][0] else Level.EVERYBODY
    return Level(level)


def _result(
    rule: ParityRule, question: ParityQuestion, scanned: ScanResult | None, alpha: float, scans: int
) -> RuleResult:
    """Judge one question by its limit; `scans` share the level."""
    parity = parity_result(question, scanned, alpha)
    failing = [node for node in parity.named if _is_beyond(node, rule)]
    if scanned is not None and not question.is_open:
        question = replace(question, is_open=_unscanned(question, scanned, alpha))
    outcome, reasons = _outcome(rule, question, parity, failing, scans)
    is_since = rule.against in SINCE
    is_first_run = is_since and question.lacking.startswith("first run")
    is_first_run |= question.lacks_base
    first = next(iter([*failing, *parity.named]), None)
    return RuleResult(
        metric=rule.name,
        suite=rule.suite,
        where=dict(rule.gate.where),
        position=rule.position,
        outcome=outcome,
        reasons=reasons,
        bounds=rule.bounds,
        value=None if first is None else first.estimate,
        interval=None if first is None else (first.low, first.high),
        parity=parity,
        failing=failing,
        advisory=rule.gate.advisory,
        is_first_run=is_first_run,
        failed=[_FAILED.get(rule.against, "parity")] if failing else [],
        doubts=Doubts(is_incomplete=is_since and bool(question.lacking) and not is_first_run),
    )


def _unscanned(question: ParityQuestion, scanned: ScanResult, alpha: float) -> str:
    """Name a column whose values differ but that could not be scanned beside others that could.

    Or say that nobody could have been named, whatever the values.
    """
    open_ones = {name: why for name, why in scanned.no_verdict.items() if name in question.columns}
    for name, why in open_ones.items():
        if scanned.sources and varies(question.columns[name]):
            return f"whether answers {question.outcome.by_column[name].event} is not known: {why}"
    if scanned.sources and question.varies and math.isinf(scanned.critical):
        key = "set a higher `regression_level`, or " if question.against in SINCE else ""
        return (
            f"nobody could be named, whatever was answered: chance is not computed as finely as "
            f"the level {alpha:.3g} asks over so many questions; {key}ask fewer"
        )
    return ""


def _too_few_beside(question: ParityQuestion) -> str:
    """Say that too few identities stand beside each other, and how far apart the outermost lie."""
    persons = question.prompts.persons
    if len(persons) > FEWEST_CONTROLS:
        return ""
    identities = f"{len(persons)} {'identities' if len(persons) > 1 else 'identity'}"
    why = (
        f"without control prompts {identities} cannot be told from the words that name them; "
        f"give {FEWEST_CONTROLS} phrases that name nobody, or {FEWEST_CONTROLS + 1} identities"
    )
    column = next(iter(question.columns), None)
    if column is None or len(persons) < _FEWEST_CONTROLS:
        return why
    in_units = question.outcome.by_column[column].shown
    means = {
        person[1]: in_units(mean)
        for place, person in enumerate(persons)
        if (mean := _mean(question.columns[column], [place])) is not None
    }
    if not means:
        return why
    low, high = min(means, key=lambda who: means[who]), max(means, key=lambda who: means[who])
    apart = f"lowest {low} {means[low]:.4g}, highest {high} {means[high]:.4g}"
    return f"{why} (means: {apart})"


def _is_beyond(node: NamedNode, rule: ParityRule) -> bool:
    size = node.estimate if rule.against in SINCE else abs(node.estimate)
    return size > rule.limit


def _outcome(
    rule: ParityRule,
    question: ParityQuestion,
    parity: ParityResult,
    failing: Sequence[NamedNode],
    scans: int,
) -> tuple[Outcome, list[str]]:
    if question.lacking:
        return Outcome.NOT_EVALUATED, [question.lacking]
    if question.varies and question.prompts.is_mutual and (lone := _too_few_beside(question)):
        return Outcome.NOT_EVALUATED, [lone]
    if failing:
        reasons = [f"{sentence(node, rule, parity.others)}" for node in failing]
        return Outcome.FAIL, reasons
    if question.is_open:
        return Outcome.NOT_EVALUATED, [question.is_open]
    if not parity.sources and question.varies:
        return Outcome.NOT_EVALUATED, [parity.unjudged or "there is too little to compare"]
    if few := question.undecided:
        columns = sorted({column for some in few.values() for column in some})
        by = "" if len(columns) == len(question.measured) else f" by {listed(columns, last='and')}"
        return Outcome.NOT_EVALUATED, [
            f"less than half of what was asked for {first_few(list(few))} is decided{by}"
        ]
    # Where prompts of a source never differ, any difference would have been named.
    missed = parity.reach.get(Level.IDENTITY) if question.varies or not parity.sources else 0.0
    if question.outcome.id == SCORE and (reason := _out_of_sight(question, parity, rule.limit)):
        return Outcome.NOT_EVALUATED, [reason]
    must_see = rule.gate.must_see
    if must_see is not None and rule.against is Against.CONTROL:
        if missed is None:
            why = parity.unjudged or "there is too little to judge single identities"
            return Outcome.NOT_EVALUATED, [f"cannot see what `must_see` asks for: {why}"]
        if missed > must_see:
            why = (
                f"the minimum detectable effect for one identity is {missed:.3g}, and "
                f"`must_see` asks for {must_see:g}; {_enough(question, parity, must_see, scans)}"
            )
            return Outcome.NOT_EVALUATED, [why]
    if parity.named:
        within = [
            f"{sentence(node, rule, parity.others)}: within the limit" for node in parity.named
        ]
        return Outcome.PASS, within
    who = "nobody differs" if rule.against not in SINCE else "nobody fares worse"
    more = f" ({probability(parity.p)})"
    return Outcome.PASS, [f"{who} by more than chance and wording explain{more}"]


def _enough(question: ParityQuestion, parity: ParityResult, effect: float, scans: int) -> str:
    """Say how many sources would show an effect on one identity, by the noise of this run."""
    columns = [
        column
        for column in question.outcome.asked(question.against)
        if column.column in question.columns
    ]
    columns.sort(key=lambda column: column.column != parity.reach_column)
    sampling, apart = noise_of(question.columns[parity.reach_column], len(question.prompts.persons))
    plan = Plan(
        nodes=nodes_of(question.prompts.categories),
        controls=parity.controls,
        sampling=sampling,
        apart=apart,
        phrases=min(question.prompts.phrases),
        shares=tuple(column.share for column in columns),
        sided=question.sided,
        alpha=parity.alpha,
        scans=scans,
    )
    needed = None if question.prompts.is_mutual else needed_sources(plan, effect)
    if needed is None:
        return "no number of sources would suffice: more phrases for an identity might"
    return f"about {max(needed, parity.sources + 1):,} sources would suffice"


def sentence(node: NamedNode, rule: ParityRule, others: str = "control prompts") -> str:
    """Say who differs by how much, beside which limit."""
    column = rule.outcome.by_column[node.column]
    key, limit = next(iter(rule.bounds.items()))
    is_score = column.unit == "score"
    size, most = (
        in_own_unit(value) if is_score else f"{100 * value:.1f}"
        for value in (abs(node.estimate), limit)
    )
    points = "" if is_score else " points"
    than = f"at the {rule.against}" if rule.against in SINCE else f"for {others}"
    who = f"{node.called} ({node.in_phrases})" if node.in_phrases else node.name
    return (
        f"{rule.outcome.subject} for {who} {column.compared(node.estimate)} than {than}, "
        f"by {size}{points} (`{key}` {most}; {probability(node.p)})"
    )


def _out_of_sight(question: ParityQuestion, parity: ParityResult, limit: float) -> str:
    """Return why no difference of scores could be seen, or none would be beyond the limit.

    One slip can be larger than all others; so the range of nine of ten scores counts.
    """
    column = parity.reach_column
    if column not in question.now or not question.varies:
        return ""
    low, high = np.nanquantile(question.now[column], [0.05, 0.95])
    within = f"nine of ten scores lie within {high - low:.3g}"
    missed = max(parity.reach.values(), default=0.0)
    if 0 < high - low < missed:
        return (
            f"the minimum detectable effect is {missed:.3g}, and {within}: some are far from "
            "all others; look for slips, or give more sources"
        )
    if limit >= (high - low or np.nanmax(question.now[column]) - np.nanmin(question.now[column])):
        return f"a limit of {limit:.3g} cannot fail: {within}; lower it"
    return ""


def _undiluted(
    rule: ParityRule, result: RuleResult, table: Table, comparison: Comparison, alpha: float
) -> RuleResult:
    """Return no pass where the limit does not hold on the baseline's cases.

    Otherwise easy cases that are added, or hard ones that are left out, would make harm green.
    """
    if rule.against is not Against.CONTROL or result.outcome is not Outcome.PASS:
        return result
    for words, cases in comparison.on_base_cases(table):
        if not len(cases.keys):
            continue
        question = parity_question(rule.outcome, rule.against, cases, comparison, rule.gate.where)
        if not question.columns:
            continue
        parity = parity_result(question, question.scanned(alpha)(1), alpha)
        failing = [node for node in parity.named if _is_beyond(node, rule)]
        if failing:
            reasons = [f"{words}, {sentence(node, rule, parity.others)}" for node in failing]
            doubts = replace(result.doubts, is_diluted=True)
            return replace(result, outcome=Outcome.INCONCLUSIVE, reasons=reasons, doubts=doubts)
    return result
