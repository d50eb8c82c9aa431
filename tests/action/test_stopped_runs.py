"""A run that ends without a verdict: no earlier green comment stands as if it were this run's."""

import hashlib

import pytest
from action import payloads
from action.fake_github import known_run
from action.repositories import POLICY, fair, worse

from fairgate.github.comments import Marker

GREEN = "nobody is treated differently"
BROKEN = "version: 1\nname: [\n"


@pytest.fixture
def green(job, history):
    history.proposes(worse)
    assert job.pull(history) == 1
    history.git("checkout", "-q", "topic")
    history.answers(fair)
    history.commit()
    assert job.pull(history, GITHUB_RUN_ID="501") == 0
    assert GREEN in job.hub.ours(7)[0]["body"]
    history.git("checkout", "-q", "topic")
    return history


def broken(history, text=BROKEN):
    history.write("policies/small.yaml", text)
    return history.commit()


def test_the_comment_says_that_there_is_no_verdict_until_the_next_one(job, green):
    head = broken(green)
    assert job.pull(green, GITHUB_RUN_ID="500") == 2  # an earlier run, which ends late
    assert GREEN in job.hub.ours(7)[0]["body"]
    assert job.pull_again(green, GITHUB_RUN_ID="502") == 2
    (comment,) = job.hub.ours(7)
    assert "### FairGate: no verdict (exit code 2)" in comment["body"]
    assert GREEN not in comment["body"]
    assert "policies/small.yaml:" in comment["body"]
    assert head[:12] in comment["body"]
    assert "/octo/shop/actions/runs/502)" in comment["body"]
    assert job.outputs["comment-url"] == comment["html_url"]
    assert job.outputs["exit-code"] == "2"
    green.git("checkout", "-q", "topic")
    broken(green, POLICY)
    assert job.pull(green, GITHUB_RUN_ID="503") == 0
    (comment,) = job.hub.ours(7)
    assert GREEN in comment["body"]


def test_the_modes_are_those_of_a_failed_gate_and_its_own_key_is_kept_to(job, history):
    history.branch()
    broken(history)
    history.merge()
    for mode in ("always", "on-change", "on-failure"):
        job.hub.comments.clear()
        assert job.pull_again(history, FAIRGATE_COMMENT=mode) == 2
        assert len(job.hub.ours(7)) == 1, mode
    job.hub.comments.clear()
    assert job.pull_again(history, FAIRGATE_COMMENT_KEY="mine") == 2
    assert 'key="mine"' in job.hub.ours(7)[0]["body"]


def test_a_root_turned_into_a_link_leaves_no_green_comment(job, history):
    root = "services/rag"
    history.move(root)
    history.proposes()
    where = {"FAIRGATE_ROOT": root, "FAIRGATE_COMMENT": "always"}
    assert job.pull(history, **where) == 0
    history.git("checkout", "-q", "topic")
    history.git("mv", root, "evil")
    (history.root / "services").mkdir(exist_ok=True)
    (history.root / root).symlink_to("../evil")
    history.write("evil/policies/small.yaml", POLICY.replace("name: small", "name: other"))
    history.commit()
    assert job.pull(history, GITHUB_RUN_ID="501", **where) == 2
    (comment,) = job.hub.ours(7)
    assert "no verdict (exit code 2)" in comment["body"]


@pytest.mark.whole
def test_a_crash_is_told_too(job, green, monkeypatch):
    def crash(*_, **__):
        raise RuntimeError("boom")

    green.commit()
    monkeypatch.setattr("fairgate.github.report.report_change", crash)
    assert job.pull(green, GITHUB_RUN_ID="502") == 4
    assert "no verdict (exit code 4)" in job.hub.ours(7)[0]["body"]
    assert job.outputs["exit-code"] == "4"


UNREADABLE = [
    None, b"", b"{", b"[]", b"null", b"\xff", b'{"version":2,"create":true,"text":"x"}',
    b'{"version":1,"create":"no","text":"x"}', b'{"version":1,"create":false,"text":""}',
    b'{"version":1,"create":false,"text":" \\n\\u200b*"}',
    b'{"version":1,"create":false}', b'{"version":1,"create":false,"text":"x","key":"other"}',
    b'{"version":1,"create":false,"text":' + b"[" * 100_000,
    b'{"version":1,"create":false,"text":"' + b"x" * 99_000 + b'"}',
    b'{"version":1,"create":false,"text":"' + b"x" * (17 << 20) + b'"}',
]  # fmt: skip


def test_where_the_gate_s_job_left_no_comment_no_earlier_verdict_stands(job, green):
    """Also where a step before the gate failed: packages that could not be installed."""
    green.commit()
    head, base = green.merge(), green.git("rev-parse", "main")
    event = payloads.on_pull_request(7, head, base)
    stands = []
    for number, content in enumerate(UNREADABLE):
        run = 600 + number
        job.hub.runs[run] = known_run(head_sha=head)
        if content is not None:
            job.hub.upload(run, head, content, name="fairgate-small", member="comment.json")
        given = {
            "GITHUB_RUN_ID": str(run), "FAIRGATE_ARTIFACT": "fairgate-small",
            "FAIRGATE_COMMENT_DIGEST": hashlib.sha256(content or b"").hexdigest(),
        }  # fmt: skip
        assert job.command("comment", "pull_request", event, **given) == 0, job.err
        (comment,) = job.hub.ours(7)
        if "no verdict" not in comment["body"] or f"/actions/runs/{run})" not in comment["body"]:
            stands.append(content and content[:60])
        comment["body"] = comment["body"].partition("\n")[0] + f"\n{GREEN}"
    assert stands == []


@pytest.mark.parametrize("named", ["another", "none"])
def test_no_comment_is_posted_but_the_one_that_the_gates_step_names(job, green, named):
    green.commit()
    assert job.pull(green, FAIRGATE_COMMENT="always", GITHUB_RUN_ID="502") == 0
    (comment,) = job.hub.ours(7)
    assert "no verdict" not in comment["body"]
    sha256 = job.outputs["comment-digest"]
    head, base = green.git("rev-parse", "HEAD^2"), green.git("rev-parse", "main")
    event = payloads.on_pull_request(7, head, base)
    content = b'{"version":1,"create":true,"text":"all is FORGED"}'
    job.hub.upload(502, head, content, name="fairgate-small", member="comment.json")
    given = {
        "FAIRGATE_ARTIFACT": "fairgate-small",
        "GITHUB_RUN_ID": "502",
        "FAIRGATE_COMMENT_DIGEST": sha256 if named == "another" else "",
    }
    assert job.command("comment", "pull_request", event, **given) == 0, job.err
    (comment,) = job.hub.ours(7)
    assert "FORGED" not in comment["body"]
    assert "no verdict" in comment["body"]


def test_no_name_of_a_head_chooses_the_comment(job, green):
    """Whatever the change calls its policy, the comment of the gate of that name stays."""
    names = ("fairgate-other", "fork/fairgate-report")
    others = {
        name: job.hub.comment(7, f"{Marker(key=name, head='a' * 40, run=(400, 1))}\nof {name}")
        for name in names
    }
    wrong = []
    for run, name in enumerate(names, 600):
        text = POLICY.replace("name: small", f"name: {name.replace('/', '-')}")
        for broken_by in ("", "no: key\n"):
            green.git("checkout", "-q", "topic")
            green.write("policies/small.yaml", text + broken_by)
            green.commit()
            job.hub.runs[run] = known_run(head_sha=green.git("rev-parse", "HEAD"))
            code = job.pull(green, GITHUB_RUN_ID=str(run), FAIRGATE_COMMENT="always")
            own = [one for one in job.hub.of(7) if 'key="fairgate-small"' in one["body"]]
            is_told = len(own) == 1 and f"/actions/runs/{run})" in own[0]["body"]
            kept = all(one["body"].endswith(f"\nof {key}") for key, one in others.items())
            if not (is_told and kept) or (code == 2) != bool(broken_by):
                wrong.append((name, broken_by, code, is_told, kept))
    assert wrong == []
