"""`baseline-change: allow` counts as the base branch's workflow says it; no change allows itself."""

import contextlib

import pytest
from action import payloads
from action.fake_github import REPOSITORY, TOKEN
from action.repositories import WORKFLOW, WORKFLOW_PATH, regressed

from fairgate.github.allowed_change import objection_to_allow
from fairgate.github.api import GitHubApi
from fairgate.github.base_commit import BaseCommit, Clone
from fairgate.github.event import Event

PLAIN = "name: fairness\non: pull_request\n"
CALLER = "name: fairness\non: pull_request\njobs: {gate: {uses: ./.github/workflows/gate.yml}}\n"
ALLOW = {"FAIRGATE_BASELINE_CHANGE": "allow"}


def accepted(states, folder):
    """Make one whose branch is worse and has accepted that itself."""
    space = states.copy(regressed, folder)
    with contextlib.chdir(folder):
        space.accept("known trade-off, issue 12")
    space.commit()
    return space


@pytest.fixture
def trade_off(states, history):
    return states.copy(accepted, history.root)


def workflow_of_main(history, text):
    """Put a workflow onto main and the branch on top of it."""
    history.git("checkout", "-q", "main")
    history.write(WORKFLOW_PATH, text)
    history.commit()
    history.git("checkout", "-q", "topic")
    history.git("merge", "-q", "-m", "main", "main")


def refused(job, said):
    assert "does not count" in job.summary
    assert said in job.summary.replace("`", "")
    assert "| this change | ✅ PASS |" in job.summary
    return True


def test_an_accepted_trade_off_is_let_through_by_the_workflow_of_the_base(job, trade_off):
    assert job.pull(trade_off) == 1  # without `allow` the base decides
    assert job.pull_again(trade_off, **ALLOW) == 0
    assert "this change's own policy and baseline decide" in job.summary.replace("`", "")
    assert "FAIL" in job.hub.ours(7)[0]["body"]


@pytest.mark.parametrize("hides", [False, True])
def test_a_change_of_the_workflow_allows_nothing(job, trade_off, hides):
    """Also where the changed workflow puts its old self back before it calls the gate."""
    workflow_of_main(trade_off, WORKFLOW.replace("allow", "refuse"))
    trade_off.write(WORKFLOW_PATH, WORKFLOW)
    trade_off.commit()
    trade_off.merge()
    merge = trade_off.git("rev-parse", "HEAD")
    if hides:
        trade_off.git("checkout", "-q", "main", "--", WORKFLOW_PATH)
    assert job.pull_again(trade_off, GITHUB_WORKFLOW_SHA=merge, **ALLOW) == 1
    assert refused(job, "edits the workflow")


def objection(space, hub, **changes):
    """Return why `allow` does not count on the checked-out commit, a change of main."""
    base, commit = space.git("rev-parse", "main", "HEAD").split()
    named = {
        "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/{WORKFLOW_PATH}@x",
        "GITHUB_WORKFLOW_SHA": commit,
    }
    api = GitHubApi(hub.url, TOKEN)
    commits = BaseCommit(Clone(space.root), base, api=api, repository=REPOSITORY)
    event = Event(name="pull_request", repository=REPOSITORY, base_sha=base)
    return objection_to_allow(event, commits, {**named, **changes}).replace("`", "")


@pytest.mark.parametrize("renamed", [True, False])
def test_a_workflow_of_another_name_allows_nothing(history, hub, renamed):
    """The run is that of the new file, whatever else base has."""
    history.branch()
    if renamed:
        history.git("mv", WORKFLOW_PATH, ".github/workflows/new.yml")
    history.write(".github/workflows/new.yml", WORKFLOW)
    history.commit()
    named = f"{REPOSITORY}/.github/workflows/new.yml@refs/pull/7/merge"
    said = "has no workflow .github/workflows/new.yml"
    assert said in objection(history, hub, GITHUB_WORKFLOW_REF=named)


def given(text):
    shared = CALLER.replace("./", "octo/shared/")
    return shared.replace("gate.yml}", f"gate.yml, with: {text}}}") if text else shared + "# @v1\n"


def saying(name, value):
    quoted = f'"{value}"' if "$" in value else value
    return WORKFLOW.replace("baseline-change: allow", f"{name}: {quoted}")


COMPUTED = [
    "${{ contains(github.event.pull_request.labels.*.name, 'reviewed') && 'allow' }}",
    "${{ steps.mode.outputs.mode }}", "${{ vars.MODE }}", "${{ 'allow' }}", "", "[allow]",
]  # fmt: skip
SECOND = "      - uses: org/fairgate@v0\n        with: {baseline-change: '${{ inputs.x }}'}\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        # The runner names the calling workflow, which does not change: the called one may.
        (CALLER, "calls './.github/workflows/gate.yml' from the checkout"),
        (WORKFLOW + "      - uses: ./.github/actions/gate\n",
         "calls './.github/actions/gate' from the checkout"),
        *((text, "cannot be read")
          for text in ("jobs: [", "a: 1\na: 2\n", "x: !!python/object:os.system {}\n", "\x00")),
        *((saying(name, value), "computes it")
          for name in ("baseline-change", "Baseline-Change") for value in COMPUTED),
        (WORKFLOW + SECOND, "computes it"),
        # It came from elsewhere: an environment that an earlier step has set.
        (PLAIN, "does not set"), (WORKFLOW.replace("allow", "refuse"), "does not set"),
        # What a workflow of another repository says is the base's word, with what it is given.
        (given(""), ""), (given("{mode: strict}"), ""), (given("{baseline-change: allow}"), ""),
        (given("{mode: '${{ inputs.x }}'}"), "computes it"),
        (given("{modes: ['${{ inputs.x }}']}"), "computes it"),
        (given("{baseline-change: refuse}"), "does not set"),
    ],
)  # fmt: skip
def test_the_base_s_workflow_says_allow_in_its_own_words_or_allows_nothing(history, hub, text, why):
    history.write(WORKFLOW_PATH, text)
    history.commit()
    history.branch()
    said = objection(history, hub)
    assert why in said if why else said == ""


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("GITHUB_WORKFLOW_REF",
         ("", "other/repo/.github/workflows/fairness.yml@refs/heads/main",
          "octo/shop/../../etc/passwd@x", "octo/shop/@x"), "do not name the workflow"),
        ("GITHUB_WORKFLOW_SHA", ("", "HEAD", "--upload-pack=x"), "do not name the workflow"),
        ("GITHUB_WORKFLOW_SHA", ("d" * 40,), "the workflow that runs cannot be read"),
    ],
)  # fmt: skip
def test_a_workflow_that_nobody_names_or_that_cannot_be_had_allows_nothing(
    history, hub, name, values, why
):
    for value in values:
        assert why in objection(history, hub, **{name: value})


@pytest.mark.parametrize(("workflow", "code"), [(WORKFLOW, 0), (CALLER, 1)])
def test_the_default_branch_s_workflow_is_read_where_github_takes_it_from(
    job, trade_off, workflow, code
):
    """Under `issue_comment` the change's own edits of the workflow do not run."""
    workflow_of_main(trade_off, workflow)
    main = trade_off.git("rev-parse", "main")
    trade_off.write(WORKFLOW_PATH, WORKFLOW + "# edited\n")
    head = trade_off.commit()
    job.hub.pulls[7] = payloads.pull_request(7, head, main)
    event = payloads.on_issue_comment(7)
    assert job.run("issue_comment", event, GITHUB_WORKFLOW_SHA=main, **ALLOW) == code
