"""A baseline's whole life on a real git history, from the first pull request to an upgrade.

And its anchor's: a change cannot reset its own budget, and re-anchoring is said.
"""

import contextlib
import io
from dataclasses import replace

import pytest
from action.repositories import POLICY, fair, introduced, worse

from fairgate.cli import main
from fairgate.gate import accepted_runs, baseline


@pytest.mark.whole
def test_the_life_of_a_baseline(job, history):
    """Introduction, unchanged, regression, trade-off, more sources, a narrow run that is refused."""
    git = history.git
    git("rm", "-q", "-r", "--cached", "policies", "baselines")
    saved = {name: history.read(name) for name in ("policies/small.yaml", "baselines/small.json")}
    for name in saved:
        (history.root / name).unlink()
    history.commit("a repository without a gate")

    # 1. The pull request that introduces the gate: bounds decide, nothing is compared yet.
    history.branch("introduce")
    history.write("policies/small.yaml", saved["policies/small.yaml"])
    history.commit()
    assert job.pull(history) == 0
    assert "introduces the gate" in job.summary
    assert "no baseline yet" in job.summary
    history.land()

    # 2. Its first baseline.
    history.branch("first-baseline")
    history.accept("first")
    history.commit()
    assert job.pull(history) == 0
    assert "first run" in job.summary
    history.land()

    # 3. An unchanged pull request.
    history.branch("unchanged")
    history.write("README.md", "hello")
    history.commit()
    assert job.pull(history) == 0
    history.land()

    # 4. A regression.
    history.branch("regression")
    history.answers(worse)
    history.commit()
    assert job.pull(history) == 1

    # 5. The same, accepted on purpose.
    git("checkout", "-q", "regression")
    history.accept("accepted trade-off")
    history.commit()
    assert job.pull(history) == 1
    assert job.pull_again(history, FAIRGATE_BASELINE_CHANGE="allow") == 0
    history.land()
    assert job.push(history) == 0

    # 6. More sources: the base's decide; once let through, what is shared is compared, what is new
    # is listed.
    history.branch("more-sources")
    history.sources(12)
    history.answers(worse)
    history.commit()
    assert job.pull(history) == 0
    assert job.summary.startswith("**This change edits** sources `sources.jsonl`")
    assert "s11" not in (job.folder / "fairgate/reports/small/run.json").read_text()
    assert job.pull_again(history, FAIRGATE_BASELINE_CHANGE="allow") == 0
    assert "s11" in (job.folder / "fairgate/reports/small/run.json").read_text()

    # 7. Far fewer sources: not the same suite any more.
    history.branch("narrow")
    history.sources(5)
    history.answers(worse)
    history.commit()
    assert job.pull(history) == 5
    assert job.pull_again(history, FAIRGATE_BASELINE_CHANGE="allow") == 3
    assert "min_overlap" in job.summary


def test_an_upgrade_that_changes_a_metric_asks_for_a_new_baseline(job, history, monkeypatch):
    newer = [replace(metric, version=metric.version + 1) for metric in baseline.METRICS]
    history.proposes()
    monkeypatch.setattr(baseline, "METRICS", newer)
    monkeypatch.setattr(accepted_runs, "METRICS", newer)
    assert job.pull(history) == 3
    assert "version" in job.summary
    history.git("checkout", "-q", "topic")
    history.accept("new version of a metric")
    history.commit()
    assert job.pull(history) == 3
    assert job.pull_again(history, FAIRGATE_BASELINE_CHANGE="allow") == 0
    history.land()
    history.branch("next")
    history.commit()
    assert job.pull(history) == 0


@pytest.mark.parametrize("waits", [False, True])
def test_a_narrow_run_cannot_become_the_baseline(job, history, waits):
    """Nor where every rule waits for a baseline."""
    accepted = history.root / "baselines" / "small.json"
    if waits:
        gates = "gates:\n  - {metric: asr/generation, regression: 0.02}\n"
        history.write("policies/small.yaml", POLICY.split("gates:")[0] + gates)
        accepted.unlink()
    before = None if waits else accepted.read_text()
    history.answers(lambda key: fair(key) if key.startswith(("s0", "s1#")) else None)
    assert main(["run", "policies/small.yaml", "--out", "narrow", "--quiet"]) == 5
    assert main(["baseline", "accept", "narrow", "--reason", "quick"]) == 3
    assert (accepted.read_text() if accepted.exists() else None) == before
    history.answers(fair)
    assert main(["run", "policies/small.yaml", "--out", "whole", "--quiet"]) == (5 if waits else 0)
    assert main(["baseline", "accept", "whole", "--reason", "first"]) == 0


BUDGET = POLICY.replace("regression: 0.02", "regression: 0.02, budget: 0.04")
ANCHOR = "baselines/small.anchor.json"


def turned(pairs):
    keys = {f"s{n}#race/asian" for n in range(pairs)}
    return lambda key: "negative" if key in keys else "positive"


def pin(reason):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(["run", "policies/small.yaml", "--out", "out", "--quiet"])
        code = main(["baseline", "anchor", "out", "--reason", reason, "--date", "2026-02-02"])
    assert code == 0


def drifting(states, folder):
    """Make one whose baseline was accepted twice since the anchor, with a third change to come."""
    history = states.copy(introduced, folder)
    with contextlib.chdir(folder):
        history.write("policies/small.yaml", BUDGET)
        history.accept()
        pin("release 1")
        history.commit("a budget")
        for pairs in (3, 6):
            history.answers(turned(pairs))
            history.accept()
            history.commit("a little worse, and accepted")
        history.branch()
        history.answers(turned(9))
    return history


@pytest.fixture
def drifted(states, history):
    return states.copy(drifting, history.root)


@pytest.mark.whole
def test_the_base_commits_anchor_ends_a_series_and_no_change_pins_another_by_itself(job, drifted):
    drifted.commit()
    assert job.pull(drifted) == 1
    assert "| ❌ | **answers**, since anchor | **race** (10) | +9.0 |" in job.summary
    assert "pin another with `fairgate baseline anchor" in job.summary
    drifted.git("checkout", "-q", "topic")
    pin("nothing to see here")
    drifted.commit()
    assert job.pull(drifted) == 1
    assert ANCHOR in job.summary
    assert "every budget starts again" in job.summary
    assert "anchor: " in job.summary
    assert job.pull_again(drifted, FAIRGATE_BASELINE_CHANGE="allow") == 0
    assert "another anchor is pinned" in job.summary


@pytest.mark.walk(1)
@pytest.mark.parametrize(
    ("file", "text", "code", "why"),
    [
        (ANCHOR, None, 1, "the anchor is removed: no budget is compared any more"),
        (ANCHOR, "{", 3, ""),
        ("policies/small.yaml", BUDGET.replace("budget: 0.04", "budget: 0.1"), 1,
         "budget raised from 0.04 to 0.1"),
    ],
)  # fmt: skip
def test_nor_one_that_removes_or_damages_it_or_raises_the_budget(
    job, drifted, file, text, code, why
):
    (drifted.root / file).unlink()
    if text:
        drifted.write(file, text)
    drifted.commit()
    assert job.pull(drifted) == code
    assert why in job.summary
