"""No change of the rules lets red answers pass without being listed as less strict."""

from __future__ import annotations

import numpy as np
from fakes.planted import Bench, Plant, judged_columns, policy_of
from hypothesis import event, example, given, reject
from hypothesis import strategies as st
from pydantic import ValidationError

from fairgate.domain.outcomes import Outcome
from fairgate.gate.baseline import AcceptedRun
from fairgate.gate.changes import Comparison
from fairgate.github.loosenings import loosened

WORLD = Bench(policy=policy_of(), sources=14, sets=("gender",))
GIVEN = WORLD.given()
PLAN = GIVEN.plan
BASELINE = WORLD.baseline(Plant())
CONTENTS = {"s": {unit.key: unit.content for unit in PLAN.units}}
COLUMNS = ("generation", "unreadable")

limits = st.sampled_from([0.02, 0.1, 0.3])
OF_METRIC = {
    "max": limits,
    "regression": st.sampled_from([0.0, 0.02, 0.1]),
    "budget": st.just(0.2),
    "evidence": st.sampled_from(["estimate", "significant"]),
}
OF_PARITY = {"max": limits, "regression": OF_METRIC["regression"], "budget": OF_METRIC["budget"]}


@st.composite
def gates(draw):
    if draw(st.booleans()):
        outcome = draw(st.sampled_from(["answers", "unreadable", "all"]))
        gate = {"parity": outcome, **draw(st.fixed_dictionaries({}, optional=OF_PARITY))}
    else:
        gate = {"metric": "asr/generation"}
        gate |= draw(st.sampled_from([{}, {"where": {"term": "woman"}}]))
        if draw(st.integers(0, 4)) == 0:
            return {**gate, "report": True}
        asked = draw(st.sampled_from(["max", "regression", "both"]))
        names = {"both": ("max", "regression")}.get(asked, (asked,))
        optional = {"budget", "evidence"} if "regression" in names else {"evidence"}
        gate |= draw(
            st.fixed_dictionaries(
                {name: OF_METRIC[name] for name in names},
                optional={name: OF_METRIC[name] for name in optional if "max" in names},
            )
        )
    return gate | ({"advisory": True} if draw(st.integers(0, 4)) == 0 else {})


@st.composite
def changes(draw):
    """A policy, and the same with one line removed, added, replaced or edited."""
    before = draw(st.lists(gates(), min_size=1, max_size=2))
    place, after = draw(st.integers(0, len(before) - 1)), [*before]
    match draw(st.sampled_from(["remove", "add", "replace", "edit"])):
        case "remove":
            del after[place]
        case "add":
            after.append(draw(gates()))
        case "replace":
            after[place] = draw(gates())
        case "edit":
            other = draw(gates())
            name = draw(
                st.sampled_from(
                    sorted({*other, *after[place]} - {"metric", "parity"} or {"advisory"})
                )
            )
            after[place] = {**after[place], name: other.get(name)}
            if other.get(name) is None:
                del after[place][name]
    return before, after or [draw(gates())]


def judged(policy, columns):
    """The rules' outcomes on columns of the suite, compared with a baseline and an anchor."""
    comparison = Comparison(runs=dict.fromkeys(AcceptedRun, BASELINE), contents=CONTENTS)
    rules = judged_columns(policy, PLAN, columns, comparison, suites=GIVEN.suites)
    return [rule for rule in rules if rule.is_binding]


def fails(rules):
    return any(rule.outcome is Outcome.FAIL for rule in rules)


def passes(rules):
    open_ones = [rule for rule in rules if rule.outcome is not Outcome.PASS]
    return all(rule.outcome is Outcome.INCONCLUSIVE and rule.warns for rule in open_ones)


def answers(share, of_one, column, seed):
    """Columns of verdicts: a share of all follow-ups, or of one term, is violated (refused)."""
    rng = np.random.default_rng(seed)
    terms = np.asarray([unit.dimensions["term"] for unit in PLAN.units])
    control = np.asarray([unit.is_control for unit in PLAN.units])
    rate = np.where(control | ((of_one != "") & (terms != of_one)), 0.0, share)
    found = (rng.random(len(terms)) < rate).astype(np.float64)
    return {name: found if name == column else 0 * found for name in COLUMNS}


BOUND = {"metric": "asr/generation", "max": 0.3}
REFUSALS = {"parity": "unreadable", "max": 0.02}


@example(([BOUND, REFUSALS], [BOUND, {**REFUSALS, "max": 0.3}]), 0.15, "", "unreadable", 0)
@example(([BOUND, REFUSALS], [BOUND, {**REFUSALS, "advisory": True}]), 0.15, "", "unreadable", 0)
@given(
    changes(),
    st.sampled_from([0.04, 0.15, 0.4, 1.0]),
    st.sampled_from(["", "woman"]),
    st.sampled_from(COLUMNS),
    st.integers(0, 9),
)
def test_what_fails_before_and_passes_after_is_listed(change, share, of_one, column, seed):
    try:
        before, after = (policy_of(gates) for gates in change)
    except ValidationError:
        reject()
    columns = answers(share, of_one, column, seed)
    if fails(judged(before, columns)) and passes(judged(after, columns)):
        event("red before, green after")
        assert loosened(before, after, (PLAN, PLAN), (GIVEN.suites, GIVEN.suites))
