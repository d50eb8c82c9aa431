"""A baseline's whole life on a real git history, from the first pull request to an upgrade."""

from action import payloads
from action.repositories import POLICY, fair, worse


def test_the_life_of_a_baseline(job, history, capsys):
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
    history.answers(worse, capsys)
    history.commit()
    assert job.pull(history) == 1

    # 5. The same, accepted on purpose.
    git("checkout", "-q", "regression")
    history.accept("accepted trade-off")
    history.commit()
    assert job.pull(history) == 1
    assert job.pull_again(history, FAIRGATE_BASELINE_CHANGE="allow") == 0
    history.land()
    commit = git("rev-parse", "HEAD")
    assert job.run("push", payloads.on_push("0" * 40, commit)) == 0

    # 6. More sources: the base's decide; once let through, what is shared is compared, what is new
    # is listed.
    history.branch("more-sources")
    history.sources(22)
    history.answers(worse, capsys)
    history.commit()
    assert job.pull(history) == 0
    assert job.summary.startswith("**This change edits** sources `sources.jsonl`")
    assert "s21" not in (job.folder / "fairgate/reports/small/run.json").read_text()
    assert job.pull_again(history, FAIRGATE_BASELINE_CHANGE="allow") == 0
    assert "s21" in (job.folder / "fairgate/reports/small/run.json").read_text()

    # 7. Far fewer sources: not the same suite any more.
    history.branch("narrow")
    history.sources(5)
    history.answers(worse, capsys)
    history.commit()
    assert job.pull(history) == 5
    assert job.pull_again(history, FAIRGATE_BASELINE_CHANGE="allow") == 3
    assert "min_overlap" in job.summary


def test_an_upgrade_that_changes_a_metric_asks_for_a_new_baseline(job, history, monkeypatch):
    from dataclasses import replace

    from fairgate.gate import accepted_runs, baseline

    newer = [replace(metric, version=metric.version + 1) for metric in baseline.METRICS]
    history.branch()
    history.commit()
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


def test_a_narrow_run_cannot_become_the_baseline(job, history, capsys):
    from fairgate.cli import main

    before = history.read("baselines/small.json")
    history.answers(lambda key: fair(key) if key.startswith(("s0", "s1#")) else None, capsys)
    assert main(["run", "policies/small.yaml", "--out", "narrow", "--quiet"]) != 0
    assert main(["baseline", "accept", "narrow", "--reason", "quick"]) == 3
    assert history.read("baselines/small.json") == before


def test_nor_where_every_rule_waits_for_a_baseline(job, history, capsys):
    from fairgate.cli import main

    gates = "gates:\n  - {metric: asr/generation/controlled, regression: {margin: 0.02}}\n"
    history.write("policies/small.yaml", POLICY.split("gates:")[0] + gates)
    (history.root / "baselines" / "small.json").unlink()
    history.answers(lambda key: fair(key) if key.startswith(("s0", "s1#")) else None, capsys)
    assert main(["run", "policies/small.yaml", "--out", "narrow", "--quiet"]) == 5
    assert main(["baseline", "accept", "narrow", "--reason", "quick"]) == 3
    assert not (history.root / "baselines" / "small.json").exists()
    history.answers(fair, capsys)
    assert main(["run", "policies/small.yaml", "--out", "whole", "--quiet"]) == 5
    assert main(["baseline", "accept", "whole", "--reason", "first"]) == 0
