"""A policy at another path introduces no gate where the base has it already."""

import contextlib
import itertools
import json

import pytest
from action.repositories import LOOSE, POLICY, worse
from action.test_base_commit import only_merged
from action.test_self_approval import ALLOW
from ruamel.yaml import YAML

from fairgate.domain.errors import UsageError
from fairgate.domain.ports import Runtime
from fairgate.github.base_commit import BaseCommit, Clone
from fairgate.github.change import ChangeGate, GatedChange, Introduction

OLD, NEW = "policies/small.yaml", "policies/gate.yaml"
OTHER = LOOSE.replace("name: small", "name: gate")
SERVED = LOOSE.replace("{recorded: answers.jsonl}", "{http: {url: 'http://127.0.0.1:1'}}")
FAR = "\n".join(f"# {n}: nothing that git could take for the same file" for n in range(200))
JUST_RULES = OTHER.replace("race, gender", "age").replace("- id: sentiment", f"{FAR}\n  - id: tone")
MOVED = {OLD: None, NEW: LOOSE}
BASELINE = "baselines/small.json"
DECIDED = {
    "renamed": MOVED,
    "into another folder": {OLD: None, "gates/small.yaml": LOOSE},
    "to the top": {OLD: None, "gate.yaml": LOOSE},
    "with another ending": {OLD: None, "policies/gate.txt": LOOSE},
    "with none": {OLD: None, "policies/gate": LOOSE},
    "copied, the old one kept": {NEW: LOOSE},
    "copied, the old one another's name": {
        OLD: POLICY.replace("name: small", "name: big"),
        NEW: LOOSE,
    },
    "the old one emptied": {OLD: "", NEW: LOOSE},
    "the old one no policy": {OLD: "version: 1\n", NEW: LOOSE},
    "the old one a folder": {OLD: None, f"{OLD}/inner.yaml": LOOSE, NEW: LOOSE},
    "with a name of its own": {OLD: None, NEW: OTHER},
    "with its baseline removed": {**MOVED, BASELINE: None},
    "quite rewritten": {OLD: None, NEW: f"{FAR}\n{LOOSE}"},
    "of a served system": {OLD: None, NEW: SERVED},
    "only its case": {OLD: None, "policies/Small.yaml": LOOSE},
}
REFUSED = {
    "another in its place": {OLD: None, NEW: JUST_RULES},
    "another beside what is no policy now": {OLD: "{}\n", NEW: OTHER},
    "another beside one of another name": {OLD: POLICY.replace("small", "big"), NEW: OTHER},
    "another, and a broken one": {OLD: "version: [\n", NEW: OTHER},
}
INTRODUCED = {
    "beside the old one": {NEW: OTHER},
    "beside an edited one": {OLD: LOOSE, NEW: OTHER},
}


def judged(history, scratch, files, name, *, allow):
    base = history.git("rev-parse", "main")
    history.git("checkout", "-q", "--force", "-B", "topic", "main")
    for file, text in files.items():
        path = history.root / file
        if text is None:
            path.unlink()
        else:
            history.write(file, text)
    history.commit()
    runtime = Runtime(root=history.root, confined=True)
    commit = BaseCommit(Clone(history.root), base, api=None, repository="")
    gate = ChangeGate(name, runtime, lambda side: side, scratch)
    return gate.change(commit, base, allow=allow)


def new_file(files):
    return next(name for name in reversed(files) if name.startswith(("policies", "gate")))


@pytest.mark.walk(4)
@pytest.mark.parametrize("allow", [False, True])
@pytest.mark.parametrize("name", DECIDED)
def test_the_base_s_policy_decides_under_whatever_path(history, tmp_path, name, allow):
    files = DECIDED[name]
    found = judged(history, tmp_path, files, new_file(files), allow=allow)
    assert isinstance(found, GatedChange)
    assert any("max raised from 0.2 to 0.9" in one.sentence for one in found.loosened)
    assert any("renames 'policies/small.yaml'" in one for one in found.remarks)
    is_refused = name == "of a served system"
    assert found.decided_by == ("proposed" if allow and not is_refused else "base")
    assert allow or found.decides.accepted_runs.baseline is not None


ENDINGS = ("policies/small.json", "policies/small.txt", "policies/small", "conf/fairgate.policy")
TEXTS = {
    "as it was": LOOSE, "with Windows' line ends": LOOSE.replace("\n", "\r\n"), "rewritten": f"{FAR}\n{LOOSE}",
    "as JSON": json.dumps(YAML(typ="safe").load(LOOSE)), "with a name of its own": f"{FAR}\n{OTHER}",
    "another": JUST_RULES,
}  # fmt: skip


@pytest.mark.walk(1)
@pytest.mark.parametrize("old", ENDINGS)
def test_a_policy_of_the_base_counts_whatever_its_file_is_called(history, tmp_path, old):
    """Removed, emptied or no policy any more: what takes its place is judged by it, or refused."""
    (history.root / old).parent.mkdir(exist_ok=True)
    history.git("mv", OLD, old)
    history.commit("a name of its own")
    wrong = []
    for (what, text), left in itertools.product(TEXTS.items(), (None, "", "x: 1\n")):
        with contextlib.suppress(UsageError):
            change = judged(history, tmp_path, {old: left, NEW: text}, NEW, allow=False)
            is_new = not isinstance(change, GatedChange) or "introduces" in change.remarks[0]
            if is_new or change.decided_by != "base":
                wrong.append((what, left))
    assert not wrong
    kept = judged(history, tmp_path, {NEW: JUST_RULES}, NEW, allow=False)
    assert "introduces the gate" in kept.remarks[0]


def test_where_it_is_unknown_which_policy_it_was_there_is_no_verdict(history, tmp_path):
    wrong = []
    for what, files in REFUSED.items():
        for allow in (False, True):
            try:
                wrong.append((what, judged(history, tmp_path, files, NEW, allow=allow)))
            except UsageError as error:
                if f"'{OLD}'" not in str(error) or "unknown whose rules" not in str(error):
                    wrong.append((what, str(error)))
    assert wrong == []


def test_two_that_could_be_meant_are_none(history, tmp_path):
    history.write("gates/small.yaml", POLICY)
    history.commit("another folder's, of the same name")
    files = {OLD: None, "gates/small.yaml": None, NEW: LOOSE}
    with pytest.raises(UsageError, match="unknown whose rules"):
        judged(history, tmp_path, files, NEW, allow=True)


def test_a_gate_beside_the_others_is_introduced(history, tmp_path):
    history.write("docs/example.yaml", "name: x\nsuites: none here\n")
    history.commit()
    for files in ({**one, "docs/example.yaml": None} for one in INTRODUCED.values()):
        found = judged(history, tmp_path, files, NEW, allow=False)
        assert "introduces the gate" in found.remarks[0]
    served = {NEW: SERVED.replace("name: small", "name: gate")}
    assert isinstance(judged(history, tmp_path, served, NEW, allow=False), Introduction)


def test_a_policy_of_another_root_is_moved_by_its_owner(history, tmp_path):
    history.move("services/rag")
    moved = {"services/rag/policies/small.yaml": None, "other/policies/small.yaml": LOOSE}
    base = history.git("rev-parse", "main")
    history.branch()
    for file, text in moved.items():
        (history.root / file).unlink() if text is None else history.write(file, text)
    for part in ("answers.jsonl", "sources.jsonl"):
        history.write(f"other/{part}", history.read(f"services/rag/{part}"))
    history.commit()
    root = history.root / "other"
    gate = ChangeGate(OLD, Runtime(root=root, confined=True), lambda side: side, tmp_path)
    commit = BaseCommit(Clone(root), base, api=None, repository="")
    with pytest.raises(UsageError, match=r"services/rag/policies/small\.yaml"):
        gate.change(commit, base, allow=False)


def test_worse_answers_and_a_new_name_are_red(job, history):
    history.proposes(worse)
    history.git("mv", OLD, NEW)
    for text, code in ((POLICY, 1), (LOOSE, 1)):
        history.git("checkout", "-q", "topic")
        history.write(NEW, text)
        history.git("add", "--all")
        history.git("commit", "-q", "-m", "renamed")
        assert job.pull(history, FAIRGATE_POLICY=NEW) == code, job.err
        assert "no baseline" not in job.summary
        assert "This change renames" in job.summary.replace("'", "")
        assert "policies/small.yaml" in job.summary
    assert job.pull_again(history, FAIRGATE_POLICY=NEW, **ALLOW) == 0
    assert "max raised from 0.2 to 0.9" in job.summary


def test_where_only_the_api_knows_the_base_it_is_found_by_its_name(job, history, tmp_path):
    history.proposes(worse, {NEW: LOOSE})
    history.git("rm", "-q", OLD)
    history.commit()
    _, event = only_merged(job, history, tmp_path)
    assert job.run("pull_request", event, FAIRGATE_POLICY=NEW) == 1
    assert "max raised from 0.2 to 0.9" in job.summary
