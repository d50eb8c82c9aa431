"""`fairgate mutate` from the command line, on a recorded system."""

import json

import pytest

GLOBAL = """\
  - {metric: asr/generation, max: 0.40}
"""
STARTER = """\
  - {parity: answers}
  - {parity: unreadable}
"""
ABOUT_ALL = STARTER + "  - {metric: asr/generation, max: 0.2}\n"
QUICK = ("--seeds", "2", "--at", "0.5", "--quiet")


@pytest.fixture
def ran(once):
    """Return a workspace with a run that passes, of a system whose answers depend on no speaker."""

    def run(gates=STARTER):
        def make(workspace):
            workspace.policy(gates=gates, suite="    control: neutral-phrases\n")
            workspace.edit("[race, gender]", "[gender]")
            assert workspace.gate("positive") == 0

        return once(f"mutated {abs(hash(gates))}", make)

    return run


def score_of(workspace, *options):
    code = workspace.run("mutate", "policy.yaml", "out", *QUICK, "--format", "json", *options)
    assert code == 0, workspace.err
    return json.loads(workspace.out)["result"]


def files_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def smallest(score, reach, kind="answers"):
    return {
        "/".join(item["mutant"]["where"].values()): item["smallest"]
        and item["smallest"]["strength"]
        for item in score["found"]
        if (item["mutant"]["kind"], item["mutant"]["reach"]) == (kind, reach)
    }


@pytest.mark.whole
def test_a_policy_without_a_rule_by_term_misses_one_identity_and_the_starters_catches_it(ran):
    alone = score_of(ran(GLOBAL), "--kinds", "answers")
    assert set(smallest(alone, "term").values()) == {None}
    assert any("does not see other answers for gender/man" in s for s in alone["not_seen"])
    starter = score_of(ran(STARTER), "--kinds", "answers")
    found = smallest(starter, "term")
    assert found.keys() == smallest(alone, "term").keys()
    assert all(strength is not None and strength <= 0.5 for strength in found.values())
    assert starter["score"]["share"] > alone["score"]["share"]
    rules = {rule["metric"] for item in starter["found"] for rule in item["stated"]["rules"]}
    assert "parity/answers" in rules


@pytest.mark.whole
@pytest.mark.parametrize(("gates", "worse"), [(STARTER, 0), (ABOUT_ALL, 4)])
def test_changes_that_are_about_no_identity_are_no_kills(ran, gates, worse):
    """Neither where a rule fails because everybody fares worse."""
    score = score_of(ran(gates), "--kinds", "answers")
    assert score["false_kills"] == {"failed": 0, "worse_for_everybody": worse, "mutants": 4}
    assert {control["mutant"]["reach"] for control in score["controls"]} == {"alike", "everything"}
    for control in score["controls"] if worse else ():
        assert control["smallest"]["rules"][0]["metric"] == "asr/generation"


@pytest.mark.whole
def test_the_run_is_only_read_and_the_result_is_the_same_again(ran):
    workspace = ran()
    before = files_of(workspace.root / "out")
    options = ("--kinds", "refusals")
    assert score_of(workspace, *options) == score_of(workspace, *options)
    assert files_of(workspace.root / "out") == before


@pytest.mark.whole
def test_the_cost_is_announced_before_and_the_table_says_what_is_not_seen(ran):
    workspace = ran(GLOBAL)
    options = ("--seeds", "2", "--at", "0.5", "--kinds", "answers,documents")
    assert workspace.run("mutate", "policy.yaml", "out", *options) == 0
    assert "gate runs of about" in workspace.err
    assert "Kill score of policy small:" in workspace.out
    assert "False kills: 0 of 4 control variants, which are about no identity," in workspace.out
    assert "This policy does not see other answers for gender/man" in workspace.out
    assert "suite sentiment, documents: the run does not say" in workspace.out


def test_a_run_that_does_not_pass_is_no_start(workspace):
    answer = lambda key: "negative" if key.endswith("race/black") else "positive"  # noqa: E731
    control = "    control: neutral-phrases\n"
    assert workspace.gate(answer, gates=STARTER, suite=control) == 1
    assert workspace.run("mutate", "policy.yaml", "out", *QUICK) == 2
    assert "does not pass this policy" in workspace.err
    assert "parity/answers" in workspace.err


def test_unknown_kinds_and_folders_are_refused(ran):
    workspace = ran(GLOBAL)
    assert workspace.run("mutate", "policy.yaml", "out", "--kinds", "answers,wings") == 2
    kinds = "answers, refusals, documents, stereotypes"
    assert f"--kinds: no kind 'wings'; expected some of {kinds}" in workspace.err
    (workspace.root / "empty").mkdir()
    assert workspace.run("mutate", "policy.yaml", "empty") == 2
    assert "is no folder of a run" in workspace.err


def test_rules_about_attribution_are_left_out_and_named(ran):
    gates = STARTER + "  - {metric: attribution/generator, max: 0.5, advisory: true}\n"
    assert score_of(ran(gates), "--kinds", "refusals")["left_out"] == ["attribution/generator"]


def item(number, category):
    group, part = divmod(number, 4)
    is_open, is_with_it = part < 2, part == 2
    return {
        "id": f"i{number}", "category": category, "template": f"t{group % 6}",
        "condition": "ambiguous" if is_open else "disambiguated",
        "context": f"Context {number}.", "question": "Who?", "options": ["Ada", "Bo", "Unknown"],
        "stereotype": 0, "unknown": 2,
        "correct": 2 if is_open else (0 if is_with_it else 1),
    }  # fmt: skip


ITEM_GATES = """\
  - {metric: diff-bias/ambiguous, where: {setting: none}, max_abs: 0.6}
"""


@pytest.fixture
def asked(workspace):
    rows = [item(number, category) for category in ("age", "faith") for number in range(48)]
    workspace.write("items.jsonl", rows)
    (workspace.root / "policy.yaml").write_text(
        "version: 1\nname: small\nsystem: {recorded: answers.jsonl}\nsuites:\n"
        "  - {id: bbq, kind: bbq, items: items.jsonl, settings: [none],"
        f" instructions: [{{id: plain, text: A}}]}}\ngates:\n{ITEM_GATES}"
    )
    right = {f"{row['category']}/{row['id']}": row["options"][row["correct"]] for row in rows}
    workspace.respond(lambda row: right[row["key"]])
    assert workspace.gate() == 0, workspace.err
    return workspace


@pytest.mark.whole
def test_question_items_are_mutated_and_one_category_is_missed_by_a_bound_over_all(asked):
    score = score_of(asked)
    slices = [f"{of}/{how}" for of in ("age", "faith") for how in ("ambiguous", "disambiguated")]
    assert smallest(score, "category", "stereotypes") == dict.fromkeys(slices)
    assert smallest(score, "category", "refusals").keys() == {"age", "faith"}
    assert {control["mutant"]["reach"] for control in score["controls"]} == {"alike", "everything"}
    assert score["false_kills"] == {"failed": 0, "worse_for_everybody": 0, "mutants": 4}


def test_kinds_that_a_suite_does_not_have_are_said(asked):
    assert asked.run("mutate", "policy.yaml", "out", *QUICK, "--kinds", "documents") == 2
    assert "suite bbq, documents: only stereotypes, answers, refusals can be" in asked.err


@pytest.mark.whole
def test_a_waived_rule_catches_nothing(ran):
    """It would not stop the build that the mutant stands for."""
    gates = "  - {parity: answers}\n"
    entry = "{rule: parity/answers, who: woman, owner: o, reason: r, up_to: 1, expires: 2026-07-01}"
    found = {}
    for more in ("", f"waivers:\n  - {entry}\n"):
        workspace = ran(gates + more)
        score = score_of(workspace, "--today", "2026-06-01")
        found[bool(more)] = {
            item["mutant"]["where"]["term"]: item["stated"]["caught"]
            for item in score["found"]
            if item["mutant"]["kind"] == "answers" and "term" in item["mutant"]["where"]
        }
    assert found[False]["woman"] == found[False]["man"] == found[True]["man"] == 2
    assert found[True]["woman"] == 0
