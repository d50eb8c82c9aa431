"""What a change of a policy makes easier, in words."""

import pytest
from fakes.policies import parse_policy, plan_of

from fairgate.github.loosenings import loosened

BASE = """\
version: 1
name: p
confidence: 0.95
correction: none
on_inconclusive: fail
min_decided: 0.95
max_invalid: 0.1
min_overlap: 0.9
seed: 42
system: {recorded: a.jsonl}
suites:
  - {id: s, task: sentiment, sources: demo-reviews, limit: 50, perturbations: [race, gender]}
  - {id: t, task: sentiment, sources: demo-reviews, limit: 4}
gates:
  - {metric: asr/generation, max: 0.2, regression: {margin: 0.02, budget: 0.04, detect: 0.05, sd: 0.3}}
  - {metric: asr/generation, where: {category: race}, max: 0.3, evidence: interval}
  - {metric: rrs/mean, min: 0.1, max_abs: 1.0, on_inconclusive: fail}
quarantine:
  - {case: s1, until: "2026-01-01", reason: r}
"""
WAIVERS = """\
waivers:
  - {rule: asr/generation, where: {category: race}, suite: s, expires: "2026-01-01", reason: r, owner: o, up_to: 0.5}
"""


def looser(before, after):
    """What the policy `after` holds less strictly."""
    policies = (parse_policy(text, "p.yaml").policy for text in (before, after))
    found = loosened(*policies, plans=(plan_of(before), plan_of(after)))
    return [one.sentence for one in found]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("max: 0.2,", "max: 0.25,", "asr/generation: max raised from 0.2 to 0.25"),
        ("max: 0.2, ", "", "max 0.2 removed"),
        ("max: 0.3", "max: 0.4", "category=race): max raised"),
        ("min: 0.1", "min: 0.05", "min lowered from 0.1 to 0.05"),
        ("max_abs: 1.0", "max_abs: 2.0", "max_abs raised"),
        (", regression: {margin: 0.02, budget: 0.04, detect: 0.05, sd: 0.3}", "", "comparison with the baseline removed"),
        ("margin: 0.02", "margin: 0.03", "margin raised"),
        ("budget: 0.04", "budget: 0.05", "budget raised from 0.04 to 0.05"),
        (" budget: 0.04,", "", "budget 0.04 removed"),
        ("detect: 0.05", "detect: 0.5", "detect raised"),
        ("max: 0.2,", "max: 0.2, advisory: true,", "made advisory"),
        ("evidence: interval", "evidence: estimate", "evidence lowered"),
        ("max_abs: 1.0, on_inconclusive: fail", "max_abs: 1.0, on_inconclusive: warn", "no longer fails"),
        ("max: 0.2,", "max: 0.2, on_inconclusive: warn,", "no longer fails the build"),
        ("detect: 0.05", "detect: 0.05, strict: true", "strict switched on"),
        ("sd: 0.3", "sd: 0.1", "sd lowered from 0.3 to 0.1"),
        (", sd: 0.3", "", "sd 0.3 removed"),
        ("seed: 42", "seed: 42\nconstant_answers: allow", "constant_answers changed from refuse to"),
        ("min_overlap: 0.9", "min_overlap: 0.1", "min_overlap lowered"),
        ("name: p", "name: q", "name changed from p to q: another baseline"),
        ("confidence: 0.95", "confidence: 0.9", "confidence lowered from 0.95 to 0.9: intervals"),
        ("seed: 42", "seed: 43", "seed changed from 42 to 43"),
        ("{recorded: a.jsonl}", "{recorded: b.jsonl}", 'recorded changed from "a.jsonl" to "b.jsonl"'),
        ("  - {case: s1,", "  - {case: s1, suite: s,", "case quarantined: s1"),
        ("confidence: 0.95", "confidence: 0.999", "confidence raised"),
        ("correction: none", "correction: holm", "correction"),
        ("on_inconclusive: fail\nmin", "on_inconclusive: warn\nmin", "from fail to warn"),
        ("min_decided: 0.95", "min_decided: 0.5", "min_decided lowered"),
        ("max_invalid: 0.1", "max_invalid: 0.9", "max_invalid raised"),
        ("limit: 50", "limit: 5", "suite s: limit changed from 50 to 5"),
        ("  - {id: t, task: sentiment, sources: demo-reviews, limit: 4}\n", "", "suite removed: t"),
        ('"2026-01-01"', '"2027-01-01"', "extended"),
        ("quarantine:\n", 'quarantine:\n  - {case: s2, until: "2026-01-01", reason: r}\n', "s2"),
        ("  - {metric: rrs/mean, min: 0.1, max_abs: 1.0, on_inconclusive: fail}\n", "", "rule removed"),
    ],
)  # fmt: skip
def test_what_is_easier_is_said(before, after, said):
    assert before in BASE
    found = looser(BASE, BASE.replace(before, after))
    assert len(found) == 1
    assert said in found[0]


@pytest.mark.parametrize(("before", "after", "said"), [
    ("waivers", "waivers", []),
    (WAIVERS, "", []),
    ('2026-01-01", reason: r, o', '2025-12-31", reason: r, o', []),
    ("owner: o", "owner: p", []),
    ("", WAIVERS, ["asr/generation (category=race, suite=s): waived until 2026-01-01"]),
    ('2026-01-01", reason: r, o', '2026-01-02", reason: r, o',
     ["asr/generation (category=race, suite=s): waived until 2026-01-02, before until 2026-01-01"]),
    ("suite: s, exp", "suite: t, exp", ["asr/generation (category=race, suite=t): waived until 2026-01-01"]),
    ("where: {category: race}, suite: s, exp", "suite: s, exp", ["asr/generation (suite=s): waived until 2026-01-01"]),
    (
        "rule: asr/generation, where: {category: race}", "rule: unreadable/net",
        ["unreadable/net (suite=s, by default): waived until 2026-01-01"],
    ),
    ("max: 0.3, evidence: interval}", "max: 0.2, evidence: interval}", []),  # a stricter rule, still waived
])  # fmt: skip
def test_what_is_waived_for_longer_is_said(before, after, said):
    text = BASE + WAIVERS if before else BASE
    assert looser(text, text.replace(before, after) if before else text + after) == said


def test_a_waived_default_rule_that_is_written_down_is_no_looser():
    waiver = '  - {rule: unreadable/net, suite: s, expires: "2025-01-01", owner: o, reason: r, up_to: 1}\n'
    text = f"{BASE}waivers:\n{waiver}"
    written = text.replace(
        "gates:\n", "gates:\n  - {metric: unreadable/net, suite: s, max: 0.02}\n"
    )
    assert looser(text, written) == []


def test_a_rule_whose_slice_is_no_longer_asked_about_is_said_beside_the_suite():
    found = looser(BASE, BASE.replace("[race, gender]", "[gender]"))
    places = [one.partition(": ")[0] for one in found]
    assert places == ["asr/generation (category=race, suite=s)", "suite s"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("max: 0.2,", "max: 0.1,"), ("min: 0.1", "min: 0.5"), ("margin: 0.02", "margin: 0.01"),
        ("budget: 0.04", "budget: 0.03"),
        ("min_decided: 0.95", "min_decided: 0.99"), ("sd: 0.3", "sd: 0.5"),
        ("max_invalid: 0.1", "max_invalid: 0.05"), ("min_overlap: 0.9", "min_overlap: 1.0"),
        ("max_abs: 1.0, on_inconclusive: fail", "max_abs: 1.0"),
        ("reason: r", "reason: another"), ("reason: r}", "reason: r}\nredact: hash\ndescription: d"),
        ("gates:\n", "gates:\n  - {metric: unreadable/net, max: 0.01}\n"),
    ],
)  # fmt: skip
def test_what_is_stricter_is_not(before, after):
    assert looser(BASE, BASE.replace(before, after)) == []


MORE = "  - {metric: asr/retrieval, regression: {margin: 0.02}}\n"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("gates:\n", f"gates:\n{MORE}", "more comparisons are corrected for together"),
        ("gates:\n", "  - {id: u, task: sentiment, sources: demo-reviews}\ngates:\n", "more comparisons"),
        ("correction: holm", "correction: none", "switched off: fewer results stay open"),
        ("margin: 0.02", "margin: 0.01", None),
        (" budget: 0.04,", "", "budget 0.04 removed"),
        ("gates:\n", "gates:\n  - {metric: unreadable/net, max: 0.01}\n", None),
        ("gates:\n", "gates:\n  - {metric: identity/max-difference, max: 0.9}\n", "each rule rejects less easily"),
    ],
)  # fmt: skip
def test_what_dilutes_a_correction_is_said(before, after, said):
    text = BASE.replace("correction: none", "correction: holm")
    assert before in text
    found = looser(text, text.replace(before, after))
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


def test_an_open_interval_bound_that_only_warns_is_said_whatever_the_policy_does():
    """It stops the build by default, even where the policy's inconclusive results warn."""
    warns = BASE.replace("on_inconclusive: fail\nmin", "on_inconclusive: warn\nmin")
    assert warns != BASE
    after = warns.replace("evidence: interval", "evidence: interval, on_inconclusive: warn")
    (said,) = looser(warns, after)
    assert "an inconclusive result no longer fails the build" in said
    assert looser(after, warns) == []


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("max: 0.9", "max raised from 0.02 to 0.9"),
        ("max: 0.01, advisory: true", "made advisory: it no longer fails the build"),
        ("max: 0.01, evidence: significant", ""),
        ("max: 0.03, evidence: significant", "max raised from 0.02 to 0.03"),
        ("for_each: term, max: 0.01", "rule removed"),
        ("regression: {margin: 0.5}", "max 0.02 removed"),
        ("max: 0.02", ""),
        ("max: 0.02, evidence: interval", ""),
        ("report: true", ""),
        ("where: {category: race}, max: 0.9", ""),
    ],
)
def test_a_rule_that_replaces_the_stricter_default_one_is_said(gate, said):
    """Otherwise adding a rule would make a policy less strict, and nothing would say so."""
    added = BASE.replace("quarantine:", f"  - {{metric: unreadable/net, {gate}}}\nquarantine:")
    found = looser(BASE, added)
    default = [f"unreadable/net (suite={suite}, by default): {said}" for suite in "st"]
    assert found == (default if said else [])


def test_what_is_another_line_and_the_same_rules_is_not():
    one_suite = BASE.replace("  - {id: t, task: sentiment, sources: demo-reviews, limit: 4}\n", "")
    own = one_suite.replace("0.3, evidence: interval", "0.3, suite: s, evidence: interval")
    assert own != one_suite
    assert looser(one_suite, own) == []


def test_a_line_for_each_term_in_the_place_of_lines_of_their_own():
    lines = [
        f"  - {{metric: asr/retrieval, where: {{category: gender, term: {term}}}, max: 0.1}}\n"
        for term in ("man", "woman", "non-binary")
    ]
    line = "  - {metric: asr/retrieval, where: {category: gender}, for_each: term, max: 0.1}\n"
    texts = "".join(lines), line
    apart, together = (BASE.replace("quarantine:", f"{text}quarantine:") for text in texts)
    assert looser(apart, together) == looser(together, apart) == []
    found = looser(together, apart.replace(lines[1], lines[1].replace("0.1", "0.2")))
    place = "asr/retrieval (category=gender, term=woman, suite={}): max raised from 0.1 to 0.2"
    assert found == [place.format("s"), place.format("t")]


def test_the_worst_stands_first():
    """Whatever is cut, it is not the rule that no longer holds."""
    many = "".join(
        f"  - {{metric: asr/retrieval, where: {{category: {name}}}, max: 0.2}}\n"
        for name in ("race", "gender")
    )
    before = after = BASE.replace("quarantine:", f"{many}quarantine:")
    for was, now in (
        ("race}, max: 0.2", "race}, max: 0.21"), ("gender}, max: 0.2", "gender}, max: 0.99"),
        ("max: 0.2,", "max: 0.3,"),
        ("  - {metric: rrs/mean, min: 0.1, max_abs: 1.0, on_inconclusive: fail}\n", ""),
    ):  # fmt: skip
        after = after.replace(was, now)
    said = [one.rpartition(": ")[2] for one in looser(before, after)]
    raised = [f"max raised from 0.2 to {limit}" for limit in (0.99, 0.3, 0.21)]
    assert said == ["rule removed", *raised]
