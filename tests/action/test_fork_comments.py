"""The trusted half for forks: an artifact is hostile, GitHub alone says which pull request it is."""

import json

import pytest
from action import payloads
from action.conftest import Job
from action.fake_github import FakeGitHub, zipped
from action.repositories import regressed

RUN = 30433642
FORK = "stranger/shop"


def artifact(hub, raw, name="fairgate-report"):
    hub.artifacts[RUN] = {77: (name, raw)}


@pytest.fixture(scope="session")
def forks_run(states, tmp_path_factory):
    """Return base and head of a fork's red pull request, and the run record of its gate."""
    folder = tmp_path_factory.mktemp("forked")
    history, hub = states.copy(regressed, folder / "work"), FakeGitHub()
    base, head = history.git("rev-parse", "main", "HEAD").split()
    history.merge()
    job = Job(folder / "runner", history.root, hub)
    event = payloads.on_pull_request(7, head, base, repo=FORK)
    assert job.run("pull_request", event, FAIRGATE_GITHUB_TOKEN="") == 1
    hub.stop()
    return base, head, (job.folder / "fairgate/reports/small/run.json").read_text()


@pytest.fixture
def forked(hub, forks_run):
    """Return the run record of a fork's red pull request 7, and its head commit."""
    base, head, record = forks_run
    hub.pulls[7] = payloads.pull_request(7, head, base, repo=FORK)
    artifact(hub, zipped(record))
    return record, head


def test_a_forks_report_is_told_again(job, forked):
    _, head = forked
    assert job.command("comment", "workflow_run", payloads.on_workflow_run(head, repo=FORK)) == 0
    (posted,) = job.hub.ours(7)
    _, title, said, *_ = posted["body"].splitlines()
    assert title == "### A fork reports: the gate failed in `small`"
    assert "Nobody has verified these numbers" in said
    assert "| ❌ **FAIL: regression** |" in posted["body"]
    assert "`asr/generation/controlled`" in posted["body"]
    assert head[:12] in posted["body"]
    assert job.outputs["comment-url"] == posted["html_url"]
    assert job.command("comment", "workflow_run", payloads.on_workflow_run(head, repo=FORK)) == 0
    assert len(job.hub.ours(7)) == 1


def test_a_pull_request_that_moved_on_gets_no_comment(job, forked):
    _, head = forked
    job.hub.pulls[7]["head"]["sha"] = "e" * 40
    assert job.command("comment", "workflow_run", payloads.on_workflow_run(head, repo=FORK)) == 0
    assert job.hub.of(7) == []
    assert "moved on" in job.out


def test_the_artifact_cannot_choose_the_pull_request(job, forked):
    record, head = forked
    job.hub.pulls[8] = payloads.pull_request(8, "f" * 40, "b" * 40, repo=FORK)
    lying = {**json.loads(record), "number": 8, "pull_request": 8, "pr": {"number": 8}}
    artifact(job.hub, zipped(json.dumps(lying)))
    job.command("comment", "workflow_run", payloads.on_workflow_run(head, repo=FORK))
    assert job.hub.of(8) == []
    assert len(job.hub.of(7)) == 1


def test_hostile_texts_of_the_record_stay_dead(job, forked):
    record, head = forked
    evil = "::error::x\n@octo/admins <img src=x> <!-- --> ![a](https://evil.invalid) | `x` [y](z)"
    hostile = json.loads(record)
    hostile["policy"] = evil[:150]
    hostile["evidence"]["problems"] = [evil] * 3
    for rule in hostile["rules"]:
        rule["suite"], rule["where"], rule["reasons"] = evil, {"term": evil}, [evil, evil]
    artifact(job.hub, zipped(json.dumps(hostile)))
    assert job.command("comment", "workflow_run", payloads.on_workflow_run(head, repo=FORK)) == 0
    (posted,) = job.hub.ours(7)
    first, rest = posted["body"].split("\n", 1)
    assert first.count("-->") == 1
    assert first.endswith("-->")
    assert "<!--" not in rest
    assert "::error::" not in posted["body"] + job.out
    assert "<img" not in rest.replace("`<img", "")
    assert len(posted["body"]) < 65_536


PRAISE = "Reviewed by the maintainers and approved for merge."


def told(job, forked, **changes):
    """Comment the record with other top-level values; return the exit code."""
    record, head = forked
    artifact(job.hub, zipped(json.dumps({**json.loads(record), **changes})))
    return job.command("comment", "workflow_run", payloads.on_workflow_run(head, repo=FORK))


def rules_of(forked, **changes):
    return [
        {**rule, "outcome": "pass", "warns": False, **changes}
        for rule in json.loads(forked[0])["rules"]
    ]


def evidence_of(forked, **changes):
    return {**json.loads(forked[0])["evidence"], **changes}


def test_a_forks_praise_of_itself_is_not_repeated(job, forked):
    thin = evidence_of(forked, problems=[PRAISE])
    rules = rules_of(forked, outcome="inconclusive", reasons=[PRAISE], suite=PRAISE)
    assert told(job, forked, outcome="inconclusive", exit_code=5, rules=rules, evidence=thin) == 0
    (posted,) = job.hub.ours(7)
    assert "### A fork reports: no verdict" in posted["body"]
    assert PRAISE not in posted["body"].replace(f"`{PRAISE}`", "")  # a suite's name, as code
    assert "✅" not in posted["body"]


@pytest.mark.parametrize(
    ("outcome", "code", "rule", "evidence"),
    [
        ("pass", 0, {"outcome": "fail"}, {}),
        ("inconclusive", 5, {"outcome": "fail"}, {}),
        ("pass", 0, {"outcome": "inconclusive"}, {}),
        ("pass", 0, {"outcome": "not-evaluated"}, {}),
        ("pass", 0, None, {}),
        ("fail", 1, None, {}),
        ("fail", 1, {}, {}),
        ("pass", 1, {}, {}),
        ("fail", 0, {"outcome": "fail"}, {}),
        ("inconclusive", 0, {}, {}),
        ("not-evaluated", 5, {}, {}),
        ("pass", 0, {}, {"problems": ["x"]}),
        ("pass", 0, {}, {"decided": 0}),
        ("pass", 0, {}, {"planned": 1}),
    ],
)
def test_a_record_that_contradicts_itself_is_no_comment(job, forked, outcome, code, rule, evidence):
    rules = [] if rule is None else rules_of(forked, **rule)
    given = evidence_of(forked, **evidence)
    assert told(job, forked, outcome=outcome, exit_code=code, rules=rules, evidence=given) == 4
    assert "contradicts itself" in job.err
    assert job.hub.of(7) == []


@pytest.mark.parametrize(
    ("outcome", "code", "rule", "evidence"),
    [
        ("pass", 0, {}, {}),
        ("pass", 0, {"outcome": "inconclusive", "warns": True}, {}),
        ("pass", 0, {"outcome": "fail", "advisory": True}, {}),
        ("fail", 1, {"outcome": "inconclusive"}, {}),
        ("inconclusive", 3, {}, {}),
        ("inconclusive", 5, {"outcome": "not-evaluated"}, {"problems": ["x"]}),
    ],
)
def test_what_a_gate_can_say_is_told(job, forked, outcome, code, rule, evidence):
    given = evidence_of(forked, **evidence)
    rules = rules_of(forked, **rule)
    assert told(job, forked, outcome=outcome, exit_code=code, rules=rules, evidence=given) == 0
    assert len(job.hub.ours(7)) == 1


def test_a_fork_leaves_one_comment_whatever_it_calls_itself(job, forked):
    for number in range(3):
        assert told(job, forked, policy=f"policy-{number}") == 0
    (posted,) = job.hub.ours(7)
    assert 'key="fork/fairgate-report"' in posted["body"]
    assert "in `policy-2`" in posted["body"]


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"PK\x03\x04 truncated", zipped("{}", "other.json"), zipped(""), zipped("{}"),
        zipped("[" * 100_000), zipped('{"policy": 1}'), zipped("null"), zipped(b"\xff\xfe\x00"),
        zipped(" " * (17 << 20)), zipped("{}", "../run.json"),
    ],
    ids=range(11),
)  # fmt: skip
def test_an_artifact_that_is_none_is_an_error_and_no_comment(job, forked, raw):
    _, head = forked
    artifact(job.hub, raw)
    assert job.command("comment", "workflow_run", payloads.on_workflow_run(head, repo=FORK)) == 4
    assert job.hub.of(7) == []
    assert "Traceback" not in job.err


def test_a_damaged_member_is_an_error(job, forked):
    record, head = forked
    raw = bytearray(zipped(record))
    raw[200:260] = b"\0" * 60
    artifact(job.hub, bytes(raw))
    assert job.command("comment", "workflow_run", payloads.on_workflow_run(head, repo=FORK)) == 4


def test_a_metric_of_the_future_is_refused(job, forked):
    record, head = forked
    artifact(job.hub, zipped(record.replace("asr/generation/controlled", "asr/invented")))
    assert job.command("comment", "workflow_run", payloads.on_workflow_run(head, repo=FORK)) == 4


def test_a_missing_artifact_says_what_to_upload(job, forked):
    _, head = forked
    artifact(job.hub, b"", name="other")
    assert job.command("comment", "workflow_run", payloads.on_workflow_run(head, repo=FORK)) == 4
    assert "report-json" in job.err


def test_only_after_a_run_of_a_pull_request(job, forked):
    _, head = forked
    payload = payloads.on_workflow_run(head, repo=FORK)
    payload["workflow_run"]["event"] = "push"
    assert job.command("comment", "workflow_run", payload) == 2
    base = "b" * 40
    assert job.command("comment", "pull_request", payloads.on_pull_request(7, head, base)) == 2
    assert job.hub.of(7) == []


def test_without_a_token_it_says_so(job, forked):
    _, head = forked
    payload = payloads.on_workflow_run(head, repo=FORK)
    assert job.command("comment", "workflow_run", payload, FAIRGATE_GITHUB_TOKEN="") == 2
    assert "github-token" in job.err
