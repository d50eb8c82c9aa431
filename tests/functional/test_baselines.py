"""The life of a baseline: accept, unchanged, regression, other conditions, damage, rescore."""

import errno
import json
import os
import shutil
from dataclasses import replace

import pytest
from fakes.mutations import edited_case

from fairgate.gate.baseline_files import dump_baseline, load_baseline
from fairgate.metrics.catalogue import METRICS


def regressed(key):
    return "negative" if "#race/" in key else "positive"


GATES = """\
  - {metric: asr/generation, regression: 0.02}
  - {parity: unreadable, max: 0.02}
"""


@pytest.fixture
def accepted(once):
    def make(workspace):
        workspace.gate("positive", gates=GATES)
        workspace.accept("out", "--date", "2026-01-01")

    return once("accepted", make)


def test_a_real_regression_is_red_names_terms_and_cases_and_accepting_it_is_green(accepted):
    assert accepted.gate(regressed) == 1
    assert "is worse than the baseline" in accepted.out
    assert "#race/" in accepted.out
    rules = accepted.record()["rules"]
    [changed] = [rule for rule in rules if rule["metric"] == "asr/generation"]
    assert changed["outcome"] == "fail"
    assert changed["change"]["p_corrected"] < 0.05
    accepted.accept()
    assert accepted.gate() == 0


def test_verify_finds_an_edited_file(accepted):
    path = accepted.root / "baselines" / "small.json"
    assert accepted.run("baseline", "verify", str(path)) == 0
    path.write_text(edited_case(path.read_text()))
    assert accepted.run("baseline", "verify", str(path)) == 3
    assert "integrity" in accepted.err
    assert accepted.gate() == 3


@pytest.mark.parametrize(("suite", "difference"), [
    ("    criterion: any", 'criterion: baseline "count", run "any"'),
    ("    control: neutral-phrases", 'control: baseline "neutral", run "neutral-phrases"'),
    ("    control: neutral", ""),  # the same nine nouns
])  # fmt: skip
def test_other_conditions_are_shown_field_by_field(accepted, suite, difference):
    accepted.policy(gates=GATES, suite=suite)
    assert accepted.gate("positive") == (3 if difference else 0)
    differences = accepted.record()["overlap"]["incompatible"]
    assert bool(differences) == bool(difference)
    assert not difference or any(difference in line for line in differences)


def test_added_sources_are_listed_and_compared_where_possible(accepted):
    accepted.sources(count=21)
    assert accepted.gate("positive") == 0
    overlap = accepted.record()["overlap"]
    assert overlap["removed"] == []
    assert len(overlap["new"]) == 22


def test_too_few_common_cases_are_incomplete(accepted):
    accepted.sources(count=10)
    assert accepted.gate("positive") == 3
    assert "min_overlap" in json.dumps(accepted.record()["overlap"])


def test_a_reworded_source_is_another_case(accepted):
    accepted.edit("Text number 3 is fine.", "Text three is fine.", "sources.jsonl")
    assert accepted.gate("positive") == 0
    assert any(key.startswith("sentiment:s3#") for key in accepted.record()["overlap"]["new"])


def test_a_run_without_verdict_cannot_become_a_baseline(accepted):
    assert accepted.gate(lambda key: None if "#race" in key else "positive", out="narrow") == 5
    before = (accepted.root / "baselines" / "small.json").read_bytes()
    assert accepted.run("baseline", "accept", "narrow", "--reason", "oops") == 3
    assert (accepted.root / "baselines" / "small.json").read_bytes() == before


def test_another_policys_baseline_is_refused(accepted):
    other = accepted.root / "other.yaml"
    other.write_text((accepted.root / "policy.yaml").read_text().replace("small", "other"))
    assert accepted.run("run", "other.yaml", "--baseline", "baselines/small.json") == 3
    assert "small" in accepted.err


@pytest.mark.whole
def test_how_answers_are_read_must_match_and_rescoring_behind_another_marker_is_refused(accepted):
    path = accepted.root / "policy.yaml"
    task = "{id: own, instruction: Judge., labels: [positive, negative]}"
    path.write_text(path.read_text().replace("task: sentiment", f"task: {task}"))
    accepted.run("run", "policy.yaml", "--out", "out")
    assert accepted.run("baseline", "accept", "out", "--reason", "own task") == 0, accepted.err
    plain = path.read_text()
    path.write_text(plain.replace("negative]}", "negative], negated: {positive: negative}}"))
    assert accepted.run("rescore", "out", "--out", "again") == 3
    assert "task.negated" in accepted.out
    path.write_text(plain.replace("negative]}", "negative], marker: 'Answer:'}"))
    assert accepted.run("rescore", "out") == 2
    assert "Answer:" in accepted.err
    record = json.loads((accepted.root / "baselines" / "small.json").read_text())
    assert record["suites"]["sentiment"]["must_match"]["oracle"] == '["label/9"]'


def test_rescoring_with_other_labels_is_refused(accepted):
    task = "{id: own, instruction: Judge., labels: [good, bad]}"
    accepted.edit("task: sentiment", f"task: {task}")
    assert accepted.run("rescore", "out") == 2
    assert "never generated" in accepted.err


def folder_bytes(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.walk(2)
@pytest.mark.parametrize("after", range(6))  # stop-rule.json has these bytes already
def test_a_full_disk_leaves_the_earlier_run_whole(accepted, monkeypatch, after):
    before = folder_bytes(accepted.root / "out")
    sync, left = os.fsync, [after]

    def full(descriptor):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    accepted.answers(regressed)
    monkeypatch.setattr(os, "fsync", full)
    code = accepted.run("run", "policy.yaml", "--out", "out")
    if left[0] >= 0:
        assert code == 1
        return
    assert code == 4
    assert "the disk is full" in accepted.err
    assert folder_bytes(accepted.root / "out") == before


@pytest.mark.walk(2)
@pytest.mark.parametrize("command", ["accept", "anchor"])
@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_earlier_baseline_whole(accepted, monkeypatch, command, call):
    accepted.run("baseline", "anchor", "out", "--reason", "start", "--date", "2026-01-01")
    before = folder_bytes(accepted.root / "baselines")
    accepted.gate(regressed)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        if call == "write":
            patched.setattr("fairgate.io.durable.DurableFile.write", full)
        else:
            patched.setattr(os, call, full)
        assert accepted.run("baseline", command, "out", "--reason", "worse") == 4
    assert "the disk is full; what was there before is unchanged" in accepted.err
    assert folder_bytes(accepted.root / "baselines") == before
    assert accepted.run("baseline", "verify", "baselines/small.json") == 0


def test_a_template_that_is_not_there_is_no_full_or_read_only_folder(accepted, monkeypatch):
    before = folder_bytes(accepted.root / "out")
    monkeypatch.setattr("fairgate.reports.html._STYLES", ("not-there.css",))
    assert accepted.run("run", "policy.yaml", "--out", "out") == 4
    assert "report.html cannot be made" in accepted.err
    assert "not-there.css" in accepted.err
    assert "install FairGate again" in accepted.err
    assert "--out" not in accepted.err
    assert folder_bytes(accepted.root / "out") == before


@pytest.mark.walk(2)
@pytest.mark.parametrize("part", ["run.json", "report.md", "executions.jsonl", "stop-rule.json"])
def test_a_folder_of_two_runs_cannot_become_a_baseline(accepted, part):
    assert accepted.gate(regressed, out="worse") == 1
    text = (accepted.root / "worse" / part).read_text()
    (accepted.root / "out" / part).write_text(text if part != "stop-rule.json" else text + "\n")
    before = (accepted.root / "baselines" / "small.json").read_bytes()
    assert accepted.run("baseline", "accept", "out", "--reason", "mixed") == 4
    assert f"its files are of different runs or were edited: {part}" in accepted.err
    # Nor by the way of a verdict of what was edited.
    assert accepted.run("rescore", "out", "--out", "again") == 4
    assert f"its files are of different runs or were edited: {part}" in accepted.err
    assert not (accepted.root / "again").exists()
    assert accepted.run("explain", "out", "r-00#gender/man") == 4
    assert (accepted.root / "baselines" / "small.json").read_bytes() == before


def test_a_folder_that_does_not_name_its_files_is_no_run(accepted):
    """Edited answers get past no refusal by the loss of the hashes that tell them."""
    assert accepted.gate(regressed, out="worse") == 1
    shutil.copy(accepted.root / "worse" / "executions.jsonl", accepted.root / "out")
    for text in (None, "{}", "", '{"parts": []}'):
        parts = accepted.root / "out" / "parts.json"
        parts.unlink() if text is None else parts.write_text(text)
        for command in (("rescore", "out", "--out", "again"), ("explain", "out", "r-00#gender/man"),
                        ("baseline", "accept", "out", "--reason", "x"), ("comment", "out")):  # fmt: skip
            assert accepted.run(*command) == 4, (text, command, accepted.out)
            assert "parts.json" in accepted.err
    assert not (accepted.root / "again").exists()


def test_verify_computes_again_what_it_can_and_names_the_rest(accepted):
    """Of files whose hash fits: every other version, and every value that is missing."""
    path = accepted.root / "baselines" / "small.json"
    sound = load_baseline(path.read_text(), "small.json")
    assert accepted.run("baseline", "verify", str(path)) == 0, accepted.err
    assert "not checked, for no case gives it: intervals, notes" in accepted.out
    versions, wrong = dict(sound.metric_versions), []
    forged = {
        "an unknown metric": {"metric_versions": {**versions, "asr/new": 1}},
        "no versions": {"metric_versions": {}},
    }
    for name in {item.metric for item in sound.measurements}:
        forged[f"another version of {name}"] = {"metric_versions": {**versions, name: 99}}
        others = {other: version for other, version in versions.items() if other != name}
        forged[f"no version of {name}"] = {"metric_versions": others}
    for number, item in enumerate(sound.measurements):
        if item.value is not None and not item.metric.startswith("identity/"):
            rest = [*sound.measurements[:number], *sound.measurements[number + 1 :]]
            forged[f"without {item.metric} {dict(item.where)}"] = {"measurements": rest}
    forged["without its suites"] = {"suites": {}}
    for suite, table in ((name, one.table) for name, one in sound.suites.items()):
        for column in {METRICS[item.metric].column for item in sound.measurements} & {
            *table.values
        }:
            rest = {name: values for name, values in table.values.items() if name != column}
            bare = replace(sound.suites[suite], table=replace(table, values=rest))
            forged[f"without the column {column}"] = {"suites": {**sound.suites, suite: bare}}
    for name, fields in forged.items():
        path.write_text(dump_baseline(replace(sound, **fields)))
        code = accepted.run("baseline", "verify", str(path))
        is_refused = "is not intact" in accepted.err or "incomplete baseline" in accepted.err
        if code != 3 or not is_refused or ": intact" in accepted.out:
            wrong.append((name, code, accepted.said))
    assert wrong == []
