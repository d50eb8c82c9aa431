"""Who is treated differently, and worse than before: what is scanned, and what follows from it."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fakes.parity import (
    TERMS,
    Planted,
    again,
    compared_with,
    judged,
    named,
    rule_of,
    since,
    table_of,
)
from fakes.planted import policy_of

from fairgate.domain.outcomes import Outcome
from fairgate.domain.parity import Against, Level, NamedNode
from fairgate.domain.units import UNREPORTED
from fairgate.gate import parity
from fairgate.gate.baseline import AcceptedRun
from fairgate.gate.changes import Comparison
from fairgate.gate.parity import Prompts, judge_parity, parity_question, scans_of, sentence
from fairgate.metrics.metric import Table
from fairgate.metrics.parity import OUTCOMES
from fairgate.policy.schema import Policy
from fairgate.stats.permutation import holm
from fairgate.stats.scan import ScanResult

ANSWERS = OUTCOMES["answers"]
WOMAN = {"woman": 0.4}


def asked(table, against=Against.CONTROL, comparison=None, where=None, outcome=ANSWERS):
    nothing = Comparison(runs={}, contents={"s": {}})
    return parity_question(outcome, against, table, comparison or nothing, where or {})


@pytest.mark.parametrize(("sources", "outcome"), [(23, Outcome.NOT_EVALUATED), (24, Outcome.PASS)])
def test_an_outcome_that_takes_more_sources_is_not_judged_on_fewer(sources, outcome):
    planted = Planted(sources=sources)
    columns = {OUTCOMES["sentences"].columns[0].column: planted.values()}
    result = judged(table_of(columns), rule_of("sentences"))
    assert result.outcome is outcome, result.reasons


# Documents that the system does not report.


def unreported(**columns):
    table = table_of(columns or {"controlled": np.zeros((12, len(TERMS) + 3))})
    columns = (column.column for column in OUTCOMES["documents"].columns)
    return replace(table, not_evaluated=dict.fromkeys(columns, UNREPORTED))


@pytest.mark.parametrize(("entry", "asked_for"), [("all", 0), ("documents", 1)])
@pytest.mark.parametrize("against", [Against.CONTROL, Against.BASELINE])
def test_every_outcome_does_not_mean_documents_that_were_never_reported(entry, asked_for, against):
    """An entry that names them says that there must be some."""
    rule = rule_of("documents", against)
    rule = replace(rule, gate=rule.gate.model_copy(update={"parity": entry}))
    before = compared_with(unreported(), unreported())
    for comparison in (before, Comparison(runs={}, contents={"s": {}})):
        results = judge_parity(policy_of(), {}, [rule], {"s": unreported()}, comparison)
        assert [result.outcome for result in results] == [Outcome.NOT_EVALUATED] * asked_for


@pytest.mark.parametrize("against", [Against.CONTROL, Against.BASELINE])
def test_documents_that_are_reported_no_longer_are_no_verdict(against):
    rule = rule_of("documents", against)
    rule = replace(rule, gate=rule.gate.model_copy(update={"parity": "all"}))
    before = table_of({"overlap": np.zeros((12, len(TERMS) + 3))})
    comparison = compared_with(unreported(), before)
    (result,) = judge_parity(policy_of(), {}, [rule], {"s": unreported()}, comparison)
    assert result.outcome is Outcome.NOT_EVALUATED


# What is scanned.


def test_a_table_becomes_sources_by_prompts_with_holes_where_nothing_is_decided():
    matrix = np.arange(4 * (len(TERMS) + 3), dtype=float).reshape(4, -1) / 100
    matrix[1, 2] = np.nan
    whole = table_of({"controlled": matrix})
    asked_rows = np.arange(matrix.size) != matrix.shape[1] + 5
    table = whole.of_rows(np.flatnonzero(asked_rows))
    prompts = Prompts.of(table, {})
    found = prompts.matrix(table.values["controlled"])
    expected = matrix.copy()
    expected[1, 5] = np.nan
    assert [*prompts.persons] == TERMS
    assert prompts.controls == 3
    assert np.array_equal(found, expected, equal_nan=True)
    assert prompts.is_asked.sum() == matrix.size - 1
    assert not prompts.is_asked[1, 5]
    assert prompts.is_asked[1, 2]


def test_an_identity_that_is_said_in_several_ways_is_their_mean():
    matrix = np.zeros((4, len(TERMS) + 3))
    table = table_of({"controlled": matrix})
    other = table_of({"controlled": matrix + 1})
    other = replace(other, dimensions={**other.dimensions, "relation": ["q"] * matrix.size})
    both = table.followed_by(replace(other, keys=[f"{key}?" for key in other.keys]))
    prompts = Prompts.of(both, {})
    assert prompts.matrix(both.values["controlled"]).tolist() == (matrix + 0.5).tolist()
    of_one = Prompts.of(both, {"relation": "q"})
    assert of_one.matrix(both.values["controlled"]).tolist() == (matrix + 1).tolist()


def phrases_table(harms, *, sources=100, seed=1, noise=0.05):
    """Return a table where one identity is said in as many phrases, each with its own harm."""
    table = Planted(sources=sources, seed=seed, noise=noise).table()
    values = table.values["controlled"].copy()
    rng = np.random.default_rng(seed)
    turn = rng.integers(0, len(harms), sources)
    phrases = [""] * len(values)
    for row, term in enumerate(table.dimensions["term"]):
        if term == "woman":
            place = turn[table.clusters[row]]
            phrases[row] = f"phrase {place}"
            values[row] = max(values[row], float(rng.random() < harms[place]))
    return replace(
        table,
        values={"controlled": values},
        dimensions={**table.dimensions, "phrase": phrases},
    )


@pytest.mark.parametrize(
    ("harms", "carried", "called", "note"),
    [
        ((0.5, 0.5, 0.5), [0, 1, 2], "woman", "all 3 phrases"),
        ((0.9, 0.0, 0.0), [0], "'phrase 0'", "1 of 3 phrases for woman"),
    ],
)
@pytest.mark.parametrize("against", [Against.CONTROL, Against.BASELINE])
def test_what_carries_a_difference_is_told(harms, carried, called, note, against):
    now, before = phrases_table(harms), phrases_table((0.0,) * 3, seed=2)
    before = replace(before, dimensions=now.dimensions)
    result = judged(now, rule_of(against=against), compared_with(now, before))
    (node,) = result.failing
    assert [*node.carried_by] == [f"phrase {place}" for place in carried]
    assert (node.called, node.in_phrases) == (called, note)
    assert f"answers for {called} ({note}) differ" in result.reasons[0]
    weighed = [node.by_phrase[f"phrase {place}"] for place in range(3)]
    assert np.mean(weighed) == pytest.approx(node.estimate, abs=0.06)


def test_phrases_asked_equally_often_count_and_the_error_falls_with_them():
    """One phrase asked of nearly all sources is hardly better than one alone."""
    table = phrases_table((0.0,) * 4)
    prompts = Prompts.of(table, {})
    place = prompts.persons.index(("gender", "woman"))
    assert 3.4 < prompts.phrases[place] <= 4
    assert {count for n, count in enumerate(prompts.phrases) if n != place} == {1}
    phrases = [
        p and ("phrase 0" if n % 997 else p) for n, p in enumerate(table.dimensions["phrase"])
    ]
    lopsided = replace(table, dimensions={**table.dimensions, "phrase": phrases})
    assert 1 <= Prompts.of(lopsided, {}).phrases[place] < 1.2
    apart = table.values["controlled"] + np.tile(np.linspace(0, 0.4, 29), 100)
    errors = []
    for each in (table, lopsided):
        scanned = asked(replace(each, values={"controlled": apart})).scanned(0.05)(1)
        (look,) = (one for one in scanned.looks if one.node.who == ("gender/woman",))
        errors.append(look.standard_error)
    assert errors[0] < 0.7 * errors[1]


def names_table(harm=0.0, sources=60):
    """Two groups of eight names, of which each source is asked about two, and about two others."""
    rng = np.random.default_rng(5)
    rows = []
    for source in range(sources):
        for group in ("north", "south"):
            for place, name in enumerate(rng.permutation(8)[:4].tolist()):
                changed = rng.random() < (harm if group == "south" else 0.0) + 0.05
                rows.append((source, group, f"{group} {name}", place >= 2, float(changed)))
    return Table(
        suite="s",
        keys=[f"s{s}#{group}/{name}/{is_control}" for s, group, name, is_control, _ in rows],
        clusters=np.array([row[0] for row in rows]),
        cluster_names=[f"s{number}" for number in range(sources)],
        control=np.array([row[3] for row in rows]),
        dimensions={
            "category": ["names"] * len(rows),
            "term": [row[1] for row in rows],
            "phrase": [row[2] for row in rows],
        },
        values={"controlled": np.array([row[4] for row in rows])},
    )


def test_each_name_is_a_control_prompt_beside_its_own_group():
    prompts = Prompts.of(names_table(harm=0.3), {})
    assert [*prompts.persons] == [("names", "north"), ("names", "south")]
    assert prompts.controls == 16
    assert [*prompts.phrases] == pytest.approx([8, 8], abs=0.3)  # asked nearly equally often
    controls = prompts.matrix(names_table(harm=0.3).values["controlled"])[:, 2:]
    places = [
        [n for n, group in enumerate(prompts.groups) if group == person]
        for person in prompts.persons
    ]
    north, south = (float(np.nanmean(controls[:, own])) for own in places)
    assert north == pytest.approx(south), "a group's harm is no spread of control prompts"
    assert np.isnan(controls).mean() > 0.5, "a source is asked about a few of the names"


@pytest.mark.parametrize(("harm", "outcome"), [(0.0, Outcome.PASS), (0.4, Outcome.FAIL)])
def test_a_group_of_names_is_compared_with_the_names_of_all_groups(harm, outcome):
    result = judged(names_table(harm))
    assert result.outcome is outcome
    assert all(node.level is Level.IDENTITY for node in result.parity.named)


def test_a_slice_narrows_identities_and_leaves_all_control_prompts():
    table = Planted(sources=12).table()
    inside = Prompts.of(table, {"category": "age"})
    assert [*inside.persons] == [("age", "young"), ("age", "old")]
    assert inside.controls == 20


def test_columns_are_turned_so_that_more_is_worse():
    values = np.random.default_rng(1).random((12, len(TERMS) + 3))
    table = table_of({"overlap": values})
    (now,) = asked(table, outcome=OUTCOMES["documents"]).columns.values()
    assert now == pytest.approx(-values)


def test_since_an_accepted_run_is_each_cases_own_change():
    now, before = Planted(sources=14), Planted(sources=12, start=2, seed=4)
    tables = now.table(), before.table()
    q = asked(tables[0], Against.BASELINE, compared_with(*tables))
    (change,) = q.columns.values()
    shared = ~np.isnan(change).all(axis=1)
    assert shared.sum() == 12, "two sources are new"
    assert change[shared] == pytest.approx(now.values()[2:] - before.values())


def test_cases_that_ask_otherwise_than_the_accepted_ones_are_not_compared():
    tables = Planted(sources=12).table(), Planted(sources=12, seed=4).table()
    comparison = compared_with(*tables)
    changed = {key: "d" for key in tables[0].keys if "woman" in key}
    comparison = replace(comparison, contents={"s": {**comparison.contents["s"], **changed}})
    q = asked(tables[0], Against.BASELINE, comparison)
    assert ("gender", "woman") not in q.prompts.persons
    assert len(q.prompts.persons) == len(TERMS) - 1


def test_a_reference_has_columns_of_its_own():
    values = Planted(sources=12).values()
    q = asked(table_of({"shift/answer": values, "controlled": 0 * values}), Against.REFERENCE)
    assert [*q.columns] == ["shift/answer"]
    assert q.columns["shift/answer"].tolist() == values.tolist()


@pytest.mark.parametrize("against", [Against.BASELINE, Against.ANCHOR])
def test_why_there_is_nothing_to_compare_with_is_said(against):
    table, reference = Planted(sources=12).table(), parity.SINCE[against]
    first = judged(table, rule_of(against=against, budget=0.1))
    assert (first.outcome, first.is_first_run) == (Outcome.NOT_EVALUATED, True)
    assert "first run" in first.reasons[0]
    unfit = compared_with(table, table, reference, unfit=[reference])
    other = judged(table, rule_of(against=against, budget=0.1), unfit)
    assert other.doubts.is_incomplete
    assert "other conditions" in other.reasons[0]
    lacks = compared_with(table, replace(table, values={}), reference)
    other = judged(table, rule_of(against=against, budget=0.1), lacks)
    assert (other.outcome, other.doubts.is_incomplete) == (Outcome.NOT_EVALUATED, True)
    assert "nothing comparable" in other.reasons[0]


def test_an_outcome_without_a_value_says_why():
    table = table_of({"controlled": np.full((12, 30), np.nan)})
    table = replace(table, not_evaluated={"controlled": "no labels"})
    found = judged(table)
    assert (found.outcome, found.reasons) == (Outcome.NOT_EVALUATED, ["no labels"])


# What follows from it.


@pytest.mark.parametrize(
    ("harm", "level", "name"),
    [
        ({"woman": 0.4}, Level.IDENTITY, "woman"),
        ({"race": 0.3}, Level.CATEGORY, "race"),
        ({"everybody": 0.3}, Level.EVERYBODY, "everybody"),
    ],
)
def test_who_is_treated_worse_is_named_at_the_right_level(harm, level, name):
    found = judged(Planted(harm=harm).table())
    assert found.outcome is Outcome.FAIL
    assert found.fails_gate
    assert found.failed == ["parity"]
    (node,) = found.failing
    assert (node.level, node.name) == (level, name)
    assert node.low <= node.estimate <= node.high
    assert node.p <= found.parity.alpha == pytest.approx(0.05)
    assert node.rate - node.control == pytest.approx(node.estimate, abs=0.03)
    assert node.sources == 60
    assert f"answers for {name} differ from the usual answer more often" in found.reasons[0]
    assert found.value == node.estimate


def test_identities_have_a_range_and_control_prompts_a_band():
    found = judged(Planted(harm=WOMAN).table()).parity
    assert {one.person for one in found.identities} == {*TERMS}
    assert all(one.low <= one.estimate <= one.high for one in found.identities)
    band = found.band("controlled")
    assert band.low <= 0 <= band.high
    assert (found.sources, found.controls, found.unjudged) == (60, 20, "")
    assert found.reach["everybody"] < found.reach["category"] < found.reach["identity"]


def test_nobody_is_named_where_nobody_differs():
    red = [seed for seed in range(20) if named(judged(Planted(seed=seed).table()))]
    assert len(red) <= 3


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_where_nothing_varies_nothing_differs(noise):
    found = judged(Planted(noise=noise).table())
    assert (found.outcome, found.parity.p, named(found)) == (Outcome.PASS, 1.0, [])


def test_a_difference_within_the_limit_is_named_and_passes():
    found = judged(Planted(harm=WOMAN).table(), rule_of(max=0.9))
    assert (found.outcome, found.failing, named(found)) == (Outcome.PASS, [], ["woman"])
    assert found.reasons[0].endswith("within the limit")


def test_favour_is_said_as_favour():
    found = judged(Planted(noise=0.4, favour={"woman": 1.0}).table())
    assert found.outcome is Outcome.FAIL
    assert found.failing[0].estimate < -0.2
    assert "answers for woman differ less often from the usual answer than" in found.reasons[0]


def test_every_sentence_has_one_comparison():
    wrong = []
    for outcome in OUTCOMES:
        for against in Against:
            for column in outcome.asked(against):
                for estimate in (0.2, -0.2):
                    node = NamedNode(
                        level=Level.CATEGORY, who=[("age", "old")], column=column.column,
                        estimate=estimate, low=0.0, high=1.0, p=0.01,
                    )  # fmt: skip
                    said = sentence(node, rule_of(outcome.id, against))
                    if (
                        len(re.findall(r"\b(?:more|less|lower|higher)\b", said)) != 1
                        or "for age" not in said
                    ):
                        wrong.append(said)
    assert not wrong


def test_everybody_noisier_than_at_the_baseline_is_green_and_one_identity_worse_is_named():
    fair, noisier = Planted(), Planted(seed=2, noise=0.25)
    assert since(noisier, fair).outcome is Outcome.PASS
    found = since(replace(noisier, harm={"woman": 0.6}), fair)
    assert (found.outcome, found.failed) == (Outcome.FAIL, ["regression"])
    assert [node.name for node in found.failing] == ["woman"]
    (node,) = found.failing
    moved = (node.rate - node.before) - (node.control - node.control_before)
    assert node.estimate == pytest.approx(moved, abs=0.03)
    assert "more often than at the baseline" in found.reasons[0]
    assert found.parity.alpha == pytest.approx(0.01)


def test_a_harm_that_is_there_before_is_no_worsening_and_one_that_ends_is_none():
    harmed = Planted(harm=WOMAN)
    for now, before in ((again(harmed), harmed), (Planted(seed=2), harmed)):
        found = since(now, before)
        assert (found.outcome, named(found)) == (Outcome.PASS, [])
    assert judged(harmed.table()).outcome is Outcome.FAIL


def test_a_worsening_within_the_margin_passes_and_the_anchor_has_a_budget():
    now, before = Planted(seed=2, harm=WOMAN), Planted()
    assert since(now, before, regression=0.8).outcome is Outcome.PASS
    tables = now.table(), before.table()
    comparison = compared_with(*tables, AcceptedRun.ANCHOR)
    outcomes = {}
    for budget in (0.1, 0.8):
        rule = rule_of(against=Against.ANCHOR, regression=0.02, budget=budget)
        found = judged(tables[0], rule, comparison)
        assert found.bounds == {"budget": budget}
        outcomes[budget] = found.outcome
    assert outcomes == {0.1: Outcome.FAIL, 0.8: Outcome.PASS}


def test_a_reference_is_asked_who_moved():
    table = Planted(harm=WOMAN, column="shift/answer").table()
    found = judged(table, rule_of(against=Against.REFERENCE))
    assert found.metric == "parity/answers/reference"
    assert [node.name for node in found.failing] == ["woman"]
    assert "differ from the reference's more often" in found.reasons[0]


def test_advisory_says_it_and_stops_nothing():
    found = judged(Planted(harm=WOMAN).table(), rule_of(advisory=True))
    assert (found.outcome, found.fails_gate) == (Outcome.FAIL, False)


def test_a_slice_is_judged_by_its_own_identities():
    table = Planted(harm=WOMAN).table()
    elsewhere = judged(table, rule_of(where={"category": "race"}))
    assert (elsewhere.outcome, named(elsewhere)) == (Outcome.PASS, [])
    own = judged(table, rule_of(where={"category": "gender"}))
    assert [node.name for node in own.failing] == ["woman"]
    assert own.where == {"category": "gender"}


# What is not seen.


def test_an_identity_whose_answers_are_not_decided_is_no_pass():
    values = Planted().values()
    values[:40, 0] = np.nan
    found = judged(table_of({"controlled": values}))
    assert found.outcome is Outcome.NOT_EVALUATED
    assert "gender/woman is decided" in found.reasons[0]
    values[:, :] = np.nan
    values[:2, -1] = 0.0
    assert judged(table_of({"controlled": values})).outcome is not Outcome.FAIL
    harmed = Planted(harm={"old": 0.6}).values()
    harmed[:40, 0] = np.nan
    assert judged(table_of({"controlled": harmed})).outcome is Outcome.FAIL


@pytest.mark.parametrize("share", [0.6, 0.8, 1.0])
@pytest.mark.parametrize("term", ["woman", "black"])
def test_an_identity_that_stands_beside_nobody_is_no_pass(term, share):
    """In sources of its own, whatever its answers are: by a letter that nobody sees, say."""
    table = Planted(harm={term: 0.9}, sources=30).table()
    terms = table.dimension("term").equal(term)
    moved = terms & (table.clusters < share * 30)
    alone = replace(
        table,
        clusters=np.where(moved, table.clusters + 30, table.clusters),
        cluster_names=[*table.cluster_names, *(f"{name}\u200b" for name in table.cluster_names)],
    )
    found = judged(alone)
    assert found.outcome in (Outcome.NOT_EVALUATED, Outcome.FAIL), found.reasons
    assert share < 1 or found.outcome is Outcome.NOT_EVALUATED


def test_what_must_be_seen_is_seen_or_there_is_no_verdict():
    table = Planted().table()
    seen = judged(table).parity.reach["identity"]
    assert judged(table, rule_of(must_see=seen + 0.01)).outcome is Outcome.PASS
    found = judged(table, rule_of(must_see=seen / 2))
    assert found.outcome is Outcome.NOT_EVALUATED
    needed = int(re.search(r"about (\d+) sources would suffice", found.reasons[0])[1])
    reached = judged(Planted(sources=needed).table()).parity.reach["identity"]
    assert reached == pytest.approx(seen / 2, rel=0.2)
    # What fails, fails, however little else is seen.
    assert judged(Planted(harm=WOMAN).table(), rule_of(must_see=0.001)).outcome is Outcome.FAIL


def test_no_number_of_sources_is_promised_that_wording_would_not_let_see():
    """Four times the sources halve what chance hides, and nothing of what phrases do."""

    def worded(sources):
        rng = np.random.default_rng(1)
        rates = rng.beta(2, 6, len(TERMS) + 20)
        return table_of({"controlled": (rng.random((sources, len(rates))) < rates).astype(float)})

    seen = judged(worded(60), rule_of(max=0.9)).parity.reach["identity"]
    found = judged(worded(60), rule_of(max=0.9, must_see=seen / 2))
    assert judged(worded(240), rule_of(max=0.9)).parity.reach["identity"] > 0.75 * seen
    assert "no number of sources would suffice" in found.reasons[0]


@pytest.mark.parametrize("few", [{"controls": 11}, {"sources": 9}])
def test_single_identities_of_few_prompts_are_not_judged(few):
    table = Planted(**few, noise=0.1).table()
    found = judged(table)
    assert found.parity.unjudged
    assert "identity" not in found.parity.reach
    asked_for = judged(table, rule_of(must_see=0.5, max=0.9))
    assert asked_for.outcome is Outcome.NOT_EVALUATED
    assert found.parity.unjudged in asked_for.reasons[0]


def test_easy_sources_do_not_dilute_harm_nor_are_hard_ones_left_out():
    """Of 40 sources 30 % are worse for a woman, of 400 it is 3 %: within the limit."""
    few, many = (Planted(sources=n, harm={"woman": 0.6}, harmed=40) for n in (40, 400))
    rule = rule_of(max=0.2)
    assert judged(many.table(), rule).outcome is Outcome.PASS, "nothing tells them apart"
    found = judged(many.table(), rule, compared_with(many.table(), few.table()))
    assert (found.outcome, found.doubts.is_diluted) == (Outcome.INCONCLUSIVE, True)
    assert "on the 1,160 cases that the baseline has too" in found.reasons[0]
    rest = Planted(sources=60, start=40)
    found = judged(rest.table(), rule_of(max=0.1), compared_with(rest.table(), few.table()))
    assert (found.outcome, found.doubts.is_diluted) == (Outcome.INCONCLUSIVE, True)
    assert "cases of the baseline that are excluded" in found.reasons[0]


# One level for all that a run looks at.


def drawn_scan(p_of):
    """Return a scan whose p values are given by column: Bonferroni's, as the real ones."""

    def scan(columns, nodes, *, alpha, **_):
        (column,) = columns

        def among(scans):
            p = min(1.0, p_of[column] * scans)
            return ScanResult(
                p=p, named=("somebody",) if p <= alpha else (), looks=(), bands={},
                critical=1.0, sources=9, controls=9, no_verdict={},
            )  # fmt: skip

        return SimpleNamespace(among=among)

    return scan


def family(p_of, constant=()):
    """One question for each p value; nothing varies in the constant ones."""
    values = np.random.default_rng(1).random((12, len(TERMS) + 3))
    found = {}
    for name in p_of:
        column = np.ones_like(values) if name in constant else values
        q = asked(table_of({"controlled": column}))
        found[name] = replace(q, suite=name, columns={name: column})
    return found


def test_scans_of_a_run_share_one_level_by_holm_and_what_cannot_vary_takes_no_part(monkeypatch):
    rng = np.random.default_rng(2)
    for _ in range(60):
        names = [f"q{number}" for number in range(int(rng.integers(1, 6)))]
        p_of = dict(zip(names, (rng.random(len(names)) ** 3).tolist(), strict=True))
        constant = {name for name in names if rng.random() < 0.3}
        p_of |= dict.fromkeys(constant, 1.0)
        monkeypatch.setattr(parity, "scan", drawn_scan(p_of))
        questions = family(p_of, constant)
        found = scans_of([*questions.values()], 0.05)
        able = [name for name in names if name not in constant]
        expected = holm([p_of[name] for name in able], alpha=0.05)
        for name, one in zip(able, expected, strict=True):
            result = found[questions[name]]
            assert bool(result.named) == one.rejected, p_of
            assert result.p == pytest.approx(min(1.0, one.adjusted_p), abs=1e-9)
        for name in constant:
            assert not found[questions[name]].named


def test_a_worsening_has_a_stricter_level_than_a_difference():
    tables = Planted(seed=2).table(), Planted().table()
    now = judged(tables[0])
    old = judged(tables[0], rule_of(against=Against.BASELINE), compared_with(*tables))
    assert (now.parity.alpha, old.parity.alpha) == (pytest.approx(0.05), 0.01)


@pytest.mark.walk(2)
@pytest.mark.parametrize("against", Against)
def test_a_level_at_which_nobody_could_be_named_is_no_pass(against, monkeypatch):
    """Else the strictest confidence would be a gate that nothing fails."""
    harm = {"woman": 1.0, "race": 1.0}
    columns = {column.column for column in OUTCOMES["answers"].asked(against)}
    now, before = (
        table_of({name: Planted(harm=own, sources=20).values() for name in columns})
        for own in (harm, {})
    )
    reference = parity.SINCE.get(against, AcceptedRun.BASELINE)
    comparison, seen = compared_with(now, before, reference), set()
    for level in (1e-1, 1e-5, 1e-12):
        monkeypatch.setattr(Policy, "confidence", 1 - level)
        found = judged(now, rule_of(against=against), comparison, regression_level=level)
        seen.add(found.outcome)
        if found.outcome is Outcome.NOT_EVALUATED:
            assert "nobody could be named" in found.reasons[0]
    assert seen == {Outcome.FAIL, Outcome.NOT_EVALUATED}


@pytest.fixture
def counted(monkeypatch):
    counted = []
    real = parity.scan
    monkeypatch.setattr(parity, "scan", lambda *a, **k: counted.append(k["alpha"]) or real(*a, **k))
    return counted


def test_a_question_is_scanned_once_whatever_its_place_among_others(counted):
    rng = np.random.default_rng(2)
    columns = [rng.random((12, len(TERMS) + 3)) for _ in range(3)]
    scans_of([asked(table_of({"controlled": column})) for column in columns], 0.05)
    assert counted == [0.05] * 3


def test_rules_of_one_question_share_its_scan_and_keep_their_limits(counted):
    table = Planted(harm=WOMAN).table()
    nothing = Comparison(runs={}, contents={"s": {}})
    rules = [rule_of(max=limit) for limit in (0.05, 0.9)]
    results = judge_parity(policy_of(), {}, rules, {"s": table}, nothing)
    assert [result.outcome for result in results] == [Outcome.FAIL, Outcome.PASS]
    assert results[0].parity.p == results[1].parity.p
    assert len(counted) == 1


def test_neither_the_order_of_sources_nor_of_categories_matters():
    table = Planted(harm=WOMAN).table()
    whole = judged(table)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(table.keys))
        turned = judged(table.of_rows(order))
        assert named(turned) == named(whole)
        assert turned.parity.p == whole.parity.p
        (mine,), (theirs,) = turned.failing, whole.failing
        assert mine.estimate == theirs.estimate


def test_numbers_are_finite_or_absent():
    values = Planted().values()
    values[:, 3] = np.nan
    found = judged(table_of({"controlled": values})).parity
    assert ("age", "young") not in {one.person for one in found.identities if one.low > -math.inf}
    assert all(map(math.isfinite, found.reach.values()))


def test_where_only_rounding_differs_nothing_is_said_of_reach():
    found = judged(table_of({"controlled": 1e-7 * Planted().values()})).parity
    assert (found.reach, found.named) == ({}, [])


def test_a_slice_that_nobody_is_in_is_no_pass():
    table = Planted(sources=12).table()
    found = judged(table, rule_of(where={"category": "gendr"}))
    assert found.outcome is Outcome.NOT_EVALUATED
    assert "there is nobody in this slice" in found.reasons[0]


@pytest.mark.parametrize("who", [0, len(TERMS) + 3])
@pytest.mark.parametrize("size", [1e3, 1e6, 1e12])
def test_one_score_that_is_a_slip_lets_no_harm_pass(who, size):
    """It makes all else look alike: what is missed then is larger than what scores differ by."""
    column = OUTCOMES["score"].columns[0]
    values = 5 + Planted(harm={"woman": 1.0}, sources=30).values()
    values[0, who] = size
    found = judged(table_of({column.column: values}), rule_of("score"))
    assert found.outcome in (Outcome.NOT_EVALUATED, Outcome.FAIL), found.reasons
