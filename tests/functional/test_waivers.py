"""A waived failure is shown as waived in every output, until its date, and never as passed."""

import json
import re
from functools import partial
from xml.etree import ElementTree as ET

import pytest
from fakes.shards import in_parts, merged, whole

CONTROLLED = "asr/generation"
TERMS = ("asian", "black", "white", "hispanic", "indian", "biracial", "australian")


def each(limits):
    """Return a rule for each of some identities."""
    where = "where: {{category: race, term: {}}}".format
    return "".join(f"  - {{metric: {CONTROLLED}, {where(term)}, {limits}}}\n" for term in TERMS)


GATES = each("max: 0.2") + f"  - {{metric: {CONTROLLED}, max: 0.9}}\n"
HOSTILE = "@octocat ::error::x <!-- y --> <img src=x> [a](http://b.c) ##[warning]"
DAY = ("--today", "2026-06-01")


def waiver(rule=CONTROLLED, where="{category: race, term: black}", expires="2026-07-01", **more):
    entry = {
        "rule": rule,
        "where": where,
        "owner": "Ada",
        "reason": "ticket 12",
        "expires": expires,
        "up_to": 1,
    }
    entry |= more
    text = ", ".join(f"{key}: {value}" for key, value in entry.items() if value is not None)
    return f"  - {{{text}}}\n"


def waived(*entries):
    return f"waivers:\n{''.join(entries or [waiver()])}"


def biased(key):
    return "negative" if key.endswith("race/black") else "positive"


@pytest.fixture
def biased_run(workspace):
    """A workspace whose answers break one rule; `gate` takes waivers."""

    def gate(*entries, answer=biased, day="2026-06-01", options=(), gates=GATES):
        more = waived(*entries) if entries else ""
        workspace.policy(gates + more)
        workspace.answers(answer)
        everything = ("--format", "md,html,junit,sarif")
        return workspace.run(
            "run", "policy.yaml", "--out", "out", "--today", day, *everything, *options
        )

    workspace.judge = gate
    return workspace


def rule_of(workspace):
    return next(r for r in workspace.record()["rules"] if r["where"].get("term") == "black")


def file(workspace, name):
    return (workspace.root / "out" / name).read_text()


def test_a_waived_failure_is_no_pass_and_stops_no_build(biased_run):
    assert biased_run.judge() == 1
    assert "waived" not in biased_run.out
    assert "waivers" not in biased_run.record()
    assert biased_run.judge(waiver()) == 0
    assert "PASS WITH WARNING passes with 1 waived failure, in small" in biased_run.said
    assert ": 100.0 %, waived until 2026-07-01 by Ada: ticket 12" in biased_run.said
    record, rule = biased_run.record(), rule_of(biased_run)
    assert (record["outcome"], record["exit_code"], record["day"]) == ("pass", 0, "2026-06-01")
    assert rule["outcome"] == "fail"
    assert rule["waived"] == {
        "owner": "Ada", "reason": "ticket 12", "up_to": 1.0, "expires": "2026-07-01"
    }  # fmt: skip


def test_every_format_says_it(biased_run):
    biased_run.judge(waiver())
    sentence = "waived until 2026-07-01 by Ada: ticket 12"
    assert sentence in file(biased_run, "report.md")
    assert "passes with 1 waived failure" in file(biased_run, "report.md").splitlines()[0]
    assert "FAIL, waived" in file(biased_run, "report.md")
    assert sentence in file(biased_run, "report.html")
    junit = ET.fromstring(file(biased_run, "junit.xml"))  # noqa: S314 (our own)
    assert junit.findall(".//failure") == []
    assert any(sentence in one.get("message") for one in junit.findall(".//skipped"))
    (found,) = [
        one
        for one in json.loads(file(biased_run, "report.sarif"))["runs"][0]["results"]
        if "suppressions" in one
    ]
    assert found["level"] == "warning"
    assert found["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": sentence}
    ]


def test_the_last_day_counts_and_the_next_names_whose_waiver_ended(biased_run):
    assert biased_run.judge(waiver(), day="2026-07-01") == 0
    assert biased_run.judge(waiver(), day="2026-07-02") == 1
    assert "the waiver of Ada ended on 2026-07-01 (ticket 12)" in biased_run.said
    assert "waived" not in rule_of(biased_run)


def test_the_next_step_of_a_waived_failure_is_its_date(biased_run):
    later = waiver(where="{category: race, term: asian}", expires="2026-06-20")
    others = lambda key: "negative" if key.endswith(("race/black", "race/asian")) else "positive"  # noqa: E731
    for entries, answer, said in (
        ([waiver()], biased, "Next: fix the waived failure; from the day after 2026-07-01 on"),
        ([waiver(), later], others, "fix the waived failures; from the day after 2026-06-20 on"),
    ):
        assert biased_run.judge(*entries, answer=answer) == 0, biased_run.said
        assert said in " ".join(file(biased_run, "report.md").split()), said
        assert "make this run the first baseline" not in file(biased_run, "report.md")


def test_check_says_that_a_waiver_has_ended(biased_run):
    biased_run.judge(waiver())
    for day, has_ended in (("2026-07-01", False), ("2026-07-02", True)):
        assert biased_run.run("check", "policy.yaml", "--today", day) == 0
        ended = "the waiver of Ada for `asr/generation {category: race, term: black}` ended"
        assert (ended in biased_run.out) == has_ended, biased_run.out


def test_another_failure_still_stops_the_build_and_leads(biased_run):
    def worse(key):
        return "negative" if key.endswith(("race/black", "race/asian")) else "positive"

    assert biased_run.judge(waiver(), answer=worse) == 1
    assert "an Asian person asr/generation: 100.0 % is above the limit" in biased_run.said
    assert "Fails, waived: changed answers, category race, a Black person" in biased_run.said


def test_a_waiver_that_is_not_needed_is_a_note(biased_run):
    assert biased_run.judge(waiver(), answer="positive") == 0
    assert any("is no longer needed, it passes" in one for one in biased_run.record()["notices"])
    assert "waived failure" not in biased_run.out


def test_missing_evidence_is_never_waived(biased_run):
    entries = [waiver(), waiver("parity/unreadable", None, who="race")]
    gates = GATES + "  - {parity: unreadable}\n"
    assert biased_run.judge(*entries, answer="no comment", gates=gates) == 5
    few = {
        "options": ("--baseline", "none"),
        "gates": gates.replace("max: 0.9", "regression: 0.02"),
    }
    assert (
        biased_run.judge(*entries, answer=lambda key: biased(key) if "#race" in key else "", **few)
        == 5
    )


def test_report_only_exits_0_and_says_what_it_said(biased_run):
    assert biased_run.judge(waiver(), options=("--report-only",)) == 0
    assert "passes with 1 waived failure" in biased_run.said


@pytest.mark.parametrize(("entry", "said"), [
    (waiver(where=None), ""),  # the second gate has no slice: allowed
    (waiver(where="{category: race}"), f"no rule is `{CONTROLLED} {{category: race}}`; did you mean"),
    (waiver(where="{term: black}"), "no rule is"),
    (waiver(where="{term: black, category: race}"), ""),
    (waiver(where="{term: '*', category: race}"), "no rule is"),
    (waiver(where="{term: blak, category: race}"), "category: race, term: black}`"),
    (waiver("asr/*"), "no rule is `asr/*"),
    (waiver("asr/generation/controled", None), f"did you mean `{CONTROLLED}`"),
    (waiver("parity/unreadable", None, who="black"), ""),
    (waiver("parity/unreadable", None, who="black") + waiver("parity/unreadable", None, who="race"), ""),
    (waiver("parity/unreadable", None, who="black") * 2, "too; keep one of them"),
    (waiver("parity/unreadable", None), "add `who`, as the report names them"),
    (waiver("parity/unreadable", None, who="race/black"), ""),
    (waiver("parity/unreadable", None, who="everybody"), ""),
    (waiver("parity/unreadable", None, who="RACE"), "nobody is called 'RACE'; did you mean `race`"),
    (waiver("parity/unreadable", None, who="'*'"), "nobody is called '*'"),
    (waiver("parity/unreadable", None, who="gender/black"), "nobody is called 'gender/black'"),
    (waiver("parity/unreadable", None, who="race", up_to=5), "5 waives all; give a value that it can"),
    (waiver("parity/unreadable", None, who="race", up_to=1.0e308), "waives all"),
    (waiver("parity/unreadable", None, who="race", up_to=-2), "is never beyond 1, and -2 waives all"),
    (waiver(up_to=1.5), "1.5 waives all"),
    (waiver("parity/answers", None, who="black"), "no rule is `parity/answers"),
    (waiver(who="black"), "is about nobody by name"),
    (waiver(suite="other"), "suite: other}`; did you mean"),
    (waiver(suite="sentiment"), ""),
    (waiver() + waiver(), "is waived by `waivers[0]` too; keep one of them"),
    (waiver() + waiver(suite="sentiment"), "too; keep one of them"),
    (waiver(expires=None), "`expires` is missing"),
    (waiver(owner=None), "`owner` is missing"),
    (waiver(reason="' '"), "reason: found ' ' (text), expected a text of at most 300 characters; it must"),
    (waiver(owner="x" * 101), "expected a text of at most 100 characters"),
    (waiver(expires="2026-02-30"), "'2026-02-30' is no date; expected YYYY-MM-DD"),
    (waiver(expires="20260701"), "expires: found 20260701"),
    (waiver(expires="2026-07-01T10:00:00Z"), "(text), expected a date, YYYY-MM-DD"),
    (waiver(expires="'٢٠٢٦-07-01'"), "expires: found"),
    (waiver(expires="9999-12-31"), "9999-12-31 is more than 366 days ahead"),
    (waiver(expires="2027-06-02"), ""),
    (waiver(expires="2027-06-03"), "more than 366 days ahead"),
    (waiver(expires="2020-01-01"), ""),  # past: the rule decides
    (waiver(until="2026-07-01"), "unknown key `until`"),
])  # fmt: skip
def test_what_a_waiver_may_say(workspace, entry, said):
    workspace.policy(GATES + "  - {parity: unreadable}\n" + waived(entry))
    assert workspace.run("check", "policy.yaml", *DAY) == (2 if said else 0), workspace.said
    assert said in workspace.said
    if said:
        line = (workspace.root / "policy.yaml").read_text().splitlines().index("waivers:") + 1
        assert f"policy.yaml:{line + entry.count(chr(10))}:" in workspace.err


@pytest.mark.parametrize("more", ["advisory: true, max: 0.2", "report: true"])
def test_a_rule_that_fails_no_build_needs_no_waiver(workspace, more):
    workspace.policy(
        f"{GATES}  - {{metric: {CONTROLLED}, where: {{category: gender}}, {more}}}\n"
        + waived(waiver(where="{category: gender}"))
    )
    assert workspace.run("check", "policy.yaml", *DAY) == 2
    assert "it fails no build; remove the entry" in workspace.said


def test_a_rule_of_several_suites_needs_a_suite(workspace):
    other = "  - {id: second, task: sentiment, sources: sources.jsonl, perturbations: [race]}\n"
    workspace.policy(GATES + waived(), suite=other)
    assert workspace.run("check", "policy.yaml", *DAY) == 2
    assert "set `suite` to `sentiment` or `second`" in workspace.said
    workspace.policy(GATES + waived(waiver(suite="second")), suite=other)
    assert workspace.run("check", "policy.yaml", *DAY) == 0


def test_a_merged_or_aliased_entry_is_read_as_it_is_written(workspace):
    workspace.policy(
        f"  - &rule {{metric: {CONTROLLED}, where: &race {{category: race}}, max: 0.9}}\n"
        + waived(waiver(where="*race"))
    )
    workspace.run("check", "policy.yaml", *DAY)
    assert workspace.run("check", "policy.yaml", *DAY) == 0, workspace.err


def test_hostile_words_do_nothing_anywhere(biased_run):
    text = json.dumps(HOSTILE)
    assert biased_run.judge(waiver(reason=text, owner=text)) == 0
    for said in (biased_run.out, biased_run.err, file(biased_run, "report.md")):
        assert "::error" not in said
        assert "##[warning" not in said
    markdown = re.sub("`[^`]*`", "", file(biased_run, "report.md"))  # code is shown as it is
    for live in ("<!-- y", "<img", "[a](http", " @octocat"):
        assert live not in markdown
    assert "<img src=x>" not in file(biased_run, "report.html")


def test_answers_that_are_judged_again(biased_run):
    """A rescore is a verdict of its day."""
    biased_run.judge(waiver())
    again = ("rescore", "out", "--out", "again")
    assert biased_run.run(*again, "--today", "2026-07-01") == 0, biased_run.err
    assert biased_run.run(*again, "--today", "2026-07-02") == 1


def test_an_accepted_run_keeps_the_waiver_in_its_reason(biased_run):
    biased_run.judge(waiver())
    biased_run.accept("out", *DAY)
    found = json.loads((biased_run.root / "baselines/small.json").read_text())["reason"]
    assert found == (
        f"first (with a waived failure, {CONTROLLED}: waived until 2026-07-01 by Ada: ticket 12)"
    )


def test_parts_of_a_run_are_merged_to_the_same_bytes(biased_run):
    biased_run.judge(waiver())
    expected = whole(biased_run.run, "policy.yaml", *DAY)
    in_parts(biased_run.run, "policy.yaml", 2)
    found = merged(biased_run.run, *DAY)
    assert found == expected
    assert b'"waived"' in found["run.json"]


def test_the_title_counts_and_the_list_is_short(biased_run):
    entries = [waiver(where=f"{{category: race, term: {term}}}") for term in TERMS]
    answer = {f"race/{term}" for term in TERMS}
    code = biased_run.judge(
        *entries,
        answer=lambda key: "negative" if key.partition("#")[2] in answer else "positive",
    )
    assert code == 0, biased_run.out
    assert "passes with 7 waived failures" in biased_run.said
    assert biased_run.out.count("Fails, waived: ") == 6


LIMITS = {
    # the rule's limits, what the values of a waiver let through, and what they do not
    "max: 0.2": ([1], [0.21, 0.99]),
    "max_abs: 0.2": ([1, -1], [0.5]),
    "max: 0.2, min: 0.1": ([1], [0.5]),
    "max: 0.2, evidence: significant": ([1], [0.9]),
}


@pytest.mark.walk(2)
@pytest.mark.parametrize("limits", LIMITS)
def test_a_waiver_holds_up_to_its_value(biased_run, limits):
    """The value of `black` is 1: every answer about it is another one."""
    gates = each(limits)
    if "min" in limits:
        where = "where: {category: race, term: black}"
        gates = f"  - {{metric: {CONTROLLED}, {where}, {limits}}}\n"
    covered, uncovered = LIMITS[limits]
    for up_to in covered:
        assert biased_run.judge(waiver(up_to=up_to), gates=gates) == 0, (up_to, biased_run.said)
        assert rule_of(biased_run)["waived"]["up_to"] == up_to
    for up_to in uncovered:
        assert biased_run.judge(waiver(up_to=up_to), gates=gates) == 1, up_to
        assert "waived" not in rule_of(biased_run)
        assert f"the waiver of Ada holds up to {up_to:g} only" in biased_run.said


def test_a_value_below_a_least_one_is_waived_down_to_its_value(biased_run):
    where = "where: {category: race, term: black}"
    gates = f"  - {{metric: {CONTROLLED}, {where}, min: 0.5}}\n"
    for up_to, code in ((0, 0), (-0.1, 0), (0.1, 1), (0.4, 1)):
        found = biased_run.judge(waiver(up_to=up_to), gates=gates, answer="positive")
        assert found == code, (up_to, biased_run.said)


REGRESSION = f"""\
  - {{metric: {CONTROLLED}, where: {{category: race, term: black}}, LIMITregression: 0.02}}
"""


@pytest.mark.walk(3)
@pytest.mark.parametrize("limit", ["", "max: 0.2, ", "max: 0.9, "])
@pytest.mark.parametrize("rule", [CONTROLLED, f"{CONTROLLED}/baseline"])
def test_a_waiver_covers_a_regression_only_where_it_says_so(biased_run, limit, rule):
    gates = REGRESSION.replace("LIMIT", limit)
    where = "{category: race, term: black}"
    assert biased_run.judge(gates=gates, answer="positive") == (0 if limit else 5), biased_run.said
    biased_run.accept("out")
    code = biased_run.judge(waiver(rule, where=where), gates=gates)
    assert code == (1 if rule == CONTROLLED else 0), biased_run.said
    if code:
        assert "the waiver of Ada covers no regression" in biased_run.said
    # One of another rule for the same slice is not covered either.
    both = REGRESSION.replace("LIMIT", "") + REGRESSION.replace("LIMIT", limit or "max: 0.2, ")
    both = both.replace(f"{limit or 'max: 0.2, '}regression: 0.02", "max: 0.2")
    found = biased_run.judge(waiver(rule, where=where), gates=both)
    assert found == code, biased_run.said


@pytest.mark.parametrize("wrong", ["", ".inf", ".nan", "much", "null"])
def test_a_waiver_without_a_value_is_no_waiver(biased_run, wrong):
    biased_run.policy(GATES + waived(waiver(up_to=wrong or None)))
    assert biased_run.run("check", "policy.yaml") == 2
    assert "up_to" in biased_run.said


ALIKE = {
    "hair": ["black", "grey"], "other": ["race", "tall"], "odd": ["everybody", "short"],
}  # fmt: skip


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    ("who", "harmed", "code"),
    [
        ("black", "race/black", 2), ("hair/black", "race/black", 1), ("race/black", "race/black", 0),
        ("race/black", "hair/black", 1), ("other/race", "other/race", 0), ("race", "other/race", 1),
        ("race", "race/", 0), ("odd/everybody", "odd/everybody", 0), ("everybody", "odd/everybody", 1),
    ],
)  # fmt: skip
def test_a_name_that_several_have_waives_for_one_of_them(biased_run, who, harmed, code):
    for name, terms in ALIKE.items():
        rows = "".join(
            f"  - {{term: {t}, noun_phrase: 'A person with {t} {name}'}}\n" for t in terms
        )
        (biased_run.root / f"{name}.yaml").write_text(f"id: {name}\nterms:\n{rows}")
    write = biased_run.policy

    def policy(gates):
        text = write(gates, suite="    control: neutral-phrases\n")
        sets = ", ".join(f"{name}.yaml" for name in ALIKE)
        text = re.sub(r"perturbations: \[(.*?)\]", rf"perturbations: [\1, {sets}]", text)
        (biased_run.root / "policy.yaml").write_text(text)

    biased_run.policy = policy
    harm = lambda key: "negative" if f"#{harmed}" in key else "positive"  # noqa: E731
    gates = "  - {parity: answers}\n"
    assert biased_run.judge(gates=gates, answer=harm) == 1, biased_run.said
    entry = waiver("parity/answers", None, who=who)
    if code == 2:
        biased_run.policy(gates + waived(entry))
        assert biased_run.run("check", "policy.yaml", *DAY) == 2
        assert "'black' is `hair/black` and `race/black`; name one of them so" in biased_run.said
    else:
        assert biased_run.judge(entry, gates=gates, answer=harm) == code, biased_run.said


def test_a_difference_is_waived_for_whom_the_waiver_names(biased_run):
    """And for nobody else, however alike the difference is."""
    parity = "  - {parity: answers}\n"
    known = waiver("parity/answers", None, who="black")
    biased_run.policy = partial(biased_run.policy, suite="    control: neutral-phrases\n")
    assert biased_run.judge(gates=parity) == 1
    assert biased_run.judge(known, gates=parity) == 0, biased_run.said
    assert "passes with 1 waived failure" in biased_run.said
    assert "a Black person" in biased_run.said.partition("waived until 2026-07-01 by Ada")[0]
    assert biased_run.judge(known.replace("black", "asian"), gates=parity) == 1
    both = lambda key: "negative" if key.endswith(("race/black", "race/asian")) else "positive"  # noqa: E731
    assert biased_run.judge(known, gates=parity, answer=both) == 1


@pytest.mark.parametrize("answer", [
    biased, lambda key: "negative" if "race/" in key else "positive",
])  # fmt: skip
def test_the_waiver_that_a_report_names_does_waive(biased_run, answer):
    """It is applied to the stored result; each further one that is printed then, too."""
    entries = []
    code = biased_run.judge(answer=answer, gates="  - {parity: all}\n")
    assert code == 1, biased_run.out + biased_run.err
    while code == 1 and len(entries) < 5:
        said = " ".join(biased_run.out.split())
        found = re.search(r"with waivers \((rule: [^)]+)\)", said)[1].split("; ")
        named = [re.fullmatch(r"rule: (\S+), who: (.+)", one).groups() for one in found]
        entries += [waiver(rule, None, who=who) for rule, who in named]
        code = biased_run.judge(*entries, answer=answer, gates="  - {parity: all}\n")
    assert code == 0, biased_run.out + biased_run.err


def test_no_waiver_is_named_where_evidence_lacks_too(biased_run):
    answer = lambda key: "no idea" if key.endswith("race/black") else "positive"  # noqa: E731
    assert biased_run.judge(answer=answer, gates="  - {parity: all}\nmin_decided: 0.99\n") == 1
    assert "waivers" not in biased_run.out


def test_a_waiver_of_nobody_is_an_error_that_names_somebody(workspace):
    for who, hint in (("a Black person", "; write `race/black`"), ("elderly", "")):
        entry = waiver("parity/answers", None, who=who)
        workspace.policy("  - {parity: all}\n" + waived(entry))
        assert workspace.run("check", "policy.yaml") == 2
        assert f"nobody is called '{who}'{hint}" in workspace.err
