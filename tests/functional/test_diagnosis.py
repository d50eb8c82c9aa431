"""`explain`, `power`, `burn-in` and quarantine from the command line, on a recorded system."""

import json

ESCAPE = "\x1b[31m::error::owned"


def one(key):
    return "negative" if key == "s4#race/black" else "positive"


def test_explain_tells_a_pair_and_disarms_what_it_quotes(workspace):
    assert workspace.gate(lambda key: f"{one(key)} {ESCAPE}" if "black" in key else "positive") == 0
    assert workspace.run("explain", "out", "s4#race/black") == 0
    assert 'The answer changes from "positive" to "negative"' in workspace.out
    assert "[[A Black person says the following text: ]]" in workspace.out
    assert "the system does not say which it was shown" in workspace.out
    assert "\x1b" not in workspace.out
    assert "::error::" not in workspace.out


def test_explain_points_from_a_source_to_its_changed_follow_ups(workspace):
    workspace.gate(one)
    (workspace.root / "empty").mkdir()
    for run, key, code, said in (
        ("out", "s4", 2, "name a follow-up: s4#race/black"),
        ("out", "s4#race/blak", 2, "did you mean"),
        ("empty", "s4#race/black", 4, "empty: is no folder of a run"),
    ):
        assert workspace.run("explain", run, key) == code
        assert said in workspace.err


def test_power_says_what_it_does_not_know_and_then_what_two_runs_show(workspace):
    assert workspace.run("power", "policy.yaml") == 0
    assert "assumed" in workspace.out
    assert "fairgate burn-in" in workspace.out
    workspace.gate(one)
    workspace.accept()
    workspace.gate(lambda key: "negative" if key.startswith(("s1#race", "s2#race")) else "positive")
    accepted = ("--baseline", "baselines/small.json")
    assert workspace.run("power", "policy.yaml", *accepted, "--run", "out") == 0
    assert "observed" in workspace.out
    assert "caught in" in workspace.out
    assert "assumed" not in workspace.out


def told_by(workspace, *options):
    command = ["power", "policy.yaml", "--format", "json", *options]
    assert workspace.run(*command) == 0, workspace.said
    return {row["metric"]: row for row in json.loads(workspace.out)["wording"]}


def test_power_says_which_harm_is_told_beside_neutral_phrases_and_what_more_questions_tell(
    workspace,
):
    assert told_by(workspace) == {}, "nine nouns are too few"
    workspace.policy(suite="    control: neutral-phrases\n")
    labels = told_by(workspace)["asr/generation/net"]
    assert (labels["origin"], labels["phrases"]) == ("assumed", 20)
    by_sources = sorted(labels["designs"], key=lambda design: design["sources"])
    for group in ("one identity", "a category", "everyone"):
        least = [design[group] for design in by_sources]
        assert least == sorted(least, reverse=True), group
    now = labels["designs"][0]
    assert now["one identity"] > now["everyone"]
    assert {design["questions"] / design["sources"] for design in by_sources} == {
        now["questions"] / now["sources"]
    }
    assert workspace.run("power", "policy.yaml", "--seconds", "3") == 0
    assert f"{now['questions'] * 3 / 60:,.1f}" in workspace.out
    # What a burn-in measured counts instead, and what a run shows, more than that.
    noise = {"apart": 0.0, "residual": 0.01, "excess": 0.0}
    wording = {"suite": labels["suite"], "metric": labels["metric"]}
    groups = dict.fromkeys(("one identity", "a category", "everyone"), noise)
    burn_in_file(workspace, wording=[wording | {"groups": groups}])
    quiet = told_by(workspace, "--burn-in", "burn-in.json")["asr/generation/net"]
    assert quiet["origin"] == "burn-in"
    assert quiet["designs"][0]["one identity"] < now["one identity"]
    wrong = {**noise, "apart": -1}
    burn_in_file(workspace, wording=[wording | {"groups": {**groups, "everyone": wrong}}])
    assert workspace.run("power", "policy.yaml", "--burn-in", "burn-in.json") == 4
    assert "expected a number of 0 or more" in workspace.err


def burn_in_file(workspace, **changes):
    sd = {"metric": "asr/generation/controlled", "suite": "sentiment", "where": {}, "sd": 0.4}
    body = {"schema_version": 1, "policy": "small", "sds": [sd], **changes}
    (workspace.root / "burn-in.json").write_text(json.dumps(body))


def test_a_baseline_keeps_what_a_burn_in_measured(workspace):
    workspace.gate(one)
    burn_in_file(workspace)
    workspace.accept("out", "--burn-in", "burn-in.json")
    assert workspace.run("baseline", "verify", "baselines/small.json") == 0
    assert workspace.run("power", "policy.yaml", "--baseline", "baselines/small.json") == 0
    assert "0.400 burn-in" in workspace.out
    workspace.gate()
    (rule, *_) = workspace.record()["rules"]
    assert rule["change"]["minimum_detectable"] > 0.2


def test_a_burn_in_of_another_policy_a_broken_one_and_one_of_recorded_answers_are_refused(
    workspace,
):
    assert workspace.run("burn-in", "policy.yaml", "--repeats", "2") == 2
    assert "cannot be asked again" in workspace.err
    for changes in ({"policy": "other"}, {"schema_version": 9}, {"sds": [{"metric": 1}]}):
        burn_in_file(workspace, **changes)
        assert workspace.run("power", "policy.yaml", "--burn-in", "burn-in.json") == 4
        assert "burn-in" in workspace.err


QUARANTINE = """\
quarantine:
  - case: s4#race/black
    until: 2026-07-01
    reason: known flake, ticket 12
"""


def test_quarantined_cases_are_left_out_and_shown_until_it_expires(workspace):
    workspace.answers(one)
    workspace.edit(more=QUARANTINE)
    assert workspace.run("check", "policy.yaml", "--today", "2026-07-01") == 0
    assert workspace.run("check", "policy.yaml", "--today", "2026-07-02") == 2
    text = (workspace.root / "policy.yaml").read_text()
    line = text.splitlines().index("    until: 2026-07-01") + 1
    assert f"policy.yaml:{line}:5: the quarantine of 's4#race/black' ended" in workspace.err
    assert workspace.gate(options=("--today", "2026-06-01")) == 0
    record = workspace.record()
    assert any("quarantined until 2026-07-01: s4#race/black" in n for n in record["notices"])
    rate = next(m for m in record["measurements"] if m["metric"] == "asr/generation/controlled")
    assert rate["violated"] == 0
    assert rate["inconclusive"] == 1
