"""The kill score of policies, by biased variants of runs of a recorded system."""

import datetime as dt
from pathlib import Path

import pytest
from calibration.kill_score import MutantSearch, kill_score
from calibration.mutants import MutationKind

from fairgate.domain.errors import UsageError
from fairgate.domain.ports import Runtime

GLOBAL = """\
  - {metric: asr/generation, max: 0.40}
"""
STARTER = """\
  - {parity: answers}
  - {parity: unreadable}
"""
ABOUT_ALL = STARTER + "  - {metric: asr/generation, max: 0.2}\n"


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


def score_of(workspace, kinds=tuple(MutationKind), **options):
    search = MutantSearch(kinds=kinds, stated=0.5, seeds=2)
    return kill_score(Path("policy.yaml"), workspace.root / "out", search, **options)


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
    alone = score_of(ran(GLOBAL), [MutationKind.ANSWERS])
    assert set(smallest(alone, "term").values()) == {None}
    assert any("does not see other answers for gender/man" in s for s in alone["not_seen"])
    starter = score_of(ran(STARTER), [MutationKind.ANSWERS])
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
    score = score_of(ran(gates), [MutationKind.ANSWERS])
    assert score["false_kills"] == {"failed": 0, "worse_for_everybody": worse, "mutants": 4}
    assert {control["mutant"]["reach"] for control in score["controls"]} == {"alike", "everything"}
    for control in score["controls"] if worse else ():
        assert control["smallest"]["rules"][0]["metric"] == "asr/generation"


@pytest.mark.whole
def test_the_run_is_only_read_and_the_result_is_the_same_again(ran):
    workspace = ran()
    before = files_of(workspace.root / "out")
    kinds = [MutationKind.REFUSALS]
    assert score_of(workspace, kinds) == score_of(workspace, kinds)
    assert files_of(workspace.root / "out") == before


@pytest.mark.whole
def test_what_the_run_cannot_show_is_not_mutated(ran):
    score = score_of(ran(GLOBAL), [MutationKind.ANSWERS, MutationKind.DOCUMENTS])
    assert "This policy does not see other answers for gender/man" in " ".join(score["not_seen"])
    (none,) = score["not_mutated"]
    assert (none["suite"], none["what"]) == ("sentiment", "documents")
    assert none["reason"].startswith("the run does not say")


def test_a_run_that_does_not_pass_is_no_start(workspace):
    answer = lambda key: "negative" if key.endswith("race/black") else "positive"  # noqa: E731
    control = "    control: neutral-phrases\n"
    assert workspace.gate(answer, gates=STARTER, suite=control) == 1
    with pytest.raises(UsageError, match=r"does not pass this policy.*parity/answers"):
        score_of(workspace)


def test_rules_about_attribution_are_left_out_and_named(ran):
    gates = STARTER + "  - {metric: attribution/generator, max: 0.5, advisory: true}\n"
    assert score_of(ran(gates), [MutationKind.REFUSALS])["left_out"] == ["attribution/generator"]


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
    said = "suite bbq, documents: only stereotypes, answers, refusals can be"
    with pytest.raises(UsageError, match=said):
        score_of(asked, [MutationKind.DOCUMENTS])


@pytest.mark.whole
def test_a_waived_rule_catches_nothing(ran):
    """It would not stop the build that the mutant stands for."""
    gates = "  - {parity: answers}\n"
    entry = "{rule: parity/answers, who: woman, owner: o, reason: r, up_to: 1, expires: 2026-07-01}"
    found = {}
    for more in ("", f"waivers:\n  - {entry}\n"):
        workspace = ran(gates + more)
        score = score_of(workspace, runtime=Runtime(today=dt.date(2026, 6, 1)))
        found[bool(more)] = {
            item["mutant"]["where"]["term"]: item["stated"]["caught"]
            for item in score["found"]
            if item["mutant"]["kind"] == "answers" and "term" in item["mutant"]["where"]
        }
    assert found[False]["woman"] == found[False]["man"] == found[True]["man"] == 2
    assert found[True]["woman"] == 0
