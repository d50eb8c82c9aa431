"""What a change of a policy makes easier, in words."""

import pytest
from fakes.policies import parse_policy, plan_of, suites_of

from fairgate.github.loosenings import loosened

BASE = """\
version: 1
name: p
regression_level: 0.01
min_decided: 0.95
max_invalid: 0.1
min_overlap: 0.9
seed: 42
system: {recorded: a.jsonl}
suites:
  - {id: s, task: sentiment, sources: demo-reviews, limit: 50, perturbations: [race, gender]}
  - {id: t, task: sentiment, sources: demo-reviews, limit: 4}
gates:
  - {metric: asr/generation, max: 0.2, regression: 0.02, budget: 0.04}
  - {metric: asr/generation, where: {category: race}, max: 0.3, evidence: estimate}
  - {metric: rrs/mean, min: 0.1, max_abs: 1.0}
  - {parity: all, suite: s, max: 0.06, regression: 0.03, must_see: 0.15}
"""
WAIVERS = """\
waivers:
  - {rule: asr/generation, where: {category: race}, suite: s, expires: "2026-01-01", reason: r, owner: o, up_to: 0.5}
"""

WAIVED = 'waived: up_to 0.5, expires "2026-01-01"'


def looser(before, after):
    """What the policy `after` holds less strictly."""
    policies = (parse_policy(text, "p.yaml").policy for text in (before, after))
    found = loosened(
        *policies, (plan_of(before), plan_of(after)), (suites_of(before), suites_of(after))
    )
    return [one.sentence for one in found]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("max: 0.2,", "max: 0.25,", "asr/generation: max raised from 0.2 to 0.25"),
        ("max: 0.2, ", "", "max 0.2 removed"),
        ("max: 0.3", "max: 0.4", "category=race): max raised"),
        ("min: 0.1", "min: 0.05", "min lowered from 0.1 to 0.05"),
        ("max_abs: 1.0", "max_abs: 2.0", "max_abs raised"),
        ("regression: 0.02", "regression: 0.03", "asr/generation: regression raised from 0.02 to 0.03"),
        ("budget: 0.04", "budget: 0.05", "budget raised from 0.04 to 0.05"),
        (", budget: 0.04", "", "budget 0.04 removed"),
        ("max: 0.2,", "max: 0.2, advisory: true,", "made advisory"),
        ("evidence: estimate", "evidence: significant", "evidence lowered from estimate to significant"),
        ("seed: 42", "seed: 42\nconstant_answers: allow", "constant_answers changed from refuse to"),
        ("min_overlap: 0.9", "min_overlap: 0.1", "min_overlap lowered"),
        ("name: p", "name: q", "name changed from p to q: another baseline"),
        ("seed: 42", "seed: 43", "seed changed from 42 to 43"),
        ("{recorded: a.jsonl}", "{recorded: b.jsonl}", 'recorded changed from "a.jsonl" to "b.jsonl"'),
        ("regression_level: 0.01", "regression_level: 0.001", "somebody is named less easily"),
        ("regression_level: 0.01\n", "", None),  # as much by default
        ("min_decided: 0.95", "min_decided: 0.5", "min_decided lowered"),
        ("max_invalid: 0.1", "max_invalid: 0.9", "max_invalid raised"),
        ("limit: 50", "limit: 5", "suite s: limit changed from 50 to 5"),
        ("  - {id: t, task: sentiment, sources: demo-reviews, limit: 4}\n", "", "suite removed: t"),
        ("  - {metric: rrs/mean, min: 0.1, max_abs: 1.0}\n", "", "rule removed"),
    ],
)  # fmt: skip
def test_what_is_easier_is_said(before, after, said):
    assert before in BASE
    found = looser(BASE, BASE.replace(before, after))
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


@pytest.mark.parametrize(("before", "after", "said"), [
    ("waivers", "waivers", []),
    (WAIVERS, "", []),
    ('2026-01-01", reason: r, o', '2025-12-31", reason: r, o', []),
    ("owner: o", "owner: p", []),
    ("", WAIVERS, [f"asr/generation (category=race, suite=s): {WAIVED}"]),
    ('2026-01-01", reason: r, o', '2026-01-02", reason: r, o',
     ["asr/generation (category=race, suite=s): waived until 2026-01-02, before until 2026-01-01"]),
    ("suite: s, exp", "suite: t, exp", [f"asr/generation (category=race, suite=t): {WAIVED}"]),
    ("where: {category: race}, suite: s, exp", "suite: s, exp", [f"asr/generation (suite=s): {WAIVED}"]),
    (
        "rule: asr/generation, where: {category: race}", "rule: parity/answers, who: race",
        [f"parity/answers (suite=s) for race: {WAIVED}"],
    ),
    ("max: 0.3, evidence: estimate}", "max: 0.2, evidence: estimate}", []),  # a stricter rule, still waived
])  # fmt: skip
def test_what_is_waived_for_longer_is_said(before, after, said):
    text = BASE + WAIVERS if before else BASE
    assert looser(text, text.replace(before, after) if before else text + after) == said


PARITY = WAIVERS.replace(
    "rule: asr/generation, where: {category: race}", "rule: parity/answers/baseline, who: race"
)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("who: race", "who: black", f"for black: {WAIVED}"),
        ("answers/baseline", "answers", f"parity/answers (suite=s) for race: {WAIVED}"),
        ("up_to: 0.5", "up_to: 0.6", "for race: waived up to 0.6, before up to 0.5"),
        ("up_to: 0.5", "up_to: 0.4", None),
        ("2026-01-01", "2026-01-02", "waived until 2026-01-02, before until 2026-01-01"),
    ],
)  # fmt: skip
def test_a_wider_waiver_of_parity_is_said_for_whom_it_is(before, after, said):
    text = BASE + PARITY
    found = looser(text, BASE + PARITY.replace(before, after))
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


ALL = "{parity: all, suite: s, max: 0.06, regression: 0.03, must_see: 0.15}"
ANSWERS, UNREADABLE = "parity/answers", "parity/unreadable"


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("max: 0.06", []),
        ("max: 0.05, regression: 0.01", []),
        ("max: 0.07", ["parity/answers (suite=s): max raised from 0.06 to 0.07"]),
        ("regression: 0.04", ["parity/answers/baseline (suite=s): regression raised from 0.03 to 0.04"]),
        ("must_see: 0.2", ["parity/answers (suite=s): must_see raised from 0.15 to 0.2"]),
        ("must_see: null", ["parity/answers (suite=s): must_see 0.15 removed"]),
        ("advisory: true", ["parity: all (suite=s): made advisory: it no longer fails the build"]),
        ("budget: 0.1", []),
    ],
)  # fmt: skip
def test_a_question_that_is_asked_less_strictly_is_said(after, said):
    """Whichever outcome it is of: `all` is several questions."""
    name, _, value = after.partition(": ")
    parts = {"max": "0.06", "regression": "0.03", "must_see": "0.15"}
    changed = {**parts, **dict(part.split(": ") for part in after.split(", "))}
    entry = ", ".join(f"{key}: {value}" for key, value in changed.items() if value != "null")
    found = looser(BASE, BASE.replace(ALL, f"{{parity: all, suite: s, {entry}}}"))
    assert [one for one in found if ANSWERS in one or "parity: all" in one] == said
    unreadable = [one for one in found if UNREADABLE in one]
    assert unreadable == [one.replace(ANSWERS, UNREADABLE) for one in said if ANSWERS in one]
    assert (name, value) != ("", "")


@pytest.mark.parametrize(
    ("after", "gone"),
    [
        ("{parity: answers, suite: s, max: 0.06, regression: 0.03, must_see: 0.15}", UNREADABLE),
        ("{parity: all, suite: t, max: 0.06, regression: 0.03, must_see: 0.15}", "parity: all"),
        (ALL.replace("suite: s", "suite: s, where: {category: race}"), "parity: all"),
    ],
)
def test_less_in_the_place_of_every_outcome_is_said(after, gone):
    found = looser(BASE, BASE.replace(ALL, after))
    assert any(one.startswith(gone) and "rule removed" in one for one in found), found


def test_a_budget_that_is_raised_or_gone_is_said():
    base = BASE.replace("regression: 0.03, must", "regression: 0.03, budget: 0.1, must")
    for name in (ANSWERS, UNREADABLE):
        place = f"{name}/anchor (suite=s): "
        raised = looser(base, base.replace("budget: 0.1,", "budget: 0.2,"))
        assert f"{place}budget raised from 0.1 to 0.2" in raised
        assert f"{place}budget 0.1 removed" in looser(base, base.replace("budget: 0.1,", ""))


def test_a_more_particular_question_takes_the_place_of_a_general_one():
    base = BASE.replace("parity: all, suite: s", "parity: all")
    added = base + "  - {parity: answers, suite: s, max: 0.9}\n"
    (said, *_) = looser(base, added)
    assert said.startswith("parity/answers (suite=s): ")


def test_a_policy_that_takes_the_standard_limits_asks_less_where_others_were_stricter():
    with_gates = BASE[: BASE.index("gates:")] + "gates:\n  - {parity: all, max: 0.01}\n"
    standard = BASE[: BASE.index("gates:")] + "gates:\n  - {parity: all}\n"
    assert "parity/answers (suite=s): max raised from 0.01 to 0.05" in looser(with_gates, standard)
    assert looser(standard, with_gates) == []


LAST = BASE.splitlines(keepends=True)[-1]
ADDED = {
    "a slice": (LAST, LAST + "  - {parity: answers, suite: t, where: {category: race}}\n"),
    "a suite": ("gates:\n", "  - {id: u, task: sentiment, sources: demo-reviews}\ngates:\n"),
    "suites": (
        "gates:\n",
        "".join(f"  - {{id: u{n}, task: toxicity, sources: demo-reviews}}\n" for n in range(9)) + "gates:\n",
    ),
    "a rule that compares": (LAST, LAST + "  - {metric: rrs/mean, suite: t, regression: 0.5}\n"),
    "a rule with a budget": (LAST, LAST + "  - {metric: rrs/mean, suite: t, budget: 0.5}\n"),
}  # fmt: skip


@pytest.mark.walk(2)
@pytest.mark.parametrize("way", ADDED)
def test_whatever_is_asked_besides_shares_the_level_of_what_was_asked(way):
    """What was significant before need not be so beside it (Holm)."""
    found = looser(BASE, BASE.replace(*ADDED[way], 1))
    assert any("share one level" in said for said in found)
    assert not any("share one level" in said for said in looser(BASE.replace(*ADDED[way], 1), BASE))


def test_a_rule_whose_slice_is_no_longer_asked_about_is_said_beside_the_suite():
    found = looser(BASE, BASE.replace("[race, gender]", "[gender]"))
    places = [one.partition(": ")[0] for one in found]
    assert places == ["asr/generation (category=race, suite=s)", "suite s"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("max: 0.2,", "max: 0.1,"), ("min: 0.1", "min: 0.5"), ("regression: 0.02", "regression: 0.01"),
        ("budget: 0.04", "budget: 0.03"), ("regression_level: 0.01", "regression_level: 0.05"),
        ("min_decided: 0.95", "min_decided: 0.99"), ("max_invalid: 0.1", "max_invalid: 0.05"),
        ("min_overlap: 0.9", "min_overlap: 1.0"),
        ("reason: r", "reason: another"), ("reason: r}", "reason: r}\nredact: hash"),
        ("gates:\n", "gates:\n  - {metric: asr/retrieval, max: 0.01}\n"),
    ],
)  # fmt: skip
def test_what_is_stricter_is_not(before, after):
    assert looser(BASE, BASE.replace(before, after)) == []


def test_what_is_another_line_and_the_same_rules_is_not():
    one_suite = BASE.replace("  - {id: t, task: sentiment, sources: demo-reviews, limit: 4}\n", "")
    own = one_suite.replace("0.3, evidence", "0.3, suite: s, evidence")
    assert own != one_suite
    assert looser(one_suite, own) == []


def test_the_worst_stands_first():
    """Whatever is cut, it is not the rule that no longer holds."""
    many = "".join(
        f"  - {{metric: asr/retrieval, where: {{category: {name}}}, max: 0.2}}\n"
        for name in ("race", "gender")
    )
    before = after = BASE + many
    for was, now in (
        ("race}, max: 0.2", "race}, max: 0.21"), ("gender}, max: 0.2", "gender}, max: 0.99"),
        ("max: 0.2,", "max: 0.3,"),
        ("  - {metric: rrs/mean, min: 0.1, max_abs: 1.0}\n", ""),
    ):  # fmt: skip
        after = after.replace(was, now)
    said = [one.partition(": ")[2] for one in looser(before, after)]
    raised = [f"max raised from 0.2 to {limit}" for limit in (0.99, 0.3, 0.21)]
    removed = "rule removed: min 0.1, max_abs 1.0"
    assert said == [removed, *raised]
