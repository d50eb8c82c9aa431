"""A quarantine of the base that has ended: no pull request can repair it there, so none fails by it."""

import json

from action.repositories import POLICY, fair, worse

ENTRY = {"case": "s1#gender/man", "until": "2026-01-31", "reason": "ticket 12"}


def merged(history, head):
    """Put a quarantine that has ended into the base, and a change onto a branch."""
    history.branch()
    history.answers(head)
    answers = (history.root / "answers.jsonl").read_text()
    history.git("checkout", "-q", "-f", "main")
    history.write("policies/small.yaml", f"{POLICY}quarantine:\n  - {json.dumps(ENTRY)}\n")
    history.commit()
    history.proposes(files={"answers.jsonl": answers, "note.md": "A change."})


def test_a_pull_request_is_judged_and_told_that_the_bases_quarantine_has_ended(job, history):
    merged(history, fair)
    assert job.pull(history) == 0
    assert "this has ended, and the base's policy still leaves it out" in job.summary


def test_worse_answers_fail_beside_it(job, history):
    merged(history, worse)
    assert job.pull(history) == 1


ENDED = f"{POLICY}quarantine:\n  - {json.dumps(ENTRY)}\n"


def with_ended(history):
    """Put a quarantine that has ended into main's policy."""
    history.write("policies/small.yaml", ENDED)
    history.commit()


def test_an_entry_that_the_head_carries_over_is_a_notice(job, history):
    """Whatever else the change edits, and wherever it moves the file."""
    with_ended(history)
    heads = {
        "other limit": {"policies/small.yaml": ENDED.replace("max: 0.2", "max: 0.19")},
        "comment": {"policies/small.yaml": f"# A comment.\n{ENDED}"},
    }
    for what, files in heads.items():
        history.proposes(files=files)
        assert job.pull(history) == 0, what
        assert "this has ended" in job.summary, what
        history.git("checkout", "-q", "-f", "main")
    history.branch()
    history.git("mv", "policies/small.yaml", "policies/other.yaml")
    history.commit()
    assert job.pull(history, FAIRGATE_POLICY="policies/other.yaml") == 0
    assert "this has ended" in job.summary


def test_an_entry_that_the_head_adds_or_edits_is_an_error(job, history):
    history.proposes(files={"policies/small.yaml": ENDED})
    assert job.pull(history) == 2, "added"
    history.git("checkout", "-q", "-f", "main")
    with_ended(history)
    for what, other in {
        "case": {**ENTRY, "case": "s2#gender/man"},
        "until": {**ENTRY, "until": "2026-02-01"},
        "reason": {**ENTRY, "reason": "ticket 13"},
    }.items():
        text = f"{POLICY}quarantine:\n  - {json.dumps(other)}\n"
        history.proposes(files={"policies/small.yaml": text})
        assert job.pull(history) == 2, what
        history.git("checkout", "-q", "-f", "main")


def test_a_push_to_the_default_branch_and_a_removed_entry(job, history):
    with_ended(history)
    assert job.push(history) == 2
    history.proposes(files={"policies/small.yaml": POLICY})
    assert job.pull(history) == 0
