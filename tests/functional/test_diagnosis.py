"""`explain` and `power` from the command line, on a recorded system."""

import json

import pytest

ESCAPE = "\x1b[31m::error::owned"


def one(key):
    return "negative" if key == "s4#race/black" else "positive"


def test_explain_tells_a_pair_and_disarms_what_it_quotes(workspace):
    assert (
        workspace.gate(lambda key: f"{one(key)}. {ESCAPE}" if "black" in key else "positive") == 0
    )
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
        ("empty", "s4#race/black", 2, "empty: is no folder of a run"),
    ):
        assert workspace.run("explain", run, key) == code
        assert said in workspace.err


def powers(workspace, *options):
    command = ["power", "policy.yaml", "--format", "json", *options]
    assert workspace.run(*command) == 0, workspace.said
    return {(row["outcome"], row["unit"]): row for row in json.loads(workspace.out)["result"]}


@pytest.mark.whole
def test_power_says_what_more_sources_would_show_by_the_noise_that_is_known(workspace):
    """Assumed, then the baseline's, then the run's; more sources see less, everybody least."""
    noisy = lambda key: "negative" if sum(key.encode()) % 5 == 0 else "positive"  # noqa: E731
    workspace.policy(suite="    control: neutral-phrases\n")
    origins = []
    for make, options in (
        (lambda: None, ()),
        (lambda: workspace.gate(noisy), ("--run", "out")),
        (workspace.accept, ()),
    ):
        make()
        found = powers(workspace, *options)
        assert ("answers", "share") in found
        answers = found["answers", "share"]
        origins.append(answers["noise"]["origin"])
        designs = answers["designs"]
        assert [design["sources"] for design in designs] == [20, 40, 80, 160]
        for level in ("identity", "category", "everybody"):
            least = [design[level] for design in designs]
            assert least == sorted(least, reverse=True), level
        assert designs[0]["identity"] > designs[0]["category"] > designs[0]["everybody"] > 0
        assert workspace.run("power", "policy.yaml", *options) == 0
        assert f"noise: {origins[-1]}" in workspace.out
        assert f"{100 * designs[0]['identity']:.1f}" in workspace.out
    assert origins == ["assumed", "run", "baseline"]


def test_power_of_a_suite_that_asks_no_control_prompts_is_none(workspace):
    workspace.policy(suite="    control: none\n", gates="  - {metric: asr/generation, max: 0.5}\n")
    assert powers(workspace) == {}
    assert workspace.run("power", "policy.yaml") == 0
    assert "No suite asks control prompts" in workspace.out
