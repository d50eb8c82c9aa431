"""One comment, whatever happens: races, deletions, forgeries, outages, limits of GitHub."""

import threading

import pytest
from action.fake_github import BOT, EVENTS, READ_ONLY, REPOSITORY, TOKEN, known_run

from fairgate.domain.errors import ApiError
from fairgate.github.api import GitHubApi
from fairgate.github.comments import Marker, StickyComment


@pytest.fixture
def waits():
    return []


@pytest.fixture
def api(hub, waits):
    for run in range(500, 512):
        hub.runs[run] = known_run()
    return GitHubApi(hub.url, TOKEN, sleep=waits.append)


def marker(run=500, key="small", attempt=1):
    return Marker(key=key, head="a" * 40, run=(run, attempt))


def put(hub, api, text, run=500, *, create=True, **named):
    sticky = StickyComment(api, repository=REPOSITORY, number=7, graphql=f"{hub.url}/graphql")
    return sticky.put(marker(run, **named), text, create=create)


def texts(hub):
    return [comment["body"].split("\n", 1)[1] for comment in hub.of(7)]


def test_created_once_then_updated_then_left_alone(hub, api):
    urls = {put(hub, api, "one"), put(hub, api, "two", 501), put(hub, api, "two", 501)}
    assert urls == {hub.of(7)[0]["html_url"]}
    assert texts(hub) == ["two"]
    assert len(hub.made("PATCH")) == 1


def test_not_created_where_nobody_wants_it_but_kept_up_to_date(hub, api):
    assert put(hub, api, "green", create=False) == ""
    assert hub.of(7) == []
    put(hub, api, "red")
    assert put(hub, api, "green", 501, create=False)
    assert texts(hub) == ["green"]


def test_found_behind_150_earlier_comments(hub, api):
    for text, run in (("one", 500), ("two", 501)):
        for number in range(150):
            hub.comment(7, f"chatter {number}", user={"login": "monalisa"})
        put(hub, api, text, run)
    assert len(hub.ours(7)) == 1
    assert any("page=2" in path for path in hub.made("GET", "/issues/7/comments"))


@pytest.mark.parametrize(
    ("user", "text"),
    [
        ({"login": "monalisa"}, "{}\nforged"), ({"login": "github-actions"}, "{}\nforged"),
        ({"login": "x[bot]"}, "{}\nforged"), (BOT, "quoted:\n{}"),
    ],
)  # fmt: skip
def test_a_copied_marker_is_not_ours(hub, api, user, text):
    forged = hub.comment(7, text.format(marker(999_999)), user=user)
    put(hub, api, "one")
    assert forged["body"] == text.format(marker(999_999))
    assert texts(hub)[1:] == ["one"]


@pytest.mark.parametrize(("run", "attempt"), [(501, 1), (500, 2)])
def test_a_newer_run_wins(hub, api, run, attempt):
    newer = put(hub, api, "newer", run, attempt=attempt)
    assert put(hub, api, "older") == newer
    assert texts(hub) == ["newer"]


UNKNOWN_RUNS = {
    "a run that is not there": None,
    **{f"a run of {event}": {"event": event} for event in EVENTS},
    **{f"a run of workflow {one}": {"workflow_id": one} for one in (78, "77", None, True)},
    **{f"a run of branch {one}": {"head_branch": one} for one in ("main", "Topic", "", None)},
    **{f"a run of commit {one}": {"head_sha": one} for one in ("b" * 40, "a" * 39, "", None)},
    **{
        f"a run of repository {one}": {"head_repository": one}
        for one in ({"id": 2, "full_name": REPOSITORY}, {}, None)
    },
    "a run of pull request 8": {"pull_requests": [{"number": 8}]},
    **{f"attempts {one}": {"run_attempt": one} for one in (0, -1, None, "x")},
}
FORGED = "all is well"


@pytest.mark.walk(2)
@pytest.mark.parametrize("how", ["alone", "before ours", "after ours"])
def test_a_marker_counts_only_for_a_run_that_github_knows_as_this_pull_request_s(hub, api, how):
    """Every way in which another workflow's comment can claim to be a newer run's."""
    stays = []
    for name, run in UNKNOWN_RUNS.items():
        hub.comments.clear()
        hub.runs.pop(999, None)
        if run is not None:
            hub.runs[999] = known_run(**run)
        if how == "after ours":
            put(hub, api, "ours", 499)
        hub.comment(7, f"{marker(999)}\n{FORGED}")
        if how == "before ours":
            hub.comment(7, f"{marker(499)}\nours")
        put(hub, api, "red", 500, create=False)
        if texts(hub) != ["red"]:
            stays.append(name)
    assert stays == []
    hub.comments.clear()
    hub.runs[999] = known_run()
    hub.comment(7, f"{marker(999)}\na newer run's")
    put(hub, api, "red", 500)
    assert texts(hub) == ["a newer run's"]


@pytest.mark.parametrize("status", [403, 404, 500])
def test_what_github_does_not_say_of_a_run_does_not_count(hub, api, status):
    hub.comment(7, f"{marker(501)}\n{FORGED}")
    hub.fail("GET", "/actions/runs/", status, times=9)
    put(hub, api, "red")
    assert texts(hub) == ["red"]


def test_of_a_run_whose_own_event_ties_it_to_no_pull_request_no_other_counts(hub, api):
    hub.runs[500] = known_run(event="issue_comment", head_branch="main")
    hub.runs[501] = known_run(event="issue_comment", head_branch="main")
    hub.comment(7, f"{marker(501)}\n{FORGED}")
    put(hub, api, "red")
    assert texts(hub) == ["red"]


def test_duplicates_of_earlier_days_and_of_absurd_numbers_are_removed(hub, api):
    absurd = f'<!-- fairgate:report:v1 key="small" head="" run="{"9" * 9000}.1" -->'
    first, *_ = (hub.comment(7, f"{one}\nx") for one in (absurd, marker(1), marker(2), marker(3)))
    put(hub, api, "one")
    assert [c["id"] for c in hub.of(7)] == [first["id"]]
    assert texts(hub) == ["one"]


def test_deleted_in_between_is_created_again(hub, api):
    old = put(hub, api, "one")

    def delete(method, path, body):
        if method == "PATCH":
            hub.comments.clear()

    hub.hooks.append(delete)
    assert put(hub, api, "two", 501) != old
    assert texts(hub) == ["two"]


@pytest.mark.parametrize("order", [(500, 501), (501, 500)])
def test_two_runs_that_create_at_the_same_time_leave_one_comment_of_the_newer(hub, api, order):
    mine, other = order

    def intrude(method, path, body):
        if method == "POST" and "comments" in path:
            hub.hooks.clear()
            hub.comment(7, f"{marker(other)}\nrun {other}")

    hub.hooks.append(intrude)
    put(hub, api, f"run {mine}", mine)
    # The other run looks again after creating, as ours did.
    put(hub, api, f"run {other}", other)
    assert texts(hub) == ["run 501"]


def test_many_runs_at_once_leave_one_comment(hub):
    def post(run):
        client = GitHubApi(hub.url, TOKEN, sleep=lambda _: None)
        put(hub, client, f"run {run}", run)

    threads = [threading.Thread(target=post, args=(500 + n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    put(hub, GitHubApi(hub.url, TOKEN), "run 507", 507)
    assert texts(hub) == ["run 507"]


@pytest.mark.parametrize("after", [False, True])
def test_a_bad_gateway_leaves_one_whether_it_did_nothing_or_all(hub, api, after):
    hub.fail("POST", "/comments", 502, after=after)
    assert put(hub, api, "one")
    assert texts(hub) == ["one"]


def test_retry_after_is_honoured(hub, api, waits):
    hub.fail("POST", "/comments", 429, headers={"Retry-After": "7"})
    hub.fail("GET", "/comments", 403, headers={"Retry-After": "3"})
    hub.fail("GET", "/comments", 503)
    put(hub, api, "one")
    assert waits[0] == 3.0
    assert 7.0 in waits
    assert len(hub.of(7)) == 1


@pytest.mark.parametrize(
    ("status", "headers", "attempts"), [(429, {"Retry-After": "3600"}, 0), (500, {}, 3)]
)
def test_a_wait_of_an_hour_is_not_waited_and_an_outage_ends_after_a_few_attempts(
    hub, api, waits, status, headers, attempts
):
    hub.fail("GET", "/comments", status, headers=headers, times=50)
    with pytest.raises(ApiError, match=str(status)):
        put(hub, api, "one")
    assert len(waits) == attempts


def test_a_read_only_token_is_refused_once(hub, waits):
    client = GitHubApi(hub.url, READ_ONLY, sleep=waits.append)
    with pytest.raises(ApiError, match="Resource not accessible") as caught:
        put(hub, client, "one")
    assert caught.value.status == 403
    assert len(hub.made("POST", "comments")) == 1


def test_a_server_that_is_not_there(waits):
    client = GitHubApi("http://127.0.0.1:9", TOKEN, sleep=waits.append)
    with pytest.raises(ApiError) as caught:
        client.get("/x")
    assert TOKEN not in str(caught.value) + repr(client)


def test_a_redirect_does_not_carry_the_token(hub, api):
    hub.fail("GET", "/pulls/7", 302, headers={"Location": "http://127.0.0.1:9/steal"})
    with pytest.raises(ApiError, match="302"):
        api.get(f"/repos/{REPOSITORY}/pulls/7")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("http://127.0.0.1:9/steal", "another host"),
        *((place, "") for place in ("http://[::1", "{url}/ä?page=2", "{url}/x\x7fy")),
    ],
)
def test_a_next_page_on_another_host_or_that_is_no_address_is_refused(hub, api, place, said):
    link = f'<{place.replace("{url}", hub.url)}>; rel="next"'
    hub.fail("GET", "/comments", 200, headers={"Link": link}, message=[])
    with pytest.raises(ApiError, match=said or None):
        list(api.pages(f"/repos/{REPOSITORY}/issues/7/comments"))


@pytest.mark.parametrize("root", ["http://api.example.org", "ftp://x", "file:///etc", "nonsense"])
def test_a_token_travels_encrypted_only(root):
    with pytest.raises(ApiError, match="no address"):
        GitHubApi(root, TOKEN)


@pytest.mark.parametrize("key", ['x" head="', "a --> b", "<b>", "ä/ö", "a--b"])
def test_no_name_breaks_out_of_the_marker(hub, api, key):
    text = str(marker(key=key))
    assert text.count("-->") == 1
    assert text.endswith("-->")
    assert "--" not in text[4:-3].replace('key="', "")
    put(hub, api, "one", key=key)
    put(hub, api, "two", 501, key=key)
    assert len(hub.of(7)) == 1


@pytest.mark.parametrize("answer", [[], [7], ["id"], [{}], [{"id": None}], [{"id": "9"}]])
def test_an_answer_of_another_shape_is_github_s_error(hub, api, answer):
    """A list of comments in which ours has no number, and a created comment without one."""
    hub.fail("POST", "/comments", 201, message=answer)
    with pytest.raises(ApiError, match="without its number"):
        put(hub, api, "one")
    ours = [{**row, "body": str(marker()), "user": BOT} for row in answer if isinstance(row, dict)]
    hub.fail("GET", "/comments", 200, message=ours)
    if ours:
        with pytest.raises(ApiError, match="without its number"):
            put(hub, api, "one")
